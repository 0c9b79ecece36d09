"""What the loaders share: finding a data set's files, reading them, and scaling by constants."""

from __future__ import annotations

import importlib
import os
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime import bounded, npz, text, validate

VARIABLE = "DPRIME_DATA"  # names the data folder where `data_dir` is not given
AGAIN = "download it again; it may be damaged"
LARGEST, LARGEST_TEXT = 1_000_000_000, 20_000_000
"""Bytes of a file, unpacked; words take many times the memory of their text."""


class MissingFileError(FileNotFoundError, validate.InputError):
    """A data set's file is not there; like every bad input it is also a `ValueError`."""


@dataclass(frozen=True)
class DataSource:
    """The folder of a data set's files below the data folder, and the web page that offers them."""

    folder: str
    address: str

    def look(self, data_dir: Path | None, *names: str) -> Path | None:
        """The first of these files that exists, plain or gzipped, in its folder or `data_dir`."""
        if data_dir is None:
            return None
        places = [data_dir / part / name for name in names for part in (self.folder, "")]
        paths = [place.with_name(place.name + end) for place in places for end in ("", ".gz")]
        return next((path for path in paths if path.is_file()), None)

    def find(self, data_dir: Path | None, *names: str) -> Path:
        """The same; if none exists, the error says what is needed and where to get it."""
        path = self.look(data_dir, *names)
        if path is None:
            wanted = " or ".join(f"{self.folder}/{name}" for name in names)
            found = "it is not given" if data_dir is None else f"it is {str(data_dir)!r}"
            requirement = f"be a folder with {wanted} (or the same with .gz) in it"
            raise MissingFileError.of("data_dir", requirement, found, self.remedy, data_dir)
        return path

    def fetch(self, name: str, version: int) -> Any:
        datasets = scikit_learn("sklearn.datasets")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # it warns before each new attempt
                # the other parser needs pandas, which no extra brings
                options = {"as_frame": False, "parser": "liac-arff"}
                return datasets.fetch_openml(name, version=version, **options)
        except (OSError, ValueError) as error:
            requirement = f"able to send {name} for source 'openml'"
            remedy = f"try again later, or {self.remedy}"
            raise validate.invalid_value("openml.org", error, requirement, remedy) from None

    @property
    def remedy(self) -> str:
        return f"get the file from {self.address} and set {VARIABLE} or data_dir"


def folder(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """The data folder: the one given, else that of the environment, else none."""
    name = os.environ.get(VARIABLE) or None if data_dir is None else data_dir
    return None if name is None else Path(name)


def read(path: Path, most: int = LARGEST) -> bytes:
    """The contents of a file, unpacked if it is gzipped."""
    try:
        return bounded.unpacked(path, most, AGAIN)
    except (OSError, EOFError, zlib.error):
        raise broken(path, "a whole gzip file") from None


def read_text(path: Path) -> str:
    """The contents of a file as text, unpacked if it is gzipped."""
    try:
        return read(path, LARGEST_TEXT).decode("ascii")
    except UnicodeDecodeError:
        raise broken(path, "plain text") from None


def read_arrays(path: Path, *keys: str) -> list[NDArray[Any]]:
    """Arrays of an npz file, in the order of the keys."""
    try:
        found, _ = npz.archived(read(path), LARGEST)
        return [found[key] for key in keys]
    except (KeyError, ValueError):
        raise broken(path, f"an npz file with {', '.join(keys)}") from None


def broken(what: object, requirement: str, found: object = "not") -> validate.InputError:
    """The error for a file, or a part of one, that is damaged."""
    return validate.invalid_input(str(what), str(found), requirement, AGAIN)


def check(origin: object, what: str, found: object, wanted: object, remedy: str = AGAIN) -> None:
    """Refuse a file in which something has another value than it must have."""
    if found != wanted:
        raise validate.invalid_value(f"{what} in {origin}", found, str(wanted), remedy)


def class_indexes(
    origin: object, labels: NDArray[Any], classes: int, first: int = 0
) -> NDArray[np.int64]:
    """Labels that count from `first`, as class indexes from 0."""
    labels = labels.reshape(-1)
    wrong = ~np.isin(labels, np.arange(first, first + classes))
    if wrong.any():
        place, wanted = wrong.argmax(), f"between {first} and {classes - 1 + first}"
        raise broken(f"label {place} in {origin}", wanted, labels[place])
    return labels.astype(np.int64) - first


def unit_interval(
    values: NDArray[np.float64], ranges: Sequence[tuple[float, float]]
) -> NDArray[np.float32]:
    """Each column from its range to [0, 1]; what lies outside is cut off."""
    low, high = np.array(ranges, dtype=np.float64).T
    scaled: NDArray[np.float64] = np.clip((values - low) / (high - low), 0, 1)
    return scaled.astype(np.float32)


def scikit_learn(module: str) -> Any:
    """A module of scikit-learn, imported when it is first needed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        needed = "This data set needs scikit-learn, which is not installed"
        raise ImportError(f"{needed}: run {text.install('train')}.") from None
