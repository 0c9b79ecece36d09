"""What observers see, against sums made by hand; and that nobody pays for what is not asked."""

import numpy as np
import pytest
import torch
from torch import nn

from dprime.train import (
    FinalAccuracy,
    LikelihoodRatio,
    LocalSensitivity,
    NoiseScale,
    Observer,
    TrainingConfig,
    TrainingData,
    train,
)
from dprime.train.losses import plain_cross_entropy
from dprime.train.observers import AccuracyEvery, log_mixture
from dprime.train.slices import Slices
from dprime.train.steps import clip_factors
from networks import NETWORKS
from planted import TOLD_BY_THE_OTHERS
from trials import PAIRS, SMALL, C, Keeper, Wrapped, blobs, clipped, dense, gradients_of, trained


def by_hand(worlds, weights):
    """Clipped gradients, norms and losses of every record of both worlds at some weights."""
    model = dense(5, 4, 3)
    x, y = torch.tensor(worlds.union.records), torch.tensor(worlds.union.labels)
    raw = gradients_of(model, weights, x, y)
    with torch.no_grad():
        losses = plain_cross_entropy(model(x), y)
    return torch.stack([clipped(g, C) for g in raw]), raw.norm(dim=1), losses


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(("rate", "records"), [(1.0, 3), (0.3, None), (0.3, 3)])
def test_everything_an_observer_sees(monkeypatch, pair, rate, records):
    if records is not None:
        monkeypatch.setattr("dprime.train.engine.slice_plan", lambda *_: Slices(3, records))
    worlds, keeper = PAIRS[pair], Keeper()
    done = trained(pair, keeper, sample_rate=rate)
    first = worlds.first
    differing = range(first, first + len(worlds.differing))
    for seen in keeper.steps:
        for trial, in_world in enumerate(done.in_world[seen["rows"]]):
            gradients, norms, losses = by_hand(worlds, seen["weights"][trial])
            places = len(seen["mask"][trial])
            rows = range(places) if seen["rows_of"] is None else seen["rows_of"][trial].tolist()
            torch.testing.assert_close(seen["norms"][trial], norms[rows], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(seen["losses"][trial], losses[rows], rtol=1e-4, atol=1e-5)
            held = [r for r, m in zip(rows, seen["mask"][trial], strict=True) if m]
            shared = gradients[[r for r in held if r not in differing]].sum(0)
            ins = shared + gradients[first]
            outs = shared + gradients[first + 1] if len(differing) == 2 else shared
            for name, expected in [("common", shared), ("in", ins), ("out", outs)]:
                torch.testing.assert_close(seen[name][trial], expected, rtol=1e-4, atol=1e-5)
            if rate == 1:
                own = ins if in_world else outs
                torch.testing.assert_close(seen["own"][trial], own, rtol=1e-4, atol=1e-5)
    assert torch.equal(torch.cat([weights for _, weights in sorted(keeper.final)]), done.weights)
    moved = keeper.at(0, "weights") - 0.5 * keeper.at(0, "noisy") / (rate * worlds.size)
    torch.testing.assert_close(keeper.at(1, "weights"), moved)


def test_the_common_sum_without_clipping():
    keeper, images = Keeper(), blobs(6, (1, 8, 8))
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Conv2d(2, 2, 3), nn.Flatten(), nn.Linear(32, 3)
    )
    recipe = TrainingConfig(steps=1, learning_rate=0.1)
    train(net, TrainingData.remove(images, 2), recipe, world="in", observers=[keeper], seed=1)
    torch.testing.assert_close(keeper.at(0, "in"), keeper.at(0, "own"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fault", TOLD_BY_THE_OTHERS)
def test_the_common_sum_is_of_the_records_whatever_the_trainer_has_summed(fault):
    keeper = Keeper()
    with TOLD_BY_THE_OTHERS[fault]():
        trained("remove, first", keeper, steps=1)
    for weights, common in zip(keeper.at(0, "weights"), keeper.at(0, "common"), strict=True):
        expected = by_hand(PAIRS["remove, first"], weights)[0][1:].sum(0)
        torch.testing.assert_close(common, expected, rtol=1e-4, atol=1e-5)


def test_watching_changes_nothing():
    plain = trained("replace", sample_rate=0.4)
    seen = trained("replace", Keeper(), LikelihoodRatio(), NoiseScale(), sample_rate=0.4)
    assert torch.equal(plain.weights, seen.weights)


def test_an_observer_that_asks_for_nothing_costs_no_norms(monkeypatch):
    """Without clipping nobody needs norms, so none are made until an observer asks."""
    asked = []
    monkeypatch.setattr(
        "dprime.train.network.Gradients.norms", lambda self: asked.append(1) or 1 / 0
    )
    bare = {"clip_norm": None, "noise_multiplier": 0.0}
    trained(SMALL, Observer(), **bare)
    assert not asked
    with pytest.raises(ZeroDivisionError):
        trained(SMALL, Keeper(), **bare)


@pytest.mark.parametrize(
    ("pair", "sensitivity", "rate"),
    [("remove", "global", 1.0), ("replace, within", "global", 0.2), ("replace", "local", 1.0)],
)
def test_noise_is_what_is_claimed(pair, sensitivity, rate):
    """Noise recovered from what was released: mean, variance, independence, in every trial."""
    keeper = Keeper()
    options = {"steps": 4, "sensitivity": sensitivity, "sample_rate": rate}
    sigma = trained(
        pair, keeper, model=dense(5, 40, 3), trials=300, seed=8, **options
    ).training.sigma
    released = [keeper.at(index, "noisy") - keeper.at(index, "own") for index in range(4)]
    sigmas = torch.stack([keeper.at(index, "sigma") for index in range(4)])
    noise = (torch.stack(released) / sigmas[:, :, None]).double()  # [step, trial, coordinate]
    n = noise.numel()
    assert abs(float(noise.mean())) < 4.5 / np.sqrt(n)
    assert abs(float(noise.var()) - 1) < 4.5 * np.sqrt(2 / n)
    for one, other in [
        (noise[1:], noise[:-1]), (noise[:, 1:], noise[:, :-1]), (noise[..., 1:], noise[..., :-1])
    ]:  # fmt: skip
        together = float((one * other).mean())
        assert abs(together) < 4.5 / np.sqrt(one.numel())
    if sensitivity == "global":
        assert torch.equal(sigmas, torch.full_like(sigmas, sigma))
        assert sigma == pytest.approx(1.001 * 2.0 * C)  # a thousandth for rounding
    else:
        assert (sigmas < 2.0 * C).all()


def test_clipping_is_never_exceeded():
    torch.manual_seed(0)
    for scale in (1e-3, 1.0, 1e6):
        gradients = scale * torch.randn(500, 1000)
        norms = gradients.norm(dim=1)[None]
        for bound in (1e-3, 1.0, 3.7):
            kept = gradients.double() * clip_factors(norms, bound).double()[0, :, None]
            assert float(kept.norm(dim=1).max()) <= bound
    zeros = clip_factors(torch.zeros(1, 3), 1.0)
    assert torch.equal(zeros, torch.ones(1, 3))


@pytest.mark.parametrize(("bound", "wrap"), [(1e-3, False), (0.1, True), (1.0, False)])
def test_no_record_counts_with_more_than_the_bound(bound, wrap):
    model, shape = NETWORKS["group norms"]()
    model = Wrapped(model) if wrap else model
    images, largest = blobs(6, shape), []

    class Watching(Observer):
        def see(self, step):
            largest.extend(float(g.double().norm(dim=1).max()) for g in step.differing)

    recipe = TrainingConfig(steps=6, learning_rate=0.5, clip_norm=bound, noise_multiplier=1.0)
    worlds = TrainingData.replace(images.take(range(5)), 2, images.take([5]))
    train(model, worlds, recipe, trials=8, seed=1, observers=[Watching()])
    assert max(largest) <= bound
    assert min(largest) > 0.9 * bound or bound == 1.0


@pytest.mark.parametrize(
    ("pair", "local"), [("remove", False), ("replace", False), ("replace, within", True)]
)
def test_likelihood_ratios_by_hand(pair, local):
    """Full batch: (‖noisy − D′ sum‖² − ‖noisy − D sum‖²)/(2σ²), added up."""
    keeper, ratio = Keeper(), LikelihoodRatio(every_step=True)
    options = {"trials": 6, "seed": 3, "sensitivity": "local" if local else "global"}
    trained(pair, keeper, ratio, **options)
    total = torch.zeros(6, dtype=torch.float64)
    for step in range(3):
        noisy, ins, outs = (keeper.at(step, name).double() for name in ("noisy", "in", "out"))
        far, near = (noisy - outs).square().sum(1), (noisy - ins).square().sum(1)
        total = total + (far - near) / (2 * keeper.at(step, "sigma").double() ** 2)
        np.testing.assert_allclose(ratio.logs[:, step], total.numpy(), rtol=1e-3, atol=1e-4)
    last = LikelihoodRatio()
    trained(pair, last, **options)
    np.testing.assert_allclose(last.logs[:, 0], ratio.logs[:, -1])
    beliefs = last.beliefs(prior=0.2)
    np.testing.assert_allclose(beliefs, 1 / (1 + 4 * np.exp(-last.logs)))


@pytest.mark.parametrize(
    ("pair", "rate"), [("remove", 1.0), ("remove, first", 0.3), ("replace", 0.3)]
)
def test_likelihood_ratios_are_calibrated(pair, rate):
    """Over many trials E[e^L] = 1 in world out and E[e^-L] = 1 in world in: L is a true ratio."""
    ratio = LikelihoodRatio()
    options = {"steps": 4, "noise_multiplier": 2.5, "sample_rate": rate}
    done = trained(pair, ratio, model=dense(5, 3), trials=8000, seed=3, **options)
    logs = ratio.logs[:, 0]
    for values in (np.exp(logs[~done.in_world]), np.exp(-logs[done.in_world])):
        assert abs(values.mean() - 1) < 4.5 * values.std() / np.sqrt(len(values))
    assert logs[done.in_world].mean() > logs[~done.in_world].mean()


def test_the_adversary_stays_below_the_certified_curve_and_near_it():
    """With a record whose gradient always fills C, the full-batch adversary reaches the claim."""
    ratio = LikelihoodRatio()
    options = {"steps": 5, "learning_rate": 1e-3, "clip_norm": 1e-3, "noise_multiplier": 3.0}
    done = trained("remove", ratio, model=dense(5, 3), trials=20_000, seed=3, **options)
    says = ratio.logs[:, 0] > 0
    advantage = says[done.in_world].mean() - says[~done.in_world].mean()
    claim = done.mechanism().curve().advantage()
    assert abs(advantage - claim) < 4.5 * np.sqrt(2 * 0.25 / 10_000)


def test_final_accuracy_without_keeping_models_and_the_noise_that_was_added():
    observer, scale = FinalAccuracy(SMALL), NoiseScale()
    done = trained(SMALL, observer, scale, trials=7)
    assert np.array_equal(observer.values, done.accuracy(SMALL))
    assert np.array_equal(scale.sigmas, np.full((7, 3), done.training.sigma))


# What the ready observers compute ----------------------------------------------------------------


def by_densities(rest, gradient, sigma, rate):
    """ln of ((1 − q) N(r; 0, σ²) + q N(r; g, σ²)) / N(r; 0, σ²), from the densities themselves."""
    rest, gradient, sigma = rest.double(), gradient.double(), sigma.double()
    variance = 2 * sigma**2
    without = torch.exp(-rest.square().sum(1) / variance)
    drawn = torch.exp(-(rest - gradient).square().sum(1) / variance)
    return torch.log(((1 - rate) * without + rate * drawn) / without)


@pytest.mark.parametrize("rate", [1.0, 0.5, 0.01])
def test_log_mixture_is_the_ratio_of_the_densities(rate):
    torch.manual_seed(0)
    rest, gradient = torch.randn(50, 7), 0.5 * torch.randn(50, 7)
    sigma = 0.8 + torch.rand(50)
    found = log_mixture(rest, gradient, sigma, rate)
    assert found.dtype == torch.float64
    torch.testing.assert_close(
        found, by_densities(rest, gradient, sigma, rate), rtol=2e-6, atol=1e-6
    )


def test_log_mixture_far_out():
    """Where e^u is beyond all numbers, and where it is nothing: ln q + u, and ln(1 − q)."""
    rest = torch.tensor([[2000.0, 0.0], [-2000.0, 0.0]])
    gradient, sigma = torch.tensor([[1.0, 0.0]] * 2), torch.tensor([0.5, 0.5])
    found = log_mixture(rest, gradient, sigma, 0.1)
    expected = [np.log(0.1) + (2000 - 0.5) / 0.25, np.log(0.9)]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    whole = log_mixture(rest, gradient, sigma, 1.0)
    np.testing.assert_allclose(whole.numpy(), [(2000 - 0.5) / 0.25, (-2000 - 0.5) / 0.25])
    nothing = torch.zeros(2, 3)
    for rate in (1.0, 0.3):  # without noise the step tells nothing
        found = log_mixture(nothing, nothing, torch.zeros(2), rate)
        torch.testing.assert_close(found, torch.zeros(2, dtype=torch.float64))


@pytest.mark.parametrize(("pair", "rate"), [("remove", 0.3), ("replace", 1.0), ("replace", 0.3)])
def test_local_sensitivity(pair, rate):
    """‖g(x)‖, or ‖g(x) − g(x′)‖, of the clipped gradients, whether they were drawn or not."""
    keeper, sensitivity = Keeper(), LocalSensitivity()
    trained(pair, keeper, sensitivity, trials=5, sample_rate=rate)
    assert sensitivity.norms.shape == (5, 3)
    for index, found in enumerate(sensitivity.norms.T):
        seen = [step for step in keeper.steps if step["index"] == index]
        for step in seen:
            first, *second = (g.double() for g in step["differing"])
            change = (first - second[0] if second else first).norm(dim=1)
            np.testing.assert_allclose(found[step["rows"]], change, rtol=1e-6)
            if not second:
                raw = step["norms"][:, -1].double().clamp(max=C)
                np.testing.assert_allclose(found[step["rows"]], raw, rtol=1e-4)


@pytest.mark.parametrize(
    ("every", "after"), [(3, (3, 6, 7)), (7, (7,)), (9, (7,)), (1, (1, 2, 3, 4, 5, 6, 7))]
)
def test_accuracy_every_few_steps_is_that_of_shorter_trainings(every, after):
    """The model after k steps is the one that a training of k steps ends with."""
    held_out = blobs(200, (5,), seed=4)
    options = {"trials": 12, "learning_rate": 3.0, "noise_multiplier": 0.2}
    seen = AccuracyEvery(held_out, every)
    trained(SMALL, seen, steps=7, **options)
    assert seen.after == after
    for place, steps in enumerate(after):
        done = trained(SMALL, steps=steps, **options)
        assert seen.values[:, place].tolist() == done.accuracy(held_out).tolist()
    assert len(np.unique(seen.values)) > 4


def test_accuracy_in_slices_goes_to_its_own_trials():
    """However little memory there is, and however the trials are cut."""
    options = {"trials": 6, "steps": 4, "learning_rate": 3.0, "block": 3}
    found = []
    for blocks in (None, [0], [1]):
        seen = AccuracyEvery(blobs(300, (5,), seed=4), 2)
        trained(SMALL, seen, blocks=blocks, **options)
        found.append(seen.values)
    np.testing.assert_array_equal(found[0], np.concatenate(found[1:]))


@pytest.mark.parametrize(
    ("make", "pair", "noise", "message"),
    [
        (LikelihoodRatio, SMALL, 1.0, "data must be two worlds and noise"),
        (LikelihoodRatio, "remove", 0.0, "data must be two worlds and noise"),
        (LocalSensitivity, SMALL, 1.0, "data must be two worlds that differ in a record"),
        (lambda: AccuracyEvery(SMALL, 0), SMALL, 1.0, "steps must be at least 1, but it is 0"),
    ],
)
def test_nothing_to_see(make, pair, noise, message):
    with pytest.raises(ValueError, match=message):
        trained(pair, make(), noise_multiplier=noise)
