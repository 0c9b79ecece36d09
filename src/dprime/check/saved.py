"""A saved run: a description in JSON, an Opacus checkpoint, or a monitor's state."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dprime import text, validate
from dprime.check.files import ZIP
from dprime.check.report import Finding, Reading, Report, Risk
from dprime.check.rules.accounting import too_large
from dprime.check.rules.updates import LARGE_NORM
from dprime.interop import from_opacus_history, gdp_epsilon
from dprime.mechanisms import ADJACENCIES, DPSGD, SAMPLINGS, Composition, Mechanism
from dprime.metrics import profile, risk_profile
from dprime.monitor.ledger import Ledger
from dprime.monitor.tails import NoiseEnds, with_tails

History = list[tuple[float, float, int]]
"""Noise, rate and steps, as an Opacus accountant counts them."""

LOOKED_FOR = ("DP101", "DP201", "DP307", "DP408", "DP409", "DP413", "DP501", "DP502", "DP601")
"""What a saved run can show."""

SHOWN = ("advantage", "epsilon")
"""Of all metrics, those that a check shows."""

KEYS = (
    *("noise_multiplier", "sample_rate", "batch_size", "records", "steps", "epochs", "delta"),
    *("max_grad_norm", "sampling", "adjacency", "tuning_runs", "history", "mechanism", "library"),
    "drop_last",
)
"""What a description may have; `history` and `mechanism` are those of an Opacus accountant."""

USUAL_ADJACENCY = "zero-out"
"""With Poisson batches Opacus computes rate, divisor and steps from the number of records."""

READABLE = ("DPSGD", "Gaussian")
"""Mechanisms beside a monitor's steps that are made again from their description."""

TAILS_UNKNOWN = (
    "The file does not say whether Opacus' secure_mode was on: the tails that PyTorch's own noise "
    "lacks are not in the numbers."
)
SAVE_AGAIN = "save Monitor.state_dict() again"


def certified(about: str, mechanism: Mechanism, adjacency: str, delta: float | None) -> Risk:
    """The risk of a mechanism; it refuses what cannot be certified.

    >>> from dprime import DPSGD
    >>> risk = certified("one run", DPSGD(1.0, 0.01, 2000), "add-remove", 1e-5)
    >>> [round(answer.value, 3) for answer in risk.answers]
    [0.226, 2.584]
    """
    curve = mechanism.curve(adjacency)
    answers = risk_profile(curve, profile(delta=1e-5 if delta is None else delta))
    return Risk(about, mechanism, adjacency, tuple(a for a in answers if a.name in SHOWN))


def _report(
    path: str,
    found: Iterable[Finding],
    reading: Reading,
    unclear: Iterable[str] = (),
    *,
    monitored: bool = False,
) -> Report:
    return Report(
        path, "saved run", tuple(found), reading=reading, unclear=tuple(unclear),
        looked_for=LOOKED_FOR, monitored=monitored,
    )  # fmt: skip


def _void(found: Iterable[Finding]) -> Reading | None:
    """What stands in place of a number where there is an error."""
    codes = sorted({each.code for each in found if each.rule.severity == "error"})
    return Reading(missing=(f"a run without errors ({', '.join(codes)})",)) if codes else None


def _delta_findings(delta: float | None, records: int | None) -> Iterator[Finding]:
    judged = None if delta is None else too_large(delta, records)
    if judged is not None:
        yield Finding(judged[0], None, judged[1])


# Descriptions.


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
    found = [*run.findings()]
    void = _void(each for each in found if each.code != "DP101")
    if "history" in values and run.sampling != "poisson":
        void = Reading(missing=("Poisson batches: a history is of no others",))
    return _report(path, found, void or Reading(tuple(run.risks())), run.about_rate())


