"""Frozen descriptions of what was run. A description makes its certified curve; it runs nothing.

The noise multiplier z is the noise's standard deviation on the clipped sum over the clipping norm,
as in Opacus, whatever the adjacency: replacing a record moves the sum twice as far as adding one.

Adjacencies, what the two data sets differ in:

    add-remove  one record more or less; rate, divisor and steps are public constants
    zero-out    one record's clipped gradient counts as zero; the number of records is public
    replace     one record exchanged for another; the number of records is public
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from inspect import isabstract
from typing import Any, Literal, Self, TypeVar, get_args

import numpy as np

from dprime import privacy_loss, validate
from dprime._lazy import load
from dprime.composition import PrivacyLosses, Shuffled
from dprime.curve import TradeOff
from dprime.parameters import NOISE, RATE, SHARE, STEPS, Search, checked, one_of, steps_in_pass
from dprime.privacy_loss import LARGEST_GROUP, SENSITIVITY, NotCertifiableError, PrivacyLoss

Adjacency = Literal["add-remove", "replace", "zero-out"]
ADJACENCIES: tuple[str, ...] = get_args(Adjacency)
DEFAULT_ADJACENCY: Adjacency = "add-remove"

Sampling = Literal["poisson", "fixed-size", "shuffle"]
SAMPLINGS: tuple[str, ...] = get_args(Sampling)


AnyMechanism = TypeVar("AnyMechanism", bound="Mechanism")


@dataclass(frozen=True)
class Mechanism(ABC):
    """What was run on the data. Every mechanism is a frozen dataclass."""

    def curve(self, adjacency: str | None = None, *, group_size: int = 1) -> TradeOff:
        """The certified trade-off curve: what no attacker can beat, if the description is true.

        Args:
            adjacency: "add-remove" compares the data with and without one record, "replace" with
                one record exchanged, "zero-out" with one record that counts for nothing while the
                number of records stays the same. Where it is left out, DP-SGD and Gaussian take
                "add-remove", a stated guarantee takes what it was stated for.
            group_size: how many records one person may have contributed.

        """
        if adjacency is not None:
            adjacency = validate.one_of("adjacency", adjacency, ADJACENCIES)
        group_size = validate.whole("group_size", group_size, example=1)
        if group_size > LARGEST_GROUP:
            raise NotCertifiableError(
                f"group_size must be at most {LARGEST_GROUP:,} to be certified, but it is "
                f"{group_size:g}: give the number of records that one person may have."
            )
        return self.losses(adjacency or self.default_adjacency, group_size).curve()

    @property
    def default_adjacency(self) -> str:
        """The adjacency that the mechanism's numbers refer to where none is asked for."""
        return DEFAULT_ADJACENCY

    @abstractmethod
    def losses(self, adjacency: str, group_size: int) -> PrivacyLosses:
        """The privacy losses of the mechanism, ready to be composed."""

    def __init_subclass__(cls) -> None:
        _KINDS[cls.__name__] = cls

    def __post_init__(self) -> None:
        for each in fields(self):
            check, value = each.metadata.get("check"), getattr(self, each.name)
            if check is not None and not (value is None and _may_be_left_out(each)):
                object.__setattr__(self, each.name, check(each.name, value))
        self.check_together()

    def check_together(self) -> None:  # noqa: B027  most have nothing to refuse
        """Refuse parameters that do not fit each other; each alone is checked before."""

    def to_dict(self) -> dict[str, Any]:
        """The mechanism as plain values, safe in JSON and TOML: its name and its parameters.

        Parameters that were left out are not named.

        >>> Gaussian(8.0, steps=30).to_dict()
        {'name': 'Gaussian', 'noise_multiplier': 8.0, 'steps': 30}
        """
        values: dict[str, Any] = {"name": type(self).__name__}
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and not (each.metadata.get("quiet") and value == each.default):
                values[each.name] = _plain(value)
        return values

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Mechanism:
        """The mechanism that `to_dict` described; what `choose` can find and is not named is open.

        >>> Mechanism.from_dict({"name": "Gaussian", "noise_multiplier": 8.0, "steps": 30})
        Gaussian(noise_multiplier=8.0, steps=30)
        """
        load("guarantees", "StatedGuarantee")  # so that all mechanisms are known
        remedy = "give what to_dict() returns"
        if not isinstance(values, Mapping) or "name" not in values:
            raise validate.invalid_input(
                "mechanism", "without a name", "a mapping with a name", remedy
            )
        given = dict(values)
        kinds = {name: kind for name, kind in _KINDS.items() if not isabstract(kind)}
        kind = kinds[validate.one_of("mechanism", given.pop("name"), tuple(kinds))]
        known = {each.name: each for each in fields(kind)}
        for name, value in given.items():
            if name not in known:
                raise validate.invalid_value(name, value, f"left out for {kind.__name__}", remedy)
        for name, each in known.items():
            if name not in given and each.default is MISSING:
                raise validate.invalid_input(name, "missing", f"given for {kind.__name__}", remedy)
        left_out = dict.fromkeys(name for name, each in known.items() if "search" in each.metadata)
        read = {name: _parameter(value) for name, value in given.items()}
        return kind.of_parameters(**{**left_out, **read})

    @classmethod
    def of_parameters(cls, **parameters: Any) -> Self:
        return cls(**parameters)

    def free_parameters(self) -> list[str]:
        """Names of the parameters that were left out, for `choose` to find."""
        return [
            each.name
            for each in fields(self)
            if each.metadata.get("search") and getattr(self, each.name) is None
        ]

    def with_parameter(self, name: str, value: float) -> Self:
        """The same mechanism with another value of a parameter."""
        return replace(self, **{name: value})

    def search(self, name: str) -> Search:
        """Where a parameter that was left out may lie."""
        return next(e.metadata["search"] for e in fields(self) if e.name == name)  # type: ignore[no-any-return]

    def _required(self, name: str) -> float:
        value = getattr(self, name)
        if value is None:
            remedy = "set it, or let dprime.choose find it for a target"
            raise validate.invalid_input(name, "missing", "given to compute a curve", remedy)
        return float(value)


