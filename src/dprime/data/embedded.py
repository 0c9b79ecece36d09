"""Two small data sets that come with scikit-learn: no file and no network is needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dprime.data import files
from dprime.data.dataset import Dataset

BRIGHTEST = 16
"""A pixel of the digits is a whole number up to this."""

DIABETES_RANGES = {
    "age": (18, 80),
    "sex": (1, 2),
    "bmi": (15, 45),
    "bp": (60, 140),
    "s1": (90, 310),
    "s2": (40, 250),
    "s3": (20, 100),
    "s4": (2, 10),
    "s5": (3, 6.5),
    "s6": (50, 130),
}
"""Round numbers that enclose each measurement; constants, so that no record moves another."""

LARGEST_PROGRESSION = 350
"""The diabetes targets run from 25 to 346; they are divided by this."""


def digits(_data_dir: Path | None) -> Dataset:
    """1,797 images of handwritten digits, 8×8, 10 classes."""
    bunch = files.scikit_learn("sklearn.datasets").load_digits()
    images = bunch.images[:, np.newaxis] / BRIGHTEST
    return Dataset("digits", images, bunch.target, "image", 10)


def diabetes(_data_dir: Path | None) -> Dataset:
    """442 patients with ten measurements; the target is how the disease went on in a year."""
    bunch = files.scikit_learn("sklearn.datasets").load_diabetes(scaled=False)
    records = files.unit_interval(bunch.data, list(DIABETES_RANGES.values()))
    targets = bunch.target / LARGEST_PROGRESSION
    return Dataset("diabetes", records, targets, "table", None, tuple(DIABETES_RANGES))
