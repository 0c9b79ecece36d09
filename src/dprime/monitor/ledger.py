"""The cost of every step of a training, and the mechanism that all of them make.

    steps, in order ──► Ledger ──► Mechanism (DPSGD, Composition, ...) ──► certified curve

A step that nothing covers is kept with the reason, and the whole is then `NoGuarantee`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from dprime import validate
from dprime.composition import PrivacyLosses
from dprime.mechanisms import DPSGD, Composition, Mechanism
from dprime.monitor.problems import Problem
from dprime.parameters import LEAST_NOISE, checked, steps_in_pass
from dprime.privacy_loss import PrivacyLoss
from dprime.text import told

SAMPLINGS = ("poisson", "shuffle")

MANY_NOISES = 64
"""Beyond this many noise multipliers, they are rounded down to a grid."""

NOISE_GRID = 0.005
"""Ratio of neighbours on that grid, less 1."""


@dataclass(frozen=True)
class NoGuarantee(Mechanism):
    """Steps of which at least one is covered by no guarantee: an attacker may learn everything.

    >>> NoGuarantee(100, "no noise was added").curve().advantage()
    1.0
    """

    steps: int
    reason: str

    def losses(self, adjacency: str, group_size: int) -> PrivacyLosses:
        nothing, none = np.zeros(1), np.zeros(1)
        return PrivacyLosses(parts=((PrivacyLoss(nothing, none, none, 1.0, 1.0), 1),))


def _batches(name: str, value: object) -> int:
    return validate.whole(name, value, example=2)


@dataclass(frozen=True)
class Accumulated(Mechanism):
    """DP-SGD whose steps each add up several Poisson batches before the noise.

    A record can be in any of the batches, and is clipped in each for itself. So its share of the
    sum is k C with k binomial, which is what a group of that many records does in one batch.
    Counting the step as one batch of several times the rate, as Opacus does, leaves out that a
    record may be there twice.

    >>> once, thrice = DPSGD(1.0, 0.03, 100), Accumulated(DPSGD(1.0, 0.01, 100), batches=3)
    >>> round(once.curve().epsilon(delta=1e-5), 2), round(thrice.curve().epsilon(delta=1e-5), 2)
    (2.12, 2.36)
    """

    training: DPSGD
    batches: int = field(metadata=checked(_batches))

    @property
    def default_adjacency(self) -> str:
        return self.training.default_adjacency

    def losses(self, adjacency: str, group_size: int) -> PrivacyLosses:
        return self.training.losses(adjacency, group_size * self.batches)


class GivesAway(Mechanism):
    """A mechanism that reveals the record with a small probability, and otherwise nothing."""

    @abstractmethod
    def probability(self, adjacency: str, group_size: int = 1) -> float:
        """An upper bound on the probability of outputs that one of the two worlds cannot have."""

    def losses(self, adjacency: str, group_size: int) -> PrivacyLosses:
        lost = self.probability(adjacency, group_size)
        zero, rest = np.zeros(1), np.full(1, 1.0 - lost)
        return PrivacyLosses(parts=((PrivacyLoss(zero, rest, rest, lost, lost), 1),))


@dataclass(frozen=True)
class EmptyBatches(GivesAway):
    """The cost of leaving out the steps of Poisson batches that have no record.

    A step on an empty batch is noise, as the steps on other batches are. Where it is left out, a
    record that was drawn alone makes a step that the other world does not have. That has the
    probability q (1 - q)^(n - 1). Given any other batch of the others, the two worlds are as far
    apart as ever, and that nothing was drawn is likelier without the record by 1/(1 - q) only, as
    the smaller loss of a step is. By joint convexity a step is the ordinary one, and with that
    probability everything.

    Attributes:
        records: in the data.
        phases: sampling rate, and how many batches were drawn at it.

    >>> f"{EmptyBatches(200, ((0.01, 100),)).probability('add-remove'):.3f}"
    '0.135'
    """

    records: int
    phases: tuple[tuple[float, int], ...]

    def probability(self, adjacency: str, group_size: int = 1) -> float:
        """The probability that a group is drawn, and nobody else."""
        others = max(0, self.records - group_size)
        alone = (group_size * q * batches * (1.0 - q) ** others for q, batches in self.phases)
        return min(1.0, sum(alone))


@dataclass(frozen=True)
class StepRecord:
    """One step of the optimizer.

    Attributes:
        noise_multiplier: the noise's standard deviation over the norm that records were clipped to.
        sample_rate: of one batch of the loader.
        sampling: "poisson", or "shuffle" where a pass over the loader gives every record at most
            once.
        batches: added up before the noise.
        pass_index: number of the pass over the loader; 0 for Poisson, where passes mean nothing.
        problem: why no guarantee covers the step; empty where one does.
        nominal_noise: the optimizer's noise multiplier, where it adds other noise.
        left_out: empty batches before it that no step was made of.
        records: in the data, where there were any; else 0.

    """

    noise_multiplier: float
    sample_rate: float
    sampling: str = "poisson"
    batches: int = 1
    pass_index: int = 0
    problem: str = ""
    nominal_noise: float | None = None
    left_out: int = 0
    records: int = 0

    @property
    def recorded(self) -> float:
        """The noise multiplier that Opacus' accountant should have recorded."""
        return self.noise_multiplier if self.nominal_noise is None else self.nominal_noise

    @property
    def reason(self) -> str:
        """The reason why the step hides nothing; empty where it hides something."""
        if self.problem:
            return self.problem
        if self.sampling not in SAMPLINGS:
            return Problem.UNSAMPLED
        if self.noise_multiplier >= LEAST_NOISE:
            return ""
        return Problem.LITTLE_NOISE if self.noise_multiplier else Problem.NO_NOISE


