"""The evidence that an attack sees, and its answer: a score for each record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from dprime import validate
from dprime.data import arrays
from dprime.membership.signals import Bools, Floats, Signals
from dprime.parameters import Checked, one_of, parameter

Part = Literal["target", "shadows", "members", "population", "shadow_population"]
"""A part of the evidence."""

SHADOWS: tuple[Part, ...] = ("target", "shadows", "members")
POPULATIONS: tuple[Part, ...] = ("population", "shadow_population")

Missing = Literal["error", "nan"]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence of an attacker, from the target on the attacked records [record].

    Shadow models are asked about the same records [model, record], which `members` were trained on
    or not, and all about a population that no model was trained on [(model,) record'].
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
        records = self.target.shape[-1]
        by_model = (self.shadows, self.members, self.shadow_population)
        models = next((part.shape[0] for part in by_model if part is not None), None)
        asked = (self.population, self.shadow_population)
        others = next((part.shape[-1] for part in asked if part is not None), None)
        shapes: dict[Part, tuple[int | None, ...]] = {
            "target": (records,),
            "shadows": (models, records),
            "members": (models, records),
            "population": (others,),
            "shadow_population": (models, others),
        }
        for part, shape in shapes.items():
            given = getattr(self, part)
            if given is not None and given.shape != shape:
                shown, remedy = f"of shape {given.shape}", "the parts belong together"
                raise validate.invalid_input(part, shown, f"of shape {shape}", remedy)
            # a target that diverged has no scores; a shadow model that did tells nothing
            if part != "target" and isinstance(given, Signals) and not given.known.all():
                shown = f"without an answer in {(~given.known).sum()} places"
                remedy = "lower the learning rate, or leave out models that diverged"
                raise validate.invalid_input(part, shown, "finite everywhere", remedy)


@dataclass(frozen=True, kw_only=True)
class MembershipAttack(Checked, ABC):
    """One way to tell members from others. Derived classes are frozen dataclasses of options.

    It `needs` parts of the evidence; `variants` are options with a value, and what that adds to
    name and title. A record with too few shadow models is an error, or gets no score ("nan").
    """

    name: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[tuple[Part, ...]]
    variants: ClassVar[tuple[tuple[str, Any, str, str], ...]] = ()

    missing: Missing = parameter("error", one_of("error", "nan"))

    def check_together(self) -> None:
        chosen = [words for name, value, *words in self.variants if getattr(self, name) == value]
        if chosen:
            names, titles = zip(*chosen, strict=True)
            object.__setattr__(self, "name", "-".join([self.name, *names]))
            object.__setattr__(self, "title", f"{self.title} ({', '.join(titles)})")

    def scores(self, evidence: Evidence) -> Floats:
        """A score for each record, higher for members; NaN where none can be given."""
        for part in self.needs:
            if getattr(evidence, part) is None:
                wanted = f"given for {self.name}"
                remedy = "ask the target or the shadow models; Evidence says about which records"
                raise validate.invalid_input(f"evidence.{part}", "missing", wanted, remedy)
        scorable: Bools = np.ones(evidence.target.shape[-1], dtype=bool)
        if "target" in self.needs:
            scorable &= evidence.target.known
        if evidence.members is not None and "members" in self.needs:
            scorable &= self.scorable(evidence.members)
        found = self._scores(*(getattr(evidence, part) for part in self.needs))
        return np.where(scorable, found, np.nan)

    def scorable(self, member_mask: Bools) -> Bools:
        """The records with enough shadow models for a score; refused where one has too few."""
        inside, outside = self._models()
        short_inside = member_mask.sum(axis=0) < inside
        short_outside = (~member_mask).sum(axis=0) < outside
        short: Bools = short_inside | short_outside
        if short.any() and self.missing == "error":
            raise validate.invalid_input(
                "shadow models",
                f"such that of {len(short)} records {short_inside.sum()} lack models with them and "
                f"{short_outside.sum()} models without them",
                f"at least {inside} with and {outside} without every record",
                "train more shadow models, keep records with a probability nearer 1/2, use an "
                "offline or fixed variant, or, in Python, give such records no score with "
                "missing='nan'",
            )
        return ~short

    def _models(self) -> tuple[int, int]:
        """The numbers of shadow models, with and without a record, that its score needs."""
        return 0, 0

    @abstractmethod
    def _scores(self, *args: Any, **kwargs: Any) -> Floats:
        """The scores of scorable records, from the parts that are needed, in their order."""
