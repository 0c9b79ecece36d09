"""The data sets that can be loaded by name: two come with scikit-learn, the others are files.

Adult, whose columns need more, is in `adult`.
"""

from __future__ import annotations

import importlib
import io
import math
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dprime import validate
from dprime.data import adult, files
from dprime.data.arrays import read_only
from dprime.data.dataset import Dataset, Split

TEST_SHARE = 0.2
SPLIT_SEED = 0  # data sets without an official test part are always split in this way

# From scikit-learn --------------------------------------------------------------------------------

BRIGHTEST = 16  # a pixel of the digits is a whole number up to this
DIABETES_COLUMNS = ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")
DIABETES_LOW = (18, 1, 15, 60, 90, 40, 20, 2, 3, 50)
DIABETES_HIGH = (80, 2, 45, 140, 310, 250, 100, 10, 6.5, 130)
"""Round numbers that enclose each measurement; constants, so that no record moves another."""

LARGEST_PROGRESSION = 350  # the diabetes targets run from 25 to 346; they are divided by this


def digits(_data_dir: Path | None) -> Dataset:
    """1,797 images of handwritten digits, 8×8, 10 classes."""
    bunch = files.scikit_learn("sklearn.datasets").load_digits()
    pixels = bunch.images[:, np.newaxis] / BRIGHTEST
    return Dataset("digits", pixels, bunch.target, "image", 10)


def diabetes(_data_dir: Path | None) -> Dataset:
    """442 patients with ten measurements; the target is how the disease went on in a year."""
    bunch = files.scikit_learn("sklearn.datasets").load_diabetes(scaled=False)
    ranges = list(zip(DIABETES_LOW, DIABETES_HIGH, strict=True))
    records = files.unit_interval(bunch.data, ranges)
    targets = bunch.target / LARGEST_PROGRESSION
    return Dataset("diabetes", records, targets, "table", None, DIABETES_COLUMNS)


# MNIST and CIFAR-10 -------------------------------------------------------------------------------

MNIST = files.DataSource("mnist", "http://yann.lecun.com/exdb/mnist/")
MNIST_SIZES = 60_000, 10_000  # to train and to test on; OpenML stores the test records last
IDX_MAGIC = {1: 2049, 3: 2051}  # the first number of an idx file of bytes, by its number of axes
CIFAR10 = files.DataSource("cifar10", "https://www.cs.toronto.edu/~kriz/cifar.html")
CIFAR10_ARCHIVES = ("cifar10_subset.npz", "cifar10.npz")
"""Keras keys, NHWC; the first holds a stratified subset, 10,000 + 2,000."""
CIFAR10_BATCHES = "cifar-10-batches-bin"
"""The folder of the published binary version; each record is a label and 3×32×32 bytes."""
CIFAR10_SHAPE = (3, 32, 32)


def mnist(data_dir: Path | None) -> Split:
    """60,000 + 10,000 images of handwritten digits, 28×28, from the four idx files."""
    parts = []
    for prefix in ("train", "t10k"):
        images = MNIST.find(data_dir, f"{prefix}-images-idx3-ubyte")
        labels = MNIST.find(data_dir, f"{prefix}-labels-idx1-ubyte")
        pixels = _read_idx(images, axes=3)
        files.check(images, "the height and width", pixels.shape[1:], (28, 28))
        parts.append(_images("mnist", labels, pixels[:, np.newaxis], _read_idx(labels, axes=1)))
    return Split(*parts)


def mnist_from_openml() -> Split:
    """From OpenML's mnist_784: the same images in the same order."""
    bunch = MNIST.fetch("mnist_784", 1)
    origin = "OpenML's mnist_784"
    files.check(origin, "the size", len(bunch.data), sum(MNIST_SIZES), MNIST.remedy)
    images = np.asarray(bunch.data).astype(np.uint8).reshape(-1, 1, 28, 28)
    labels = np.asarray(bunch.target).astype(np.int64)
    parts = zip(*(np.split(each, MNIST_SIZES[:1]) for each in (images, labels)), strict=True)
    return Split(*(_images("mnist", origin, *part) for part in parts))


