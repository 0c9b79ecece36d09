"""`dprime risk` and `dprime choose`: from parameters to risks, and back."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Console

from dprime import estimates, validate
from dprime.asked import (
    Asked,
    describe,
    printed,
    risk_asked,
    safe_digits,
    target_asked,
    typed,
)
from dprime.choose import choose as choose_parameter
from dprime.cli.options import AsJson, number_option
from dprime.cli.tables import risk_table
from dprime.mechanisms import Mechanism, PoolSampled
from dprime.profile import Answer, Questions, risk_profile

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
Delta = Annotated[str | None, number_option("δ at which ε is read [1e-5].")]
Epsilon = Annotated[str | None, number_option("ε at which δ is read [1].")]
Fpr = Annotated[str | None, number_option("False-positive rate at which the TPR is read [0.01].")]
Prior = Annotated[str | None, number_option("Prior of precision [0.1] and success [0.5].")]
MinTpr = Annotated[str | None, number_option("Smallest TPR of attackers that matter [0.01].")]
Belief = Annotated[str | None, number_option("Posterior belief asked about [0.9].")]
BeliefPrior = Annotated[str | None, number_option("Belief before looking [0.5].")]
Exceeded = Annotated[str | None, number_option("How often a belief may be exceeded [0.001].")]
MaxPrior = Annotated[
    str | None, number_option("Probability of a secret attribute's likeliest value.")
]


def risk(
    noise_multiplier: Noise = None,
    sample_rate: Rate = None,
    steps: Steps = None,
    epochs: Epochs = None,
    adjacency: Adjacency = None,
    sampling: Sampling = "poisson",
    group_size: GroupSize = "1",
    delta: Delta = None,
    epsilon: Epsilon = None,
    fpr: Fpr = None,
    prior: Prior = None,
    min_tpr: MinTpr = None,
    belief: Belief = None,
    belief_prior: BeliefPrior = None,
    exceeded: Exceeded = None,
    max_prior: MaxPrior = None,
    with_estimates: Annotated[
        bool, typer.Option("--estimates", help="Add the closed forms, marked as estimates.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """What an attacker can do at most against DP-SGD with these parameters."""
    asked = risk_asked(
        typed(
            noise_multiplier=noise_multiplier,
            sample_rate=sample_rate,
            steps=steps,
            epochs=epochs,
            adjacency=adjacency,
            sampling=sampling,
            group_size=group_size,
            delta=delta,
            epsilon=epsilon,
            fpr=fpr,
            prior=prior,
            min_tpr=min_tpr,
            belief=belief,
            belief_prior=belief_prior,
            exceeded=exceeded,
            max_prior=max_prior,
        ),
        ADD_IT,
    )
    answers = _read(asked.mechanism, asked, asked.ask)
    extra = _estimates(asked) if with_estimates else {}
    _print(asked.mechanism, asked, answers, as_json, estimates_by_source=extra)


def choose(
    noise_multiplier: Noise = None,
    sample_rate: Rate = None,
    steps: Steps = None,
    epochs: Epochs = None,
    adjacency: Adjacency = None,
    sampling: Sampling = "poisson",
    group_size: GroupSize = "1",
    whole: Annotated[str, typer.Option(help="Count a free length in steps or epochs.")] = "steps",
    advantage: Annotated[str | None, number_option("Target: membership advantage.")] = None,
    bayes_security: Annotated[str | None, number_option("Target: Bayes security.")] = None,
    tpr: Annotated[str | None, number_option("Target: TPR at --fpr.")] = None,
    epsilon: Annotated[str | None, number_option("Target: ε at --delta.")] = None,
    precision: Annotated[
        str | None,
        number_option("Target: precision at --prior; without a prior, the pool's share is chosen."),
    ] = None,
    belief: Annotated[
        str | None, number_option("Target: belief, at --prior and --exceeded.")
    ] = None,
    success: Annotated[str | None, number_option("Target: success at --prior.")] = None,
    secret_success: Annotated[
        str | None, number_option("Target: guessing a secret attribute, at --max-prior.")
    ] = None,
    fpr: Fpr = None,
    delta: Delta = None,
    prior: Prior = None,
    min_tpr: MinTpr = None,
    belief_prior: BeliefPrior = None,
    belief_level: Annotated[
        str | None, number_option("Belief asked about in the table [0.9].")
    ] = None,
    exceeded: Exceeded = None,
    max_prior: MaxPrior = None,
    as_json: AsJson = False,
) -> None:
    """The noise (or rate, or steps) that keeps an acceptable risk. Leave out what to choose."""
    asked = target_asked(
        typed(
            noise_multiplier=noise_multiplier,
            sample_rate=sample_rate,
            steps=steps,
            epochs=epochs,
            adjacency=adjacency,
            sampling=sampling,
            group_size=group_size,
            fpr=fpr,
            delta=delta,
            prior=prior,
            min_tpr=min_tpr,
            belief_prior=belief_prior,
            belief_level=belief_level,
            exceeded=exceeded,
            max_prior=max_prior,
        ),
        typed(
            advantage=advantage,
            bayes_security=bayes_security,
            tpr=tpr,
            epsilon=epsilon,
            precision=precision,
            belief=belief,
            success=success,
            secret_success=secret_success,
        ),
    )
    sought, ask = asked.sought(), asked.ask
    chosen = choose_parameter(
        sought,
        adjacency=asked.adjacency,
        group_size=asked.group_size,
        whole=whole,
        **dict(asked.target),
    )
    if isinstance(chosen, PoolSampled):
        ask = replace(ask, prior=chosen.prior, success_prior=chosen.prior)
    _print(chosen, asked, _read(chosen, asked, ask), as_json, chosen=sought.missing()[0])


def _read(mechanism: Mechanism, asked: Asked, ask: Questions) -> list[Answer]:
    """Every metric of the mechanism's certified curve."""
    return risk_profile(mechanism.curve(asked.adjacency, group_size=asked.group_size), ask)


def _estimates(asked: Asked) -> dict[str, list[Answer]]:
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
    return {estimate.source: risk_profile(estimate, asked.ask) for estimate in found}


def _print(
    mechanism: Mechanism,
    asked: Asked,
    answers: list[Answer],
    as_json: bool,
    *,
    chosen: str | None = None,
    estimates_by_source: dict[str, list[Answer]] | None = None,
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
