"""Attribute inference, step by step: what the training reveals of a record's attribute.

Cherubin et al. 2024, algorithm 4: at every step each record is completed with every value of the
attribute, and the clipped gradients of its completions are held against each other.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from dprime import estimates, validate
from dprime.attributes import gradient_check, report, worst_pair
from dprime.attributes.attribute import Attribute, SeenValues
from dprime.attributes.completion_gradients import Completions
from dprime.attributes.losses import loss_of
from dprime.attributes.risks import FORMS, AttributeRisk, Form, Moment, StepTerms, over_epochs
from dprime.attributes.twin import Twin
from dprime.attributes.worst_pair import WorstPair
from dprime.curve import TradeOff
from dprime.data.dataset import Dataset
from dprime.monitor.checks import PrivacyWarning
from dprime.monitor.opacus_training import OpacusTraining
from dprime.monitor.watcher import Watcher
from dprime.train.compute import cores

NUMBERS_AT_ONCE = 1 << 22
"""That a layer has of the completions that are looked at together."""

UNMOVED = 1e-6
"""Gradients that differ by less, relative to their norm, are the same: float32 rounds as much."""

UNCHECKED = (
    "What was analysed could not be held against the gradients that Opacus clipped: because of "
    "dropout, or because no batch was seen."
)

BEHIND = 2
"""StepTerms whose analysis may be under way while the training goes on, on another core."""

CHECKED_EVERY = 10
"""StepTerms after which the gradients are held against those of Opacus again."""

ANALYSES: dict[str, Callable[..., WorstPair]] = {
    "full": worst_pair.full,
    "approximate": worst_pair.approximate,
}


class AttributeInference(Watcher):
    """Watches how much every step tells of an attribute.

    Its numbers are estimates and depend on the data: publishing them may reveal who was in them.

    Args:
        attributes: one or several, each analysed for itself.
        over: "batch" looks at the records of the step's batch, as in the paper; "data" at all
            records, whether they were drawn or not, which takes longer and shows no less.
        data: the records and targets for "data": a pair of tensors, a dprime `Dataset`, or a
            torch data set of pairs; else the loader's own.
        analysis: "full" compares all pairs of values; "approximate" bounds them by the distance
            to their mean, and never says that there is more security.
        loss: of outputs and targets, one a record; else made of the criterion.
        every: analyse each so many steps; the steps between count as the one before them.
        keep_worst: also keep which record showed most at each step. That says who was in the
            batch, so it is off unless asked for.

    """

    name = "attribute-inference"
    needs_batches = True

    def __init__(
        self,
        *attributes: Attribute,
        over: Literal["batch", "data"] = "batch",
        data: Any = None,
        analysis: Literal["full", "approximate"] = "full",
        loss: Callable[[Tensor, Tensor], Tensor] | None = None,
        every: int = 1,
        keep_worst: bool = False,
    ) -> None:
        self.attributes = {one.name: one for one in _checked(attributes)}
        self._seen = {name: SeenValues(one) for name, one in self.attributes.items()}
        self.over = validate.one_of("over", over, ("batch", "data"))
        self.analysis = validate.one_of("analysis", analysis, tuple(ANALYSES))
        self.every = validate.whole("every", every, example=1)
        _refuse_no_function(loss)
        self.notes: list[str] = []
        self._worst: dict[str, list[WorstPair]] | None = None
        if keep_worst:
            self._worst = {name: [] for name in self.attributes}
        self._steps = StepTerms.of(tuple(self.attributes))
        self._training: OpacusTraining | None = None
        self._loss, self._data = loss, data
        self._twin: Twin | None = None
        self._batches: list[tuple[Tensor, Tensor]] = []
        self._last: dict[str, WorstPair] = {}
        self._reached: set[str] = set()
        self._beside: ThreadPoolExecutor | None = None
        self._under_way: deque[tuple[float, float, Future[dict[str, WorstPair]] | None]] = deque()
        self._noise = math.nan
        self._waited = self.every
        self._agreed_at: int | None = None
        self._doubted = False
        self._overflown = 0

    # What is seen

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
        if self.over == "data":
            self._data = _all_records(_users_own(training) if self._data is None else self._data)

    def batch(self, records: Tensor, targets: Tensor) -> None:
        """Keep the records until the step."""
        self._batches.append((records.detach(), targets.detach()))

    def clipped(self, training: OpacusTraining) -> None:
        """Analyse the step; the weights are those that its gradients were taken at."""
        noise = training.noise_multiplier * training.clip_norm / training.clipped_to
        self._waited += 1
        look = None
        if not self._doubted and self._is_due(noise):
            if self._agrees(training):
                look = self._begun(training, noise)
                empty = self.over == "batch" and not any(len(x) for x, _ in self._batches)
                self._waited = self.every if empty else 0  # it says nothing of the next ones
            else:
                self._doubt()
        rate = min(1.0, training.sample_rate * training.accumulated)
        self._under_way.append((rate, noise, look))
        self._batches, self._noise = [], noise
        self._settle(BEHIND if self._taken > 1 else 0)  # what is wrong is said at the first step

    def _is_due(self, noise: float) -> bool:
        """Whether this step is analysed: each so many, and where the noise has changed."""
        return self._waited >= self.every or noise != self._noise

    def _begun(self, training: OpacusTraining, noise: float) -> Future[dict[str, WorstPair]]:
        """A look at the step, beside the training where that leaves a core free."""
        assert self._twin is not None
        for seen in self._seen.values():
            for records, _ in self._looked_at():
                seen.see(records)
        analyse = partial(
            self._analysed, training.clipped_to, noise, training.device(), self._twin.copied(),
            [(x.clone(), y.clone()) for x, y in self._batches],
        )  # fmt: skip
        if training.device().type == "cpu" and torch.get_num_threads() < cores():
            self._beside = self._beside or _another_thread()
            return self._beside.submit(analyse)
        look: Future[dict[str, WorstPair]] = Future()
        look.set_result(analyse())
        return look

    def _settle(self, behind: int = 0) -> None:
        """Wait until no more steps than that are under way, and keep what the others showed."""
        while len(self._under_way) > behind:
            rate, noise, look = self._under_way.popleft()
            if look is not None:
                self._last = look.result()
            if self._doubted:
                self._last = dict.fromkeys(self.attributes, worst_pair.membership(noise))
            self._steps.rates.append(rate)
            self._steps.noises.append(noise)
            for name, found in self._last.items():
                self._steps.differences[name].append(found.difference)
                self._steps.terms[name].append(found.term)
                if self._worst is not None:
                    self._worst[name].append(found)

    @property
    def steps(self) -> StepTerms:
        """What every step so far showed."""
        self._settle()
        return self._steps

    @property
    def worst(self) -> dict[str, list[WorstPair]] | None:
        """Which record showed most at each step, where it was asked for."""
        self._settle()
        return self._worst

    @property
    def _taken(self) -> int:
        """StepTerms so far."""
        return len(self._steps) + len(self._under_way)

    def _agrees(self, training: OpacusTraining) -> bool:
        """Hold the gradients against those of Opacus, now and then.

        A training that differs from the first step on is refused.
        """
        assert self._twin is not None
        taken, before = self._taken, self._agreed_at
        due = before is None or taken >= before + CHECKED_EVERY
        if not due or not self._batches or not gradient_check.can_be_checked(training.module):
            return True
        self._settle()
        if before is None and self.over == "data" and not _has_canaries(training):
            gradient_check.refuse_strangers(self._data, self._batches)
        if gradient_check.agrees(self._twin, training, self._batches):
            self._agreed_at = taken
            return True
        if before is None:
            raise gradient_check.refusal()
        return False

    def _doubt(self) -> None:
        """After a step that differs nothing is known of those since the last that agreed."""
        assert self._agreed_at is not None
        self._doubted = True
        since = self._agreed_at + 1
        self._steps.count_as_membership(since)
        note = (
            f"From step {since + 1:,} on the gradients of the batch were others than those that "
            "were analysed, so these steps count as they would against membership."
        )
        self.notes.append(note)
        warnings.warn(f"{note} To mend it, {gradient_check.REMEDY}.", PrivacyWarning, stacklevel=2)

    def _analysed(
        self,
        clip_norm: float,
        noise: float,
        device: torch.device,
        weights: Sequence[Tensor],
        batches: Sequence[tuple[Tensor, Tensor]],
    ) -> dict[str, WorstPair]:
        """At these weights, for every attribute."""
        assert self._twin is not None
        looked_at = [self._data] if self.over == "data" else batches
        with self._twin.at(weights):
            return {
                name: self._largest(attribute, clip_norm, noise, device, looked_at)
                for name, attribute in self.attributes.items()
            }

    def _largest(
        self,
        attribute: Attribute,
        clip_norm: float,
        noise: float,
        device: torch.device,
        looked_at: Sequence[tuple[Tensor, Tensor]],
    ) -> WorstPair:
        """Over the records that are looked at, part by part."""
        assert self._twin is not None
        search = ANALYSES[self.analysis]
        columns = torch.tensor(attribute.places, device=device)
        found, longest, first = WorstPair(), 0.0, 0
        for records, targets in looked_at:
            values = torch.tensor(attribute.values, dtype=records.dtype, device=device)
            size = max(1, NUMBERS_AT_ONCE // (len(values) * self._twin.widest))
            parts = zip(records.split(size), targets.split(size), strict=True)
            for x, y in parts if len(records) else ():
                completions = Completions(x.to(device), y.to(device), columns, values)
                gradients = self._twin.gradients(completions, clip_norm)
                if not bool(gradients.norms.isfinite().all()):
                    self._overflown += 1
                    return worst_pair.membership(noise)
                longest = max(longest, float(gradients.norms.max()))
                fresh = search(gradients, noise, found)
                ahead = fresh.term > found.term  # its place counts from the first of this part
                place = fresh.place + first if ahead else found.place
                found = dataclasses.replace(fresh, place=place)
                first += len(x)
        self._refuse_unreached(attribute, found.difference, longest)
        return found

    def _looked_at(self) -> Iterator[tuple[Tensor, Tensor]]:
        if self.over == "data":
            yield self._data
            return
        if not self._batches:
            raise validate.invalid_input(
                "the batch", "not seen", "seen at every step",
                "give the criterion, a module, to the monitor, or call monitor.batch(x, y)",
            )  # fmt: skip
        yield from self._batches

    def _refuse_unreached(self, attribute: Attribute, difference: float, longest: float) -> None:
        """Refuse an attribute that changes no gradient at the first step that has any."""
        if attribute.name in self._reached or longest == 0:
            return
        if difference <= UNMOVED * longest:
            raise validate.invalid_input(
                f"attribute {attribute.name}", "without effect on every gradient",
                "one that the model sees", "check its columns, and whether the model drops them",
            )  # fmt: skip
        self._reached.add(attribute.name)

    # What is found

    def risk(self, name: str | None = None, form: Form = "central-limit") -> AttributeRisk:
        """What the training so far reveals of one attribute.

        Args:
            name: the attribute's; may be left out where there is one.
            form: "central-limit", or the paper's "closed-form".
        """
        chosen = self._named(name)
        form_ = validate.one_of("form", form, FORMS)
        self._refuse_unseen()
        certified = self.certified()
        curve, membership = (self.steps.estimate(which, form_) for which in (chosen, None))
        if certified is not None:
            curve = estimates.capped(curve, certified)
            membership = estimates.capped(membership, certified)
        attribute, steps = self.attributes[chosen], len(self.steps)
        doubt = self._seen[chosen].doubt
        return AttributeRisk(attribute, curve, membership, certified, steps, doubt)

    def risks(self, form: Form = "central-limit") -> list[AttributeRisk]:
        """The same for every attribute."""
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
        """What the monitor certifies of the training, one record replaced; None for no bound."""
        mechanism = None if self._training is None else self._training.claim()
        try:
            return None if mechanism is None else mechanism.curve("replace")
        except validate.InputError:  # no bound for several Poisson batches a step
            return None

    def report(self, fpr: float = 0.1, form: Form = "central-limit") -> str:
        """The table of all attributes, and what must be said beside it."""
        if not len(self.steps):
            return ""
        rates = self.steps.rates
        how = (
            f"{self.analysis} analysis of {'each batch' if self.over == 'batch' else 'all records'}"
        )
        title = (
            f"Attribute inference after {len(self.steps):,} steps ({sum(rates):.4g} epochs), {how}"
        )
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

    def _refuse_unseen(self) -> None:
        if not len(self.steps):
            remedy = "train first"
            raise validate.invalid_input("steps", "none", "at least one that was seen", remedy)

    # Checkpoints

    def state_dict(self) -> dict[str, Any]:
        """The numbers of every step, and what is needed to go on."""
        self._settle()
        last = {name: _plain(found) for name, found in self._last.items()}
        worst = None
        if self.worst is not None:
            worst = {name: [_plain(found) for found in kept] for name, kept in self.worst.items()}
        return {
            "steps": self.steps.state_dict(),
            "last": last,
            "worst": worst,
            "waited": self._waited,
            "analysed": self._analysed_how(),
            "doubted": self._doubted,
            "overflown": self._overflown,
            "notes": self.notes,
        }

    def _analysed_how(self) -> dict[str, Any]:
        """What steps must have in common to be added up."""
        values = {
            name: [list(one.places), one.values.tolist()] for name, one in self.attributes.items()
        }
        return {"over": self.over, "analysis": self.analysis, "values": values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what was saved, with the same attributes."""
        steps = StepTerms.from_state(state["steps"])
        if tuple(steps.differences) != tuple(self.attributes):
            remedy = "give the attributes that it was saved with"
            raise validate.invalid_value(
                "the checkpoint's attributes", ", ".join(steps.differences),
                ", ".join(self.attributes), remedy,
            )  # fmt: skip
        if (saved := state["analysed"]) != self._analysed_how():
            remedy = "go on with the values and the analysis that it was saved with"
            raise validate.invalid_value(
                "the checkpoint's analysis", saved, str(self._analysed_how()), remedy
            )
        self._settle()
        self._steps = steps
        self._noise = steps.noises[-1] if len(steps) else math.nan
        self._waited = state["waited"]
        self._doubted, self._overflown = state["doubted"], state["overflown"]
        self.notes = list(dict.fromkeys([*self.notes, *state["notes"]]))
        self._last = {name: _largest(found) for name, found in state["last"].items()}
        self._reached = set(self.attributes) if len(steps) else set()
        if self._worst is not None and state["worst"] is not None:
            self._worst = {
                name: [_largest(found) for found in kept] for name, kept in state["worst"].items()
            }


