"""Figure 16: attack R at other false-positive rates.

As figure 15, with the thresholds for rates of 0.05, 0.2, 0.3 and 0.5. The paper again sees no
significant improvement over the baseline. The claims are about the printed way, with thresholds
from models that had the record; the pictures are of the corrected one. Results as in figure 3.
"""

from __future__ import annotations

from typing import Any

from papers.reproduce import Measured, Scale, run
from papers.thudi import gains, pictures, raw, variations
from papers.thudi.gains import at_rate

PRINTED, CORRECTED = "attack-r-in", "attack-r"
RATES = ("0.05", "0.2", "0.3", "0.5")


def measure(scale: Scale) -> Measured:
    """Attack R at every ε, π and rate."""
    results = raw.results(scale, (*raw.PRIVATE, None))
    varied = variations.varied(scale)
    claims, figures = [], {}
    numbers: dict[str, Any] = {data: {} for data in results}
    for data, found in results.items():
        for rate in RATES:
            title = f"{raw.TITLES[data]}, aimed at {rate}"
            reason = variations.reason(varied, data, PRINTED, rate)
            claims += gains.rate_claims(title, found, PRINTED, rate, reason)
            figures[f"{data}-{rate}"] = pictures.precision(
                data, found, f"FPR-{rate} attack R", at_rate(CORRECTED, rate)
            )
            numbers[data][rate] = {
                "printed": gains.numbers_at(found, PRINTED, rate),
                "corrected": gains.numbers_at(found, CORRECTED, rate),
            }
    return Measured(
        claims, raw.settings(scale, results), numbers, figures,
        variations.kept(scale, results, varied),
    )  # fmt: skip


if __name__ == "__main__":
    run(measure, __file__, __doc__)