def _read_idx(path: Path, axes: int) -> NDArray[np.uint8]:
    """An idx file: a magic number, the length of each axis, then the bytes."""
    contents = files.read(path)
    header = 4 * (axes + 1)
    if len(contents) < header:
        raise files.broken(path, "an idx file")
    magic, *shape = struct.unpack(f">{axes + 1}I", contents[:header])
    files.check(path, "the magic number", magic, IDX_MAGIC[axes])
    files.check(path, "the number of bytes", len(contents) - header, math.prod(shape))
    return np.frombuffer(contents, dtype=np.uint8)[header:].reshape(shape)


def cifar10(data_dir: Path | None) -> Split:
    """Small colour photographs, 32×32: from an npz archive, else from the published batches."""
    test = f"{CIFAR10_BATCHES}/test_batch.bin"
    path = CIFAR10.look(data_dir, *CIFAR10_ARCHIVES)
    if path is None and CIFAR10.look(data_dir, test):
        batches = [f"{CIFAR10_BATCHES}/data_batch_{number}.bin" for number in range(1, 6)]
        return Split(_from_batches(data_dir, *batches), _from_batches(data_dir, test))
    path = path or CIFAR10.find(data_dir, *CIFAR10_ARCHIVES, test)
    arrays = files.read_arrays(path, "x_train", "y_train", "x_test", "y_test")
    return Split(_from_arrays(path, *arrays[:2]), _from_arrays(path, *arrays[2:]))


def _from_arrays(path: Path, images: NDArray[Any], labels: NDArray[Any]) -> Dataset:
    files.check(path, "the type of the images", str(images.dtype), "uint8")
    files.check(path, "the shape of an image", images.shape[1:], (32, 32, 3))
    return _images("cifar10", path, images.transpose(0, 3, 1, 2), labels)


def _from_batches(data_dir: Path | None, *names: str) -> Dataset:
    length = 1 + math.prod(CIFAR10_SHAPE)
    rows = []
    for path in [CIFAR10.find(data_dir, name) for name in names]:
        contents = np.frombuffer(files.read(path), dtype=np.uint8)
        files.check(path, f"the bytes left after records of {length}", len(contents) % length, 0)
        rows.append(contents.reshape(-1, length))
    every = np.concatenate(rows)
    return _images("cifar10", path, every[:, 1:].reshape(-1, *CIFAR10_SHAPE), every[:, 0])


def _images(
    name: str, origin: Path | str, images: NDArray[np.uint8], labels: NDArray[Any]
) -> Dataset:
    indexes = files.class_indexes(origin, labels, 10)
    files.check(origin, "the number of labels", len(indexes), len(images))
    pixels = np.divide(images, 255, dtype=np.float32, order="C")
    return Dataset(name, read_only(pixels), indexes, "image", 10)


# Location-30 and Purchase-100, as Shokri et al. 2017 published them -------------------------------

LOCATION30 = files.DataSource("location30", "https://github.com/privacytrustlab/datasets")
PURCHASE100 = files.DataSource("purchase100", "https://github.com/privacytrustlab/datasets")
LONGEST_NUMBER = 9  # digits of a label or an item


def location30(data_dir: Path | None) -> Dataset:
    """Which of 446 places 5,010 people visited, in 30 classes: bit-packed, or as published."""
    path = LOCATION30.find(data_dir, "location30.npz", "bangkok")
    read = _read_packed if ".npz" in path.name else _read_lines
    return read("location30", path, features=446, classes=30)


def purchase100(data_dir: Path | None) -> Dataset:
    """197,324 × 600 features, 100 classes, from `dataset_purchase`, the file in its tgz."""
    path = PURCHASE100.find(data_dir, "dataset_purchase")
    return _read_lines("purchase100", path, features=600, classes=100)


