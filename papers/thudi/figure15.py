"""Figure 15: attack R.

For each record a threshold on the loss comes from 20 shadow models, to have a false-positive rate
of 0.1. The paper takes it from the models that had the record, and observes no significant
improvement over the baseline. A rate of false positives has to come from the models that did not
have it (errata): both ways are made here, the printed one first. Results as in figure 3.
"""

from __future__ import annotations

from typing import Any

from papers.reproduce import Measured, Scale, run
from papers.thudi import gains, pictures, raw, variations
from papers.thudi.gains import at_rate

WAYS = {"printed": ("attack-r-in", "as printed"), "corrected": ("attack-r", "corrected")}
RATE = "0.1"


def measure(scale: Scale) -> Measured:
    """Attack R at every ε and π, in both ways."""
    results = raw.results(scale, (*raw.PRIVATE, None))
    varied = variations.varied(scale)
    claims, figures = [], {}
    numbers: dict[str, Any] = {}
    for data, found in results.items():
        numbers[data] = {}
        for name, (attack, told) in WAYS.items():
            title = f"{raw.TITLES[data]}, {told}"
            reason = variations.reason(varied, data, attack, RATE)
            claims += gains.rate_claims(title, found, attack, RATE, reason)
            shown = "Printed attack R" if name == "printed" else "Attack R"
            figures[f"{data}-{name}"] = pictures.precision(
                data, found, shown, at_rate(attack, RATE)
            )
            numbers[data][name] = gains.numbers_at(found, attack, RATE)
    return Measured(
        claims, raw.settings(scale, results), numbers, figures,
        variations.kept(scale, results, varied),
    )  # fmt: skip


if __name__ == "__main__":
    run(measure, __file__, __doc__)
