"""The format of Shokri et al. 2017: in each line a class from 1, then features 0 or 1, with commas.

Purchase-100 has 118 million of these features. Since each is one character, they are cut out of the
file as bytes and never parsed: about one second, where `np.loadtxt` takes about 17.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dprime.data import arrays, files
from dprime.validate import InputError

ROWS_AT_ONCE = 8192
"""Keeps the memory needed beside the result small."""
LONGEST_LABEL = 9


def read(path: Path, features: int, classes: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Records (n, features) of 0 and 1, and class indexes from 0."""
    text = files.read(path).translate(None, b'" \r').rstrip(b"\n")
    contents = np.frombuffer(text, dtype=np.uint8)
    ends = np.append(np.flatnonzero(contents == ord("\n")), len(contents))
    begins = np.append(0, ends[:-1] + 1)
    starts = ends - 2 * features  # each feature is a comma and a digit
    if (starts <= begins).any():
        raise _refusal(path, int((starts <= begins).argmax()), features)
    records = np.empty((len(ends), features), dtype=np.float32)
    # All stretches of that length, as a view; only those asked for are copied.
    stretches = np.lib.stride_tricks.sliding_window_view(contents, 2 * features)
    for row in range(0, len(ends), ROWS_AT_ONCE):
        rows = slice(row, row + ROWS_AT_ONCE)
        stretch = stretches[starts[rows]]
        digits = stretch[:, 1::2]
        good = (stretch[:, ::2] == ord(",")) & (digits >= ord("0")) & (digits <= ord("1"))
        if not good.all():
            raise _refusal(path, row + int((~good).any(axis=1).argmax()), features)
        np.subtract(digits, ord("0"), out=records[rows], dtype=np.float32)
    labels = np.empty(len(ends), dtype=np.int64)
    for line, (begin, start) in enumerate(zip(begins, starts, strict=True)):
        label = text[begin:start]
        if not label.isdigit() or len(label) > LONGEST_LABEL:
            raise _refusal(path, line, features)
        labels[line] = int(label)
    return arrays.owned(records), arrays.owned(files.class_indexes(path, labels, classes, first=1))


def _refusal(path: Path, line: int, features: int) -> InputError:
    requirement = f"a class and {features} features 0 or 1, with commas"
    return files.broken(f"line {line + 1} of {path}", requirement)
