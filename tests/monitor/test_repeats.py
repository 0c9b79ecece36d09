"""Batches that come again are told from those that look alike by chance."""

import pytest
import torch

from dprime.monitor.repeats import REMEMBERED, RUN, RUNS, Repeats, first_records


def batch(seed, rows=40, columns=5):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def again(repeats, *batches):
    for records in batches:
        repeats.see(records)
    return repeats.step([len(records) for records in batches])


@pytest.mark.parametrize(
    "change",
    [lambda x: x, torch.clone, lambda x: x.double(), lambda x: x.reshape(40, 1, 5)],
    ids=["same", "copy", "type", "shape"],
)
def test_the_same_batch_in_a_later_step(change):
    repeats = Repeats(1000)
    assert not again(repeats, batch(1))
    assert not again(repeats, batch(2))
    assert again(repeats, change(batch(1)))


def test_a_batch_in_parts_of_which_one_comes_again():
    repeats = Repeats(1000)
    assert not again(repeats, batch(1), batch(2))
    assert again(repeats, batch(3), batch(2))
    assert again(repeats, batch(4), batch(4))


def test_a_batch_that_is_only_looked_at_is_no_part_of_the_step():
    repeats, checked = Repeats(1000), batch(9, rows=50)
    for seed in range(3):
        repeats.see(checked)
        assert not again(repeats, batch(seed))


@pytest.mark.parametrize(
    ("records", "rows"),
    [(1000, 1), (1000, 5), (40, 40), (41, 40), (1000, 0)],
)
def test_what_may_be_drawn_again_by_chance_is_not_judged(records, rows):
    repeats = Repeats(records)
    assert not again(repeats, batch(1, rows))
    assert not again(repeats, batch(1, rows))


def test_records_that_are_alike_tell_nothing():
    repeats = Repeats(1000)
    mostly = torch.zeros(40, 5)
    mostly[3] = 1.0
    for _ in range(2):
        assert not again(repeats, torch.ones(40, 5))
        assert not again(repeats, mostly)


def test_few_kinds_of_records_tell_little_where_data_are_sorted():
    """Which is all that a batch of two kinds tells there: how many of each."""
    column = (batch(1, 200, 1) > 0).float().sort(dim=0).values
    repeats = Repeats(None)
    assert not again(repeats, column)
    assert not again(repeats, column)


def test_many_kinds_tell_enough():
    numbers = torch.randint(0, 30, (200, 1), generator=torch.Generator().manual_seed(1))
    repeats = Repeats(None)
    assert not again(repeats, numbers)
    assert not again(repeats, numbers.flip(0))
    assert again(repeats, numbers)


def test_numbers_of_words_and_what_is_named():
    words = torch.randint(0, 1000, (40, 7), generator=torch.Generator().manual_seed(1))
    repeats = Repeats(None)
    repeats.see(first_records([None, {"mask": "none"}, [{"ids": words}]]))
    assert not repeats.step([40])
    assert again(repeats, words)
    nothing = ["nothing", torch.ones(40, 2).to_sparse(), torch.ones(40, 2) * 1j]
    assert first_records(nothing) is None


def test_only_some_values_of_large_records_are_looked_at():
    large = batch(1, 40, 5 * RUN * RUNS + 3)
    repeats = Repeats(1000)
    assert not again(repeats, large)
    repeats.see(large)
    assert repeats._now[0][1].shape[1] <= RUN * RUNS
    assert repeats.step([40])


def test_it_forgets(monkeypatch):
    repeats = Repeats(1000)
    again(repeats, batch(1))
    repeats.forget()
    assert not again(repeats, batch(1))
    assert REMEMBERED > 10_000
    monkeypatch.setattr("dprime.monitor.repeats.REMEMBERED", 2)
    for seed in (2, 3, 4):
        again(repeats, batch(seed))
    assert not again(repeats, batch(1))
    assert again(repeats, batch(4))


@pytest.mark.parametrize("place", [0, 480], ids=["at the front", "at the end"])
def test_padded_records_are_known_by_what_is_not_padded(place):
    words = torch.zeros(40, 512, dtype=torch.long)
    words[:, place : place + 30] = torch.randint(
        1, 1000, (40, 30), generator=torch.Generator().manual_seed(1)
    )
    repeats = Repeats(1000)
    assert not again(repeats, words[:1])
    assert not again(repeats, words)
    assert again(repeats, words)
