"""The report of a run: one HTML file that opens offline, the verdict first.

Every number in it is taken from the card by its place there, and says so (`data-fact`).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

from dprime import text
from dprime.audit import blind_spots
from dprime.audit.limits import risks
from dprime.audit.record import EXCEEDED, AuditRecord
from dprime.metrics import BLIND, Reading
from dprime.registry import METRICS
from dprime.show import repeat, sentences, words
from dprime.show.card import card
from dprime.show.chart import Chart
from dprime.show.deployment import FIELDS, Deployment
from dprime.show.needs import check_report
from dprime.show.record_charts import charts_of
from dprime.show.sentences import say
from dprime.show.svg import inline_svg
from dprime.text import Given

WAYS: Mapping[str, Callable[[Any], str]] = {
    "floor": sentences.floor,
    "ceiling": sentences.ceiling,
    "floor-share": text.percent_down,
    "ceiling-share": text.percent_up,
    "members": lambda value: sentences.floor(value, 3),
    "count": lambda value: f"{value:,}",
    "share": lambda value: f"{100 * value:.3g} %",
    "given": lambda value: f"{value:g}",
    "given-share": lambda value: f"{Given(value):%}",
    "estimate": lambda value: "any number" if value is None else f"{value:.4g}",
}
"""How a number of each kind is printed: floors down, ceilings up, a share in percent."""

AUTHORITIES: Sequence[Mapping[str, Any]] = tomllib.loads(
    files("dprime.show").joinpath("authorities.toml").read_text(encoding="utf-8")
)["part"]
"""What authorities and standards ask, and what an audit shows of it."""


def report_html(
    record: AuditRecord, charts: Sequence[Chart] | None = None, about: Deployment | None = None
) -> str:
    """The report as one HTML page, without script and without any outside address.

    Args:
        record: from `record_of`, or from `compared` with other runs beside it.
        charts: from `charts_of`, where somebody has them already.
        about: who decides about which model, and what they accept.
    """
    check_report()
    shown = {**card(record, about), "beside": [card(other) for other in record.other_runs]}
    drawn = _charts(charts_of(record) if charts is None else charts)
    context = _context(record, shown, about or Deployment())
    page = str(_template().render(**context, charts=drawn))
    return page.replace(" %", "\N{NO-BREAK SPACE}%")  # a number keeps its sign on its line


def _template() -> Any:
    import jinja2  # noqa: PLC0415  only a report needs it

    room = files("dprime.show").joinpath("templates")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: room.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("report.html.j2")


def _context(record: AuditRecord, shown: Mapping[str, Any], about: Deployment) -> dict[str, Any]:
    return {
        "card": shown,
        "record": record,
        "words": words,
        "say": say,
        "sentences": sentences,
        "judged": risks(record, about.limits),
        "repeat": repeat,
        "fields": {name: option.help for name, option in FIELDS.items()},
        "limited_by": sentences.limited_by(record),
        "void": record.refuted or record.crosses or record.understated,
        "footer": _in_style(f"{record.name}, {record.changed:%Y-%m-%d}: {record.verdict.outcome}"),
        "authorities": AUTHORITIES,
        "profile": {answer.name: answer for answer in record.claim.profile()},
        "unreliable": " ".join(words.unreliable(record)),
        "bars": _bars(record),
        "identified": words.identified(record.identifiability),
        "times": f"{1 / EXCEEDED:,.0f}",
        "why_unseen": blind_spots.WHY,
        "cannot_see": blind_spots.cannot_see(engine=record.attacked["training"] is not None),
        "fact": lambda place, way: fact(shown, place, way),
        "way": way,
    }


def _in_style(text: str) -> str:
    """A text between quotation marks of CSS: everything but letters and digits is escaped."""
    return "".join(each if each.isalnum() else f"\\{ord(each):x} " for each in text)


def fact(shown: Mapping[str, Any], place: str, way: str) -> tuple[str, str]:
    """A number by its place in the card: its exact value, and how it is printed."""
    value: Any = shown
    for step in place.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return json.dumps(value), WAYS[way](value)


def way(name: str, side: str) -> str:
    """How a number of a metric is printed, by its side: "floor", "ceiling" or "given".

    Of what falls with the attacker's success, the sides are exchanged; it is no percentage.
    """
    if name != "curve" and not METRICS[name].rises:
        return {"floor": "ceiling", "ceiling": "floor"}.get(side, side)
    return f"{side}-share" if name == "curve" or METRICS[name].share else side


def _bars(record: AuditRecord) -> list[dict[str, Any]]:
    """What was reached beside what is allowed, for the eye; lengths are in percent."""
    found = record.deciding
    most = max(found.reached or 0.0, found.allowed or 0.0, 1e-12)
    room = 1.0 if found.share and most > 0.5 else 1.15 * most
    reached, allowed = sentences.ends(found)
    who = "This attacker, at least" if record.method.decides else "A bound that does not count"
    rows = [
        ("reached", who, found.reached, reached),
        ("allowed", "The claim allows", found.allowed, allowed),
    ]
    if found.name != "curve":
        blind = Reading(found.name, found.conditions).value(BLIND)
        guessed = sentences.ends(replace(found, reached=blind))[0]
        rows.insert(0, ("blind", "Guessing blindly", blind, guessed))
    return [
        {
            "kind": kind,
            "label": label,
            "width": 100.0 if value is None else round(min(100.0, 100 * value / room), 2),
            "shown": shown,
        }
        for kind, label, value, shown in rows
    ]


AGAIN = "The same on logarithmic axes, for attackers who seldom accuse the wrong one."
"""The heading of a second chart with the same finding."""


def _charts(charts: Sequence[Chart]) -> list[dict[str, Any]]:
    """The charts as the page shows them; no finding is told twice, and no digit is left out."""
    shown, told = [], set[str]()
    for chart in charts:
        rows = chart.table()
        columns = [name for name in rows[0] if any(row[name] is not None for row in rows)]
        cells = [["" if row[name] is None else str(row[name]) for name in columns] for row in rows]
        shown.append({
            "name": chart.name,
            "title": chart.title,
            "heading": AGAIN if chart.title in told else chart.title,
            "text": chart.text,
            "svg": inline_svg(chart),
            "columns": columns,
            "rows": cells,
        })  # fmt: skip
        told.add(chart.title)
    return shown
