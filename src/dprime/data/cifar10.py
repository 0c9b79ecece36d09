"""CIFAR-10: small colour photographs in ten classes, 32×32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime.data import arrays, files
from dprime.data.dataset import Dataset, Split

SOURCE = files.Source("cifar10", "https://www.cs.toronto.edu/~kriz/cifar.html")
ARCHIVES = ("cifar10_subset.npz", "cifar10.npz")
"""Keras keys, NHWC; the first holds a stratified subset, 10,000 + 2,000."""
PUBLISHED = "cifar-10-batches-bin"
"""The folder of the published binary version; each record is a label and 3×32×32 bytes."""
SHAPE = (3, 32, 32)
CLASSES = 10


def load(data_dir: Path | None) -> Split:
    """From an npz archive if there is one, else from the published binary batches."""
    archive = SOURCE.look(data_dir, *ARCHIVES)
    if archive is None and SOURCE.look(data_dir, f"{PUBLISHED}/test_batch.bin"):
        batches = [f"{PUBLISHED}/data_batch_{number}.bin" for number in range(1, 6)]
        return Split(
            train=_from_batches([SOURCE.find(data_dir, batch) for batch in batches]),
            test=_from_batches([SOURCE.find(data_dir, f"{PUBLISHED}/test_batch.bin")]),
        )
    path = archive or SOURCE.find(data_dir, *ARCHIVES, f"{PUBLISHED}/test_batch.bin")
    x_train, y_train, x_test, y_test = files.read_arrays(
        path, "x_train", "y_train", "x_test", "y_test"
    )
    return Split(train=_dataset(path, x_train, y_train), test=_dataset(path, x_test, y_test))


def _dataset(path: Path, images: NDArray[Any], labels: NDArray[Any]) -> Dataset:
    """From images of shape (n, height, width, channels)."""
    files.check(path, "the type of the images", str(images.dtype), "uint8")
    files.check(path, "the shape of an image", images.shape[1:], (*SHAPE[1:], SHAPE[0]))
    indexes = files.class_indexes(path, labels, CLASSES)
    files.check(path, "the number of labels", len(indexes), len(images))
    pixels = arrays.pixels(images.transpose(0, 3, 1, 2))
    return Dataset("cifar10", pixels, arrays.owned(indexes), "image", CLASSES)


def _from_batches(paths: list[Path]) -> Dataset:
    length = 1 + int(np.prod(SHAPE))
    images, labels = [], []
    for path in paths:
        contents = np.frombuffer(files.read(path), dtype=np.uint8)
        files.check(path, f"the bytes left after records of {length}", len(contents) % length, 0)
        rows = contents.reshape(-1, length)
        images.append(rows[:, 1:].reshape(-1, *SHAPE))
        labels.append(files.class_indexes(path, rows[:, 0], CLASSES))
    pixels = arrays.pixels(np.concatenate(images))
    return Dataset("cifar10", pixels, np.concatenate(labels), "image", CLASSES)
