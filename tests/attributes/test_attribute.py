"""Attributes of a table: their columns, values, priors; and what is refused."""

import warnings
from functools import partial

import numpy as np
import pytest
import torch

from dprime.attributes.attribute import Attribute
from dprime.attributes.records import SeenValues
from dprime.data import Dataset
from dprime.monitor.checks import PrivacyWarning
from told import refuses

COLUMNS = ("age", "sex=Female", "sex=Male", "race=A", "race=B", "race=C")
TABLE = np.array(
    [[0.1, 1, 0, 0, 1, 0], [0.9, 0, 1, 1, 0, 0], [0.4, 0, 1, 0, 1, 0], [0.4, 1, 0, 1, 0, 0]],
    dtype=np.float32,
)
HOLED = np.where(np.arange(24).reshape(4, 6) == 6, np.nan, TABLE)
PEOPLE = Dataset("people", TABLE, np.zeros(4), "table", None, COLUMNS)

column, one_hot = Attribute.column, partial(Attribute.one_hot, columns=COLUMNS)
named = partial(column, columns=COLUMNS)
some = partial(column, 0, [0, 1])
made = partial(Attribute, "x")


@pytest.mark.parametrize(
    ("attribute", "name", "values"),
    [
        (column("age", data=PEOPLE), "age", {"0.1": 0.1, "0.4": 0.4, "0.9": 0.9}),
        (column(0, "extremes", data=TABLE), "column 0", {"0.1": 0.1, "0.9": 0.9}),
        (column(0, [0.4, 0.1], data=torch.tensor(TABLE)), "column 0", {"0.4": 0.4, "0.1": 0.1}),
        (named("age", [0.0, 0.5], name="years"), "years", {"0": 0.0, "0.5": 0.5}),
        (one_hot("sex"), "sex", {"Female": [1, 0], "Male": [0, 1]}),
        (one_hot("race", data=PEOPLE), "race", {"A": [1, 0, 0], "B": [0, 1, 0]}),  # C is not there
        (one_hot([3, 4, 5], ["race=C", "A"]), "race", {"C": [0, 0, 1], "A": [1, 0, 0]}),
        (Attribute.one_hot([1, 2]), "columns 1, 2", {"column 1": [1, 0], "column 2": [0, 1]}),
    ],
)
def test_values(attribute, name, values):
    assert (attribute.name, attribute.labels) == (name, tuple(values))
    wanted = np.array([*values.values()], dtype=float).reshape(len(values), -1)
    np.testing.assert_allclose(attribute.values, wanted, rtol=1e-6)


def test_joint():
    age = named("age", [0.0, 1.0], prior=[0.3, 0.7], sensitive_value=1.0)
    sex = one_hot("sex", prior=[0.5, 0.5], sensitive_value="Female")
    both = Attribute.joint(age, sex)
    assert (both.name, both.places) == ("age and sex", (0, 1, 2))
    assert both.values.tolist() == [[0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]]
    assert both.prior == pytest.approx((0.15, 0.15, 0.35, 0.35))
    assert both.labels[both.sensitive_value] == "age 1, sex Female"
    plain = Attribute.joint(age, one_hot("race"), name="both")
    assert (plain.name, plain.prior, plain.sensitive_value) == ("both", None, None)


def test_completions_and_the_adversary():
    records = torch.tensor(TABLE)
    found = Attribute.joint(column(0, [0.2, 0.3]), Attribute.one_hot([1, 2])).completions(records)
    assert found.shape == (4, 4, 6)
    np.testing.assert_allclose(found[2, 3, :3], [0.3, 0, 1], rtol=1e-6)
    assert torch.equal(found[:, 1, 3:], records[:, 3:])
    assert torch.equal(records, torch.tensor(TABLE))
    attack = named("age", [0.2, 0.3, 0.4]).adversary(1, record=2)
    assert (attack.columns, attack.values, attack.record) == ((0,), ((0.3,), (0.4,)), 2)


RNG = np.random.default_rng(0)
BETWEEN, WIDE = RNG.random((80, 3)), RNG.standard_cauchy((60, 1))
SEX, RARE = np.tile([[0.0, 1.0], [1.0, 0.0]], (30, 1)), np.tile([1.0, 0.0, 0.0], (60, 1))
RAW = column(1, [17.0, 90.0], name="age")
APART = Attribute.joint(column(0, [0.0, 1.0]), column(2, [5.0, 6.0]))


