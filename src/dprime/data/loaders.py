"""The data sets that can be loaded by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from dprime import validate
from dprime.data import adult, embedded, files, images, retail100, shokri
from dprime.data.dataset import Dataset, Split

TEST_SHARE = 0.2
SPLIT_SEED = 0
"""Data sets without an official test part are always split in this way."""

Loader = Callable[[Path | None], Split]


def _split(whole: Callable[[Path | None], Dataset]) -> Loader:
    """A loader of a data set that has no official test part."""
    return lambda data_dir: whole(data_dir).split(TEST_SHARE, SPLIT_SEED)


LOADERS: dict[str, Loader] = {
    "digits": _split(embedded.digits),
    "diabetes": _split(embedded.diabetes),
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
    below `data_dir`, each in a folder of its own. MNIST, Adult and CIFAR-10 have an official test
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
            raise validate.refusal("source", source, requirement, "leave it out")
        return OPENML[name]()
    validate.one_of("source", source, ("files", "openml"))
    return LOADERS[name](files.folder(data_dir))
