import numpy as np
import pytest
import torch
from opacus.utils.batch_memory_manager import BatchMemoryManager

from dprime import DPSGD
from dprime.canaries import gradients
from dprime.canaries.gradients import GradientCanaries, log_ratio
from dprime.monitor.monitor import Monitor
from dprime.monitor.opacus_training import OpacusTraining
from planted_opacus import MISTAKES, MODES, made_private, network, toy

REPLACED = pytest.mark.filterwarnings("ignore:Not private. the optimizer's own clipping")
"""The monitor notices some mistakes in its own way; here the canaries are to find them."""

STEPS, NOISE, COUNT = 40, 0.77, 400
"""ε = 8 at δ = 1e-5 with a tenth of the records a step."""


def audited(mistake=None, *, steps=STEPS, seed=3, **options):
    """The canaries at the end of one training."""
    private = made_private(network(), toy(), **({"noise": NOISE, "batch": 10} | options))
    if mistake is not None:
        MISTAKES[mistake](private)
    canaries = GradientCanaries(COUNT, seed=seed)
    Monitor(**private.parts(), watchers=[canaries], show=None)
    private.train(steps)
    return canaries


@pytest.mark.parametrize("mode", MODES)
def test_a_right_training_is_not_refuted(mode):
    found = audited(mode=mode).result()
    assert found.verdict == "not refuted"
    assert found.needed is not None
    assert found.steps == STEPS
    assert found.claimed == pytest.approx(DPSGD(NOISE, 0.1, STEPS).curve().epsilon(1e-5))
    assert 0.0 < found.bound < found.claimed


@REPLACED
@pytest.mark.filterwarnings("ignore:Not private. a part of a gradient was not clipped")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_mistake_is_found(mistake, mode):
    found = audited(mistake, mode=mode).result()
    if mode == "ghost" and mistake == "clipping left out":
        assert found.verdict == "not refuted"
        assert "Clipping was not on the test" in found.report()
    else:
        assert found.verdict == "refuted"
    if mistake == "the same noise every step":  # the score that is made for it
        assert found.counted["likelihood ratio"] < found.counted["repeated noise"]


def test_a_large_batch_in_parts_is_one_step():
    private = made_private(network(), toy(), noise=NOISE, batch=10)
    canaries = GradientCanaries(COUNT, seed=3)
    Monitor(**private.parts(), watchers=[canaries], show=None)
    with BatchMemoryManager(
        data_loader=private.loader, max_physical_batch_size=4, optimizer=private.optimizer
    ) as loader:
        private.train(30, loader)
    made = sum(steps for _, _, steps in private.engine.accountant.history)
    assert canaries.result().steps == made < 30


def test_per_layer_clipping_cuts_a_canary_to_its_layer():
    norms = [0.1, 0.2, 0.3, 0.4]
    canaries = audited(steps=1, clipping="per_layer", clip_norm=norms)
    total = np.linalg.norm(norms)
    assert canaries._reach == pytest.approx(np.array(norms)[canaries._places.owner] / total)
    assert audited(clipping="per_layer", clip_norm=norms).result().verdict == "not refuted"


# What is added, and what is seen ------------------------------------------------------------------


@pytest.fixture
def step():
    """A training before the noise of its first step, with canaries of which all are drawn."""

    def made(mode, clip_norm=2.0):
        own = {"noise": NOISE, "batch": 100, "mode": mode, "clip_norm": clip_norm}
        private = made_private(network(), toy(), **own)
        training = OpacusTraining(**private.parts())
        canaries = GradientCanaries(COUNT, seed=3)
        canaries.start(training)
        x, y = next(iter(private.loader))
        private.optimizer.zero_grad()
        private.criterion(private.model(x), y).backward()
        if mode == "ghost":
            private.optimizer.accumulate()
        else:
            private.optimizer.clip_and_accumulate()
        return training, canaries

    return made


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("at_once", [2**24, 3000])
def test_the_canaries_that_are_in_are_added_clipped_and_nothing_else(
    step, mode, at_once, monkeypatch
):
    monkeypatch.setattr(gradients, "MOST_NUMBERS", at_once)
    training, canaries = step(mode)
    before = torch.cat([part.clone() for part in training.summed()])
    kept = [getattr(p, "grad_sample", None) for p in training.parameters()]
    canaries.before_noise(training)
    added = torch.cat(list(training.summed())) - before
    after = [getattr(p, "grad_sample", None) for p in training.parameters()]
    assert all(a is k for a, k in zip(after, kept, strict=True))
    expected = np.where(canaries._inside, 2.0 * canaries._signs, 0.0)
    assert canaries._read(iter(added.split([p.numel() for p in training.parameters()]))) == (
        pytest.approx(expected, abs=1e-5)
    )
    assert int((added.abs() > 1e-5).sum()) == canaries._inside.sum()


