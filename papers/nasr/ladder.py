"""Six adversaries at four certified ε on one data set: what each reaches.

    NAME.toml (six audits) + Scale ──► a Reached for each adversary and ε ──► claims and pictures

The strength of an adversary is the d′ between its scores of both worlds, as a share of the
certified d′. The lower bounds on ε are shown beside it: by Clopper and Pearson as in the paper
(with the threshold chosen on other trials), and by a bound over all thresholds at once. Full: what
was reached is read from `raw.json`, or played and kept there, adversary by adversary.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from dprime.audit import AuditConfig, AuditRecord, audits_in, begin, words_in
from dprime.audit.scores import separation
from dprime.data.devices import device_title
from dprime.show import charts
from dprime.show.chart import Chart
from dprime.show.charts import Rung
from papers.drawing import Line, lines_chart
from papers.entry import Kept, Measured, Raw, Scale, Table, is_kept, kept_or
from papers.reproduce import CONFIDENCE, TOLERANCE, Claim, Estimate, stated

HERE = Path(__file__).resolve().parent
EPSILONS = (1.0, 2.0, 4.0, 10.0)
DRAWN = 4.0
"""The ε whose ladder is drawn."""

STATIC, WORST = "static-poisoning", "malicious-dataset"
MORE = {1.0: 8, 2.0: 2}
"""How many times more trials there are at small ε, where distances are small, in full."""

SHADOWS = (STATIC, "intermediate-models")
"""Adversaries that train shadow models."""

MANY = 800
"""Shadow models that choose a record again, where it fell behind."""

BOUNDS = {"clopper-pearson": "by Clopper and Pearson", "band": "over all thresholds"}
"""Lower bounds without an assumption on the scores."""

ADDS, NO_LESS = 0.0, -TOLERANCE
"""The least difference, as a share of the certified d′: for "adds", and for "at least as much"."""

ORDER = (
    (STATIC, "api-access", "a made record tells at least as much as a natural one", NO_LESS),
    ("intermediate-models", STATIC, "seeing every model adds to seeing the last", ADDS),
    ("adaptive-poisoning", "intermediate-models",
     "a record made anew at every step tells at least as much as one made once", NO_LESS),
    ("gradient", "adaptive-poisoning", "a gradient of one's own tells at least as much", NO_LESS),
    (WORST, "gradient", "the worst data set leaves at least as much as a typical one", NO_LESS),
)  # fmt: skip
"""The stronger adversary, the weaker one, what is expected of them, and what that leaves."""


@dataclass(frozen=True)
class Reached:
    """What one adversary reached at one certified ε.

    Attributes:
        adversary: its name.
        epsilon: that is certified.
        d_prime: of its scores.
        low: of the 95 % interval.
        high: of it; infinite where the worlds are apart altogether.
        allowed: the certified d′.
        bounds: ε at least, by each method.
        trials: in each world.
        about: what it did, in words.
        diverged: trainings without finite weights.
    """

    adversary: str
    epsilon: float
    d_prime: float
    low: float
    high: float
    allowed: float
    bounds: Mapping[str, float]
    trials: int
    about: str
    diverged: int

    @classmethod
    def of(cls, adversary: str, epsilon: float, record: AuditRecord) -> Reached:
        """Of a finished audit."""
        scores = record.played.in_scores, record.played.out_scores
        rung = separation(*scores)
        return cls(
            adversary, epsilon, rung.value, rung.low, rung.high, record.claim.curve.d_prime(),
            {bound.method: bound.epsilon for bound in record.bounds}, len(scores[0]), record.about,
            record.trials["diverged"],
        )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """Of JSON values; an open end is null."""
        high = self.high if math.isfinite(self.high) else None
        return {**dataclasses.asdict(self), "high": high}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Reached:
        """What `as_json` has written."""
        return cls(**{**values, "high": math.inf if values["high"] is None else values["high"]})

    @property
    def share(self) -> Estimate:
        """Of the certified d′."""
        found = Estimate(self.d_prime, self.low, self.high)
        return found.map(lambda each: each / self.allowed)


Ladder = Mapping[tuple[str, float], Reached]


def measure_ladder(data: str, title: str, scale: Scale) -> Measured:
    """All adversaries at every ε."""
    files = reached(data, scale)
    found = joined(files)
    names = list(dict.fromkeys(name for name, _ in found))
    steps, again = steps_of(data, title, scale, found)
    claims = [
        *steps,
        *(reaches(found[WORST, epsilon], title) for epsilon in EPSILONS),
        *(in_practice(found["api-access", epsilon], title) for epsilon in EPSILONS),
        beyond(found, title),
    ]
    numbers = {f"{name}, ε = {at:g}": each.as_json() for (name, at), each in found.items()}
    shadow_models = {file["reached"][0]["adversary"]: file["shadows"] for file in files}
    not_shown = ("audits", "claim", "trials", "device", "memory")
    settings = {
        **{key: each for key, each in file_values(data, scale).items() if key not in not_shown},
        "epsilons": list(EPSILONS),
        "shadows": {name: shadow_models[name] for name in SHADOWS},
    }
    return Measured(
        claims, settings, {"reached": numbers, "chosen_again": again}, drawn(found, names, title),
        Kept.of([*files, *again]) if scale.full else None, tables(found, names),
    )  # fmt: skip


def reached(data: str, scale: Scale) -> list[Raw]:
    """Everything, in the order of the file; what a full version lacks is played and kept."""
    names = list(audits_in(file_values(data, scale)))
    if not scale.full:
        return [play(data, scale, name) for name in names]
    return [
        kept_or(HERE, f"{data}-{name}", scale, partial(play, data, scale, name)) for name in names
    ]


def joined(files: Sequence[Raw]) -> Ladder:
    """At each ε all adversaries, in the order of the files."""
    listed = [Reached.from_json(values) for file in files for values in file["reached"]]
    listed.sort(key=lambda each: each.epsilon)
    return {(each.adversary, each.epsilon): each for each in listed}


def steps_of(data: str, title: str, scale: Scale, found: Ladder) -> tuple[list[Claim], list[Raw]]:
    """From each adversary to the next; and plays that say why a made record falls behind."""
    claims, again = [], []
    for step, epsilon in itertools.product(ORDER, EPSILONS):
        claim = order(found, title, epsilon, *step)
        if claim.verdict == "differs" and step[0] == STATIC and scale.full:
            played = chosen_again(data, scale, epsilon)
            again += [played] if played else []
            why = f"{claim.why} {told_again(found[STATIC, epsilon], played)}"
            claim = dataclasses.replace(claim, why=why)
        claims.append(claim)
    return claims, again


def chosen_again(data: str, scale: Scale, epsilon: float) -> Raw | None:
    """Static poisoning whose record was chosen with many shadow models; None without a GPU."""
    name = f"{data}-{STATIC}-epsilon-{epsilon:g}-shadows-{MANY}"
    if scale.device == "cpu" and not is_kept(HERE, name, scale.seed):
        return None
    return kept_or(HERE, name, scale, partial(play, data, scale, STATIC, [epsilon], MANY))


def told_again(before: Reached, played: Raw | None) -> str:
    if played is None:
        return "The reason is not measured."
    (after,) = joined([played]).values()
    told = (
        f"With its record chosen again by {MANY} shadow models in each world of a candidate it "
        f"reaches {after.share.told('.2f')}"
    )
    if after.share.low > before.share.high:
        return (
            f"{told}: it had chosen badly. Whether more shadow models or another draw of them made "
            "the difference was not separated."
        )
    return f"{told}: that another choice is better is not shown."


def play(
    data: str, scale: Scale, name: str, epsilons: Sequence[float] = EPSILONS, many: int = 0
) -> Raw:
    """One adversary at every ε, each time with random numbers of its own.

    Args:
        data: its name.
        scale: how much.
        name: of the adversary.
        epsilons: some of all.
        many: shadow models, where it is not the usual number.
    """
    split, values = scale.data(data), file_values(data, scale)
    usual = scale.pick(2, 10, 10 if scale.device == "cpu" else 50)
    shadow_models = int(many or usual) if name in SHADOWS else None
    listed = audits_in(values)
    number, audited = list(listed).index(name), listed[name]
    found: list[Reached] = []
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for epsilon in epsilons:
            places = (EPSILONS.index(epsilon), number, *([many] if many else []))
            config = AuditConfig.from_words(
                audited,
                claim={**audited["claim"], "epsilon": epsilon},
                trials=trials(scale, values["model"], epsilon),
                seed=seed_of(scale, data, *places),
                options={} if shadow_models is None else {"shadows": shadow_models},
            )
            record = begin(config, Path(folder) / f"{epsilon:g}.run", progress=False, split=split)
            found.append(Reached.of(name, epsilon, record))
    return {
        "device": device_title(scale.device), "seconds": round(time.perf_counter() - start, 1),
        "seed": scale.seed, "shadows": shadow_models, "reached": [each.as_json() for each in found],
    }  # fmt: skip


def trials(scale: Scale, model: str, epsilon: float) -> int:
    """In each world, as many as can be afforded."""
    if not scale.full:
        return int(scale.pick(20, 200, None))
    if scale.device == "cpu":  # convolutions take a hundred times longer there
        return 200 if model.startswith("conv") else 1000
    return 1000 * MORE.get(epsilon, 1)


def seed_of(scale: Scale, data: str, *places: int) -> int:
    """Another one for every audit, so that what one draws says nothing of the others."""
    words = (scale.seed, zlib.crc32(data.encode()), *places)
    return int(np.random.SeedSequence(words).generate_state(1)[0])


def file_values(data: str, scale: Scale) -> dict[str, Any]:
    """The file's, on this device; small networks and few records where time is short."""
    values = words_in(HERE / f"{data}.toml")
    values |= {"device": scale.device, "memory": scale.memory}
    if not scale.full:
        values["model"] = "linear"
        steps = scale.pick(3, 10, None)
        values["training"] = {"steps": steps, "learning_rate": 0.5, "clip_norm": 1.0}
        values["max_records"] = scale.pick(20, 50, None)
    return values