@pytest.mark.parametrize(
    ("attribute", "records", "doubt"),
    [
        (RAW, BETWEEN[:40], None),  # too few records to say so
        (RAW, BETWEEN, "The values of age, 17 to 90, are far from what the model is given"),
        (column(1, [-4.0, -3.0]), BETWEEN, "The values of column 1"),
        (APART, BETWEEN, "in column 2"),
        # records far beyond values that cover the data
        (column(0, data=SEX), 5 * SEX, "The values of column 0"),
        (Attribute.one_hot([0, 1]), 5 * SEX, "The values of columns 0, 1"),
        (column(0, "extremes", data=SEX), SEX, None),
        (Attribute.one_hot([0, 1]), SEX, None),
        # some categories or values only are asked about
        (Attribute.one_hot([0, 1, 2], [0, 1]), np.tile(np.eye(3), (20, 1)), None),
        (column(0, [0.2, 0.3]), BETWEEN, None),
        # the extremes of a wide column
        (column(0, [-1e6, 1e6]), WIDE, None),
        (column(0, [0.0, 1e6]), WIDE, None),
        # a rare category: no width to judge by
        (Attribute.one_hot([0, 1, 2]), RARE, None),
        (column(1, [1.0, 2.0]), RARE, None),
        (column(0, [1.2, 1.9]), BETWEEN, None),  # near
    ],
)
def test_values_in_another_scaling_are_doubted_once(attribute, records, doubt):
    seen = SeenValues(attribute)
    with warnings.catch_warnings(record=True, action="always") as warned:
        for batch in np.array_split(records, 4):
            seen.see(torch.tensor(batch))
    assert [each.category for each in warned] == [PrivacyWarning] * (doubt is not None)
    assert seen.doubt is None if doubt is None else doubt in seen.doubt


ONE, TWO = (0,), np.array([[0.0], [1.0]])
BOTH = ("a", "b")
MANY = "the number of values of column 0 be at"
NO_GROUP = "each value of race be one of the group that occurs"
test_what_is_refused = refuses({
    "attribute be a column of the data": lambda: named("ages", [0, 1]),
    "attribute be a column from 0 to 5": lambda: column(6, data=TABLE),
    "attribute be a column from 0 on": lambda: column(-1, [0, 1]),
    "attribute be an index or a name": lambda: column(1.5, [0, 1]),
    "attribute be what the names of a group's": lambda: one_hot("colour"),
    "attribute columns 0, 1 be a one-hot gro": lambda: Attribute.one_hot([0, 1], data=TABLE),
    "attribute be at least one column": lambda: Attribute.one_hot([]),
    NO_GROUP: lambda: one_hot("race", ["A", "C"], data=PEOPLE),
    "values of sex be all different": lambda: one_hot("sex", ["Male", "sex=Male"]),
    "values be those of a one-hot group": lambda: one_hot("sex", "extremes"),
    "each value of sex be one of the group": lambda: one_hot("sex", sensitive_value="A"),
    "each value of 0 be one that occurs": lambda: column(0, [0.1, 0.5], data=TABLE),
    "each value of 0 be a finite number": lambda: column(0, [0.1, np.nan]),
    f"{MANY} least 2": lambda: column(0, "extremes", data=np.ones((3, 1))),
    f"{MANY} most 1000": lambda: column(0, range(1001)),
    "values of column 0 be all different": lambda: column(0, [0.1, 0.1]),
    "column 0 of the data be of finite numbers": lambda: column(0, data=HOLED),
    "values be all, extremes or a list": lambda: column(0, "some", data=TABLE),
    "values be a list where no data is given": lambda: column(0, "all"),
    "data be records [n, features]": lambda: column(0, data=np.ones((2, 1, 3, 3))),
    "columns be 6 names": lambda: column(0, data=TABLE, columns=("a",)),
    "the largest share of prior be below 1": lambda: some(prior=[1, 0]),
    "the number of shares in prior be 2": lambda: some(prior=[1.0]),
    "the sum of prior be 1": lambda: some(prior=[0.5, 0.6]),
    "each share of prior be between 0 and 1": lambda: some(prior=[1.5, -0.5]),
    "sensitive_value be one of the values of": lambda: some(sensitive_value=0.5),
    "attributes be one Attribute or more": Attribute.joint,
    "attributes be of columns that differ": lambda: Attribute.joint(some(), some()),
    "the number of combinations of column 0 and column 1 be at most 1000": (
        lambda: Attribute.joint(*(column(i, range(40)) for i in range(2)))
    ),
    "values of x be finite numbers of shape (2, 2)": lambda: made((0, 1), TWO, BOTH),
    "values of x be finite numbers of shape (2, 1)": lambda: made(ONE, TWO * np.nan, BOTH),
    "values of x be finite numbers of shape (1, 1)": lambda: made(ONE, TWO, ("a",)),
    "sensitive_value be a whole number": lambda: made(ONE, TWO, BOTH, sensitive_value=7),
    "second be a whole number from 0 to 1": lambda: some().adversary(0, 7),
    "second be another value than first, 1": lambda: some().adversary(1),
    "attribute be a column from 0 to 2": lambda: column(5, [0, 1]).check(torch.zeros(2, 3)),
    "records be [n, features]": lambda: some().completions(torch.zeros(2, 1, 9)),
})  # fmt: skip
