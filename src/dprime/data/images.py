"""MNIST and CIFAR-10, from their published files."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime.data import files
from dprime.data.arrays import read_only
from dprime.data.dataset import Dataset, Split

CLASSES = 10

MNIST = files.Source("mnist", "http://yann.lecun.com/exdb/mnist/")
MNIST_SIDE = 28
MNIST_SIZES = 60_000, 10_000
"""Records to train on and to test on; OpenML stores the test records last."""
IDX_MAGIC = {1: 2049, 3: 2051}
"""The first number of an idx file of bytes, by its number of axes."""

CIFAR10 = files.Source("cifar10", "https://www.cs.toronto.edu/~kriz/cifar.html")
CIFAR10_ARCHIVES = ("cifar10_subset.npz", "cifar10.npz")
"""Keras keys, NHWC; the first holds a stratified subset, 10,000 + 2,000."""
CIFAR10_BATCHES = "cifar-10-batches-bin"
"""The folder of the published binary version; each record is a label and 3×32×32 bytes."""
CIFAR10_SHAPE = (3, 32, 32)


def mnist(data_dir: Path | None) -> Split:
    """60,000 + 10,000 images of handwritten digits, 28×28, from the four idx files."""
    return Split(train=_mnist_part(data_dir, "train"), test=_mnist_part(data_dir, "t10k"))


def mnist_from_openml() -> Split:
    """From OpenML's mnist_784: the same images in the same order."""
    size, _ = MNIST_SIZES
    bunch = MNIST.fetch("mnist_784", 1)
    MNIST.check_fetched("the size of mnist_784", len(bunch.data), sum(MNIST_SIZES))
    images = np.asarray(bunch.data).astype(np.uint8).reshape(-1, 1, MNIST_SIDE, MNIST_SIDE)
    labels = np.asarray(bunch.target).astype(np.int64)
    return Split(
        train=_dataset("mnist", images[:size], labels[:size]),
        test=_dataset("mnist", images[size:], labels[size:]),
    )


def _mnist_part(data_dir: Path | None, prefix: str) -> Dataset:
    images_path = MNIST.find(data_dir, f"{prefix}-images-idx3-ubyte")
    labels_path = MNIST.find(data_dir, f"{prefix}-labels-idx1-ubyte")
    images, labels = _read_idx(images_path, axes=3), _read_idx(labels_path, axes=1)
    side = MNIST_SIDE
    files.check(images_path, "the height and width", images.shape[1:], (side, side))
    files.check(labels_path, "the number of labels", len(labels), len(images))
    indexes = files.class_indexes(labels_path, labels, CLASSES)
    return _dataset("mnist", images[:, np.newaxis], indexes)


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
    test_batch = f"{CIFAR10_BATCHES}/test_batch.bin"
    archive = CIFAR10.look(data_dir, *CIFAR10_ARCHIVES)
    if archive is None and CIFAR10.look(data_dir, test_batch):
        batches = [f"{CIFAR10_BATCHES}/data_batch_{number}.bin" for number in range(1, 6)]
        return Split(
            train=_from_batches([CIFAR10.find(data_dir, batch) for batch in batches]),
            test=_from_batches([CIFAR10.find(data_dir, test_batch)]),
        )
    path = archive or CIFAR10.find(data_dir, *CIFAR10_ARCHIVES, test_batch)
    arrays = files.read_arrays(path, "x_train", "y_train", "x_test", "y_test")
    return Split(train=_from_arrays(path, *arrays[:2]), test=_from_arrays(path, *arrays[2:]))


def _from_arrays(path: Path, images: NDArray[Any], labels: NDArray[Any]) -> Dataset:
    """From images of shape (n, height, width, channels)."""
    files.check(path, "the type of the images", str(images.dtype), "uint8")
    shape = (*CIFAR10_SHAPE[1:], CIFAR10_SHAPE[0])
    files.check(path, "the shape of an image", images.shape[1:], shape)
    indexes = files.class_indexes(path, labels, CLASSES)
    files.check(path, "the number of labels", len(indexes), len(images))
    return _dataset("cifar10", images.transpose(0, 3, 1, 2), indexes)


def _from_batches(paths: list[Path]) -> Dataset:
    length = 1 + math.prod(CIFAR10_SHAPE)
    images, labels = [], []
    for path in paths:
        contents = np.frombuffer(files.read(path), dtype=np.uint8)
        files.check(path, f"the bytes left after records of {length}", len(contents) % length, 0)
        rows = contents.reshape(-1, length)
        images.append(rows[:, 1:].reshape(-1, *CIFAR10_SHAPE))
        labels.append(files.class_indexes(path, rows[:, 0], CLASSES))
    return _dataset("cifar10", np.concatenate(images), np.concatenate(labels))


def _dataset(name: str, images: NDArray[np.uint8], labels: NDArray[np.int64]) -> Dataset:
    """Bytes 0 to 255 as numbers 0 to 1."""
    pixels = np.divide(images, 255, dtype=np.float32, order="C")
    return Dataset(name, read_only(pixels), labels, "image", CLASSES)
