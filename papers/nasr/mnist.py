"""Six adversaries on MNIST, from API access to a malicious data set.

Two convolutions with 16 and 32 filters and group normalisation, 1,000 trials a world for each
adversary and ε, and more of them for the last one where ε is small. The quick version has a linear
network, 50 records and 10 steps. The strength of an adversary is the distance d′ of its scores in
both worlds; its share of the certified d′ is taken over all four ε. Lower bounds on ε by the
paper's equation 5 are in the results, with the threshold chosen on other trials than those that
count.
"""

from __future__ import annotations

from papers.nasr.ladder import measure_ladder
from papers.reproduce import Measured, Scale, run


def measure(scale: Scale) -> Measured:
    """The ladder of this data set."""
    return measure_ladder("mnist", "MNIST", scale)


if __name__ == "__main__":
    run(measure, __file__, __doc__)
