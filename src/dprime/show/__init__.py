"""What people look at: charts, the report of a run, and its privacy card.

    Run ──► record_of ──► AuditRecord ──┬──► card, card_markdown
                                        └──► charts_of ──► report_html ──► HTML, PDF

A card needs NumPy and SciPy only. vl-convert and Jinja2 are loaded when something is drawn.
"""

from typing import TYPE_CHECKING

from dprime._lazy import lazy
from dprime.show.card import SCHEMA, card, card_markdown

if TYPE_CHECKING:
    from dprime.show.pdf import write_pdf
    from dprime.show.record_charts import charts_of
    from dprime.show.report import report_html

LATER = {"charts_of": "record_charts", "report_html": "report", "write_pdf": "pdf"}
"""What draws or writes, and the modules where it is: loaded when it is first asked for."""


__getattr__, __dir__ = lazy(__name__, LATER)


__all__ = [
    "SCHEMA",
    "card",
    "card_markdown",
    "charts_of",
    "report_html",
    "write_pdf",
]
