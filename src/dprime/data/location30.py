"""Location-30: which of 446 places 5,010 people visited, in 30 classes (Shokri et al. 2017)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dprime.data import arrays, binary_csv, files
from dprime.data.dataset import Dataset

SOURCE = files.Source("location30", "https://github.com/privacytrustlab/datasets")
FEATURES = 446
CLASSES = 30


def load(data_dir: Path | None) -> Dataset:
    """From `location30.npz`, bit-packed, or from `bangkok`, the file in dataset_location.tgz."""
    path = SOURCE.find(data_dir, "location30.npz", "bangkok")
    if ".npz" in path.name:
        packed, features, numbers = files.read_arrays(path, "X_packed", "n_features", "y")
        files.check(path, "the number of features", features.tolist(), FEATURES)
        files.check(path, "the type of X_packed", str(packed.dtype), "uint8")
        files.check(path, "the number of labels", numbers.shape, packed.shape[:1])
        files.check(path, "the bytes of a record", packed.shape[1:], ((FEATURES + 7) // 8,))
        bits = np.unpackbits(packed, axis=1, count=FEATURES)
        records = arrays.owned(bits.astype(np.float32))
        labels = arrays.owned(files.class_indexes(path, numbers, CLASSES, first=1))
    else:
        records, labels = binary_csv.read(path, FEATURES, CLASSES)
    return Dataset("location30", records, labels, "binary", CLASSES)
