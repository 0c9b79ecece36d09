"""retail100: shopping baskets in 100 classes that k-means made.

It stands in the place of Purchase-100 where that cannot be had, made in the same way from other
shops and people. No result on it may be called a result on Purchase-100.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray

from dprime.data import files
from dprime.data.arrays import read_only
from dprime.data.dataset import Dataset

SOURCE = files.DataSource("retail", "http://fimi.uantwerpen.be/data/")
ITEMS = 600
CLASSES = 100
SEED = 0
LONGEST_ITEM = 9


def load(data_dir: Path | None) -> Dataset:
    """The 600 most frequent items of `retail.dat` as features; empty baskets are left out.

    This stands in the place of Purchase-100 and is not Purchase-100.
    """
    path = SOURCE.find(data_dir, "retail.dat")
    baskets, items = _read(path)
    if len(np.unique(items)) < ITEMS:
        raise files.broken(path, f"a file with at least {ITEMS} items")
    features, columns = _features(baskets, items)
    labels = _clusters(features)
    return Dataset("retail100", features, labels, "binary", CLASSES, columns, sparse=True)


def _read(path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The purchases: the number of the basket, and the item. One basket is one line."""
    lines = [line.split() for line in files.read_text(path).splitlines()]
    words = [item for line in lines for item in line]
    for word in words:
        if not word.isdigit() or len(word) > LONGEST_ITEM:
            raise files.broken(f"each item in {path}", "a whole number", word)
    baskets = np.repeat(np.arange(len(lines)), [len(line) for line in lines])
    return baskets, np.array(words, dtype=np.int64)


def _features(
    baskets: NDArray[np.int64], items: NDArray[np.int64]
) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """(basket, item) of 0 and 1, the most frequent item first, ties by the item's number."""
    numbers, place = np.unique(items, return_inverse=True)
    ones = np.ones(len(items), dtype=np.float32)
    bought = scipy.sparse.csr_array((ones, (baskets, place)))
    bought.data[:] = 1  # an item counts once in a basket
    frequent = np.lexsort((numbers, -bought.sum(axis=0)))[:ITEMS]
    kept = bought[:, frequent]
    features = kept[kept.sum(axis=1) > 0].toarray()
    return read_only(features), tuple(f"item {number}" for number in numbers[frequent])


def _clusters(features: NDArray[np.float32]) -> NDArray[np.int64]:
    """Classes by k-means in small batches, on one thread: sums depend on how many there are."""
    cluster = files.scikit_learn("sklearn.cluster")
    threads = importlib.import_module("threadpoolctl")  # comes with scikit-learn
    with threads.threadpool_limits(limits=1):
        model = cluster.MiniBatchKMeans(CLASSES, n_init=1, random_state=SEED).fit(features)
    return read_only(model.labels_.astype(np.int64))
