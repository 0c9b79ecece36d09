"""Location-30 and Purchase-100, both as Shokri et al. 2017 published them.

In each line of their files stand a class from 1 and features 0 or 1, with commas. Purchase-100 has
118 million of these features. Since each is one character, they are cut out of the file as bytes
and never parsed: about one second, where `np.loadtxt` takes about 17.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dprime.data import files
from dprime.data.arrays import read_only
from dprime.data.dataset import Dataset
from dprime.validate import InputError

LOCATION30 = files.Source("location30", "https://github.com/privacytrustlab/datasets")
PURCHASE100 = files.Source("purchase100", "https://github.com/privacytrustlab/datasets")

ROWS_AT_ONCE = 8192
"""Keeps the memory needed beside the result small."""
LONGEST_LABEL = 9


def location30(data_dir: Path | None) -> Dataset:
    """Which of 446 places 5,010 people visited, in 30 classes.

    From `location30.npz`, bit-packed, or from `bangkok`, the file in dataset_location.tgz.
    """
    path = LOCATION30.find(data_dir, "location30.npz", "bangkok")
    read = _read_packed if ".npz" in path.name else _read_lines
    records, labels = read(path, features=446, classes=30)
    return Dataset("location30", records, labels, "binary", 30)


def purchase100(data_dir: Path | None) -> Dataset:
    """197,324 × 600 features, 100 classes, from `dataset_purchase`, the file in its tgz."""
    path = PURCHASE100.find(data_dir, "dataset_purchase")
    records, labels = _read_lines(path, features=600, classes=100)
    return Dataset("purchase100", records, labels, "binary", 100)


def _read_packed(
    path: Path, features: int, classes: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Records of 0 and 1 whose bits are packed into bytes, and class indexes from 0."""
    packed, count, numbers = files.read_arrays(path, "X_packed", "n_features", "y")
    files.check(path, "the number of features", count.tolist(), features)
    files.check(path, "the type of X_packed", str(packed.dtype), "uint8")
    files.check(path, "the number of labels", numbers.shape, packed.shape[:1])
    files.check(path, "the bytes of a record", packed.shape[1:], ((features + 7) // 8,))
    records = np.unpackbits(packed, axis=1, count=features).astype(np.float32)
    return read_only(records), files.class_indexes(path, numbers, classes, first=1)


def _read_lines(
    path: Path, features: int, classes: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Records of 0 and 1 from the published format, and class indexes from 0."""
    text = files.read(path).translate(None, b'" \r').rstrip(b"\n")
    contents = np.frombuffer(text, dtype=np.uint8)
    ends = np.append(np.flatnonzero(contents == ord("\n")), len(contents))
    begins = np.append(0, ends[:-1] + 1)
    starts = ends - 2 * features  # each feature is a comma and a digit
    if (starts <= begins).any():
        raise _broken_line(path, int((starts <= begins).argmax()), features)
    records = np.empty((len(ends), features), dtype=np.float32)
    # All stretches of that length, as a view; only those asked for are copied.
    stretches = np.lib.stride_tricks.sliding_window_view(contents, 2 * features)
    for row in range(0, len(ends), ROWS_AT_ONCE):
        rows = slice(row, row + ROWS_AT_ONCE)
        stretch = stretches[starts[rows]]
        digits = stretch[:, 1::2]
        good = (stretch[:, ::2] == ord(",")) & (digits >= ord("0")) & (digits <= ord("1"))
        if not good.all():
            raise _broken_line(path, row + int((~good).any(axis=1).argmax()), features)
        np.subtract(digits, ord("0"), out=records[rows], dtype=np.float32)
    labels = np.empty(len(ends), dtype=np.int64)
    for line, (begin, start) in enumerate(zip(begins, starts, strict=True)):
        label = text[begin:start]
        if not label.isdigit() or len(label) > LONGEST_LABEL:
            raise _broken_line(path, line, features)
        labels[line] = int(label)
    return read_only(records), files.class_indexes(path, labels, classes, first=1)


def _broken_line(path: Path, line: int, features: int) -> InputError:
    requirement = f"a class and {features} features 0 or 1, with commas"
    return files.broken(f"line {line + 1} of {path}", requirement)
