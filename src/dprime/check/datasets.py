"""What PyTorch's data sets and loaders are, as far as a call tells."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from dprime.check.values import (
    Array,
    Constant,
    Dataset,
    External,
    Items,
    Loader,
    Stream,
    Value,
    behind,
    constant,
    either,
    number,
    options,
    origins,
)

if TYPE_CHECKING:
    from dprime.check.calls import Call

SIZES = {
    "MNIST": (60_000, 10_000),
    "FashionMNIST": (60_000, 10_000),
    "KMNIST": (60_000, 10_000),
    "CIFAR10": (50_000, 10_000),
    "CIFAR100": (50_000, 10_000),
    "SVHN": (73_257, 26_032),
}
"""Records for training and for testing in torchvision's data sets."""

ARRAYS = {"randn", "rand", "zeros", "ones", "empty", "randint"}
"""Functions of PyTorch that make an array in a given shape."""

SAMPLERS_WITH_WEIGHTS = {"WeightedRandomSampler", "ImbalancedDatasetSampler"}
PLAIN_SAMPLERS = {"RandomSampler", "SequentialSampler", "DistributedSampler"}


def data_set(name: str, call: Call) -> Value:
    """Records, with their number for data sets that are known."""
    training = constant(call.get("train", 1))
    split = constant(call.get("split"))
    known = SIZES.get(name)
    is_test = training is False or split == "test"
    plain = not is_test and split in (None, "train") and not isinstance(training, str)
    records = known[1] if known and is_test else known[0] if known and plain else None
    if name == "TensorDataset" and call.positional:
        records = _rows(call.positional[0])
    return Dataset(call.line, call.all(), call.walker.loops, name=name, records=records)


def _rows(value: Value) -> int | None:
    counts = {o.rows if isinstance(o, Array) else None for o in options(value)}
    return counts.pop() if len(counts) == 1 else None


def array(name: str, call: Call) -> Value:
    """`torch.randn(1000, 5)` and its like: so many rows."""
    place = len(call.positional) - 1 if name == "randint" else 0
    shape = call.get("size", place)
    first = shape.items[0] if isinstance(shape, Items) and shape.items else shape
    count = number(first) if name != "randint" or isinstance(shape, Items) else None
    made = (*call.all(), External(call.line, name=name))
    rows = int(count) if count is not None and count >= 1 else None
    return Array(call.line, made, call.walker.loops, rows=rows)


def _concatenated(call: Call) -> Value:
    given = call.whole("datasets", 0)
    parts = given.items if isinstance(given, Items) else (given,)
    return Dataset(call.line, (), call.walker.loops, name="ConcatDataset", parts=parts)


def _subset(call: Call) -> Value:
    whole, chosen = call.whole("dataset", 0), call.get("indices", 1)
    times = [s.times for s in options(chosen) if isinstance(s, Stream)]
    count = number(times[0]) if times else None
    records = None if count is None else int(count)
    made_from = (whole,) if chosen is None else (whole, chosen)
    return Dataset(call.line, made_from, call.walker.loops, name="Subset", records=records)


def _split(call: Call) -> Value:
    whole, lengths = call.whole("dataset", 0), call.get("lengths", 1)
    if not isinstance(lengths, Items):
        return call.result()
    total = size_of(whole)
    parts = []
    for length in lengths.items:
        count = number(length)
        if count is not None and 0 < count < 1:
            count = None if total is None else math.floor(count * total)
        records = None if count is None else int(count)
        parts.append(Dataset(call.line, (whole,), call.walker.loops, name="part", records=records))
    return Items(call.line, items=tuple(parts))


def size_of(value: Value | None) -> int | None:
    """Records of a data set, where that is known."""
    sizes = {o.records if isinstance(o, Dataset) else None for o in options(value)}
    return sizes.pop() if len(sizes) == 1 else None


def _loader(call: Call) -> Value:
    data = call.whole("dataset", 0)
    sampler = call.get("sampler", 3) or call.get("batch_sampler", 4)
    names = [
        each.name.rpartition(".")[2]
        for each in behind(sampler, origins)
        if isinstance(each, External)
    ]
    weighted = next((n for n in names if n in SAMPLERS_WITH_WEIGHTS), "")
    poisson = any("UniformWithReplacementSampler" in n for n in names)
    return Loader(
        call.line, (), call.walker.loops, dataset=data,
        batch_size=call.get("batch_size", 1) or Constant(call.line, value=1),
        sampler=weighted or ("other" if names and not set(names) & PLAIN_SAMPLERS else ""),
        private=poisson,
    )  # fmt: skip


def _poisson_loader(call: Call) -> Value:
    """DPDataLoader, made by hand."""
    given = call.get("data_loader", 0)
    known = given if isinstance(given, Loader) else None
    return Loader(
        call.line, (), call.walker.loops, private=True, made_from=given,
        dataset=known.dataset if known else call.whole("dataset", 0),
        batch_size=known.batch_size if known else Value(call.line),
    )  # fmt: skip


def _split_batches(call: Call) -> Value:
    """BatchMemoryManager: the same batches in parts."""
    found = []
    for given in options(call.whole("data_loader", 0)):
        private = isinstance(given, Loader) and given.private
        if not isinstance(given, Loader):
            found.append(Value(call.line, (given,)))
            continue
        found.append(
            Loader(
                call.line, (), call.walker.loops, dataset=given.dataset,
                batch_size=given.batch_size, private=private,
                made_from=given.made_from or given,
            )
        )  # fmt: skip
    return either(found)


HANDLERS: dict[str, Callable[[Call], Value]] = {
    "DataLoader": _loader,
    "DPDataLoader": _poisson_loader,
    "from_data_loader": _poisson_loader,
    "BatchMemoryManager": _split_batches,
    "wrap_data_loader": _split_batches,
    "ConcatDataset": _concatenated,
    "Subset": _subset,
    "random_split": _split,
}
"""By the last part of the name, which imports and aliases leave as it is."""
