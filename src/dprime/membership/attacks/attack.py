"""What an attack sees, and what it answers: a score for each record, higher for members.

The attacker knows the pool, trains shadow models on parts of it in the same way as the target, and
asks all of them about the same records. Nothing else of the target is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from dprime import validate
from dprime.membership.signals import Bools, Floats, Signals

Part = Literal["target", "shadows", "members", "population", "shadow_population"]
"""A part of the evidence."""

Missing = Literal["error", "nan"]
"""What happens where a record lacks shadow models: an error, or no score for it."""

MISSING: tuple[Missing, ...] = ("error", "nan")

WHERE_FROM: dict[Part, str] = {
    "target": "ask the target about the records in question",
    "shadows": "ask the shadow models about the records in question",
    "members": "say which shadow model was trained on which record",
    "population": "ask the target about records that no model was trained on",
    "shadow_population": "ask the shadow models about records that no model was trained on",
}


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that an attacker has.

    Attributes:
        target: of the model under attack, on the records in question [record].
        shadows: of the shadow models on the same records [model, record].
        members: which shadow model was trained on which of these records [model, record].
        population: of the target, on records that no model was trained on [record'].
        shadow_population: of the shadow models on those [model, record'].
    """

    target: Signals
    shadows: Signals | None = None
    members: Bools | None = None
    population: Signals | None = None
    shadow_population: Signals | None = None

    def __post_init__(self) -> None:
        if self.members is not None:
            members = np.array(self.members, dtype=bool)
            members.setflags(write=False)
            object.__setattr__(self, "members", members)
        _check_shape("target", self.target, (None,))
        _check_shape("shadows", self.shadows, (None, self.records))
        models = None if self.shadows is None else self.shadows.shape[0]
        _check_shape("members", self.members, (models, self.records))
        _check_shape("population", self.population, (None,))
        others = None if self.population is None else self.population.shape[0]
        _check_shape("shadow_population", self.shadow_population, (models, others))
        for name in ("shadows", "population", "shadow_population"):
            _check_known(name, getattr(self, name))

    @property
    def records(self) -> int:
        """How many records are in question."""
        return self.target.shape[-1]

    @property
    def had(self) -> Bools:
        """Which shadow model had which record [model, record]."""
        assert self.members is not None  # an attack that asks has it among its needs
        return self.members

    def of(self, part: Part) -> Signals:
        """Signals that an attack has among its needs."""
        found = getattr(self, part)
        assert isinstance(found, Signals)
        return found


class Attack(ABC):
    """One way to tell members from others. Derived classes are frozen dataclasses of options."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the command line and files call it."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What tables and charts call it."""

    @property
    @abstractmethod
    def needs(self) -> tuple[Part, ...]:
        """The parts of the evidence that it uses."""

    def scores(self, evidence: Evidence) -> Floats:
        """One score for each record: the higher, the more it speaks for "member".

        NaN where no score can be given, which counts as "not a member": where the target has no
        finite answer, and where shadow models are missing and the attack allows that.
        """
        for part in self.needs:
            if getattr(evidence, part) is None:
                remedy = WHERE_FROM[part]
                raise validate.misfit(
                    f"evidence.{part}", "left out", f"given for {self.name}", remedy
                )
        scores = self._scores(evidence)
        if "target" in self.needs:
            scores = np.where(evidence.target.known, scores, np.nan)
        return scores

    def told(self, had: Bools) -> Bools:
        """Which records have shadow models enough for a score [record]; refused where one has not.

        Args:
            had: which shadow model had which record [model, record]; known before any is trained.
        """
        everyone: Bools = np.ones(had.shape[1], dtype=bool)
        return everyone

    @abstractmethod
    def _scores(self, evidence: Evidence) -> Floats:
        """The scores where the target has finite answers; all parts that are needed are there."""


def options_of(attack: Attack) -> dict[str, object]:
    """The options of an attack, as they are written to files."""
    return {entry.name: getattr(attack, entry.name) for entry in fields(attack)}  # type: ignore[arg-type]


def enough(
    had: Bools, *, inside: int, outside: int, missing: Missing, otherwise: str = ""
) -> Bools:
    """Which records have so many shadow models with and without them [record].

    Args:
        had: which model had which record [model, record].
        inside: how many models must have had each record.
        outside: how many must not have had it.
        missing: "error" refuses where a record lacks models.
        otherwise: what else would help, for the sentence.
    """
    validate.one_of("missing", missing, MISSING)
    few_in, few_out = had.sum(0) < inside, (~had).sum(0) < outside
    short = few_in | few_out
    if short.any() and missing == "error":
        lacks = [
            f"{count.sum()} of {len(short)} records lack models {which} them"
            for count, which in ((few_in, "with"), (few_out, "without"))
            if count.any()
        ]
        sides = [f"{least} {which}" for least, which in ((inside, "with"), (outside, "without"))]
        wanted = " and ".join(side for side in sides if not side.startswith("0"))
        raise validate.misfit(
            "shadow models", f"such that {' and '.join(lacks)}", f"at least {wanted} every record",
            "train more shadow models, keep records with a probability nearer 1/2"
            + (f", {otherwise}" if otherwise else "")
            + ", or, in Python, give such records no score with missing='nan'",
        )  # fmt: skip
    told: Bools = ~short
    return told


def _check_shape(name: str, given: Signals | Bools | None, wanted: tuple[int | None, ...]) -> None:
    """Axes as many as wanted, of the lengths that are not None."""
    if given is None:
        return
    shape = given.shape
    fits = len(shape) == len(wanted) and all(
        length in (None, found) for length, found in zip(wanted, shape, strict=True)
    )
    if not fits:
        axes = ("record",) if len(wanted) == 1 else ("model", "record")
        shown = ", ".join(
            a if n is None else f"{n} {a}s" for a, n in zip(axes, wanted, strict=True)
        )
        raise validate.misfit(name, f"of shape {shape}", f"[{shown}]", "the parts belong together")


def _check_known(name: str, given: Signals | None) -> None:
    """Shadow models must have finite answers: one that diverged tells nothing."""
    if given is None or given.known.all():
        return
    lost = int((~given.known).sum())
    remedy = "leave out models that diverged, and build signals with Signals.from_logits"
    raise validate.misfit(name, f"without an answer in {lost} places", "finite everywhere", remedy)
