"""`dprime risk` and `dprime choose`: from parameters to risks, and back."""

from __future__ import annotations

import json
import re
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

from dprime import estimates, text, validate
from dprime.cli.options import AsJson, number_option, text_option, typed, with_options
from dprime.cli.tables import risk_table
from dprime.mechanisms import PoolSampled
from dprime.metrics import (
    OPTIONS,
    TARGETS,
    MetricValue,
    conditions_of,
    profile,
    risk_profile,
)
from dprime.registry import METRICS, Metric
from dprime.request import RiskRequest, answer_json, choose_request, level, risk_request
from dprime.solve import solve

ADD_IT = "add {option}, or use dprime choose to find it"
"""The remedy where a parameter of the training is missing."""

TRAINING: dict[str, Any] = {
    "noise_multiplier": number_option("Noise over the clipping norm, as in Opacus."),
    "sample_rate": number_option("Sampling rate, e.g. 0.01 or 256/60000."),
    "steps": number_option("Number of training steps."),
    "epochs": number_option("Passes over the data, instead of steps (rounded up)."),
}
SETTING = TRAINING | {
    "adjacency": text_option("add-remove (default), zero-out or replace."),
    "sampling": text_option("poisson (default), fixed-size or shuffle."),
    "group_size": number_option("Records that one person may have [1]."),
}
CONDITIONS = {name: number_option(condition.help) for name, condition in OPTIONS.items()}
"""What the metrics are read at."""


def _target_help(metric: Metric) -> str:
    """What is kept below a ceiling, and the options that it is read at."""
    options = [f"--{name.replace('_', '-')}" for name in metric.conditions]
    title = re.split(",| at ", metric.title)[0]
    return f"Target: {title}{', at ' * bool(options)}{' and '.join(options)}."


GOALS = {name: number_option(_target_help(METRICS[name])) for name in TARGETS}
LEVELS = {
    level(name): number_option("In the table: " * (level(name) != name) + condition.help)
    for name, condition in OPTIONS.items()
}


@with_options(SETTING | CONDITIONS, before="with_estimates")
def risk(
    with_estimates: Annotated[
        bool, typer.Option("--estimates", help="Add the closed forms, marked as estimates.")
    ] = False,
    as_json: AsJson = False,
    **texts: str | None,
) -> None:
    """What an attacker can do at most against DP-SGD with these parameters."""
    request = risk_request(typed(texts), ADD_IT)
    curve = request.mechanism.curve(request.adjacency, group_size=request.group_size)
    estimated = _estimates(request) if with_estimates else {}
    answers = risk_profile(curve, request.readings)
    setting = (request.mechanism, request.adjacency, request.group_size)
    if as_json:
        shown = answer_json(*setting, answers)
        if estimated:
            shown["estimates"] = {
                source: {answer.name: answer.as_json() for answer in listed}
                for source, listed in estimated.items()
            }
        print(json.dumps(shown, indent=2, allow_nan=False))
        return
    console, compared = Console(), (request.adjacency, request.group_size)
    title = text.describe(request.mechanism.to_dict(), *compared)
    console.print(risk_table(title, answers, *compared))
    for source, listed in estimated.items():
        console.print(risk_table(f"Estimate, no guarantee: {source}", listed, *compared))


@with_options(SETTING | GOALS | LEVELS, before="whole")
def choose(
    whole: Annotated[str, typer.Option(help="Count a free length in steps or epochs.")] = "steps",
    as_json: AsJson = False,
    **texts: str | None,
) -> None:
    """The noise (or rate, or steps) that keeps an acceptable risk. Leave out what to choose."""
    request = choose_request(typed(texts))
    compared, readings = (request.adjacency, request.group_size), request.readings
    found = solve(
        request.to_complete(),
        dict(request.target),
        adjacency=request.adjacency,
        group_size=request.group_size,
        whole=whole,
    )
    if isinstance(found.mechanism, PoolSampled):
        readings = profile(**{**conditions_of(readings), "prior": found.mechanism.prior})
    answers = risk_profile(found.curve, readings)
    if as_json:
        shown = answer_json(found.mechanism, *compared, answers)
        print(json.dumps(shown, indent=2, allow_nan=False))
        return
    name = found.parameter
    digits = text.safe_digits(name, getattr(found.mechanism, name))
    console = Console()
    console.print(f"[bold]Chosen: {name.replace('_', ' ')} {digits}[/bold]")
    title = text.describe(found.mechanism.to_dict(), *compared, chosen=name)
    console.print(risk_table(title, answers, *compared))


def _estimates(request: RiskRequest) -> dict[str, list[MetricValue]]:
    mechanism, adjacency = request.mechanism, request.adjacency
    if mechanism.sampling != "poisson" or request.group_size > 1:
        raise validate.InputError.of(
            "The estimates",
            "be asked for Poisson sampling and group_size 1",
            f"sampling is {mechanism.sampling!r} and group_size {request.group_size}",
            "leave --estimates out",
        )
    z, q, steps = mechanism.noise_multiplier, mechanism.sample_rate, mechanism.steps
    assert z is not None and q is not None and steps is not None  # noqa: PT018
    found = [estimates.central_limit(z, q, steps, adjacency)]
    if adjacency == "replace":
        found.append(estimates.cherubin(z, q, steps))
    certified = mechanism.curve(adjacency)
    found = [estimates.capped(estimate, certified) for estimate in found]
    for estimate in found:
        if estimate.warning:
            print(f"Warning: {estimate.warning}", file=sys.stderr)
    return {estimate.source: risk_profile(estimate, request.readings) for estimate in found}
