"""Six adversaries at four certified ε on one data set: what each reaches.

    ladder.toml (six audits) + Scale ──► a row for each adversary and ε ──► claims and pictures

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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from dprime.audit import AuditConfig, audits_in, begin, words_in
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

API, STATIC, WORST = "api-access", "static-poisoning", "malicious-dataset"
MORE = {1.0: 8, 2.0: 2}
"""How many times more trials there are at small ε, where distances are small, in full."""

SHADOWS = (STATIC, "intermediate-models")
"""Adversaries that train shadow models."""

MANY = 800
"""Shadow models that choose a record again, where it fell behind."""

BOUNDS = {"clopper-pearson": "by Clopper and Pearson", "band": "over all thresholds"}
"""Lower bounds without an assumption on the scores."""

OTHERS: Mapping[str, tuple[str, float, float]] = {"location30": ("dense-64", 0.5, 1.0)}
"""Network, learning rate and C where they are not the file's."""

ADDS, NO_LESS = 0.0, -TOLERANCE
"""The least difference, as a share of the certified d′: for "adds", and for "at least as much"."""

ORDER = (
    (STATIC, API, "a made record tells at least as much as a natural one", NO_LESS),
    ("intermediate-models", STATIC, "seeing every model adds to seeing the last", ADDS),
    ("adaptive-poisoning", "intermediate-models",
     "a record made anew at every step tells at least as much as one made once", NO_LESS),
    ("gradient", "adaptive-poisoning", "a gradient of one's own tells at least as much", NO_LESS),
    (WORST, "gradient", "the worst data set leaves at least as much as a typical one", NO_LESS),
)  # fmt: skip
"""The stronger adversary, the weaker one, what is expected of them, and what that leaves."""

Row = Mapping[str, Any]
"""What one adversary reached at one certified ε: d′ with its interval, bounds on ε, trials."""

Ladder = Mapping[tuple[str, float], Row]


def share(row: Row) -> Estimate:
    """Of the certified d′; infinite where the worlds are apart altogether."""
    high = math.inf if row["high"] is None else row["high"]
    return Estimate(row["d_prime"], row["low"], high).map(lambda each: each / row["allowed"])


def measure_ladder(data: str, title: str, scale: Scale) -> Measured:
    files = played(data, scale)
    found = joined(files)
    names = list(dict.fromkeys(name for name, _ in found))
    steps, again = steps_of(data, title, scale, found)
    what = f"{title}, ε = {{:g}}: share of the certified d′ that {{}} reaches"
    claims = [
        *steps,
        *(
            stated(
                what.format(epsilon, WORST),
                "expected: reaches what is certified (read as d′: at least 0.8 of it)",
                share(found[WORST, epsilon]), least=1 - TOLERANCE,
                reason=f"With {found[WORST, epsilon]['trials']:,} trials a world; a 95 % interval "
                "misses one time in twenty.",
            )
            for epsilon in EPSILONS
        ),
        *(
            stated(
                what.format(epsilon, API),
                "the analysis says more than an adversary in practice reaches: below 1",
                share(found[API, epsilon]), most=1.0,
            )
            for epsilon in EPSILONS
        ),
        beyond(found, title),
    ]  # fmt: skip
    shadow_models = {file["reached"][0]["adversary"]: file["shadows"] for file in files}
    not_shown = ("audits", "claim", "trials", "device", "memory")
    settings = {
        **{key: each for key, each in file_values(data, scale).items() if key not in not_shown},
        "epsilons": list(EPSILONS),
        "shadows": {name: shadow_models[name] for name in SHADOWS},
    }
    return Measured(
        claims, settings, drawn(found, names, title),
        Kept.of([*files, *again]) if scale.full else None, tables(found, names),
    )  # fmt: skip


