"""Figure 17: attack R with shadow models at the target's own rate.

As figure 15 at ε = 3 and 7, but the shadow models are trained on the same share π of the pool as
the target. The paper sees no significant improvement over the baseline. The printed way, with
thresholds from models that had the record, comes first, the corrected one second. Results as in
figure 3.
"""

from __future__ import annotations

from typing import Any

from papers.reproduce import Measured, Scale, run
from papers.thudi import gains, pictures, raw, variations
from papers.thudi.attacks import MATCHED
from papers.thudi.gains import at_rate

WAYS = {
    "printed": ("attack-r-in-matched", "as printed"),
    "corrected": ("attack-r-matched", "corrected"),
}
RATE = "0.1"


def measure(scale: Scale) -> Measured:
    """Attack R at matched rates, in both ways."""
    results = raw.results(scale, MATCHED)
    varied = variations.varied(scale)
    claims, figures = [], {}
    numbers: dict[str, Any] = {}
    for data, found in results.items():
        numbers[data] = {}
        for name, (attack, told) in WAYS.items():
            reason = variations.reason(varied, data, attack.removesuffix("-matched"), RATE)
            if data in varied:
                reason = f"With shadow models at π = 0.5, as in figure 15: {reason}"
            title = f"{raw.TITLES[data]}, {told}"
            claims += gains.rate_claims(title, found, attack, RATE, reason)
            numbers[data][name] = gains.numbers_at(found, attack, RATE)
            shown = "Printed attack R" if name == "printed" else "Attack R"
            figures[f"{data}-{name}"] = pictures.precision(
                data, found, shown, at_rate(attack, RATE)
            )
    return Measured(
        claims, raw.settings(scale, results), numbers, figures,
        variations.kept(scale, results, varied),
    )  # fmt: skip


if __name__ == "__main__":
    run(measure, __file__, __doc__)
