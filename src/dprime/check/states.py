"""The saved state of a monitor: its ledger, and what else read the data; the risk of saved runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from dprime import validate
from dprime.check.report import Finding, Report, Risk, RunRisks
from dprime.check.rules.accounting import too_large
from dprime.mechanisms import ADJACENCIES, Mechanism
from dprime.metrics import profile, risk_profile
from dprime.monitor.ledger import Ledger
from dprime.monitor.state import refuse_version
from dprime.monitor.tails import NoiseEnds, with_tails

LOOKED_FOR = ("DP101", "DP201", "DP307", "DP408", "DP409", "DP413", "DP501", "DP502", "DP601")
"""What a saved run can show."""

SHOWN = ("advantage", "epsilon")  # the metrics that a check shows
READABLE = ("DPSGD", "Gaussian")  # the other mechanisms that are made again from their description

TAILS_UNKNOWN = (
    "The file does not say whether Opacus' secure_mode was on: the tails that PyTorch's own noise "
    "lacks are not in the numbers."
)
State = Mapping[str, Any]  # what `Monitor.state_dict()` gave


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


saved_run = partial(Report, kind="saved run", rules_run=LOOKED_FOR)


def void(found: Iterable[Finding]) -> RunRisks | None:
    """What stands in place of a number where there is an error."""
    codes = sorted({each.code for each in found if each.rule.severity == "error"})
    return RunRisks(missing=(f"a run without errors ({', '.join(codes)})",)) if codes else None


def delta_findings(delta: float | None, records: int | None) -> Iterator[Finding]:
    """What is wrong with a δ for this number of records."""
    judged = None if delta is None else too_large(delta, records)
    if judged is not None:
        yield Finding(*judged)


def check_state(path: str, state: State, records: int | None, delta: float | None) -> Report:
    """Judge what `Monitor.state_dict()` gave."""
    refuse_version(path, state)
    with _undamaged(path, "its ledger"):
        validate.one_of("adjacency", state.get("adjacency"), ADJACENCIES)
        ledger = Ledger.from_state(state["ledger"])
    found = [*delta_findings(delta, records)]
    reason = next((step.reason for step, _ in ledger.entries if step.reason), "")
    reading = RunRisks()
    if not ledger.steps:
        found.append(Finding("DP409", "The monitor has seen no step."))
    elif reason:
        found.append(Finding("DP408", f"No guarantee covers the run: {reason}."))
        reading = RunRisks(missing=("steps that a guarantee covers",))
    else:
        reading = _reading(path, ledger, state, delta)
    if any(step.sampling != "poisson" for step, _ in ledger.entries):
        found.append(Finding("DP101", "Steps were taken on batches that are not Poisson."))
    warned = tuple(f"The monitor warned: {each}" for each in state.get("warnings", ()))
    return saved_run(
        path, findings=tuple(found), reading=reading, unresolved=warned, monitored=True
    )


@contextmanager
def _undamaged(path: str, part: str) -> Iterator[None]:
    """Refuse a state of which a part cannot be read, before it is read as less."""
    try:
        yield
    except (TypeError, ValueError, LookupError) as error:
        known = isinstance(error, validate.InputError)
        why = f"{part}: {str(error).rstrip('.')}" if known else part
        remedy = "save Monitor.state_dict() again"
        raise validate.invalid_input(
            path, f"damaged ({why})", "a monitor's state", remedy
        ) from None


def _reading(path: str, ledger: Ledger, state: State, delta: float | None) -> RunRisks:
    """The risk of the steps together with the other mechanisms that the monitor was told of."""
    with _undamaged(path, "its other_mechanisms"):
        told = [{**described} for described in state["other_mechanisms"]]
    names = [str(described.get("name", "unnamed")) for described in told]
    if len(names) > 1:
        names = [f"{place}. {name}" for place, name in enumerate(names, 1)]
    others = [_mechanism(described) for described in told]
    unread = [name for name, other in zip(names, others, strict=True) if other is None]
    if unread:
        what = f"the cost of other mechanisms on the same data ({', '.join(unread)})"
        return RunRisks(missing=(what,))
    about = "the steps that the monitor saw"
    if names:
        about += f" and other mechanisms on the same data ({', '.join(names)})"
    with _undamaged(path, "its noise"):
        ends = NoiseEnds.from_state(state["noise"])
    steps = ledger.mechanism(*(other for other in others if other is not None))
    mechanism = with_tails(steps, ledger, ends)
    assert mechanism is not None
    try:
        return RunRisks((certified(about, mechanism, state["adjacency"], delta),))
    except validate.InputError as error:
        return RunRisks(missing=(f"parameters that can be certified ({str(error).rstrip('.')})",))


def _mechanism(described: Mapping[str, Any]) -> Mechanism | None:
    """The mechanism of a description; None where it cannot be read, or is not complete."""
    try:
        made = Mechanism.from_dict(described) if described.get("name") in READABLE else None
    except ValueError:
        return None
    whole = made is not None and {*made.to_dict()} == {*described} and not made.free_parameters()
    return made if whole else None