def _another_thread() -> ThreadPoolExecutor:
    """A thread whose operations stay on one core: the training has the others."""
    own = torch.get_num_threads()
    beside = ThreadPoolExecutor(1, thread_name_prefix="dprime")
    torch.set_num_threads(1)  # what a thread begins with when it first asks
    beside.submit(torch.get_num_threads).result()
    torch.set_num_threads(own)
    return beside


def _has_canaries(training: OpacusTraining) -> bool:
    return hasattr(training.data_loader.dataset, "without_canaries")


def _users_own(training: OpacusTraining) -> Any:
    """The records of the loader, without canaries."""
    dataset = training.data_loader.dataset
    return getattr(dataset, "without_canaries", dataset)


def _all_records(data: Any) -> tuple[Tensor, Tensor]:
    """Records and targets of a data set, as two tensors."""
    if isinstance(data, Dataset):
        return torch.tensor(data.records), torch.tensor(data.labels)
    if isinstance(data, tuple | list) and len(data) == 2 and isinstance(data[0], Tensor):
        return data[0], data[1]
    try:
        own = torch.Generator()  # the training's random numbers stay its own
        parts = [(x, y) for x, y in DataLoader(data, batch_size=1024, generator=own)]
    except (TypeError, ValueError) as error:
        remedy = "give data=, a pair of tensors"
        reason = f"a {type(data).__name__} that gives no pairs ({error})"
        raise validate.invalid_input("data", reason, "records with targets", remedy) from None
    records, targets = zip(*parts, strict=True)
    return torch.cat(records), torch.cat(targets)


