"""Dataset: what it accepts, what it refuses, and that nobody can change it."""

import copy
import dataclasses
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime.data import Dataset, Split

SENTENCE = re.compile(r"^[^\n]+ must be [^\n]+, but it is [^\n]+: [^\n]+[^.]\.$")


def refused(make, *parts):
    """The call is refused with one sentence in the project's form that names all parts."""
    with pytest.raises(ValueError, match="must be") as caught:
        make()
    sentence = str(caught.value)
    assert SENTENCE.match(sentence), sentence
    for part in parts:
        assert str(part) in sentence, sentence


def numbered(count, classes=3):
    """Each record is its own place, so that one can see where it went."""
    places = np.arange(count, dtype=np.float32)
    return Dataset("numbered", places[:, None] + 0.5, np.arange(count) % classes, "table", classes)


def places_of(data):
    return (data.records[:, 0] - 0.5).astype(int).tolist()


class TestWhatIsKept:
    def test_types_and_layout(self):
        records = np.asfortranarray(np.arange(12.0).reshape(4, 3))
        data = Dataset("t", records, np.array([0, 1, 0, 1], np.uint8), "table", 2, ("a", "b", "c"))
        assert data.records.dtype == np.float32
        assert data.records.flags.c_contiguous
        assert data.labels.dtype == np.int64
        assert np.array_equal(data.records, records)
        assert data.columns == ("a", "b", "c")
        assert len(data) == 4

    def test_regression_targets_are_floats(self):
        data = Dataset("t", np.ones((2, 1)), [3, 4], "table", None)
        assert data.labels.dtype == np.float32
        assert data.labels.tolist() == [3, 4]

    def test_whole_floats_are_classes(self):
        assert Dataset("t", np.ones((2, 1)), [0.0, 1.0], "table", 2).labels.dtype == np.int64

    def test_it_cannot_be_written_to(self):
        data = numbered(3)
        for array in (data.records, data.labels):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
        with pytest.raises(dataclasses.FrozenInstanceError):
            data.name = "other"

    def test_writing_to_the_given_array_changes_nothing(self):
        records, labels = np.zeros((2, 1), np.float32), np.zeros(2, np.int64)
        locked = records.view()
        locked.setflags(write=False)
        for given_records in (records, locked):
            records[:] = 0
            data = Dataset("t", given_records, labels, "binary", 2)
            records[:] = 1
            labels[:] = 1
            assert data.records.max() == 0
            assert data.labels.max() == 0
            labels[:] = 0
        assert records.flags.writeable

    def test_a_locked_array_is_not_copied(self):
        data = numbered(3)
        again = dataclasses.replace(data, name="again")
        assert np.shares_memory(again.records, data.records)
        assert np.shares_memory(again.labels, data.labels)

    @pytest.mark.parametrize("clone", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
    def test_a_clone_cannot_be_written_to_either(self, clone):
        data = clone(numbered(3))
        assert places_of(data) == [0, 1, 2]
        assert not data.records.flags.writeable
        assert not data.labels.flags.writeable

    def test_repr_is_short(self):
        assert repr(numbered(1)) == "Dataset('numbered', 1 record of 1, table, 3 classes)"
        images = Dataset("i", np.zeros((2000, 3, 4, 5)), np.zeros(2000), "image", 10)
        assert repr(images) == "Dataset('i', 2,000 records of 3×4×5, image, 10 classes)"


class TestWhatIsRefused:
    @pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
    def test_empty(self, shape):
        labels = np.zeros(shape[0])
        refused(lambda: Dataset("t", np.zeros(shape), labels, "table", 2), "shape", shape)

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
    def test_not_finite(self, value):
        records = np.zeros((5, 2))
        records[3] = records[4, 1] = value
        refused(lambda: Dataset("t", records, np.zeros(5), "table", 2), "it is 2:", "record 3")

    def test_not_finite_targets(self):
        targets = [0.5, np.nan, 1.5]
        refused(
            lambda: Dataset("t", np.ones((3, 1)), targets, "table", None), "it is 1", "record 1"
        )

    @pytest.mark.parametrize("labels", [[0], [0, 1, 1], [[0], [1]]])
    def test_count(self, labels):
        refused(lambda: Dataset("t", np.ones((2, 1)), labels, "table", 2), "2 records")

    @pytest.mark.parametrize(
        ("labels", "wrong"),
        [([0, 2, 5], "2"), ([0, -1, 0], "-1"), ([0, 0.5, 1], "0.5"), ([0, np.nan, 1], "nan")],
    )
    def test_labels(self, labels, wrong):
        sentence = f"record 1 must be a whole number from 0 to 1, but it is {wrong}"
        refused(lambda: Dataset("t", np.ones((3, 1)), labels, "table", 2), sentence)

    def test_labels_beyond_what_an_index_holds(self):
        labels = np.array([0, 2**63], np.uint64)
        refused(lambda: Dataset.of(np.ones((2, 1)), labels), "record 1", 2**63)

    def test_shapes_of_kinds(self):
        refused(lambda: Dataset("t", np.zeros((2, 3)), [0, 1], "image", 2), "(2, 3)", "channels")
        refused(lambda: Dataset("t", np.zeros((2, 1, 3, 3)), [0, 1], "table", 2), "(2, 1, 3, 3)")

    def test_images_may_be_standardised(self):
        images = np.linspace(-2, 2, 18).reshape(2, 1, 3, 3)
        assert Dataset("t", images, [0, 1], "image", 2).records.min() == -2

    def test_binary(self):
        records = [[0, 1], [0, 0.5]]
        refused(lambda: Dataset("t", records, [0, 1], "binary", 2), "feature 1 of record 1", 0.5)

    def test_columns(self):
        refused(lambda: Dataset("t", np.ones((2, 2)), [0, 1], "table", 2, ("a",)), "2 names")
        images = np.zeros((2, 1, 2, 2))
        refused(lambda: Dataset("t", images, [0, 1], "image", 2, ("a",)), "columns")

    @pytest.mark.parametrize("classes", [0, -1, 1.5, "two"])
    def test_classes(self, classes):
        refused(lambda: Dataset("t", np.ones((1, 1)), [0], "table", classes), "classes")

    def test_kind(self):
        refused(lambda: Dataset("t", np.ones((1, 1)), [0], "sound", 1), "image, binary, table")

    @pytest.mark.parametrize("records", [[[1], [2, 3]], [["a"], ["b"]], [[1j], [2]], None])
    def test_not_numbers(self, records):
        refused(lambda: Dataset.of(records, [0, 1]), "array of numbers")


class TestOf:
    @pytest.mark.parametrize(
        ("records", "kind", "shape"),
        [
            (np.zeros((2, 3, 4, 5)), "image", (2, 3, 4, 5)),
            (np.zeros((2, 4, 5)), "image", (2, 1, 4, 5)),
            (np.eye(2), "binary", (2, 2)),
            ([[True, False], [False, True]], "binary", (2, 2)),
            (np.full((2, 2), 0.5), "table", (2, 2)),
            ([[0, 1], [2, 3]], "table", (2, 2)),
        ],
    )
    def test_kind_is_guessed(self, records, kind, shape):
        data = Dataset.of(records, [0, 1])
        assert data.kind == kind
        assert data.records.shape == shape
        assert data.name == "data"

    def test_kind_can_be_given(self):
        assert Dataset.of(np.eye(2), [0, 1], kind="table").kind == "table"
        assert Dataset.of(np.zeros((2, 3, 3)), [0, 1], kind="image").records.ndim == 4
        refused(lambda: Dataset.of(np.zeros((2, 3, 3)), [0, 1], kind="table"), "(2, 3, 3)")

    @pytest.mark.parametrize(
        ("labels", "classes"),
        [([0, 4], 5), ([0.0, 4.0], 5), ([True, False], 2), ([0.5, 4.0], None), ([0, 0], 1)],
    )
    def test_classes_are_guessed(self, labels, classes):
        assert Dataset.of(np.ones((2, 1)), labels).classes == classes

    def test_classes_can_be_given(self):
        assert Dataset.of(np.ones((2, 1)), [0, 1], classes=10).classes == 10
        refused(lambda: Dataset.of(np.ones((2, 1)), [0.5, 1], classes=10), "record 0", 0.5)

    @pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
    def test_labels_without_end_are_no_classes(self, value):
        refused(lambda: Dataset.of(np.ones((2, 1)), [0, value]), "targets", "record 1")

    def test_negative_labels(self):
        refused(lambda: Dataset.of(np.ones((2, 1)), [-1, 1]), "record 0", "it is -1")
        refused(lambda: Dataset.of(np.ones((2, 1)), [-1, -1]), "record 0", "it is -1")

    def test_tensors(self):
        torch = pytest.importorskip("torch")
        records, labels = torch.zeros(2, 1, 4, 4), torch.tensor([0, 1])
        data = Dataset.of(records, labels)
        records += 1
        assert data.kind == "image"
        assert data.records.max() == 0
        learned = torch.ones(2, 3, requires_grad=True)
        refused(lambda: Dataset.of(learned, labels), "Tensor", "detach")


class TestTake:
    @given(st.data())
    def test_it_is_indexing(self, data):
        count = data.draw(st.integers(1, 30))
        indices = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=40))
        taken = numbered(count).take(indices)
        assert places_of(taken) == indices
        assert taken.labels.tolist() == [place % 3 for place in indices]
        assert not taken.records.flags.writeable

    def test_everything_else_stays(self):
        data = Dataset("t", np.eye(2), [0, 1], "binary", 7, ("a", "b")).take([1])
        assert (data.name, data.kind, data.classes, data.columns) == ("t", "binary", 7, ("a", "b"))

    def test_a_mask(self):
        assert places_of(numbered(3).take([True, False, True])) == [0, 2]
        assert places_of(numbered(3).take(np.array([2, 0], np.uint8))) == [2, 0]

    @pytest.mark.parametrize("wrong", [-1, 3, 10**12])
    def test_index_out_of_range(self, wrong):
        refused(lambda: numbered(3).take([0, wrong]), "between 0 and 2", f"it is {wrong}")

    @pytest.mark.parametrize(
        "indices", [[], [False] * 3, [True, False], [0.0], [[0]], 0, ["a"], [None]]
    )
    def test_no_indices(self, indices):
        refused(lambda: numbered(3).take(indices), "indices")


