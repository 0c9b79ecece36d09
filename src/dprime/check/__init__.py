"""A doctor for a training script or a saved run: mistakes that void the guarantee, by reading.

    file ──► source ──► walk (what happens) ──► looks (what is wrong) ──► Report

Nothing is executed. A clean report names what was looked for; it never says that a training is
private.
"""

from dprime.check.files import check
from dprime.check.report import Report
from dprime.check.rules import MEANINGS, RULES, Finding, Rule
from dprime.check.saved import check_description

__all__ = ["MEANINGS", "RULES", "Finding", "Report", "Rule", "check", "check_description"]
