"""How batches are made, and how many were given."""

import pytest
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from dprime.monitor.sampling import KEPT, Pass, Sampling, matched


class Backwards(Sampler):
    def __init__(self, size):
        self.size = size

    def __iter__(self):
        return iter(range(self.size, 0, -1))

    def __len__(self):
        return self.size


class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield 0


def test_poisson_batches_have_the_samplers_own_rate(private):
    sampling = Sampling(private().loader)
    assert (sampling.kind, sampling.rate, sampling.length) == ("poisson", 1 / 6, 6)


def test_opacus_rounds_the_length_of_some_loaders_down(private):
    """One over 1/93 is a little less than 93: the rate is right, the length is not."""
    made = private(loader=private.loader(batch_size=1, sampler=range(93)))
    sampling = Sampling(made.loader)
    assert (sampling.rate, sampling.length) == (1 / 93, 92)


SAMPLERS = [
    (SequentialSampler(range(60)), "shuffle"),
    (RandomSampler(range(60)), "shuffle"),
    (SubsetRandomSampler([0, 1, 2]), "shuffle"),
    (SubsetRandomSampler([0, 1, 1]), "unknown"),
    (RandomSampler(range(60), replacement=True), "unknown"),
    (RandomSampler(range(60), num_samples=120), "unknown"),
    (WeightedRandomSampler([1.0] * 60, 60), "unknown"),
    (Backwards(60), "unknown"),
]


@pytest.mark.parametrize(("sampler", "kind"), SAMPLERS, ids=lambda s: type(s).__name__)
def test_only_a_pass_without_repetition_is_a_shuffle(private, sampler, kind):
    sampling = Sampling(private.loader(sampler=sampler))
    assert sampling.kind == kind
    assert sampling.rate == 1 / sampling.length


def test_batches_of_an_own_sampler_are_not_known(private):
    class Own(BatchSampler):
        pass

    own = Own(SequentialSampler(range(60)), 10, drop_last=False)
    assert Sampling(DataLoader(private.data(), batch_sampler=own)).kind == "unknown"


def test_a_loader_without_a_length_is_refused():
    with pytest.raises(ValueError, match="data_loader must be one whose sampling rate is known"):
        Sampling(DataLoader(Endless(), batch_size=None))


@pytest.mark.parametrize("poisson", [True, False])
def test_batches_and_passes_are_counted_until_release(private, poisson):
    made = private(poisson_sampling=poisson)
    sampling, own = Sampling(made.loader), type(made.loader.batch_sampler)
    sampling.watch()
    assert isinstance(made.loader.batch_sampler, own)
    for _ in made.loader:
        pass
    next(iter(made.loader))
    assert (sampling.given, sampling.passes) == (7, 2)
    sampling.release()
    assert type(made.loader.batch_sampler) is own
    assert len(list(made.loader)) == 6
    assert (sampling.given, sampling.passes) == (7, 2)


def test_a_batch_that_comes_in_parts_is_one(private):
    made = private()
    sampling = Sampling(made.loader)
    sampling.watch()
    with BatchMemoryManager(
        data_loader=made.loader, max_physical_batch_size=3, optimizer=made.optimizer
    ) as parts:
        assert Sampling(parts).kind == "poisson"
        assert Sampling(parts).length == 6
        assert len(list(parts)) > 12
    assert (sampling.given, sampling.passes) == (6, 1)


def test_worker_processes_do_not_hide_what_is_given(private):
    made = private(loader=private.loader(num_workers=1))
    sampling = Sampling(made.loader)
    sampling.watch()
    assert len(list(made.loader)) == 6
    assert sampling.given == 6


@pytest.mark.parametrize(
    ("parts", "pending", "found"),
    [
        ([10], [10], (0, 1)),
        ([10], [4, 6, 10], (2, 1)),  # not the two before, which would need two parts
        ([4, 6], [4, 6, 10], (0, 2)),
        ([4, 6], [5, 10], (1, 1)),
        ([3, 3, 5], [6, 5], (0, 2)),
        ([20], [10, 10], None),
        ([0], [5, 0], (1, 1)),
        ([5], [0, 5, 0], (1, 1)),
        ([5, 0], [5, 0, 0], (0, 2)),  # an empty batch was drawn too
        ([0, 0], [0, 0, 0], (0, 2)),
        ([0, 5], [0, 5], (0, 2)),
        ([5], [], None),
    ],
)
def test_the_batches_that_a_step_was_made_of(parts, pending, found):
    assert matched(parts, pending) == found


