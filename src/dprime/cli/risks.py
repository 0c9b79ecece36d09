"""`dprime risk` and `dprime choose`: from parameters to risks, and back."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Console

from dprime import estimates, validate
from dprime.asked import describe, printed, safe_digits
from dprime.choose import choose as choose_parameter
from dprime.cli.options import AsJson, number_option
from dprime.cli.tables import risk_table
from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD, Mechanism, PoolSampled, steps_from_epochs
from dprime.profile import Answer, Questions, risk_profile
from dprime.targets import TARGETS

Noise = Annotated[str | None, number_option("Noise over the clipping norm, as in Opacus.")]
Rate = Annotated[str | None, number_option("Sampling rate, e.g. 0.01 or 256/60000.")]
Steps = Annotated[str | None, number_option("Number of training steps.")]
Epochs = Annotated[
    str | None, number_option("Passes over the data, instead of steps (rounded up).")
]
Adjacency = Annotated[
    str | None, typer.Option(help="add-remove (default) or replace.", show_default=False)
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
    mechanism = _described(noise_multiplier, sample_rate, steps, epochs, sampling)
    if mechanism.missing():
        name = mechanism.missing()[0]
        raise ValueError(
            f"{name} must be given, but it is missing: add --{name.replace('_', '-')}, "
            "or use dprime choose to find it."
        )
    ask = _questions(
        delta=delta,
        epsilon=epsilon,
        fpr=fpr,
        prior=prior,
        success_prior=prior,
        min_tpr=min_tpr,
        belief=belief,
        belief_prior=belief_prior,
        exceeded=exceeded,
        max_prior=max_prior,
    )
    size = validate.whole("group_size", validate.parse("group_size", group_size), example=1)
    relation = adjacency or mechanism.own_adjacency
    if ask.max_prior is not None and relation != "replace":
        raise ValueError(
            f"adjacency must be 'replace' to ask about a secret (max_prior), but it is "
            f"{relation!r}: add --adjacency replace."
        )
    curve = mechanism.curve(adjacency, group_size=size)
    extra = _estimates(mechanism, relation, size, ask) if with_estimates else {}
    _print(mechanism, relation, size, curve, ask, as_json, estimates_by_source=extra)


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
    mechanism: Mechanism = _described(noise_multiplier, sample_rate, steps, epochs, sampling)
    given = {
        "advantage": advantage,
        "bayes_security": bayes_security,
        "tpr": tpr,
        "epsilon": epsilon,
        "precision": precision,
        "belief": belief,
        "success": success,
        "secret_success": secret_success,
        "fpr": fpr,
        "delta": delta,
        "prior": prior,
        "min_tpr": min_tpr,
        "exceeded": exceeded,
        "max_prior": max_prior,
    }
    numbers = {name: validate.parse(name, text) for name, text in given.items() if text is not None}
    before = None if belief_prior is None else validate.parse("belief_prior", belief_prior)
    if before is None and "belief" in numbers:
        before = numbers.get("prior")
    wanted = _target(numbers, before)
    size = validate.whole("group_size", validate.parse("group_size", group_size), example=1)
    if not mechanism.missing() and {"precision", "belief"} & set(numbers) and "prior" not in wanted:
        mechanism = PoolSampled(mechanism)
    chosen = choose_parameter(
        mechanism,
        adjacency=adjacency,
        group_size=size,
        whole=whole,
        **wanted,
    )
    ask = Questions(**{n: v for n, v in numbers.items() if n in CONDITIONS})
    if prior is not None:
        ask = replace(ask, success_prior=numbers["prior"])
    if before is not None:
        ask = replace(ask, belief_prior=before)
    if belief_level is not None:
        ask = replace(ask, belief=validate.parse("belief_level", belief_level))
    if isinstance(chosen, PoolSampled):
        ask = replace(ask, prior=chosen.prior, success_prior=chosen.prior)
    relation = "replace" if "secret_success" in numbers else adjacency or chosen.own_adjacency
    curve = chosen.curve(relation, group_size=size)
    name = mechanism.missing()[0]
    _print(chosen, relation, size, curve, ask, as_json, chosen=name)


def _target(numbers: dict[str, float], before: float | None) -> dict[str, float]:
    """The target with its conditions; the prior of a belief is the belief before looking."""
    wanted = {name: value for name, value in numbers.items() if _belongs(name, numbers)}
    if "belief" in numbers and before is not None:
        wanted["prior"] = before
    return wanted


CONDITIONS = ("fpr", "delta", "prior", "min_tpr", "exceeded", "max_prior")


def _belongs(name: str, numbers: dict[str, float]) -> bool:
    """Whether a number is the target or its condition; other conditions only shape the table."""
    if name in TARGETS:
        return True
    targets = [TARGETS[target] for target in numbers if target in TARGETS]
    return any(name in make.__code__.co_varnames[: make.__code__.co_argcount] for make in targets)


def _described(
    noise: str | None, rate: str | None, steps: str | None, epochs: str | None, sampling: str
) -> DPSGD:
    """The DP-SGD that the options describe; what was not given stays open."""
    numbers = {
        name: validate.parse(name, text)
        for name, text in (("noise_multiplier", noise), ("sample_rate", rate), ("steps", steps))
        if text is not None
    }
    mechanism = DPSGD(**numbers, sampling=sampling)  # type: ignore[arg-type]
    if epochs is None:
        return mechanism
    validate.exactly_one("steps, epochs", {"steps": steps, "epochs": epochs}, "leave one out")
    if mechanism.sample_rate is None:
        raise ValueError(
            "sample_rate must be given with epochs, but it is missing: add --sample-rate, "
            "or give --steps."
        )
    count = steps_from_epochs(validate.parse("epochs", epochs), mechanism.sample_rate)
    return replace(mechanism, steps=count)


def _questions(**texts: str | None) -> Questions:
    return Questions(
        **{name: validate.parse(name, text) for name, text in texts.items() if text is not None}
    )


def _estimates(
    mechanism: DPSGD, adjacency: str, group_size: int, ask: Questions
) -> dict[str, list[Answer]]:
    if mechanism.sampling != "poisson" or group_size > 1:
        raise ValueError(
            "The estimates must be asked for Poisson sampling and group_size 1, but sampling is "
            f"{mechanism.sampling!r} and group_size {group_size}: leave --estimates out."
        )
    z, q, steps = mechanism.noise_multiplier, mechanism.sample_rate, mechanism.steps
    assert z is not None and q is not None and steps is not None  # noqa: PT018
    found = [estimates.central_limit(z, q, steps, adjacency)]
    if adjacency == "replace":
        found.append(estimates.cherubin(z, q, steps))
    for estimate in found:
        if estimate.warning:
            print(f"Warning: {estimate.warning}", file=sys.stderr)
    return {estimate.source: risk_profile(estimate, ask) for estimate in found}


def _print(
    mechanism: Mechanism,
    adjacency: str,
    group_size: int,
    curve: TradeOff,
    ask: Questions,
    as_json: bool,
    *,
    chosen: str | None = None,
    estimates_by_source: dict[str, list[Answer]] | None = None,
) -> None:
    answers = risk_profile(curve, ask)
    if as_json:
        shown = printed(mechanism, adjacency, group_size, answers)
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
    console.print(risk_table(describe(mechanism, adjacency, group_size, chosen=chosen), answers))
    for source, listed in (estimates_by_source or {}).items():
        console.print(risk_table(f"Estimate, no guarantee: {source}", listed))
