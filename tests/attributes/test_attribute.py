"""Attributes of a table: their columns, values, priors; and what is refused, in one sentence."""

import re
import warnings
from functools import partial

import numpy as np
import pytest
import torch

from dprime import InputError
from dprime.attributes.attribute import Attribute
from dprime.attributes.records import SeenValues
from dprime.data import Dataset
from dprime.monitor.checks import PrivacyWarning

COLUMNS = ("age", "sex=Female", "sex=Male", "race=A", "race=B", "race=C")
TABLE = np.array(
    [[0.1, 1, 0, 0, 1, 0], [0.9, 0, 1, 1, 0, 0], [0.4, 0, 1, 0, 1, 0], [0.4, 1, 0, 1, 0, 0]],
    dtype=np.float32,
)
HOLED = np.where(np.arange(24).reshape(4, 6) == 6, np.nan, TABLE)
PEOPLE = Dataset("people", TABLE, np.zeros(4), "table", None, COLUMNS)


def test_values_of_a_column():
    every = Attribute.column("age", data=PEOPLE)
    assert every.name == "age"
    assert every.places == (0,)
    np.testing.assert_allclose(every.values[:, 0], [0.1, 0.4, 0.9], rtol=1e-6)
    assert every.labels == ("0.1", "0.4", "0.9")
    ends = Attribute.column(0, "extremes", data=TABLE)
    np.testing.assert_allclose(ends.values[:, 0], [0.1, 0.9], rtol=1e-6)
    own = Attribute.column("age", [0.0, 0.5, 1.0], columns=COLUMNS, name="years")
    assert (own.name, own.values[:, 0].tolist()) == ("years", [0.0, 0.5, 1.0])
    listed = Attribute.column(0, [0.4, 0.1], data=torch.tensor(TABLE))
    assert listed.values[:, 0].tolist() == [0.4, 0.1]


def test_values_of_a_group():
    sex = Attribute.one_hot("sex", columns=COLUMNS)
    assert (sex.name, sex.places, sex.labels) == ("sex", (1, 2), ("Female", "Male"))
    assert sex.values.tolist() == [[1, 0], [0, 1]]
    race = Attribute.one_hot("race", data=PEOPLE, sensitive_value="A")
    assert race.labels == ("A", "B")  # C does not occur
    assert race.values.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert race.sensitive_value == 0
    some = Attribute.one_hot([3, 4, 5], ["race=C", "A"], columns=COLUMNS)
    assert (some.name, some.labels) == ("race", ("C", "A"))
    assert some.values.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert Attribute.one_hot([1, 2]).name == "columns 1, 2"


def test_joint():
    named, even = {"columns": COLUMNS}, [0.5, 0.5]
    age = Attribute.column("age", [0.0, 1.0], prior=[0.3, 0.7], sensitive_value=1.0, **named)
    sex = Attribute.one_hot("sex", prior=even, sensitive_value="Female", **named)
    both = Attribute.joint(age, sex)
    assert both.name == "age and sex"
    assert both.places == (0, 1, 2)
    assert both.values.tolist() == [[0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]]
    assert both.prior == pytest.approx((0.15, 0.15, 0.35, 0.35))
    assert both.labels[both.sensitive_value] == "age 1, sex Female"
    plain = Attribute.joint(age, Attribute.one_hot("race", columns=COLUMNS), name="both")
    assert (plain.name, plain.prior, plain.sensitive_value) == ("both", None, None)


def test_completions():
    records = torch.tensor(TABLE)
    both = Attribute.joint(Attribute.column(0, [0.2, 0.3]), Attribute.one_hot([1, 2]))
    made = both.completions(records)
    assert made.shape == (4, 4, 6)
    np.testing.assert_allclose(made[2, 3, :3], [0.3, 0, 1], rtol=1e-6)
    assert torch.equal(made[:, 1, 3:], records[:, 3:])
    assert torch.equal(records, torch.tensor(TABLE))


def test_the_adversary_of_an_attribute():
    found = Attribute.column("age", [0.2, 0.3, 0.4], columns=COLUMNS).adversary(1, record=2)
    assert (found.columns, found.values, found.record) == ((0,), ((0.3,), (0.4,)), 2)


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
    both = Attribute.joint(Attribute.column(0, [0.0, 1.0]), Attribute.column(2, [5.0, 6.0]))
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