def _notes(training: OpacusTraining) -> Iterator[str]:
    """What a reader must know of this training."""
    if any(
        isinstance(module, nn.modules.dropout._DropoutNd) for module in training.module.modules()
    ):
        yield "Gradients are compared without dropout: its masks would hide the attribute."
    if not training.poisson:
        yield "Both forms assume batches in which every record is drawn for itself; these are not."
    if training.adaptive:
        yield "Adaptive clipping also releases a noisy count of clipped records; it is left out."


def _refuse_no_function(loss: Any) -> None:
    if loss is not None and not callable(loss):
        remedy = "give one of outputs and targets that returns one loss a record"
        raise validate.invalid_value("loss", loss, "a function", remedy)


def _checked(attributes: Sequence[Attribute]) -> Sequence[Attribute]:
    if not attributes or not all(isinstance(one, Attribute) for one in attributes):
        remedy = 'give for example Attribute.column("age", "extremes", data=records)'
        raise validate.invalid_value(
            "attributes", list(attributes), "one Attribute or more", remedy
        )
    names = [one.name for one in attributes]
    if len(set(names)) < len(names):
        remedy = "give each a name of its own with name="
        raise validate.invalid_value("attributes", ", ".join(names), "of different names", remedy)
    return attributes


def _plain(found: WorstPair) -> list[Any]:
    return [found.difference, found.term, found.place, list(found.pair)]


def _largest(saved: Sequence[Any]) -> WorstPair:
    difference, term, place, (first, second) = saved
    return WorstPair(difference, term, place, (first, second))
