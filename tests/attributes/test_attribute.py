"""Attributes of a table: their columns, values, priors; and what is refused, in one sentence."""

import warnings

import numpy as np
import pytest
import torch

from dprime.attributes.attribute import Attribute, SeenValues
from dprime.data import Dataset, load
from dprime.monitor.checks import PrivacyWarning

COLUMNS = ("age", "sex=Female", "sex=Male", "race=A", "race=B", "race=C")
TABLE = np.array(
    [
        [0.1, 1, 0, 0, 1, 0],
        [0.9, 0, 1, 1, 0, 0],
        [0.4, 0, 1, 0, 1, 0],
        [0.4, 1, 0, 1, 0, 0],
    ],
    dtype=np.float32,
)


def table_set():
    return Dataset("people", TABLE, np.zeros(4), "table", None, COLUMNS)


def test_values_of_a_column():
    every = Attribute.column("age", data=table_set())
    assert every.name == "age"
    assert every.places == (0,)
    np.testing.assert_allclose(every.values[:, 0], [0.1, 0.4, 0.9], rtol=1e-6)
    assert every.labels == ("0.1", "0.4", "0.9")
    ends = Attribute.column(0, "extremes", data=TABLE)
    np.testing.assert_allclose(ends.values[:, 0], [0.1, 0.9], rtol=1e-6)
    own = Attribute.column("age", [0.0, 0.5, 1.0], columns=COLUMNS, name="years")
    assert (own.name, own.values[:, 0].tolist()) == ("years", [0.0, 0.5, 1.0])
    assert Attribute.column(0, [0.4, 0.1], data=torch.tensor(TABLE)).values[:, 0].tolist() == [
        0.4,
        0.1,
    ]


def test_values_of_a_group():
    sex = Attribute.one_hot("sex", columns=COLUMNS)
    assert (sex.name, sex.places, sex.labels) == ("sex", (1, 2), ("Female", "Male"))
    assert sex.values.tolist() == [[1, 0], [0, 1]]
    race = Attribute.one_hot("race", data=table_set(), damaging="A")
    assert race.labels == ("A", "B")  # C does not occur
    assert race.values.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert race.damaging == 0
    some = Attribute.one_hot([3, 4, 5], ["race=C", "A"], columns=COLUMNS)
    assert (some.name, some.labels) == ("race", ("C", "A"))
    assert some.values.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert Attribute.one_hot([1, 2]).name == "columns 1, 2"


def test_together():
    age = Attribute.column("age", [0.0, 1.0], columns=COLUMNS, prior=[0.3, 0.7], damaging=1.0)
    sex = Attribute.one_hot("sex", columns=COLUMNS, prior=[0.5, 0.5], damaging="Female")
    both = Attribute.together(age, sex)
    assert both.name == "age and sex"
    assert both.places == (0, 1, 2)
    assert both.values.tolist() == [[0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]]
    assert both.prior == pytest.approx((0.15, 0.15, 0.35, 0.35))
    assert both.labels[both.damaging] == "age 1, sex Female"
    plain = Attribute.together(age, Attribute.one_hot("race", columns=COLUMNS), name="both")
    assert (plain.name, plain.prior, plain.damaging) == ("both", None, None)


def test_completions():
    records = torch.tensor(TABLE)
    both = Attribute.together(Attribute.column(0, [0.2, 0.3]), Attribute.one_hot([1, 2]))
    made = both.completions(records)
    assert made.shape == (4, 4, 6)
    np.testing.assert_allclose(made[2, 3, :3], [0.3, 0, 1], rtol=1e-6)
    assert torch.equal(made[:, 1, 3:], records[:, 3:])
    assert torch.equal(records, torch.tensor(TABLE))


def test_the_adversary_of_an_attribute():
    found = Attribute.column("age", [0.2, 0.3, 0.4], columns=COLUMNS).adversary(1, record=2)
    assert (found.columns, found.values, found.record) == ((0,), ((0.3,), (0.4,)), 2)


def test_diabetes_has_two_sexes():
    assert Attribute.column("sex", data=load("diabetes").train).labels == ("0", "1")


def seen_by(attribute, *batches):
    """What is doubted after some batches, without the warning itself."""
    seen = SeenValues(attribute)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        for batch in batches:
            seen.see(torch.as_tensor(batch, dtype=torch.float32))
    return seen.doubt