def order(
    found: Ladder, title: str, epsilon: float, stronger: str, weaker: str, sentence: str,
    least: float,
) -> Claim:  # fmt: skip
    """One step of the ladder at one ε."""
    above, below = found[stronger, epsilon].share, found[weaker, epsilon].share
    room = "above 0" if least == ADDS else f"at most {-least:g} less"
    return stated(
        f"{title}, ε = {epsilon:g}: share of the certified d′, {stronger} less {weaker}",
        f"expected: {sentence} ({room})", above - below, least=least,
        reason=f"{stronger} reaches {above.told('.2f')} of the certified d′, {weaker} "
        f"{below.told('.2f')}.",
    )  # fmt: skip


def reaches(each: Reached, title: str) -> Claim:
    """The last adversary reaches what is certified."""
    return stated(
        f"{title}, ε = {each.epsilon:g}: share of the certified d′ that {each.adversary} reaches",
        "expected: reaches what is certified (read as d′: at least 0.8 of it)", each.share,
        least=1 - TOLERANCE,
        reason=f"With {each.trials:,} trials a world; a 95 % interval misses one time in twenty.",
    )  # fmt: skip


def in_practice(each: Reached, title: str) -> Claim:
    """The first adversary does not."""
    return stated(
        f"{title}, ε = {each.epsilon:g}: share of the certified d′ that {each.adversary} reaches",
        "the analysis says more than an adversary in practice reaches: below 1", each.share,
        most=1.0,
    )  # fmt: skip


