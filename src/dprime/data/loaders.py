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
SPLIT_SEED = 0
"""Data sets without an official test part are always split in this way."""

BRIGHTEST = 16
"""A pixel of the digits is a whole number up to this."""

DIABETES_RANGES = {
    "age": (18, 80), "sex": (1, 2), "bmi": (15, 45), "bp": (60, 140), "s1": (90, 310),
    "s2": (40, 250), "s3": (20, 100), "s4": (2, 10), "s5": (3, 6.5), "s6": (50, 130),
}  # fmt: skip
"""Round numbers that enclose each measurement; constants, so that no record moves another."""

LARGEST_PROGRESSION = 350
"""The diabetes targets run from 25 to 346; they are divided by this."""


def _digits(_data_dir: Path | None) -> Dataset:
    """1,797 images of handwritten digits, 8×8, 10 classes."""
    bunch = files.scikit_learn("sklearn.datasets").load_digits()
    pixels = bunch.images[:, np.newaxis] / BRIGHTEST
    return Dataset("digits", pixels, bunch.target, "image", 10)


def _diabetes(_data_dir: Path | None) -> Dataset:
    """442 patients with ten measurements; the target is how the disease went on in a year."""
    bunch = files.scikit_learn("sklearn.datasets").load_diabetes(scaled=False)
    records = files.unit_interval(bunch.data, list(DIABETES_RANGES.values()))
    targets = bunch.target / LARGEST_PROGRESSION
    return Dataset("diabetes", records, targets, "table", None, tuple(DIABETES_RANGES))


Loader = Callable[[Path | None], Split]


def _split(whole: Callable[[Path | None], Dataset]) -> Loader:
    """A loader of a data set that has no official test part."""
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

OPENML: dict[str, Callable[[], Split]] = {
    "mnist": images.mnist_from_openml,
    "adult": adult.load_from_openml,
}


def names() -> list[str]:
    """The names that `load` knows.

    >>> names()[:4]
    ['digits', 'diabetes', 'mnist', 'adult']
    """
    return list(LOADERS)


def load(
    name: str, data_dir: str | os.PathLike[str] | None = None, *, source: str = "files"
) -> Split:
    """A data set by its name, in a part to train on and a part to test on.

    `digits` and `diabetes` come with scikit-learn. All others are read from files that you have:
    below `data_dir`, each in its own folder. MNIST, Adult and CIFAR-10 have an official test
    part; of the others a fifth is set aside, always the same records.

    `retail100` stands in the place of Purchase-100 and is not Purchase-100.

    Args:
        name: one of `names()`.
        data_dir: the folder with the files; where not given, the environment variable
            DPRIME_DATA names it.
        source: "files", or "openml" to have scikit-learn fetch `mnist` or `adult` from OpenML.

    Raises:
        InputError: an unknown name, or a file that is missing (a `FileNotFoundError` as well) or
            broken; the sentence names the file and says where to get it.
        ImportError: scikit-learn is needed and not installed.

    Examples:
        >>> digits = load("digits")
        >>> digits.train
        Dataset('digits', 1,438 records of 1×8×8, image, 10 classes)
        >>> len(digits.test)
        359
        >>> load("diabetes").train.columns[:3]
        ('age', 'sex', 'bmi')
    """
    validate.one_of("name", name, names())
    if source == "openml":
        if name not in OPENML:
            requirement = f"'files' for {name}, as OpenML is read for {' and '.join(OPENML)} only"
            raise validate.invalid_value("source", source, requirement, "leave it out")
        return OPENML[name]()
    validate.one_of("source", source, ("files", "openml"))
    return LOADERS[name](files.folder(data_dir))
