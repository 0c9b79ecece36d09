"""The certified risk of a training, as far as a script tells its parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dprime.check.doubts import doubts
from dprime.check.draws import draw_of
from dprime.check.looks.accounting import epochs_of
from dprime.check.looks.deltas import training_records
from dprime.check.trace import Event, Loop, Trace, certain
from dprime.check.values import Loader, Value, is_default, number, options

if TYPE_CHECKING:
    from dprime.mechanisms import DPSGD, Mechanism
    from dprime.profile import Answer

SHOWN = ("advantage", "epsilon")
"""Of all metrics, those that a check shows."""


@dataclass(frozen=True)
class Risk:
    """What an attacker can do at most.

    Attributes:
        about: what it is the risk of, in words.
        mechanism: what was read.
        adjacency: "add-remove" or "replace".
        answers: the certified numbers.
    """

    about: str
    mechanism: Mechanism
    adjacency: str
    answers: tuple[Answer, ...]

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "about": self.about,
            "mechanism": self.mechanism.describe(),
            "adjacency": self.adjacency,
            "metrics": {answer.name: answer.as_json() for answer in self.answers},
        }


def certified(about: str, mechanism: Mechanism, adjacency: str, delta: float) -> Risk:
    """The risk of a mechanism; it refuses what cannot be certified.

    >>> from dprime import DPSGD
    >>> risk = certified("one run", DPSGD(1.0, 0.01, 2000), "add-remove", 1e-5)
    >>> [round(answer.value, 3) for answer in risk.answers]
    [0.226, 2.584]
    """
    from dprime.profile import Questions, risk_profile  # noqa: PLC0415  it needs SciPy

    curve = mechanism.curve(adjacency)
    answers = risk_profile(curve, Questions(delta=delta))
    return Risk(about, mechanism, adjacency, tuple(a for a in answers if a.name in SHOWN))


@dataclass(frozen=True)
class Reading:
    """Risks that could be computed, and what was missing for the others."""

    risks: tuple[Risk, ...] = ()
    missing: tuple[str, ...] = ()


def read_risk(trace: Trace, records: int | None, delta: float | None) -> Reading:
    """The risk of the script's training, or the names of what it does not tell."""
    events = list(trace.of("private"))
    if len(events) != 1:
        what = "one call of make_private: there are several" if events else "a private training"
        return Reading(missing=(what,))
    event = events[0]
    records = training_records(trace) if records is None else records
    delta = _delta(trace) if delta is None else delta
    unsure = tuple(dict.fromkeys(doubts(trace, event)))
    if event.text == "make_private_with_epsilon":
        return Reading(missing=unsure) if unsure else _promised(event, trace)
    described = _Described(event, trace, records)
    described.missing += unsure
    if described.missing:
        return Reading(missing=tuple(described.missing))
    return _computed(described, 1e-5 if delta is None else delta)


def _delta(trace: Trace) -> float | None:
    asked = [number(e.arguments.get("delta")) for e in trace.of("epsilon")]
    known = [each for each in asked if each is not None and 0 < each < 1]
    return known[-1] if known else None


def _promised(event: Event, trace: Trace) -> Reading:
    """With a target ε the noise is Opacus' choice; the target itself bounds the risk."""
    taken = [epochs_of(step, event) for step in trace.private_steps()]
    planned = number(event.arguments.get("epochs"))
    known = [each for each in taken if each is not None]
    if not taken or len(known) < len(taken) or planned is None or sum(known) > planned:
        return Reading(missing=("a training of as many epochs as the target is for",))
    epsilon = number(event.arguments.get("target_epsilon"))
    delta = number(event.arguments.get("target_delta"))
    if epsilon is None or delta is None or not 0 <= delta < 1 or epsilon <= 0:
        return Reading(missing=("target_epsilon and target_delta as numbers",))
    from dprime.guarantees import EpsilonDelta  # noqa: PLC0415  they need SciPy
    from dprime.mechanisms import DEFAULT_ADJACENCY  # noqa: PLC0415

    about = "a training that keeps its target ε, whatever noise Opacus chose for it"
    risk = certified(about, EpsilonDelta(epsilon, delta), DEFAULT_ADJACENCY, delta)
    return Reading((risk,))


