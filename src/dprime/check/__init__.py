"""A linter for DP training scripts: mistakes that void the guarantee, found by reading alone.

    file ──► Source ──► Reader (what happens) ──► Script ──► rules (what is wrong) ──► Report

Nothing is executed. A clean report names what was looked for; it never says that a training is
private.
"""

from typing import TYPE_CHECKING

from dprime._lazy import lazy
from dprime.check.files import check
from dprime.check.report import MEANINGS, RULES, Finding, Report, Rule
from dprime.check.sarif import to_sarif

if TYPE_CHECKING:
    from dprime.check.saved import check_description

__all__ = [
    "MEANINGS",
    "RULES",
    "Finding",
    "Report",
    "Rule",
    "check",
    "check_description",
    "to_sarif",
]

__getattr__, __dir__ = lazy(__name__, {"check_description": "saved"})  # it loads SciPy
