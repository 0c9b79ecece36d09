"""What a notebook shows of a curve or an audit: sentences, a table, and a drawing where it can be.

The core knows nothing of this module but its name: `_repr_html_` of a curve and of an audit loads
it when a notebook asks. A report shows itself in a frame of its own, so that neither page's style
reaches the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dprime import text
from dprime.curve import Estimate, LowerCurve, TradeOff
from dprime.metrics import risk_profile
from dprime.show.charts import Points, trade_off
from dprime.show.vega import in_both_themes
from dprime.text import round_down

if TYPE_CHECKING:
    from dprime.audit.record import AuditRecord
    from dprime.show.chart import Chart


def curve_html(curve: TradeOff | Estimate | LowerCurve) -> str:
    """A curve as a table of every risk, and as a drawing.

    >>> "Membership advantage" in curve_html(TradeOff.gaussian(1.0))
    True
    """
    if isinstance(curve, LowerCurve):
        return _lower_html(curve)
    rows = [(answer.title, answer.shown(), answer.sentence) for answer in risk_profile(curve)]
    head = ("What", "At most" if curve.kind == "certified" else "About", "In plain words")
    drawing = _drawing(trade_off(curve)) if isinstance(curve, TradeOff) else ""
    note = text.certified() if curve.kind == "certified" else text.ESTIMATE
    return _table(head, rows, note) + drawing


def audit_html(record: AuditRecord) -> str:
    """An audit: the verdict, what was reached beside what is allowed, and both curves."""
    rows = [(row.title, *row.shown) for row in record.rows]
    percent, method = f"{100 * record.config.confidence:g} %", record.method.method
    note = f"The first row decides. Reached: at {percent} confidence by the band, for all its rows "
    note += "together"
    note += "." if method == "band" else f"; the first row by {method}."
    table = _table(("What", "Reached, at least", "Allowed, at most"), rows, note)
    marked = 0.01 if record.decided_at is None else record.decided_at
    chart = trade_off(
        Points(record.claim.fpr, record.claim.tpr), Points(*record.lower[record.drawn]),
        confidence=record.config.confidence, refuted=record.refuted, fpr=marked,
    )  # fmt: skip
    return f"<p><strong>{escape(record.sentence)}</strong></p>{table}{_drawing(chart)}"


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


def _lower_html(curve: LowerCurve) -> str:
    fpr, tpr = 0.01, curve.tpr(0.01)
    rows = [
        ("Membership advantage", round_down(curve.advantage())),
        (f"TPR at FPR {fpr:g}", round_down(tpr)),
        ("ε at δ 1e-05", round_down(curve.epsilon(1e-5))),
    ]
    note = f"Lower bounds at {100 * curve.confidence:g} % confidence, method {curve.method}."
    if curve.method == "gaussian":
        note += " The confidence assumes Gaussian scores of one variance in both worlds."
    return _table(("What", "At least"), rows, note)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], note: str) -> str:
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f"<table><caption>{escape(note)}</caption><thead><tr>{top}</tr></thead>"
        f"<tbody>{lines}</tbody></table>"
    )


def _drawing(chart: Chart) -> str:
    """The drawing, where the libraries that draw are installed."""
    if find_spec("vl_convert") is None:
        return f"<p>For a drawing: {text.install('show')}</p>"
    return f'<div role="img" aria-label="{escape(chart.text)}">{in_both_themes(chart.svg())}</div>'