def _read_packed(name: str, path: Path, features: int, classes: int) -> Dataset:
    packed, count, numbers = files.read_arrays(path, "X_packed", "n_features", "y")
    files.check(path, "the number of features", count.tolist(), features)
    files.check(path, "the type of X_packed", str(packed.dtype), "uint8")
    files.check(path, "the number of labels", numbers.shape, packed.shape[:1])
    files.check(path, "the bytes of a record", packed.shape[1:], ((features + 7) // 8,))
    records = np.unpackbits(packed, axis=1, count=features).astype(np.float32)
    labels = files.class_indexes(path, numbers, classes, first=1)
    return Dataset(name, read_only(records), labels, "binary", classes)


def _read_lines(name: str, path: Path, features: int, classes: int) -> Dataset:
    """In each line stand a class from 1 and features 0 or 1, with commas.

    Since each feature is one character, they are cut out as bytes and never parsed: about a second,
    where `np.loadtxt` takes about 17.
    """
    lines = io.BytesIO(files.read(path).translate(None, b'" \r').rstrip(b"\n") or b"\n")
    commas, labels, marks = b"," * (features - 1), [], []
    for number, line in enumerate(lines, start=1):
        label, _, row = line.rstrip(b"\n").partition(b",")
        plain = label.isdigit() and len(label) <= LONGEST_NUMBER and len(row) == 2 * features - 1
        if not plain or row[1::2] != commas or row[::2].strip(b"01"):
            requirement = f"a class and {features} features 0 or 1, with commas"
            raise files.broken(f"line {number} of {path}", requirement)
        labels.append(int(label))
        marks.append(row[::2])
    characters = np.frombuffer(b"".join(marks), dtype=np.uint8).reshape(-1, features)
    records = np.subtract(characters, ord("0"), dtype=np.float32)
    indexes = files.class_indexes(path, np.array(labels), classes, first=1)
    return Dataset(name, read_only(records), indexes, "binary", classes)


# retail100 ----------------------------------------------------------------------------------------

RETAIL = files.DataSource("retail", "http://fimi.uantwerpen.be/data/")
RETAIL_ITEMS, RETAIL_CLASSES, RETAIL_SEED = 600, 100, 0


def retail100(data_dir: Path | None) -> Dataset:
    """Shopping baskets in 100 classes that k-means made, from `retail.dat`.

    The 600 most frequent items are the features; empty baskets are left out. This stands in the
    place of Purchase-100, made in the same way from other shops and people, and is not
    Purchase-100: no result on it may be called a result on Purchase-100.
    """
    path = RETAIL.find(data_dir, "retail.dat")
    baskets, items = read_purchases(path)
    if len(np.unique(items)) < RETAIL_ITEMS:
        raise files.broken(path, f"a file with at least {RETAIL_ITEMS} items")
    features, columns = _features(baskets, items)
    labels = _clusters(features)
    return Dataset("retail100", features, labels, "binary", RETAIL_CLASSES, columns, sparse=True)


def read_purchases(path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number of the basket and the item of each purchase. One basket is one line."""
    lines = [line.split() for line in files.read_text(path).splitlines()]
    words = [item for line in lines for item in line]
    for word in words:
        if not word.isdigit() or len(word) > LONGEST_NUMBER:
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
    frequent = np.lexsort((numbers, -bought.sum(axis=0)))[:RETAIL_ITEMS]
    kept = bought[:, frequent]
    features = kept[kept.sum(axis=1) > 0].toarray()
    return read_only(features), tuple(f"item {number}" for number in numbers[frequent])


def _clusters(features: NDArray[np.float32]) -> NDArray[np.int64]:
    """Classes by k-means in small batches, on one thread: sums depend on how many there are."""
    cluster = files.scikit_learn("sklearn.cluster")
    threads = importlib.import_module("threadpoolctl")  # comes with scikit-learn
    with threads.threadpool_limits(limits=1):
        means = cluster.MiniBatchKMeans(RETAIL_CLASSES, n_init=1, random_state=RETAIL_SEED)
        labels: NDArray[np.int64] = means.fit(features).labels_.astype(np.int64)
    return read_only(labels)


# By name ------------------------------------------------------------------------------------------

LOADERS: dict[str, Callable[[Path | None], Split | Dataset]] = {
    "digits": digits,
    "diabetes": diabetes,
    "mnist": mnist,
    "adult": adult.load,
    "location30": location30,
    "cifar10": cifar10,
    "retail100": retail100,
    "purchase100": purchase100,
}
OPENML = {"mnist": mnist_from_openml, "adult": adult.load_from_openml}


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
    found = LOADERS[name](files.folder(data_dir))
    return found if isinstance(found, Split) else found.split(TEST_SHARE, SPLIT_SEED)
