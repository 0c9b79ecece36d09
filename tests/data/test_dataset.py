"""Dataset: what it accepts, what it refuses, and that nobody can change it."""

import copy
import dataclasses
import pickle
from functools import partial

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from dprime.data import Dataset, arrays
from dprime.validate import InputError
from told import refuses


def numbered(count, classes=3):
    """Each record is its own place, so that one can see where it went."""
    places = np.arange(count, dtype=np.float32)
    return Dataset("numbered", places[:, None] + 0.5, np.arange(count) % classes, "table", classes)


def places_of(data):
    return (data.records[:, 0] - 0.5).astype(int).tolist()


def made(records, labels, kind="table", classes=2, columns=()):
    return Dataset("t", records, labels, kind, classes, columns)


def test_types_and_layout():
    records = np.asfortranarray(np.arange(12.0).reshape(4, 3) - 5)
    data = made(records, np.array([0, 1, 0, 1], np.uint8), columns=["a", "b", "c"])
    assert (data.records.dtype, data.labels.dtype) == (np.float32, np.int64)
    assert data.records.flags.c_contiguous
    assert np.array_equal(data.records, records)
    assert (data.columns, len(data)) == (("a", "b", "c"), 4)
    assert made(np.ones((2, 1)), [3, 4], classes=None).labels.dtype == np.float32


def test_neither_a_data_set_nor_a_clone_can_be_written_to():
    own = numbered(3)
    for data in (own, copy.deepcopy(own), pickle.loads(pickle.dumps(own)), own.take([0, 1, 2])):
        assert places_of(data) == [0, 1, 2]
        for array in (data.records, data.labels):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1


def test_writing_to_the_given_array_changes_nothing():
    records, labels = np.zeros((2, 1), np.float32), np.zeros(2, np.int64)
    view = records.view()
    view.setflags(write=False)
    kept = [made(one, labels, "binary") for one in (records, view)]
    records[:] = labels[:] = 1
    for data in kept:
        assert (data.records.max(), data.labels.max()) == (0, 0)
        again = dataclasses.replace(data, name="again")  # what is read-only is not copied
        assert np.shares_memory(again.records, data.records)
        assert np.shares_memory(again.labels, data.labels)


ONES, IMAGES = np.ones((3, 2)), np.zeros((3, 1, 2, 2))
HOLES = np.array([[0, 0], [np.nan, 0], [1e300, np.inf]])
REFUSED = [
    ("the shape of records", np.zeros((0, 2)), []),
    ("the shape of records", ONES, [0, 1, 1], "image"),
    ("the number of records with NaN,", HOLES, [0, 1, 1]),
    ("the number of targets with NaN,", ONES, [0.5, np.nan, 1], "table", None),
    ("the number of records with other", [[0, 1], [0, 0.5]], [0, 1], "binary"),
    ("the shape of labels", ONES, [0, 1]),
    *(("the number of labels that", ONES, [0, wrong, 0]) for wrong in (2, -1, 0.5, np.nan)),
    ("columns", ONES, [0, 1, 1], "table", 2, ("a",)),
    ("columns", IMAGES, [0, 1, 1], "image", 2, ("a",)),
    ("classes", ONES, [0, 1, 1], "table", 1.5),
    ("kind", ONES, [0, 1, 1], "sound"),
    ("records", [[1], [2, 3]], [0, 1]),
    ("labels", ONES, ["a", "b", "c"]),
]
test_what_is_no_data_set = refuses([(name, partial(made, *fields)) for name, *fields in REFUSED])


def test_how_many_records_have_no_number_and_which_is_the_first():
    with pytest.raises(InputError, match=r"it is 2: .* record 1"):
        made(HOLES, [0, 1, 1])


def test_kinds_and_classes_are_guessed_unless_they_are_given():
    for records, kind, shape in (
        (np.zeros((2, 3, 4, 5)), "image", (2, 3, 4, 5)),
        (np.zeros((2, 4, 5)), "image", (2, 1, 4, 5)),
        ([[True, False], [False, True]], "binary", (2, 2)),
        ([[0, 1], [2, 3]], "table", (2, 2)),
    ):
        data = Dataset.of(records, [0, 1])
        assert (data.kind, data.records.shape, data.name) == (kind, shape, "data")
    guesses = [([0, 4], 5), ([0.0, 4.0], 5), ([True, False], 2), ([0.5, 4.0], None), ([0, 0], 1)]
    for labels, classes in guesses:
        assert Dataset.of(np.ones((2, 1)), labels).classes == classes
    given = Dataset.of(np.eye(2), [0, 1], kind="table", classes=10)
    assert (given.kind, given.classes) == ("table", 10)
    for labels in ([0, 1e300], [-1, -1], np.array([0, 2**63], np.uint64)):
        with pytest.raises(InputError):
            Dataset.of(np.ones((2, 1)), labels)


