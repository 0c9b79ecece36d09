"""An epoch is a pass over the loader in which steps were made."""

import pytest
from torch.utils.data import DataLoader

from dprime import DPSGD
from dprime.monitor import PrivacyWarning
from private_training import Maker
from watching import RATE, certified, trained, watch


def pairs(monitor):
    return [(at.epoch, at.step) for at in monitor.history()]


def part(made, batches):
    for number, (records, labels) in enumerate(made.loader):
        made.step(records, labels)
        if number + 1 == batches:
            break


def places(lines):
    return [line.split(":")[0] for line in lines]


def test_each_pass_that_is_left_early_is_an_epoch(private):
    made, lines = private(), []
    monitor = watch(made, epochs=2, show=lines.append)
    part(made, 2)
    assert (monitor.epochs, pairs(monitor)) == (1, [(1, 2)])
    part(made, 3)
    assert places(lines) == ["epoch 1 of 2, step 2 of 12"]  # when the next pass began
    assert pairs(monitor) == [(1, 2), (2, 5)]
    assert "(epoch 2 of 2, step 5 of 12)" in str(monitor)


def test_a_pass_that_was_interrupted_ends_with_the_first_step_of_the_next(private):
    made, lines = private(), []
    monitor = watch(made, epochs=2, show=lines.append)
    kept = iter(made.loader)  # as the traceback of an interrupt keeps it
    for _ in range(2):
        made.step(*next(kept))
    assert monitor.epochs == 0
    with pytest.warns(PrivacyWarning, match="past its planned end"):
        made.train(2)
    assert places(lines) == [
        "epoch 1 of 2, step 2 of 12",
        "epoch 2 of 2, step 8 of 12",
        "epoch 3, past the planned 2, step 14, past the planned 12",
    ]
    assert "planned end" not in lines[-1]
    assert "at the planned end" not in str(monitor)
    assert [at.value for at in monitor.history()] == [
        certified(DPSGD(1.0, RATE, steps)).curve().advantage() for steps in (2, 8, 14)
    ]
    assert len(monitor.warnings) == 1  # the accountant is not asked in the middle of a step


def test_looking_at_the_data_is_no_epoch(private):
    made, lines = private(), []
    monitor = watch(made, show=lines.append)
    next(iter(made.loader))
    loop = iter(made.loader)
    for number, (records, labels) in enumerate(loop):
        made.step(records, labels)
        if number == 2:
            _ = list(made.loader)
    _ = list(made.loader)
    made.train()
    assert pairs(monitor) == [(1, 6), (2, 12)]
    assert places(lines) == ["epoch 1, step 6", "epoch 2, step 12"]


def passed_over(made):
    for _ in range(2):
        for number, (records, labels) in enumerate(made.loader):
            if number % 2:
                made.step(records, labels)


def repeated(made):
    for _ in range(2):
        for records, labels in made.loader:
            made.step(records.repeat(3, 1), labels.repeat(3))


def used_again(made):
    batches = list(made.loader)
    _ = list(made.loader), list(made.loader)
    made.train(3, loader=batches)


ALL = [(1, 6), (2, 12)]
LOOPS = {
    "one by one": (lambda made: [made.step(*next(iter(made.loader))) for _ in range(13)], ALL),
    "one by one, left": (lambda made: [part(made, 1) for _ in range(13)], ALL),
    "some passed over": (passed_over, [(1, 3), (2, 6)]),
    "drawn ahead": (lambda made: [made.train(loader=list(made.loader)) for _ in range(2)], ALL),
    "that nobody saw": (lambda made: made.train(2, loader=Maker.loader()), ALL),
    "that fit none": (repeated, ALL),
    "used again": (used_again, [*ALL, (3, 18)]),
}


@pytest.mark.filterwarnings("ignore::dprime.monitor.PrivacyWarning")
@pytest.mark.parametrize("loop", LOOPS)
def test_batches_of_any_loop_make_epochs(private, loop):
    made, lines = private(), []
    monitor = watch(made, show=lines.append)
    LOOPS[loop][0](made)
    assert pairs(monitor) == LOOPS[loop][1]
    assert places(lines) == [f"epoch {number}, step {step}" for number, step in pairs(monitor)]


def test_an_epoch_that_seemed_over_is_corrected(private):
    monitor = watch(made := private())
    ahead = list(made.loader)
    for records, labels in ahead[:4]:
        made.step(records, labels)
    loop = iter(made.loader)
    next(loop)  # all of the pass before were drawn
    assert pairs(monitor) == [(1, 4)]
    monitor._progress.epochs.step(monitor._progress.epochs._closed, 1)
    monitor._progress.epochs.end(6)
    assert pairs(monitor) == [(1, 6)]


@pytest.mark.filterwarnings("ignore:The privacy engine had recorded")
def test_steps_before_the_monitor_are_epochs_too(private):
    made = private()
    made.train()
    monitor = watch(made)
    assert monitor.epochs == 1
    made.train()
    assert pairs(monitor) == [(2, 12)]
    state = monitor.state_dict()
    again = private()
    resumed = watch(again)
    resumed.load_state_dict(state)
    assert (resumed.epochs, pairs(resumed)) == (2, [(2, 12)])


def test_lines_end_with_the_monitor(private):
    made, lines = private(), []
    monitor = watch(made, show=lines.append)
    for number, (records, labels) in enumerate(made.loader):
        made.step(records, labels)
        if number == 3:
            monitor.detach()
    assert lines == []


def test_the_numbers_of_an_epoch_in_json(private):
    _, monitor = trained(private())
    (at,) = monitor.history()
    assert at.as_json() == {"epoch": 1, "step": 6, "value": at.value, "kind": "certified"}


def test_a_planned_end_between_epochs_is_said_as_given(private):
    monitor = watch(private(loader=DataLoader(private.data(), batch_size=7)), epochs=2.5)
    assert repr(monitor) == "<Monitor: epoch 0 of 2.5, step 0 of 23>"  # 2.556 of 9
