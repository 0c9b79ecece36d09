"""A request as texts, from a command line or an address, and what it asks for in numbers.

Names and texts are those of `dprime risk` and `dprime choose`, so that the same words give the same
numbers wherever they are typed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dprime import validate
from dprime.mechanisms import ADJACENCIES, DPSGD, Mechanism, PoolSampled
from dprime.metrics import OPTIONS, TARGETS, MetricValue, Reading, profile
from dprime.parameters import steps_from_epochs
from dprime.registry import METRICS
from dprime.solve import choose

Texts = Mapping[str, str]

MECHANISM = ("noise_multiplier", "sample_rate", "steps")
"""The parameters of DP-SGD; `choose` finds one of them."""

CONDITIONS = ("prior", "belief_prior", "belief", "fpr", "delta", "min_tpr", "exceeded")
"""What an address can give for the metrics to be read at; a command line has `OPTIONS`."""

NAMES = (*MECHANISM, "adjacency", "group_size", *CONDITIONS)
"""Everything that an address can give beside a target; a command has more options."""

ADDRESS_TARGETS = tuple(
    name for name in TARGETS if set(map(METRICS[name].option, METRICS[name].conditions)) <= {*NAMES}
)
"""The targets whose conditions an address can give."""

GIVE_IT = "give it, or let dprime choose find it"
"""The remedy where a parameter is missing; a command names its {option}."""


@dataclass(frozen=True)
class RiskRequest:
    """What `dprime risk` or `dprime choose` is asked for, in numbers."""

    mechanism: DPSGD  # one parameter is missing where it is to be chosen
    adjacency: str
    group_size: int
    readings: tuple[Reading, ...]
    target: tuple[tuple[str, float], ...] = ()  # with its conditions, as `choose` takes them

    def to_complete(self) -> Mechanism:
        """What `choose` completes: where no parameter is missing, the share of a pool."""
        wanted = dict(self.target)
        if self.mechanism.free_parameters() or not {"precision", "belief"} & set(wanted):
            return self.mechanism
        return self.mechanism if "prior" in wanted else PoolSampled(self.mechanism)

    def chosen(self) -> DPSGD:
        relation, size = self.adjacency, self.group_size
        return choose(self.mechanism, adjacency=relation, group_size=size, **dict(self.target))  # type: ignore[arg-type]


def level(condition: str) -> str:
    """What `choose` calls a condition, which may not have the name of a target."""
    return f"{condition}_level" if condition in TARGETS else condition


def training_request(texts: Texts, missing: str = GIVE_IT) -> DPSGD:
    """The DP-SGD that the texts describe; `missing` is the remedy where a parameter is missing."""
    mechanism = _described(texts)
    for name in mechanism.free_parameters():
        remedy = missing.format(option=f"--{name.replace('_', '-')}")
        raise validate.invalid_input(name, "missing", "given", remedy)
    return mechanism


def risk_request(texts: Texts, missing: str = GIVE_IT) -> RiskRequest:
    """The request that `dprime risk` has with these options."""
    return _request(training_request(texts, missing), texts, {}, named=str)


def choose_request(options: Texts) -> RiskRequest:
    """The request that `dprime choose` has with these options."""
    return _request(_described(options), options, _numbers(options, TARGETS), named=level)


def choose_options(texts: Texts, target: str, value: str, free: str) -> dict[str, str]:
    """The options of `dprime choose` with which it finds a parameter; its own text is not read."""
    validate.one_of("target", target, ADDRESS_TARGETS)
    validate.one_of("free", free, MECHANISM)
    given = {level(name): texts[name] for name in NAMES if name in texts and name != free}
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


def _request(
    mechanism: DPSGD, texts: Texts, goals: Mapping[str, float], named: Callable[[str], str]
) -> RiskRequest:
    names = {option: named(option) for option in OPTIONS if named(option) in texts}
    given = {option: validate.parse(name, texts[name]) for option, name in names.items()}
    if "belief" in goals and "prior" in given:
        given.setdefault("belief_prior", given["prior"])
    own = {  # the targets' own conditions; the others only shape the table
        name: given[METRICS[goal].option(name)]
        for goal in goals
        for name in METRICS[goal].conditions
        if METRICS[goal].option(name) in given
    }
    size = validate.parse("group_size", texts.get("group_size", "1"))
    return RiskRequest(
        mechanism,
        _adjacency(texts, mechanism, goals),
        validate.whole("group_size", size, example=1),
        profile(**given),
        tuple({**goals, **own}.items()),
    )


def _described(texts: Texts) -> DPSGD:
    sampling: Any = texts.get("sampling", "poisson")
    mechanism = DPSGD(**_numbers(texts, MECHANISM), sampling=sampling)  # type: ignore[arg-type]
    if "epochs" not in texts:
        return mechanism
    lengths = {name: texts.get(name) for name in ("steps", "epochs")}
    validate.exactly_one("steps, epochs", lengths, "leave one out")
    if mechanism.sample_rate is None:
        remedy = "add --sample-rate, or give --steps"
        raise validate.InputError.of("sample_rate", "be given with epochs", "it is missing", remedy)
    epochs = validate.parse("epochs", texts["epochs"])
    return replace(mechanism, steps=steps_from_epochs(epochs, mechanism.sample_rate))


def _adjacency(texts: Texts, mechanism: DPSGD, goals: Mapping[str, float]) -> str:
    """The adjacency that was asked for; guessing a secret is a question of replacing a record."""
    if "secret_success" in goals:
        return texts.get("adjacency", "replace")  # `choose` refuses any other
    adjacency = texts.get("adjacency", mechanism.default_adjacency)
    if "max_prior" in texts and adjacency != "replace":
        requirement = "'replace' to ask about a secret (max_prior)"
        raise validate.invalid_value("adjacency", adjacency, requirement, "add --adjacency replace")
    return validate.one_of("adjacency", adjacency, ADJACENCIES)


def _numbers(texts: Texts, names: tuple[str, ...]) -> dict[str, float]:
    return {name: validate.parse(name, texts[name]) for name in names if name in texts}
