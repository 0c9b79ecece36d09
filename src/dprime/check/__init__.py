"""A doctor for a training script or a saved run: mistakes that void the guarantee, by reading.

    file ──► source ──► walk (what happens) ──► looks (what is wrong) ──► Report

Nothing is executed. A clean report names what was looked for; it never says that a training is
private.
"""

from typing import TYPE_CHECKING, Any

from dprime._lazy import load
from dprime.check.files import check
from dprime.check.report import Report
from dprime.check.rules import MEANINGS, RULES, Finding, Rule

if TYPE_CHECKING:
    from dprime.check.saved import check_description

__all__ = ["MEANINGS", "RULES", "Finding", "Report", "Rule", "check", "check_description"]

if not TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> Any:
        if name == "check_description":  # it computes risks: SciPy is loaded with it
            return load("check.saved", "check_description")
        raise AttributeError(f"module 'dprime.check' has no attribute {name!r}")
