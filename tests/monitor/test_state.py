"""Checkpoints: a training that goes on is as if it had not stopped, and another one is refused."""

import io
import warnings

import numpy as np
import pytest
import torch

from dprime.mechanisms import Gaussian
from dprime.monitor import PrivacyWarning, Watcher
from dprime.monitor.state import restore, whole_state
from watching import RATE, certified, trained, watch, watch_shuffled


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


class Counter(Watcher):
    name = "counter"

    def __init__(self):
        self.steps = torch.zeros(1, dtype=torch.long)

    def after_noise(self, training):
        self.steps += 1

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state):
        self.steps = state["steps"]


@pytest.mark.parametrize("poisson", [True, False])
def test_going_on_is_as_if_undisturbed(private, poisson):
    def start():
        made = private(poisson_sampling=poisson)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            return made, watch(made, epochs=3, watchers=[Counter()])

    made, whole = start()
    made.train()
    made.optimizer.noise_multiplier = 2.0
    with pytest.warns(PrivacyWarning, match="changed by hand and accepted"):
        whole.accept_changes()
    made.train(2)

    made, first = start()
    made.train()
    history = made.engine.accountant.history
    saved = through_a_file({"monitor": first.state_dict(), "opacus": history})

    made, second = start()
    made.engine.accountant.history = saved["opacus"]
    second.load_state_dict(saved["monitor"])
    assert str(second) == str(first)
    made.optimizer.noise_multiplier = 2.0
    with pytest.warns(PrivacyWarning, match="changed by hand and accepted"):
        second.accept_changes()
    made.train(2)
    assert second.ledger.entries == whole.ledger.entries
    assert str(second) == str(whole)
    assert second.history() == whole.history()
    assert second.watchers[0].steps.tolist() == [18]


def test_passes_are_not_mistaken_for_those_before(private):
    first = watch_shuffled(made := private(poisson_sampling=False))
    made.step(*next(iter(made.loader)))
    second = watch_shuffled(again := private(poisson_sampling=False))
    again.engine.accountant.history = made.engine.accountant.history
    second.load_state_dict(first.state_dict())
    again.step(*next(iter(again.loader)))
    expected = certified(Gaussian(1.0, steps=2)).curve("replace").advantage()
    assert second.curve().advantage() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sample_rate": 0.5}, "the checkpoint's sample_rate must be 0.1666.* but it is 0.5"),
        ({"sampling": "shuffle"}, "the checkpoint's sampling must be poisson"),
        ({"adjacency": "replace"}, "the checkpoint's adjacency must be zero-out"),
        ({"watchers": [["counter", {}]]}, "the checkpoint's watchers must be none"),
        ({"version": 1}, "state of version 2, but it is of version 1: read it"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(private, change, sentence):
    monitor = watch(private())
    with pytest.raises(ValueError, match=sentence):
        monitor.load_state_dict({**monitor.state_dict(), **change})


def test_a_state_of_something_else_is_refused(private):
    monitor = watch(made := private())
    for other in ({}, made.engine.accountant.state_dict()):
        with pytest.raises(ValueError, match="state must be a monitor's, but it is another"):
            monitor.load_state_dict(other)


def test_other_mechanisms_are_saved_and_must_be_there_again(private):
    state = watch(private(), other_mechanisms=[Gaussian(20.0)]).state_dict()
    assert state["other_mechanisms"] == [Gaussian(20.0).to_dict()]
    state = through_a_file(state)
    watch(private(), other_mechanisms=[Gaussian(20.0)]).load_state_dict(state)
    for other in ((), (Gaussian(30.0),), (Gaussian(20.0), Gaussian(20.0))):
        monitor = watch(private(), other_mechanisms=other)
        with pytest.raises(ValueError, match="checkpoint's other_mechanisms must be as in"):
            monitor.load_state_dict(state)


def test_going_back_is_named(private):
    made, monitor = trained(private())
    state, recorded = monitor.state_dict(), list(made.engine.accountant.history)
    monitor.load_state_dict(state)  # nothing was spent since
    made.train()
    made.engine.accountant.history = recorded
    with pytest.warns(PrivacyWarning, match="does not have all the steps that were seen"):
        monitor.load_state_dict(state)
    assert monitor.ledger.steps == 6


def test_one_warning_of_each_kind_with_its_latest_numbers(private):
    first = watch(made := private())
    made.train()
    second = watch(again := private())
    second.load_state_dict(first.state_dict())
    with pytest.warns(PrivacyWarning) as caught:
        again.train(3)
    own = [warning for warning in caught if warning.category is PrivacyWarning]
    assert len(own) == len(second.warnings) == 1
    assert "has recorded 18 steps, but the monitor has 24:" in second.warnings[0]
    third = watch(private())
    third.load_state_dict(second.state_dict())
    assert third.warnings == second.warnings


def test_another_planned_end_is_named(private):
    state = watch(private(), epochs=2).state_dict()
    monitor = watch(private(), steps=100)
    with pytest.warns(PrivacyWarning, match="to end after 2 epochs, .* after 100 steps"):
        monitor.load_state_dict(state)


def test_both_go_on(private):
    monitor = watch(made := private())
    made.optimizer.noise_multiplier = np.float64(1.0)  # which no safe loading reads
    made.train()
    again = private()
    resumed = watch(again)
    restore(resumed, through_a_file(whole_state(monitor)))
    assert again.engine.get_epsilon(1e-3) == made.engine.get_epsilon(1e-3)
    again.train()
    assert again.engine.accountant.history == [(1.0, RATE, 12)]
    assert str(resumed).startswith("Privacy of this training (epoch 2, step 12)")
    assert resumed.warnings == []


def test_a_state_without_the_accountant_leaves_it(private):
    made, monitor = trained(private())
    restore(monitor, monitor.state_dict())
    assert made.engine.accountant.history == [(1.0, RATE, 6)]
