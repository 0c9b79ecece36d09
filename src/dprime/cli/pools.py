"""Pools that commands train on parts of: a data set by its name, without repetitions."""

from __future__ import annotations

from dprime import validate
from dprime.cli.options import whole
from dprime.data import Split, load
from dprime.data.loaders import names
from dprime.membership.planner import distinct


def pool_named(name: str, folder: str | None, option: str, count: str | None) -> Split:
    """The distinct records of a data set's training part, or the first so many; and its test part.

    Args:
        name: of the data set.
        folder: of the data sets' files.
        option: that gives the count, for its refusal.
        count: how many records; None for all.
    """
    validate.one_of("data", name, names())
    split = load(name, folder)
    pool = distinct(split.train)
    if count is not None:
        size = whole(option, count)
        if not 2 <= size <= len(pool):
            remedy = f"{name} has {len(pool):,} distinct ones"
            raise validate.refusal(option, size, f"from 2 to {len(pool):,}", remedy)
        pool = pool.take(range(size))
    return Split(pool, split.test)
