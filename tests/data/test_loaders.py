"""Loaders: every format from small files that are written here, whole and broken."""

import gzip
import os
import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock
from urllib.error import URLError

import numpy as np
import pytest

from dprime import data
from dprime.data import adult, files, loaders
from dprime.validate import InputError

SHOKRI = "github.com/privacytrustlab/datasets"
ADDRESSES = {
    "mnist": "yann.lecun.com/exdb/mnist",
    "adult": "archive.ics.uci.edu/dataset/2/adult",
    "location30": SHOKRI,
    "cifar10": "www.cs.toronto.edu/~kriz/cifar.html",
    "retail100": "fimi.uantwerpen.be/data",
    "purchase100": SHOKRI,
}


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    """Nothing here may read the real files that the machine may have."""
    monkeypatch.delenv(files.VARIABLE, raising=False)


def write(path, contents):
    """A file, gzipped if its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(contents) if path.suffix == ".gz" else contents)


def refused(name, folder, *told, source="files"):
    """The input is refused with a sentence that has all of this in it."""
    with pytest.raises(InputError) as caught:
        data.load(name, folder, source=source)
    for part in told:
        assert str(part) in str(caught.value), caught.value


def same(one, other):
    """Whether both splits have the same contents."""
    parts = ((one.train, other.train), (one.test, other.test))
    return all(first.digest() == second.digest() for first, second in parts)


# --- by name ------------------------------------------------------------------------------------


def test_names_and_sources_that_there_are_not(monkeypatch):
    for name in ("nist", None):
        refused(name, None, "name", *data.names())
    for source in ("openml", "web"):
        refused("digits", None, "source", source=source)
    for name, error in (("mnist", URLError("no route")), ("adult", ValueError("unknown"))):
        monkeypatch.setattr("sklearn.datasets.fetch_openml", Mock(side_effect=error))
        refused(name, None, "openml.org", ADDRESSES[name], source="openml")


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_missing_file_is_named_with_its_address(name, tmp_path):
    for folder in (tmp_path / "nowhere", None):
        with pytest.raises(FileNotFoundError) as missing:
            data.load(name, folder)
        assert isinstance(missing.value, InputError)
        below = "retail/" if name == "retail100" else f"{name}/"
        for part in ("data_dir", folder or "not given", "DPRIME_DATA", ADDRESSES[name], below):
            assert str(part) in str(missing.value)


def test_the_environment_names_the_folder_and_an_argument_is_stronger(tmp_path, monkeypatch):
    write_packed(tmp_path / "location30")
    monkeypatch.setenv("DPRIME_DATA", str(tmp_path))
    assert len(data.load("location30").train) == 48
    refused("location30", tmp_path / "empty", "empty")
    monkeypatch.setenv("DPRIME_DATA", "")
    refused("location30", None, "but it is not given")


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"pip install 'dprime\[train\]'\.$"):
        data.load("digits")


def test_digits():
    parts = data.load("digits")
    assert (parts.train.records.shape, len(parts.test)) == ((1438, 1, 8, 8), 359)
    assert (parts.train.records.min(), parts.train.records.max()) == (0, 1)
    counts = np.bincount(np.concatenate([parts.train.labels, parts.test.labels]))
    assert counts.tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert same(parts, data.load("digits"))


def test_diabetes():
    """The constants enclose the file: only sex, which is 1 or 2, reaches 0 and 1."""
    parts = data.load("diabetes")
    assert (len(parts.train), len(parts.test), parts.train.classes) == (354, 88, None)
    assert parts.train.columns == loaders.DIABETES_COLUMNS
    whole = loaders.diabetes(None)
    assert (whole.labels.min(), whole.labels.max()) == (np.float32(25 / 350), np.float32(346 / 350))
    inner = np.delete(whole.records, 1, axis=1)
    assert 0 <= inner.min() < inner.max() < 1
    assert set(whole.records[:, 1]) == {0, 1}
    assert (whole.records.max(axis=0) - whole.records.min(axis=0)).min() > 0.75


# --- images, and features of 0 and 1 ------------------------------------------------------------

RNG = np.random.default_rng(1)
DIGITS = RNG.integers(0, 256, (12, 28, 28), dtype=np.uint8)
PHOTOS = RNG.integers(0, 256, (9, 32, 32, 3), dtype=np.uint8)
MARKS = np.array([7, 0, 9, 3, 2, 8, 1, 4, 5, 6, 7, 1], dtype=np.uint8)
KERAS = {"x_train": PHOTOS[:6], "y_train": MARKS[:6], "x_test": PHOTOS[6:]}
KERAS["y_test"] = MARKS[6:9, np.newaxis].astype(int)  # Keras' own shape
PLACES, BASKETS = (RNG.integers(0, 2, (60, n), dtype=np.uint8) for n in (446, 600))
REGIONS, CLASSES = RNG.integers(1, 31, 60, dtype=np.uint8), RNG.integers(1, 101, 60)
CLASSES[:3] = 1, 20, 100  # labels of every length


def idx(array):
    header = struct.pack(f">{1 + array.ndim}I", 2048 + array.ndim, *array.shape)
    return header + array.tobytes()


def write_mnist(folder, end=""):
    for prefix, rows in (("train", slice(0, 8)), ("t10k", slice(8, 12))):
        write(folder / f"{prefix}-images-idx3-ubyte{end}", idx(DIGITS[rows]))
        write(folder / f"{prefix}-labels-idx1-ubyte{end}", idx(MARKS[rows]))


def write_arrays(path, arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})


def write_packed(folder, **changes):
    arrays = {"X_packed": np.packbits(PLACES, axis=1), "n_features": np.array(446), "y": REGIONS}
    write_arrays(folder / "location30.npz", arrays | changes)


def write_photos(folder, **changes):
    write_arrays(folder / "cifar10_subset.npz", KERAS | changes)


def write_batches(folder):
    """The published form, in five files to train on."""
    marked = zip(PHOTOS.transpose(0, 3, 1, 2), MARKS, strict=False)
    packed = [bytes([label]) + photo.tobytes() for photo, label in marked]
    parts = {f"data_batch_{n}": packed[n - 1 : n] for n in range(1, 5)}
    parts |= {"data_batch_5": packed[4:6], "test_batch": packed[6:]}
    for name, part in parts.items():
        write(folder / "cifar-10-batches-bin" / f"{name}.bin", b"".join(part))


def lines(records, labels, quote=""):
    """The published form of Location-30 and Purchase-100."""
    rows = zip(records, labels, strict=True)
    return [f"{quote}{y}{quote}," + ",".join(map(str, x)) for x, y in rows]


def published(name, *table, end="\n", quote=""):
    return lambda folder: write(folder / name, end.join(lines(*table, quote)).encode())


BOUGHT = BASKETS, CLASSES
PEOPLE = ("location30", PLACES, REGIONS - 1, "binary", 30, 48)
BUYERS = ("purchase100", BASKETS, CLASSES - 1, "binary", 100, 48)
WRITTEN = ("mnist", DIGITS[:, np.newaxis] / 255, MARKS, "image", 10, 8)
COLOURED = ("cifar10", PHOTOS.transpose(0, 3, 1, 2) / 255, MARKS[:9], "image", 10, 6)
WHOLE_FILES = [
    (*WRITTEN, lambda folder: write_mnist(folder / "mnist", ".gz")),
    (*WRITTEN, write_mnist),
    (*COLOURED, write_photos),
    (*COLOURED, lambda folder: write_batches(folder / "cifar10")),
    (*PEOPLE, write_packed),
    (*PEOPLE, published("bangkok", PLACES, REGIONS, quote='"')),
    (*BUYERS, published("dataset_purchase", *BOUGHT)),
    (*BUYERS, published("purchase100/dataset_purchase.gz", *BOUGHT, end="\r\n")),
]


@pytest.mark.parametrize(
    ("name", "records", "labels", "kind", "classes", "size", "make"), WHOLE_FILES
)
def test_whole_files(name, records, labels, kind, classes, size, make, tmp_path):
    make(tmp_path)
    parts = data.load(name, str(tmp_path))
    assert (len(parts.train), len(parts.test)) == (size, len(labels) - size)
    assert (parts.test.name, parts.test.kind, parts.test.classes) == (name, kind, classes)
    rows = np.column_stack([labels, records.reshape(len(labels), -1).astype(np.float32)])
    both = [
        np.column_stack([p.labels, p.records.reshape(len(p), -1)]) for p in vars(parts).values()
    ]
    if kind == "image":  # in the order of the files
        assert np.array_equal(np.concatenate(both), rows)
    assert sorted(map(tuple, np.concatenate(both))) == sorted(map(tuple, rows))


def test_openml_gives_the_same_digits(tmp_path, monkeypatch):
    def fetch(name, version, **_):
        assert (name, version) == ("mnist_784", 1)
        rows = DIGITS.reshape(12, 784).astype(np.float64)
        return SimpleNamespace(data=rows, target=MARKS.astype(str).astype(object))

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    refused("mnist", None, "must be 70000, but it is 12", ADDRESSES["mnist"], source="openml")
    monkeypatch.setattr(loaders, "MNIST_SIZES", (8, 4))
    write_mnist(tmp_path)
    assert same(data.load("mnist", source="openml"), data.load("mnist", tmp_path))


# --- Adult --------------------------------------------------------------------------------------

ROWS = [
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male,"
    " 2174, 0, 40, United-States, <=50K",
    "54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, Male,"
    " 0, 0, 60, South, >50K",
    "91, Private, 5, Preschool, 1, Widowed, Armed-Forces, Wife, Black, Female,"
    " 99999, 4356, 99, Trinadad&Tobago, >50K",
]


def write_adult(folder, rows=ROWS, test_rows=ROWS):
    test = "|1x3 Cross validator\n" + "".join(f"{row}.\n" for row in test_rows)
    write(folder / "adult.data", ("\n".join(rows) + "\n\n").encode())
    write(folder / "adult.test.gz", (test + "\n").encode())


def one_record(row):
    """A row of Adult as a dictionary of columns, coded independently of the loader."""
    named = dict(zip(adult.ATTRIBUTES, map(str.strip, row.split(",")), strict=False))
    coded = dict.fromkeys(adult.COLUMNS, 0.0)
    for name, value in named.items():
        if name in adult.RANGES:
            low, high = adult.RANGES[name]
            coded[name] = min(max((float(value) - low) / (high - low), 0), 1)
        else:
            coded[f"{name}={value}"] = 1.0
    assert set(coded) == set(adult.COLUMNS)
    return list(coded.values())


def test_adult(tmp_path):
    """Nothing is computed from the data: a record does not move the others."""
    write_adult(tmp_path / "adult")
    parts = data.load("adult", tmp_path)
    assert (len(adult.ATTRIBUTES), len(adult.RANGES), len({*adult.COLUMNS})) == (14, 6, 104)
    for part in (parts.train, parts.test):
        assert part.labels.tolist() == [0, 1]
        assert (part.kind, part.classes, part.columns) == ("table", 2, adult.COLUMNS)
        assert part.records == pytest.approx(np.array([one_record(ROWS[0]), one_record(ROWS[2])]))
    write_adult(tmp_path / "one", rows=ROWS[:1])
    alone = data.load("adult", tmp_path / "one").train
    assert np.array_equal(parts.train.records[:1], alone.records)


def fetched(rows, **changes):
    """What fetch_openml gives: numbers, and categories as places in a list."""
    table = [[field.strip() for field in row.split(",")] for row in rows]
    columns = dict(zip((*adult.ATTRIBUTES, "class"), zip(*table, strict=True), strict=True))
    categories = {name: sorted({*columns[name]} - {"?"}) for name in adult.CATEGORIES}

    def number(name, field):
        if field == "?":
            return np.nan
        return categories[name].index(field) if name in categories else float(field)

    values = [[number(name, field) for field in columns[name]] for name in adult.ATTRIBUTES]
    bunch = {"data": np.array(values).T, "target": np.array(columns["class"], dtype=object)}
    bunch |= {"feature_names": list(adult.ATTRIBUTES), "categories": categories}
    return lambda *_, **__: SimpleNamespace(**{**bunch, **changes})


def test_openml_gives_the_same_people_or_is_refused(tmp_path, monkeypatch):
    def answer(rows, **changes):
        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetched(rows, **changes))

    answer([*ROWS[1:], *ROWS])
    refused("adult", None, "must be 48842, but it is 5", ADDRESSES["adult"], source="openml")
    monkeypatch.setattr(adult, "TRAIN_SIZE", 3)
    monkeypatch.setattr(adult, "TEST_SIZE", 2)
    write_adult(tmp_path, test_rows=ROWS[1:])
    assert same(data.load("adult", source="openml"), data.load("adult", tmp_path))
    answer([*ROWS, *ROWS[1:]])
    refused("adult", None, "fnlwgt of row 2", "must be 77516", source="openml")
    answer([*ROWS[1:], *ROWS], feature_names=["income"])
    refused("adult", None, "attributes", source="openml")


# --- retail100 ----------------------------------------------------------------------------------


def test_retail100_is_a_slow_copy_of_its_definition(tmp_path):
    """1,500 baskets of items 0 to 699; item i is bought the more often the smaller i is."""
    rng = np.random.default_rng(3)
    bought = rng.random((1500, 700)) < np.linspace(0.05, 0.004, 700)
    baskets = [np.flatnonzero(row).tolist() for row in bought]
    baskets += [[699], [698, 698, 698], []]  # dropped, or counted once
    rows = [" ".join(map(str, basket)) + " " for basket in baskets]
    write(tmp_path / "retail" / "retail.dat.gz", "\n".join(rows).encode())
    made, again = (loaders.retail100(tmp_path) for _ in range(2))
    sets = [set(basket) for basket in baskets]
    counts = {item: sum(item in basket for basket in sets) for item in range(700)}
    top = sorted(counts, key=lambda item: (-counts[item], item))[:600]
    expected = [[float(item in basket) for item in top] for basket in sets]
    assert np.array_equal(made.records, [row for row in expected if any(row)])
    assert made.columns == tuple(f"item {item}" for item in top)
    assert (made.kind, made.classes, made.name) == ("binary", 100, "retail100")
    assert np.array_equal(made.labels, again.labels)
    assert len(np.unique(made.labels)) > 50
    for documented in (loaders.retail100, loaders.load):
        assert "is not Purchase-100" in " ".join(documented.__doc__.split())


# --- broken files -------------------------------------------------------------------------------


def digits_with(contents, file="train-images-idx3-ubyte"):
    return lambda folder: (write_mnist(folder), write(folder / file, contents))


def people_with(*rows):
    return lambda folder: write_adult(folder, rows=rows)


def packed_with(**changes):
    return lambda folder: write_packed(folder, **changes)


def photos_with(**changes):
    return lambda folder: write_photos(folder, **changes)


def batch_with(change):
    batch = "cifar-10-batches-bin/data_batch_5.bin"
    return lambda folder: (write_batches(folder), change(folder / batch))


def file_with(name, contents):
    return lambda folder: write(folder / name, contents)


def line_with(change):
    """Purchases of which the line numbered 11 is changed."""
    rows = lines(*BOUGHT)
    rows[10] = change(rows[10])
    return file_with("dataset_purchase", "\n".join(rows).encode())


WHOLE, LABELS = idx(DIGITS[:8]), "train-labels-idx1-ubyte"
LINE = "line 11 of"
BROKEN = [
    ("mnist", "number of bytes", digits_with(WHOLE[:-1])),
    ("mnist", "idx file", digits_with(WHOLE[:10])),
    ("mnist", "magic number", digits_with(struct.pack(">4I", 2052, 8, 28, 28) + WHOLE[16:])),
    ("mnist", "gzip", digits_with(gzip.compress(WHOLE)[:-100])),
    ("mnist", "height and width", digits_with(idx(DIGITS[:8, :14]))),
    ("mnist", "number of labels", digits_with(idx(DIGITS[:7]))),
    ("mnist", f"{LABELS} must be between 0 and 9", digits_with(idx(MARKS[:8] + 10), LABELS)),
    ("adult", "the number of fields in row 2", people_with(ROWS[0], "1, 2")),
    ("adult", "Never-worked", people_with(ROWS[0].replace("State-gov", "Never-worked"))),
    ("adult", "fnlwgt", people_with(ROWS[0].replace("77516", "many"))),
    ("adult", "a complete row", people_with(ROWS[1])),
    ("adult", "plain text", people_with("39, Bäcker")),
    ("location30", "npz file with X_packed, n_features, y", packed_with(y=None)),
    ("location30", "npz file", file_with("location30.npz", b"PK\x03\x04 cut off")),
    ("location30", "label 0", packed_with(y=np.zeros(60, np.uint8))),
    ("location30", "number of labels", packed_with(y=np.ones(59, np.uint8))),
    ("location30", "number of features", packed_with(n_features=np.array(448))),
    ("location30", "bytes of a record", packed_with(X_packed=np.zeros((60, 57), np.uint8))),
    ("location30", "type of X_packed", packed_with(X_packed=np.zeros((60, 56)))),
    ("purchase100", LINE, line_with(lambda line: line[:-1])),
    ("purchase100", LINE, line_with(lambda line: line[:-1] + "2")),
    ("purchase100", LINE, line_with(lambda line: line[:-2] + ";1")),
    ("purchase100", LINE, line_with(lambda line: "x" + line)),
    ("purchase100", LINE, line_with(lambda line: "1" * 30 + line)),
    ("purchase100", "label 10", line_with(lambda line: "0" + line[line.index(",") :])),
    ("purchase100", "line 1 of", file_with("dataset_purchase", b"")),
    ("cifar10", "shape of an image", photos_with(x_train=np.zeros((6, 3, 32, 32), np.uint8))),
    ("cifar10", "type of the images", photos_with(x_train=np.zeros((6, 32, 32, 3)))),
    ("cifar10", "number of labels", photos_with(y_train=np.arange(5))),
    ("cifar10", "bytes left", batch_with(lambda path: os.truncate(path, 100))),
    ("cifar10", "data_batch_5.bin", batch_with(Path.unlink)),
    ("retail100", "each item", file_with("retail.dat", b"1 99999999999999999999\n")),
    ("retail100", "at least 600 items", file_with("retail.dat", b"1 2 3\n")),
]


@pytest.mark.parametrize(("name", "told", "make"), BROKEN)
def test_broken_files(name, told, make, tmp_path):
    make(tmp_path)
    refused(name, tmp_path, told)
