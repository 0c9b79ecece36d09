"""Figures 2, 3, 6, 7 and section 5.2: the closed form, what it leaves out, what is certified."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import erfinv
from scipy.stats import norm

from benchmarks.pages import results
from dprime import DPSGD, EpsilonDelta, TradeOff, choose, estimates
from papers.drawing import Line, line, lines_chart
from papers.entry import Measured, Scale, Table
from papers.reproduce import Claim, computed, normal, readable, stated


def mu_of(advantage: float) -> float:
    """The μ of Gaussian worlds with this advantage."""
    return math.sqrt(8.0) * float(erfinv(advantage))


def noise_of(security: float, sample_rate: float, steps: int) -> float:
    """The noise at which equation 4 gives this Bayes security.

    >>> rate = 512 / 197_324  # Purchase-100, 20 epochs
    >>> round(noise_of(0.9, sample_rate=rate, steps=round(20 / rate)), 1)
    1.8
    """
    return sample_rate * math.sqrt(steps / 2.0) / float(erfinv(1.0 - security))


def rate_of(security: float, noise: float, steps: int) -> float:
    """The sampling rate at which equation 4 gives this Bayes security, at most 1.

    >>> round(rate_of(0.98, noise=1.0, steps=5000), 6)
    0.000355
    """
    return min(1.0, float(erfinv(1.0 - security)) * math.sqrt(2.0 / steps) * noise)


def records_of(noise: float, batch: int, security: float, epochs: int) -> float:
    """For how many records equation 4 gives this noise.

    >>> round(records_of(noise_of(0.9, 100 / 1e5, 20_000), 100, 0.9, 20))
    100000
    """
    return batch * epochs / (noise * mu_of(1 - security) / 2) ** 2


REALISTIC, NEGLIGIBLE = 1e-3, 1e-4
"""p/σ below the first has an error below the second, says the appendix on figure 2."""

RATIOS = tuple(float(10**power) for power in np.linspace(-5, -0.5, 19))


def figure2(scale: Scale) -> Measured:
    """The error of taking a mixture of Gaussians for one Gaussian, by noise and ratio."""
    noises = (0.5, 1.0, 2.0, 4.0)
    found = {
        noise: [(ratio, error(ratio * noise, noise)) for ratio in RATIOS if ratio * noise <= 1]
        for noise in noises
    }
    most = max(
        each / proposition4(ratio * noise, noise)
        for noise, points in found.items()
        for ratio, each in points
    )
    what = "the error over the bound of proposition 4, largest"
    claims = [*map(negligible, noises), stated(what, "at most 1", most, most=1.0)]
    figure = lines_chart(
        f"At σ = 1 the error stays below {NEGLIGIBLE:g} for p/σ up to {ratio_for(1.0):.1g}.",
        "p/σ", "total variation",
        [Line(f"σ = {noise:g}", points) for noise, points in found.items()], "xy",
    )  # fmt: skip
    return Measured(claims, {"T": 1, "C": 1, "noises": noises}, {"": figure})


def negligible(noise: float) -> Claim:
    found = error(REALISTIC * noise, noise)
    return stated(
        f"error at p/σ = {REALISTIC:g}, σ = {noise:g}",
        f"below {NEGLIGIBLE:g} for every p/σ below {REALISTIC:g}", found, most=NEGLIGIBLE,
        reason=f"At this noise the error is {found / (REALISTIC * noise):.2g} times p, and below "
        f"{NEGLIGIBLE:g} for p/σ up to {ratio_for(noise):.2g}.",
    )  # fmt: skip


def error(rate: float, noise: float) -> float:
    """Total variation between the mixture and the Gaussian, by numerical integration."""
    x = np.linspace(-10.0 * noise, 1 + 10.0 * noise, 40_001)
    mixture = (1 - rate) * norm.pdf(x, 0, noise) + rate * norm.pdf(x, 1, noise)
    return float(np.trapezoid(np.abs(mixture - norm.pdf(x, rate, noise)), x)) / 2


def proposition4(rate: float, noise: float) -> float:
    """Its bound for one step, with the constant of the proof."""
    return math.sqrt(rate * (1 - rate)) / (2 * noise)


def ratio_for(noise: float) -> float:
    """The largest p/σ at which the error is negligible: it grows in proportion to p."""
    low, high = 1e-8, 1e-1
    for _ in range(24):
        middle = math.sqrt(low * high)
        small = error(middle * noise, noise) <= NEGLIGIBLE
        low, high = (middle, high) if small else (low, middle)
    return low


STEPS = 5_000
WANTED = 0.98
PRINTED = "0.00035"
"""p/σ for it in figure 3, as printed."""


def figure3(scale: Scale) -> Measured:
    """Equation 4, which turns the closed form around, and what is certified of it."""
    noises = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
    claims = [
        computed(f"p/σ for a security of {WANTED:g} after {STEPS:,} steps", PRINTED,
                 rate_of(WANTED, 1.0, STEPS)),
        *map(guaranteed, (0.5, 1.0, 2.0, 4.0)),
    ]  # fmt: skip
    said = (
        f"The rate for a Bayes security of {WANTED:g} has a certified one of {certified(1.0):.4f} "
        "at σ = 1."
    )
    lines = [
        Line(f"β* = {security:g}", [(noise, rate_of(security, noise, STEPS)) for noise in noises])
        for security in (0.8, 0.9, 0.95, 0.98, 0.99)
    ]
    figure = lines_chart(said, "noise σ", "sampling rate p", lines, "y")
    return Measured(claims, {"steps": STEPS, "noises": noises}, {"": figure})


def guaranteed(noise: float) -> Claim:
    held = certified(noise)

    def reason() -> str:
        """The largest share of the printed rate for which the security is certified."""
        low, high = 0.0, 1.0
        for _ in range(16):
            share = (low + high) / 2
            low, high = (share, high) if certified(noise, share) >= WANTED else (low, share)
        return (
            f"The attacker's advantage is up to {(1 - held) / (1 - WANTED):.4g} times the wanted "
            f"one. The rate would have to be {low:.4g} times the printed one."
        )

    return stated(
        f"certified security at σ = {noise:g}, p = {PRINTED} σ", f"{WANTED:g} is guaranteed", held,
        least=WANTED, reason=reason,
    )  # fmt: skip


def certified(noise: float, share: float = 1.0) -> float:
    """With a share of the printed rate."""
    rate = share * float(PRINTED) * noise
    return DPSGD(noise, rate, STEPS).curve("replace").bayes_security()


RATE = 10 / 100_000
NOISES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
EPSILONS = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)
SETTING7 = (2.0, 1e-4, 500_000)
"""Noise, rate and steps of figure 7."""

LOOSE = 2.0
"""Times its estimate that ε is at least, for the estimate to be called loose: our reading."""


def figure6(scale: Scale) -> Measured:
    """Equation 5: the bound on the advantage from (ε, δ), over ε, at every noise."""
    bounds = {}
    for noise in NOISES:
        curve = DPSGD(noise, RATE, 1).curve("replace")
        pairs = [(epsilon, curve.delta(epsilon)) for epsilon in EPSILONS]
        bounds[noise] = [TradeOff.from_lines([pair]).advantage() for pair in pairs]
    closed = [(noise, estimates.cherubin(noise, RATE, 1).advantage()) for noise in NOISES]
    names = [f"ε = {readable(epsilon)}" for epsilon in EPSILONS]
    figure = lines_chart(
        f"At σ = 1 the bound falls from {bounds[1.0][-1]:.2g} at ε = {EPSILONS[-1]:g} to "
        f"{readable(bounds[1.0][0], 2)} at ε = 0.",
        "noise σ", "bound on the advantage",
        [
            *(line(name, NOISES, [bounds[noise][place] for noise in NOISES])
              for place, name in enumerate(names)),
            Line("closed form", closed, "points"),
        ],
        "xy",
    )  # fmt: skip
    table = Table(
        "The bound of equation 5 by noise and ε", ("noise σ", *names),
        tuple((f"{noise:g}", *map(readable, found)) for noise, found in bounds.items()),
    )  # fmt: skip
    settings = {"rate": RATE, "steps": 1, "epsilons": EPSILONS, "noises": NOISES}
    claims = [loose(delta) for delta in (1e-7, 1e-5, 1e-3)]
    return Measured(claims, settings, {"": figure}, tables=[table])


def loose(delta: float) -> Claim:
    """ε in the setting of figure 7, beside its estimate from the closed form."""
    closed = estimates.cherubin(*SETTING7).bayes_security()
    estimate = choose(EpsilonDelta(delta=delta), bayes_security=closed).curve().epsilon(delta)
    held = DPSGD(*SETTING7).curve("replace").epsilon(delta)
    return stated(
        f"ε at δ = {delta:g} over its estimate from the closed form",
        f"loose: at least {LOOSE:g} (our reading)", held / estimate, least=LOOSE,
        why=f"The estimate is {estimate:.3g}, the certified ε {held:.3g}.",
    )  # fmt: skip


TPRS = {0.1: ("0.128", "0.113"), 0.01: ("0.038", "0.012")}
"""By false-positive rate, as printed: from Bayes security, and from f-DP."""


def figure7(scale: Scale) -> Measured:
    """The true-positive rate from Bayes security by proposition 9, and from the whole curve."""
    security = estimates.cherubin(*SETTING7).bayes_security()
    loose, curve = TradeOff.from_lines([(0.0, 1 - security)]), DPSGD(*SETTING7).curve("replace")
    claims = [
        computed(f"TPR at FPR {fpr:g} from {name}", value, bound.tpr(fpr))
        for fpr, pair in TPRS.items()
        for name, value, bound in zip(
            ("Bayes security", "the curve"), pair, (loose, curve), strict=True
        )
    ]
    rates = np.linspace(0.0, 1.0, 1001)[1:-1]
    best = rates[np.argmin([loose.tpr(fpr) - curve.tpr(fpr) for fpr in rates])]
    claims.append(computed("FPR at which Bayes security is optimal", "0.5", float(best)))
    shown = [*np.geomspace(1e-3, 0.1, 20), *np.linspace(0.12, 1.0, 23)]
    figure = lines_chart(
        f"At FPR 0.1 the true-positive rate is at most {curve.tpr(0.1):.3f}; from Bayes security "
        f"{loose.tpr(0.1):.3f}.",
        "false-positive rate", "true-positive rate, at most",
        [
            line("from Bayes security", shown, map(loose.tpr, shown)),
            line("from the curve", shown, map(curve.tpr, shown)),
            Line("published", [(fpr, float(v)) for fpr, pair in TPRS.items() for v in pair],
                 "published"),
        ],
        "xy",
    )  # fmt: skip
    noise, rate, steps = SETTING7
    settings = {"noise": noise, "rate": rate, "steps": steps, "adjacency": "replace"}
    return Measured(claims, settings, {"": figure}, tables=[by_prior(security, loose)])


def by_prior(security: float, loose: TradeOff, fpr: float = 0.05) -> Table:
    """The second case of proposition 9 beside the bound that holds at every prior."""
    printed = {prior: prior / (1 - prior) * (1 + fpr - security) for prior in (0.5, 0.7, 0.9)}
    holds = f"{loose.tpr(fpr):.4f}"
    return Table(
        f"The bound on the TPR at FPR {fpr:g} from Bayes security, by prior",
        ("prior", "proposition 9", "holds at every prior"),
        tuple((f"{prior:g}", f"{bound:.4f}", holds) for prior, bound in printed.items()),
    )


# Section 5.2: whether distances of gradients alone bound attribute inference ----------------------

ITS_RATE, ITS_STEPS, APART = 0.02, 400, 0.5
ITS_NOISES = (0.7, 1.0, 2.0)
NORMS = {"of norm C": 1.0, "opposite, of norm C/4": APART / 2}
LOSS_STEP, LOSSES = 1e-4, 2**19
"""The grid of losses on which a step is composed."""


def section5_2(scale: Scale) -> Measured:
    """The best attacker on noisy gradients, and those on trainings."""
    points = scale.pick(401, 1401, 1401)
    settings_of = [(noise, name) for noise in ITS_NOISES for name in NORMS]
    made = {key: composed(key[0], NORMS[key[1]], points) for key in settings_of}
    best = dict(made)
    for noise, name in settings_of:
        if NORMS[name] == APART / 2:
            # Of opposite gradients the advantage is that of one record replaced, with half their
            # distance as clipping norm, which is certified.
            best[noise, name] = (
                DPSGD(2 * noise / APART, ITS_RATE, ITS_STEPS).curve("replace").advantage()
            )
    first = ITS_NOISES[0], next(iter(NORMS))
    figure = lines_chart(
        f"With gradients of norm C the attacker reaches {best[first]:.3f} at σ = "
        f"{first[0]:g}, where R alone says {closed(first[0]):.3f}.",
        "noise σ", "advantage",
        [
            Line("the paper's corollary 10 without its error term",
                 [(noise, closed(noise)) for noise in ITS_NOISES], ink=len(NORMS)),
            *(Line(f"central limit, gradients {name}",
                   [(noise, central(noise, norm)) for noise in ITS_NOISES], ink=ink)
              for ink, (name, norm) in enumerate(NORMS.items())),
            *(Line(f"attacker, gradients {name}", [(n, best[n, name]) for n in ITS_NOISES],
                   "points", ink)
              for ink, name in enumerate(NORMS)),
        ],
    )  # fmt: skip
    checked = Table(
        "The composition beside the certified advantage, opposite gradients",
        ("noise σ", "composed", "certified"),
        tuple((f"{key[0]:g}", f"{made[key]:.5f}", f"{found:.5f}")
              for key, found in best.items() if NORMS[key[1]] == APART / 2),
    )  # fmt: skip
    settings = {
        "rate": ITS_RATE, "steps": ITS_STEPS, "distance": APART, "points": points, "losses": LOSSES,
        "step of losses": LOSS_STEP,
    }  # fmt: skip
    claims = [of_best(*key, found) for key, found in best.items()]
    claims += map(of_attack, results("attributes")["attack"])
    return Measured(claims, settings, {"": figure}, tables=[checked])


def of_best(noise: float, name: str, found: float) -> Claim:
    """The best attacker on the gradients of a record that is in each batch with probability p."""
    said, term = closed(noise), math.sqrt(ITS_RATE * (1 - ITS_RATE) * ITS_STEPS) / noise
    return stated(
        f"advantage of the best attacker, σ = {noise:g}, gradients {name}",
        f"corollary 10 without its error term: at most {said:.4f}", found, most=said,
        why=f"It is {found / said:.4g} times what the distance alone says. "
        f"The central-limit form, which has the norms too, says {central(noise, NORMS[name]):.4f}; "
        f"the error term is {term:.2g}.",
    )  # fmt: skip


def of_attack(row: Mapping[str, Any]) -> Claim:
    estimated = row["estimated"]
    return stated(
        f"advantage reached on trainings, σ = {row['noise_multiplier']:g}, p = "
        f"{row['sample_rate']:g}, {row['steps']:,} steps",
        "corollary 10 without its error term, along the trainings: at most "
        f"{estimated['closed-form']:.3f}",
        normal(row["advantage"], row["standard_error"]), most=estimated["closed-form"],
        why=f"{row['trials']:,} trials in each world. By the central-limit form it is "
        f"{estimated['central-limit']:.3f}.",
    )  # fmt: skip


def closed(noise: float) -> float:
    """The advantage by corollary 10, without its error term."""
    return estimates.attribute_inference(APART * math.sqrt(ITS_STEPS), noise, ITS_RATE).advantage()


def central(noise: float, norm: float) -> float:
    """By the form that has the norms."""
    steps = [(norm, norm, norm**2 - APART**2 / 2)] * ITS_STEPS
    return estimates.attribute_inference_central_limit(steps, noise, ITS_RATE).advantage()


def composed(noise: float, norm: float, points: int) -> float:
    """The advantage of the best attacker: the loss of a step on a grid, composed by Fourier.

    A loss between two points of the grid is shared by them so that its mean stays.
    """
    half, height = APART / 2, math.sqrt(max(0.0, norm**2 - APART**2 / 4))
    axis = np.linspace(-9 * noise - 1, 9 * noise + 1, points)
    across, up = np.meshgrid(axis, axis, indexing="ij")
    first, second = (
        1 + ITS_RATE * np.expm1((side * half * across + height * up - norm**2 / 2) / noise**2)
        for side in (1, -1)
    )  # over the density of noise alone
    seen = np.exp(-(across**2 + up**2) / (2 * noise**2)) * first
    places = np.log(first / second) / LOSS_STEP
    below = np.floor(places)
    masses = np.zeros(LOSSES)
    for place, share in ((below, below + 1 - places), (below + 1, places - below)):
        index = place.astype(int).ravel() % LOSSES
        masses += np.bincount(index, weights=(seen * share).ravel(), minlength=LOSSES)
    whole = np.fft.irfft(np.fft.rfft(masses / masses.sum()) ** ITS_STEPS, LOSSES)
    losses = LOSS_STEP * np.fft.fftfreq(LOSSES, 1 / LOSSES)
    return float(np.maximum(0.0, -np.expm1(-losses)) @ whole)
