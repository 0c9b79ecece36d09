"""`dprime risk`, `choose` and `consequences`: from parameters to risks, and back."""

from __future__ import annotations

from rich.table import Table

from dprime import options, text
from dprime.cli.command import say, show, takes
from dprime.cli.tables import plain_table, risk_table
from dprime.consequences import Consequences
from dprime.mechanisms import DEFAULT_ADJACENCY
from dprime.metrics import CONDITIONS, MetricValue, risk_profile
from dprime.request import (
    GOALS,
    OF_CONSEQUENCES,
    RISK,
    answer_json,
    choose_request,
    consequences_request,
    risk_request,
)
from dprime.text import round_up


@takes(*RISK, options.EPSILON, *CONDITIONS, options.ESTIMATES, options.JSON)
def risk(**given: str) -> None:
    """Bound what an attacker can achieve against DP-SGD with the given parameters."""
    request = risk_request(given)
    compared = (request.adjacency, request.group_size)
    estimated = request.estimates() if "estimates" in given else []
    answers = risk_profile(request.curve(), request.readings)
    shown = answer_json(request.mechanism, *compared, answers)
    tables = [risk_table(text.describe(shown["mechanism"], *compared), answers, *compared)]
    for estimate in estimated:
        if estimate.warning:
            say(f"Warning: {estimate.warning}", error=True)
        listed = risk_profile(estimate, request.readings)
        found = {answer.name: answer.as_json() for answer in listed}
        shown.setdefault("estimates", {})[estimate.source] = found
        title = f"Estimate, no guarantee: {estimate.source}"
        tables.append(risk_table(title, listed, *compared))
    show(shown, given, *tables)


@takes(*RISK, *GOALS, *CONDITIONS, options.ROUND_TO, options.JSON)
def choose(**given: str) -> None:
    """Find the noise, sampling rate or number of steps that keeps a risk below a target."""
    request = choose_request(given)
    compared = (request.adjacency, request.group_size)
    found, readings = request.solve(given.get("round_to", "steps"))
    answers, name = risk_profile(found.curve, readings), found.parameter
    shown = answer_json(found.mechanism, *compared, answers)
    digits = text.safe_digits(name, getattr(found.mechanism, name))
    title = text.describe(shown["mechanism"], *compared, chosen=name)
    chosen = f"[bold]Chosen: {name.replace('_', ' ')} {digits}[/bold]"
    show(shown, given, chosen, risk_table(title, answers, *compared))


@takes(*options.LENGTHS, *OF_CONSEQUENCES, options.JSON)
def consequences(**given: str) -> None:
    """Translate a guarantee into limits on deletion, reconstruction and loss."""
    found = consequences_request(given)
    show(found.as_json(), given, _consequences_table(found))


def _consequences_table(found: Consequences) -> Table:
    title = text.describe(found.mechanism.to_dict(), DEFAULT_ADJACENCY)
    table = plain_table(title, "What", "Certified", "In plain words")
    table.columns[1].no_wrap = True
    for answer in found.answers:
        table.add_row(answer.title, _limit(answer), answer.sentence)
    table.caption = f"{text.certified(DEFAULT_ADJACENCY)}. Also: {text.POOL}."
    return table


def _limit(answer: MetricValue) -> str:
    """A count is a floor, every other number a ceiling."""
    floor = answer.name == "deletion_capacity"
    return f"≥ {answer.value:,}" if floor else f"≤ {round_up(answer.value)}"