def test_what_is_seen_is_the_canary_and_the_noise(step):
    training, canaries = step("hooks")
    weights = zip(canaries._places.owner, canaries._places.offset, strict=True)
    assert len({*weights}) == COUNT  # each has one of its own
    canaries.before_noise(training)
    training.optimizer.add_noise()
    canaries.after_noise(training)
    signed = canaries._before[canaries._inside].mean(), canaries._before[~canaries._inside].mean()
    error = NOISE / np.sqrt(COUNT / 2)
    assert signed[0] == pytest.approx(1.0, abs=4 * error)
    assert signed[1] == pytest.approx(0.0, abs=4 * error)
    assert canaries._before.std() == pytest.approx(np.hypot(NOISE, 0.5), rel=0.15)


def test_a_step_that_is_not_finite_adds_nothing_and_is_told(step):
    training, canaries = step("hooks")
    canaries.before_noise(training)
    training.optimizer.add_noise()
    for p in training.parameters():
        p.grad.fill_(torch.nan)
    canaries.after_noise(training)
    assert not canaries._ratio.any()
    assert "1 of the steps had numbers that were not finite" in canaries.result().report()


# The score ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.1), (0.5, 0.9), (3.0, 1.0)])
def test_the_score_is_the_likelihood_ratio(noise, rate):
    x, reach = np.linspace(-3, 4, 15), 0.7

    def density(mean):
        return np.exp(-((x - mean) ** 2) / (2 * noise**2))

    expected = np.log(((1 - rate) * density(0) + rate * density(reach)) / density(0))
    assert log_ratio(x, reach, noise, rate) == pytest.approx(expected)
    assert np.isfinite(log_ratio(np.array([-1e30, 1e30]), reach, 0.0, rate)).all()


# Resuming -----------------------------------------------------------------------------------------


def attached(seed=None):
    """A training of forty steps, with its canaries and its monitor."""
    private = made_private(network(), toy(), noise=NOISE, batch=10)
    canaries = GradientCanaries(COUNT, seed=seed)
    return private, canaries, Monitor(**private.parts(), watchers=[canaries], show=None)


def resumed():
    """Twenty steps, a checkpoint, and twenty more in fresh objects."""
    first, _, monitor = attached(seed=3)
    first.train(20)
    weights, randomness = first.model.state_dict(), torch.get_rng_state()
    second, fresh, again = attached()
    second.engine.accountant.history = list(first.engine.accountant.history)
    second.model.load_state_dict(weights)
    again.load_state_dict(monitor.state_dict())
    torch.set_rng_state(randomness)
    second.train(20)
    return fresh


def test_a_training_that_was_interrupted_gives_the_same_result_but_for_one_term():
    whole, canaries, _ = attached(seed=3)
    seen, right = [], canaries.after_noise
    canaries.after_noise = lambda training: (right(training), seen.append(canaries._before))
    whole.train(20)
    whole.train(20)
    again = resumed()
    assert again._ratio == pytest.approx(canaries._ratio, abs=1e-5)  # the order of sums may differ
    without = canaries._repeated - (seen[20] - seen[19]) ** 2
    assert again._repeated == pytest.approx(without, abs=1e-4)
    canaries._repeated = without
    assert again.result() == canaries.result()


def test_the_state_does_not_hold_the_noise_of_the_last_step():
    canaries = audited(steps=3)
    state = canaries.state_dict()
    assert set(state) == {"kind", "count", "seed", "steps", "lost", "ratio", "repeated"}
    for score in (state["ratio"], state["repeated"]):
        assert abs(np.corrcoef(score, canaries._before)[0, 1]) < 0.9
