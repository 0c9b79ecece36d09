"""Figure 8: precision is not bounded for attackers who rarely say "member".

One step of training on one record more or less, (1, 1e-5)-DP: the weight is Gaussian, and its mean
is lower by 1 if the record was in. Whoever says "member" below a threshold has a precision that
goes to 1 as the threshold falls, while the accuracy stays bounded. Drawn for the noise that the
paper gives, which is that of Rényi DP with the conversion of Balle et al. (2020); exactly, noise of
3.7306 is enough.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from dprime import EpsilonDelta, Gaussian, choose
from papers.drawing import Line, lines_chart
from papers.reproduce import Measured, Scale, exact, run, stated

EPSILON, DELTA, PRIOR = 1.0, 1e-5, 0.5
PUBLISHED = "4.0412"
NOISE = float(PUBLISHED)
LOWEST = -100.0
OFTEN = 0.01
"""The share of members that an attacker finds at least, for the bound of theorem 3.3."""


def log_rates(threshold: float) -> tuple[float, float]:
    """Of saying "member", if the record was in and if not; the weight starts at 0."""
    places = ((threshold + 1) / NOISE, threshold / NOISE)
    inside, outside = (float(stats.norm.logcdf(place)) for place in places)
    return inside, outside


def precision(threshold: float) -> float:
    """Of "member" below the threshold; in logarithms, for the rates become tiny."""
    inside, outside = log_rates(threshold)
    return 1 / (1 + math.exp(outside - inside))


def accuracy(threshold: float) -> float:
    """Of both answers."""
    inside, outside = (math.exp(each) for each in log_rates(threshold))
    return (1 + inside - outside) / 2


def better_rdp_epsilon(noise: float) -> float:
    """By Rényi DP with the conversion of Balle et al. (2020), over orders up to 200."""
    orders: list[float] = np.linspace(1.01, 200, 20_000).tolist()
    return min(
        order / (2 * noise**2) + math.log1p(-1 / order) - math.log(DELTA * order) / (order - 1)
        for order in orders
    )


def measure(scale: Scale) -> Measured:
    """Both panels."""
    wide = [float(x) for x in np.linspace(LOWEST, -LOWEST, 201)]
    narrow = [float(x) for x in np.linspace(-10, 10, 161)]
    best = max(accuracy(threshold) for threshold in narrow)
    often = [threshold for threshold in wide + narrow if log_rates(threshold)[0] >= math.log(OFTEN)]
    claims = [
        stated(
            f"ε at δ = 1e-5 of the printed noise, {PUBLISHED}, by Rényi DP with the conversion of "
            "Balle et al. (2020)",
            "it gives (1, 1e-5)-DP: 1, to two digits",
            exact(better_rdp_epsilon(NOISE)), least=0.995, most=1.005,
        ),
    ]  # fmt: skip
    figures = {
        "precision": lines_chart(
            "figure8-precision", "Precision goes to 1 as the threshold falls.",
            "threshold, from the first weight", "precision",
            (Line("precision", [(t, precision(t)) for t in wide]),),
        ),
        "accuracy": lines_chart(
            "figure8-accuracy", f"Accuracy is {best:.3f} at most.",
            "threshold, from the first weight", "accuracy",
            (Line("accuracy", [(t, accuracy(t)) for t in narrow]),),
        ),
    }  # fmt: skip
    numbers = {
        "exact_epsilon": Gaussian(NOISE).curve().epsilon(DELTA),
        "exact_noise": choose(Gaussian(), epsilon=EPSILON, delta=DELTA).noise_multiplier,
        "largest_accuracy": Gaussian(NOISE).curve().success(),
        "found_on_grid": best,
        "allowed_accuracy": EpsilonDelta(EPSILON, DELTA).curve().success(),
        "precision_at_min_tpr": max(precision(threshold) for threshold in often),
        "allowed_precision": EpsilonDelta(EPSILON, DELTA).curve().precision(PRIOR, OFTEN),
    }
    settings = {"epsilon": EPSILON, "delta": DELTA, "prior": PRIOR, "noise_multiplier": NOISE}
    return Measured(claims, settings, numbers, figures)


if __name__ == "__main__":
    run(measure, __file__, __doc__)
