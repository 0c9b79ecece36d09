"""What observers see against sums made by hand, crafted gradients, and records without one."""

import numpy as np
import pytest
import torch
from torch import nn

from dprime.data.dataset import Dataset
from dprime.train import (
    CanaryGradient,
    LikelihoodRatio,
    LocalSensitivity,
    NoiseScale,
    Observer,
    TrainingConfig,
    TrainingData,
    median_clip_norm,
    train,
)
from dprime.train.losses import plain_cross_entropy
from dprime.train.slices import Slices
from dprime.train.steps import clip_factors
from networks import steep
from planted import TOLD_BY_THE_OTHERS
from trials import (
    PAIRS,
    SMALL,
    C,
    Keeper,
    Sums,
    Wrapped,
    blobs,
    check_slowly,
    clipped,
    dense,
    fast,
    flat,
    gradients_of,
    trained,
)


def by_hand(worlds, weights):
    """Clipped gradients, norms and losses of every record of both worlds at some weights."""
    model = dense(5, 4, 3)
    x, y = torch.tensor(worlds.union.records), torch.tensor(worlds.union.labels)
    raw = gradients_of(model, weights, x, y)
    with torch.no_grad():
        losses = plain_cross_entropy(model(x), y)
    return torch.stack([clipped(g, C) for g in raw]), raw.norm(dim=1), losses


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


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
            close(seen["norms"][trial], norms[rows])
            close(seen["losses"][trial], losses[rows])
            held = [r for r, m in zip(rows, seen["mask"][trial], strict=True) if m]
            shared = gradients[[r for r in held if r not in differing]].sum(0)
            ins = shared + gradients[first]
            outs = shared + gradients[first + 1] if len(differing) == 2 else shared
            for name, expected in [("common", shared), ("in", ins), ("out", outs)]:
                close(seen[name][trial], expected)
            assert all(float(g[trial].double().norm()) <= C for g in seen["differing"])
            if rate == 1:
                close(seen["own"][trial], ins if in_world else outs)
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
    close(keeper.at(0, "in"), keeper.at(0, "own"))


@pytest.mark.parametrize("fault", TOLD_BY_THE_OTHERS)
def test_the_common_sum_is_of_the_records_whatever_the_trainer_has_summed(fault):
    keeper = Keeper()
    with TOLD_BY_THE_OTHERS[fault]():
        trained("remove, first", keeper, steps=1)
    for weights, common in zip(keeper.at(0, "weights"), keeper.at(0, "common"), strict=True):
        close(common, by_hand(PAIRS["remove, first"], weights)[0][1:].sum(0))


def test_watching_changes_nothing():
    plain = trained("replace", sample_rate=0.4)
    seen = trained("replace", Keeper(), LikelihoodRatio(), NoiseScale(), sample_rate=0.4)
    assert torch.equal(plain.weights, seen.weights)


def test_an_observer_that_asks_for_nothing_costs_no_norms(monkeypatch):
    """Without clipping nobody needs norms, so none are made until an observer asks."""
    monkeypatch.setattr("dprime.train.network.RecordGradients.norms", lambda self: 1 / 0)
    bare = {"clip_norm": None, "noise_multiplier": 0.0}
    trained(SMALL, Observer(), **bare)
    with pytest.raises(ZeroDivisionError):
        trained(SMALL, Keeper(), **bare)


@pytest.mark.parametrize(
    ("pair", "sensitivity", "rate"),
    [("remove", "global", 1.0), ("replace, within", "global", 0.2), ("replace", "local", 1.0)],
)
def test_noise_is_what_is_claimed(pair, sensitivity, rate):
    """Noise recovered from what was released: mean, variance, independence, in every trial."""
    keeper, options = Keeper(), {"steps": 4, "sensitivity": sensitivity, "sample_rate": rate}
    done = trained(pair, keeper, model=dense(5, 40, 3), trials=300, seed=8, **options)
    released = [keeper.at(index, "noisy") - keeper.at(index, "own") for index in range(4)]
    sigmas = torch.stack([keeper.at(index, "sigma") for index in range(4)])
    noise = (torch.stack(released) / sigmas[:, :, None]).double()  # [step, trial, coordinate]
    n = noise.numel()
    assert abs(float(noise.mean())) < 4.5 / np.sqrt(n)
    assert abs(float(noise.var()) - 1) < 4.5 * np.sqrt(2 / n)
    for dim in range(3):
        one, other = noise.narrow(dim, 1, noise.shape[dim] - 1), noise.roll(1, dim)
        together = one * other.narrow(dim, 1, noise.shape[dim] - 1)
        assert abs(float(together.mean())) < 4.5 / np.sqrt(together.numel())
    if sensitivity == "global":
        assert torch.equal(sigmas, torch.full_like(sigmas, done.training.sigma))
        assert done.training.sigma == pytest.approx(1.001 * 2.0 * C)  # a thousandth for rounding
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
    assert torch.equal(clip_factors(torch.zeros(1, 3), 1.0), torch.ones(1, 3))


