"""Risks of one curve, or of several side by side, as a table that can draw itself."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from functools import partial

from dprime import text, validate
from dprime._lazy import load
from dprime.curve import LowerCurve, TradeOffMetrics
from dprime.mechanisms import Composition, Mechanism
from dprime.metrics import OBSERVED, Reading, profile, risk_profile
from dprime.table import Table

AS_GIVEN = f"{text.COMPARABLE} A curve that is given does not tell its own."

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
    """Curves or mechanisms side by side, under names of your choice: a table and its chart.

    Mechanisms are compared for one adjacency: the one given, or the one that all have as their own.
    A curve is taken as it is, and has to compare the same data sets. Conditions as of `profile`.

    >>> from dprime import DPSGD
    >>> table = compare({"little": DPSGD(1.0, 0.01, 1000), "much": DPSGD(1.5, 0.01, 1000)})
    >>> table[0]["title"], round(table[0]["little"], 3), round(table[0]["much"], 3)
    ('Membership advantage', 0.161, 0.094)
    """
    run = _mechanisms(curves)
    if run:
        for reading in profile(**conditions):
            adjacency = reading.adjacency(adjacency)
        adjacency = adjacency or Composition(*run).default_adjacency
    elif adjacency is not None:
        wanted, remedy = "left out where curves are compared", "make them for one adjacency"
        raise validate.invalid_value("adjacency", adjacency, wanted, remedy)
    taken = {
        name: each.curve(adjacency) if isinstance(each, Mechanism) else each
        for name, each in curves.items()
    }
    rows, cells = [], []
    for reading in _readings(taken.values(), conditions):
        answers = [reading.of(curve) for curve in taken.values()]
        values = dict(zip(taken, (each.value for each in answers), strict=True))
        rows.append({"name": reading.name, "title": reading.title, **values})
        cells.append((reading.title, *(each.shown() for each in answers)))
    head = ("What", *(f"{name}, {text.SIDES[curve.kind]}" for name, curve in taken.items()))
    known = adjacency if len(run) == len(taken) else None
    notes = dict.fromkeys(_note(curve, known) for curve in taken.values())
    if known is None and len(taken) > 1:
        notes[AS_GIVEN + (f" The mechanisms are read for {adjacency}." if run else "")] = None
    plot = partial(load("show.notebook", "chart_of"), taken)
    return Table(tuple(rows), head, tuple(cells), "\n".join(notes), plot)


def _mechanisms(curves: Mapping[str, TradeOffMetrics | Mechanism]) -> list[Mechanism]:
    """Those among what is compared, once all of it is checked."""
    given = curves if isinstance(curves, Mapping) else {}
    fit = (isinstance(each, TradeOffMetrics | Mechanism) for each in given.values())
    named = (isinstance(name, str) and name not in COLUMNS for name in given)
    if not given or not all(fit) or not all(named):
        wanted = f"name curves or mechanisms, by other words than {', '.join(COLUMNS)}"
        found = f"it is {textwrap.shorten(repr(curves), 100)}"
        raise validate.InputError.of("curves", wanted, found, 'give {"A": a, "B": b}')
    return [each for each in given.values() if isinstance(each, Mechanism)]


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
