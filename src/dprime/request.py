"""A request as texts, from a command line or an address, and what it asks for in numbers.

Names and texts are those of `dprime risk` and `dprime choose`, so that the same words give the same
numbers wherever they are typed.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dprime import estimates, options, validate
from dprime.consequences import Consequences, consequences
from dprime.curve import Estimate, TradeOff
from dprime.guarantees import EpsilonDelta
from dprime.mechanisms import ADJACENCIES, DPSGD, Mechanism, PoolSampled
from dprime.metrics import CONDITIONS, TARGETS, MetricValue, Reading, conditions_of, profile
from dprime.option import Texts, read
from dprime.parameters import steps_from_epochs
from dprime.registry import METRICS
from dprime.solve import Solution, choose, solve

MECHANISM = tuple(option.name for option in options.MECHANISM)
"""The parameters of DP-SGD; `choose` finds one of them."""

GOALS = tuple(options.DECLARED[name] for name in TARGETS)
"""What `choose` can keep, as options."""

RISK = (*options.LENGTHS, options.SAMPLING, *options.COMPARED)
"""What `dprime risk` and `dprime choose` take alike."""

OF_CONSEQUENCES = tuple(
    options.DECLARED[name].here(parameter.default)
    for name, parameter in inspect.signature(consequences).parameters.items()
    if name in options.DECLARED
)
"""What `dprime consequences` takes beside a training."""

ADDRESS = (
    *options.MECHANISM,
    *options.COMPARED,
    *(each for each in CONDITIONS if each.name not in ("epsilon_level", "max_prior", "guess")),
)
"""Everything that an address can give beside a target; a command has more options."""

NAMES = tuple(option.name for option in ADDRESS)

READ_DELTA = next(each.default for each in CONDITIONS if each.name == "delta")
"""The δ at which ε is read unless another one is given."""

RISK_ADDRESS = (*ADDRESS, options.EPSILON)
"""Everything that an address can give to ask for a risk: a training, or a guarantee alone."""

ADDRESS_TARGETS = tuple(name for name in TARGETS if {*METRICS[name].conditions} <= {*NAMES})
"""The targets whose conditions an address can give."""


@dataclass(frozen=True)
class RiskRequest:
    """What `dprime risk` or `dprime choose` is asked for, in numbers."""

    mechanism: Mechanism  # one parameter is missing where it is to be chosen
    adjacency: str
    group_size: int
    readings: tuple[Reading, ...]
    target: tuple[tuple[str, float], ...] = ()  # with its conditions, as `choose` takes them

    def curve(self) -> TradeOff:
        return self.mechanism.curve(self.adjacency, group_size=self.group_size)

    def estimates(self) -> list[Estimate]:
        """The closed forms that apply, none of them above the certified curve."""
        made, adjacency = self.mechanism, self.adjacency
        if not isinstance(made, DPSGD):
            wanted, remedy = "left out for a guarantee", "give the training, or leave it out"
            raise validate.invalid_value("estimates", True, wanted, remedy)
        if made.sampling != "poisson" or self.group_size > 1:
            raise validate.InputError.of(
                "The estimates",
                "be asked for Poisson sampling and group_size 1",
                f"sampling is {made.sampling!r} and group_size {self.group_size}",
                "leave --estimates out",
            )
        z, q, steps = made.noise_multiplier, made.sample_rate, made.steps
        assert z is not None and q is not None and steps is not None  # noqa: PT018
        found = [estimates.central_limit(z, q, steps, adjacency)]
        if adjacency == "replace":
            found.append(estimates.cherubin(z, q, steps))
        certified = self.curve()
        return [estimates.capped(estimate, certified) for estimate in found]

    def to_complete(self) -> Mechanism:
        """What `choose` completes: where no parameter is missing, the share of a pool."""
        wanted = dict(self.target)
        if self.mechanism.free_parameters() or not {"precision", "belief"} & set(wanted):
            return self.mechanism
        given = {"prior", "belief_prior"} & set(wanted)
        return self.mechanism if given else PoolSampled(self.mechanism)

    def chosen(self) -> Mechanism:
        relation, size = self.adjacency, self.group_size
        return choose(self.mechanism, adjacency=relation, group_size=size, **dict(self.target))  # type: ignore[arg-type]

    def solve(self, round_to: str) -> tuple[Solution[Mechanism], tuple[Reading, ...]]:
        """What is chosen, and what is then read; the share of a pool is the prior."""
        found = solve(
            self.to_complete(),
            dict(self.target),
            adjacency=self.adjacency,
            group_size=self.group_size,
            round_to=round_to,
        )
        if not isinstance(found.mechanism, PoolSampled):
            return found, self.readings
        prior = found.mechanism.prior
        priors = {"prior": prior, "belief_prior": prior}
        return found, profile(**{**conditions_of(self.readings), **priors})


def training_request(texts: Texts) -> DPSGD:
    """The DP-SGD that the texts describe."""
    mechanism = _described(texts)
    for name in mechanism.free_parameters():
        remedy = "give it, or let dprime choose find it"
        raise validate.invalid_input(name, "missing", "given", remedy)
    return mechanism


def guarantee_request(texts: Texts) -> EpsilonDelta:
    """The (ε, δ) that the texts state, of which nothing else is known."""
    for option in (*options.LENGTHS, options.SAMPLING):
        if option.name in texts:
            wanted, remedy = "left out with epsilon", "give the training, or ε and δ alone"
            raise validate.invalid_value(option.name, texts[option.name], wanted, remedy)
    adjacency = validate.one_of("adjacency", texts.get("adjacency", "add-remove"), ADJACENCIES)
    stated = {"delta": READ_DELTA, **read((options.EPSILON, options.DELTA), texts)}
    return EpsilonDelta(**stated, adjacency=adjacency)


def risk_request(texts: Texts) -> RiskRequest:
    """The request that `dprime risk` has with these options: a training's, or a guarantee's."""
    stated = "epsilon" in texts
    return _request(guarantee_request(texts) if stated else training_request(texts), texts, {})


def choose_request(texts: Texts) -> RiskRequest:
    """The request that `dprime choose` has with these options."""
    return _request(_described(texts), texts, read(GOALS, texts))


def consequences_request(texts: Texts) -> Consequences:
    """What `dprime consequences` says with these options."""
    return consequences(training_request(texts), **read(OF_CONSEQUENCES, texts))


def choose_options(texts: Texts, target: str, value: str, free: str) -> dict[str, str]:
    """The options of `dprime choose` with which it finds a parameter; its own text is not read."""
    validate.one_of("target", target, ADDRESS_TARGETS)
    validate.one_of("free", free, MECHANISM)
    given = {name: texts[name] for name in NAMES if name in texts and name != free}
    for name in _described(given).free_parameters():
        if name != free:
            remedy = "give it, or make it the free one"
            raise validate.invalid_input(name, "missing", "given", remedy)
    return {target: value, **given}


def answer_json(
    mechanism: Mechanism, adjacency: str, group_size: int, answers: list[MetricValue]
) -> dict[str, Any]:
    """What `--json` prints: the mechanism, the adjacency, the group size and every metric."""
    return {
        "mechanism": mechanism.to_dict(),
        "adjacency": adjacency,
        "group_size": group_size,
        "metrics": {answer.name: answer.as_json() for answer in answers},
    }


def _request(mechanism: Mechanism, texts: Texts, goals: Mapping[str, float]) -> RiskRequest:
    given = read(CONDITIONS, texts)
    own = {  # the targets' own conditions; the others only shape the table
        name: given[name] for goal in goals for name in METRICS[goal].conditions if name in given
    }
    size = read([options.GROUP_SIZE], texts).get("group_size", 1)
    return RiskRequest(
        mechanism,
        _adjacency(texts, mechanism, goals),
        validate.whole("group_size", size, example=1),
        profile(**given),
        tuple({**goals, **own}.items()),
    )


def _described(texts: Texts) -> DPSGD:
    sampling: Any = texts.get("sampling", "poisson")
    mechanism = DPSGD(**read(options.MECHANISM, texts), sampling=sampling)
    if "epochs" not in texts:
        return mechanism
    lengths = {name: texts.get(name) for name in ("steps", "epochs")}
    validate.exactly_one("steps, epochs", lengths, "leave one out")
    if mechanism.sample_rate is None:
        remedy = "add --sample-rate, or give --steps"
        raise validate.InputError.of("sample_rate", "be given with epochs", "it is missing", remedy)
    epochs = options.EPOCHS.read(texts["epochs"])
    return replace(mechanism, steps=steps_from_epochs(epochs, mechanism.sample_rate))


def _adjacency(texts: Texts, mechanism: Mechanism, goals: Mapping[str, float]) -> str:
    """The adjacency that was asked for; guessing a secret is a question of replacing a record."""
    if "secret_success" in goals:
        return texts.get("adjacency", "replace")  # `choose` refuses any other
    adjacency = texts.get("adjacency", mechanism.default_adjacency)
    if "max_prior" in texts and adjacency != "replace":
        requirement = "'replace' to ask about a secret (max_prior)"
        raise validate.invalid_value("adjacency", adjacency, requirement, "add --adjacency replace")
    return validate.one_of("adjacency", adjacency, ADJACENCIES)