# Crafted gradients --------------------------------------------------------------------------------


def loud(weights, index):
    """Longer than C, and another one at every step."""
    return 3 * weights + 1 + index


def quiet(weights, index):
    """Shorter than C."""
    return 0.02 * weights.cos() * (1 + index)


class Made(CanaryGradient):
    """A loud gradient for x and a quiet one for x′; it remembers when it was asked."""

    def __init__(self):
        self.asked = []

    def gradients(self, context):
        self.asked.append((context.index, context.rows.start, context.rows.stop))
        context.memo[self] = context.index
        made = (loud(context.weights, context.index), quiet(context.weights, context.index))
        return made[: context.run.sampler.differing]


CRAFTED = [
    ("remove", {"sample_rate": 0.3}, fast),
    ("add", {"sample_rate": 0.7}, Wrapped),
    ("replace", {"sample_rate": 0.7, "sensitivity": "local"}, fast),
    ("remove", {"sample_rate": 0.3, "sensitivity": "local"}, Wrapped),
    ("remove", {"clip_norm": None, "noise_multiplier": 0.0}, fast),
]


@pytest.mark.parametrize(("pair", "options", "wrap"), CRAFTED)
def test_crafted_gradients_are_sampled_clipped_and_used_in_their_own_world(pair, options, wrap):
    model = dense(5, 4, 3)
    done = trained(pair, model=wrap(model), seed=11, initial="given", canary=Made(), **options)
    check_slowly(done, model, flat(model).expand(4, -1), made=(loud, quiet))


def test_the_records_own_gradient_counts_no_more():
    """Whatever record stands in the place, only the canary is seen of it."""
    record = SMALL.take([0])
    strange = Dataset.of(1e4 * record.records, record.labels, classes=3)
    first, second = (
        trained(TrainingData.add(SMALL, x), canary=Made(), sample_rate=0.7).weights
        for x in (record, strange)
    )
    assert torch.equal(first, second)


@pytest.mark.parametrize("pair", ["remove", "replace"])
@pytest.mark.parametrize("options", [{"sensitivity": "local"}, {"sample_rate": 0.3}], ids=str)
def test_observers_see_it_and_sensitivity_and_noise_are_the_canarys(pair, options):
    canary, keeper, noise, sensitivity = Made(), Keeper(), NoiseScale(), LocalSensitivity()
    done = trained(pair, keeper, noise, sensitivity, canary=canary, block=3, **options)
    z = done.training.noise_multiplier
    two, local = pair == "replace", "sensitivity" in options
    slices = sorted((s["index"], s["rows"].start, s["rows"].stop) for s in keeper.steps)
    assert sorted(canary.asked) == slices
    for step in keeper.steps:
        assert step["memo"][canary] == step["index"]
        made = [g(step["weights"], step["index"]) for g in (loud, quiet)[: 1 + two]]
        made = [torch.stack([clipped(g, C) for g in each]) for each in made]
        own = step["common"]
        for seen, expected, drawn in zip(step["differing"], made, step["drawn"], strict=True):
            torch.testing.assert_close(seen, expected, rtol=1e-5, atol=1e-6)
            assert (seen.double().norm(dim=1) <= C).all()
            own = own + drawn[:, None] * seen
        close(own, step["own"])
        norms = (made[0] - (made[1] if two else 0)).norm(dim=1)
        at = (step["rows"], step["index"])
        torch.testing.assert_close(torch.tensor(sensitivity.norms[at]).float(), norms)
        # σ = z C LS/GS, GS = C or 2C; globally z C with a thousandth for rounding
        scale = z * norms / (1 + two) if local else torch.full_like(norms, 1.001 * z * C)
        torch.testing.assert_close(torch.tensor(noise.sigmas[at]).float(), scale)


