"""Six adversaries on Location-30, from API access to a malicious data set.

A dense network with 64 hidden units. The quick version has a linear network, 50 records and 10
steps.
"""

from __future__ import annotations

from papers.nasr.ladder import measure_ladder
from papers.reproduce import Measured, Scale, run


def measure(scale: Scale) -> Measured:
    """The ladder of this data set."""
    return measure_ladder("location30", "Location-30", scale)


if __name__ == "__main__":
    run(measure, __file__, __doc__)
