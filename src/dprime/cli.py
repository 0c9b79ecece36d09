"""The command line: parse, call, print. Numbers come from the package, words from `profile`."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import dprime
from dprime import estimates, validate
from dprime.choose import choose as choose_parameter
from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD, Mechanism, PoolSampled, steps_from_epochs
from dprime.profile import Answer, Questions, risk_profile, round_down, round_up
from dprime.targets import TARGETS

app = typer.Typer(
    help="What differential privacy really buys: risks from parameters, parameters from risks.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

UsageError: Any = typer.BadParameter.__bases__[0]
"""Unknown options and the like; Typer does not export the class itself."""

BAD_INPUT = 2
"""Exit code for every error that the user can mend."""


def _option(help_text: str) -> Any:
    return typer.Option(help=help_text, show_default=False, metavar="NUMBER")


Noise = Annotated[str | None, _option("Noise over the clipping norm, as in Opacus.")]
Rate = Annotated[str | None, _option("Sampling rate, e.g. 0.01 or 256/60000.")]
Steps = Annotated[str | None, _option("Number of training steps.")]
Epochs = Annotated[str | None, _option("Passes over the data, instead of steps (rounded up).")]
Adjacency = Annotated[
    str | None, typer.Option(help="add-remove (default) or replace.", show_default=False)
]
Sampling = Annotated[str, typer.Option(help="poisson, fixed-size or shuffle.")]
GroupSize = Annotated[str, typer.Option(help="Records that one person may have.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Delta = Annotated[str | None, _option("δ at which ε is read [1e-5].")]
Epsilon = Annotated[str | None, _option("ε at which δ is read [1].")]
Fpr = Annotated[str | None, _option("False-positive rate at which the TPR is read [0.01].")]
Prior = Annotated[str | None, _option("Prior of precision [0.1] and success [0.5].")]
MinTpr = Annotated[str | None, _option("Smallest TPR of attackers that matter [0.01].")]
Belief = Annotated[str | None, _option("Posterior belief asked about [0.9].")]
BeliefPrior = Annotated[str | None, _option("Belief before looking [0.5].")]
Exceeded = Annotated[str | None, _option("How often a belief may be exceeded [0.001].")]
MaxPrior = Annotated[str | None, _option("Probability of a secret attribute's likeliest value.")]


@app.command()
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


@app.command()
def choose(
    noise_multiplier: Noise = None,
    sample_rate: Rate = None,
    steps: Steps = None,
    epochs: Epochs = None,
    adjacency: Adjacency = None,
    sampling: Sampling = "poisson",
    group_size: GroupSize = "1",
    whole: Annotated[str, typer.Option(help="Count a free length in steps or epochs.")] = "steps",
    advantage: Annotated[str | None, _option("Target: membership advantage.")] = None,
    bayes_security: Annotated[str | None, _option("Target: Bayes security.")] = None,
    tpr: Annotated[str | None, _option("Target: TPR at --fpr.")] = None,
    epsilon: Annotated[str | None, _option("Target: ε at --delta.")] = None,
    precision: Annotated[
        str | None,
        _option("Target: precision at --prior; without a prior, the pool's share is chosen."),
    ] = None,
    belief: Annotated[str | None, _option("Target: belief, at --prior and --exceeded.")] = None,
    success: Annotated[str | None, _option("Target: success at --prior.")] = None,
    secret_success: Annotated[
        str | None, _option("Target: guessing a secret attribute, at --max-prior.")
    ] = None,
    fpr: Fpr = None,
    delta: Delta = None,
    prior: Prior = None,
    min_tpr: MinTpr = None,
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
    size = validate.whole("group_size", validate.parse("group_size", group_size), example=1)
    if not mechanism.missing() and {"precision", "belief"} & set(numbers) and prior is None:
        mechanism = PoolSampled(mechanism)
    chosen = choose_parameter(
        mechanism,
        adjacency=adjacency,
        group_size=size,
        whole=whole,
        **{name: value for name, value in numbers.items() if _belongs(name, numbers)},
    )
    ask = Questions(**{n: v for n, v in numbers.items() if n in CONDITIONS})
    if prior is not None:
        ask = replace(ask, success_prior=numbers["prior"])
        if "belief" in numbers:
            ask = replace(ask, belief_prior=numbers["prior"])
    if isinstance(chosen, PoolSampled):
        ask = replace(ask, prior=chosen.prior, success_prior=chosen.prior)
    relation = "replace" if "secret_success" in numbers else adjacency or chosen.own_adjacency
    curve = chosen.curve(relation, group_size=size)
    name = mechanism.missing()[0]
    _print(chosen, relation, size, curve, ask, as_json, chosen=name)


CONDITIONS = ("fpr", "delta", "prior", "min_tpr", "exceeded", "max_prior")


def _belongs(name: str, numbers: dict[str, float]) -> bool:
    """Whether a number is the target or its condition; other conditions only shape the table."""
    if name in TARGETS:
        return True
    targets = [TARGETS[target] for target in numbers if target in TARGETS]
    return any(name in make.__code__.co_varnames[: make.__code__.co_argcount] for make in targets)


def _safe_digits(name: str, value: float) -> str:
    """A parameter as printed may be typed in again: its digits are cut on the safe side."""
    if isinstance(value, int):
        return f"{value:,}"
    return round_up(value, 6) if name == "noise_multiplier" else round_down(value, 6)


@app.command()
def demo() -> None:
    """A worked example: what a training reveals, and the noise that would reveal less."""
    from dprime.demo import run  # noqa: PLC0415  only this command needs it

    run(Console())


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
        shown: dict[str, object] = {
            "mechanism": mechanism.describe(),
            "adjacency": adjacency,
            "group_size": group_size,
            "metrics": {answer.name: answer.as_json() for answer in answers},
        }
        if estimates_by_source:
            shown["estimates"] = {
                source: {answer.name: answer.as_json() for answer in listed}
                for source, listed in estimates_by_source.items()
            }
        print(json.dumps(shown, indent=2, allow_nan=False))
        return
    console = Console()
    if chosen:
        digits = _safe_digits(chosen, getattr(mechanism, chosen))
        console.print(f"[bold]Chosen: {chosen.replace('_', ' ')} {digits}[/bold]")
    console.print(risk_table(describe(mechanism, adjacency, group_size, chosen=chosen), answers))
    for source, listed in (estimates_by_source or {}).items():
        console.print(risk_table(f"Estimate, no guarantee: {source}", listed))


def describe(
    mechanism: Mechanism, adjacency: str, group_size: int = 1, *, chosen: str | None = None
) -> str:
    """A mechanism in one line; the digits of a chosen parameter are cut on the safe side."""
    values = mechanism.describe()
    if isinstance(mechanism, PoolSampled):
        inner = describe(mechanism.training, adjacency, group_size, chosen=chosen)
        return f"{inner}, trained on a share {_shown(values, 'probability', chosen)} of a pool"
    if isinstance(mechanism, DPSGD):
        text = (
            f"DP-SGD, noise {_shown(values, 'noise_multiplier', chosen)}, "
            f"rate {_shown(values, 'sample_rate', chosen)}, "
            f"{values['steps']:,} {'step' if mechanism.steps == 1 else 'steps'}, "
            f"{mechanism.sampling} sampling"
        )
    else:
        text = ", ".join(f"{value}" for value in values.values())
    records = "one record" if group_size == 1 else f"the {group_size:,} records of one person"
    changed = f"{records} replaced" if adjacency == "replace" else f"with or without {records}"
    return f"{text}; {changed}"


def _shown(values: dict[str, Any], name: str, chosen: str | None) -> str:
    value = float(values[name])
    return _safe_digits(name, value) if name == chosen else f"{value:.6g}"


def risk_table(title: str, answers: list[Answer]) -> Table:
    """The profile as a table, one plain sentence beside each number."""
    table = Table(title=title, title_justify="left", title_style="bold", pad_edge=False)
    table.add_column("What", no_wrap=False)
    table.add_column("At most" if answers[0].kind == "certified" else "About", justify="right")
    table.add_column("In plain words")
    for answer in answers:
        least = answer.name == "bayes_security" and answer.kind == "certified"
        shown = round_down(answer.value, 4) if least else round_up(answer.value, 4)
        shown = shown.replace("inf", "no limit")
        table.add_row(answer.title, f"≥ {shown}" if least else shown, answer.sentence)
    table.caption = (
        "Certified: no attacker does better, whatever they know of the other records."
        if answers[0].kind == "certified"
        else "An estimate: the truth can be worse."
    )
    table.caption_justify = "left"
    return table


def _version(show: bool) -> None:
    if show:
        print(f"dprime {dprime.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None: ...


def main() -> None:
    """Run the command line; a mistake of the user ends in one sentence and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except UsageError as error:
        _fail(f"{error.format_message().rstrip('.')}: see dprime --help.")
    except ValueError as error:
        _fail(str(error))
    except typer.Abort:
        sys.exit(130)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _fail(sentence: str) -> None:
    print(f"Error: {' '.join(sentence.split())}", file=sys.stderr)
    sys.exit(BAD_INPUT)
