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

MNIST = files.DataSource("mnist", "http://yann.lecun.com/exdb/mnist/")
MNIST_SIZES = 60_000, 10_000  # to train and to test on; OpenML stores the test records last
IDX_MAGIC = {1: 2049, 3: 2051}  # the first number of an idx file of bytes, by its number of axes
CIFAR10 = files.DataSource("cifar10", "https://www.cs.toronto.edu/~kriz/cifar.html")
CIFAR10_ARCHIVES = ("cifar10_subset.npz", "cifar10.npz")
"""Keras keys, NHWC; the first holds a stratified subset, 10,000 + 2,000."""
CIFAR10_BATCHES = "cifar-10-batches-bin"
"""The folder of the published binary version; each record is a label and 3×32×32 bytes."""
CIFAR10_SHAPE = (3, 32, 32)


def mnist(data_dir: Path | None) -> Split:
    """60,000 + 10,000 images of handwritten digits, 28×28, from the four idx files."""

    def part(prefix: str) -> Dataset:
        images_path = MNIST.find(data_dir, f"{prefix}-images-idx3-ubyte")
        labels_path = MNIST.find(data_dir, f"{prefix}-labels-idx1-ubyte")
        images, labels = _read_idx(images_path, axes=3), _read_idx(labels_path, axes=1)
        files.check(images_path, "the height and width", images.shape[1:], (28, 28))
        return _dataset("mnist", labels_path, images[:, np.newaxis], labels)

    return Split(train=part("train"), test=part("t10k"))


def mnist_from_openml() -> Split:
    """From OpenML's mnist_784: the same images in the same order."""
    bunch = MNIST.fetch("mnist_784", 1)
    origin = "OpenML's mnist_784"
    files.check(origin, "the size", len(bunch.data), sum(MNIST_SIZES), MNIST.remedy)
    images = np.asarray(bunch.data).astype(np.uint8).reshape(-1, 1, 28, 28)
    labels = np.asarray(bunch.target).astype(np.int64)
    parts = zip(*(np.split(each, MNIST_SIZES[:1]) for each in (images, labels)), strict=True)
    return Split(*(_dataset("mnist", origin, *part) for part in parts))


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
    test = f"{CIFAR10_BATCHES}/test_batch.bin"
    path = CIFAR10.look(data_dir, *CIFAR10_ARCHIVES)
    if path is None and CIFAR10.look(data_dir, test):
        batches = [f"{CIFAR10_BATCHES}/data_batch_{number}.bin" for number in range(1, 6)]
        return Split(_from_batches(data_dir, *batches), _from_batches(data_dir, test))
    path = path or CIFAR10.find(data_dir, *CIFAR10_ARCHIVES, test)
    arrays = files.read_arrays(path, "x_train", "y_train", "x_test", "y_test")
    return Split(_from_arrays(path, *arrays[:2]), _from_arrays(path, *arrays[2:]))


def _from_arrays(path: Path, images: NDArray[Any], labels: NDArray[Any]) -> Dataset:
    files.check(path, "the type of the images", str(images.dtype), "uint8")
    files.check(path, "the shape of an image", images.shape[1:], (32, 32, 3))
    return _dataset("cifar10", path, images.transpose(0, 3, 1, 2), labels)


def _from_batches(data_dir: Path | None, *names: str) -> Dataset:
    length = 1 + math.prod(CIFAR10_SHAPE)
    rows = []
    for path in [CIFAR10.find(data_dir, name) for name in names]:
        contents = np.frombuffer(files.read(path), dtype=np.uint8)
        files.check(path, f"the bytes left after records of {length}", len(contents) % length, 0)
        rows.append(contents.reshape(-1, length))
    every = np.concatenate(rows)
    return _dataset("cifar10", path, every[:, 1:].reshape(-1, *CIFAR10_SHAPE), every[:, 0])


def _dataset(
    name: str, path: Path | str, images: NDArray[np.uint8], labels: NDArray[Any]
) -> Dataset:
    indexes = files.class_indexes(path, labels, CLASSES)
    files.check(path, "the number of labels", len(indexes), len(images))
    pixels = np.divide(images, 255, dtype=np.float32, order="C")
    return Dataset(name, read_only(pixels), indexes, "image", CLASSES)
