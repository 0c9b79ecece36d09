"""MNIST: 60,000 + 10,000 images of handwritten digits, 28×28, from idx files or from OpenML."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dprime.data import arrays, files, openml
from dprime.data.dataset import Dataset, Split

SOURCE = files.Source("mnist", "http://yann.lecun.com/exdb/mnist/")
SIDE = 28
TRAIN_SIZE, TEST_SIZE = 60_000, 10_000
MAGIC = {1: 2049, 3: 2051}
"""The first number of an idx file of bytes, by its number of axes."""


def load(data_dir: Path | None) -> Split:
    """From the four idx files."""
    return Split(train=_part(data_dir, "train"), test=_part(data_dir, "t10k"))


def load_openml() -> Split:
    """From OpenML's mnist_784: the same images in the same order, the test part last."""
    bunch = openml.fetch("mnist_784", 1, SOURCE.address)
    openml.check("the size of mnist_784", len(bunch.data), TRAIN_SIZE + TEST_SIZE, SOURCE.address)
    images = np.asarray(bunch.data).astype(np.uint8).reshape(-1, 1, SIDE, SIDE)
    labels = np.asarray(bunch.target).astype(np.int64)
    return Split(
        train=_dataset(images[:TRAIN_SIZE], labels[:TRAIN_SIZE]),
        test=_dataset(images[TRAIN_SIZE:], labels[TRAIN_SIZE:]),
    )


def _part(data_dir: Path | None, prefix: str) -> Dataset:
    images_path = SOURCE.find(data_dir, f"{prefix}-images-idx3-ubyte")
    labels_path = SOURCE.find(data_dir, f"{prefix}-labels-idx1-ubyte")
    images, labels = _read_idx(images_path, axes=3), _read_idx(labels_path, axes=1)
    files.check(images_path, "the height and width", images.shape[1:], (SIDE, SIDE))
    files.check(labels_path, "the number of labels", len(labels), len(images))
    indexes = files.class_indexes(labels_path, labels, 10)
    return _dataset(images[:, np.newaxis], indexes)


def _dataset(images: NDArray[np.uint8], labels: NDArray[np.int64]) -> Dataset:
    return Dataset("mnist", arrays.pixels(images), labels, "image", 10)


def _read_idx(path: Path, axes: int) -> NDArray[np.uint8]:
    """An idx file: a magic number, the length of each axis, then the bytes."""
    contents = files.read(path)
    header = 4 * (axes + 1)
    if len(contents) < header:
        raise files.broken(path, "an idx file")
    magic, *shape = struct.unpack(f">{axes + 1}I", contents[:header])
    files.check(path, "the magic number", magic, MAGIC[axes])
    files.check(path, "the number of bytes", len(contents) - header, math.prod(shape))
    return np.frombuffer(contents, dtype=np.uint8)[header:].reshape(shape)
