"""What a thousand trials can show: the formulas of section III-C."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from dprime import GDP, TradeOff, choose
from dprime.audit import epsilon_limit, largest_epsilon
from dprime.bounds import classical_noise_multiplier_from_epsilon, epsilon_from_error_rates
from papers.drawing import Line, lines_chart
from papers.entry import Measured, Scale
from papers.reproduce import Claim, computed, stated

TRIALS = 1000
DELTA = 1e-5
EPSILONS = (1.0, 2.0, 4.0, 10.0)
LIMIT = "5.60"
"""Section III-C."""

COUNTS = tuple(round(10 ** (place / 10)) for place in range(20, 51))
"""Trials a world in the picture, from 100 to 100,000."""


def section3(scale: Scale) -> Measured:
    lines = [
        Line("any valid bound", [(n, epsilon_limit(n)) for n in COUNTS]),
        Line("Clopper and Pearson, no error", [(n, largest_epsilon(n)) for n in COUNTS]),
        Line("printed", [(TRIALS, float(LIMIT))], "published"),
    ]
    said = (
        f"1,000 trials a world show an ε of at most {largest_epsilon(TRIALS):.2f} by Clopper and "
        f"Pearson, and of at most {epsilon_limit(TRIALS):.2f} by any valid bound"
    )
    figure = lines_chart(said, "trials in each world", "largest ε to be shown", lines, "x")
    claims = [
        *of_trials(),
        error_rates(),
        *map(classical_noise, EPSILONS),
        stated(  # two data sets whose sums lie four standard deviations of the noise apart
            "probability that the sign of the noisy sum tells {−2σ, 0, …} from {2σ, 0, …}",
            "high: at least 0.95", TradeOff.gaussian(4.0).success(), least=0.95,
        ),
    ]  # fmt: skip
    return Measured(claims, {"delta": DELTA, "confidence": 0.95}, {"": figure})


def of_trials() -> list[Claim]:
    """The largest bound that 1,000 trials a world allow, by equation 5."""
    counts = np.arange(TRIALS)
    ends = special.betaincinv(counts + 1, TRIALS - counts, 0.975).tolist()  # of an error rate
    pairs = [(fpr, fnr) for fpr in ends for fnr in ends[:50]]
    largest = max(epsilon_from_error_rates(*pair, delta=DELTA) for pair in pairs)
    return [
        computed("ε shown by 1,000 trials a world without an error", LIMIT,
                 largest_epsilon(TRIALS)),
        stated(
            "the largest ε by equation 5 over all numbers of errors", "never above 5.60",
            largest, most=float(LIMIT) + 0.005,
            why="This is the limit of equation 5, not of the trials: no valid bound without an "
            f"assumption shows more than {epsilon_limit(TRIALS):.2f} with as many.",
        ),
    ]  # fmt: skip


def error_rates() -> Claim:
    """The limits on errors, as they are printed, for the Gaussian mechanism at ε = 1."""
    epsilon = 1.0
    curve = choose(GDP(), epsilon=epsilon, delta=DELTA).curve()
    fpr = special.expit(np.linspace(-9, 9, 241))
    sums = (1 - np.array([curve.tpr(float(each)) for each in fpr])) + math.exp(epsilon) * fpr
    balanced = float(special.ndtr(-curve.d_prime() / 2))
    return stated(
        "FN + e^ε FP of the attacker who errs least, Gaussian noise for ε = 1",
        "at most 1 − δ", balanced + math.exp(epsilon) * balanced, most=1 - DELTA,
        why=f"The inequality is printed the wrong way round: of {len(sums)} attackers with other "
        f"thresholds, {int((sums >= 1 - DELTA - 1e-9).sum())} have at least 1 − δ. Equations 4 and "
        "5, which follow from the right one, are right.",
    )  # fmt: skip


def classical_delta(epsilon: float) -> float:
    """δ of the classical noise for (ε, δ)."""
    noise = classical_noise_multiplier_from_epsilon(epsilon, delta=DELTA, beyond_proof=True)
    return TradeOff.gaussian(1 / noise).delta(epsilon)


def classical_noise(epsilon: float) -> Claim:
    """Whether the classical noise keeps (ε, δ), and up to which ε, in steps of 0.01."""
    why = ""
    if epsilon == EPSILONS[-1]:
        grid = np.arange(1.0, 20.0, 0.01)
        held = next(float(each) for each in grid if classical_delta(float(each)) > DELTA) - 0.01
        why = (
            f"The proof of this noise covers ε up to 1; at δ = 1e-5 it holds up to ε = {held:.2f}."
        )
    return stated(
        f"δ of the Gaussian sum with √(2 ln(1.25/δ))/ε, over 1e-5, at ε = {epsilon:g}",
        "(ε, δ)-DP: at most 1", classical_delta(epsilon) / DELTA, most=1.0, why=why,
    )  # fmt: skip