def beyond(found: Ladder, title: str) -> Claim:
    """No lower bound is above the analysis, but for those of chance."""
    above = sum(each.bounds[name] > each.epsilon for each in found.values() for name in BOUNDS)
    # Both bounds of an audit look at the same trials: at worst they go wrong together.
    luck = len(BOUNDS) * float(stats.binom.ppf(0.975, len(found), 1 - CONFIDENCE))
    ratio = max(found.values(), key=lambda each: max(each.bounds[m] for m in BOUNDS) / each.epsilon)
    return stated(
        f"{title}: lower bounds above the certified ε, of {len(BOUNDS) * len(found)}",
        f"no more than chance gives: at most {luck:g}", above, most=luck,
        why=f"The nearest is that of {ratio.adversary} at ε = {ratio.epsilon:g}: "
        f"{max(ratio.bounds[method] for method in BOUNDS):.2f}.",
    )  # fmt: skip


def tables(found: Ladder, names: list[str]) -> list[Table]:
    """The ladder: d′ of every adversary, and what is shown of ε."""

    def bound(method: str, each: Reached) -> str:
        return f"{each.bounds[method]:.2f}"

    shown: dict[str, Callable[[Reached], str]] = {
        "Share of the certified d′": lambda each: each.share.told(".2f"),
        **{f"Lower bounds on ε, {words}": partial(bound, name) for name, words in BOUNDS.items()},
        "Trials in each world": lambda each: f"{each.trials:,}",
    }
    head = ("adversary", *(f"ε = {epsilon:g}" for epsilon in EPSILONS))
    return [
        Table(title, head, tuple(
            (name, *(told(found[name, epsilon]) for epsilon in EPSILONS)) for name in names
        ))
        for title, told in shown.items()
    ]  # fmt: skip


def drawn(found: Ladder, names: list[str], title: str) -> dict[str, Chart]:
    """The ladder at one ε, and the bounds at all."""
    at = {name: found[name, DRAWN] for name in names}
    rungs = tuple(Rung(name, each.low, each.d_prime, each.high) for name, each in at.items())
    ladder = charts.ladder(rungs, at[WORST].allowed, f"d′ (ε = {DRAWN:g})", 0.95)
    lines = [Line("certified", [(epsilon, epsilon) for epsilon in EPSILONS])]
    lines += [
        Line(name, [(epsilon, found[name, epsilon].bounds["band"]) for epsilon in EPSILONS])
        for name in names
    ]
    least, best = (at[name].bounds["band"] for name in ("api-access", WORST))
    said = (
        f"{title}: where ε = {DRAWN:g} is certified, {at[WORST].trials:,} trials show at least "
        f"{least:.2f} for api-access and {best:.2f} for {WORST}"
    )
    return {"ladder": ladder, "bounds": lines_chart(said, "certified ε", "ε at least", lines)}
