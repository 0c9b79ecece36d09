import re

import numpy as np
import pytest

from dprime import DPSGD
from dprime.canaries.base import BATCHES, COINS, PLACES, RECORDS
from dprime.canaries.gradients import GradientCanaries
from dprime.monitor.ledger import StepRecord
from dprime.monitor.monitor import Monitor
from dprime.monitor.opacus_training import OpacusTraining
from planted_opacus import made_private, network, toy
from told import refuses

DIFFERS = pytest.mark.filterwarnings("ignore:The accountant of the privacy engine has recorded")
"""The monitor's own word on what the canaries notice here."""


def attached(canaries, **options):
    private = made_private(network(), toy(), batch=10, **({"noise": 1.0} | options))
    return private, Monitor(**private.parts(), watchers=[canaries], show=None)


def test_coins_are_fair_and_come_from_the_seed():
    coins = GradientCanaries(10_000, seed=1)._inside
    assert abs(coins.mean() - 0.5) < 4 * 0.005
    assert (coins == GradientCanaries(10_000, seed=1)._inside).all()
    assert (coins != GradientCanaries(10_000, seed=2)._inside).any()


def test_purposes_and_steps_share_no_randomness_and_a_secret_seed_is_drawn_anew():
    canaries = GradientCanaries(seed=0)
    streams = [canaries._stream(COINS), canaries._stream(BATCHES), canaries._stream(BATCHES, 1)]
    assert len({float(stream.random()) for stream in streams}) == 3
    assert GradientCanaries()._seed != GradientCanaries()._seed


@pytest.mark.parametrize("purpose", [COINS, PLACES, BATCHES, RECORDS])
def test_no_stream_is_one_that_a_user_draws_from_the_same_seed(purpose):
    own = GradientCanaries(seed=7)._stream(purpose).random(4)
    theirs = [7, [7], [7, purpose], [7, purpose, 0], np.random.SeedSequence(7).spawn(4)[purpose]]
    for seed in theirs:
        assert not np.array_equal(own, np.random.default_rng(seed).random(4))


def test_neither_coins_nor_seed_are_shown():
    canaries = GradientCanaries(60, seed=987654321)
    private, monitor = attached(canaries)
    assert canaries.report() == ""
    private.train(3)
    shown = [repr(canaries), canaries.report(), str(canaries.result().as_json()), monitor.report()]
    assert repr(canaries) == "GradientCanaries(count=60)"
    for text in shown:
        assert "987654321" not in text
        assert "True" not in text


def test_no_noise_stated_is_no_claim():
    canaries = GradientCanaries(60, seed=1)
    private = made_private(network(), toy(), batch=10, noise=0.0)
    training = OpacusTraining(**private.parts())
    canaries.start(training)
    optimizer = private.optimizer
    right = optimizer.add_noise

    def add_noise():
        canaries.before_noise(training)
        right()
        canaries.after_noise(training)

    optimizer.add_noise = add_noise
    private.train(40)
    found = canaries.result()
    assert found.verdict == "no claim"
    assert found.right == found.guesses


def resumed(state=None, history=()):
    """Twenty steps in fresh objects, after what was loaded of a training before."""
    canaries = GradientCanaries(400, seed=3)
    private, monitor = attached(canaries)
    private.engine.accountant.history = list(history)
    if state is not None:
        monitor.load_state_dict(state)
    private.train(20)
    return private, monitor, canaries


@DIFFERS
def test_the_claim_is_that_of_the_whole_training_also_after_a_resume():
    first, saved, _ = resumed()
    for history in ([], first.engine.accountant.history):
        _, monitor, canaries = resumed(saved.state_dict(), history)
        found = canaries.result()
        assert monitor.ledger.mechanism() == DPSGD(1.0, monitor.training.sample_rate, 40)
        assert found.claimed == monitor.ledger.mechanism().curve().epsilon(1e-5)
        assert (found.verdict, found.steps) == ("not refuted", 40)
        assert "No verdict" not in found.report()


@DIFFERS
@pytest.mark.parametrize(
    ("recorded", "sentence"),
    [
        (20, "has recorded 20 steps, and the canaries saw 40. .* load the accountant's state too"),
        (60, "has recorded 60 steps, and the canaries saw 40. .* load the monitor's state too"),
        (40, None),
    ],
)
def test_where_the_monitor_certifies_nothing_the_accountant_is_held_to_its_word(recorded, sentence):
    canaries = GradientCanaries(60, seed=3)
    private, monitor = attached(canaries)
    private.train(40)
    rate = monitor.training.sample_rate
    monitor.ledger.add(StepRecord(0.0, rate))
    private.engine.accountant.history = [(1.0, rate, recorded)]
    found = canaries.result()
    if sentence:
        assert (found.verdict, found.claimed) == ("no claim", None)
        assert re.search(sentence, found.report())
    else:
        assert found.claimed == DPSGD(1.0, rate, 40).curve().epsilon(1e-5)


def twice():
    canaries = GradientCanaries(50, seed=1)
    attached(canaries)[1].detach()
    attached(canaries)


test_what_is_refused = refuses({
    "count be at least 50": lambda: GradientCanaries(20),
    "count be a whole number": lambda: GradientCanaries(99.5),
    "count be at most 579": lambda: attached(GradientCanaries()),
    "seed be a whole number from 0": lambda: GradientCanaries(seed=-1),
    "seed be a whole number": lambda: GradientCanaries(seed=True),
    "confidence be strictly between 0 and 1": lambda: GradientCanaries(confidence=95),
    "canaries be new ones for each training": twice,
    "the state's count be 70": lambda: GradientCanaries(70).load_state_dict(
        GradientCanaries(60).state_dict()
    ),
    "result be asked for after the training": lambda: GradientCanaries(60).result(),
    "data_loader be a Poisson one for canaries": lambda: GradientCanaries(60).start(
        OpacusTraining(**made_private(network(), toy(), noise=1.0, poisson_sampling=False).parts())
    ),
})  # fmt: skip
