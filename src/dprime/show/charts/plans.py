"""What a training's parameters, or its ε, allow: every number is read off a certified curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
import scipy

from dprime import text, validate
from dprime.curve import TradeOff
from dprime.guarantees import LARGEST_EPSILON, EpsilonDelta
from dprime.mechanisms import DEFAULT_ADJACENCY, DPSGD
from dprime.metrics import Reading
from dprime.parameters import LEAST_NOISE, MOST_STEPS, steps_from_epochs
from dprime.show import theme, wording
from dprime.show.chart import DOT, Chart
from dprime.show.series import Axis, Series

Over = Literal["noise_multiplier", "sample_rate", "steps"]
OVER: tuple[str, ...] = get_args(Over)

COUNT = 13
"""Values of a parameter, unless they are given; `between` adds more."""

FINE = 0.012
"""How far a curve rises or falls at most from point to point, by what it does in all."""

LOW = 0.15
"""Below this share of the largest risk there is no room for words under the line."""

PARAMETERS: Mapping[str, tuple[str, str, float, float, float]] = MappingProxyType(
    {
        "noise_multiplier": ("noise", "noise multiplier σ / C", 8.0, LEAST_NOISE, 1e6),
        "sample_rate": (
            "sample rate", "sample rate (share of the data in a step)", 30.0, 1e-9, 1.0
        ),
        "steps": ("steps", "steps", 30.0, 1, MOST_STEPS),
    }
)  # fmt: skip
"""A parameter's name and axis, how far values go on both sides, and what limits them."""


def risk(
    mechanism: DPSGD,
    over: Over,
    *,
    metric: Reading = Reading("advantage"),  # noqa: B008  frozen
    adjacency: str = DEFAULT_ADJACENCY,
    values: Sequence[float] | None = None,
    read: Callable[[DPSGD], float] | None = None,
) -> Chart:
    """A certified risk over noise, sample rate or steps, with the other two unchanged.

    Without `values`, the parameter takes many on both sides of its own; `read` gives the metric of
    a mechanism, where somebody knows it already.

    >>> training = DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=2000)
    >>> risk(training, "steps", values=[1000, 4000]).title
    'With 2,000 steps the membership advantage is at most 22.64 %.'
    """
    validate.one_of("over", over, OVER)
    own = float(mechanism._required(over))
    chosen = sorted({own, *(_around(own, over) if values is None else values)})
    answer = read or (lambda other: metric.value(other.curve(adjacency)))
    points = [(value, answer(mechanism_with(mechanism, over, value))) for value in chosen]
    if values is None:
        more = between(*zip(*points, strict=True), whole=over == "steps")
        points = sorted([*points, *((x, answer(mechanism_with(mechanism, over, x))) for x in more)])
    title, share, (called, across, *_) = metric.title, metric.metric.share, PARAMETERS[over]
    y = Axis("risk", f"{title}, at most{' (%)' if share else ''}", percent=share)
    limit, setting = dict(points)[own], f"{called} {wording.near(own, 4)}"
    if over == "steps":
        setting = wording.counted(round(own), "step")
    most = f"is at most {y.say(limit, 'at most')}" if math.isfinite(limit) else "has no limit"
    x = Axis("value", across, log=True)
    return Chart(
        f"risk-{over.replace('_', '-')}",
        f"With {setting} the {wording.inside(title)} {most}.",
        f"Line chart. Across: {across}, logarithmic. Up: {wording.inside(title)}, the certified "
        f"largest value, adjacency {adjacency}; between two points the line keeps to the larger.",
        x, y, _risks([each for each in points if math.isfinite(each[1])], own, over, y),
        text.describe(mechanism.to_dict(), adjacency),
    )  # fmt: skip


def _risks(
    points: Sequence[tuple[float, float]], own: float, over: str, axis: Axis
) -> tuple[Series, ...]:
    """Every finite risk, and the setting's own."""
    # Between two values the larger risk holds: it falls with noise and rises with the rest.
    step: Literal["before", "after"] = "after" if over == "noise_multiplier" else "before"
    line = Series.of("certified", theme.CERTIFIED, points, "curve", step=step, says="at most")
    mine = [(x, y) for x, y in points if x == own]
    words = [f"this setting: {axis.say(y, 'at most')}" for _, y in mine]
    left = own > math.sqrt(points[0][0] * points[-1][0]) if points else False
    low = any(y < LOW * max(line.y) for _, y in mine)
    above = low or (over == "noise_multiplier") != left
    side = f"{'above' if above else 'below'}-{'left' if left else 'right'}"  # off the line
    return _own(mine, words, side), line, _guide(mine)


