"""What a training's parameters, or its ε, allow: every number is read off a certified curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
import scipy

from dprime import validate
from dprime.guarantees import LARGEST_EPSILON, EpsilonDelta
from dprime.mechanisms import DEFAULT_ADJACENCY, DPSGD
from dprime.metrics import Reading
from dprime.parameters import LEAST_NOISE, MOST_STEPS, steps_from_epochs
from dprime.show import theme, wording
from dprime.show.chart import Chart
from dprime.show.series import Axis, Series

Over = Literal["noise_multiplier", "sample_rate", "steps"]
OVER: tuple[str, ...] = get_args(Over)

COUNT = 13
"""Values of a parameter, unless they are given."""

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
    """A certified risk over noise, sample rate or steps, the other two as they are.

    The `values` of the parameter are some on both sides of its own unless they are given; `read`
    gives the metric of a mechanism, where somebody knows it already.

    >>> training = DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=2000)
    >>> risk(training, "steps", values=[1000, 4000]).title
    'With 2,000 steps the membership advantage is at most 22.7 %.'
    """
    validate.one_of("over", over, OVER)
    own = float(mechanism._required(over))
    chosen = sorted({own, *(_around(own, over) if values is None else values)})
    answer = read or (lambda other: metric.value(other.curve(adjacency)))
    points = [(value, answer(mechanism_with(mechanism, over, value))) for value in chosen]
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
        f"largest value at each point, adjacency {adjacency}; the line only joins the points.",
        x, y, _risks([each for each in points if math.isfinite(each[1])], own, over, y),
    )  # fmt: skip


def _risks(
    points: Sequence[tuple[float, float]], own: float, over: str, axis: Axis
) -> tuple[Series, ...]:
    """Every finite risk, and the setting's own."""
    # Between two values the larger risk holds: it falls with noise and rises with the rest.
    step: Literal["before", "after"] = "after" if over == "noise_multiplier" else "before"
    values, risks = [x for x, _ in points], [y for _, y in points]
    line = Series("certified", theme.CERTIFIED, values, risks, "joined", step=step, says="at most")
    mine = [(x, y) for x, y in points if x == own]
    words = [f"this setting: {axis.say(y, 'at most')}" for _, y in mine]
    left = own > math.sqrt(values[0] * values[-1]) if points else False
    low = any(y < LOW * max(risks) for _, y in mine)
    above = low or (over == "noise_multiplier") != left
    side = f"{'above' if above else 'below'}-{'left' if left else 'right'}"  # off the line
    guide, point = _own([x for x, _ in mine], [y for _, y in mine], words, [side])
    return point, line, guide


def _own(
    x: Sequence[float], y: Sequence[float], words: Sequence[str], sides: Sequence[str]
) -> Iterator[Series]:
    """A thin line through the setting's own numbers, and each of them."""
    yield Series("guide", theme.BASELINE, x[:1], kind="rule", key=False)
    for place, side in enumerate(sides):
        one = slice(place, place + 1)
        yield Series(
            "this setting", theme.OWN, x[one], y[one], "points", words=words[one], side=side,
            key=False,
        )  # fmt: skip