class _Run:
    """A described run, its values checked."""

    def __init__(self, values: dict[str, Any], records: int | None, delta: float | None) -> None:
        self.values = values
        given = values.get("records") if records is None else records
        self.records = None if given is None else validate.whole("records", given, example=60_000)
        level = values.get("delta") if delta is None else delta
        self.delta = (
            None if level is None else validate.inner_probability("delta", level, example="1e-5")
        )
        self.sampling = self._word("sampling", SAMPLINGS, "poisson")
        own = USUAL_ADJACENCY if self.sampling == "poisson" else "replace"
        self.adjacency = self._word("adjacency", ADJACENCIES, own)
        self.library = self._word("library", ("opacus", "other"), "other")
        self.runs = validate.whole("tuning_runs", values.get("tuning_runs", 1), example=1)
        noise = values.get("noise_multiplier")
        self.noise = None if noise is None else validate.at_least_zero("noise_multiplier", noise)
        self.history = checked_history(values["history"]) if "history" in values else None

    def _word(self, name: str, words: Iterable[str], usual: str) -> str:
        return validate.one_of(name, self.values.get(name, usual), tuple(words))

    def findings(self) -> Iterator[Finding]:
        if self.sampling != "poisson":
            sentence = f"sampling is {self.sampling}, which Opacus accounts as Poisson."
            yield Finding("DP101", None, sentence)
        norm = self.values.get("max_grad_norm")
        if norm is not None and norm != math.inf:
            norm = validate.positive("max_grad_norm", norm)
        if norm is not None and norm >= LARGE_NORM:
            sentence = f"max_grad_norm is {norm:g}: hardly any gradient is that long."
            yield Finding("DP307", None, sentence)
        if self.noise == 0:
            yield Finding("DP408", None, "noise_multiplier is 0.")
        if self.history is not None:
            yield from history_findings(self.history, self.values.get("mechanism"), self.delta)
        yield from _delta_findings(self.delta, self.records)
        if self.runs > 1:
            sentence = f"The run is one of {self.runs:,} on the same data."
            yield Finding("DP601", None, sentence)

    def risks(self) -> Iterator[Risk]:
        one = self._mechanism()
        yield certified("the run", one, self.adjacency, self.delta)
        if self.runs > 1:
            together: Mechanism = Composition(*[one] * self.runs)
            if isinstance(one, DPSGD) and one.sampling != "shuffle":  # there, a run begins a pass
                together = one.with_parameter("steps", int(one.steps or 1) * self.runs)
            about = f"all {self.runs:,} runs together"
            yield certified(about, together, self.adjacency, self.delta)

    def _mechanism(self) -> Mechanism:
        if self.history is not None:
            return from_opacus_history(self.history)
        if self.noise is None:
            raise validate.invalid_input(
                "noise_multiplier", "missing", "given", "add it to the file"
            )
        rate = self._rate()
        given = {name: self.values.get(name) for name in ("steps", "epochs")}
        if validate.exactly_one("steps, epochs", given, "add one of them") == "steps":
            steps = validate.whole("steps", given["steps"])
        else:
            epochs = validate.positive("epochs", given["epochs"], example=30)
            steps = math.ceil(epochs * math.ceil(1.0 / rate - 1e-9))
        return DPSGD(self.noise, rate, steps, sampling=self.sampling)  # type: ignore[arg-type]

    def _rate(self) -> float:
        given = {name: self.values.get(name) for name in ("sample_rate", "batch_size")}
        remedy = "add sample_rate, or batch_size with records"
        if validate.exactly_one("sample_rate, batch_size", given, remedy) == "sample_rate":
            return validate.rate("sample_rate", given["sample_rate"])
        size = validate.whole("batch_size", given["batch_size"], example=256)
        if self.records is None:
            raise validate.invalid_input("records", "missing", "given with batch_size", "add it")
        if size > self.records:
            raise validate.invalid_input(
                "batch_size", f"{size:,} for {self.records:,}", "at most the number of records",
                "mend one of the two",
            )  # fmt: skip
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

    def about_rate(self) -> Iterator[str]:
        """How the rate was taken from the size of the batches, in a sentence."""
        if self.values.get("batch_size") is None or self.history is not None:
            return
        if self._rounded():
            way = "down" if self._fewest_batches() else "up"
            said = "" if "drop_last" in self.values else '; say "drop_last": true or false'
            yield (
                "The rate is one over the number of batches, records/batch_size rounded "
                f"{way}{said}."
            )
        else:
            opacus = 'for Opacus\' own, one over the number of batches, add "library": "opacus"'
            yield f"The rate is batch_size/records; {opacus}."


# Histories of accountants.


