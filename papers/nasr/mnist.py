"""Six adversaries on MNIST, from API access to a malicious data set.

Two convolutions with 16 and 32 filters and group normalisation. On a GPU an adversary has 1,000
trials a world at each ε, and more of them where ε is small; on a processor convolutions have 200.
The last table says how many each had here. The quick version has a linear network, 50 records and
10 steps. Lower bounds on ε are shown by the paper's equation 5, with the threshold chosen on other
trials than those that count, and by a bound that holds for all thresholds at once; neither assumes
anything of the scores.
"""

from __future__ import annotations

from papers.nasr.ladder import measure_ladder
from papers.reproduce import Measured, Scale, run


def measure(scale: Scale) -> Measured:
    """The ladder of this data set."""
    return measure_ladder("mnist", "MNIST", scale)


if __name__ == "__main__":
    run(measure, __file__, __doc__)