def mechanism_with(mechanism: DPSGD, over: str, value: float) -> DPSGD:
    """The mechanism with another value of one parameter."""
    exact: float = round(value) if over == "steps" else value
    return replace(mechanism, **{over: exact})  # type: ignore[arg-type]


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
    'After 20 epochs Bayes security is at least 0.773 for membership, 0.632 for any attribute.'
    """
    own, rate = mechanism.epochs, float(mechanism._required("sample_rate"))
    chosen = sorted({own, *(_epochs_around(own, rate) if epochs is None else epochs)})
    steps = [round(own / rate) if x == own else steps_from_epochs(x, rate) for x in chosen]
    answer = read or (lambda other, relation: other.curve(relation).advantage())
    member, secret = (
        [1.0 - answer(mechanism_with(mechanism, "steps", count), relation) for count in steps]
        for relation in (adjacency, "replace")
    )
    both = member[chosen.index(own)], secret[chosen.index(own)]
    least = [wording.down(each) if each > 0 else "none" for each in both]
    return Chart(
        "bayes-security",
        f"After {wording.near(own, 4)} epoch{'' if own == 1 else 's'} Bayes security is at least "
        f"{least[0]} for membership, {least[1]} for any attribute.",
        f"{COURSE}{' Estimates from data guarantee nothing.' if attribute else ''}",
        Axis("epoch", "epochs", log=True),
        Axis("bayes_security", "Bayes security, at least", domain=(0.0, 1.0)),
        _securities(chosen, member, secret, own, both, least, attribute),
    )  # fmt: skip


def _securities(
    epochs: Sequence[float], member: Sequence[float], secret: Sequence[float], own: float,
    both: tuple[float, float], least: Sequence[str], attribute: Sequence[tuple[float, float]],
) -> tuple[Series, ...]:  # fmt: skip
    """Both lines, the training's own numbers, and estimates."""
    across = math.log(own / epochs[0]) / (math.log(epochs[-1] / epochs[0]) or 1.0)
    right, left = ("right" if across < 0.6 else "left"), ("left" if across > 0.4 else "right")
    guide, *mine = _own((own, own), both, least, [f"above-{right}", f"below-{left}"])
    # Between two epochs the smaller security holds, that of the later one.
    lines = [
        Series(name, pencil, epochs, values, "joined", step="before", says="at least")
        for name, pencil, values in (
            ("membership", theme.CERTIFIED, member),
            ("any attribute", theme.ALSO_CERTIFIED, secret),
        )
    ]
    if attribute:
        x = [validate.positive("epoch", epoch) for epoch, _ in attribute]
        y = [validate.probability("attribute", value) for _, value in attribute]
        name = "estimate of one attribute"
        lines.append(Series(name, theme.ESTIMATE, x, y, "points", says="about"))
    return (*mine, *lines, guide)


def _epochs_around(own: float, rate: float) -> list[float]:
    """Epochs on both sides of the training's own, of whole steps."""
    steps = np.clip(np.geomspace(own / REACH, own * REACH, COUNT) / rate, 1, MOST_STEPS).round()
    return [float(step * rate) for step in np.unique(steps) if round(own / rate) != step]


# Precision ----------------------------------------------------------------------------------------

FARTHEST = 10.0
"""Where the ε axis ends; a larger ε is marked at its edge."""

EPSILONS = tuple(float(x) for x in np.linspace(0.0, FARTHEST, 41))
PRIORS = (0.001, 0.9)
"""Where the prior's axis begins and ends."""

LEAST = 1e-9
"""Where no prior keeps a precision, a line ends here, far below the axis; so does ε."""

NAMED_AT = (0.03, 0.006)
"""Priors at which the lines have their names, in turn, so that the names keep apart."""

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
"""Precisions at which a line is drawn."""

Line = tuple[float, ...]


def precision(
    *, delta: float = 1e-5, min_tpr: float = 0.01, prior: float = 0.1, epsilon: float | None = None
) -> Chart:
    """What (ε, δ) alone says of the largest precision, for every prior and ε.

    Attackers who find at least a share `min_tpr` of the members are covered. The setting's own
    `prior` is the share of members among the candidates; its own `epsilon` is infinite where none
    is certified, None where none is named.

    >>> precision(epsilon=2.0).title
    'ε = 2 and δ = 0.00001 alone allow, where 10 % of candidates are members, that 45.2 % of ...'
    """
    delta = validate.inner_probability("delta", delta, example="1e-5")
    min_tpr = validate.rate("min_tpr", min_tpr)
    prior = validate.inner_probability("prior", prior, example=0.1)

    def most(epsilon: float) -> str:
        return wording.percent_up(largest_precision(epsilon, delta, prior, min_tpr))

    lines = precision_lines(delta, min_tpr)
    own = [] if epsilon is None or math.isinf(epsilon) else [epsilon]
    told = [f"ε = {wording.up(x)}: at most {most(x)}" for x in sorted({1.0, 4.0, 8.0, *own})]
    return Chart(
        "precision",
        _precision_title(epsilon, delta, prior, lines[0.5], most),
        "Map. Across: ε from 0 to 10. Up: prior, the share of members among the candidates, from "
        "0.1 % to 90 %, logarithmic. Darker: a larger precision, the share of right ones among "
        f'"member" answers, at δ = {wording.near(delta)}, of attackers who find at least '
        f"{wording.percent(min_tpr)} of the members. At a prior of {wording.percent(prior)}: "
        f"{'; '.join(told)}. It is what ε and δ alone allow; the curve of a training is never "
        "worse.",
        Axis("epsilon", "ε", domain=(0.0, FARTHEST)),
        Axis("prior", "prior (% of candidates)", percent=True, log=True, domain=PRIORS),
        (_own_precision(epsilon, prior, most), _names(lines), *_bands(lines)),
    )  # fmt: skip