def checked_history(history: object) -> History:
    """An accountant's history, if it is one: noise, rate and steps of each entry."""
    remedy = "pass accountant.history as it is"
    if not isinstance(history, list | tuple):
        kind = f"of the type {type(history).__name__}"
        raise validate.invalid_input("history", kind, "a list of (noise, rate, steps)", remedy)
    checked = []
    for entry in history:
        if not isinstance(entry, list | tuple) or len(entry) != 3:
            wanted = "hold triples (noise, rate, steps)"
            raise validate.InputError.of("history", wanted, f"one entry is {entry!r}", remedy)
        noise = validate.at_least_zero("noise_multiplier", entry[0])
        rate = validate.rate("sample_rate", entry[1])
        checked.append((noise, rate, validate.whole("steps", entry[2])))
    return checked


def history_findings(
    history: History, counted_by: object, delta: float | None
) -> Iterator[Finding]:
    """An accountant that counted nothing or steps without noise, or says too small an ε."""
    if not history:
        yield Finding("DP409", None, "The accountant has counted no step.")
    elif any(noise == 0 for noise, _, _ in history):
        yield Finding("DP408", None, "Steps were taken with noise 0.")
    elif counted_by == "gdp":
        at = 1e-5 if delta is None else delta
        own, proved = gdp_epsilon(history, at), from_opacus_history(history).curve().epsilon(at)
        if own < proved:
            yield Finding("DP413", None, text.two_epsilons(own, proved, at))


# Files of torch.save.


