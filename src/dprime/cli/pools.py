"""Pools that commands train on parts of, without repetitions, and the records outside them."""

from __future__ import annotations

from dprime import validate
from dprime.data import Split, load
from dprime.data.loaders import names
from dprime.membership.pool import outside


def pool_named(name: str, folder: str | None, option: str, count: int | None) -> Split:
    """The distinct records of a data set's training part, or the first of them; and its test part.

    A count that does not fit is refused in the name of its option.
    """
    validate.one_of("data", name, names())
    split = load(name, folder)
    pool = split.train.distinct()
    if count is not None:
        if not 2 <= count <= len(pool):
            remedy = f"{name} has {len(pool):,} distinct ones"
            raise validate.invalid_value(option, count, f"from 2 to {len(pool):,}", remedy)
        pool = pool.take(range(count))
    return Split(pool, split.test)


def outsiders(split: Split) -> tuple[Split, int]:
    """The split without the records of its test part that are in the pool; how many they are."""
    others = outside(split.test, split.train)
    return Split(split.train, others), len(split.test) - len(others)
