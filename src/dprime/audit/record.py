"""What happened in an audit: one record, which the run keeps and everything that is shown reads.

    scores in a Run ──► conclude ──► AuditRecord ──► table, card, report, page, notebook

It needs neither PyTorch nor the data that was trained on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime import validate
from dprime._lazy import load
from dprime.audit.claim import Claim, replace_curve, understates
from dprime.audit.config import AuditConfig, words_of
from dprime.audit.estimators.base import LowerBound
from dprime.audit.verdict import Verdict
from dprime.audit.words import OF_NOISE
from dprime.curve import LowerCurve, TradeOff
from dprime.mechanisms import DPSGD
from dprime.metrics import Reading
from dprime.plain import NOT_KEPT, to_json
from dprime.registry import METRICS
from dprime.runs.contents import Arrays
from dprime.runs.run import Run
from dprime.runs.states import Event, State
from dprime.shapes import Polygon
from dprime.text import in_print, printable, round_down, round_up, told

Floats = NDArray[np.float64]

GROUPS = (2, 5, 10, 11, 20)  # of which a belief is given; 11 is common in health data
EXCEEDED = 1e-3  # how often the belief of a group's table may be exceeded
ROUNDING = 1e-9  # a lower curve within this of the claim, relatively, is not above it
CURVE_TITLE = "TPR where the attacker did best against the claim"
"""What a verdict by the whole curve looks at."""


@dataclass(frozen=True)
class Measured:
    """What was reached at least (None: ∞), and what the claim allows at most (None: no limit)."""

    name: str
    title: str
    conditions: Mapping[str, float]
    reached: float | None
    allowed: float | None

    @staticmethod
    def of(reading: Reading, reached: float, allowed: float) -> Measured:
        ends = to_json((reached, allowed))
        return Measured(reading.name, reading.title, dict(reading.conditions), *ends)

    @property
    def shown(self) -> tuple[str, str]:
        reached = "inf" if self.reached is None else round_down(self.reached)
        return reached, "any" if self.allowed is None else round_up(self.allowed)

    @property
    def above(self) -> bool:
        """Whether more was reached than is allowed, if the bound counts."""
        if self.allowed is None:
            return False
        return self.reached is None or self.reached > self.allowed

    @property
    def share(self) -> bool:
        """Whether it is at most 1; the whole curve is judged by a true-positive rate."""
        return self.name == "curve" or METRICS[self.name].share


@dataclass(frozen=True)
class Group:
    """The largest belief of an observer who knows that one of a group is in the data."""

    size: int
    belief: float
    exceeded: float

    @property
    def prior(self) -> float:
        """The belief before the release."""
        return 1.0 / self.size

    @property
    def equivalent(self) -> float:
        return 1.0 / self.belief


@dataclass(frozen=True, eq=False)
class Trials:
    """The scores of both worlds, and what the DI adversary kept at each step [trial, step].

    The latter, and `in_world`, leave out the trials in which it is not finite.
    """

    in_scores: Floats
    out_scores: Floats
    in_world: NDArray[np.bool_]
    log_ratio: Floats | None = None
    sigma: Floats | None = None
    sensitivity: Floats | None = None

    @staticmethod
    def of(arrays: Arrays) -> Trials:
        inside, scores = arrays["in_world"].astype(bool), arrays["score"]
        steps = [arrays[name] for name in ("log_ratio", "sigma", "sensitivity") if name in arrays]
        kept = np.logical_and.reduce([np.isfinite(each).all(1) for each in steps])
        found = (each[kept] for each in (inside, *steps)) if steps else [inside]
        return Trials(scores[inside], scores[~inside], *found)

    @property
    def scores(self) -> tuple[Floats, Floats]:
        return self.in_scores, self.out_scores


@dataclass(frozen=True, eq=False)
class AuditRecord:
    """A concluded audit.

    Attributes:
        caveats: what the training and the scores show beyond the verdict.
        rows: each metric with what was reached and what is allowed; the first one decides. The
            others are read off the band, whose bounds hold simultaneously.
        bounds: ε by each method. The first was chosen before the trials; the others never decide.
        proved: the ε at the configured δ that the accountant certifies for this training, if any.
        about: what the adversary crafted.
        attacked: data, number of records, adjacency, recipe, trainer, and what the adversary sees.
        trials: how many in each world, counted, diverged.
        label: "not DP: …" for local sensitivity, else None.
        identifiability: Bernau et al.'s numbers, for their adversary.
        events: failures of blocks, most of which were played again.
        lower: the lower curves by method, as (fpr, tpr).
        other_runs: runs that tested the same claim and the same training.
    """

    __repr__ = told("name", "adversary", "verdict")

    verdict: Verdict
    sentence: str
    caveats: tuple[str, ...]
    rows: tuple[Measured, ...]
    bounds: tuple[LowerBound, ...]
    proved: float | None
    about: str
    attacked: Mapping[str, Any]
    trials: Mapping[str, Any]
    blocks: State
    label: str | None
    identifiability: Mapping[str, Any] | None
    events: tuple[Event, ...]
    versions: Mapping[str, str]
    name: str = field(metadata=NOT_KEPT)
    created: datetime = field(metadata=NOT_KEPT)
    changed: datetime = field(metadata=NOT_KEPT)
    config: AuditConfig = field(repr=False, metadata=NOT_KEPT)
    claim: Claim = field(metadata=NOT_KEPT)
    lower: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = field(metadata=NOT_KEPT)
    played: Trials = field(metadata=NOT_KEPT)
    other_runs: tuple[AuditRecord, ...] = field(default=(), metadata=NOT_KEPT)

    def _repr_html_(self) -> str:
        return str(load("show.notebook", "audit_html")(self))

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON values, without the trials, the points of curves, and the seed."""
        return {"settings": self.public_settings, **to_json(self)}

    @property
    def public_settings(self) -> dict[str, Any]:
        """The settings without the seed, and without what only means something on one machine."""
        settings = self.config.to_dict()
        return {name: each for name, each in settings.items() if name not in ("data_dir", "seed")}

    @property
    def adversary(self) -> str:
        return self.config.adversary

    @property
    def adjacency(self) -> str:
        return self.config.adjacency

    @property
    def refuted(self) -> bool:
        return self.verdict.refuted

    @cached_property
    def certified(self) -> TradeOff | None:
        """The curve that is certified for the tested settings; None where these are not known.

        Settings for which nothing is certified allow an attacker who never errs. Local sensitivity
        has none: it is no DP, whatever is claimed.
        """
        recipe = self.attacked["training"]
        if recipe is None or self.label is not None:
            return None
        try:
            validate.positive("clip_norm", recipe["clip_norm"])
            return DPSGD(*(recipe[name] for name in OF_NOISE)).curve(self.adjacency)
        except validate.InputError:
            return TradeOff.from_lines([(0.0, 1.0)])

    @cached_property
    def understated(self) -> bool:
        """Whether the claim allows less, anywhere, than is certified for the tested settings."""
        if self.certified is None:
            return False
        delta, pairs = self.config.delta, zip(self.claim.fpr, self.claim.tpr, strict=True)
        if delta and understates(self.claim.curve.epsilon(delta), self.certified.epsilon(delta)):
            return True
        return any(understates(tpr, self.certified.tpr(fpr)) for fpr, tpr in pairs)

    @property
    def ceiling(self) -> TradeOff:
        """What limits an attacker: the claimed curve, or the certified one if that allows more."""
        return self.certified if self.certified and self.understated else self.claim.curve

    @cached_property
    def band(self) -> LowerCurve:
        """What the attacker reached, for a reading at any conditions.

        The band's points all lie below the true curve at once with probability `confidence` (its
        module has the proof), and the true curve is concave, so their hull lies below it in the
        same trials. Choosing afterwards what to read adds nothing to the error. Other methods'
        points hold one by one only.
        """
        points = zip(*self.lower["band"], strict=True)
        return LowerCurve(Polygon.from_points(points), self.config.confidence, "band")

    @property
    def method(self) -> LowerBound:
        return self.bounds[0]

    @property
    def metrics(self) -> tuple[Measured, ...]:
        """The rows without the point of the curve that decides a verdict by all of it."""
        return self.rows[1:] if self.config.criterion == "curve" else self.rows

    @property
    def deciding(self) -> Measured:
        first = self.rows[0]
        if self.config.criterion != "curve":
            return first
        at = self.verdict.metric.conditions
        return Measured("curve", CURVE_TITLE, at, first.reached, first.allowed)

    @property
    def decided_at(self) -> float | None:
        return self.verdict.metric.conditions.get("fpr")

    @property
    def vacuous(self) -> bool:
        """Whether the claim allows everything by the deciding number."""
        allowed = self.deciding.allowed
        return allowed is None or (self.deciding.share and allowed >= 1)

    @property
    def drawn(self) -> str:
        """The method whose lower curve is drawn: the one that decides where it bounds a curve."""
        named = self.method.method
        return named if self.method.decides and named in self.lower else "band"

    @property
    def crosses(self) -> bool:
        """Whether the lower curve that is drawn passes above the claimed one somewhere."""
        pairs = zip(self.lower[self.drawn][1], self.claim.tpr, strict=True)
        return any(reached > allowed * (1 + ROUNDING) for reached, allowed in pairs)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Beliefs of an observer who knows that the data hold exactly one of k people.

        With p_j the law of what is seen if person j is in the data, the belief in person i is
        p_i / (p_i + (k - 1) Q), Q the mean of the other p_j. The replace curve F bounds p_i(S) by
        F(p_j(S)) for each j, and is concave, so by F(Q(S)) too: the two worlds are (p_i, Q), the
        prior is 1/k, and S is where the belief exceeds its limit. There are none if no replace
        curve follows from the claim, if the training is not DP, or if the tested settings allow
        more than is claimed.
        """
        if self.label is not None or self.understated:
            return ()
        curve = replace_curve(self.claim.mechanism, self.config.adjacency)
        if curve is None:
            return ()
        return tuple(Group(size, curve.belief(1.0 / size, EXCEEDED), EXCEEDED) for size in GROUPS)


def record_of(run: str | Path | Run) -> AuditRecord:
    """What the file of a run says, by its path or opened, once the run is concluded."""
    if not isinstance(run, Run):
        with Run.open(run) as opened:
            return record_of(opened)
    kept = _concluded(run)
    try:
        return _read(run, kept)
    except (KeyError, TypeError, AttributeError, IndexError) as error:  # none that dprime writes
        shown = f"one whose result has another form ({type(error).__name__}: {error})"
        remedy = f"dprime resume {run.path.name} makes it anew"
        raise validate.invalid_input("run", shown, "concluded by dprime", remedy) from error


def _read(run: Run, kept: Mapping[str, Any]) -> AuditRecord:
    """The record from JSON values, in which ∞ is None and a tuple is a list."""
    config, values = AuditConfig.of(run), _in_tuples(in_print(kept))
    claim, lower, verdict = values.pop("claim"), values.pop("lower"), values.pop("verdict")
    limits = {name: math.inf for name in ("reached", "allowed") if verdict[name] is None}
    reading = Reading(**verdict["metric"])
    bounds = (
        {**each, "epsilon": math.inf if each["epsilon"] is None else each["epsilon"]}
        for each in values["bounds"]
    )
    return AuditRecord(
        **{
            **values,
            "verdict": Verdict(**{**verdict, **limits, "metric": reading}),
            "rows": tuple(Measured(**each) for each in values["rows"]),
            "bounds": tuple(LowerBound(**each) for each in bounds),
            "blocks": State(**values["blocks"]),
            "events": tuple(Event(**each) for each in values["events"]),
            "versions": in_print(run.versions),
            "name": printable(run.path.name).replace("\n", "\\n"),
            "created": run.created,
            "changed": run.changed(),
            "config": config,
            "claim": Claim(config.claim, config.adjacency, config.chosen_for, **claim),
            "lower": {name: (each["fpr"], each["tpr"]) for name, each in lower.items()},
            "played": Trials.of(run.arrays()),
        }
    )


def _in_tuples(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _in_tuples(each) for name, each in value.items()}
    return tuple(map(_in_tuples, value)) if isinstance(value, list) else value


def _concluded(run: Run) -> dict[str, Any]:
    kept, words = run.result, words_of(run)
    if kept is not None and "rows" in kept:
        return kept
    in_python = isinstance(words.get("trainer"), Mapping)
    again = "call dprime.audit.audit again with the same path"
    remedy = again if in_python else f"dprime resume {run.path.name}"
    if kept is not None:
        raise validate.invalid_input("run", "of another version", "concluded by this one", remedy)
    state = run.state()
    shown = f"played in {state.done} of {state.blocks} blocks"
    raise validate.invalid_input("run", shown, "concluded", remedy)
