"""Everything that is known of a run, from its file alone: what the card and the report say.

It needs neither PyTorch nor the data that was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dprime import validate
from dprime.audit.verdict import Outcome
from dprime.metrics import METRICS, Reading
from dprime.runs.arrays import Arrays
from dprime.runs.run import Run
from dprime.runs.states import Event, State
from dprime.show.claims import Claim, claim_of, replace_curve

Floats = NDArray[np.float64]

GROUPS = (2, 5, 10, 11, 20)
"""Group sizes for which a belief is given; 11 is the smallest that is common in health data."""

EXCEEDED = 1e-3
"""How often the belief of a group's table may be exceeded."""

ROUNDING = 1e-9
"""A lower curve within this of the claim, relatively, is not above it."""

CURVE_TITLE = "TPR where the attacker did best against the claim"
"""What a verdict by the whole curve looks at."""


@dataclass(frozen=True)
class Measured:
    """A metric, with what was reached at least and what the claim allows at most.

    Attributes:
        name: of the metric, or "curve".
        title: what tables call it.
        conditions: under which it was read.
        reached: a lower bound; None where it is infinite.
        allowed: by the claim; None where the claim sets no limit.
    """

    name: str
    title: str
    conditions: Mapping[str, float]
    reached: float | None
    allowed: float | None

    @property
    def above(self) -> bool:
        """Whether more was reached than is allowed, were the bound to count."""
        if self.allowed is None:
            return False
        return self.reached is None or self.reached > self.allowed


@dataclass(frozen=True)
class Method:
    """What one way of bounding makes of the same trials.

    Attributes:
        name: of the estimator.
        epsilon: at least this, at `delta`; None where it is infinite.
        delta: of the ε.
        assumption: what must be true of the scores, or None.
        objection: why they do not look that way, or None.
        decides: whether it is the one that was named before the trials, and counts.
    """

    name: str
    epsilon: float | None
    delta: float
    assumption: str | None
    objection: str | None
    decides: bool


@dataclass(frozen=True)
class Group:
    """What an observer who knows that one of a group is in the data may come to believe.

    Attributes:
        size: of the group.
        belief: exceeded with probability `exceeded` at most, from a belief of 1/size.
        exceeded: how often, at most.
    """

    size: int
    belief: float
    exceeded: float

    @property
    def prior(self) -> float:
        """The belief of somebody who knows no more than that one of the group is in the data."""
        return 1.0 / self.size

    @property
    def equivalent(self) -> float:
        """The size of a group in which a blind guess is as good."""
        return 1.0 / self.belief


@dataclass(frozen=True, eq=False)
class Trials:
    """The trials themselves.

    Attributes:
        in_scores: of world `in`.
        out_scores: of world `out`.
        in_world: of the rows below.
        log_ratio: the DI adversary's, after each step [trial, step], or None.
        sensitivity: local, at each step [trial, step], or None.
    """

    in_scores: Floats
    out_scores: Floats
    in_world: NDArray[np.bool_]
    log_ratio: Floats | None = None
    sensitivity: Floats | None = None