def played(data: str, scale: Scale) -> list[Raw]:
    """Everything, in the order of the file; what a full version lacks is played and kept."""
    plays = {name: partial(play, data, scale, name) for name in audits_in(file_values(data, scale))}
    if not scale.full:
        return [each() for each in plays.values()]
    return [kept_or(HERE, f"{data}-{name}", scale, each) for name, each in plays.items()]


def joined(files: Sequence[Raw]) -> Ladder:
    rows = sorted((row for f in files for row in f["reached"]), key=lambda row: row["epsilon"])
    return {(row["adversary"], row["epsilon"]): row for row in rows}


def steps_of(data: str, title: str, scale: Scale, found: Ladder) -> tuple[list[Claim], list[Raw]]:
    """From each adversary to the next; and plays that say why a made record falls behind."""
    claims, again = [], []
    for step, epsilon in itertools.product(ORDER, EPSILONS):
        claim = order(found, title, epsilon, *step)
        if claim.verdict == "differs" and step[0] == STATIC and scale.full:
            other = chosen_again(data, scale, epsilon)
            again += [other] if other else []
            why = f"{claim.why} {told_again(found[STATIC, epsilon], other)}"
            claim = dataclasses.replace(claim, why=why)
        claims.append(claim)
    return claims, again


def order(
    found: Ladder, title: str, epsilon: float, stronger: str, weaker: str, sentence: str,
    least: float,
) -> Claim:  # fmt: skip
    """One step of the ladder at one ε."""
    above, below = (share(found[name, epsilon]) for name in (stronger, weaker))
    room = "above 0" if least == ADDS else f"at most {-least:g} less"
    return stated(
        f"{title}, ε = {epsilon:g}: share of the certified d′, {stronger} less {weaker}",
        f"expected: {sentence} ({room})", above - below, least=least,
        reason=f"{stronger} reaches {above.told('.2f')} of the certified d′, {weaker} "
        f"{below.told('.2f')}.",
    )  # fmt: skip


def chosen_again(data: str, scale: Scale, epsilon: float) -> Raw | None:
    """Static poisoning whose record was chosen with many shadow models; None without a GPU."""
    name = f"{data}-{STATIC}-epsilon-{epsilon:g}-shadows-{MANY}"
    if scale.device == "cpu" and not is_kept(HERE, name, scale.seed):
        return None
    return kept_or(HERE, name, scale, partial(play, data, scale, STATIC, [epsilon], MANY))


def told_again(before: Row, other: Raw | None) -> str:
    if other is None:
        return "The reason is not measured."
    after = share(other["reached"][0])
    told = (
        f"With its record chosen again by {MANY} shadow models in each world of a candidate it "
        f"reaches {after.told('.2f')}"
    )
    if after.low > share(before).high:
        return (
            f"{told}: it had chosen badly. Whether more shadow models or another draw of them made "
            "the difference was not separated."
        )
    return f"{told}: that another choice is better is not shown."


