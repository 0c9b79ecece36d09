"""Six adversaries at four certified ε on one data set: what each reaches.

    NAME.toml (six audits) + Scale ──► an Audit for each adversary and ε ──► claims and pictures

The strength of an adversary is the d′ between its scores of both worlds, which has an interval; the
share of the certified d′ that it reaches over all ε is the slope of a line through the origin. The
lower bounds on ε are shown beside it, by Clopper and Pearson as in the paper (with the threshold
chosen on other trials) and by dprime's bound for Gaussian scores.
"""

from __future__ import annotations

import dataclasses
import math
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dprime.audit import Audit, AuditSettings, begin
from dprime.audit.batch import audits_in
from dprime.show.figures import Figure, LadderFigure, Rung, rung_of
from papers.drawing import Line, LinesFigure
from papers.reproduce import Claim, Estimate, Measured, Scale, exact, normal, printed, stated

HERE = Path(__file__).resolve().parent
EPSILONS = (1.0, 2.0, 4.0, 10.0)
DRAWN = 4.0
"""The ε whose ladder is drawn."""

WORST = "malicious-dataset"
MORE = {1.0: 8, 2.0: 2}
"""How many times more trials the last adversary has at small ε, where distances are small."""

SHADOWS = ("static-poisoning", "intermediate-models")
"""Adversaries that train shadow models."""

ORDER = (
    ("static-poisoning", "api-access", "a made record tells at least as much as a natural one"),
    ("intermediate-models", "static-poisoning", "seeing every model adds to seeing the last"),
    ("adaptive-poisoning", "intermediate-models", "a record made anew at every step adds to that"),
    ("gradient", "adaptive-poisoning", "a gradient of one's own is at least as strong as records"),
    (WORST, "gradient", "the worst data set leaves at least as much as a typical one"),
)
"""The stronger adversary, the weaker one, and what is said of them."""


@dataclass(frozen=True, eq=False)
class Reached:
    """What one adversary reached at one certified ε."""

    adversary: str
    epsilon: float
    audit: Audit

    @property
    def allowed(self) -> float:
        """The certified d′."""
        return self.audit.claim.d_prime()

    @property
    def rung(self) -> Rung:
        """d′ with its interval."""
        return rung_of(self.adversary, self.audit.in_scores, self.audit.out_scores)

    @property
    def bounds(self) -> dict[str, float]:
        """ε at least, by each method."""
        every = (self.audit.bound, *self.audit.beside.values())
        return {bound.method: bound.epsilon for bound in every}

    def numbers(self) -> dict[str, Any]:
        """Of JSON values; an open end is null."""
        rung = self.rung
        return {
            "d_prime": rung.value, "low": rung.low,
            "high": rung.high if math.isfinite(rung.high) else None,
            "certified d_prime": self.allowed, "bounds": self.bounds,
            "trials a world": len(self.audit.in_scores), "about": self.audit.about,
            "diverged": self.audit.diverged,
        }  # fmt: skip


Ladder = Mapping[tuple[str, float], Reached]


def measure_ladder(data: str, title: str, scale: Scale) -> Measured:
    """All adversaries at every ε."""
    found = played(data, scale)
    names = list(dict.fromkeys(name for name, _ in found))
    claims = [
        *(order(found, title, *step) for step in ORDER), *worst_case(found, title),
        *of_practice(found, title),
    ]  # fmt: skip
    numbers = {
        "share of the certified d_prime": {name: slope(found, name).value for name in names},
        "reached": {
            f"{name}, ε = {epsilon:g}": each.numbers() for (name, epsilon), each in found.items()
        },
    }
    one = found[WORST, DRAWN].audit
    settings = {
        **file_values(data, scale), "attacked": dict(one.attacked), "epsilons": list(EPSILONS),
        "trials": trials(scale),
    }  # fmt: skip
    settings.pop("audits")
    return Measured(claims, settings, numbers, drawn(found, names, title))


def trials(scale: Scale) -> int:
    """In each world."""
    return int(scale.pick(20, 200, 1000))


def played(data: str, scale: Scale) -> Ladder:
    """Every audit, each with random numbers of its own."""
    split = scale.data(data)
    listed = audits_in(file_values(data, scale))
    found: dict[tuple[str, float], Reached] = {}
    with tempfile.TemporaryDirectory() as folder:
        for place, epsilon in enumerate(EPSILONS):
            for number, (name, values) in enumerate(listed.items()):
                more = MORE.get(epsilon, 1) if name == WORST and scale.size == "full" else 1
                settings = dataclasses.replace(
                    AuditSettings.of(values),
                    claim={**values["claim"], "epsilon": epsilon},
                    trials=more * trials(scale),
                    seed=seed_of(scale, data, place, number),
                    options={"shadows": scale.pick(2, 10, 50)} if name in SHADOWS else {},
                )  # fmt: skip
                path = Path(folder) / f"{name}-{epsilon:g}.run"
                audit = begin(settings, path, progress=False, split=split)
                found[name, epsilon] = Reached(name, epsilon, audit)
    return found


