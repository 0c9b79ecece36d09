"""A linter for DP training scripts: mistakes that void the guarantee, found by reading alone.

    file ──► Source ──► Reader (what happens) ──► Script ──► rules (what is wrong) ──► Report

Nothing is executed. A clean report names what was looked for; it never says that a training is
private.
"""

from typing import TYPE_CHECKING, Any

from dprime._lazy import load
from dprime.check.files import check
from dprime.check.report import MEANINGS, RULES, Finding, Report, Rule

if TYPE_CHECKING:
    from dprime.check.saved import check_description

__all__ = ["MEANINGS", "RULES", "Finding", "Report", "Rule", "check", "check_description"]

if not TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> Any:
        if name == "check_description":  # it computes risks: SciPy is loaded with it
            return load("check.saved", "check_description")
        raise AttributeError(f"module 'dprime.check' has no attribute {name!r}")