def _precision_title(
    epsilon: float | None, delta: float, prior: float, half: Line, most: Callable[[float], str]
) -> str:
    """The precision at the setting's own prior and ε."""
    where = f"where {wording.percent(prior)} of candidates are members"
    at = f"δ = {wording.near(delta)}"
    if epsilon is None:
        kept = [each for each, largest in zip(EPSILONS, half, strict=True) if largest >= prior]
        told = 'more than half of all "member" answers may be right at any ε'
        if kept:
            told = (
                f'at most half of all "member" answers are right up to ε = {wording.down(kept[-1])}'
            )
        return f"At {at}, {where}, {told}."
    if math.isinf(epsilon):
        return f"No finite ε is certified at {at}: no limit to precision."
    allowed = f'that {most(epsilon)} of "member" answers are right'
    return f"ε = {wording.up(epsilon)} and {at} alone allow, {where}, {allowed}."


def _bands(lines: Mapping[float, Line]) -> Iterator[Series]:
    """Each precision's priors, from those of the one below it; the last one goes to the top."""
    below: Line = (LEAST,) * len(EPSILONS)
    inks: Sequence[str | int] = ("paper", *range(len(LEVELS)))
    names = [*(f"up to {wording.percent(level)}" for level in LEVELS), "above"]
    for ink, name, line in zip(inks, names, (*lines.values(), (1.0,) * len(EPSILONS)), strict=True):
        top = tuple(max(prior, LEAST) for prior in line)
        pencil = theme.Pencil(ink, width=1, opacity=1)
        yield Series(name, pencil, EPSILONS, top, "contour", low=below, key=False)
        below = top


def _names(lines: Mapping[float, Line]) -> Series:
    """Each level's name where its line crosses the middle of the map."""
    found = [
        (float(np.interp(-prior, -np.array(line), EPSILONS)), prior, wording.percent(level))
        for (level, line), prior in zip(lines.items(), NAMED_AT * len(LEVELS), strict=False)
        if line[0] > prior > line[-1]
    ]
    x, y, words = zip(*found, strict=True) if found else ((), (), ())
    return Series("level", theme.OWN, x, y, "words", words=words, side="middle", key=False)


def _own_precision(epsilon: float | None, prior: float, most: Callable[[float], str]) -> Series:
    """The setting's own point; beyond the axes it stands at their edge."""
    if epsilon is None:
        return Series("this setting", theme.OWN, (), (), "points", words=(), key=False)
    x, y = min(epsilon, FARTHEST), min(max(prior, PRIORS[0]), PRIORS[1])
    beyond = f" (ε = {wording.up(epsilon)})" if epsilon > FARTHEST else ""
    words = (f"this setting: {most(epsilon)}{beyond}",)
    side = f"{'below' if prior > 0.5 else 'above'}-{'left' if x > FARTHEST / 2 else 'right'}"
    return Series(
        "this setting", theme.OWN, (x,), (y,), "points", words=words, side=side, key=False
    )


def largest_precision(epsilon: float, delta: float, prior: float, min_tpr: float) -> float:
    """The largest precision that (ε, δ) allows; 1 where ε guarantees nothing.

    >>> round(largest_precision(1.0, 1e-5, 0.5, 0.01), 4)
    0.7313
    """
    if epsilon > LARGEST_EPSILON:
        return 1.0
    return EpsilonDelta(max(epsilon, LEAST), delta).curve().precision(prior, min_tpr)


@lru_cache(maxsize=128)
def precision_lines(delta: float, min_tpr: float) -> Mapping[float, Line]:
    """For each of `LEVELS`, the largest prior that keeps every precision there, by ε.

    precision = π t / (π t + (1 - π) FPR(t)), so logit π = logit precision - ln(t / FPR(t)), and
    the latter is the logit of the precision at π = ½.
    """
    even = [largest_precision(epsilon, delta, 0.5, min_tpr) for epsilon in EPSILONS]
    gains = scipy.special.logit(np.array(even))
    return {
        level: tuple(scipy.special.expit(scipy.special.logit(level) - gains).tolist())
        for level in LEVELS
    }
