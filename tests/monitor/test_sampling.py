"""How batches are made, and which of them a step was made of."""

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

from dprime.monitor.problems import Problem
from dprime.monitor.samplers import matched
from dprime.monitor.sampling import FEWER, KEPT, Pass, Sampling

LENGTH = 6


class Backwards(Sampler):
    def __init__(self, size):
        self.size = size

    def __iter__(self):
        return iter(range(self.size, 0, -1))

    def __len__(self):
        return self.size


class Own(BatchSampler):
    pass


class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield 0


def watched(loader):
    sampling = Sampling(loader)
    sampling.watch()
    return sampling


def pending(sampling):
    return [batch.records for batch in sampling.waiting]


def draw(sampling, one, *sizes):
    for size in sizes:
        sampling._draw(size, one)


def drawn(private, *sizes):
    sampling = Sampling(private().loader)
    draw(sampling, Pass(1, LENGTH), *sizes)
    return sampling


def test_poisson_batches_have_the_samplers_own_rate(private):
    """One over 1/93 is a little less than 93: Opacus rounds the length down."""
    for loader, expected in (
        (private.loader(), (1 / 6, 6)),
        (private.loader(batch_size=1, sampler=range(93)), (1 / 93, 92)),
    ):
        sampling = Sampling(private(loader=loader).loader)
        assert (sampling.kind, sampling.rate, sampling.length) == ("poisson", *expected)


@pytest.mark.parametrize(
    ("sampler", "kind"),
    [
        (SequentialSampler(range(60)), "shuffle"),
        (RandomSampler(range(60)), "shuffle"),
        (SubsetRandomSampler([0, 1, 2]), "shuffle"),
        (SubsetRandomSampler([0, 1, 1]), "unknown"),
        (RandomSampler(range(60), replacement=True), "unknown"),
        (RandomSampler(range(60), num_samples=120), "unknown"),
        (WeightedRandomSampler([1.0] * 60, 60), "unknown"),
        (Backwards(60), "unknown"),
    ],
    ids=lambda s: type(s).__name__,
)
def test_only_a_pass_without_repetition_is_a_shuffle(private, sampler, kind):
    sampling = Sampling(private.loader(sampler=sampler))
    assert (sampling.kind, sampling.rate) == (kind, 1 / sampling.length)


def test_batches_of_an_own_sampler_are_not_known(private):
    own = Own(SequentialSampler(range(60)), 10, drop_last=False)
    assert Sampling(DataLoader(private.data(), batch_sampler=own)).kind == "unknown"


def test_a_loader_without_a_length_is_refused():
    with pytest.raises(ValueError, match="data_loader must be one whose sampling rate is known"):
        Sampling(DataLoader(Endless(), batch_size=None))


@pytest.mark.parametrize("poisson", [True, False])
def test_batches_and_passes_are_counted_until_release(private, poisson):
    """A pass that is left is told from one that ended."""
    made = private(poisson_sampling=poisson)
    own = type(made.loader.batch_sampler)
    sampling = watched(made.loader)
    assert isinstance(made.loader.batch_sampler, own)
    _ = list(made.loader)
    assert not sampling.left
    next(iter(made.loader))
    assert (len(sampling.waiting), sampling.passes, sampling.left) == (7, 2, True)
    first, second = iter(made.loader), iter(made.loader)
    next(first), next(second)
    del first  # not the latest
    assert (sampling.left, sampling.under_way) == (False, 1)
    sampling.release()
    assert type(made.loader.batch_sampler) is own
    assert len(list(made.loader)) == 6
    assert sampling.passes == 4


def test_a_batch_that_comes_in_parts_is_one(private):
    made = private()
    sampling = watched(made.loader)
    with BatchMemoryManager(
        data_loader=made.loader, max_physical_batch_size=3, optimizer=made.optimizer
    ) as parts:
        assert (Sampling(parts).kind, Sampling(parts).length) == ("poisson", 6)
        assert len(list(parts)) > 12
    assert (len(sampling.waiting), sampling.passes) == (6, 1)


def test_worker_processes_do_not_hide_what_is_given(private):
    made = private(loader=private.loader(num_workers=1))
    sampling = watched(made.loader)
    assert len(list(made.loader)) == len(sampling.waiting) == 6


def test_empty_places_of_a_data_set_are_no_records():
    class Places(list):
        def present(self, indices):
            return [i for i in indices if i % 2]

    sampling = watched(loader := DataLoader(Places(range(60)), batch_size=7))
    _ = list(loader)
    assert pending(sampling) == [3, 4, 3, 4, 3, 4, 3, 4, 2]


@pytest.mark.parametrize(
    ("parts", "waiting", "found"),
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
def test_the_batches_that_a_step_was_made_of(parts, waiting, found):
    assert matched(parts, waiting) == found


@pytest.mark.parametrize(
    ("sizes", "steps", "left"),
    [
        (
            (8, 9, 10, 11),
            [([10], Problem.SKIPPED), ([9], FEWER), ([11], Problem.ELSEWHERE)], [],
        ),
        *(((10, 11), [(parts, Problem.MULTIPLIED)], [10, 11]) for parts in ([12], [40], [4, 5])),
        ((10, 8, 9, 7), [([6], FEWER), ([7], FEWER)], [9, 7]),  # once some are lost, the next
    ],
)  # fmt: skip
def test_batches_are_used_once_and_those_passed_over_are_gone(private, sizes, steps, left):
    sampling = drawn(private, *sizes)
    for parts, found in steps:
        assert sampling.take(parts) == (1, found)
    assert pending(sampling) == left


def test_the_loop_that_is_under_way_comes_first(private):
    """Or parts of one batch would pass for batches of a pass before, which nobody used."""
    made = private(poisson_sampling=False)
    sampling = watched(made.loader)
    _ = list(made.loader)
    for batch, records in zip(sampling.waiting, [4, 6, 10, 10, 10, 10], strict=True):
        batch.records = records
    loop = iter(made.loader)
    next(loop)
    assert sampling.take([1] * 10) == (1, "")
    assert pending(sampling) == []
    del loop


def test_a_loop_without_steps_is_not_taken_for_the_one_under_way(private):
    """Though a batch of its own would fit: empty ones of the loop under way may be left out."""
    sampling = Sampling(private().loader)
    under_way = Pass(2, LENGTH)
    draw(sampling, Pass(1, LENGTH, ended=True), 5, 8, 9)
    draw(sampling, under_way, 0, 5)
    assert sampling.take([5]) == (1, "")
    draw(sampling, under_way, 7)
    sampling.trained_on(7)
    draw(sampling, under_way, 6)
    assert sampling.take([6]) == (1, Problem.SKIPPED)
    assert pending(sampling) == []


def test_what_was_trained_on_in_another_pass_is_in_a_step(private):
    sampling = Sampling(private().loader)
    latest = Pass(2, LENGTH)
    draw(sampling, Pass(1, LENGTH, left=True), 5)
    draw(sampling, latest, 8)
    assert sampling.take([8]) == (1, "")
    draw(sampling, latest, 9)
    sampling.trained_on(9)
    latest.left = True
    draw(sampling, Pass(3, LENGTH), 7)
    assert sampling.take([7]) == (1, Problem.SKIPPED)


def test_what_is_not_used_is_not_remembered_for_ever(private):
    sampling = drawn(private, *range(KEPT + 5))
    assert pending(sampling) == [*range(5, KEPT + 5)]
