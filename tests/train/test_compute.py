"""Work side by side: everything is done once, errors come out, settings are put back."""

import threading

import pytest
import torch

from dprime.train import Compute
from dprime.train.compute import each


@pytest.fixture(autouse=True)
def three_threads():
    """A setting that nothing else has, and that returns."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    assert torch.get_num_threads() == 3
    torch.set_num_threads(before)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_everything_is_done_once_with_one_thread_for_each_operation(workers):
    done = []
    work = lambda task: done.append((task, torch.get_num_threads()))  # noqa: E731
    each(range(20), work, workers, threading.Event())
    assert sorted(done) == [(task, 3 if workers == 1 else 1) for task in range(20)]


def test_the_first_error_is_raised_and_the_rest_is_left():
    done, stopped = [], threading.Event()

    def work(task):
        if task == 3:
            raise KeyError("three")
        if task > 3:
            assert stopped.wait(10)
        done.append(task)

    with pytest.raises(KeyError, match="three"):
        each(range(1000), work, 2, stopped)
    assert stopped.is_set()
    assert len(done) < 999


def test_a_share_of_the_memory_and_another_place():
    half = Compute(memory=8.0, workers=2).with_memory_fraction(1 / 2)
    assert half == Compute(memory=4.0, workers=2)
    assert half.placed("cuda", 9.0) == Compute("cuda", 4.0, 2)
