"""A saved run: a description in JSON, an Opacus checkpoint, or a monitor's state."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dprime import text, validate
from dprime.check.files import ZIP
from dprime.check.looks.deltas import judged
from dprime.check.looks.updates import LARGE_NORM
from dprime.check.report import Report
from dprime.check.risk import Reading, Risk, certified
from dprime.check.rules import Finding
from dprime.check.states import LOOKED_FOR, TAILS_UNKNOWN, check_state
from dprime.interop import from_opacus_history, gdp_epsilon
from dprime.mechanisms import (
    ADJACENCIES,
    DPSGD,
    SAMPLINGS,
    Composition,
    Mechanism,
)
from dprime.monitor.ledger import Ledger

KEYS = (
    "noise_multiplier", "sample_rate", "batch_size", "records", "steps", "epochs", "delta",
    "max_grad_norm", "sampling", "adjacency", "tuning_runs", "history", "mechanism",
    "library", "drop_last",
)  # fmt: skip
"""What a description may have; `history` and `mechanism` are those of an Opacus accountant."""

USUAL_ADJACENCY = "zero-out"
"""With Poisson batches Opacus computes rate, divisor and steps from the number of records."""

LIBRARIES = ("opacus", "other")
"""Opacus rounds the rate: it is one over the number of batches."""


def check_description(
    path: str, values: object, *, records: int | None = None, delta: float | None = None
) -> Report:
    """Judge a run that is described by plain values.

    >>> run = {"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 2000, "delta": 0.01}
    >>> [finding.code for finding in check_description("run.json", run).findings]
    ['DP502']
    """
    if not isinstance(values, Mapping) or not values:
        remedy = "give noise_multiplier, sample_rate and steps"
        raise validate.invalid_input(
            path, "something else", "a JSON object that describes a run", remedy
        )
    for key in values:
        validate.one_of(f"key in {path}", key, KEYS)
    run = _Run({**values}, records, delta)
    return run.report(path)


class _Run:
    """A described run, its values checked."""

    def __init__(self, values: dict[str, Any], records: int | None, delta: float | None) -> None:
        self.values = values
        if records is None and values.get("records") is not None:
            records = validate.whole("records", values["records"], example=60_000)
        self.records = records
        self.delta = delta
        if delta is None and values.get("delta") is not None:
            self.delta = validate.inner_probability("delta", values["delta"], example="1e-5")
        self.sampling = validate.one_of("sampling", values.get("sampling", "poisson"), SAMPLINGS)
        own = USUAL_ADJACENCY if self.sampling == "poisson" else "replace"
        self.adjacency = validate.one_of("adjacency", values.get("adjacency", own), ADJACENCIES)
        self.library = validate.one_of("library", values.get("library", "other"), LIBRARIES)
        self.runs = validate.whole("tuning_runs", values.get("tuning_runs", 1), example=1)

    def report(self, path: str) -> Report:
        found = [*self._findings()]
        codes = {finding.code for finding in found}
        void = sorted(codes & {"DP408", "DP409"})
        if "history" in self.values and self.sampling != "poisson":
            reading = Reading(missing=("Poisson batches: a history is of no others",))
        else:
            reading = _void(void) if void else self._reading()
        return Report(
            path, "saved run", tuple(found), reading=reading, looked_for=LOOKED_FOR,
            unclear=self._about_rate(),
        )  # fmt: skip

    def _findings(self) -> Iterator[Finding]:
        if self.sampling != "poisson":
            sentence = f"sampling is {self.sampling}, which Opacus accounts as Poisson."
            yield Finding("DP101", None, sentence)
        norm = self.values.get("max_grad_norm")
        if norm is not None and _positive_or_inf("max_grad_norm", norm) >= LARGE_NORM:
            sentence = f"max_grad_norm is {norm:g}: hardly any gradient is that long."
            yield Finding("DP307", None, sentence)
        if self._noise() == 0:
            yield Finding("DP408", None, "noise_multiplier is 0.")
        if "history" in self.values:
            history = checked_history(self.values["history"])
            yield from history_findings(history)
            if self.values.get("mechanism") == "gdp":
                yield from gdp_findings(history, self.delta)
        if self.delta is not None:
            yield from judged(self.delta, self.records, None)
        if self.runs > 1:
            sentence = f"The run is one of {self.runs:,} on the same data."
            yield Finding("DP601", None, sentence)

    def _noise(self) -> float | None:
        noise = self.values.get("noise_multiplier")
        return None if noise is None else validate.at_least_zero("noise_multiplier", noise)

    def _reading(self) -> Reading:
        delta = 1e-5 if self.delta is None else self.delta
        one = self._mechanism()
        risks = [certified("the run", one, self.adjacency, delta)]
        if self.runs > 1:
            together: Mechanism = Composition(*[one] * self.runs)
            if isinstance(one, DPSGD) and one.sampling != "shuffle":  # there, a run begins a pass
                together = one.with_parameter("steps", int(one.steps or 1) * self.runs)
            about = f"all {self.runs:,} runs together"
            risks.append(certified(about, together, self.adjacency, delta))
        return Reading(tuple(risks))

    def _mechanism(self) -> Mechanism:
        if "history" in self.values:
            return from_opacus_history(self.values["history"])
        noise = self._noise()
        if noise is None:
            raise validate.invalid_input(
                "noise_multiplier", "missing", "given", "add it to the file"
            )
        rate = self._rate()
        return DPSGD(noise, rate, self._steps(rate), sampling=self.sampling)  # type: ignore[arg-type]

    def _rate(self) -> float:
        given = {name: self.values.get(name) for name in ("sample_rate", "batch_size")}
        remedy = "add sample_rate, or batch_size with records"
        if validate.exactly_one("sample_rate, batch_size", given, remedy) == "sample_rate":
            return validate.rate("sample_rate", given["sample_rate"])
        size = validate.whole("batch_size", given["batch_size"], example=256)
        if self.records is None:
            raise validate.invalid_input("records", "missing", "given with batch_size", "add it")
        if size > self.records:
            remedy = "mend one of the two"
            more = f"{size:,} for {self.records:,}"
            raise validate.invalid_input(
                "batch_size", more, "at most the number of records", remedy
            )
        if not self._rounded():
            return size / self.records
        # A loader may leave out a last batch that is not full: more passes in as many steps.
        fewer = self.records // size if self._fewest_batches() else math.ceil(self.records / size)
        return 1.0 / fewer

    def _fewest_batches(self) -> bool:
        """Whether a pass has as few batches as it may have; assumed where a number of steps is."""
        said = self.values.get("drop_last", self.values.get("steps") is not None)
        if not isinstance(said, bool):
            raise validate.invalid_value("drop_last", said, "true or false", "mend it")
        return said

    def _rounded(self) -> bool:
        """Whether the rate is one over the number of batches."""
        return self.library == "opacus" or self.sampling == "shuffle"

    def _about_rate(self) -> tuple[str, ...]:
        """How the rate was taken from the size of the batches, in a sentence."""
        if self.values.get("batch_size") is None or "history" in self.values:
            return ()
        if self._rounded():
            way = "down" if self._fewest_batches() else "up"
            said = "" if "drop_last" in self.values else '; say "drop_last": true or false'
            return (
                "The rate is one over the number of batches, records/batch_size rounded "
                f"{way}{said}.",
            )
        opacus = 'for Opacus\' own, one over the number of batches, add "library": "opacus"'
        return (f"The rate is batch_size/records; {opacus}.",)

    def _steps(self, rate: float) -> int:
        given = {name: self.values.get(name) for name in ("steps", "epochs")}
        remedy = "add one of them"
        if validate.exactly_one("steps, epochs", given, remedy) == "steps":
            return validate.whole("steps", given["steps"])
        epochs = validate.positive("epochs", given["epochs"], example=30)
        return math.ceil(epochs * math.ceil(1.0 / rate - 1e-9))


def _positive_or_inf(name: str, value: object) -> float:
    if isinstance(value, float) and math.isinf(value):
        return value
    return validate.positive(name, value)


def checked_history(history: Any) -> list[tuple[float, float, int]]:
    """An accountant's history, if it is one: noise, rate and steps of each entry."""
    remedy = "pass accountant.history as it is"
    if not isinstance(history, list | tuple):
        kind = f"of the type {type(history).__name__}"
        raise validate.invalid_input("history", kind, "a list of (noise, rate, steps)", remedy)
    checked = []
    for entry in history:
        if not isinstance(entry, list | tuple) or len(entry) != 3:
            raise validate.InputError.of(
                "history",
                "hold triples (noise, rate, steps)",
                f"one entry is {entry!r}",
                f"{remedy}",
            )
        noise = validate.at_least_zero("noise_multiplier", entry[0])
        rate = validate.rate("sample_rate", entry[1])
        checked.append((noise, rate, validate.whole("steps", entry[2])))
    return checked


def history_findings(history: list[tuple[float, float, int]]) -> Iterator[Finding]:
    """An accountant that counted nothing, or steps without noise."""
    if not history:
        yield Finding("DP409", None, "The accountant has counted no step.")
        return
    if any(noise == 0 for noise, _, _ in history):
        yield Finding("DP408", None, "Steps were taken with noise 0.")


def gdp_findings(history: list[tuple[float, float, int]], delta: float | None) -> Iterator[Finding]:
    """The ε of Opacus' "gdp" accountant, and the one that is proved."""
    if not history or any(noise == 0 for noise, _, _ in history):
        return
    at = 1e-5 if delta is None else delta
    own, proved = gdp_epsilon(history, at), from_opacus_history(history).curve().epsilon(at)
    if own < proved:
        yield Finding("DP413", None, text.two_epsilons(own, proved, at))


def read_saved(path: Path, start: bytes) -> object:
    """The plain values of a file of torch.save or JSON."""
    if start.startswith(ZIP):
        return _load(path)
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise validate.invalid_input(
            str(path), f"not ({error})", "JSON that can be read", "mend it"
        ) from None


def _load(path: Path) -> object:
    if find_spec("torch") is None:
        lacking = "installed to read a checkpoint"
        raise validate.invalid_input("PyTorch", "missing", lacking, text.install("train"))
    import torch  # noqa: PLC0415  only checkpoints need it

    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # whatever torch raises: the file is not what it should be
        raise validate.invalid_input(
            str(path), "of another kind", "a checkpoint of plain values and tensors",
            "save state_dicts, not objects; the accountant's is enough",
        ) from None  # fmt: skip


def check_saved(
    path: str, values: object, *, records: int | None = None, delta: float | None = None
) -> Report:
    """Judge a checkpoint, a monitor's state, or a description."""
    if isinstance(values, Mapping) and "ledger" in values:
        return check_state(path, values, records, delta)
    if not path.endswith(".json") and isinstance(values, Mapping) and "history" not in values:
        return _check_checkpoint(path, values, records, delta)
    return check_description(path, values, records=records, delta=delta)


def _void(codes: list[str]) -> Reading:
    return Reading(missing=(f"a run without errors ({', '.join(codes)})",))


def _part(saved: Mapping[str, Any], *keys: str) -> Mapping[str, Any] | None:
    """The first state in a checkpoint that has these keys, whatever it is called there."""
    for value in saved.values():
        if isinstance(value, Mapping) and all(key in value for key in keys):
            return value
    return None


def _check_checkpoint(
    path: str, saved: Mapping[str, Any], records: int | None, delta: float | None
) -> Report:
    accountant = _part(saved, "history", "mechanism")
    _refuse_several(path, saved)
    monitor = _part(saved, "ledger", "adjacency")
    if monitor is not None:
        return _check_both(path, saved, monitor, records, delta)
    if accountant is None:
        finding = Finding("DP409", None, "The checkpoint has no accountant.")
        return Report(path, "saved run", (finding,), looked_for=LOOKED_FOR)
    history = checked_history(accountant["history"])
    found = [*history_findings(history), *_mixing(saved), *_uncounted(saved, history)]
    if accountant["mechanism"] == "gdp":
        found += gdp_findings(history, delta)
    if delta is not None:
        found += judged(delta, records, None)
    risks: tuple[Risk, ...] = ()
    errors = {finding.code for finding in found if finding.rule.severity == "error"}
    if not errors:
        about = "the steps that the accountant counted"
        mechanism = from_opacus_history(history)
        risks = (certified(about, mechanism, USUAL_ADJACENCY, 1e-5 if delta is None else delta),)
    reading = _void(sorted(errors)) if errors else Reading(risks)
    return Report(
        path, "saved run", tuple(found), reading=reading, looked_for=LOOKED_FOR,
        unclear=("An accountant does not tell whether its batches were Poisson.", TAILS_UNKNOWN),
    )  # fmt: skip


def _refuse_several(path: str, saved: Mapping[str, Any]) -> None:
    """Two accountants may have counted two parts of a training, or two trainings."""
    counts = [name for name, value in saved.items() if _is_accountant(value)]
    if len(counts) > 1:
        shown = f"one with {len(counts)} ({', '.join(map(str, counts))})"
        remedy = "check each alone; for one training, give the history of all of them together"
        raise validate.invalid_input(path, shown, "a checkpoint with one accountant", remedy)


def _is_accountant(value: object) -> bool:
    return isinstance(value, Mapping) and "history" in value and "mechanism" in value


def _check_both(
    path: str,
    saved: Mapping[str, Any],
    monitor: Mapping[str, Any],
    records: int | None,
    delta: float | None,
) -> Report:
    """The monitor's state, held against the accountant's and the optimizer's in the same file."""
    report = check_state(path, monitor, records, delta)
    accountant = _part(saved, "history", "mechanism") or {"history": []}
    counted = sum(steps for _, _, steps in checked_history(accountant["history"]))
    seen = Ledger.from_state(monitor["ledger"])
    history = [(1.0, 1.0, seen.steps)] if seen.steps else []
    more = [*_mixing(saved), *_uncounted(saved, history, "monitor")]
    if counted > seen.steps:
        sentence = f"The accountant counted {counted:,} steps, the monitor saw {seen.steps:,}."
        more.append(Finding("DP409", None, sentence))
    errors = sorted({each.code for each in more if each.rule.severity == "error"})
    reading = _void(errors) if errors else report.reading
    return replace(report, findings=(*report.findings, *more), reading=reading)


def _mixing(saved: Mapping[str, Any]) -> Iterator[Finding]:
    states = [value for value in saved.values() if isinstance(value, Mapping)]
    names = [n for state in states for n in state if str(n).endswith("num_batches_tracked")]
    if names:
        layer = names[0].rpartition(".")[0].removeprefix("_module.")
        sentence = f"The model has layers with running statistics of batches ({layer})."
        yield Finding("DP201", None, sentence)


def _uncounted(
    saved: Mapping[str, Any], history: list[tuple[float, float, int]], counter: str = "accountant"
) -> Iterator[Finding]:
    """Optimizers such as Adam count their own steps."""
    optimizer = _part(saved, "state", "param_groups") or {"state": {}}
    taken = [float(each["step"]) for each in optimizer["state"].values() if "step" in each]
    counted = sum(steps for _, _, steps in history)
    if taken and history and max(taken) > counted:
        sentence = f"The optimizer took {max(taken):,.0f} steps, the {counter} counted {counted:,}."
        yield Finding("DP409", None, sentence)
