"""`dprime risk` and `dprime choose`: from parameters to risks, and back."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console

from dprime import estimates, validate
from dprime.asked import (
    Asked,
    describe,
    level,
    printed,
    risk_asked,
    safe_digits,
    target_asked,
    typed,
)
from dprime.cli.options import AsJson, number_option, with_numbers
from dprime.cli.tables import risk_table
from dprime.mechanisms import Mechanism, PoolSampled
from dprime.metrics import (
    METRICS,
    OPTIONS,
    TARGETS,
    MetricValue,
    Reading,
    conditions_of,
    profile,
    risk_profile,
)
from dprime.solve import solve

ADD_IT = "add {option}, or use dprime choose to find it"
"""The remedy where a parameter of the training is missing."""

Noise = Annotated[str | None, number_option("Noise over the clipping norm, as in Opacus.")]
Rate = Annotated[str | None, number_option("Sampling rate, e.g. 0.01 or 256/60000.")]
Steps = Annotated[str | None, number_option("Number of training steps.")]
Epochs = Annotated[
    str | None, number_option("Passes over the data, instead of steps (rounded up).")
]
Adjacency = Annotated[
    str | None, typer.Option(help="add-remove (default), zero-out or replace.", show_default=False)
]
Sampling = Annotated[str, typer.Option(help="poisson, fixed-size or shuffle.")]
GroupSize = Annotated[str, typer.Option(help="Records that one person may have.")]

CONDITIONS = {name: condition.help for name, condition in OPTIONS.items()}
"""What the metrics are read at."""


@with_numbers(CONDITIONS, before="with_estimates")
def risk(
    noise_multiplier: Noise = None,
    sample_rate: Rate = None,
    steps: Steps = None,
    epochs: Epochs = None,
    adjacency: Adjacency = None,
    sampling: Sampling = "poisson",
    group_size: GroupSize = "1",
    with_estimates: Annotated[
        bool, typer.Option("--estimates", help="Add the closed forms, marked as estimates.")
    ] = False,
    as_json: AsJson = False,
    **conditions: str | None,
) -> None:
    """What an attacker can do at most against DP-SGD with these parameters."""
    texts = typed(
        noise_multiplier=noise_multiplier,
        sample_rate=sample_rate,
        steps=steps,
        epochs=epochs,
        adjacency=adjacency,
        sampling=sampling,
        group_size=group_size,
        **conditions,
    )
    asked = risk_asked(texts, ADD_IT)
    answers = _read(asked.mechanism, asked, asked.readings)
    extra = _estimates(asked) if with_estimates else {}
    _print(asked.mechanism, asked, answers, as_json, estimates_by_source=extra)


@with_numbers(
    {
        **{name: METRICS[name].goal for name in TARGETS},
        **{
            level(name): text if level(name) == name else f"In the table: {text}"
            for name, text in CONDITIONS.items()
        },
    },
    before="as_json",
)
def choose(
    noise_multiplier: Noise = None,
    sample_rate: Rate = None,
    steps: Steps = None,
    epochs: Epochs = None,
    adjacency: Adjacency = None,
    sampling: Sampling = "poisson",
    group_size: GroupSize = "1",
    whole: Annotated[str, typer.Option(help="Count a free length in steps or epochs.")] = "steps",
    as_json: AsJson = False,
    **numbers: str | None,
) -> None:
    """The noise (or rate, or steps) that keeps an acceptable risk. Leave out what to choose."""
    conditions = {name: text for name, text in numbers.items() if name not in TARGETS}
    texts = typed(
        noise_multiplier=noise_multiplier,
        sample_rate=sample_rate,
        steps=steps,
        epochs=epochs,
        adjacency=adjacency,
        sampling=sampling,
        group_size=group_size,
        **conditions,
    )
    asked = target_asked(texts, typed(**{name: numbers[name] for name in TARGETS}))
    sought, readings = asked.sought(), asked.readings
    found = solve(
        sought,
        dict(asked.target),
        adjacency=asked.adjacency,
        group_size=asked.group_size,
        whole=whole,
    )
    if isinstance(found.mechanism, PoolSampled):
        readings = profile(**{**conditions_of(readings), "prior": found.mechanism.prior})
    _print(
        found.mechanism,
        asked,
        risk_profile(found.curve, readings),
        as_json,
        chosen=found.parameter,
    )


def _read(mechanism: Mechanism, asked: Asked, readings: tuple[Reading, ...]) -> list[MetricValue]:
    """Every metric of the mechanism's certified curve."""
    return risk_profile(mechanism.curve(asked.adjacency, group_size=asked.group_size), readings)


def _estimates(asked: Asked) -> dict[str, list[MetricValue]]:
    mechanism, adjacency = asked.mechanism, asked.adjacency
    if mechanism.sampling != "poisson" or asked.group_size > 1:
        raise validate.InputError.of(
            "The estimates",
            "be asked for Poisson sampling and group_size 1",
            f"sampling is {mechanism.sampling!r} and group_size {asked.group_size}",
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
    return {estimate.source: risk_profile(estimate, asked.readings) for estimate in found}


def _print(
    mechanism: Mechanism,
    asked: Asked,
    answers: list[MetricValue],
    as_json: bool,
    *,
    chosen: str | None = None,
    estimates_by_source: dict[str, list[MetricValue]] | None = None,
) -> None:
    setting = (mechanism, asked.adjacency, asked.group_size)
    if as_json:
        shown = printed(*setting, answers)
        if estimates_by_source:
            shown["estimates"] = {
                source: {answer.name: answer.as_json() for answer in listed}
                for source, listed in estimates_by_source.items()
            }
        print(json.dumps(shown, indent=2, allow_nan=False))
        return
    console = Console()
    if chosen:
        digits = safe_digits(chosen, getattr(mechanism, chosen))
        console.print(f"[bold]Chosen: {chosen.replace('_', ' ')} {digits}[/bold]")
    compared = (asked.adjacency, asked.group_size)
    console.print(risk_table(describe(*setting, chosen=chosen), answers, *compared))
    for source, listed in (estimates_by_source or {}).items():
        console.print(risk_table(f"Estimate, no guarantee: {source}", listed, *compared))
