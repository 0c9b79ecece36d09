"""What is known about the published files; DPRIME_DATA names the folder that holds them."""

import os

import numpy as np
import pytest

from dprime import data
from dprime.data import adult, files, retail100

pytestmark = pytest.mark.skipif(
    not os.environ.get(files.VARIABLE), reason=f"{files.VARIABLE} is not set"
)


@pytest.mark.parametrize(
    ("name", "train", "test"),
    [
        ("mnist", (60_000, 1, 28, 28), 10_000),
        ("adult", (32_561 - 2_399, 104), 15_060),
        ("location30", (4_008, 446), 1_002),
        ("cifar10", (10_000, 3, 32, 32), 2_000),
        ("retail100", (67_390, 600), 16_848),
    ],
)
def test_sizes_and_ranges(name, train, test):
    parts = data.load(name)
    assert (parts.train.records.shape, len(parts.test)) == (train, test)
    for part in (parts.train, parts.test):
        assert (part.records.min(), part.records.max()) == (0, 1)
        assert np.unique(part.labels).tolist() == list(range(part.classes))


def test_labels():
    mnist, cifar = data.load("mnist"), data.load("cifar10")
    assert np.bincount(mnist.train.labels).tolist() == [
        5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949
    ]  # fmt: skip
    assert np.bincount(cifar.train.labels).tolist() == [1_000] * 10
    assert np.bincount(cifar.test.labels).tolist() == [200] * 10


def test_adult():
    parts = data.load("adult")
    # 7,841 and 3,846 with the incomplete rows
    assert (parts.train.labels.sum(), parts.test.labels.sum()) == (7_508, 3_700)
    for part in (parts.train, parts.test):
        assert np.array_equal(part.records[:, 6:].sum(axis=1), np.full(len(part), 8))
    assert (parts.train.records != 0).any(axis=0).all()
    counts = {"adult.data": (32_561, 7_841, 2_399), "adult.test": (16_281, 3_846, 1_221)}
    for name, expected in counts.items():
        found = adult._rows(adult.SOURCE.find(files.folder(None), name))
        rich = sum(row[-1] == ">50K" for row in found)
        assert (len(found), rich, sum("?" in row for row in found)) == expected


def test_location30():
    parts = data.load("location30")
    both = np.concatenate([parts.train.records, parts.test.records])
    assert both.mean() == pytest.approx(0.120, abs=5e-4)


def test_retail100():
    """The same on any number of threads, and no class too small to be learned."""
    from threadpoolctl import threadpool_limits

    baskets, items = retail100._read(retail100.SOURCE.find(files.folder(None), "retail.dat"))
    assert (baskets[-1] + 1, len(np.unique(items))) == (88_162, 16_470)
    assert len(items) / 88_162 == pytest.approx(10.31, abs=5e-3)
    with threadpool_limits(limits=2):
        parts = data.load("retail100")
    with threadpool_limits(limits=1):
        again = data.load("retail100")
    for part, same in ((parts.train, again.train), (parts.test, again.test)):
        assert part.digest() == same.digest()
    assert parts.train.columns[:3] == ("item 39", "item 48", "item 38")
    assert np.bincount(parts.train.labels).min() >= 20
