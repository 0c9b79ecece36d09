"""The MI sampling mechanism: a training set drawn from a pool, and who was drawn kept secret.

    pool of distinct records ──► draw (a coin for each record, from the seed) ──► Draw ──► training

The probability π with which a record is kept (Thudi et al. 2024, section 4) is the prior of all who
know the pool but not the draw, if the coins are independent, the records distinct and nothing
public depends on how many were kept. So the draw, its size and the seed are secret.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprime import validate
from dprime.data import arrays
from dprime.data.dataset import Dataset
from dprime.mechanisms import Mechanism, PoolSampled
from dprime.seeds import SEED_BITS, check_seed, fresh_seed

if TYPE_CHECKING:
    from torch.utils.data import Subset

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

PURPOSE = b"dprime: who is drawn from a pool, 1"
"""The number that keeps these coins apart from all else that has the same seed."""

BLOCK = 1 << 16  # coins that are made with one call of the hash function
EMPTY_DRAW = 1e-6  # where an empty draw is likelier than this, no data set is made of a draw


@dataclass(frozen=True, eq=False, repr=False)
class Draw:
    """A training set drawn from a pool, by `draw`: `members` [record], which is secret.

    Each record was kept with `probability` π: one for all, or one for each.

    >>> kept = draw(1000, 0.2)
    >>> kept
    Draw(from 1,000 records, each kept with probability 0.2, 200 expected)
    >>> kept.members.shape
    (1000,)
    """

    members: Bools
    probability: float | Floats

    def __repr__(self) -> str:
        low, high = self.smallest, self.largest
        shown = f"{high:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
        return (
            f"Draw(from {len(self.members):,} records, each kept with probability {shown}, "
            f"{self.expected:,.10g} expected)"
        )

    @property
    def expected(self) -> float:
        """The expected number of drawn records. It is public; their true number is not."""
        return self._over_records(self.probability)

    @property
    def empty_probability(self) -> float:
        return math.exp(self._over_records(np.log1p(-self.probability)))

    def _over_records(self, values: float | Floats) -> float:
        if isinstance(values, np.ndarray):
            return math.fsum(values)
        return len(self.members) * float(values)

    @property
    def largest(self) -> float:
        """The largest π of any record, whose bound on precision holds for every record."""
        return float(np.max(self.probability))

    @property
    def smallest(self) -> float:
        return float(np.min(self.probability))

    def mechanism(self, training: Mechanism) -> PoolSampled:
        """The mechanism of this draw with a training on the drawn records.

        Where the records differ in π, the largest one is taken: the bound on precision grows with
        π. The smallest is kept beside it, for questions that grow the other way.

        >>> from dprime import DPSGD
        >>> ran = draw(1000, 0.1).mechanism(DPSGD(1.0, 0.01, 2000))
        >>> round(ran.curve().precision(prior=ran.prior, min_tpr=0.01), 2)
        0.4
        """
        least = self.smallest if self.smallest < self.largest else None
        return PoolSampled(training, self.largest, least)

    def take(self, pool: Dataset) -> Dataset:
        """The drawn records, in the pool's order. Their number is a secret.

        So that no error can tell that a draw is empty, a pool whose draws would be empty more than
        once in a million is refused whatever was drawn.
        """
        self._check_usable("pool", len(pool))
        return pool.take(self.members)

    def subset(self, dataset: Any) -> Subset[Any]:
        """The drawn items of a PyTorch data set, which must be the pool; refused as in `take`."""
        self._check_usable("dataset", len(dataset))
        from torch.utils.data import Subset  # noqa: PLC0415  only this needs PyTorch

        return Subset(dataset, np.flatnonzero(self.members).tolist())

    def _check_usable(self, name: str, length: int) -> None:
        if length != len(self.members):
            wanted = f"the pool of {len(self.members):,} records"
            remedy = "give the one that was drawn from, in its order"
            raise validate.invalid_input(name, f"{length:,} records long", wanted, remedy)
        if (chance := self.empty_probability) > EMPTY_DRAW:
            wanted = f"at most {EMPTY_DRAW:g} to make a data set of it"
            remedy = "give a larger pool or a larger probability"
            name = "the chance of an empty draw"
            raise validate.invalid_value(name, f"{chance:.2g}", wanted, remedy)


def draw(pool: int | Dataset, probability: ArrayLike, *, seed: int | None = None) -> Draw:
    """Draw a training set from a pool: each record on its own coin.

    The coins are the words of SHAKE-256 (FIPS 202) of the seed, and the coin of a record depends on
    the seed and on its place in the pool alone. Nothing but the seed tells who was drawn; a
    generator made for simulations promises nothing against someone who computes back.

    A pool is the number of records, or a data set, whose records must be distinct: two of one kind
    would give it a larger probability than π, which is one for all records or one for each. A small
    seed such as 1 is for experiments; None draws one that nobody can guess and forgets it.

    >>> first, again = draw(50, 0.5, seed=7), draw(50, 0.5, seed=7)
    >>> bool((first.members == again.members).all())
    True
    """
    if isinstance(pool, Dataset):
        check_distinct(pool.hashes())
    given = len(pool) if isinstance(pool, Dataset) else pool
    count = validate.whole("the number of records in the pool", given, least=2)
    chances = _probabilities(probability, count)
    members = coins(fresh_seed() if seed is None else check_seed(seed), count, chances)
    return Draw(arrays.read_only(members), chances)


def coins(seed: int, count: int, probability: float | Floats) -> Bools:
    """Whether each record is kept, from its own 64-bit word: with π rounded down to 2^-64."""
    # a word lies below floor(2^64 π) with just that probability; π < 1, so this fits 64 bits
    limits = np.floor(np.ldexp(np.broadcast_to(probability, count), 64)).astype(np.uint64)
    kept: Bools = _words(seed, count) < limits
    return kept


def _words(seed: int, count: int) -> NDArray[np.uint64]:
    """Secret random words; a word depends on the seed and its place, not on the count."""
    key = PURPOSE + seed.to_bytes(SEED_BITS // 8, "little")
    blocks = []
    for start in range(0, count, BLOCK):
        # SHAKE's output is a prefix of any longer output of it (FIPS 202, appendix A.2).
        state = hashlib.shake_256(key + (start // BLOCK).to_bytes(8, "little"))
        blocks.append(np.frombuffer(state.digest(8 * min(BLOCK, count - start)), "<u8"))
    return np.concatenate(blocks).astype(np.uint64, copy=False)


def check_distinct(rows: Iterable[bytes], name: Callable[[int], str] = "record {}".format) -> None:
    """Refuse a pool in which a record occurs twice, by a hash (BLAKE2b, 128 bits) of its row."""
    seen: dict[bytes, int] = {}
    first, repeated = "", 0
    for place, row in enumerate(rows):
        earlier = seen.setdefault(hashlib.blake2b(row, digest_size=16).digest(), place)
        if earlier != place:
            first = first or f"{name(place)} that is the same as {name(earlier)}"
            repeated += 1
    if repeated:
        times = "1 repetition" if repeated == 1 else f"{repeated:,} repetitions"
        remedy = "drop the repetitions, for a record that is there twice is drawn more often"
        shown = f"one with {times}, first {first}"
        raise validate.invalid_input("pool", shown, "of distinct records", remedy)


def outside(population: Dataset, pool: Dataset) -> Dataset:
    """The records of a population that are not in the pool: with other values or another label."""
    return population.take(_places_outside(population, pool))


def check_outside(population: Dataset, pool: Dataset) -> None:
    """Refuse a population of which models were trained on some records."""
    count = len(population) - len(_places_outside(population, pool))
    if count:
        raise validate.InputError.of(
            "population",
            "be of records that no model is trained on",
            f"{count:,} of its {len(population):,} records are in the pool",
            "leave them out with dprime.membership.outside(population, pool)",
        )


def _places_outside(population: Dataset, pool: Dataset) -> list[int]:
    known = set(pool.hashes())
    return [place for place, record in enumerate(population.hashes()) if record not in known]


def _probabilities(given: ArrayLike, count: int) -> float | Floats:
    values = np.array(arrays.numbers("probability", given), dtype=np.float64)
    if values.ndim == 0:
        return validate.inner_probability("probability", float(values), example=0.2)
    if values.shape != (count,):
        shown, wanted = f"of shape {values.shape}", f"one number, or of shape ({count},)"
        remedy = "give one for each record of the pool"
        raise validate.invalid_input("probability", shown, wanted, remedy)
    check_probabilities(values, "the probability of record {}".format)
    return arrays.read_only(values)


def check_probabilities(values: Floats, name: Callable[[int], str]) -> None:
    """Refuse a π that is not strictly between 0 and 1; `name` words the π of a place."""
    for place in np.flatnonzero(~((values > 0) & (values < 1)))[:1].tolist():
        validate.inner_probability(name(place), float(values[place]), example=0.2)