column, one_hot = Attribute.column, partial(Attribute.one_hot, columns=COLUMNS)
named = partial(column, columns=COLUMNS)
some = partial(column, 0, [0, 1])
made = partial(Attribute, "x")
ONE, TWO = (0,), np.array([[0.0], [1.0]])
REFUSED = [
    (lambda: named("ages", [0, 1]), "attribute must be a column of the data, but it is 'ages'"),
    (lambda: column("age", [0, 1]), "attribute must be a column of the data, but it is 'age': giv"),
    (lambda: column(6, data=TABLE), "attribute must be a column from 0 to 5, but it is 6"),
    (lambda: column(-1, [0, 1]), "attribute must be a column from 0 on, but it is -1"),
    (lambda: column(1.5, [0, 1]), "attribute must be an index or a name"),
    (lambda: one_hot("colour"), "attribute must be what the names of a group's columns begin"),
    (lambda: Attribute.one_hot([4, 9], data=TABLE), "attribute must be a column from 0 to 5"),
    (lambda: Attribute.one_hot([0, 1], data=TABLE), "attribute columns 0, 1 must be a one-hot gro"),
    (lambda: Attribute.one_hot([]), "attribute must be at least one column, but it is empty"),
    (lambda: one_hot("race", ["A", "C"], data=PEOPLE), "each value of race must be one of the gro"),
    (lambda: one_hot("sex", ["Female", "A"]), "each value of sex must be one of the group that o"),
    (lambda: one_hot("sex", ["Male", "sex=Male"]), "values of sex must be all different, but it"),
    (lambda: one_hot("sex", "extremes"), "values must be those of a one-hot group"),
    (lambda: one_hot("sex", sensitive_value="A"), "each value of sex must be one of the group"),
    (lambda: one_hot("race", ["A", "B"], sensitive_value="C"), "each value of race must be one of"),
    (lambda: column(0, [0.1, 0.5], data=TABLE), "each value of 0 must be one that occurs in the d"),
    (lambda: column(0, [0.1, np.nan]), "each value of 0 must be a finite number, but it is nan"),
    (lambda: column(0, [0.1]), "the number of values of column 0 must be at least 2, but it is 1"),
    (lambda: column(0, "extremes", data=np.ones((3, 1))), "the number of values of column 0 must"),
    (lambda: column(0, [0.1, 0.1]), "values of column 0 must be all different"),
    (lambda: column(0, data=HOLED), "column 0 of the data must be of finite numbers, but it is Na"),
    (lambda: column(0, "extremes", data=HOLED), "column 0 of the data must be of finite numbers"),
    (lambda: column(0, [0.1, 0.4], data=HOLED), "column 0 of the data must be of finite numbers"),
    (lambda: column(0, range(1001)), "the number of values of column 0 must be at most 1000, but"),
    (lambda: column(0, "some", data=TABLE), "values must be all, extremes or a list"),
    (lambda: column(0, "all"), "values must be a list where no data is given"),
    (lambda: column(0, data=np.ones((2, 1, 3, 3))), "data must be records [n, features]"),
    (lambda: column(0, data=TABLE, columns=("a",)), "columns must be 6 names, but it is 1"),
    (lambda: some(prior=[1, 0]), "the largest share of prior must be below 1, but it is 1"),
    (lambda: some(prior=[1.0]), "the number of shares in prior must be 2, but it is 1"),
    (lambda: some(prior=[0.5, 0.6]), "the sum of prior must be 1, but it is 1.1"),
    (lambda: some(prior=[1.5, -0.5]), "each share of prior must be between 0 and 1"),
    (lambda: some(sensitive_value=0.5), "sensitive_value must be one of the values of column 0, b"),
    (Attribute.joint, "attributes must be one Attribute or more"),
    (lambda: Attribute.joint(some(), some()), "attributes must be of columns that differ"),
    (
        lambda: Attribute.joint(*(column(i, range(40)) for i in range(2))),
        "the number of combinations of column 0 and column 1 must be at most 1000, but it is 1600",
    ),
    (lambda: made(ONE, np.zeros((2, 1)), ("a", "b")), "values of x must be all different"),
    (lambda: made((0, 1), TWO, ("a", "b")), "values of x must be finite numbers of shape (2, 2), but it is of s"),
    (lambda: made(ONE, TWO * np.nan, ("a", "b")), "values of x must be finite numbers"),
    (lambda: made(ONE, TWO, ("a",)), "values of x must be finite numbers of shape (1, 1)"),
    (lambda: made(ONE, TWO, ("a", "b"), sensitive_value=7), "sensitive_value must be a whole num"),
    (lambda: some().adversary(0, 7), "second must be a whole number from 0 to 1, but it is 7"),
    (lambda: some().adversary(1), "second must be another value than first, 1, but it is -1"),
    (lambda: column(5, [0, 1]).check(torch.zeros(2, 3)), "attribute must be a column from 0 to 2"),
    (lambda: some().completions(torch.zeros(2, 1, 9)), "records must be [n, features]"),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
def test_what_is_refused(make, sentence):
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}") as refused:
        make()
    assert "\n" not in str(refused.value)