def play(
    data: str, scale: Scale, name: str, epsilons: Sequence[float] = EPSILONS, many: int = 0
) -> Raw:
    """One adversary at some ε, each time with random numbers of its own.

    The number of shadow models is the usual one where none is given.
    """
    split, values = scale.data(data), file_values(data, scale)
    usual = scale.pick(2, 10, 10 if scale.device == "cpu" else 50)
    shadow_models = int(many or usual) if name in SHADOWS else None
    listed = audits_in(values)
    number, audited = list(listed).index(name), listed[name]
    found: list[Row] = []
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for epsilon in epsilons:
            places = (EPSILONS.index(epsilon), number, *([many] if many else []))
            config = AuditConfig.from_words(
                audited, claim={**audited["claim"], "epsilon": epsilon},
                trials=trials(scale, values["model"], epsilon), seed=seed_of(scale, data, *places),
                options={} if shadow_models is None else {"shadows": shadow_models},
            )  # fmt: skip
            record = begin(config, Path(folder) / f"{epsilon:g}.run", progress=False, split=split)
            scores = record.played.in_scores, record.played.out_scores
            rung = separation(*scores)
            found.append({
                "adversary": name, "epsilon": epsilon, "d_prime": rung.value, "low": rung.low,
                "high": rung.high if math.isfinite(rung.high) else None,
                "allowed": record.claim.curve.d_prime(),
                "bounds": {bound.method: bound.epsilon for bound in record.bounds},
                "trials": len(scores[0]), "about": record.about,
                "diverged": record.trials["diverged"],
            })  # fmt: skip
    return {
        "device": device_title(scale.device), "seconds": round(time.perf_counter() - start, 1),
        "seed": scale.seed, "shadows": shadow_models, "reached": found,
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
    values = words_in(HERE / "ladder.toml")
    values |= {"data": data, "device": scale.device, "memory": scale.memory}
    if data in OTHERS:
        values["model"], rate, clip_norm = OTHERS[data]
        values["training"] |= {"learning_rate": rate, "clip_norm": clip_norm}
    if not scale.full:
        values["model"] = "linear"
        steps = scale.pick(3, 10, None)
        values["training"] = {"steps": steps, "learning_rate": 0.5, "clip_norm": 1.0}
        values["max_records"] = scale.pick(20, 50, None)
    return values


def beyond(found: Ladder, title: str) -> Claim:
    """No lower bound is above the analysis, but for those of chance."""
    above = sum(row["bounds"][name] > row["epsilon"] for row in found.values() for name in BOUNDS)
    # Both bounds of an audit look at the same trials: at worst they go wrong together.
    luck = len(BOUNDS) * float(stats.binom.ppf(0.975, len(found), 1 - CONFIDENCE))

    def best(row: Row) -> float:
        return max(float(row["bounds"][name]) for name in BOUNDS)

    nearest = max(found.values(), key=lambda row: best(row) / row["epsilon"])
    return stated(
        f"{title}: lower bounds above the certified ε, of {len(BOUNDS) * len(found)}",
        f"no more than chance gives: at most {luck:g}", above, most=luck,
        why=f"The nearest is that of {nearest['adversary']} at ε = {nearest['epsilon']:g}: "
        f"{best(nearest):.2f}.",
    )  # fmt: skip


def tables(found: Ladder, names: list[str]) -> list[Table]:
    shown: dict[str, Callable[[Row], str]] = {
        "Share of the certified d′": lambda row: share(row).told(".2f"),
        **{
            f"Lower bounds on ε, {words}": lambda row, name=name: f"{row['bounds'][name]:.2f}"  # type: ignore[misc]
            for name, words in BOUNDS.items()
        },
        "Trials in each world": lambda row: f"{row['trials']:,}",
    }
    head = ("adversary", *(f"ε = {epsilon:g}" for epsilon in EPSILONS))
    return [
        Table(title, head, tuple((n, *(told(found[n, e]) for e in EPSILONS)) for n in names))
        for title, told in shown.items()
    ]  # fmt: skip


def drawn(found: Ladder, names: list[str], title: str) -> dict[str, Chart]:
    at = {name: found[name, DRAWN] for name in names}
    rungs = tuple(
        Rung(name, row["low"], row["d_prime"], math.inf if row["high"] is None else row["high"])
        for name, row in at.items()
    )
    ladder = charts.ladder(rungs, at[WORST]["allowed"], f"d′ (ε = {DRAWN:g})", 0.95)
    lines = [Line("certified", [(epsilon, epsilon) for epsilon in EPSILONS])]
    lines += [Line(n, [(e, found[n, e]["bounds"]["band"]) for e in EPSILONS]) for n in names]
    least, best = (at[name]["bounds"]["band"] for name in (API, WORST))
    said = (
        f"{title}: where ε = {DRAWN:g} is certified, {at[WORST]['trials']:,} trials show at least "
        f"{least:.2f} for {API} and {best:.2f} for {WORST}"
    )
    return {"ladder": ladder, "bounds": lines_chart(said, "certified ε", "ε at least", lines)}
