"""What an attack sees, and what it answers: a score for each record, higher for members.

The attacker knows the pool, trains shadow models on parts of it in the same way as the target, and
asks all of them about the same records. Nothing else of the target is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dprime import validate
from dprime.data import arrays
from dprime.membership.signals import Bools, Floats, Signals

Part = Literal["target", "shadows", "members", "population", "shadow_population"]
"""A part of the evidence."""

SHADOWS: tuple[Part, ...] = ("target", "shadows", "members")
POPULATIONS: tuple[Part, ...] = ("population", "shadow_population")

Missing = Literal["error", "nan"]
"""What happens where a record lacks shadow models: an error, or no score for it."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that an attacker has.

    Attributes:
        target: of the model under attack, on the records that are attacked [record].
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
            object.__setattr__(self, "members", arrays.read_only(members))
        models = None if self.shadows is None else self.shadows.shape[0]
        others = None if self.population is None else self.population.shape[-1]
        shapes: dict[Part, tuple[int | None, ...]] = {
            "target": (None,), "shadows": (models, self.records),
            "members": (models, self.records), "population": (None,),
            "shadow_population": (models, others),
        }  # fmt: skip
        for part, wanted in shapes.items():
            if (given := getattr(self, part)) is not None:
                _check_shape(part, given.shape, wanted)
                if part not in ("target", "members"):
                    _check_known(part, given)

    @property
    def records(self) -> int:
        """How many records are attacked."""
        return self.target.shape[-1]

    @property
    def member_mask(self) -> Bools:
        """Which shadow model was trained on which record [model, record], where that is needed."""
        assert self.members is not None
        return self.members

    def of(self, part: Part) -> Signals:
        """Signals that an attack has among its needs."""
        signals = getattr(self, part)
        assert isinstance(signals, Signals)
        return signals


class MembershipAttack(ABC):
    """One way to tell members from others. Derived classes are frozen dataclasses of options.

    Attributes:
        name: in commands and files.
        title: in tables and charts.
        needs: the parts of the evidence that it uses.
        missing: whether a record with too few shadow models is an error or gets no score ("nan").
    """

    name: str
    title: str
    needs: tuple[Part, ...]
    missing: Missing = "error"

    def __post_init__(self) -> None:
        validate.one_of("missing", self.missing, ("error", "nan"))

    def scores(self, evidence: Evidence) -> Floats:
        """One score for each record: a higher one is evidence for "member".

        NaN where no score can be given, which counts as "not a member": where the target has no
        finite answer, and where shadow models are missing and the attack allows that.
        """
        for part in self.needs:
            if getattr(evidence, part) is None:
                remedy = "ask the target or the shadow models; Evidence says about which records"
                raise validate.invalid_input(
                    f"evidence.{part}", "missing", f"given for {self.name}", remedy
                )
        scorable: Bools = np.ones(evidence.records, dtype=bool)
        if "target" in self.needs:
            scorable &= evidence.target.known
        if "members" in self.needs:
            scorable &= self.scorable(evidence.member_mask)
        return np.where(scorable, self._scores(evidence), np.nan)

    def scorable(self, member_mask: Bools) -> Bools:
        """Which records have enough shadow models for a score [record]; refused where one has not.

        The mask [model, record] is known before the training.
        """
        inside, outside = self._models()
        sides = {
            "with": (inside, member_mask.sum(axis=0) < inside),
            "without": (outside, (~member_mask).sum(axis=0) < outside),
        }
        short: Bools = sides["with"][1] | sides["without"][1]
        if short.any() and self.missing == "error":
            lacks = " and ".join(
                f"{lacking.sum()} of {len(short)} records lack models {side} them"
                for side, (_, lacking) in sides.items()
                if lacking.any()
            )
            least = " and ".join(f"{count} {side}" for side, (count, _) in sides.items() if count)
            remedies = (
                "train more shadow models", "keep records with a probability nearer 1/2",
                *self._alternatives(),
                "or, in Python, give such records no score with missing='nan'",
            )  # fmt: skip
            raise validate.invalid_input(
                "shadow models", f"such that {lacks}", f"at least {least} every record",
                ", ".join(remedies),
            )  # fmt: skip
        return ~short

    def _models(self) -> tuple[int, int]:
        """How many shadow models with and without a record its score needs."""
        return 0, 0

    def _alternatives(self) -> tuple[str, ...]:
        """Variants that need fewer shadow models, as remedies."""
        return ()

    @abstractmethod
    def _scores(self, evidence: Evidence) -> Floats:
        """The scores of scorable records; the parts that are needed are there."""

    def _name_variants(self, *variants: tuple[bool, str, str]) -> None:
        """Add variants to name and title: whether it is chosen, in the name, in the title."""
        chosen = [(name, title) for on, name, title in variants if on]
        if chosen:
            names, titles = zip(*chosen, strict=True)
            object.__setattr__(self, "name", "-".join([self.name, *names]))
            object.__setattr__(self, "title", f"{self.title} ({', '.join(titles)})")


def _check_shape(part: str, shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> None:
    """As many axes as wanted, of the lengths that are not None."""
    fits = [n in (None, size) for n, size in zip(wanted, shape, strict=False)]
    if len(shape) != len(wanted) or not all(fits):
        axes = zip(("model", "record")[-len(wanted) :], wanted, strict=True)
        shown = ", ".join(axis if n is None else f"{n} {axis}s" for axis, n in axes)
        raise validate.invalid_input(
            part, f"of shape {shape}", f"[{shown}]", "the parts belong together"
        )


def _check_known(part: str, given: Signals) -> None:
    """Shadow models must have finite answers: one that diverged tells nothing."""
    if lost := int((~given.known).sum()):
        remedy = "leave out models that diverged, and build signals with Signals.from_logits"
        raise validate.invalid_input(
            part, f"without an answer in {lost} places", "finite everywhere", remedy
        )