class TestDraw:
    @given(st.data(), st.integers(0, 2**32))
    def test_without_replacement_and_repeatable(self, data, seed):
        count = data.draw(st.integers(1, 30))
        size = data.draw(st.integers(1, count))
        drawn = places_of(numbered(count).draw(size, seed))
        assert len(set(drawn)) == size
        assert set(drawn) <= set(range(count))
        assert drawn == places_of(numbered(count).draw(size, seed))

    def test_every_record_is_as_likely(self):
        data = numbered(4)
        hits = np.bincount([places_of(data.draw(1, seed))[0] for seed in range(2000)])
        # 500 expected; six standard deviations are 116.
        assert np.abs(hits - 500).max() < 116

    def test_seeds_differ(self):
        assert places_of(numbered(50).draw(50, 0)) != places_of(numbered(50).draw(50, 1))

    def test_refusals(self):
        refused(lambda: numbered(3).draw(4, 0), "at most 3", "it is 4")
        refused(lambda: numbered(3).draw(0, 0), "size")
        for seed in (-1, 0.5, None, True):
            refused(lambda seed=seed: numbered(3).draw(1, seed), "seed", seed)


class TestSplit:
    @given(st.integers(2, 60), st.floats(0.01, 0.99), st.integers(0, 2**32))
    def test_a_partition(self, count, share, seed):
        size = round(share * count)
        if not 0 < size < count:
            refused(lambda: numbered(count).split(share, seed), "test_share", share)
            return
        parts = numbered(count).split(share, seed)
        assert isinstance(parts, Split)
        assert len(parts.test) == size
        assert sorted(places_of(parts.train) + places_of(parts.test)) == list(range(count))
        again = numbered(count).split(share, seed)
        assert places_of(parts.train) == places_of(again.train)

    def test_refusals(self):
        refused(lambda: numbered(1).split(0.5, 0), "test_share", "1 record")
        for share in (0, 1, -1, 2, "half"):
            refused(lambda share=share: numbered(9).split(share, 0), "test_share")
