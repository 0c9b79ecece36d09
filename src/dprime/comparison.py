"""Risks of one curve or of several beside each other, as a table that can draw itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dprime import text, validate
from dprime._lazy import load
from dprime.curve import LowerCurve, TradeOffMetrics
from dprime.mechanisms import Composition, Mechanism
from dprime.metrics import OBSERVED, Reading, profile, risk_profile
from dprime.table import Table
from dprime.text import SIDES


def summary(curve: TradeOffMetrics, **conditions: float | None) -> Table:
    """Every risk of a curve with a sentence, as `dprime risk` prints it."""
    answers = risk_profile(curve, _readable([curve], conditions))
    columns = ("name", "title", "value", "kind", "sentence")
    rows = ({name: getattr(each, name) for name in columns} for each in answers)
    cells = ((each.title, each.shown(), each.sentence) for each in answers)
    head = ("What", SIDES[curve.kind].capitalize(), "In plain words")
    return Table(tuple(rows), head, tuple(cells), _note(curve), curve.plot)


def compare(
    curves: Mapping[str, TradeOffMetrics | Mechanism],
    *,
    adjacency: str | None = None,
    **conditions: float | None,
) -> Table:
    """Curves or mechanisms beside each other, by names of your own: a table and its chart.

    Mechanisms are compared for one adjacency: the one given, or the one that all have as their own.
    A curve is taken as it is, and has to compare the same data sets. Conditions as of `profile`.

    >>> from dprime import DPSGD
    >>> early, late = (DPSGD(z, 0.01, 1000) for z in (1.0, 1.5))
    >>> table = compare({"little noise": early, "much": late})
    >>> [round(table[0][name], 3) for name in ("little noise", "much")]
    [0.161, 0.094]
    """
    wanted = "name at least one curve or mechanism"
    if not isinstance(curves, Mapping) or not curves:
        raise validate.InputError.of("curves", wanted, "it names none", 'give {"A": a, "B": b}')
    run = [each for each in curves.values() if isinstance(each, Mechanism)]
    if adjacency is None and run:
        adjacency = Composition(*run).default_adjacency
    taken = {str(name): _curve(name, each, adjacency) for name, each in curves.items()}
    readings = _readable([*taken.values()], conditions)
    rows, cells = [], []
    for reading in readings:
        answers = {name: reading.of(curve) for name, curve in taken.items()}
        values = {name: answer.value for name, answer in answers.items()}
        rows.append({"name": reading.name, "title": reading.title, **values})
        cells.append((reading.title, *(answer.shown() for answer in answers.values())))
    head = ("What", *(f"{name}, {SIDES[curve.kind]}" for name, curve in taken.items()))
    known = adjacency if len(run) == len(taken) else None
    notes = dict.fromkeys(_note(curve, known) for curve in taken.values())
    picture = partial(load("show.notebook", "curves_chart"), taken)
    note = "".join(f"{each.rstrip('.')}. " for each in notes).rstrip()
    return Table(tuple(rows), head, tuple(cells), note, picture)


def _curve(name: str, given: object, adjacency: str | None) -> TradeOffMetrics:
    if name in ("name", "title"):
        remedy = "call it something else: this is a column of the table"
        raise validate.invalid_value("name", name, "one of your own", remedy)
    if isinstance(given, Mechanism):
        return given.curve(adjacency)
    if isinstance(given, TradeOffMetrics):
        return given
    wanted, remedy = "a curve or a mechanism", "give for example DPSGD(1.1, 0.01, 1000)"
    raise validate.invalid_value(str(name), given, wanted, remedy)


def _readable(
    curves: list[TradeOffMetrics], conditions: Mapping[str, float | None]
) -> list[Reading]:
    """The readings of a profile that every one of the curves has: a lower curve has no beliefs."""
    lower = any(curve.kind == "lower bound" for curve in curves)
    return [each for each in profile(**conditions) if not lower or each.name in OBSERVED]


def _note(curve: TradeOffMetrics, adjacency: str | None = None) -> str:
    if not isinstance(curve, LowerCurve):
        return text.certified(adjacency) if curve.kind == "certified" else text.ESTIMATE
    note = f"Lower bounds at {100 * curve.confidence:g} % confidence, method {curve.method}."
    if curve.method == "gaussian":
        note += " The confidence assumes Gaussian scores of one variance in both worlds."
    return note
