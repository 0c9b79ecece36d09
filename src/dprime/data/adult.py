"""UCI Adult: 14 attributes of a person, and whether they earn more than 50,000 dollars a year.

Categories and ranges are constants, never computed from the data that is loaded: else adding one
record could move every other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dprime.data import files
from dprime.data.dataset import Dataset, Split

SOURCE = files.DataSource("adult", "https://archive.ics.uci.edu/dataset/2/adult")

PUBLISHED = """
age: 17 90. workclass: Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov
Without-pay. fnlwgt: 12285 1490400. education: Bachelors Some-college 11th HS-grad Prof-school
Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th 10th Doctorate 5th-6th Preschool.
education-num: 1 16. marital-status: Married-civ-spouse Divorced Never-married Separated Widowed
Married-spouse-absent Married-AF-spouse. occupation: Tech-support Craft-repair Other-service Sales
Exec-managerial Prof-specialty Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing
Transport-moving Priv-house-serv Protective-serv Armed-Forces. relationship: Wife Own-child Husband
Not-in-family Other-relative Unmarried. race: White Asian-Pac-Islander Amer-Indian-Eskimo Other
Black. sex: Female Male. capital-gain: 0 99999. capital-loss: 0 4356. hours-per-week: 1 99.
native-country: United-States Cambodia England Puerto-Rico Canada Germany
Outlying-US(Guam-USVI-etc) India Japan Greece South China Cuba Iran Honduras Philippines Italy
Poland Jamaica Vietnam Mexico Portugal Ireland France Dominican-Republic Laos Ecuador Taiwan Haiti
Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador Trinadad&Tobago Peru
Hong Holand-Netherlands.
"""
"""Attributes in the order of the file, categories in the order and spelling of adult.names.

Never-worked occurs in incomplete rows only. Two numbers are the range of the 48,842 published rows;
what lies outside is cut off.
"""

ATTRIBUTES = {
    name.strip(): tuple(values.split())
    for name, values in (entry.split(":") for entry in PUBLISHED.split(".")[:-1])
}
RANGES = {
    name: (int(values[0]), int(values[1]))
    for name, values in ATTRIBUTES.items()
    if values[0].isdigit()
}
CATEGORIES = {name: values for name, values in ATTRIBUTES.items() if name not in RANGES}
INCOMES = ("<=50K", ">50K")
COLUMNS = (
    *RANGES,
    *(f"{name}={category}" for name, options in CATEGORIES.items() for category in options),
)
"""6 numbers, then 98 categories."""

TRAIN_SIZE, TEST_SIZE = 32_561, 16_281  # with incomplete rows; OpenML holds adult.test first
FIRST_WEIGHT = 77_516  # the fnlwgt of the first row of adult.data, by which that order is checked


def load(data_dir: Path | None) -> Split:
    """From `adult.data` and `adult.test`; rows with a question mark are left out."""
    train, test = (SOURCE.find(data_dir, name) for name in ("adult.data", "adult.test"))
    return Split(train=_dataset(train, _rows(train)), test=_dataset(test, _rows(test)))


def load_from_openml() -> Split:
    """From OpenML's adult, version 2: the same rows in the same order."""
    bunch = SOURCE.fetch("adult", 2)
    origin, remedy = "OpenML's adult", SOURCE.remedy
    files.check(origin, "the size", len(bunch.data), TRAIN_SIZE + TEST_SIZE, remedy)
    files.check(origin, "the attributes", list(bunch.feature_names), list(ATTRIBUTES), remedy)
    columns = [
        [_text(value, bunch.categories.get(name)) for value in values]
        for name, values in zip(ATTRIBUTES, np.asarray(bunch.data).T, strict=True)
    ]
    rows = list(zip(*columns, bunch.target, strict=True))
    weight = float(rows[TEST_SIZE][list(ATTRIBUTES).index("fnlwgt")])
    files.check(origin, f"the fnlwgt of row {TEST_SIZE}", weight, FIRST_WEIGHT, remedy)
    return Split(_dataset(origin, rows[TEST_SIZE:]), _dataset(origin, rows[:TEST_SIZE]))


def _text(value: float, options: Sequence[str] | None) -> str:
    if np.isnan(value):
        return "?"
    return options[int(value)] if options else str(float(value))


def _rows(path: Path) -> list[list[str]]:
    """The fields of each row. adult.test begins with a remark and ends its labels with a dot."""
    lines = files.read_text(path).splitlines()
    rows = [line.rstrip(". ").split(",") for line in lines if line.strip() and line[0] != "|"]
    return [[field.strip() for field in row] for row in rows]


def _dataset(origin: Path | str, rows: Iterable[Sequence[str]]) -> Dataset:
    complete = []
    for number, row in enumerate(rows, start=1):
        files.check(origin, f"the number of fields in row {number}", len(row), len(ATTRIBUTES) + 1)
        if "?" not in row:
            complete.append(row)
    if not complete:
        raise files.broken(origin, "a file with a complete row")
    columns = dict(zip((*ATTRIBUTES, "class"), zip(*complete, strict=True), strict=True))
    try:
        numeric = np.array([columns[name] for name in RANGES], dtype=np.float64).T
    except ValueError:
        raise files.broken(f"each of {', '.join(RANGES)} in {origin}", "a number") from None
    one_hot = [_one_hot(origin, name, columns[name], CATEGORIES[name]) for name in CATEGORIES]
    records = np.hstack([files.unit_interval(numeric, list(RANGES.values())), *one_hot])
    labels = _one_hot(origin, "class", columns["class"], INCOMES).argmax(axis=1)
    return Dataset("adult", records, labels, "table", len(INCOMES), COLUMNS)


def _one_hot(
    origin: Path | str, name: str, texts: Sequence[str], options: Sequence[str]
) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.array(texts)[:, np.newaxis] == np.array(options)
    known = found.any(axis=1)
    if not known.all():
        wanted = f"one of {', '.join(options)}"
        raise files.broken(f"each {name} in {origin}", wanted, texts[int(known.argmin())])
    return found