_KINDS: dict[str, type[Mechanism]] = {}
"""Every kind of mechanism by its name, as `to_dict` gives it."""


def _may_be_left_out(field: Field[Any]) -> bool:
    return field.default is None or "search" in field.metadata


def _plain(value: object) -> Any:
    if isinstance(value, Mechanism):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value


def _parameter(value: object) -> Any:
    if isinstance(value, Mapping):
        return Mechanism.from_dict(value)
    if isinstance(value, list | tuple):
        return tuple(_parameter(each) for each in value)
    return value


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Gaussian noise on full-batch sums: exact.

    >>> round(Gaussian(noise_multiplier=8.0, steps=30).curve().advantage(), 5)
    0.26789
    """

    noise_multiplier: float | None = field(default=None, metadata=NOISE)
    steps: int | None = field(default=1, metadata=STEPS)

    def losses(self, adjacency: str, group_size: int) -> PrivacyLosses:
        """A shift of k sqrt(steps) / z for k records, of twice that for replace."""
        distance = group_size * SENSITIVITY[adjacency]
        z, steps = self._required("noise_multiplier"), self._required("steps")
        return PrivacyLosses(mu_squared=steps * (distance / z) ** 2)


def _either(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise validate.invalid_value(name, value, "true or false", "leave it out for false")


@dataclass(frozen=True)
class DPSGD(Mechanism):
    """DP-SGD: clipped per-example gradients, Gaussian noise, a batch sampled at each step.

    One of `noise_multiplier`, `sample_rate` and `steps` may be left out for `choose` to find.

    `sampling` says how batches are made. "poisson": every record independently with probability
    `sample_rate`. "fixed-size": a uniform batch of fixed size, drawn anew each step. "shuffle": the
    data cut into batches, each record once an epoch. The last two are certified for replace and
    zero-out by bounds of their own, which are weaker; they are never accounted as Poisson. A
    shuffled training begins with an epoch; in a `Composition`, one that follows another shuffled
    training may begin inside an epoch, and then counts as touching one more.

    `public_size=True` says that the sampling rate, the divisor of the sums or the number of steps
    was computed from the number of records. Two sizes can then be told apart, so add-remove is
    refused and zero-out is the mechanism's own adjacency.

    >>> m = DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=2000)
    >>> round(m.curve().advantage(), 3), round(m.curve(adjacency="replace").advantage(), 3)
    (0.226, 0.367)
    """

    noise_multiplier: float | None = field(default=None, metadata=NOISE)
    sample_rate: float | None = field(default=None, metadata=RATE)
    steps: int | None = field(default=None, metadata=STEPS)
    sampling: Sampling = field(
        default="poisson", kw_only=True, metadata=checked(one_of(*SAMPLINGS))
    )
    public_size: bool = field(default=False, kw_only=True, metadata=checked(_either, quiet=True))

    def __repr__(self) -> str:
        values = {
            name: getattr(self, name) for name in ("noise_multiplier", "sample_rate", "steps")
        }
        values |= {"sampling": self.sampling, **({"public_size": True} if self.public_size else {})}
        return f"DPSGD({', '.join(f'{name}={value!r}' for name, value in values.items())})"

    @property
    def default_adjacency(self) -> str:
        """Add-remove, or zero-out where the number of records is public."""
        return "zero-out" if self.public_size else DEFAULT_ADJACENCY

    @property
    def epochs(self) -> float:
        """Expected passes over the data."""
        return self._required("steps") * self._required("sample_rate")

    def losses(self, adjacency: str, group_size: int) -> PrivacyLosses:
        z, q = self._required("noise_multiplier"), self._required("sample_rate")
        steps = int(self._required("steps"))
        self._refuse_other_sizes(adjacency)
        if self.sampling == "poisson":
            return _poisson(z, q, steps, adjacency, group_size)
        self._refuse_unproved(adjacency, group_size)
        if self.sampling == "shuffle":
            phase = Shuffled(z, steps, *steps_in_pass(q), SENSITIVITY[adjacency])
            return PrivacyLosses(shuffled=(phase,))
        if q == 1.0:  # every batch is all of the data
            return Gaussian(z, steps).losses(adjacency, group_size)
        # A record whose gradient is zero is one of those that may take the record's place, so the
        # bound for replace covers zero-out.
        return PrivacyLosses(parts=((_fixed_size_loss(z, q, steps), steps),))

    def _refuse_other_sizes(self, adjacency: str) -> None:
        if self.public_size and adjacency == "add-remove":
            raise validate.InputError.of(
                "adjacency",
                "be 'zero-out' or 'replace' for a training whose rate, divisor or steps are "
                "computed from the number of records",
                "it is 'add-remove'",
                "the result tells n records from n - 1; give the training public constants "
                "(TrainingConfig(expected_batch_size=...)), or ask for zero-out",
            )

    def _refuse_unproved(self, adjacency: str, group_size: int) -> None:
        if adjacency == "add-remove":
            remedy = (
                "adding a record changes every other record's place in the batches, which the "
                'Poisson analysis does not cover; use adjacency="zero-out" or "replace", or sample '
                "batches with Poisson sampling"
            )
            needed = "poisson for the add-remove adjacency"
            raise validate.invalid_value("sampling", self.sampling, needed, remedy)
        if group_size > 1:
            remedy = "no bound for groups is proved there; use Poisson sampling and add-remove"
            needed = f"1 for {self.sampling} sampling"
            raise validate.invalid_value("group_size", group_size, needed, remedy)


def _poisson(z: float, q: float, steps: int, adjacency: str, group_size: int) -> PrivacyLosses:
    if q == 1.0:
        return Gaussian(z, steps).losses(adjacency, group_size)
    exchange = adjacency == "replace"
    if exchange and group_size > 1:
        needed = "1 for the replace adjacency with sampled batches"
        remedy = 'no bound is proved there; use adjacency="add-remove"'
        raise validate.invalid_value("group_size", group_size, needed, remedy)
    loss = privacy_loss.subsampled_gaussian(z, q, steps, replace=exchange, group_size=group_size)
    return PrivacyLosses(parts=((loss, steps),))


def _fixed_size_loss(z: float, q: float, steps: int) -> PrivacyLoss:
    """A step on a uniform batch of fixed size, one record replaced.

    Balle, Barthe and Gaboardi 2018, theorem 9: delta'(ln(1 + q(e^eps - 1))) <= q delta(eps), delta
    that of the step with the record in the batch, sensitivity 2 (batches with and without the
    record differ by a replacement), and the same with the worlds exchanged. The pair with just
    these values has the positive losses of the mixture and their mirror image.
    """
    mixture = privacy_loss.subsampled_gaussian(z / 2.0, q, steps)
    positive = mixture.loss > 0
    loss, p, q_mass = mixture.loss[positive], mixture.p[positive], mixture.q[positive]
    rest = max(0.0, 1.0 - float(p.sum() + q_mass.sum()) - mixture.p_inf)
    return PrivacyLoss(
        np.concatenate([loss, [0.0], -loss]),
        np.concatenate([p, [rest], q_mass]),
        np.concatenate([q_mass, [rest], p]),
        mixture.p_inf,
        mixture.p_inf,
    )


def _mechanism(name: str, value: object) -> Mechanism:
    if isinstance(value, Mechanism):
        return value
    raise validate.invalid_value(
        name, value, "a mechanism", "give for example DPSGD(1.1, 0.01, 1000)"
    )


def _mechanisms(name: str, value: object) -> tuple[Mechanism, ...]:
    if not isinstance(value, tuple) or not value:
        raise validate.InputError.of(name, "name at least one", "it is empty", "give a DPSGD")
    return tuple(_mechanism(name, each) for each in value)


@dataclass(frozen=True)
class Composition(Mechanism):
    """Several mechanisms on the same data, one after the other: phases of a training, say.

    A later one may look at what earlier ones put out, but its parameters are fixed beforehand.

    >>> early = DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
    >>> late = DPSGD(noise_multiplier=1.5, sample_rate=0.01, steps=1000)
    >>> round(Composition(early, late).curve().advantage(), 3)
    0.186
    """

    mechanisms: tuple[Mechanism, ...] = field(metadata=checked(_mechanisms))

    def __init__(self, *mechanisms: Mechanism) -> None:
        object.__setattr__(self, "mechanisms", mechanisms)
        self.__post_init__()

    @classmethod
    def of_parameters(cls, **parameters: Any) -> Self:
        return cls(*parameters["mechanisms"])

    @property
    def default_adjacency(self) -> str:
        """The one adjacency that all parts share; zero-out where some hold for add-remove too."""
        own = {mechanism.default_adjacency for mechanism in self.mechanisms}
        if own == {DEFAULT_ADJACENCY, "zero-out"}:
            return "zero-out"
        if len(own) > 1:
            differ = f"the parts' own ones differ ({', '.join(sorted(own))})"
            remedy = "name the one that all parts hold for"
            raise validate.InputError.of("adjacency", "be given", differ, remedy)
        return own.pop()

    def losses(self, adjacency: str, group_size: int) -> PrivacyLosses:
        total = PrivacyLosses()
        for mechanism in self.mechanisms:
            total = total.plus(mechanism.losses(adjacency, group_size))
        return total

    def free_parameters(self) -> list[str]:
        return [name for mechanism in self.mechanisms for name in mechanism.free_parameters()]

    def with_parameter(self, name: str, value: float) -> Self:
        """The composition with the parameter set in the part that leaves it out."""
        return type(self)(
            *(
                m.with_parameter(name, value) if name in m.free_parameters() else m
                for m in self.mechanisms
            )
        )

    def search(self, name: str) -> Search:
        return next(m for m in self.mechanisms if name in m.free_parameters()).search(name)


def _training(name: str, value: object) -> Mechanism:
    if isinstance(value, PoolSampled):
        remedy = "give its training, and the product of both probabilities"
        raise validate.invalid_input(
            name, "a PoolSampled", "what was run on the records drawn", remedy
        )
    return _mechanism(name, value)


@dataclass(frozen=True)
class PoolSampled(Mechanism):
    """A training set drawn from a larger pool, each record kept with `probability`, then trained
    on with `training` (Thudi et al.: sampling as a defence).

    The curve is that of the training. `probability` is the prior of every question that has one,
    provided that inclusion is independent and nothing public depends on how many were kept. Where
    records differ in it, give the largest, which holds for everyone, and the smallest as `least`:
    how well "not a member" can be known grows as a record gets rarer. Each record has a coin of its
    own, so a group of records is refused: draw whole people, and read the training's own curve.

    >>> m = PoolSampled(DPSGD(1.0, 0.01, 2000), probability=0.1)
    >>> round(m.curve().precision(prior=m.prior, min_tpr=0.01), 2)
    0.4
    """  # noqa: D205

    training: Mechanism = field(metadata=checked(_training))
    probability: float | None = field(default=None, metadata=SHARE)
    least: float | None = field(default=None, metadata=checked(validate.inner_probability))

    def check_together(self) -> None:
        if self.least is not None and (self.probability is None or self.least > self.probability):
            remedy = "give the smallest one"
            raise validate.invalid_value("least", self.least, "at most the probability", remedy)

    def free_parameters(self) -> list[str]:
        return [*super().free_parameters(), *self.training.free_parameters()]

    def with_parameter(self, name: str, value: float) -> Self:
        if name == "probability":
            return replace(self, probability=value)
        return replace(self, training=self.training.with_parameter(name, value))

    def search(self, name: str) -> Search:
        return super().search(name) if name == "probability" else self.training.search(name)

    @property
    def prior(self) -> float:
        """The chance that a record of the pool was trained on."""
        return self._required("probability")

    @property
    def least_prior(self) -> float:
        """The smallest chance that any record of the pool was trained on."""
        return self.prior if self.least is None else self.least

    @property
    def default_adjacency(self) -> str:
        """That of the training; who was drawn is no question of zero-out."""
        own = self.training.default_adjacency
        return DEFAULT_ADJACENCY if own == "zero-out" else own

    def check_question(self, adjacency: str, group_size: int) -> None:
        """Refuse what the draw of single records does not answer."""
        if adjacency != DEFAULT_ADJACENCY:
            remedy = (
                "a record of the pool was drawn or not, and nobody knows how many were; ask for "
                "add-remove"
            )
            raise validate.invalid_value("adjacency", adjacency, "'add-remove' for a pool", remedy)
        if group_size > 1:
            remedy = (
                "each record has a coin of its own, so that some record of a person was drawn is "
                "likelier than the probability; draw whole people, and use "
                f"training.curve(group_size={group_size})"
            )
            raise validate.invalid_value("group_size", group_size, "1 for a pool", remedy)

    def losses(self, adjacency: str, group_size: int) -> PrivacyLosses:
        """Those of the training; who was drawn from the pool is a question of adding a record."""
        self.check_question(adjacency, group_size)
        return self.training.losses(adjacency, group_size)