@dataclass(frozen=True, eq=False)
class Facts:
    """A concluded run.

    Attributes:
        name: of the run's file.
        created: when the run was begun.
        changed: when its answer was kept.
        seed: of the whole run; no report and no card shows it.
        versions: of the libraries that it was begun with.
        settings: that it was begun with.
        in_python: whether it was begun in Python, with objects that have no name.
        outcome: "refuted", "not refuted" or "inconclusive".
        sentence: the verdict as the run has kept it.
        caveats: what the scores show that the verdict does not say.
        decided_at: the false-positive rate at which the curves were compared; None for a metric
            that has none.
        power_known: whether it is known what the audit would have noticed.
        detects: d′ of the weakest attacker that the audit would have noticed with a power of 80 %;
            None where there is none.
        trials_needed: in each world to notice twice the d′ of a Gaussian attacker who keeps the
            claim (half of the noise, where the claim is Gaussian); where an audit had too few.
        deciding: the metric that was named before the trials.
        confidence: of every lower bound.
        method: of the bound that decides.
        metrics: of the table; reached by the band, whose bounds hold together.
        methods: the named one first.
        claim: what was claimed.
        adversary: its name.
        about: what it crafted.
        sees: "updates" or "model".
        attacked: data, records, adjacency, recipe, trainer.
        trials: of either world, counted, diverged.
        blocks: done and failed.
        label: "not DP: …" for local sensitivity, else None.
        lower: the lower curves by method, as (fpr, tpr).
        identifiability: Bernau et al.'s numbers, for their adversary.
        groups: beliefs by group size; empty where no replace curve follows from the claim, and
            where the training is not DP.
        played: scores and beliefs of all trials.
        events: what went wrong with blocks on the way.
        beside: other runs that put the same claim and the same training to the test.
    """

    name: str
    created: datetime
    changed: datetime
    seed: int = field(repr=False)
    versions: Mapping[str, str]
    settings: Mapping[str, Any] = field(repr=False)
    in_python: bool
    outcome: Outcome
    sentence: str
    caveats: tuple[str, ...]
    decided_at: float | None
    power_known: bool
    detects: float | None
    trials_needed: int | None
    deciding: Measured
    confidence: float
    method: Method
    metrics: tuple[Measured, ...]
    methods: tuple[Method, ...]
    claim: Claim
    adversary: str
    about: str
    sees: Literal["updates", "model"]
    attacked: Mapping[str, Any]
    trials: Mapping[str, Any]
    blocks: State
    label: str | None
    lower: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]]
    identifiability: Mapping[str, Any] | None
    groups: tuple[Group, ...]
    played: Trials
    events: tuple[Event, ...] = ()
    beside: tuple[Facts, ...] = ()

    def _repr_html_(self) -> str:
        """In a notebook: the report, in a frame of its own."""
        return str(import_module("dprime.show.notebook").report_frame(self))

    @property
    def adjacency(self) -> str:
        """Whether a record was left out, replaced or zeroed out."""
        told, recipe = str(self.attacked["adjacency"]), self.attacked["training"]
        sized = recipe is not None and recipe.get("expected_batch_size") is None
        return "zero-out" if told == "add-remove" and sized else told  # as dprime 0.10 recorded it

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted."""
        return self.outcome == "refuted"

    @property
    def vacuous(self) -> bool:
        """Whether the claim allows everything by the deciding number."""
        allowed = self.deciding.allowed
        return allowed is None or (is_share(self.deciding.name) and allowed >= 1)

    @property
    def drawn(self) -> str:
        """The method whose lower curve is drawn: the one that decides where it bounds a curve."""
        named = self.method.name
        return named if self.method.decides and named in self.lower else "band"

    @property
    def crosses(self) -> bool:
        """Whether the lower curve that is drawn passes above the claimed one somewhere."""
        pairs = zip(self.lower[self.drawn][1], self.claim.tpr, strict=True)
        return any(reached > allowed * (1 + ROUNDING) for reached, allowed in pairs)


def facts_of(run: str | Path | Run) -> Facts:
    """What a run's file says, once the run is concluded.

    Args:
        run: the the path of the file, or an open run.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/a.run"
    >>> Run.create(path, "audit", {"adversary": "gradient", "seed": 7}, blocks=4).close()
    >>> facts_of(path)
    Traceback (most recent call last):
    dprime.validate.InputError: \
