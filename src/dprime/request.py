"""A request as texts, from a command line or an address, and what it asks for in numbers.

Names and texts are those of `dprime risk` and `dprime choose`, so that the same words give the same
numbers wherever they are typed.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dprime import estimates, options, validate
from dprime.consequences import Consequences, consequences
from dprime.curve import Estimate, TradeOff
from dprime.guarantees import GDP, ZCDP, EpsilonDelta, StatedGuarantee
from dprime.mechanisms import ADJACENCIES, DEFAULT_ADJACENCY, DPSGD, Mechanism, PoolSampled
from dprime.metrics import CONDITIONS, TARGETS, MetricValue, Reading, conditions_of, profile
from dprime.option import Option, Texts, read
from dprime.parameters import rate_of_sizes, steps_from_epochs
from dprime.registry import METRICS
from dprime.solve import Solution, solve

MECHANISM = tuple(option.name for option in options.MECHANISM)
"""The parameters of DP-SGD; `choose` finds one of them."""

GOALS = tuple(options.DECLARED[name] for name in TARGETS)
"""What `choose` can keep, as options."""

TRAINING = (*options.LENGTHS, *options.SIZES, options.SAMPLING)

RISK = (
    *TRAINING,
    options.COMPARED[0].here(note="With --dataset-size the default is zero-out."),
    options.GROUP_SIZE,
)
"""What `dprime risk` and `dprime choose` take alike."""

GUARANTEES: Mapping[str, type[StatedGuarantee]] = {"epsilon": EpsilonDelta, "rho": ZCDP, "mu": GDP}
"""What `dprime risk` takes instead of a training, if only a guarantee is known."""

STATED = tuple(options.DECLARED[name] for name in GUARANTEES)

OF_CONSEQUENCES = tuple(
    options.DECLARED[name].here(parameter.default)
    for name, parameter in inspect.signature(consequences).parameters.items()
    if name in options.DECLARED
)
"""What `dprime consequences` takes beside a training."""

ADDRESS = (*options.MECHANISM, *options.SIZES, *options.COMPARED, *CONDITIONS)
"""Everything that an address can give beside a target; a command has more options."""

NAMES = tuple(option.name for option in ADDRESS)

READ_DELTA = next(each.default for each in CONDITIONS if each.name == "delta")
"""The δ at which ε is read unless another one is given."""

RISK_ADDRESS = (*ADDRESS, options.EPSILON)
"""Everything that an address can give to ask for a risk: a training, or a guarantee alone."""


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
        sampling = getattr(self.mechanism, "sampling", type(self.mechanism).__name__)
        if sampling != "poisson" or self.group_size > 1:
            raise validate.InputError.of(
                "The estimates",
                "be asked for DP-SGD with Poisson sampling and group_size 1",
                f"it is {sampling} with group_size {self.group_size}",
                "leave --estimates out",
            )
        z, q, steps = (getattr(self.mechanism, name) for name in MECHANISM)
        found = [estimates.central_limit(z, q, steps, self.adjacency)]
        if self.adjacency == "replace":
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

    def _solved(self, mechanism: Mechanism, round_to: str = "steps") -> Solution[Mechanism]:
        compared = {"adjacency": self.adjacency, "group_size": self.group_size}
        return solve(mechanism, dict(self.target), round_to=round_to, **compared)  # type: ignore[arg-type]

    def chosen(self) -> Mechanism:
        return self._solved(self.mechanism).mechanism

    def solve(self, round_to: str) -> tuple[Solution[Mechanism], tuple[Reading, ...]]:
        """What is chosen, and what is then read; the share of a pool is the prior."""
        found = self._solved(self.to_complete(), round_to)
        if not isinstance(found.mechanism, PoolSampled):
            return found, self.readings
        priors = dict.fromkeys(("prior", "belief_prior"), found.mechanism.prior)
        return found, profile(**{**conditions_of(self.readings), **priors})


def training_request(
    texts: Texts, free: str = "", otherwise: str = "let dprime choose find it"
) -> DPSGD:
    """The DP-SGD that the texts describe, in which nothing but `free` may be missing."""
    mechanism = _described(texts)
    for name in mechanism.free_parameters():
        if name != free:
            raise validate.invalid_input(name, "missing", "given", f"give it, or {otherwise}")
    return mechanism


def risk_request(texts: Texts, mechanism: Mechanism | None = None) -> RiskRequest:
    """The request that `dprime risk` has with these options, or of a mechanism that is known."""
    return _request(mechanism or _stated(texts) or training_request(texts), texts, {})


def choose_request(texts: Texts) -> RiskRequest:
    """The request that `dprime choose` has with these options."""
    return _request(_described(texts), texts, read(GOALS, texts))


def consequences_request(texts: Texts) -> Consequences:
    """What `dprime consequences` says with these options."""
    return consequences(training_request(texts), **read(OF_CONSEQUENCES, texts))


def choose_options(texts: Texts, target: str, value: str, free: str) -> dict[str, str]:
    """The options of `dprime choose` with which it finds a parameter; its own text is not read."""
    validate.one_of("target", target, TARGETS)
    validate.one_of("free", free, MECHANISM)
    given = {name: texts[name] for name in NAMES if name in texts and name != free}
    training_request(given, free, "make it the free one")
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


def leave_out(texts: Texts, contradicting: Iterable[Option], why: str) -> None:
    """Refuse options that say the same as something else that was given."""
    for each in contradicting:
        if each.name in texts:
            wanted, remedy = f"left out where {why}", "leave one of the two out"
            raise validate.invalid_value(each.name, texts[each.name], wanted, remedy)


def _stated(texts: Texts) -> StatedGuarantee | None:
    """The guarantee that stands in place of a training, if one is given."""
    given = read(STATED, texts)
    if not given:
        return None
    name = validate.exactly_one(", ".join(GUARANTEES), given, "leave the others out")
    leave_out(texts, TRAINING, f"{name}={texts[name]} is all that is known")
    if name == "epsilon":
        given["delta"] = read([options.DELTA], {"delta": "1e-5", **texts})["delta"]
    return GUARANTEES[name](**given, adjacency=texts.get("adjacency", DEFAULT_ADJACENCY))


def _request(mechanism: Mechanism, texts: Texts, goals: Mapping[str, float]) -> RiskRequest:
    given = read(CONDITIONS, texts)
    if isinstance(mechanism, EpsilonDelta) and mechanism.delta == 0:
        given.pop("delta", None)  # a pure ε is stated; it is read where every ε is
    asked = [name for goal in goals for name in METRICS[goal].conditions if name in given]
    own = {name: given[name] for name in asked}  # the others only shape the table
    size = read([options.GROUP_SIZE], texts).get("group_size", 1)
    return RiskRequest(
        mechanism,
        _adjacency(texts, mechanism, goals),
        validate.whole("group_size", size, example=1),
        profile(**given),
        tuple({**goals, **own}.items()),
    )


def _described(texts: Texts) -> DPSGD:
    given: dict[str, Any] = read((*options.MECHANISM, options.SAMPLING), texts)
    if sizes := read(options.SIZES, texts):
        leave_out(texts, [options.SAMPLE_RATE], "batch_size and dataset_size give it")
        given["sample_rate"] = rate_of_sizes(sizes.get("batch_size"), sizes.get("dataset_size"))
        # With add-remove the size is taken for a constant that was not computed from the data.
        given["public_size"] = texts.get("adjacency") != DEFAULT_ADJACENCY
    if "epochs" not in texts:
        return DPSGD(**given)
    lengths = {name: texts.get(name) for name in ("steps", "epochs")}
    validate.exactly_one("steps, epochs", lengths, "leave one out")
    if "sample_rate" not in given:
        remedy = "add sample_rate, or batch_size with dataset_size"
        raise validate.invalid_input("sample_rate", "missing", "given with epochs", remedy)
    steps = steps_from_epochs(options.EPOCHS.read(texts["epochs"]), given["sample_rate"])
    return DPSGD(**given, steps=steps)


def _adjacency(texts: Texts, mechanism: Mechanism, goals: Mapping[str, float]) -> str:
    """The adjacency that was asked for; guessing a secret is a question of replacing a record."""
    if "secret_success" in goals:
        return texts.get("adjacency", "replace")  # `choose` refuses any other
    adjacency = texts.get("adjacency", mechanism.default_adjacency)
    if "max_prior" in texts and adjacency != "replace":
        requirement = "'replace' to ask about a secret (max_prior)"
        raise validate.invalid_value("adjacency", adjacency, requirement, "add --adjacency replace")
    return validate.one_of("adjacency", adjacency, ADJACENCIES)
