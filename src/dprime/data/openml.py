"""Data sets fetched from OpenML through scikit-learn, for those who have no files."""

from __future__ import annotations

import warnings
from typing import Any

from dprime import validate
from dprime.data import files


def fetch(name: str, version: int, address: str) -> Any:
    """scikit-learn's `fetch_openml` as NumPy arrays, or one sentence that says what to do."""
    datasets = files.scikit_learn("sklearn.datasets")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it warns before each new attempt
            # The pandas parser would need pandas, which no extra of dprime brings.
            return datasets.fetch_openml(name, version=version, as_frame=False, parser="liac-arff")
    except (OSError, ValueError) as error:
        requirement = f"able to send {name} for source 'openml'"
        raise validate.refusal("openml.org", error, requirement, remedy(address)) from None


def check(what: str, found: object, wanted: object, address: str) -> None:
    """Refuse a data set that is not the one that is known by this name."""
    if found != wanted:
        raise validate.refusal(f"{what} on OpenML", found, str(wanted), remedy(address))


def remedy(address: str) -> str:
    """What to do without OpenML."""
    return f"try again later, or get the files from {address} and set {files.VARIABLE} or data_dir"
