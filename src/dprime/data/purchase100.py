"""Purchase-100 as Shokri et al. published it: 197,324 × 600 binary features, 100 classes."""

from __future__ import annotations

from pathlib import Path

from dprime.data import binary_csv, files
from dprime.data.dataset import Dataset

SOURCE = files.Source("purchase100", "https://github.com/privacytrustlab/datasets")


def load(data_dir: Path | None) -> Dataset:
    """From `dataset_purchase`, the one file in dataset_purchase.tgz."""
    path = SOURCE.find(data_dir, "dataset_purchase")
    records, labels = binary_csv.read(path, features=600, classes=100)
    return Dataset("purchase100", records, labels, "binary", 100)
