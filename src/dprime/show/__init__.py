"""What people look at: charts, the report of a run, and its privacy card.

    Run ──► record_of ──► AuditRecord ──┬──► card, card_markdown
                                        └──► charts_of ──► report_html ──► HTML, PDF

A card needs NumPy and SciPy only. vl-convert and Jinja2 are loaded when something is drawn.
"""

from typing import TYPE_CHECKING

from dprime._lazy import lazy
from dprime.show.card import SCHEMA, card, card_markdown
from dprime.show.deployment import Deployment

if TYPE_CHECKING:
    from dprime.show.exports import model_card, registry_entry
    from dprime.show.pdf import write_pdf
    from dprime.show.record_charts import charts_of
    from dprime.show.report import report_html

LATER = {
    "charts_of": "record_charts", "model_card": "exports", "registry_entry": "exports",
    "report_html": "report", "write_pdf": "pdf",
}  # fmt: skip
"""What draws, writes or exports, and the modules where it is: loaded when it is first asked for."""


__getattr__, __dir__ = lazy(__name__, LATER)


__all__ = [
    "SCHEMA",
    "Deployment",
    "card",
    "card_markdown",
    "charts_of",
    "model_card",
    "registry_entry",
    "report_html",
    "write_pdf",
]
