"""The data sets that can be loaded by name; two of them come with scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dprime import validate
from dprime.data import adult, files, images, retail100, shokri
from dprime.data.dataset import Dataset, Split

TEST_SHARE = 0.2
SPLIT_SEED = 0  # data sets without an official test part are always split in this way
BRIGHTEST = 16  # a pixel of the digits is a whole number up to this
DIABETES_COLUMNS = ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")
DIABETES_LOW = (18, 1, 15, 60, 90, 40, 20, 2, 3, 50)
DIABETES_HIGH = (80, 2, 45, 140, 310, 250, 100, 10, 6.5, 130)
"""Round numbers that enclose each measurement; constants, so that no record moves another."""

LARGEST_PROGRESSION = 350  # the diabetes targets run from 25 to 346; they are divided by this


def _digits(_data_dir: Path | None) -> Dataset:
    """1,797 images of handwritten digits, 8×8, 10 classes."""
    bunch = files.scikit_learn("sklearn.datasets").load_digits()
    pixels = bunch.images[:, np.newaxis] / BRIGHTEST
    return Dataset("digits", pixels, bunch.target, "image", 10)


def _diabetes(_data_dir: Path | None) -> Dataset:
    """442 patients with ten measurements; the target is how the disease went on in a year."""
    bunch = files.scikit_learn("sklearn.datasets").load_diabetes(scaled=False)
    ranges = list(zip(DIABETES_LOW, DIABETES_HIGH, strict=True))
    records = files.unit_interval(bunch.data, ranges)
    targets = bunch.target / LARGEST_PROGRESSION
    return Dataset("diabetes", records, targets, "table", None, DIABETES_COLUMNS)


Loader = Callable[[Path | None], Split]


def _split(whole: Callable[[Path | None], Dataset]) -> Loader:
    return lambda data_dir: whole(data_dir).split(TEST_SHARE, SPLIT_SEED)


LOADERS: dict[str, Loader] = {
    "digits": _split(_digits),
    "diabetes": _split(_diabetes),
    "mnist": images.mnist,
    "adult": adult.load,
    "location30": _split(shokri.location30),
    "cifar10": images.cifar10,
    "retail100": _split(retail100.load),
    "purchase100": _split(shokri.purchase100),
}
OPENML = {"mnist": images.mnist_from_openml, "adult": adult.load_from_openml}


def names() -> list[str]:
    """The names that `load` knows."""
    return list(LOADERS)


def load(
    name: str, data_dir: str | os.PathLike[str] | None = None, *, source: str = "files"
) -> Split:
    """A data set by its name, in a part to train on and a part to test on.

    `digits` and `diabetes` come with scikit-learn. All others are read from files below `data_dir`,
    else below the folder that the environment variable DPRIME_DATA names. With `source="openml"`,
    scikit-learn fetches `mnist` or `adult`. MNIST, Adult and CIFAR-10 have an official test part;
    of the others a fifth is set aside, always the same records. `retail100` stands in the place of
    Purchase-100 and is not Purchase-100. A missing file is a `FileNotFoundError` as well as an
    `InputError`, whose sentence says where to get it.

    >>> digits = load("digits")
    >>> digits.train, len(digits.test)
    (Dataset('digits', 1,438 records of 1×8×8, image, 10 classes), 359)
    """
    validate.one_of("name", name, names())
    if source == "openml" and name not in OPENML:
        requirement = f"'files' for {name}, as OpenML is read for {' and '.join(OPENML)} only"
        raise validate.invalid_value("source", source, requirement, "leave it out")
    if validate.one_of("source", source, ("files", "openml")) == "openml":
        return OPENML[name]()
    return LOADERS[name](files.folder(data_dir))