class Ledger:
    """The steps so far, in order; equal ones in a row are one entry.

    Attributes:
        steps: how many there are.
        batches: of the loader, that they are made of.

    >>> ledger = Ledger()
    >>> ledger.add(StepRecord(1.0, 0.01), 500)
    >>> ledger.add(StepRecord(1.5, 0.01), 500)
    >>> round(ledger.mechanism().curve().advantage(), 3)
    0.132
    """

    __repr__ = told("steps", "batches", "last")

    def __init__(self, entries: Iterable[tuple[StepRecord, int]] = ()) -> None:
        self._entries: list[tuple[StepRecord, int]] = []
        self.steps = 0
        self.batches = 0
        for step, count in entries:
            self.add(step, count)

    @property
    def entries(self) -> tuple[tuple[StepRecord, int], ...]:
        """Each kind of step, and how many of it came in a row."""
        return tuple(self._entries)

    @property
    def last(self) -> StepRecord | None:
        return self._entries[-1][0] if self._entries else None

    def add(self, step: StepRecord, count: int = 1) -> None:
        """Count a step, or several equal ones."""
        entries = self._entries
        if entries and (entries[-1][0] is step or entries[-1][0] == step):
            entries[-1] = step, entries[-1][1] + count
        else:
            entries.append((step, count))
        self.steps += count
        self.batches += count * step.batches

    def first(self, steps: int) -> Ledger:
        """The ledger as it was after this many steps."""
        part = Ledger()
        for step, count in self._entries:
            if part.steps >= steps:
                break
            part.add(step, min(count, steps - part.steps))
        return part

    def batches_in_pass(self, pass_index: int) -> int:
        """Batches that the latest steps took of a pass over the loader."""
        taken = 0
        for step, count in reversed(self._entries):
            if step.pass_index != pass_index:
                break
            taken += step.batches * count
        return taken

    def usual_pass(self, but: int | None = None) -> int | None:
        """Batches that steps took of a pass over the loader, on average; one pass is left out."""
        taken: dict[int, int] = {}
        for step, count in self._entries:
            if step.sampling == "shuffle" and step.pass_index != but:
                taken[step.pass_index] = taken.get(step.pass_index, 0) + step.batches * count
        return sum(taken.values()) // len(taken) if taken else None

    def extended(
        self, step: StepRecord, steps: int, batches_in_epoch: int, *, left: bool = False
    ) -> Ledger:
        """The ledger after `steps` more steps like this one, epoch after epoch.

        The latest pass over shuffled batches goes on, unless it was left.
        """
        future = Ledger(self._entries)
        if step.sampling != "shuffle":
            future.add(step, steps)
            return future
        in_epoch = max(1, batches_in_epoch // step.batches)
        begun = self.batches_in_pass(step.pass_index) // step.batches
        if left:
            begun, step = 0, replace(step, pass_index=step.pass_index + 1)
        while steps > 0:
            now = min(steps, max(0, in_epoch - begun))
            if now > 0:
                future.add(step, now)
            steps, begun, step = steps - now, 0, replace(step, pass_index=step.pass_index + 1)
        return future

    def mechanism(self, *others: Mechanism, public_size: bool = False) -> Mechanism | None:
        """The training so far, composed with other mechanisms on the same data; None for no step.

        `public_size`: rate, divisor or number of steps were computed from the number of records.
        """
        reasons = [step.reason for step, _ in self._entries if step.reason]
        if reasons:
            return NoGuarantee(self.steps, reasons[0])
        sampled, left_out = _sampled(self._entries, public_size), _left_out(self._entries)
        parts = [*others, *sampled, *_shuffled(self._entries), *left_out]
        if len(parts) < 2:
            return parts[0] if parts else None
        return Composition(*parts)

    def state_dict(self) -> list[list[Any]]:
        """Values for JSON."""
        plain = [(replace(step, problem=str(step.problem)), n) for step, n in self._entries]
        return [[*asdict(step).values(), count] for step, count in plain]

    @classmethod
    def from_state(cls, rows: Iterable[Sequence[Any]]) -> Ledger:
        """The ledger whose `state_dict` this is; a damaged one is refused."""
        return cls(_row(row) for row in rows)


def _row(row: Sequence[Any]) -> tuple[StepRecord, int]:
    """One row of a state, if every value of it can be."""
    known = len(fields(StepRecord))
    if len(row) != known + 1:
        raise _damaged("row", row, f"one of {known + 1} values")
    step, count = StepRecord(*row[:-1]), row[-1]
    stated = 0.0 if step.nominal_noise is None else step.nominal_noise
    fit = {
        "noise_multiplier": _number(step.noise_multiplier) and step.noise_multiplier >= 0.0,
        "nominal_noise": _number(stated) and stated >= 0.0,
        "sample_rate": _number(step.sample_rate) and 0.0 < step.sample_rate <= 1.0,
        "sampling": step.sampling in SAMPLINGS or (step.sampling == "unknown" and step.problem),
        "batches": _whole(step.batches, least=1),
        "pass_index": _whole(step.pass_index, least=0),
        "problem": isinstance(step.problem, str),
        "left_out": _whole(step.left_out, least=0),
        "records": _whole(step.records, least=int(step.left_out > 0)),
    }
    for name, fits in fit.items():
        if not fits:
            raise _damaged(name, getattr(step, name), "one that a monitor writes")
    if not _whole(count, least=1):
        raise _damaged("number of steps", count, "1 or more")
    return step, count


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _damaged(name: str, value: object, requirement: str) -> validate.InputError:
    return validate.invalid_value(
        f"the ledger's {name}", value, requirement, "give what state_dict() returned"
    )


def _sampled(entries: Iterable[tuple[StepRecord, int]], public_size: bool) -> list[Mechanism]:
    """Poisson steps: those with the same noise, rate and batches together.

    A batch that was left out counts as a step: that it was empty is seen.
    """
    total: dict[tuple[float, float, int], int] = {}
    for step, count in entries:
        if step.sampling == "poisson":
            key = (step.noise_multiplier, step.sample_rate, step.batches)
            total[key] = total.get(key, 0) + count * (1 + step.left_out)
    if len(total) > MANY_NOISES:
        total = on_grid(total)
    parts: list[Mechanism] = []
    for (noise, rate, batches), steps in total.items():
        training = DPSGD(noise, rate, steps, public_size=public_size)
        parts.append(training if batches == 1 else Accumulated(training, batches))
    return parts


def _left_out(entries: Iterable[tuple[StepRecord, int]]) -> list[Mechanism]:
    """The cost of empty batches that were left out: any other would have been left out too."""
    records = [step.records for step, _ in entries if step.left_out]
    drawn: dict[float, int] = {}
    for step, count in entries:
        if step.sampling == "poisson":
            batches = count * (step.batches + step.left_out)
            drawn[step.sample_rate] = drawn.get(step.sample_rate, 0) + batches
    return [EmptyBatches(min(records), tuple(drawn.items()))] if records else []


def on_grid(total: dict[tuple[float, float, int], int]) -> dict[tuple[float, float, int], int]:
    """Fewer noise multipliers, each a little smaller than it was: what follows still holds."""
    fewer: dict[tuple[float, float, int], int] = {}
    spacing = math.log1p(NOISE_GRID)
    for (noise, rate, batches), steps in total.items():
        lower = math.exp(math.floor(math.log(noise) / spacing) * spacing)
        key = (max(LEAST_NOISE, min(lower, noise)), rate, batches)
        fewer[key] = fewer.get(key, 0) + steps
    return fewer


def _shuffled(entries: Iterable[tuple[StepRecord, int]]) -> list[Mechanism]:
    """Passes that hold a record once at most: its loss is largest in the step with least noise."""
    least: dict[int, tuple[float, float, int]] = {}  # pass ──► noise, rate of a step, steps
    for step, count in entries:
        if step.sampling == "shuffle":
            rate = min(1.0, step.sample_rate * step.batches)
            noise, largest, steps = least.get(step.pass_index, (math.inf, 0.0, 0))
            smaller = min(noise, step.noise_multiplier)
            least[step.pass_index] = smaller, max(largest, rate), steps + count
    total: dict[tuple[float, float], tuple[int, int]] = {}
    for noise, rate, steps in least.values():
        passes, before = total.get((noise, rate), (0, 0))
        total[noise, rate] = passes + 1, before + steps
    if len(total) > 1:  # a `Composition` adds no pass to them where each ends on whole passes
        return [_whole_passes(noise, rate, passes) for (noise, rate), (passes, _) in total.items()]
    return [_passes(noise, rate, *counts) for (noise, rate), counts in total.items()]


def _passes(noise: float, rate: float, passes: int, steps: int) -> DPSGD:
    """The training of these passes; a pass that was left early counts as a full one."""
    in_pass, _ = steps_in_pass(rate)
    counted = min(max(steps, (passes - 1) * in_pass + 1), passes * in_pass)
    return DPSGD(noise, rate, counted, sampling="shuffle")


def _whole_passes(noise: float, rate: float, passes: int) -> DPSGD:
    """The training of full passes, with the rate of a pass without a smaller batch."""
    in_pass, _ = steps_in_pass(rate)
    return DPSGD(noise, 1.0 / in_pass, passes * in_pass, sampling="shuffle")