def test_tensors():
    torch = pytest.importorskip("torch")
    records, labels = torch.zeros(2, 1, 4, 4), torch.tensor([0, 1])
    data = Dataset.of(records, labels)
    records += 1
    assert (data.kind, data.records.max()) == ("image", 0)
    with pytest.raises(InputError, match="detach"):
        Dataset.of(torch.ones(2, 3, requires_grad=True), labels)


# --- parts --------------------------------------------------------------------------------------


@hypothesis.given(st.data())
def test_take_is_indexing(data):
    count = data.draw(st.integers(1, 30))
    indices = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=40))
    taken = numbered(count).take(np.array(indices, np.uint8))
    assert places_of(taken) == indices
    assert taken.labels.tolist() == [place % 3 for place in indices]
    mask = np.isin(np.arange(count), indices)
    assert places_of(numbered(count).take(mask.tolist())) == sorted({*indices})


def test_take_keeps_everything_else():
    data = Dataset("t", np.eye(2), [0, 1], "binary", 7, ("a", "b"), sparse=True)
    contents = {"records": None, "labels": None}
    assert vars(data) | contents == vars(data.take([1])) | contents


@hypothesis.given(st.integers(1, 30), st.floats(0.01, 0.99), st.integers(0, 2**32))
def test_draws_and_splits_lose_no_record_and_repeat(count, share, seed):
    data, size = numbered(count), round(share * count)
    for taken in {size, count} - {0}:
        drawn = data.draw(taken, seed)
        assert len({*places_of(drawn)} & {*range(count)}) == taken
        assert drawn.digest() == data.draw(taken, seed).digest()
    if 0 < size < count:
        parts = data.split(share, seed)
        assert len(parts.test) == size
        assert sorted(places_of(parts.train) + places_of(parts.test)) == list(range(count))
        assert parts.train.digest() == data.split(share, seed).train.digest()


def test_every_record_is_as_likely_to_be_drawn():
    hits = np.bincount([places_of(numbered(4).draw(1, seed))[0] for seed in range(2000)])
    assert np.abs(hits - 500).max() < 116  # six standard deviations


THREE = numbered(3)
test_parts_that_cannot_be_taken = refuses([
    *(("index", partial(THREE.take, [0, wrong])) for wrong in (-1, 3)),
    *(
        ("indices", partial(THREE.take, wrong))
        for wrong in ([], [False] * 3, [True, False], [0.0], [[0]], ["a"])
    ),
    ("size", lambda: THREE.draw(4, 0)),
    ("size", lambda: THREE.draw(0, 0)),
    ("seed", lambda: THREE.draw(1, -1)),
    ("test_share", lambda: THREE.split(1, 0)),
    ("test_share", lambda: THREE.split(0.01, 0)),
])  # fmt: skip


# --- contents and columns -----------------------------------------------------------------------


def test_distinct_keeps_the_first_of_each(monkeypatch):
    monkeypatch.setattr(arrays, "ROWS_AT_ONCE", 4)
    records = np.array([[1.0], [2.0], [1.0], [-0.0], [0.0], [2.0]])
    found = Dataset.of(records, [0, 1, 0, 1, 1, 0]).distinct()
    assert found.records.ravel().tolist() == [1.0, 2.0, 0.0, 2.0]
    assert found.labels.tolist() == [0, 1, 1, 0]  # another label is another record
    assert found.distinct() is found


def test_a_digest_tells_contents_shapes_and_types_apart():
    found = [
        made(np.zeros((2, 4)), [0, 0], classes=None),
        made(np.zeros((4, 2)), np.zeros(4), classes=None),
        made(np.zeros((2, 1, 2, 2)), [0, 0], "image", None),
        made(np.zeros((2, 4)), [0, 0], classes=1),
        made(np.zeros((2, 4)), [0, 1], classes=None),
        made(np.eye(2, 4), [0, 0], classes=None),
    ]
    assert len({one.digest() for one in found}) == 6
    assert dataclasses.replace(found[0], name="other").digest() == found[0].digest()


NAMES = ("age", "sex=Female", "sex=Male", "0=no", "0=yes")
PEOPLE = made(np.eye(5), np.arange(5), classes=5, columns=NAMES)


def test_columns_by_index_by_name_and_by_group():
    found = {0: (0,), np.int64(3): (3,), "age": (0,), "sex": (1, 2), "0": (3, 4)}
    for column, places in {**found, ("sex",): (1, 2), ("sex=Male", 0): (2, 0)}.items():
        assert PEOPLE.column(column) == places


WRONG = (5, -1, "height", 1.5, None, True, (), (0, 0), ("age", 0))
test_columns_that_there_are_not = refuses(
    [("attribute", partial(PEOPLE.column, wrong)) for wrong in WRONG]
    + [("attribute", lambda: made(IMAGES, [0, 1, 1], "image").column(0))]
    + [("attribute", lambda: THREE.column("age"))]
)