def test_values_in_another_scaling_are_doubted_once():
    rng = np.random.default_rng(0)
    batches = [rng.random((20, 3)) for _ in range(4)]
    raw = Attribute.column(1, [17.0, 90.0], name="age")
    assert seen_by(raw, *batches[:2]) is None  # 40 records are too few to say so
    for seen in (SeenValues(raw), SeenValues(raw)):  # of two trainings with one attribute
        for batch in batches[:2]:
            seen.see(torch.tensor(batch))
        with pytest.warns(PrivacyWarning, match="The values of age, 17 to 90, are far"):
            seen.see(torch.tensor(batches[2]))
        seen.see(torch.tensor(batches[3]))  # a second warning would be an error
        assert "in column 1, 0.0" in seen.doubt
    assert seen_by(Attribute.column(1, [-4.0, -3.0]), *batches).startswith("The values of column 1")
    both = Attribute.together(Attribute.column(0, [0.0, 1.0]), Attribute.column(2, [5.0, 6.0]))
    assert "in column 2" in seen_by(both, *batches)


def test_records_far_beyond_values_that_cover_the_data_are_doubted():
    sex = np.tile([[0.0, 1.0], [1.0, 0.0]], (30, 1))
    for attribute in (Attribute.column(0, data=sex), Attribute.one_hot([0, 1])):
        assert seen_by(attribute, 5 * sex) is not None
    for attribute in (Attribute.column(0, "extremes", data=sex), Attribute.one_hot([0, 1])):
        assert seen_by(attribute, sex) is None
    part = Attribute.one_hot([0, 1, 2], [0, 1])  # some categories only are asked about
    assert seen_by(part, np.tile(np.eye(3), (20, 1))) is None
    narrow = Attribute.column(0, [0.2, 0.3])  # and so are some values
    assert seen_by(narrow, np.random.default_rng(0).random((60, 1))) is None


def test_values_that_fit_are_not_doubted():
    rng = np.random.default_rng(0)
    wide = rng.standard_cauchy((60, 1))
    assert seen_by(Attribute.column(0, [-1e6, 1e6]), wide) is None  # the extremes of a wide column
    assert seen_by(Attribute.column(0, [0.0, 1e6]), wide) is None
    rare = np.tile([1.0, 0.0, 0.0], (60, 1))  # no record of the batch has the other categories
    assert seen_by(Attribute.one_hot([0, 1, 2]), rare) is None
    assert seen_by(Attribute.column(1, [1.0, 2.0]), rare) is None  # no width to judge by
    assert seen_by(Attribute.column(0, [1.2, 1.9]), rng.random((60, 1))) is None  # near


