"""A saved run: a description in JSON, an Opacus checkpoint, or a monitor's state."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dprime import bounded, parameters, text, validate
from dprime.check.report import Finding, Report, RunRisks
from dprime.check.rules.updates import huge_norm
from dprime.check.source import LONGEST_NOTEBOOK, ZIP
from dprime.check.states import (
    TAILS_UNKNOWN,
    certified,
    check_state,
    delta_findings,
    saved_run,
    void,
)
from dprime.interop import History, from_opacus, gdp_epsilon, opacus_history
from dprime.mechanisms import ADJACENCIES, DPSGD, SAMPLINGS, Composition, Mechanism
from dprime.monitor.ledger import Ledger

KEYS = (
    *("noise_multiplier", "sample_rate", "batch_size", "dataset_size", "steps", "epochs", "delta"),
    *("max_grad_norm", "sampling", "adjacency", "tuning_runs", "history", "mechanism", "library"),
    "drop_last",
)
"""What a description may have; `history` and `mechanism` are those of an Opacus accountant."""

USUAL_ADJACENCY = "zero-out"
"""With Poisson batches Opacus computes rate, divisor and steps from the number of records."""

# Descriptions.


def check_description(
    path: str, values: object, *, dataset_size: int | None = None, delta: float | None = None
) -> Report:
    """Judge a run that is described by plain values.

    >>> run = {"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 2000, "delta": 0.01}
    >>> [finding.code for finding in check_description("run.json", run).findings]
    ['DP502']
    """
    if not isinstance(values, Mapping) or not values:
        wanted = "a JSON object that describes a run"
        remedy = "give noise_multiplier, sample_rate and steps"
        raise validate.invalid_input(path, "something else", wanted, remedy)
    for key in values:
        validate.one_of(f"key in {path}", key, KEYS)
    asked = {"dataset_size": dataset_size, "delta": delta}
    run = _Run({**values, **{name: each for name, each in asked.items() if each is not None}})
    found = (*run.findings(),)
    reading = void(each for each in found if each.code != "DP101")
    if run.history is not None and run.sampling != "poisson":
        reading = RunRisks(missing=("Poisson batches: a history is of no others",))
    reading = reading or run.risks()
    return saved_run(path, findings=found, reading=reading, unresolved=run.about_rate())


class _Run:
    """A described run, its values checked."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self.records = self._given("dataset_size", validate.whole, example=60_000)
        self.delta = self._given("delta", validate.inner_probability, example="1e-5")
        self.noise = self._given("noise_multiplier", validate.at_least_zero)
        self.sampling = self._word("sampling", SAMPLINGS, "poisson")
        own = USUAL_ADJACENCY if self.sampling == "poisson" else "replace"
        self.adjacency = self._word("adjacency", ADJACENCIES, own)
        library = self._word("library", ("opacus", "other"), "other")
        self.rounds = library == "opacus" or self.sampling == "shuffle"  # 1/batches is the rate
        self.runs = validate.whole("tuning_runs", values.get("tuning_runs", 1), example=1)
        self.history = opacus_history(values["history"]) if "history" in values else None

    def _given(self, name: str, check: Any, **more: Any) -> Any:
        value = self.values.get(name)
        return None if value is None else check(name, value, **more)

    def _word(self, name: str, words: tuple[str, ...], usual: str) -> str:
        return validate.one_of(name, self.values.get(name, usual), words)

    def findings(self) -> Iterator[Finding]:
        if self.sampling != "poisson":
            sentence = f"sampling is {self.sampling}, which Opacus accounts as Poisson."
            yield Finding("DP101", sentence)
        norm = self.values.get("max_grad_norm")
        if norm is not None and norm != math.inf:
            norm = validate.positive("max_grad_norm", norm)
        if sentence := huge_norm(norm):
            yield Finding("DP307", sentence)
        if self.noise == 0:
            yield Finding("DP408", "noise_multiplier is 0.")
        if self.history is not None:
            yield from history_findings(self.history, self.values.get("mechanism"), self.delta)
        yield from delta_findings(self.delta, self.records)
        if self.runs > 1:
            yield Finding("DP601", f"The run is one of {self.runs:,} on the same data.")

    def risks(self) -> RunRisks:
        one = from_opacus(self.history) if self.history is not None else self._described()
        risks = [certified("the run", one, self.adjacency, self.delta)]
        if self.runs > 1:
            together: Mechanism = Composition(*[one] * self.runs)
            if isinstance(one, DPSGD) and one.sampling != "shuffle":  # there, a run begins a pass
                together = one.with_parameter("steps", int(one.steps or 1) * self.runs)
            about = f"all {self.runs:,} runs together"
            risks.append(certified(about, together, self.adjacency, self.delta))
        return RunRisks(tuple(risks))

    def _described(self) -> DPSGD:
        if self.noise is None:
            raise validate.invalid_input("noise_multiplier", "missing", "given", "add it")
        remedy = "add sample_rate, or batch_size with dataset_size"
        if self._one_of("sample_rate", "batch_size", remedy) == "sample_rate":
            rate = validate.rate("sample_rate", self.values["sample_rate"])
        else:
            rate = parameters.rate_of_sizes(self.values["batch_size"], self.records)
            rate = 1.0 / self._batches() if self.rounds else rate
        if self._one_of("steps", "epochs", "add one of them") == "steps":
            steps = validate.whole("steps", self.values["steps"])
        else:
            epochs = validate.positive("epochs", self.values["epochs"], example=30)
            steps = math.ceil(epochs * math.ceil(1.0 / rate - 1e-9))
        return DPSGD(self.noise, rate, steps, sampling=self.sampling)  # type: ignore[arg-type]

    def _one_of(self, name: str, other: str, remedy: str) -> str:
        given = {each: self.values.get(each) for each in (name, other)}
        return validate.exactly_one(f"{name}, {other}", given, remedy)

    def _batches(self) -> int:
        """A loader may leave out a last batch that is not full: more passes in as many steps."""
        size = validate.whole("batch_size", self.values["batch_size"], example=256)
        assert self.records is not None
        return int(self.records // size if self._drops_last() else -(-self.records // size))

    def _drops_last(self) -> bool:
        """Whether a pass has as few batches as it may have; assumed where a number of steps is."""
        said = self.values.get("drop_last", self.values.get("steps") is not None)
        if not isinstance(said, bool):
            raise validate.invalid_value("drop_last", said, "true or false", "mend it")
        return said

    def about_rate(self) -> tuple[str, ...]:
        """How the rate was taken from the size of the batches, in a sentence."""
        if self.values.get("batch_size") is None or self.history is not None:
            return ()
        if not self.rounds:
            opacus = 'for Opacus\' own, one over the number of batches, add "library": "opacus"'
            return (f"The rate is batch_size/dataset_size; {opacus}.",)
        how = f"dataset_size/batch_size rounded {'down' if self._drops_last() else 'up'}"
        said = "" if "drop_last" in self.values else '; say "drop_last": true or false'
        return (f"The rate is one over the number of batches, {how}{said}.",)


# Histories of accountants.


def history_findings(history: History, by: object, delta: float | None) -> Iterator[Finding]:
    """An accountant that counted nothing or steps without noise, or says too small an ε."""
    if not history:
        yield Finding("DP409", "The accountant has counted no step.")
    elif any(noise == 0 for noise, _, _ in history):
        yield Finding("DP408", "Steps were taken with noise 0.")
    elif by == "gdp":
        at = 1e-5 if delta is None else delta
        own, proved = gdp_epsilon(history, at), from_opacus(history).curve().epsilon(at)
        if own < proved:
            yield Finding("DP413", text.two_epsilons(own, proved, at))


# Files of torch.save.


def read_saved(path: Path, start: bytes) -> object:
    """The plain values of a file of torch.save or JSON."""
    if not start.startswith(ZIP):
        try:
            content = bounded.read_bytes(path, LONGEST_NOTEBOOK, "give a shorter one")
            return json.loads(content.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise validate.invalid_input(
                str(path), f"not ({error})", "JSON that can be read", "mend it"
            ) from None
    if find_spec("torch") is None:
        lacking = "installed to read a checkpoint"
        raise validate.invalid_input("PyTorch", "missing", lacking, text.install("train"))
    import torch  # noqa: PLC0415  only checkpoints need it

    try:
        _check_size(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # whatever torch raises: the file is not what it should be
        wanted = "a checkpoint of plain values and tensors"
        remedy = "save state_dicts, not objects; the accountant's is enough"
        raise validate.invalid_input(str(path), "of another kind", wanted, remedy) from None


def _check_size(path: Path) -> None:
    """Refuse a file that takes more memory than it has bytes: PyTorch itself would not."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        doubled = sum(each.file_size for each in members) > path.stat().st_size
        packed = any(each.compress_type for each in members)
        pickles = (archive.read(each) for each in members if each.filename.endswith(".pkl"))
        if doubled or packed or any(b"bytearray" in each for each in pickles):
            raise zipfile.BadZipFile


def check_saved(
    path: str, values: object, *, dataset_size: int | None = None, delta: float | None = None
) -> Report:
    """Judge a checkpoint, a monitor's state, a description, or an accountant's history alone."""
    if isinstance(values, list) and any(isinstance(each, list) for each in values):
        values = {"history": values}
    if isinstance(values, Mapping) and "ledger" in values:
        return check_state(path, values, dataset_size, delta)
    if not path.endswith(".json") and isinstance(values, Mapping) and "history" not in values:
        return _check_checkpoint(path, values, dataset_size, delta)
    return check_description(path, values, dataset_size=dataset_size, delta=delta)


def _states(saved: Mapping[str, Any], *keys: str) -> dict[str, Mapping[str, Any]]:
    """The states in a checkpoint that have these keys, whatever they are called there."""
    held = {name: each for name, each in saved.items() if isinstance(each, Mapping)}
    return {name: each for name, each in held.items() if {*keys} <= {*each}}


def _check_checkpoint(
    path: str, saved: Mapping[str, Any], dataset_size: int | None, delta: float | None
) -> Report:
    """Two accountants may have counted two parts of a training, or two trainings."""
    found = _states(saved, "history", "mechanism")
    if len(found) > 1:
        shown = f"one with {len(found)} ({', '.join(map(str, found))})"
        remedy = "check each alone; for one training, give the history of all of them together"
        raise validate.invalid_input(path, shown, "a checkpoint with one accountant", remedy)
    accountant = next(iter(found.values()), None)
    history = opacus_history(accountant["history"]) if accountant is not None else []
    for monitor in _states(saved, "ledger", "adjacency").values():
        report = check_state(path, monitor, dataset_size, delta)
        more = [*_contradictions(saved, history, Ledger.from_state(monitor["ledger"]))]
        whole = void(more) or report.reading
        return replace(report, findings=(*report.findings, *more), reading=whole)
    if accountant is None:
        return saved_run(path, findings=(Finding("DP409", "The checkpoint has no accountant."),))
    findings = (
        *history_findings(history, accountant["mechanism"], delta),
        *_contradictions(saved, history, None),
        *delta_findings(delta, dataset_size),
    )
    reading = void(findings)
    if reading is None:
        about, mechanism = "the steps that the accountant counted", from_opacus(history)
        reading = RunRisks((certified(about, mechanism, USUAL_ADJACENCY, delta),))
    unknown = "An accountant does not tell whether its batches were Poisson."
    return saved_run(path, findings=findings, reading=reading, unresolved=(unknown, TAILS_UNKNOWN))


def _contradictions(
    saved: Mapping[str, Any], history: History, ledger: Ledger | None
) -> Iterator[Finding]:
    """What the model and the optimizer in the same file say against the count."""
    names = [str(name) for state in _states(saved).values() for name in state]
    for name in [each for each in names if each.endswith("num_batches_tracked")][:1]:
        layer = name.rpartition(".")[0].removeprefix("_module.")
        sentence = f"The model has layers with running statistics of batches ({layer})."
        yield Finding("DP201", sentence)
    optimizers = [*_states(saved, "state", "param_groups").values()][:1]
    steps = [each["step"] for one in optimizers for each in one["state"].values() if "step" in each]
    taken, counted = max(map(float, steps), default=0.0), sum(steps for _, _, steps in history)
    by, seen = ("accountant", counted) if ledger is None else ("monitor", ledger.steps)
    if 0 < seen < taken:
        yield Finding("DP409", f"The optimizer took {taken:,.0f} steps, the {by} counted {seen:,}.")
    if ledger is not None and counted > seen:
        sentence = f"The accountant counted {counted:,} steps, the monitor saw {seen:,}."
        yield Finding("DP409", sentence)
