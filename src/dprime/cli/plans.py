"""`dprime plan`: how many trials an audit needs, before the first one."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

from dprime import validate
from dprime.audit.config import criterion_from
from dprime.audit.lower import USUAL_METHOD
from dprime.audit.planner import AuditPlan, epsilon_limit, largest_epsilon
from dprime.audit.planner import plan as make_plan
from dprime.audit.power import METHODS
from dprime.bounds import mu_from_epsilon
from dprime.cli.options import AsJson, number_option, text_option
from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD
from dprime.metrics import OBSERVED, Reading
from dprime.text import round_down

Text = str | None


def plan(
    epsilon: Annotated[
        Text, number_option("The claim: ε at --delta, of Gaussian noise in full batches.")
    ] = None,
    noise_multiplier: Annotated[Text, number_option("The claim: noise of a DP-SGD.")] = None,
    sample_rate: Annotated[Text, number_option("Its sampling rate [1].")] = None,
    steps: Annotated[Text, number_option("Its steps.")] = None,
    adjacency: Annotated[Text, typer.Option(help="add-remove, zero-out or replace.")] = None,
    delta: Annotated[Text, number_option("δ of the ε [1e-5].")] = None,
    metric: Annotated[
        Text,
        text_option(f"What decides: {', '.join(OBSERVED)} or curve; the whole curve if not given."),
    ] = None,
    fpr: Annotated[Text, number_option("For --metric tpr.")] = None,
    prior: Annotated[Text, number_option("For --metric precision or success.")] = None,
    min_tpr: Annotated[Text, number_option("For --metric precision.")] = None,
    method: Annotated[
        Text, text_option(f"Of the lower bound: {', '.join(METHODS)}; {USUAL_METHOD} if not given.")
    ] = None,
    strength: Annotated[
        Text,
        number_option("The attacker's d′ over the most that keeps the claim [2; 1 for a metric]."),
    ] = None,
    confidence: Annotated[Text, number_option("Of the bound [0.95].")] = None,
    power: Annotated[Text, number_option("Share of audits that shall reach it [0.8].")] = None,
    reach: Annotated[
        Text, number_option("For a metric: the share of the claim to be shown [0.85].")
    ] = None,
    trials: Annotated[Text, number_option("Also say what so many trials can show at all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compute how many trials an audit needs to refute a claim."""
    given = {"strength": strength, "confidence": confidence, "power": power, "reach": reach}
    options = {name: validate.parse(name, text) for name, text in given.items() if text is not None}
    at_delta = validate.parse("delta", delta) if delta is not None else 1e-5
    claim = _claim(epsilon, noise_multiplier, sample_rate, steps, adjacency, at_delta)
    conditions = {"delta": delta, "fpr": fpr, "prior": prior, "min_tpr": min_tpr}
    at = {name: validate.parse(name, text) for name, text in conditions.items() if text is not None}
    if epsilon is not None and metric != "epsilon":
        at.pop("delta", None)  # it belongs to the claim
    asked = criterion_from("curve" if metric is None else metric, at)
    made = make_plan(claim, metric=asked, method=method or USUAL_METHOD, **options)
    limits = _limits(trials, at_delta, made.confidence)
    typed = {
        "epsilon": epsilon, "noise-multiplier": noise_multiplier, "sample-rate": sample_rate,
        "steps": steps, "adjacency": adjacency, "metric": metric, "delta": delta, "fpr": fpr,
        "prior": prior, "min-tpr": min_tpr, "method": method, "confidence": confidence,
    }  # fmt: skip
    command = _command(made, typed)
    if as_json:
        named: dict[str, object] = {"name": "curve"}
        if isinstance(asked, Reading):
            named = {"name": asked.name, **asked.conditions}
        shown: dict[str, Any] = {**vars(made), "metric": named, "command": command}
        print(json.dumps({**shown, **limits, "sentence": made.sentence()}, indent=2))
        return
    console = Console()
    console.print(made.sentence(), highlight=False)
    if command is not None:
        console.print(f"The audit: {command}", highlight=False, soft_wrap=True)
    if limits:
        console.print(
            f"{int(limits['of_trials']):,} trials a world can show an ε of at most "
            f"{round_down(limits['largest_epsilon'])} by Clopper-Pearson, and "
            f"{round_down(limits['epsilon_limit'])} by any method that assumes nothing.",
            highlight=False,
        )


def _command(made: AuditPlan, typed: Mapping[str, Text]) -> str | None:
    """The audit that was planned, with the options as they were typed."""
    trials = made.refuting if made.strength > 1 else made.trials
    if trials is None:
        return None
    words = [f"--{name} {text}" for name, text in typed.items() if text is not None]
    if made.method == "gaussian":
        words.append("--assume gaussian")
    return " ".join(["dprime audit", *words, f"--trials {trials}"])


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
                raise validate.invalid_value(name, given, "left out where ε is claimed", remedy)
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