# Records without a finite gradient; that they count as zero is in `test_random_networks` ----------

ONCE = TrainingConfig(steps=1, learning_rate=0.1, clip_norm=1.0, noise_multiplier=1.0)
GIVEN = {"initial": "given", "seed": 1}


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))


@pytest.mark.parametrize("rate", [1.0, 0.7, 0.3])
@pytest.mark.parametrize("clip_norm", [1.0, None])
def test_a_record_that_is_absent_leaves_no_trace(clip_norm, rate):
    """Its gradient is 0 times something that is not a number; without clipping, too."""
    data = blobs(8, (4,), classes=2)
    data = Dataset.of(data.records, data.labels, classes=3)
    worlds = TrainingData.add(data, Dataset.of(np.float32([[9, 1, 1, 1]]), [2], classes=3))
    training = TrainingConfig(3, 0.1, clip_norm, sample_rate=rate, loss=steep)
    sums, options = Sums(), {"trials": 6, **GIVEN}
    done = train(net(), worlds, training, world="out", observers=[sums], **options)
    assert not done.diverged.any()
    assert bool(sums.common.isfinite().all())
    inside = train(net(), worlds, training, world="in", **options)
    assert inside.diverged.any() == (clip_norm is None)  # without clipping it is left as it is
    if clip_norm is not None:
        assert torch.equal(inside.weights, done.weights)


@pytest.mark.parametrize(
    ("value", "length"), [(torch.nan, 0), (torch.inf, 0), (1e30, 0), (1e18, 1)]
)
@pytest.mark.parametrize("clip_norm", [1.0, None])
def test_a_crafted_gradient_that_is_not_finite_counts_as_zero(clip_norm, value, length):
    class Wild(CanaryGradient):
        def gradients(self, context):
            return (torch.full_like(context.weights, value),)

    sums, training = Sums(), TrainingConfig(steps=2, learning_rate=0.1, clip_norm=clip_norm)
    worlds = TrainingData.add(blobs(8, (4,)), blobs(1, (4,), seed=9))
    done = train(net(), worlds, training, trials=4, canary=Wild(), observers=[sums], **GIVEN)
    assert not done.diverged[~done.in_world].any()
    if clip_norm is not None:
        assert not done.diverged.any()
        assert float(sums.differing[0].norm(dim=1).max()) == pytest.approx(length, abs=1e-5)


def test_weights_that_are_not_finite_leave_the_noise_alone():
    sums, nothing = Sums(), torch.full((35,), torch.nan)
    done = train(net(), blobs(8, (4,)), ONCE, trials=2, observers=[sums], initial=nothing, seed=1)
    assert done.diverged.all()
    assert float(sums.sums.abs().max()) == 0


@pytest.mark.parametrize("wrap", [fast, Wrapped])
def test_a_word_that_the_table_has_not_counts_as_zero(wrap):
    words = np.random.default_rng(0).integers(0, 5, (6, 4)).astype(np.float32)
    words[4, 1] = 6  # a word of the next trial's table, or of the next record's
    model = nn.Sequential(nn.Embedding(5, 2), nn.Flatten(), nn.Linear(8, 3))
    members = np.array([[True] * 6, [True, True, True, True, False, True]])
    data = TrainingData.parts(Dataset.of(words, [0, 1, 2, 0, 1, 2]), members, 1.0)
    sums = Sums()
    train(wrap(model), data, ONCE, observers=[sums], **GIVEN)
    torch.testing.assert_close(sums.sums[0], sums.sums[1])


def test_a_median_of_norms_leaves_out_what_is_not_a_number():
    plain = blobs(50, (4,), classes=2)
    labels = plain.labels.copy()
    labels[10] = 2
    data = Dataset.of(plain.records, labels, classes=3)
    for noise in (None, 1.0):
        read = median_clip_norm(net(), data, loss=steep, seed=1, noise_multiplier=noise)
        assert 0.1 < read.value < 10
    with pytest.raises(ValueError, match="must be numbers, but it is NaN for every record"):
        median_clip_norm(net(), data.take([10]), loss=steep, seed=1)
