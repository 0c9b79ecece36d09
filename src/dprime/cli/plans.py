"""`dprime plan`: how many trials an audit needs, before the first one."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import typer
from rich.console import Console

from dprime import validate
from dprime.audit.metrics import KINDS, Metric
from dprime.audit.planner import METHODS, epsilon_limit, largest_epsilon
from dprime.audit.planner import plan as make_plan
from dprime.bounds import mu_from_epsilon
from dprime.cli.options import AsJson, number_option
from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD
from dprime.profile import round_down

Text = str | None


def plan(
    epsilon: Annotated[
        Text, number_option("The claim: ε at --delta, of Gaussian noise in full batches.")
    ] = None,
    noise_multiplier: Annotated[Text, number_option("The claim: noise of a DP-SGD.")] = None,
    sample_rate: Annotated[Text, number_option("Its sampling rate [1].")] = None,
    steps: Annotated[Text, number_option("Its steps.")] = None,
    adjacency: Annotated[Text, typer.Option(help="add-remove or replace.")] = None,
    delta: Annotated[Text, number_option("δ of the ε [1e-5].")] = None,
    metric: Annotated[
        Text, typer.Option(help=f"{', '.join(KINDS)} ; epsilon if not given.")
    ] = None,
    method: Annotated[str, typer.Option(help=", ".join(METHODS))] = "gaussian",
    strength: Annotated[
        Text, number_option("The attacker's d′ over that of the claim [1].")
    ] = None,
    confidence: Annotated[Text, number_option("Of the bound [0.95].")] = None,
    power: Annotated[Text, number_option("Share of audits that shall reach it [0.9].")] = None,
    reach: Annotated[Text, number_option("Share of the claim to be shown [0.85].")] = None,
    trials: Annotated[Text, number_option("Also say what so many trials can show at all.")] = None,
    as_json: AsJson = False,
) -> None:
    """How many trials an audit needs to come near a claim, or to refute it."""
    given = {"strength": strength, "confidence": confidence, "power": power, "reach": reach}
    options = {name: validate.parse(name, text) for name, text in given.items() if text is not None}
    at_delta = validate.parse("delta", delta) if delta is not None else 1e-5
    claim = _claim(epsilon, noise_multiplier, sample_rate, steps, adjacency, at_delta)
    asked = Metric(metric or "epsilon", {"delta": at_delta} if metric in (None, "epsilon") else {})
    made = make_plan(claim, metric=asked, method=method, **options)
    limits = _limits(trials, at_delta, made.confidence)
    if as_json:
        shown: dict[str, Any] = {**vars(made), "metric": {"name": asked.name, **asked.conditions}}
        print(json.dumps({**shown, **limits, "sentence": made.sentence()}, indent=2))
        return
    console = Console()
    console.print(made.sentence(), highlight=False)
    if limits:
        console.print(
            f"{int(limits['of_trials']):,} trials a world can show an ε of at most "
            f"{round_down(limits['largest_epsilon'])} by Clopper-Pearson, and "
            f"{round_down(limits['epsilon_limit'])} by any method that assumes nothing.",
            highlight=False,
        )


def _claim(
    epsilon: Text, noise: Text, rate: Text, steps: Text, adjacency: Text, delta: float
) -> TradeOff:
    """The claimed curve: of an ε, or of a DP-SGD."""
    validate.exactly_one(
        "epsilon, noise_multiplier",
        {"epsilon": epsilon, "noise_multiplier": noise},
        "give --epsilon, or --noise-multiplier and --steps",
    )
    if epsilon is not None:
        for name, given in (("sample_rate", rate), ("steps", steps), ("adjacency", adjacency)):
            if given is not None:
                remedy = "leave it out, or give --noise-multiplier"
                raise validate.refusal(name, given, "left out where ε is claimed", remedy)
        value = validate.parse("epsilon", epsilon)
        return TradeOff.gaussian(mu_from_epsilon(value, delta=delta))
    texts = {"noise_multiplier": noise, "sample_rate": rate or "1", "steps": steps}
    numbers = {name: validate.parse(name, text) for name, text in texts.items() if text is not None}
    return DPSGD(**numbers).curve(adjacency)  # type: ignore[arg-type]


def _limits(trials: Text, delta: float, confidence: float) -> dict[str, float]:
    """What a number of trials can show at all."""
    if trials is None:
        return {}
    count = validate.whole("trials", validate.parse("trials", trials))
    about = {"delta": delta, "confidence": confidence}
    found = {
        "largest_epsilon": largest_epsilon(count, **about),
        "epsilon_limit": epsilon_limit(count, **about),
    }
    return {"of_trials": count, **{k: v for k, v in found.items() if math.isfinite(v)}}
