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
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import reduce
from inspect import isabstract
from typing import Any, Literal, Self, TypeVar, get_args

from dprime import parameters, privacy_loss, text, validate
from dprime._lazy import load
from dprime.composition import PrivacyLosses, Shuffled
from dprime.curve import TradeOff
from dprime.parameters import NOISE, RATE, STEPS, Checked, Search, checked, one_of, parameter
from dprime.privacy_loss import LARGEST_GROUP, SENSITIVITY, NotCertifiableError

Adjacency = Literal["add-remove", "replace", "zero-out"]
ADJACENCIES: tuple[str, ...] = get_args(Adjacency)
DEFAULT_ADJACENCY: Adjacency = "add-remove"

Sampling = Literal["poisson", "fixed-size", "shuffle"]
SAMPLINGS: tuple[str, ...] = get_args(Sampling)

AnyMechanism = TypeVar("AnyMechanism", bound="Mechanism")

_KINDS: dict[str, type[Mechanism]] = {}  # by name, as `to_dict` gives it


@dataclass(frozen=True)
class Mechanism(Checked, ABC):
    """A description of what was run on the data, a frozen dataclass that makes its curve."""

    def curve(self, adjacency: str | None = None, *, group_size: int = 1) -> TradeOff:
        """The certified trade-off curve: what no attacker can beat, if the description is true.

        Without an adjacency it is the mechanism's own. `group_size` is how many records one person
        may have contributed.
        """
        group_size = validate.whole("group_size", group_size, example=1)
        if group_size > LARGEST_GROUP:
            wanted = f"be at most {LARGEST_GROUP:,} to be certified"
            remedy = "give the number of records that one person may have"
            raise NotCertifiableError.of("group_size", wanted, f"it is {group_size:g}", remedy)
        if adjacency is None:
            adjacency = self.default_adjacency
        adjacency = validate.one_of("adjacency", adjacency, ADJACENCIES)
        curve = self.losses(adjacency, group_size).curve()
        return replace(curve, of=text.describe(self.to_dict(), adjacency, group_size))

    @property
    def default_adjacency(self) -> str:
        """The adjacency of the mechanism's numbers where none is asked for."""
        return DEFAULT_ADJACENCY

    @abstractmethod
    def losses(self, adjacency: str, group_size: int) -> PrivacyLosses:
        """The privacy losses of the mechanism, ready to be composed."""

    def __init_subclass__(cls) -> None:
        _KINDS[cls.__name__] = cls
        if "__repr__" not in vars(cls):  # or its dataclass would write another one
            cls.__repr__ = Mechanism.__repr__  # type: ignore[method-assign]

    def _values(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def _given(self) -> dict[str, Any]:
        """The parameters without those left out and what is False."""
        return {n: x for n, x in self._values().items() if x is not None and x is not False}

    def __repr__(self) -> str:
        shown = (f"{name}={parameters.brief(value)}" for name, value in self._given().items())
        return f"{type(self).__name__}({', '.join(shown)})"

    def to_dict(self) -> dict[str, Any]:
        """The name and the parameters as plain values, without those left out and what is False."""
        plain = {name: _plain(value) for name, value in self._given().items()}
        return {"name": type(self).__name__, **plain}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Mechanism:
        """The mechanism that `to_dict` described; parameters that it does not name are open."""
        load("guarantees", "StatedGuarantee")  # so that all mechanisms are known
        remedy = "give what to_dict() returns"
        if not isinstance(values, Mapping) or "name" not in values:
            wanted = "a mapping with a name"
            raise validate.invalid_input("mechanism", "without a name", wanted, remedy)
        given = {name: _read(value) for name, value in values.items() if name != "name"}
        kinds = {name: kind for name, kind in _KINDS.items() if not isabstract(kind)}
        kind = kinds[validate.one_of("mechanism", values["name"], tuple(kinds))]
        known = {each.name: each for each in fields(kind)}
        for name in given.keys() - known.keys():
            wanted = f"left out for {kind.__name__}"
            raise validate.invalid_value(name, values[name], wanted, remedy)
        for name, each in known.items():
            if name not in given and each.default is MISSING:
                raise validate.invalid_input(name, "missing", f"given for {kind.__name__}", remedy)
        left_out = dict.fromkeys(name for name, each in known.items() if "search" in each.metadata)
        return kind(**{**left_out, **given})

    def _free(self) -> list[tuple[str, Search]]:
        """The parameters that were left out, of this mechanism and then of those it is made of."""
        searched = [each for each in fields(self) if "search" in each.metadata]
        own = [(e.name, e.metadata["search"]) for e in searched if getattr(self, e.name) is None]
        values = [each if isinstance(each, tuple) else (each,) for each in self._values().values()]
        parts = (part for value in values for part in value if isinstance(part, Mechanism))
        return [*own, *(free for part in parts for free in part._free())]

    def free_parameters(self) -> list[str]:
        """The names of the parameters that were left out for `choose`."""
        return [name for name, _ in self._free()]

    def search(self, name: str) -> Search:
        """The range in which `choose` looks for a parameter that was left out."""
        return dict(self._free())[name]

    def with_parameter(self, name: str, value: float | None) -> Self:
        """The same mechanism with this value of a parameter, or of one of its parts."""

        def within(part: Any) -> Any:
            if isinstance(part, tuple):
                return tuple(map(within, part))
            free = isinstance(part, Mechanism) and name in part.free_parameters()
            return part.with_parameter(name, value) if free else part

        values = self._values()
        if name in values:
            return replace(self, **{name: value})
        return replace(self, **{each: within(part) for each, part in values.items()})

    def _required(self, name: str) -> float:
        value = getattr(self, name)
        if value is None:
            remedy = "set it, or let dprime.choose find it for a target"
            raise validate.invalid_input(name, "missing", "given to compute a curve", remedy)
        return float(value)


def _plain(value: object) -> Any:
    if isinstance(value, Mechanism):
        return value.to_dict()
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _read(value: object) -> Any:
    if isinstance(value, Mapping):
        return Mechanism.from_dict(value)
    return tuple(_read(each) for each in value) if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Gaussian noise on a sum over all records, `steps` times; its curve is exact."""

    noise_multiplier: float | None = field(default=None, metadata=NOISE)
    steps: int | None = field(default=1, metadata=STEPS)

    def losses(self, adjacency: str, group_size: int) -> PrivacyLosses:
        """A shift of k sqrt(steps) / z for k records, of twice that for replace."""
        distance = group_size * SENSITIVITY[adjacency]
        z, steps = self._required("noise_multiplier"), self._required("steps")
        return PrivacyLosses(mu_squared=steps * (distance / z) ** 2)


@dataclass(frozen=True)
class DPSGD(Mechanism):
    """DP-SGD: clipped per-example gradients, Gaussian noise, a batch sampled at each step.

    `noise_multiplier` is the noise's standard deviation over the clipping norm, `sample_rate` the
    share of the records in a batch. One of the first three parameters may be left out for `choose`
    to find. `DPSGD.from_epochs` takes the sizes of batch and data set, and epochs.

    `sampling` says how batches are made. "poisson": every record independently with probability
    `sample_rate`. "fixed-size": a uniform batch of fixed size, drawn anew each step. "shuffle": the
    data cut into batches, each record once an epoch. The last two are certified for replace and
    zero-out by separate, weaker bounds; they are never accounted as Poisson. A shuffled training
    begins with an epoch; in a `Composition`, one that follows another may begin inside an epoch,
    and then counts as touching one more.

    `public_size=True` says that the sampling rate, the divisor of the sums or the number of steps
    was computed from the number of records: then add-remove is refused and zero-out is the
    mechanism's own adjacency.

    >>> m = DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=2000)
    >>> round(m.curve().advantage(), 3), round(m.curve(adjacency="replace").advantage(), 3)
    (0.226, 0.367)
    """

    noise_multiplier: float | None = field(default=None, metadata=NOISE)
    sample_rate: float | None = field(default=None, metadata=RATE)
    steps: int | None = field(default=None, metadata=STEPS)
    sampling: Sampling = parameter("poisson", one_of(*SAMPLINGS), kw_only=True)
    public_size: bool = parameter(False, parameters.either, kw_only=True)

    @classmethod
    def from_epochs(
        cls,
        *,
        batch_size: float,
        dataset_size: int,
        epochs: float,
        noise_multiplier: float | None = None,
        sampling: Sampling = "poisson",
        public_size: bool = True,
    ) -> Self:
        """The training over this many epochs, rounded up to whole steps.

        The sampling rate is `batch_size / dataset_size`. The number of records is public then, and
        a record is zeroed out; `public_size=False` says that the sizes are constants of yours.

        >>> DPSGD.from_epochs(batch_size=256, dataset_size=60_000, epochs=10)
        DPSGD(sample_rate=0.004266666666666667, steps=2344, sampling='poisson', public_size=True)
        """
        rate = parameters.rate_of_sizes(batch_size, dataset_size)
        steps = parameters.steps_from_epochs(epochs, rate)
        return cls(noise_multiplier, rate, steps, sampling=sampling, public_size=public_size)

    @property
    def default_adjacency(self) -> str:
        return "zero-out" if self.public_size else DEFAULT_ADJACENCY

    @property
    def epochs(self) -> float:
        """Expected passes over the data: steps times sampling rate."""
        return self._required("steps") * self._required("sample_rate")

    def losses(self, adjacency: str, group_size: int) -> PrivacyLosses:
        z, q = self._required("noise_multiplier"), self._required("sample_rate")
        steps = int(self._required("steps"))
        self._refuse_unproved(adjacency, group_size)
        if self.sampling == "shuffle":
            phase = Shuffled(z, steps, *parameters.steps_in_pass(q), SENSITIVITY[adjacency])
            return PrivacyLosses(shuffled=(phase,))
        if q == 1.0:  # every batch is all of the data
            return Gaussian(z, steps).losses(adjacency, group_size)
        if self.sampling == "fixed-size":
            # A record whose gradient is zero is one of those that may take the record's place, so
            # the bound for replace covers zero-out.
            loss = privacy_loss.fixed_size_gaussian(z, q, steps)
        else:
            both = adjacency == "replace"
            loss = privacy_loss.subsampled_gaussian(
                z, q, steps, replace=both, group_size=group_size
            )
        return PrivacyLosses(parts=((loss, steps),))

    def _refuse_unproved(self, adjacency: str, group_size: int) -> None:
        adding, weaker = adjacency == "add-remove", self.sampling != "poisson"
        if adding and self.public_size:
            needed = (
                "'zero-out' or 'replace' for a training whose rate, divisor or steps are computed "
                "from the number of records"
            )
            remedy = (
                "the result tells n records from n - 1; give the training public constants "
                "(TrainingConfig(expected_batch_size=...)), or ask for zero-out"
            )
            raise validate.invalid_value("adjacency", adjacency, needed, remedy)
        if adding and weaker:
            needed = "poisson for the add-remove adjacency"
            remedy = (
                "adding a record changes every other record's place in the batches, which the "
                'Poisson analysis does not cover; use adjacency="zero-out" or adjacency="replace", '
                "or sample batches with Poisson sampling"
            )
            raise validate.invalid_value("sampling", self.sampling, needed, remedy)
        if group_size > 1 and (weaker or (adjacency == "replace" and self.sample_rate != 1.0)):
            where = f"{self.sampling} sampling" if weaker else "the replace adjacency"
            remedy = "no bound is proved for groups there; use Poisson sampling and add-remove"
            raise validate.invalid_value("group_size", group_size, f"1 for {where}", remedy)


def _mechanism(name: str, value: object) -> Mechanism:
    if isinstance(value, Mechanism):
        return value
    remedy = "give for example DPSGD(1.1, 0.01, 1000)"
    raise validate.invalid_value(name, value, "a mechanism", remedy)


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

    def __init__(self, *parts: Mechanism, mechanisms: tuple[Mechanism, ...] = ()) -> None:
        if parts and mechanisms:  # neither may be left out of the sum
            remedy = "give all of them one after the other"
            raise validate.invalid_input("mechanisms", "given twice", "given once", remedy)
        object.__setattr__(self, "mechanisms", parts or mechanisms)
        self.__post_init__()

    def __repr__(self) -> str:
        return f"Composition{parameters.brief(self.mechanisms)}"

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
        parts = (mechanism.losses(adjacency, group_size) for mechanism in self.mechanisms)
        return reduce(PrivacyLosses.plus, parts)


@dataclass(frozen=True)
class PoolSampled(Mechanism):
    """A training on what was drawn from a larger pool.

    Thudi et al.: sampling as a defence. Each record is kept with `sampling_probability`, which is
    the prior of every question that has one, provided that inclusion is independent and nothing
    public depends on how many were kept. The curve is that of the training. Where records differ in
    probability, give the largest, which holds for everyone, and the smallest as `least`: how well
    "not a member" can be known grows as a record gets rarer. A group of records is refused: draw
    whole people, and read the training's own curve.
    """

    training: Mechanism = field(metadata=checked(_mechanism))
    sampling_probability: float | None = parameter(
        None, validate.inner_probability, search=Search(1e-300, 1.0, rises=True)
    )
    least: float | None = parameter(None, validate.inner_probability)

    def check_together(self) -> None:
        if isinstance(self.training, PoolSampled):
            needed = "what was run on the records drawn"
            remedy = "give its training, and the product of both probabilities"
            raise validate.invalid_input("training", "a PoolSampled", needed, remedy)
        largest = self.sampling_probability
        if self.least is not None and (largest is None or self.least > largest):
            needed = "at most the sampling_probability"
            raise validate.invalid_value("least", self.least, needed, "give the smallest one")

    @property
    def prior(self) -> float:
        """The probability with which each record was drawn, as the prior of every question."""
        return self._required("sampling_probability")

    @property
    def least_prior(self) -> float:
        """The smallest of these probabilities, where records differ in them."""
        return self.prior if self.least is None else self.least

    @property
    def default_adjacency(self) -> str:
        """That of the training, but never zero-out, which does not ask who was drawn."""
        own = self.training.default_adjacency
        return DEFAULT_ADJACENCY if own == "zero-out" else own

    def losses(self, adjacency: str, group_size: int) -> PrivacyLosses:
        if adjacency != DEFAULT_ADJACENCY:
            remedy = "whether a record was drawn is a question of adding it; ask for add-remove"
            raise validate.invalid_value("adjacency", adjacency, "'add-remove' for a pool", remedy)
        if group_size > 1:
            remedy = (
                "each record is drawn by its own coin, so the chance that a person has any record "
                "in it is above the probability; draw whole people, and use "
                f"training.curve(group_size={group_size})"
            )
            raise validate.invalid_value("group_size", group_size, "1 for a pool", remedy)
        return self.training.losses(adjacency, group_size)
