"""What the loaders share: finding a data set's files, reading them, and scaling by constants."""

from __future__ import annotations

import gzip
import importlib
import io
import os
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime import text, validate

VARIABLE = "DPRIME_DATA"
"""The environment variable that names the data folder where `data_dir` is not given."""

AGAIN = "download it again; it may be damaged"


class MissingFileError(FileNotFoundError, validate.InputError):
    """A data set's file is not there; like every bad input it is also a `ValueError`."""


@dataclass(frozen=True)
class Source:
    """Where a data set's files lie below the data folder, and where they come from.

    Attributes:
        folder: the folder below the data folder; files right in the data folder are found too.
        address: the web page that offers them.
    """

    folder: str
    address: str

    def look(self, data_dir: Path | None, *names: str) -> Path | None:
        """The first of these files that is there, as it is or gzipped."""
        if data_dir is None:
            return None
        for name in names:
            for place in (data_dir / self.folder / name, data_dir / name):
                for path in (place, place.with_name(f"{place.name}.gz")):
                    if path.is_file():
                        return path
        return None

    def find(self, data_dir: Path | None, *names: str) -> Path:
        """The same; if there is none, the error says what was looked for and where to get it."""
        path = self.look(data_dir, *names)
        if path is None:
            wanted = " or ".join(f"{self.folder}/{name}" for name in names)
            found = f"it is {None if data_dir is None else repr(str(data_dir))}"
            requirement = f"be a folder with {wanted} (or the same with .gz) in it"
            raise MissingFileError.of("data_dir", requirement, found, self._get, data_dir)
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
            remedy = f"try again later, or {self._get}"
            raise validate.invalid_value("openml.org", error, requirement, remedy) from None

    def check_fetched(self, what: str, found: object, wanted: object) -> None:
        """Refuse a data set from OpenML that is another one than its name says."""
        if found != wanted:
            raise validate.invalid_value(f"{what} on OpenML", found, str(wanted), self._get)

    @property
    def _get(self) -> str:
        return f"get the file from {self.address} and set {VARIABLE} or data_dir"


def folder(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """The data folder: the one given, else that of the environment, else none."""
    name = os.environ.get(VARIABLE) or None if data_dir is None else data_dir
    return None if name is None else Path(name)


def read(path: Path) -> bytes:
    """The contents of a file, unpacked if it is gzipped."""
    contents = path.read_bytes()
    if not contents.startswith(b"\x1f\x8b"):
        return contents
    try:
        return gzip.decompress(contents)
    except (OSError, EOFError, zlib.error):
        raise broken(path, "a whole gzip file") from None


def read_text(path: Path) -> str:
    """The contents of a file as text, unpacked if it is gzipped."""
    try:
        return read(path).decode("ascii")
    except UnicodeDecodeError:
        raise broken(path, "plain text") from None


def read_arrays(path: Path, *keys: str) -> list[NDArray[Any]]:
    """Arrays of an npz file, in the order of the keys."""
    try:
        with np.load(io.BytesIO(read(path)), allow_pickle=False) as archive:
            return [archive[key] for key in keys]
    except (KeyError, TypeError, ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error):
        raise broken(path, f"an npz file with {', '.join(keys)}") from None


def broken(what: object, requirement: str) -> validate.InputError:
    """The error for a file that is not what it should be."""
    return validate.invalid_input(str(what), "not", requirement, AGAIN)


def refusal(path: object, what: str, found: object, wanted: object) -> validate.InputError:
    """The same for a part of its contents."""
    return validate.invalid_value(f"{what} in {path}", found, str(wanted), AGAIN)


def check(path: object, what: str, found: object, wanted: object) -> None:
    """Refuse a file in which something is not as it must be."""
    if found != wanted:
        raise refusal(path, what, found, wanted)


def class_indexes(
    path: Path, labels: NDArray[Any], classes: int, first: int = 0
) -> NDArray[np.int64]:
    """Labels that count from `first`, as class indexes from 0."""
    if labels.dtype.kind not in "iu":
        raise refusal(path, "the labels", labels.dtype, "whole numbers")
    indexes: NDArray[np.int64] = labels.astype(np.int64).reshape(-1) - first
    wrong = (indexes < 0) | (indexes >= classes)
    if wrong.any():
        place, wanted = wrong.argmax(), f"between {first} and {classes - 1 + first}"
        raise refusal(path, f"label {place}", indexes[place] + first, wanted)
    return indexes


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