def _own(points: Sequence[tuple[float, float]], words: Sequence[str], side: str) -> Series:
    return Series.of(
        "this setting", theme.OWN, points, "points", words=words, side=side, key=False
    )  # fmt: skip


def _guide(points: Sequence[tuple[float, float]]) -> Series:
    """A thin line through the setting's own numbers."""
    return Series("guide", theme.BASELINE, [x for x, _ in points], kind="rule", key=False)


def mechanism_with(mechanism: DPSGD, over: str, value: float) -> DPSGD:
    """The mechanism with another value of one parameter."""
    exact: float = round(value) if over == "steps" else value
    return replace(mechanism, **{over: exact})  # type: ignore[arg-type]


def between(x: Sequence[float], y: Sequence[float], *, whole: bool = False) -> list[float]:
    """More values of x, equally spaced on a logarithmic axis, so that y moves little at each.

    >>> len(between([1.0, 100.0, 200.0], [0.0, 0.5, 0.5]))
    83
    """
    finite = [each for each in y if math.isfinite(each)]
    small = FINE * (max(finite, default=0.0) - min(finite, default=0.0)) or math.inf
    found: list[float] = []
    for (low, high), (one, other) in zip(pairwise(x), pairwise(y), strict=True):
        if math.isfinite(one) and math.isfinite(other):
            inner = np.geomspace(low, high, math.ceil(abs(other - one) / small) + 1)[1:-1]
            found += {*(inner.round() if whole else inner).tolist()} - {low, high}
    return sorted(found)


def _around(own: float, over: str) -> list[float]:
    """Values on both sides of the setting's own, equally spaced on a logarithmic axis."""
    _, _, reach, least, most = PARAMETERS[over]
    near = np.clip(own * np.geomspace(1 / reach, reach, COUNT), least, most)
    values = near.round() if over == "steps" else near
    return [float(value) for value in np.unique(values) if value != own]


# Bayes security -----------------------------------------------------------------------------------

COURSE = (
    "Line chart. Across: epochs, logarithmic. Up: Bayes security, from 0 (no protection) to 1 "
    "(perfect). Two certified lines, both lower limits: for membership, and for any secret "
    "attribute of a record."
)

REACH = 10.0
"""The epochs drawn go from a tenth to ten times the training's own."""


def bayes_security(
    mechanism: DPSGD,
    *,
    adjacency: str = DEFAULT_ADJACENCY,
    epochs: Sequence[float] | None = None,
    read: Callable[[DPSGD, str], float] | None = None,
    attribute: Sequence[tuple[float, float]] = (),
) -> Chart:
    """Bayes security over epochs, of membership and of any secret attribute: 1 is perfect.

    Another value of an attribute is another record, so the curve for replacing a record bounds
    every attacker on any secret attribute. `read` gives the advantage of a mechanism under an
    adjacency, where it is known already; `attribute` has (epoch, Bayes security) of one attribute,
    estimated from data.

    >>> training = DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=2000)
    >>> bayes_security(training, epochs=[10]).title
    'After 20 epochs Bayes security is at least 0.7736 for membership, 0.6328 for any attribute.'
    """
    own, rate = mechanism.epochs, float(mechanism._required("sample_rate"))
    answer = read or (lambda other, relation: other.curve(relation).advantage())

    def security(epochs: float, relation: str) -> float:
        steps = round(own / rate) if epochs == own else steps_from_epochs(epochs, rate)
        return 1.0 - answer(mechanism_with(mechanism, "steps", steps), relation)

    chosen = sorted({own, *(_epochs_around(own, rate) if epochs is None else epochs)})
    if epochs is None:
        steps = [x / rate for x in chosen]
        more = between(steps, [security(x, "replace") for x in chosen], whole=True)
        chosen = sorted({*chosen, *(step * rate for step in more)})
    lines = {
        name: [(each, security(each, relation)) for each in chosen]
        for name, relation in (("membership", adjacency), ("any attribute", "replace"))
    }
    both = [points[chosen.index(own)] for points in lines.values()]
    least = [wording.down(each) if each > 0 else "none" for _, each in both]
    return Chart(
        "bayes-security",
        f"After {wording.near(own, 4)} epoch{'' if own == 1 else 's'} Bayes security is at least "
        f"{least[0]} for membership, {least[1]} for any attribute.",
        f"{COURSE}{' Estimates from data guarantee nothing.' if attribute else ''}",
        Axis("epoch", "epochs", log=True),
        Axis("bayes_security", "Bayes security, at least", domain=(0.0, 1.0)),
        _securities(lines, both, least, attribute),
        text.describe(mechanism.to_dict(), adjacency),
    )  # fmt: skip


