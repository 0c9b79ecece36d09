"""What is known about the published files; DPRIME_DATA names the folder that holds them."""

import os

import numpy as np
import pytest

from dprime import data
from dprime.data import adult, files, loaders

pytestmark = pytest.mark.skipif(
    not os.environ.get(files.VARIABLE), reason=f"{files.VARIABLE} is not set"
)
DIGITS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


@pytest.mark.parametrize(
    ("name", "train", "test", "counts"),
    [
        ("mnist", (60_000, 1, 28, 28), 10_000, [DIGITS]),
        ("adult", (32_561 - 2_399, 104), 15_060, [[22_654, 7_508], [11_360, 3_700]]),
        ("location30", (4_008, 446), 1_002, []),
        ("cifar10", (10_000, 3, 32, 32), 2_000, [[1_000] * 10, [200] * 10]),
        ("retail100", (67_390, 600), 16_848, []),
    ],
)
def test_sizes_ranges_and_labels(name, train, test, counts):
    parts = data.load(name)
    assert (parts.train.records.shape, len(parts.test)) == (train, test)
    for part in (parts.train, parts.test):
        assert (part.records.min(), part.records.max()) == (0, 1)
        assert np.unique(part.labels).tolist() == list(range(part.classes))
    for part, expected in zip((parts.train, parts.test), counts, strict=False):
        assert np.bincount(part.labels).tolist() == expected
    if name == "location30":
        both = np.concatenate([parts.train.records, parts.test.records])
        assert both.mean() == pytest.approx(0.120, abs=5e-4)


def test_adult():
    parts = data.load("adult")
    for part in (parts.train, parts.test):
        assert np.array_equal(part.records[:, 6:].sum(axis=1), np.full(len(part), 8))
    assert (parts.train.records != 0).any(axis=0).all()
    counts = {"adult.data": (32_561, 7_841, 2_399), "adult.test": (16_281, 3_846, 1_221)}
    for name, expected in counts.items():
        found = adult._rows(adult.SOURCE.find(files.folder(None), name))
        rich = sum(row[-1] == ">50K" for row in found)
        assert (len(found), rich, sum("?" in row for row in found)) == expected


def test_retail100():
    from threadpoolctl import threadpool_limits

    baskets, items = loaders.read_purchases(loaders.RETAIL.find(files.folder(None), "retail.dat"))
    assert (baskets[-1] + 1, len(items), len(np.unique(items))) == (88_162, 908_576, 16_470)
    found = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            found.append(data.load("retail100"))
    assert found[0].train.digest() == found[1].train.digest()
    assert found[0].test.digest() == found[1].test.digest()
    assert found[0].train.columns[:3] == ("item 39", "item 48", "item 38")
    assert np.bincount(found[0].train.labels).min() >= 20
