"""Attribute inference, step by step: what the training reveals of a record's attribute.

Cherubin et al. 2024, algorithm 4: at every step each record is completed with every value of the
attribute, and the clipped gradients of its completions are compared with each other.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal

from torch import Tensor

from dprime import estimates, validate
from dprime.attributes import report, worst_pair
from dprime.attributes.analysis import ANALYSES, REMEDY, Batches, agrees, analysed, has_dropout
from dprime.attributes.attribute import Attribute, check_attributes
from dprime.attributes.losses import loss_of
from dprime.attributes.records import SeenValues, all_records, own_records, refuse_strangers
from dprime.attributes.risks import FORMS, AttributeRisk, Form, Moment, StepTerms, over_epochs
from dprime.attributes.twin import Twin
from dprime.attributes.worst_pair import WorstPair
from dprime.curve import TradeOff
from dprime.monitor.checks import PrivacyWarning
from dprime.monitor.opacus_training import OpacusTraining
from dprime.monitor.watcher import Watcher

UNCHECKED = (
    "The analysed gradients could not be compared with those that Opacus clipped: because of "
    "dropout, or because no batch was seen."
)

UNMOVED = 1e-6
"""Gradients that differ by less, relative to their norm, are the same: float32 rounds as much."""

CHECKED_EVERY = 10  # steps after which the gradients are compared with those of Opacus again


class AttributeInference(Watcher):
    """A watcher that measures how much every step tells of an attribute.

    Its numbers are estimates and depend on the data: publishing them may reveal who was in them.

    Args:
        attributes: one or several, each analysed separately.
        scope: "batch" looks at the records of the step's batch, as in the paper; "data" at all
            records, whether they were drawn or not, which takes longer and shows no less.
        data: the records and targets for "data": a pair of tensors, a dprime `Dataset`, or a
            torch data set of pairs; else the loader's own.
        analysis: "full" compares all pairs of values; "approximate" bounds them by the distance
            to their mean, and never reports more security.
        loss: of outputs and targets, one a record; else made of the criterion.
        every: analyse one of this many steps; the others count as the one before them.
        keep_worst: also keep which record showed most at each step. That says who was in the
            batch, so it is off unless asked for.

    Attributes:
        steps: what every step so far showed.
        notes: what a reader must know of this training.
    """

    name = "attribute-inference"
    needs_batches = True

    def __init__(
        self,
        *attributes: Attribute,
        scope: Literal["batch", "data"] = "batch",
        data: Any = None,
        analysis: Literal["full", "approximate"] = "full",
        loss: Callable[[Tensor, Tensor], Tensor] | None = None,
        every: int = 1,
        keep_worst: bool = False,
    ) -> None:
        check_attributes(attributes)
        self.attributes = {one.name: one for one in attributes}
        if len(self.attributes) < len(attributes):
            names, remedy = ", ".join(one.name for one in attributes), "give each its own name="
            raise validate.invalid_value("attributes", names, "of different names", remedy)
        self.scope = validate.one_of("scope", scope, ("batch", "data"))
        self.analysis = validate.one_of("analysis", analysis, tuple(ANALYSES))
        self.every = validate.whole("every", every, example=1)
        self.notes: list[str] = []
        self.steps = StepTerms([], [], {name: [] for name in self.attributes})
        self._keep_worst = keep_worst
        self._seen = {name: SeenValues(one) for name, one in self.attributes.items()}
        self._training: OpacusTraining | None = None
        self._loss: Any = loss
        if not (loss is None or callable(self._loss)):
            remedy = "give one of outputs and targets that returns one loss a record"
            raise validate.invalid_value("loss", loss, "a function", remedy)
        self._data = data
        self._batches: list[tuple[Tensor, Tensor]] = []
        self._waited = self.every
        self._agreed_at: int | None = None
        self._doubted = False
        self._overflown = 0  # steps with gradients that were no numbers
        self._reached: set[str] = set()  # the attributes that are known to change some gradient

    def start(self, training: OpacusTraining) -> None:
        """Make a twin of the model, and look at what cannot be analysed."""
        if self._training is not None:
            raise validate.invalid_input(
                "AttributeInference", "used for another training already", "new for each training",
                "make another one",
            )  # fmt: skip
        if hasattr(training.optimizer, "max_grad_norms"):
            raise validate.invalid_input(
                "clipping", "layer by layer", "of the whole gradient for attribute inference",
                'give clipping="flat" to make_private',
            )  # fmt: skip
        if training.noise_multiplier <= 0:
            raise validate.invalid_value(
                "noise_multiplier", training.noise_multiplier, "above 0 for attribute inference",
                "give a noise such as 1.1",
            )  # fmt: skip
        self._training = training
        loss = self._loss or loss_of(training.criterion)
        self._twin = Twin(training.module, training.parameters(), loss)
        self.notes = list(_notes(training))
        if self.scope == "data":
            self._data = all_records(own_records(training) if self._data is None else self._data)

    def batch(self, records: Tensor, targets: Tensor) -> None:
        """Keep the records until the step."""
        self._batches.append((records.detach(), targets.detach()))

    def clipped(self, training: OpacusTraining) -> None:
        """Analyse the step; the weights are those that its gradients were taken at."""
        noise = training.noise_multiplier * training.clip_norm / training.clipped_to
        self._waited += 1
        found: dict[str, WorstPair] = {}
        # each `every` steps, and after a change of the noise
        due = self._waited >= self.every or self.steps.noises[-1:] != [noise]
        if due and not self._doubted:
            if self._agrees(training):
                found = self._analysed(training, noise)
                empty = self.scope == "batch" and not any(len(x) for x, _ in self._batches)
                self._waited = self.every if empty else 0  # it says nothing of the next ones
            else:
                self._doubt()
        if self._doubted:
            found = dict.fromkeys(self.attributes, worst_pair.membership(noise))
        found = found or {name: pairs[-1] for name, pairs in self.steps.worst.items()}
        rate = min(1.0, training.sample_rate * training.accumulated)
        self.steps.append(rate, noise, found)
        self._batches = []

    @property
    def worst(self) -> dict[str, list[WorstPair]] | None:
        """The record that showed most at each step, by attribute, where this was asked for."""
        return self.steps.worst if self._keep_worst else None

    def _analysed(self, training: OpacusTraining, noise: float) -> dict[str, WorstPair]:
        looked_at: Batches = [self._data] if self.scope == "data" else self._batches
        if not looked_at:
            raise validate.invalid_input(
                "the batch", "not seen", "seen at every step",
                "give the criterion, a module, to the monitor, or call monitor.batch(x, y)",
            )  # fmt: skip
        for seen in self._seen.values():
            for records, _ in looked_at:
                seen.see(records)
        found, overflown = {}, False
        for name, attribute in self.attributes.items():
            given = attribute, self._twin, training, noise, looked_at
            pair, longest = analysed(self.analysis, *given)
            overflown |= math.isnan(longest)
            if longest > 0 and name not in self._reached:  # the first step that has gradients
                if pair.difference <= UNMOVED * longest:
                    wanted = "one that the model sees"
                    remedy = "check its columns, and whether the model drops them"
                    what, shown = f"attribute {name}", "without effect on every gradient"
                    raise validate.invalid_input(what, shown, wanted, remedy)
                self._reached.add(name)
            found[name] = pair if self._keep_worst else WorstPair(pair.difference, pair.term)
        self._overflown += overflown
        return found

    def _agrees(self, training: OpacusTraining) -> bool:
        """Compare the gradients with those of Opacus, now and then.

        A training that differs from the first step on is refused.
        """
        taken, before = len(self.steps), self._agreed_at
        due = before is None or taken >= before + CHECKED_EVERY
        if not due or not self._batches or has_dropout(training.module):
            return True
        canaries = own_records(training) is not training.data_loader.dataset
        if before is None and self.scope == "data" and not canaries:
            refuse_strangers(self._data, self._batches)
        if agrees(self._twin, training, self._batches):
            self._agreed_at = taken
            return True
        if before is None:
            wanted, remedy = "be those that Opacus clipped", REMEDY
            raise validate.InputError.of("analysed gradients", wanted, "they differ", remedy)
        return False

    def _doubt(self) -> None:
        """Distrust all steps since the last that agreed, when one differs."""
        assert self._agreed_at is not None
        self._doubted = True
        since = self._agreed_at + 1
        self.steps.count_as_membership(since)
        note = (
            f"From step {since + 1:,} on the gradients of the batch differed from those that were "
            "analysed, so these steps count as they would against membership."
        )
        self.notes.append(note)
        warnings.warn(f"{note} To mend it, {REMEDY}.", PrivacyWarning, stacklevel=2)

    def risk(self, name: str | None = None, form: Form = "central-limit") -> AttributeRisk:
        """The risk of one attribute in the training so far.

        Args:
            name: the attribute's; may be left out where there is one.
            form: "central-limit", or the paper's "closed-form".
        """
        chosen = self._named(name)
        form_ = validate.one_of("form", form, FORMS)
        if not len(self.steps):
            remedy = "train first"
            raise validate.invalid_input("steps", "none", "at least one that was seen", remedy)
        certified = self.certified()
        curve, membership = (self.steps.estimate(which, form_) for which in (chosen, None))
        if certified is not None:
            curve = estimates.capped(curve, certified)
            membership = estimates.capped(membership, certified)
        attribute, steps = self.attributes[chosen], len(self.steps)
        doubt = self._seen[chosen].doubt
        return AttributeRisk(attribute, curve, membership, certified, steps, doubt)

    def risks(self, form: Form = "central-limit") -> list[AttributeRisk]:
        """The risk of every attribute."""
        return [self.risk(name, form) for name in self.attributes]

    def over_epochs(self, name: str | None = None, form: Form = "central-limit") -> list[Moment]:
        """The Bayes security at the end of every epoch, beside that of membership.

        None is below what is certified at the end of the last.
        """
        certified = self.certified()
        least = 0.0 if certified is None else certified.bayes_security()
        form_ = validate.one_of("form", form, FORMS)
        return over_epochs(self.steps, self._named(name), form_, least)

    def certified(self) -> TradeOff | None:
        """The certified curve of the training, one record replaced; None for no bound."""
        mechanism = None if self._training is None else self._training.claim()
        try:
            return None if mechanism is None else mechanism.curve("replace")
        except validate.InputError:  # no bound for several Poisson batches a step
            return None

    def report(self, fpr: float = 0.1, form: Form = "central-limit") -> str:
        """The table of all attributes, with the notes that it needs."""
        if not len(self.steps):
            return ""
        passes = sum(self.steps.rates)
        how = f"{self.analysis} analysis of "
        how += "each batch" if self.scope == "batch" else "all records"
        title = f"Attribute inference after {len(self.steps):,} steps ({passes:.4g} epochs), {how}"
        notes = list(self.notes)
        if self._agreed_at is None:
            notes.append(UNCHECKED)
        if self._overflown:
            notes.append(
                "Some gradients were too large or no numbers; those "
                f"{self._overflown:,} steps count as they would against membership."
            )
        if self.every > 1:
            notes.append(
                f"One step in {self.every} was analysed; the others count as the one before them."
            )
        return report.lines(title, self.risks(form), fpr, notes)

    def _named(self, name: str | None) -> str:
        if name is None and len(self.attributes) == 1:
            return next(iter(self.attributes))
        return validate.one_of("name", name, tuple(self.attributes))

    def state_dict(self) -> dict[str, Any]:
        """The numbers of every step, and all that is needed to go on."""
        return {
            "steps": self.steps.state_dict(),
            "waited": self._waited,
            "analysed": self._analysed_how(),
            "doubted": self._doubted,
            "overflown": self._overflown,
            "notes": self.notes,
        }

    def _analysed_how(self) -> dict[str, Any]:
        """The settings that steps must have in common to be added up."""
        named = self.attributes.items()
        values = {name: [list(one.places), one.values.tolist()] for name, one in named}
        return {"scope": self.scope, "analysis": self.analysis, "values": values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state with the same attributes."""
        if (saved := state["analysed"]) != (own := self._analysed_how()):
            remedy = "go on with the attributes and the analysis that it was saved with"
            raise validate.invalid_value("the checkpoint's analysis", saved, str(own), remedy)
        self.steps = StepTerms.from_state(state["steps"])
        self._waited, self._doubted = state["waited"], state["doubted"]
        self._overflown = state["overflown"]
        self.notes = list(dict.fromkeys([*self.notes, *state["notes"]]))
        self._reached.update(self.attributes if len(self.steps) else ())


def _notes(training: OpacusTraining) -> Iterator[str]:
    if has_dropout(training.module):
        yield "Gradients are compared without dropout: its masks would hide the attribute."
    if not training.poisson:
        yield "Both forms assume batches in which every record is drawn for itself; these are not."
    if training.adaptive:
        yield "Adaptive clipping also releases a noisy count of clipped records; it is left out."
