"""Risks of one curve or of several beside each other, as a table that can draw itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from dprime import text, validate
from dprime._lazy import load
from dprime.curve import LowerCurve, TradeOffMetrics
from dprime.mechanisms import Composition, Mechanism
from dprime.metrics import OBSERVED, Reading, profile, risk_profile
from dprime.table import Table

COLUMNS = ("name", "title", "value", "kind", "sentence")


def summary(curve: TradeOffMetrics, **conditions: float | None) -> Table:
    """Every risk of a curve with a sentence, as `dprime risk` prints it."""
    answers = risk_profile(curve, _readings([curve], conditions))
    rows = ({name: getattr(each, name) for name in COLUMNS} for each in answers)
    cells = ((each.title, each.shown(), each.sentence) for each in answers)
    head = ("What", text.SIDES[curve.kind].capitalize(), "In plain words")
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
    >>> table = compare({"little": DPSGD(1.0, 0.01, 1000), "much": DPSGD(1.5, 0.01, 1000)})
    >>> table[0]["title"], round(table[0]["little"], 3), round(table[0]["much"], 3)
    ('Membership advantage', 0.161, 0.094)
    """
    known = (Mechanism, TradeOffMetrics)
    named = isinstance(curves, Mapping) and curves and not {*curves} & {*COLUMNS}
    if not named or not all(isinstance(each, known) for each in curves.values()):
        wanted = f"name curves or mechanisms, by other names than {', '.join(COLUMNS)}"
        raise validate.InputError.of("curves", wanted, f"got {curves}", 'give {"A": a, "B": b}')
    run = [each for each in curves.values() if isinstance(each, Mechanism)]
    if adjacency is None and run:
        adjacency = Composition(*run).default_adjacency
    taken = {
        str(name): each.curve(adjacency) if isinstance(each, Mechanism) else each
        for name, each in curves.items()
    }
    rows, cells = [], []
    for reading in _readings(taken.values(), conditions):
        answers = [reading.of(curve) for curve in taken.values()]
        values = dict(zip(taken, (each.value for each in answers), strict=True))
        rows.append({"name": reading.name, "title": reading.title, **values})
        cells.append((reading.title, *(each.shown() for each in answers)))
    head = ("What", *(f"{name}, {text.SIDES[curve.kind]}" for name, curve in taken.items()))
    relation = adjacency if len(run) == len(taken) else None
    notes = dict.fromkeys(_note(curve, relation).rstrip(".") for curve in taken.values())
    plot = partial(load("show.notebook", "curves_chart"), taken)
    return Table(tuple(rows), head, tuple(cells), f"{'. '.join(notes)}.", plot)


def _readings(
    curves: Iterable[TradeOffMetrics], conditions: Mapping[str, float | None]
) -> list[Reading]:
    """The readings of a profile that all these curves have: a lower one has no beliefs."""
    lower = any(curve.kind == "lower bound" for curve in curves)
    return [each for each in profile(**conditions) if not lower or each.name in OBSERVED]


def _note(curve: TradeOffMetrics, adjacency: str | None = None) -> str:
    if not isinstance(curve, LowerCurve):
        return text.certified(adjacency) if curve.kind == "certified" else text.ESTIMATE
    note = f"Lower bounds at {100 * curve.confidence:g} % confidence, method {curve.method}."
    assumed = " The confidence assumes Gaussian scores of one variance in both worlds."
    return note + assumed if curve.method == "gaussian" else note
