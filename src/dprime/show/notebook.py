"""What a notebook shows of a curve or an audit: sentences, a table, and a drawing where it can be.

The core knows nothing of this module but its name: curves, tables and audits load it when a
notebook asks. A report stands in a separate frame, so that neither page's style
reaches the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dprime import text, validate
from dprime.curve import Estimate, TradeOff, TradeOffMetrics
from dprime.show import words
from dprime.show.charts import trade_off, trade_offs
from dprime.show.needs import check_drawing
from dprime.show.record_charts import curve_chart
from dprime.show.vega import in_both_themes
from dprime.table import Table

if TYPE_CHECKING:
    from dprime.audit.record import AuditRecord
    from dprime.show.chart import Chart

LEFT = 'style="caption-side:bottom;text-align:left"'
"""What a notebook would put to the right, or above."""


def table_html(table: Table) -> str:
    """A table and its drawing.

    >>> "Membership advantage" in table_html(TradeOff.gaussian(1.0).summary())
    True
    """
    return _table(table.head, table.cells, table.note) + _drawing(table.plot)


def chart_of(curves: TradeOffMetrics | Mapping[str, TradeOffMetrics], **options: Any) -> Chart:
    """What `plot` draws of a curve or of several; a certified one alone is drawn as a limit."""
    check_drawing()
    if isinstance(curves, TradeOff):
        return trade_off(curves, **options)
    if isinstance(curves, TradeOffMetrics):
        curves = {curves.source if isinstance(curves, Estimate) else "reached": curves}
    return trade_offs(curves, **options)


def audit_html(record: AuditRecord) -> str:
    """An audit: the verdict, what was reached beside what is allowed, and both curves."""
    rows = [(row.title, *row.shown) for row in record.rows]
    note = f"The first row decides. Reached: {words.reached_by(record)}."
    table = _table(("What", "Reached, at least", "Allowed, at most"), rows, note)
    drawing = _drawing(partial(curve_chart, record))
    return f"<p><strong>{escape(record.sentence)}</strong></p>{table}{drawing}"


def report_frame(record: AuditRecord) -> str:
    """The report of a run."""
    from dprime.show.report import report_html  # noqa: PLC0415  it needs more libraries

    return framed(report_html(record))


def framed(page: str, height: int = 720) -> str:
    """A whole page in its own frame, without scripts."""
    return (
        f'<iframe sandbox="" srcdoc="{escape(page)}" title="Privacy report" '
        f'style="width:100%;height:{height}px;border:1px solid #8884"></iframe>'
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], note: str) -> str:
    top = "".join(f'<th scope="col" {LEFT}>{escape(cell)}</th>' for cell in head)
    lines = "".join(
        "<tr>" + "".join(f"<td {LEFT}>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    said = escape(note).replace("\n", "<br>")
    return (
        f"<table><caption {LEFT}>{said}</caption><thead><tr>{top}</tr></thead>"
        f"<tbody>{lines}</tbody></table>"
    )


def _drawing(make: Callable[[], Chart]) -> str:
    """The drawing, where the libraries that draw are installed."""
    if find_spec("vl_convert") is None:
        return f"<p>For a drawing: {text.install('show')}</p>"
    try:
        chart = make()
    except validate.InputError as refused:  # the numbers can be shown all the same
        return f"<p>{escape(str(refused))}</p>"
    return f'<div role="img" aria-label="{escape(chart.text)}">{in_both_themes(chart.svg())}</div>'