NAMED = {"columns": COLUMNS}
HOLED = np.where(np.arange(24).reshape(4, 6) == 6, np.nan, TABLE)
REFUSED = {
    "no such name": (
        lambda: Attribute.column("ages", [0, 1], **NAMED),
        "attribute must be a column of the data, but it is 'ages': give one of age",
    ),
    "no names": (
        lambda: Attribute.column("age", [0, 1]),
        "attribute must be a column of the data, but it is 'age': give columns=",
    ),
    "no such index": (
        lambda: Attribute.column(6, data=TABLE),
        "attribute must be a column from 0 to 5, but it is 6",
    ),
    "not a column": (lambda: Attribute.column(1.5, [0, 1]), "attribute must be an index or a name"),
    "no such group": (
        lambda: Attribute.one_hot("colour", **NAMED),
        "attribute must be what the names",
    ),
    "group index": (lambda: Attribute.one_hot([4, 9], data=TABLE), "from 0 to 5, but it is 9"),
    "not one-hot": (
        lambda: Attribute.one_hot([0, 1], data=TABLE),
        "attribute columns 0, 1 must be a one-hot group",
    ),
    "does not occur": (
        lambda: Attribute.column(0, [0.1, 0.5], data=TABLE),
        "each value of 0 must be one that occurs in the data, but it is 0.5",
    ),
    "category does not occur": (
        lambda: Attribute.one_hot("race", ["A", "C"], data=table_set()),
        "each value of race must be one of the group that occurs, but it is 'C'",
    ),
    "outside the group": (
        lambda: Attribute.one_hot("sex", ["Female", "A"], **NAMED),
        "but it is 'A'",
    ),
    "one value": (
        lambda: Attribute.column(0, [0.1]),
        "values of column 0 must be at least 2, but it is 1",
    ),
    "one that occurs": (
        lambda: Attribute.column(0, "extremes", data=np.ones((3, 1))),
        "at least 2, but it is 1",
    ),
    "twice": (lambda: Attribute.column(0, [0.1, 0.1]), "must be all different"),
    "NaN": (lambda: Attribute.column(0, [0.1, np.nan]), "must be a finite number, but it is nan"),
    "NaN in the data": (
        lambda: Attribute.column(0, data=HOLED),
        "column 0 of the data must be of finite numbers, but it is NaN or infinite in 1 of 4",
    ),
    "NaN under extremes": (lambda: Attribute.column(0, "extremes", data=HOLED), "in 1 of 4 rec"),
    "NaN under a list": (lambda: Attribute.column(0, [0.1, 0.4], data=HOLED), "in 1 of 4 records"),
    "category twice": (
        lambda: Attribute.one_hot("sex", ["Male", "sex=Male"], **NAMED),
        "values of sex must be all different, but it is Male, Male",
    ),
    "empty group": (lambda: Attribute.one_hot([]), "at least one column, but it is empty"),
    "nothing together": (Attribute.together, "attributes must be one Attribute or more"),
    "below the first": (
        lambda: Attribute.column(-1, [0, 1]),
        "attribute must be a column from 0 on, but it is -1",
    ),
    "constructed twice": (
        lambda: Attribute("x", (0,), np.zeros((2, 1)), ("a", "b")),
        "values of x must be all different",
    ),
    "constructed width": (
        lambda: Attribute("x", (0, 1), np.array([[0.0], [1.0]]), ("a", "b")),
        "values of x must be \\[value, column\\], but it is of shape \\(2, 1\\)",
    ),
    "constructed NaN": (
        lambda: Attribute("x", (0,), np.array([[0.0], [np.nan]]), ("a", "b")),
        "values of x must be finite numbers",
    ),
    "constructed labels": (
        lambda: Attribute("x", (0,), np.array([[0.0], [1.0]]), ("a",)),
        "the number of labels of x must be 2, one for each value, but it is 1",
    ),
    "constructed damaging": (
        lambda: Attribute("x", (0,), np.array([[0.0], [1.0]]), ("a", "b"), damaging=7),
        "damaging must be a whole number from 0 to 1, but it is 7",
    ),
    "adversary's value": (
        lambda: Attribute.column(0, [0, 1]).adversary(0, 7),
        "second must be a whole number from 0 to 1, but it is 7",
    ),
    "adversary's same value": (
        lambda: Attribute.column(0, [0, 1]).adversary(1),
        "second must be another value than first, 1, but it is -1",
    ),
    "certain prior": (
        lambda: Attribute.column(0, [0, 1], prior=[1, 0]),
        "the largest share of prior must be below 1, but it is 1",
    ),
    "too many": (
        lambda: Attribute.column(0, data=np.random.default_rng(0).random((1100, 1))),
        "the number of values of column 0 must be at most 1000, but it is 1100",
    ),
    "too many together": (
        lambda: Attribute.together(*(Attribute.column(i, range(40)) for i in range(2))),
        "combinations of column 0 and column 1 must be at most 1000, but it is 1600",
    ),
    "overlap": (
        lambda: Attribute.together(*[Attribute.column(0, [0, 1])] * 2),
        "of columns that differ",
    ),
    "prior's length": (
        lambda: Attribute.column(0, [0, 1], prior=[1.0]),
        "the number of shares in prior must be 2, but it is 1",
    ),
    "prior's sum": (
        lambda: Attribute.column(0, [0, 1], prior=[0.5, 0.6]),
        "the sum of prior must be 1, but it is 1.1",
    ),
    "prior below 0": (lambda: Attribute.column(0, [0, 1], prior=[1.5, -0.5]), "between 0 and 1"),
    "damaging": (
        lambda: Attribute.column(0, [0, 1], damaging=0.5),
        "damaging must be one of the values of column 0, but it is 0.5",
    ),
    "damaging category": (lambda: Attribute.one_hot("sex", damaging="A", **NAMED), "but it is 'A'"),
    "unknown word": (lambda: Attribute.column(0, "some", data=TABLE), "all, extremes or a list"),
    "all without data": (lambda: Attribute.column(0, "all"), "a list where no data is given"),
    "extremes of a group": (
        lambda: Attribute.one_hot("sex", "extremes", **NAMED),
        "those of a one-hot",
    ),
    "images": (
        lambda: Attribute.column(0, data=np.ones((2, 1, 3, 3))),
        "records \\[n, features\\]",
    ),
    "names of others": (lambda: Attribute.column(0, data=TABLE, columns=("a",)), "must be 6 names"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    make, sentence = REFUSED[case]
    with pytest.raises(ValueError, match=sentence) as refused:
        make()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        (torch.zeros(2, 3), "attribute must be a column from 0 to 2, but it is 5"),
        (torch.zeros(2, 1, 9), "records must be \\[n, features\\]"),
    ],
)
def test_records_without_the_column(records, sentence):
    with pytest.raises(ValueError, match=sentence):
        Attribute.column(5, [0.0, 1.0]).completions(records)
