"""What people look at: figures, the report of a run, and its privacy card.

    RUN (one file) ──► facts_of ──► Facts ──┬──► card, card_markdown
                                            └──► report_html ──► HTML, PDF

Facts and card need NumPy only. Altair, vl-convert and Jinja2 are loaded when something is drawn.
"""

from typing import TYPE_CHECKING

from dprime._lazy import lazy
from dprime.show.card import SCHEMA, card, card_markdown
from dprime.show.facts import Facts, facts_of

if TYPE_CHECKING:
    from dprime.show.pdf import write_pdf
    from dprime.show.report import figures_of, report_html

LATER = {"figures_of": "report", "report_html": "report", "write_pdf": "pdf"}
"""What draws or writes, and the modules where it is: loaded when it is first asked for."""


__getattr__ = lazy(__name__, LATER)


__all__ = [
    "SCHEMA",
    "Facts",
    "card",
    "card_markdown",
    "facts_of",
    "figures_of",
    "report_html",
    "write_pdf",
]