def read_saved(path: Path, start: bytes) -> object:
    """The plain values of a file of torch.save or JSON."""
    if not start.startswith(ZIP):
        try:
            return json.loads(path.read_text(encoding="utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise validate.invalid_input(
                str(path), f"not ({error})", "JSON that can be read", "mend it"
            ) from None
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
        return _check_state(path, values, records, delta)
    if not path.endswith(".json") and isinstance(values, Mapping) and "history" not in values:
        return _check_checkpoint(path, values, records, delta)
    return check_description(path, values, records=records, delta=delta)


def _part(saved: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """The first state in a checkpoint that has these keys, whatever it is called there."""
    found = (v for v in saved.values() if isinstance(v, Mapping) and all(k in v for k in keys))
    return next(found, {})


def _check_checkpoint(
    path: str, saved: Mapping[str, Any], records: int | None, delta: float | None
) -> Report:
    """Two accountants may have counted two parts of a training, or two trainings."""
    found = {
        k: v
        for k, v in saved.items()
        if isinstance(v, Mapping) and {"history", "mechanism"} <= {*v}
    }
    if len(found) > 1:
        shown = f"one with {len(found)} ({', '.join(map(str, found))})"
        remedy = "check each alone; for one training, give the history of all of them together"
        raise validate.invalid_input(path, shown, "a checkpoint with one accountant", remedy)
    accountant = next(iter(found.values()), None)
    history = checked_history(accountant["history"]) if accountant is not None else []
    monitor = _part(saved, "ledger", "adjacency")
    if monitor:
        report = _check_state(path, monitor, records, delta)
        more = [*_contradictions(saved, history, Ledger.from_state(monitor["ledger"]))]
        reading = _void(more) or report.reading
        return replace(report, findings=(*report.findings, *more), reading=reading)
    if accountant is None:
        return _report(
            path, [Finding("DP409", None, "The checkpoint has no accountant.")], Reading()
        )
    findings = [
        *history_findings(history, accountant["mechanism"], delta),
        *_contradictions(saved, history, None),
        *_delta_findings(delta, records),
    ]
    reading = _void(findings) or Reading((
        certified(
            "the steps that the accountant counted", from_opacus_history(history), USUAL_ADJACENCY,
            delta,
        ),
    ))  # fmt: skip
    unknown = "An accountant does not tell whether its batches were Poisson."
    return _report(path, findings, reading, (unknown, TAILS_UNKNOWN))


def _contradictions(
    saved: Mapping[str, Any], history: History, ledger: Ledger | None
) -> Iterator[Finding]:
    """What the model and the optimizer in the same file say against the count."""
    states = [value for value in saved.values() if isinstance(value, Mapping)]
    names = [n for state in states for n in state if str(n).endswith("num_batches_tracked")]
    if names:
        layer = names[0].rpartition(".")[0].removeprefix("_module.")
        sentence = f"The model has layers with running statistics of batches ({layer})."
        yield Finding("DP201", None, sentence)
    optimizer = _part(saved, "state", "param_groups") or {"state": {}}
    taken = [float(each["step"]) for each in optimizer["state"].values() if "step" in each]
    counted = sum(steps for _, _, steps in history)
    by, seen = ("accountant", counted) if ledger is None else ("monitor", ledger.steps)
    if taken and seen and max(taken) > seen:
        sentence = f"The optimizer took {max(taken):,.0f} steps, the {by} counted {seen:,}."
        yield Finding("DP409", None, sentence)
    if ledger is not None and counted > seen:
        sentence = f"The accountant counted {counted:,} steps, the monitor saw {seen:,}."
        yield Finding("DP409", None, sentence)


# States of a monitor.


def _check_state(
    path: str, state: Mapping[str, Any], records: int | None, delta: float | None
) -> Report:
    """Judge what `Monitor.state_dict()` gave."""
    ledger = _ledger(path, state)
    found = [*_delta_findings(delta, records)]
    reason = next((step.reason for step, _ in ledger.entries if step.reason), "")
    reading = Reading()
    if not ledger.steps:
        found.append(Finding("DP409", None, "The monitor has seen no step."))
    elif reason:
        found.append(Finding("DP408", None, f"No guarantee covers the run: {reason}."))
        reading = Reading(missing=("steps that a guarantee covers",))
    else:
        reading = _reading(path, ledger, state, delta)
    if any(step.sampling != "poisson" for step, _ in ledger.entries):
        found.append(Finding("DP101", None, "Steps were taken on batches that are not Poisson."))
    unclear = [f"The monitor warned: {each}" for each in state.get("warnings", ())]
    unclear += [] if "noise" in state else [TAILS_UNKNOWN]
    return _report(path, found, reading, unclear, monitored=True)


def _damaged(path: str, what: str) -> validate.InputError:
    return validate.invalid_input(path, f"damaged ({what})", "a monitor's state", SAVE_AGAIN)


def _ledger(path: str, state: Mapping[str, Any]) -> Ledger:
    try:
        validate.one_of("adjacency", state.get("adjacency"), ADJACENCIES)
        return Ledger.from_state(state["ledger"])
    except (TypeError, KeyError, IndexError):
        raise validate.invalid_input(path, "another", "a monitor's state", SAVE_AGAIN) from None
    except validate.InputError as error:
        raise _damaged(path, str(error).rstrip(".")) from None


def _reading(path: str, ledger: Ledger, state: Mapping[str, Any], delta: float | None) -> Reading:
    """The risk of the steps together with all that the monitor was told of besides."""
    besides = state.get("besides", [])
    if not isinstance(besides, list | tuple) or not all(isinstance(e, Mapping) for e in besides):
        raise _damaged(path, "its besides")
    names = [str(described.get("name", "unnamed")) for described in besides]
    if len(names) > 1:
        names = [f"{place}. {name}" for place, name in enumerate(names, 1)]
    others = [_mechanism(described) for described in besides]
    unread = [name for name, other in zip(names, others, strict=True) if other is None]
    if unread:
        what = f"the cost of what read the data besides the steps ({', '.join(unread)})"
        return Reading(missing=(what,))
    about = "the steps that the monitor saw"
    if names:
        about += f" and what read the data besides them ({', '.join(names)})"
    mechanism = ledger.mechanism(*(other for other in others if other is not None))
    if "noise" in state:
        try:
            ends = NoiseEnds.from_state(state["noise"])
        except (TypeError, ValueError, KeyError):
            raise _damaged(path, "its noise") from None
        mechanism = with_tails(mechanism, ledger, ends)
    assert mechanism is not None
    try:
        return Reading((certified(about, mechanism, state["adjacency"], delta),))
    except validate.InputError as error:
        return Reading(missing=(f"parameters that can be certified ({str(error).rstrip('.')})",))


def _mechanism(described: Mapping[str, Any]) -> Mechanism | None:
    """The mechanism of a description; None where it cannot be read, or is not complete."""
    try:
        made = Mechanism.from_dict(described) if described.get("name") in READABLE else None
    except ValueError:
        return None
    whole = made is not None and {*made.to_dict()} == {*described} and not made.free_parameters()
    return made if whole else None
