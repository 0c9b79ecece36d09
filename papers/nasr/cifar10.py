"""Six adversaries on a subset of CIFAR-10, from API access to a malicious data set.

The same network and settings as for MNIST, on the first 100 of 10,000 images. The quick version has
a linear network, 50 records and 10 steps.
"""

from __future__ import annotations

from papers.nasr.ladder import measure_ladder
from papers.reproduce import Measured, Scale, run


def measure(scale: Scale) -> Measured:
    """The ladder of this data set."""
    return measure_ladder("cifar10", "CIFAR-10 subset", scale)


if __name__ == "__main__":
    run(measure, __file__, __doc__)
