"""Location-30 and Purchase-100, both as Shokri et al. 2017 published them.

In each line stand a class from 1 and features 0 or 1, with commas. Since each is one character,
they are cut out as bytes and never parsed: about a second, where `np.loadtxt` takes about 17.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from dprime.data import files
from dprime.data.arrays import read_only
from dprime.data.dataset import Dataset

LOCATION30 = files.DataSource("location30", "https://github.com/privacytrustlab/datasets")
PURCHASE100 = files.DataSource("purchase100", "https://github.com/privacytrustlab/datasets")

LONGEST_LABEL = 9


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
    lines = io.BytesIO(files.read(path).translate(None, b'" \r').rstrip(b"\n") or b"\n")
    commas, labels, digits = b"," * (features - 1), [], []
    for number, line in enumerate(lines, start=1):
        label, _, row = line.rstrip(b"\n").partition(b",")
        plain = label.isdigit() and len(label) <= LONGEST_LABEL and len(row) == 2 * features - 1
        if not plain or row[1::2] != commas or row[::2].strip(b"01"):
            requirement = f"a class and {features} features 0 or 1, with commas"
            raise files.broken(f"line {number} of {path}", requirement)
        labels.append(int(label))
        digits.append(row[::2])
    characters = np.frombuffer(b"".join(digits), dtype=np.uint8).reshape(-1, features)
    records = np.subtract(characters, ord("0"), dtype=np.float32)
    indexes = files.class_indexes(path, np.array(labels), classes, first=1)
    return Dataset(name, read_only(records), indexes, "binary", classes)
