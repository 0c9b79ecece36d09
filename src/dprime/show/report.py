"""The report of a run: one HTML file that opens offline, the verdict first.

Every number in it is taken from the card by its place there, and says so (`data-fact`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from dprime import text
from dprime.audit import blind_spots
from dprime.audit.record import EXCEEDED, AuditRecord
from dprime.metrics import BLIND, Reading
from dprime.show import repeat, words
from dprime.show.card import card
from dprime.show.chart import Chart
from dprime.show.needs import check_report
from dprime.show.record_charts import charts_of
from dprime.show.svg import inline_svg

WAYS: Mapping[str, Callable[[Any], str]] = {
    "floor": words.floor,
    "ceiling": words.ceiling,
    "percent": text.percent_up,
    "members": lambda value: words.floor(value, 3),
    "count": lambda value: f"{value:,}",
    "share": lambda value: f"{100 * value:.3g} %",
    "given": lambda value: f"{value:g}",
    "estimate": lambda value: "any number" if value is None else f"{value:.4g}",
}
"""How a number of each kind is printed: floors down, ceilings up."""


Drawings = Sequence[tuple[Chart, str]]
"""Charts, each with its SVG."""


def drawings_of(record: AuditRecord) -> Drawings:
    """The charts of a run, each drawn once: for its report, and for files of their own."""
    return [(chart, inline_svg(chart)) for chart in charts_of(record)]


def report_html(record: AuditRecord, drawings: Drawings | None = None) -> str:
    """The report as one HTML page, without script and without any outside address.

    Args:
        record: from `record_of`, or from `compared` with other runs beside it.
        drawings: from `drawings_of`, where somebody has them already.
    """
    check_report()
    shown = {**card(record), "beside": [card(other) for other in record.other_runs]}
    charts = _charts(drawings_of(record) if drawings is None else drawings)
    page = str(_template().render(**_context(record, shown), charts=charts))
    return page.replace(" %", "\N{NO-BREAK SPACE}%")  # a number keeps its sign on its line


def _template() -> Any:
    import jinja2  # noqa: PLC0415  only a report needs it

    room = files("dprime.show").joinpath("templates")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: room.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("report.html.j2")


def _context(record: AuditRecord, shown: Mapping[str, Any]) -> dict[str, Any]:
    """What the template reads beside the card."""
    return {
        "card": shown,
        "record": record,
        "words": words,
        "repeat": repeat,
        "unreliable": " ".join(words.unreliable(record)),
        "bars": _bars(record),
        "identified": _identified(record),
        "times": f"{1 / EXCEEDED:,.0f}",
        "why_unseen": blind_spots.WHY,
        "cannot_see": blind_spots.cannot_see(engine=record.attacked["training"] is not None),
        "fact": lambda place, way: fact(shown, place, way),
    }


def fact(shown: Mapping[str, Any], place: str, way: str) -> tuple[str, str]:
    """A number by its place in the card: its exact value, and how it is printed."""
    value: Any = shown
    for step in place.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return json.dumps(value), WAYS[way](value)


def _identified(record: AuditRecord) -> list[tuple[str, str, str]]:
    """The rows of Bernau et al.'s numbers: what, where it is in the card, and how sure."""
    found = record.identifiability
    if found is None:
        return []
    rows = [
        (what, name, f"± {found[name]['standard_error']:.2g} (standard error)")
        for name, what in (
            ("advantage", "Advantage of the adversary's answers"),
            ("predicted", "Advantage that the local sensitivities predict"),
        )
        if found[name] is not None
    ]
    share = found["exceedance"]
    rows.append((
        f"Trainings with the record whose belief exceeds {share['belief']:g}, from "
        f"{share['prior']:g} (δ′)",
        "exceedance",
        f"{share['low']:.4g} to {share['high']:.4g} at {100 * share['confidence']:g} % "
        f"confidence, {share['trials']:,} trainings",
    ))  # fmt: skip
    rows += [
        (f"ε′ {estimate['source']}", f"epsilons.{name}", "a point estimate with no confidence")
        for name, estimate in found["epsilons"].items()
        if estimate is not None
    ]
    return [(what, f"identifiability.{place}.value", sure) for what, place, sure in rows]


def _bars(record: AuditRecord) -> list[dict[str, Any]]:
    """What was reached beside what is allowed, for the eye; lengths are in percent."""
    found = record.deciding
    most = max(found.reached or 0.0, found.allowed or 0.0, 1e-12)
    room = 1.0 if found.share and most > 0.5 else 1.15 * most
    down, up = (text.percent_down, text.percent_up) if found.share else (words.floor, words.ceiling)
    who = "This attacker, at least" if record.method.decides else "A bound that does not count"
    rows: list[tuple[str, str, float | None, str]] = [
        ("reached", who, found.reached, words.floor(None)),
        ("allowed", "Allowed, at most", found.allowed, words.NO_LIMIT),
    ]
    if found.name != "curve":
        blind = Reading(found.name, found.conditions).value(BLIND)
        rows.insert(0, ("blind", "Guessing blindly", blind, ""))
    return [
        {
            "kind": kind,
            "label": label,
            "width": 100.0 if value is None else round(min(100.0, 100 * value / room), 2),
            "shown": unlimited if value is None else (down if kind == "reached" else up)(value),
        }
        for kind, label, value, unlimited in rows
    ]


AGAIN = "The same on logarithmic axes, for attackers who seldom accuse the wrong one."
"""The heading of a second chart with the same finding."""


def _charts(drawings: Drawings) -> list[dict[str, Any]]:
    """The charts as the page shows them; no finding is told twice."""
    shown, told = [], set[str]()
    for chart, svg in drawings:
        rows = chart.table()
        columns = [name for name in rows[0] if any(row.get(name) is not None for row in rows)]
        shown.append({
            "name": chart.name,
            "title": chart.title,
            "heading": AGAIN if chart.title in told else chart.title,
            "text": chart.text,
            "svg": svg,
            "columns": columns,
            "rows": [[_cell(row.get(name)) for name in columns] for row in rows],
        })  # fmt: skip
        told.add(chart.title)
    return shown


def _cell(value: float | str | None) -> str:
    """To the last digit, so that nothing is rounded to the wrong side."""
    return "" if value is None else str(value)