def seed_of(scale: Scale, data: str, *places: int) -> int:
    """Another one for every audit, so that what one draws says nothing of the others."""
    words = (scale.seed, zlib.crc32(data.encode()), *places)
    return int(np.random.SeedSequence(words).generate_state(1)[0])


def file_values(data: str, scale: Scale) -> dict[str, Any]:
    """The file's, on this device; small networks and few records where time is short."""
    values = AuditSettings.from_file(HERE / f"{data}.toml")
    values |= {"device": scale.device, "memory": scale.memory}
    if scale.size != "full":
        values["model"] = "linear"
        steps = scale.pick(3, 10, None)
        values["training"] = {"steps": steps, "learning_rate": 0.5, "clip_norm": 1.0}
        values["records"] = scale.pick(20, 50, None)
    return values


def slope(found: Ladder, adversary: str) -> Estimate:
    """The share of the certified d′ that an adversary reaches: by least squares over all ε."""
    rungs = [(found[adversary, epsilon].rung, found[adversary, epsilon]) for epsilon in EPSILONS]
    allowed = np.array([each.allowed for _, each in rungs])
    values = np.array([rung.value for rung, _ in rungs])
    # The lower side gives the error where the upper one is open.
    errors = np.array([rung.value - rung.low for rung, _ in rungs]) / 1.959964
    total = float((allowed**2).sum())
    share = float((allowed * values).sum()) / total
    return normal(share, math.sqrt(float(((allowed * errors) ** 2).sum())) / total)


def order(found: Ladder, title: str, stronger: str, weaker: str, sentence: str) -> Claim:
    """One step of the ladder."""
    above, below = slope(found, stronger), slope(found, weaker)
    return stated(
        f"{title}: share of the certified d′, {stronger} less {weaker}", f"{sentence}: above 0",
        above - below, least=0.0,
        why=f"{stronger} reaches {above.value:.2f} of the certified d′ "
        f"({above.low:.2f} to {above.high:.2f}), {weaker} {below.value:.2f} "
        f"({below.low:.2f} to {below.high:.2f}).",
    )  # fmt: skip


def worst_case(found: Ladder, title: str) -> list[Claim]:
    """The last adversary reaches what is certified."""
    claims = []
    over_all = slope(found, WORST)
    for epsilon in EPSILONS:
        each = found[WORST, epsilon]
        rung = each.rung
        reached = Estimate(rung.value, rung.low, rung.high)
        what = f"{title}: d′ of {WORST} at ε = {epsilon:g}, certified {each.allowed:.3g}"
        claims.append(
            dataclasses.replace(
                printed(what, each.allowed, reached),
                published="reaches the certified one",
                why=f"With {len(each.audit.in_scores):,} trials a world. Over all ε it reaches "
                f"{over_all.value:.2f} of the certified d′ ({over_all.low:.2f} to "
                f"{over_all.high:.2f}).",
            )
        )
    return claims


def of_practice(found: Ladder, title: str) -> list[Claim]:
    """What is said of the analysis and of adversaries in practice."""
    ratios = {key: each.bounds["clopper-pearson"] / key[1] for key, each in found.items()}
    most = max(ratios, key=lambda key: ratios[key])
    beyond = sum(each.bounds["gaussian"] > key[1] for key, each in found.items())
    ends = {name: found[name, DRAWN].bounds["clopper-pearson"] for name in ("api-access", WORST)}
    return [
        stated(
            f"{title}: share of the certified d′ that api-access reaches",
            "the analysis says more than an adversary in practice reaches: below 1",
            slope(found, "api-access"), most=1.0,
            why=f"At ε = {DRAWN:g} its lower bound is {ends['api-access']:.2f} by Clopper and "
            f"Pearson, and that of {WORST} {ends[WORST]:.2f}.",
        ),
        stated(
            f"{title}: the largest lower bound over the certified ε, of {len(ratios)} audits",
            "no lower bound is above the analysis: at most 1", exact(ratios[most]), most=1.0,
            why=f"It is that of {most[0]} at ε = {most[1]:g}. By the bound for Gaussian scores, "
            f"{beyond} of the audits show more than is certified; at 95 % confidence one in "
            "twenty may.",
        ),
    ]  # fmt: skip


def drawn(found: Ladder, names: list[str], title: str) -> dict[str, Figure]:
    """The ladder at one ε, and the bounds at all."""
    rungs = tuple(found[name, DRAWN].rung for name in names)
    ladder = LadderFigure(rungs, found[WORST, DRAWN].allowed, f"d′ (ε = {DRAWN:g})", 0.95)
    lines = [Line("certified", [(epsilon, epsilon) for epsilon in EPSILONS])]
    for name in names:
        bounds = [(epsilon, found[name, epsilon].bounds["gaussian"]) for epsilon in EPSILONS]
        lines.append(Line(name, bounds))
    best = found[WORST, DRAWN].bounds["gaussian"]
    least = found["api-access", DRAWN].bounds["gaussian"]
    said = (
        f"{title}: where ε = {DRAWN:g} is certified, api-access shows at least {least:.2f} and "
        f"{WORST} {best:.2f}"
    )
    bounds_figure = LinesFigure("bounds", said, "certified ε", "ε at least", tuple(lines))
    return {"ladder": ladder, "bounds": bounds_figure}