run must be concluded, but it is played in 0 of 4 blocks: dprime resume \
a.run.
    """
    if isinstance(run, Run):
        return _read(run)
    with Run.open(run) as opened:
        return _read(opened)


def _read(run: Run) -> Facts:
    """The facts; an answer of a form that no version of dprime writes is refused."""
    try:
        return _facts(run)
    except (KeyError, TypeError, AttributeError, StopIteration) as error:
        shown = f"one whose answer has another form ({type(error).__name__}: {error})"
        remedy = f"dprime resume {run.path.name} makes it anew"
        raise validate.misfit("run", shown, "concluded by dprime", remedy) from error


def _facts(run: Run) -> Facts:
    answer, settings = _concluded(run), run.config
    claim = claim_of(answer, settings)
    methods = tuple(Method(name, **each) for name, each in answer["bounds"].items())
    return Facts(
        name=run.path.name,
        created=run.created,
        changed=run.changed(),
        seed=run.seed,
        versions=run.versions,
        settings=settings,
        in_python=begun_in_python(settings),
        outcome=answer["verdict"],
        sentence=answer["sentence"],
        caveats=tuple(answer["caveats"]),
        decided_at=answer["decided_by"].get("fpr"),
        power_known=answer["power_known"],
        detects=answer["detects"],
        trials_needed=answer["trials_needed"],
        deciding=_measured({**answer["metric"], **_ends(answer)}),
        confidence=answer["confidence"],
        method=next(method for method in methods if method.name == answer["method"]),
        metrics=tuple(
            _measured({"name": name, **each}) for name, each in answer["metrics"].items()
        ),
        methods=methods,
        claim=claim,
        adversary=answer["adversary"],
        about=answer["about"],
        sees=answer["attacked"]["sees"],
        attacked=answer["attacked"],
        trials=answer["trials"],
        blocks=State(**answer["blocks"]),
        events=tuple(Event(**each) for each in answer.get("events", ())),
        label=answer.get("label"),
        lower={
            name: (tuple(curve["fpr"]), tuple(curve["tpr"]))
            for name, curve in answer["lower"].items()
        },
        identifiability=answer.get("identifiability"),
        groups=() if answer.get("label") else _groups(claim, answer["attacked"]["adjacency"]),
        played=_played(run.arrays()),
    )


def is_share(name: str) -> bool:
    """Whether a deciding metric is at most 1; by the whole curve it is a true-positive rate."""
    return name == "curve" or METRICS[name].share


def compared(facts: Facts, others: Sequence[Facts]) -> Facts:
    """A run with others beside it, which put the same claim and the same training to the test.

    Args:
        facts: of the run that is told about.
        others: of the other runs. One that refuted the claim must be the one that is told about.
    """
    for other in others:
        _check_same(facts, other)
        if other.refuted and not facts.refuted:
            remedy = f"report {other.name}, with {facts.name} beside it"
            shown = f"{other.name}, which refuted the claim"
            raise validate.misfit("with", shown, "a run that did not refute the claim", remedy)
    return replace(facts, beside=tuple(others))


def _check_same(facts: Facts, other: Facts) -> None:
    """Refuse a run of another claim, or of another training."""
    wanted = f"a run against the claim of {facts.name}"
    if not facts.claim.same_as(other.claim) or facts.adjacency != other.adjacency:
        shown = f"{other.name}, which has another ({other.claim.described})"
        raise validate.misfit("with", shown, wanted, "leave it out")
    for what in ("data", "records", "trainer"):
        if facts.attacked[what] != other.attacked[what]:
            shown = f"{other.name}, which has other {what if what != 'trainer' else 'training'}"
            raise validate.misfit("with", shown, f"{wanted} and its training", "leave it out")


def begun_in_python(settings: Mapping[str, Any]) -> bool:
    """Whether a run has objects in it that no file can name."""
    return isinstance(settings.get("trainer"), Mapping)


def _concluded(run: Run) -> dict[str, Any]:
    """The run's answer; refused where there is none, or one of an earlier version."""
    answer = run.result
    if run.kind != "audit":
        remedy = f"dprime report {run.path.name} prints its tables"
        raise validate.misfit(
            "run", f"that of another kind, {run.kind}", "that of an audit", remedy
        )
    if answer is not None and {"attacked", "claim", "lower", "power_known"} <= answer.keys():
        return answer
    remedy = f"dprime resume {run.path.name}"
    if begun_in_python(run.config):
        remedy = "call dprime.audit.audit again with the same path"
    if answer is None:
        state = run.state()
        shown = f"played in {state.done} of {state.blocks} blocks"
        raise validate.misfit("run", shown, "concluded", remedy)
    shown = "one whose answer lacks them"
    raise validate.misfit("run", shown, "concluded with its curves kept", remedy)


def _ends(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {"reached": answer["reached"], "allowed": answer["allowed"]}


def _measured(kept: Mapping[str, Any]) -> Measured:
    """A metric of an answer: its name, conditions, and both numbers."""
    name = kept["name"]
    ends = (kept["reached"], kept["allowed"])
    if name == "curve":
        return Measured(name, CURVE_TITLE, {}, *ends)
    conditions = {known: kept[known] for known in METRICS[name].conditions}
    return Measured(name, Reading(name, conditions).title, conditions, *ends)


def _groups(claim: Claim, adjacency: str) -> tuple[Group, ...]:
    """Beliefs of somebody who knows that the data hold exactly one of k people.

    With p_j the law of what is seen where person j is in the data, the belief in person i is
    p_i / (p_i + (k - 1) Q), Q the mean of the other p_j. The replace curve F bounds p_i(S) by
    F(p_j(S)) for each j, and is concave, so by F(Q(S)) too: the two worlds are (p_i, Q), the
    prior is 1/k, and S is where the belief exceeds its limit.
    """
    curve = replace_curve(claim.mechanism, adjacency) if claim.mechanism else None
    if curve is None:
        return ()
    beliefs = {size: curve.belief(1.0 / size, EXCEEDED) for size in GROUPS}
    return tuple(Group(size, belief, EXCEEDED) for size, belief in beliefs.items())


def _played(arrays: Arrays) -> Trials:
    inside = arrays["in_world"].astype(bool)
    scores = arrays["score"]
    if "log_ratio" not in arrays:
        return Trials(scores[inside], scores[~inside], inside)
    # as in the audit: models that diverged have no belief
    logs, sensitivity = arrays["log_ratio"], arrays["sensitivity"]
    kept = np.isfinite(logs).all(1) & np.isfinite(sensitivity).all(1)
    return Trials(scores[inside], scores[~inside], inside[kept], logs[kept], sensitivity[kept])