def _securities(
    points: Mapping[str, Sequence[tuple[float, float]]], both: Sequence[tuple[float, float]],
    least: Sequence[str], attribute: Sequence[tuple[float, float]],
) -> tuple[Series, ...]:  # fmt: skip
    epochs, own = [x for x, _ in points["membership"]], both[0][0]
    across = math.log(own / epochs[0]) / (math.log(epochs[-1] / epochs[0]) or 1.0)
    sides = (
        "above-right" if across < 0.6 else "above-left",
        "below-left" if across > 0.4 else "below-right",
    )
    mine = [_own([at], [word], side) for at, word, side in zip(both, least, sides, strict=True)]
    # Between two epochs the smaller security holds, that of the later one.
    lines = [
        Series.of(name, pencil, points[name], "curve", step="before", says="at least")
        for name, pencil in zip(points, (theme.CERTIFIED, theme.ALSO_CERTIFIED), strict=True)
    ]
    found = [
        (validate.positive("epoch", x), validate.probability("attribute", y)) for x, y in attribute
    ]
    name = "estimate of one attribute"
    estimates = Series.of(name, theme.ESTIMATE, found, "points", says="about")
    return (*mine, *lines, *([estimates] if attribute else []), _guide(both[:1]))


def _epochs_around(own: float, rate: float) -> list[float]:
    """Epochs on both sides of the training's own, of whole steps."""
    steps = np.clip(np.geomspace(own / REACH, own * REACH, COUNT) / rate, 1, MOST_STEPS).round()
    return [float(step * rate) for step in np.unique(steps) if round(own / rate) != step]


# Precision ----------------------------------------------------------------------------------------

PRIORS = tuple(float(x) for x in scipy.special.expit(np.linspace(-6.9, 4.6, 93)))
"""Shares of members among the candidates, from 0.1 % to 99 %."""

LEAST = 1e-9
"""The ε of a curve that is no better than guessing: that of a guarantee must be above 0."""

FOUND_AT = "attackers with a TPR of at least"

ROOMY = 0.35
"""Below this prior words have room on their point's right."""


def precision(
    curve: TradeOff, *, prior: float = 0.1, min_tpr: float = 0.01, delta: float = 1e-5
) -> Chart:
    """The largest precision over the share of members among the candidates, off the whole curve.

    Attackers who find at least a share `min_tpr` of the members are covered; the setting's own
    `prior` is marked. Beside it is what its ε at `delta` alone says, which is never less.

    >>> precision(DPSGD(1.1, 0.004, 14_000).curve()).title
    'Where 10 % of candidates are members, at most 35.08 % of "member" answers are right.'
    """
    delta = validate.inner_probability("delta", delta, example="1e-5")
    min_tpr = validate.rate("min_tpr", min_tpr)
    prior = validate.inner_probability("prior", prior, example=0.1)
    epsilon, priors = curve.epsilon(delta), sorted({*PRIORS, prior})
    most = wording.percent_up(curve.precision(prior, min_tpr))
    stated = EpsilonDelta(min(max(epsilon, LEAST), LARGEST_EPSILON), delta).curve()
    lines = [
        Series(name, pencil, priors, _precisions(of, priors, min_tpr), says="at most")
        for name, pencil, of in (
            ("certified", theme.CERTIFIED, curve), ("ε and δ alone", theme.LIMIT, stated)
        )
    ]  # fmt: skip
    guessing = Series("guessing", theme.BASELINE, priors, priors)
    side = "below-right" if prior < ROOMY else "above-left"
    own = _own([(prior, curve.precision(prior, min_tpr))], [most], side)
    at = f"δ = {wording.near(delta)}"
    told = f"ε = {wording.up(epsilon)}" if math.isfinite(epsilon) else "ε (none is certified)"
    return Chart(
        "precision",
        f"Where {wording.percent(prior)} of candidates are members, at most {most} of "
        '"member" answers are right.',
        "Line chart. Across: prior, the share of members among the candidates, logarithmic. Up: "
        'precision, the share of right ones among "member" answers, of attackers who find at least '
        f"{wording.percent(min_tpr)} of the members. Certified: what the whole curve allows. "
        f"Dashed: what {told} at {at} alone allows, which is never less.",
        Axis("prior", "prior (% of candidates)", percent=True, log=True, domain=(0.001, 0.99)),
        Axis("precision", "precision, at most (%)", percent=True, domain=(0.0, 1.0)),
        (own, *lines, guessing),
        DOT.join(filter(None, (curve.of, f"{FOUND_AT} {wording.percent(min_tpr)}, {at}"))),
    )


def _precisions(curve: TradeOff, priors: Sequence[float], min_tpr: float) -> list[float]:
    missed = curve.fpr(min_tpr) / min_tpr  # outsiders called members for each one found
    return [prior / (prior + (1.0 - prior) * missed) for prior in priors]