class _Described:
    """Noise, rate, steps and runs of a script's one private training."""

    def __init__(self, event: Event, trace: Trace, records: int | None) -> None:
        self.missing: list[str] = []
        self.defaults = False
        self.shuffled = certain(event.arguments.get("poisson_sampling"), False)
        self.noise = self._number("noise_multiplier", event.arguments.get("noise_multiplier"))
        self.batches = self._batches(event, records)
        self.steps = self._steps(event, trace)
        self.runs = _product([loop.times for loop in event.loops])
        self.repeated = self.runs != 1
        whole = all(draw_of(step, trace).shuffled for step in trace.private_steps())
        if self.shuffled and not whole:
            self.missing.append("shuffled batches that are taken pass by pass")

    def _number(self, name: str, value: Value | None) -> float | None:
        found = number(value)
        if found is None or found <= 0:
            self.missing.append(f"{name} as a number")
            return None
        self.defaults |= is_default(value)
        return found

    def _batches(self, event: Event, records: int | None) -> int | None:
        """Batches in an epoch, whose inverse is Opacus' rate: ceil(N / B)."""
        loaders = options(event.arguments.get("data_loader"))
        if records is None:
            self.missing.append("the number of records (--records)")
        loader = loaders[0] if len(loaders) == 1 else None
        if not isinstance(loader, Loader):
            self.missing.append("the DataLoader with its batch_size")
            return None
        size = self._number("batch_size", loader.batch_size)
        if records is None or size is None:
            return None
        count = records / size
        return max(1, math.floor(count) if loader.drop_last else math.ceil(count))

    def _steps(self, event: Event, trace: Trace) -> int | None:
        """Steps of the loops around optimizer.step(), but for those around make_private."""
        total = 0
        for step in trace.private_steps():
            loops = [loop for loop in step.loops if loop not in event.loops]
            if not step.sure or not loops:
                self.missing.append(f"how often step() in line {step.line} is called")
                return None
            count = 1
            for loop in loops:
                times = self._times(loop)
                if times is None:
                    return None
                count *= times
            total += count
        if not total:
            self.missing.append("the number of steps: no loop with optimizer.step() was followed")
        return total or None

    def _times(self, loop: Loop) -> int | None:
        """How often a loop runs."""
        if loop.kind == "batches" and loop.times is None:
            return self.batches
        times = number(loop.times)
        if times is None:
            self.missing.append(f"how often the loop in line {loop.line} runs")
            return None
        self.defaults |= is_default(loop.times)
        return int(times)


def _product(times: list[Value | None]) -> int | None:
    """How often nested loops run together."""
    total = 1
    for each in times:
        count = number(each)
        if count is None:
            return None
        total *= int(count)
    return total


def _computed(found: _Described, delta: float) -> Reading:
    assert found.noise is not None
    assert found.batches is not None
    assert found.steps is not None
    sampling, adjacency = ("shuffle", "replace") if found.shuffled else ("poisson", "add-remove")
    about = "one training" if found.repeated else "the training"
    if found.defaults:
        about += " with the defaults of its command line"
    risks, missing = [], []
    try:
        one = _training(found, 1, sampling)
        risks.append(certified(about, one, adjacency, delta))
        if found.repeated and found.runs is not None and found.runs > 1:
            together = _training(found, found.runs, sampling)
            named = f"all {found.runs:,} trainings together"
            risks.append(certified(named, together, adjacency, delta))
        elif found.repeated:
            missing.append("the number of trainings, for the risk of all of them together")
    except ValueError as error:
        missing.append(f"parameters that can be certified ({str(error).rstrip('.')})")
    return Reading(tuple(risks), tuple(missing))


def _training(found: _Described, runs: int, sampling: str) -> DPSGD:
    assert found.batches is not None
    assert found.steps is not None
    from dprime.mechanisms import DPSGD  # noqa: PLC0415  it needs SciPy

    rate, steps = 1.0 / found.batches, found.steps * runs
    return DPSGD(found.noise, rate, steps, sampling=sampling)  # type: ignore[arg-type]