def drawn(private, *sizes):
    sampling = Sampling(private().loader)
    for size in sizes:
        sampling._drawn(size)
    return sampling


def test_batches_are_used_once_and_those_passed_over_are_gone(private):
    sampling = drawn(private, 8, 9, 10, 11)
    assert sampling.take([10]) == (1, "skipped")
    assert sampling.pending == [11]
    assert sampling.take([9]) == (1, "fewer")
    assert sampling.take([11]) == (1, "elsewhere")


def test_the_loop_that_is_under_way_comes_first(private):
    """Or parts of one batch would pass for batches of a pass before, which nobody used."""
    made = private(poisson_sampling=False)
    sampling = Sampling(made.loader)
    sampling.watch()
    _ = list(made.loader)
    for batch, records in zip(sampling.waiting, [4, 6, 10, 10, 10, 10], strict=True):
        batch.records = records
    loop = iter(made.loader)
    next(loop)
    assert sampling.take([1] * 10) == (1, "")
    assert sampling.pending == []
    del loop


def test_a_loop_without_steps_is_not_taken_for_the_one_under_way(private):
    """Though a batch of its own would fit: empty ones of the loop under way may be left out."""
    sampling = Sampling(private().loader)
    looked, under_way = Pass(1, ended=True), Pass(2)
    for size in (5, 8, 9):
        sampling._drawn(size, looked)
    sampling.latest = under_way
    for size in (0, 5):
        sampling._drawn(size, under_way)
    assert sampling.take([5]) == (1, "")
    sampling._drawn(7, under_way)
    sampling.trained_on(7)
    sampling._drawn(6, under_way)
    assert sampling.take([6]) == (1, "skipped")
    assert sampling.pending == []


def test_what_was_trained_on_in_another_pass_is_in_a_step(private):
    sampling = Sampling(private().loader)
    left, latest = Pass(1, left=True), Pass(2)
    sampling._drawn(5, left)
    sampling.latest = latest
    sampling._drawn(8, latest)
    assert sampling.take([8]) == (1, "")
    sampling._drawn(9, latest)
    sampling.trained_on(9)
    latest.left, sampling.latest = True, Pass(3)
    sampling._drawn(7, sampling.latest)
    assert sampling.take([7]) == (1, "skipped")


@pytest.mark.parametrize("parts", [[12], [40], [4, 5]])
def test_records_that_fit_nothing_that_was_drawn(private, parts):
    sampling = drawn(private, 10, 11)
    assert sampling.take(parts) == (1, "more")


def test_once_records_are_lost_the_next_batch_is_meant(private):
    sampling = drawn(private, 10, 8, 9, 7)
    assert sampling.take([6]) == (1, "fewer")
    assert sampling.take([7]) == (1, "fewer")
    assert sampling.pending == [9, 7]


def test_what_is_not_used_is_not_remembered_for_ever(private):
    sampling = drawn(private, *range(KEPT + 5))
    assert len(sampling.pending) == KEPT
    assert sampling.pending[-1] == KEPT + 4


@pytest.mark.parametrize("poisson", [True, False])
def test_a_pass_that_is_left_is_told_from_one_that_ended(private, poisson):
    made = private(poisson_sampling=poisson)
    sampling = Sampling(made.loader)
    sampling.watch()
    _ = list(made.loader)
    assert not sampling.left
    next(iter(made.loader))
    assert sampling.left
    first = iter(made.loader)
    next(first)
    second = iter(made.loader)
    next(second)
    del first  # not the latest
    assert not sampling.left
    assert sampling.under_way == 1


def test_empty_places_of_a_data_set_are_no_records():
    class Places(list):
        def present(self, indices):
            return [i for i in indices if i % 2]

    sampling = Sampling(loader := DataLoader(Places(range(60)), batch_size=7))
    sampling.watch()
    _ = list(loader)
    assert sampling.pending == [3, 4, 3, 4, 3, 4, 3, 4, 2]
