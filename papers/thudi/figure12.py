"""Figure 12: precision of LiRA without privacy.

Models that were trained without noise are attacked as in figure 3. The paper observes that the gain
over the baseline depends on π. Results as in figure 3.
"""

from __future__ import annotations

from papers.reproduce import Claim, Measured, Scale, mean, run, stated
from papers.thudi import gains, pictures, raw
from papers.thudi.attacks import Found
from papers.thudi.gains import reached

MIDDLE, ENDS = 0.5, (0.1, 0.9)


def measure(scale: Scale) -> Measured:
    """LiRA against models without DP."""
    results = raw.results(scale, (None,))
    claims = [claim for data, found in results.items() for claim in claims_of(data, found[0])]
    figures = {
        data: pictures.precision(data, found, "LiRA", reached("lira"), "lira")
        for data, found in results.items()
    }
    numbers = {
        data: {
            kind: [
                pictures.interval(reached("lira", kind)(cell)).value for cell in found[0]["cells"]
            ]
            for kind in ("best", "held_out", "shuffled")
        }
        for data, found in results.items()
    }  # fmt: skip
    return Measured(
        claims, raw.settings(scale, results), numbers, figures, raw.kept(scale, results)
    )


def claims_of(data: str, found: Found) -> list[Claim]:
    """The gain at π = ½ against both ends; the paper's figure has its largest gains there."""
    title, middle = raw.TITLES[data], gains.at(found, MIDDLE)
    claims = []
    for end in ENDS:
        for kind, told in (("best", "best of 40"), ("held_out", "held-out thresholds")):
            read = reached("lira", kind)
            found_difference = gains.difference(middle, gains.at(found, end), read)
            claims.append(
                stated(
                    f"{title}: gain at π = {MIDDLE:g} less that at π = {end:g}, {told}",
                    "the improvement over the baseline depends on π",
                    mean(gains.known(found_difference)), least=0.0,
                )
            )  # fmt: skip
    return claims


if __name__ == "__main__":
    run(measure, __file__, __doc__)
