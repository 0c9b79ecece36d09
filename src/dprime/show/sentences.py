"""The sentences of card and report, from `sentences.toml`, and the numbers in them.

Ceilings are rounded up and floors down; shares stand in percent.
"""

from __future__ import annotations

import math
import re
import tomllib
from importlib.resources import files
from typing import Any

from dprime.audit.limits import JudgedMetric
from dprime.audit.record import AuditRecord, Group, Measured
from dprime.metrics import MetricValue, Reading
from dprime.registry import METRICS, Observation
from dprime.text import (
    Ceiling,
    Floor,
    Given,
    one_in,
    percent_down,
    percent_up,
    round_down,
    round_up,
)

SENTENCES: dict[str, dict[str, Any]] = tomllib.loads(
    files("dprime.show").joinpath("sentences.toml").read_text(encoding="utf-8")
)

CURVE = Observation(**SENTENCES["curve"])

IN_PERCENT = re.compile("{(fpr|prior|belief_level)}")
"""Conditions in a title that are shares."""


def say(place: str, **values: object) -> str:
    """A sentence by its table and name, with the values that it asks for."""
    table, _, name = place.partition(".")
    return str(SENTENCES[table][name]).format(**values)


def floor(value: float | None, digits: int = 4) -> str:
    """A lower bound as printed."""
    return "any number" if value is None else round_down(value, digits)


def ceiling(value: float | None, digits: int = 4) -> str:
    """A limit as printed."""
    return "no limit" if value is None else round_up(value, digits)


def ends(found: Measured) -> tuple[str, str]:
    """What was reached and what is allowed, as printed."""
    if found.share and found.reached is not None and found.allowed is not None:
        return percent_down(found.reached), percent_up(found.allowed)
    return floor(found.reached), ceiling(found.allowed)


def title(found: Measured | MetricValue) -> str:
    """A metric's title; shares stand in percent, as everywhere in a report.

    >>> from dprime.curve import TradeOff
    >>> title(Reading("tpr").of(TradeOff.gaussian(1.0)))
    'TPR at FPR 1 %'
    """
    if found.name not in METRICS:
        return found.title
    values = {name: Given(value) for name, value in found.conditions.items()}
    return IN_PERCENT.sub(r"{\1:%}", METRICS[found.name].title).format(**values)


def members(count: float) -> str:
    """The size of a group as printed: "1 member", "1.5 members"."""
    shown = floor(count, 3)
    return f"{shown} member" if shown == "1" else f"{shown} members"


def group(found: Group) -> str:
    """A group's row as a sentence."""
    sure, times = percent_up(found.belief), one_in(found.exceeded)
    doubt = members(found.equivalent)
    return say("law.group", size=found.size, belief=sure, times=times, equivalent=doubt)


def risk(record: AuditRecord, found: JudgedMetric) -> str:
    """A risk in a sentence for laymen: what was reached and is allowed, or only what is allowed."""
    numbers = found.numbers
    if found.measured and METRICS[numbers.name].observation is not None:
        return plainly(numbers, limited_by(record))
    most = math.inf if numbers.allowed is None else numbers.allowed
    return Reading(numbers.name, numbers.conditions).sentence(most)


def explained(record: AuditRecord, found: JudgedMetric) -> str:
    """What a risk is, beside its numbers; where the claim is void, without a number of it."""
    if METRICS[found.numbers.name].observation is not None:
        return picture_title(found.numbers)
    return "" if limited_by(record) == "void" else risk(record, found)


def plainly(found: Measured, by: str = "claimed") -> str:
    """A metric in a sentence for laymen."""
    if found.reached is None:
        return say("plainly.unlimited")
    least = say("plainly.least")
    return "; ".join(both(found, say("plainly.who"), least, Floor(found.reached), by)) + "."


def both(
    found: Measured, who: str, least: str, reached: Given, by: str = "claimed"
) -> tuple[str, str]:
    """What somebody reaches, and what limits them."""
    told = _observation(found)
    values = {name: Given(value) for name, value in found.conditions.items()}
    most = say("plainly.no_limit")
    if found.allowed is not None:
        most = told.allowed.format(by=say(f"plainly.{by}"), allowed=Ceiling(found.allowed))
    return told.reached.format(who=who, least=least, reached=reached, **values), most


def picture_title(found: Measured) -> str:
    """What the small picture on the first screen shows."""
    values = {name: Given(value) for name, value in found.conditions.items()}
    return _observation(found).picture.format(**values)


def _observation(found: Measured) -> Observation:
    if found.name == "curve":
        return CURVE
    return Reading(found.name, found.conditions).observation


def limited_by(record: AuditRecord) -> str:
    """What the numbers are that limit an attacker: certified, claimed, or claimed in vain."""
    if record.understated:
        return "certified"
    return "claimed" if record.label is None and not record.refuted else "void"
