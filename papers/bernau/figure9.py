"""Figure 9: auditing ε on Adult.

ε′ from the local sensitivities (composed by Rényi DP, the largest over all trainings), from the
largest final belief, and from the advantage, for noise scaled to local or global sensitivity, one
record replaced. Each belief ρ_β has random numbers of its own. With local noise the first is ε by
construction: it stands in the table below and is no claim, and neither is that the other ways are
less precise. Section 5.3 prints ε′ = β/(1 − β) for the belief, without the logarithm of equation 5,
and ε′ from the advantage without its factor 2; both are corrected here, and the table has the
printed forms too. Panel d compares the adversary with Yeom's, who calls a record a member where its
loss is at most the mean training loss, on the same models. Intervals of ε′ come from simulated
experiments with the measured distances of the worlds; that of the other adversary contains the draw
of the records.
"""

from __future__ import annotations

from papers.bernau.audits_of import measure_audits
from papers.bernau.cases import ADULT
from papers.reproduce import Measured, Scale, run

BELIEFS = (0.53, 0.75, 0.9, 0.99)
"""ρ_β of table 3."""


def measure(scale: Scale) -> Measured:
    """Four beliefs, both kinds of noise."""
    return measure_audits(scale, ADULT, BELIEFS)


if __name__ == "__main__":
    run(measure, __file__, __doc__)
