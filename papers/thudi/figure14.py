"""Figure 14: attack P.

The attack calls a record a member where its loss is among the lowest 10 % of what the target has on
1,000 other records. The paper observes no significant improvement over the baseline at any π.
Results as in figure 3; on a GPU also, at ε = 15, with other pools and other epochs.
"""

from __future__ import annotations

from typing import Any

from papers.reproduce import Measured, Scale, run
from papers.thudi import gains, pictures, raw, variations
from papers.thudi.gains import at_rate

ATTACK, RATE = "attack-p", "0.1"


def measure(scale: Scale) -> Measured:
    """Attack P at every ε and π."""
    results = raw.results(scale, (*raw.PRIVATE, None))
    varied = variations.varied(scale)
    claims = []
    for data, found in results.items():
        reason = variations.reason(varied, data, ATTACK, RATE)
        claims += gains.rate_claims(raw.TITLES[data], found, ATTACK, RATE, reason)
    figures = {
        data: pictures.precision(data, found, "Attack P", at_rate(ATTACK, RATE))
        for data, found in results.items()
    }
    numbers: dict[str, Any] = {
        data: gains.numbers_at(found, ATTACK, RATE) for data, found in results.items()
    }
    return Measured(
        claims, raw.settings(scale, results), numbers, figures,
        variations.kept(scale, results, varied),
    )  # fmt: skip


if __name__ == "__main__":
    run(measure, __file__, __doc__)
