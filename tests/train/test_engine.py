"""The engine against a slow copy, and what it promises about slices, blocks and worlds."""

import gc
import itertools
import weakref

import numpy as np
import pytest
import torch
from torch import nn

from dprime.data.dataset import Dataset
from dprime.train import (
    SGD,
    Adam,
    Compute,
    Cosine,
    Decay,
    Observer,
    TrainingConfig,
    TrainingData,
    train,
)  # fmt: skip
from dprime.train import engine as engine_module
from dprime.train.slices import Slices, rows_of_slices, trials_of_blocks
from trials import PAIRS, RECIPE, SMALL, Wrapped, blobs, check_slowly, dense, fast, trained

MEMBERS = np.random.default_rng(5).random((7, 9)) < 0.6
PARTS = TrainingData.parts(SMALL, MEMBERS, 0.6)
WORLDS = {"alone": TrainingData.alone(SMALL), **PAIRS, "parts": PARTS}
STILL = TrainingConfig(steps=1, learning_rate=1e-30)

RECIPES = {
    "full batch": TrainingConfig(**RECIPE),
    "poisson": TrainingConfig(**RECIPE, sample_rate=0.3),
    "poisson, masked": TrainingConfig(**RECIPE, sample_rate=0.7),
    "momentum": TrainingConfig(**RECIPE, optimizer=SGD(momentum=0.9), schedule=Decay(0.5, 2)),
    "nesterov": TrainingConfig(**RECIPE, optimizer=SGD(momentum=0.9, nesterov=True)),
    "adam": TrainingConfig(**RECIPE, optimizer=Adam(), schedule=Cosine(warmup=1)),
    "no privacy": TrainingConfig(steps=4, learning_rate=0.5),
    "clipping alone": TrainingConfig(steps=4, learning_rate=0.5, clip_norm=0.3),
    "local": TrainingConfig(**RECIPE, sensitivity="local"),
    "local, poisson": TrainingConfig(**RECIPE, sensitivity="local", sample_rate=0.4),
}
GLOBAL = [recipe for recipe in RECIPES if "local" not in recipe]
CASES = [
    *zip(GLOBAL, itertools.cycle(["alone", *PAIRS]), itertools.repeat(fast)),
    *zip(GLOBAL, itertools.cycle(reversed(["alone", *PAIRS])), itertools.repeat(Wrapped)),
    *(("poisson", pair, fast) for pair in WORLDS),
    ("local", "remove", fast), ("local, poisson", "replace", fast),
    ("local, poisson", "add", Wrapped), ("local", "replace, within", Wrapped),
    ("full batch", "parts", fast), ("poisson", "parts", Wrapped),
    ("poisson, masked", "parts", fast), ("no privacy", "parts", Wrapped),
]  # fmt: skip


@pytest.mark.parametrize(("recipe", "pair", "wrap"), CASES)
def test_the_engine_trains_as_a_plain_loop_does(recipe, pair, wrap):
    """Of a pool, over the records of the trial's own part, divided by the expected size."""
    model, worlds, trials = dense(5, 4, 3), WORLDS[pair], 7 if pair == "parts" else 3
    done = train(wrap(model), worlds, RECIPES[recipe], trials=trials, seed=11)
    starts = train(model, worlds, STILL, trials=trials, seed=11).weights[:3]
    check_slowly(done, model, starts)


def test_local_sensitivity_is_not_dp():
    done = trained("remove", sensitivity="local")
    assert done.label.startswith("not DP")
    assert "not DP" in repr(done)
    with pytest.raises(ValueError, match="not DP"):
        done.mechanism()


def test_a_trial_does_not_depend_on_the_trials_beside_it(monkeypatch):
    options = {"trials": 13, "sample_rate": 0.4, "block": 5}
    whole = trained("replace", **options)
    monkeypatch.setattr("dprime.train.slices.CACHE", 1)
    one_by_one = trained("replace", **options)
    torch.testing.assert_close(one_by_one.weights, whole.weights, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("pair", "rate"), [("remove, first", 1.0), ("replace, within", 0.7), ("replace", 0.3)]
)
def test_a_batch_may_be_cut_anywhere(monkeypatch, pair, rate):
    """Also beside the differing records, wherever they stand."""
    whole = trained(pair, trials=6, sample_rate=rate)
    for records in (1, 3, 5):
        sizes = Slices(4, max(records, len(PAIRS[pair].differing)))
        monkeypatch.setattr(engine_module, "slice_plan", lambda *_, sizes=sizes: sizes)
        cut = trained(pair, trials=6, sample_rate=rate)
        torch.testing.assert_close(cut.weights, whole.weights, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("data", [SMALL, PARTS], ids=["one", "parts"])
def test_a_block_run_alone_gives_the_same_bits(data):
    options = {"trials": 7, "sample_rate": 0.4, "block": 3}
    whole = trained(data, **options)
    for block, rows in [(0, slice(0, 3)), (1, slice(3, 6)), (2, slice(6, 7))]:
        part = trained(data, blocks=[block], **options)
        assert part.trials.tolist() == list(range(7))[rows]
        assert torch.equal(part.weights, whole.weights[rows])
    with pytest.raises(ValueError, match="blocks must be between 0 and 2, but it is 3"):
        trained(data, blocks=[3], **options)


def test_slices_never_cross_a_block():
    trials = trials_of_blocks(25, 10, [0, 2])
    rows = rows_of_slices(trials, 10, 4)
    assert [trials[r].tolist() for r in rows] == [
        [0, 1, 2, 3], [4, 5, 6, 7], [8, 9], [20, 21, 22, 23], [24]
    ]  # fmt: skip


def test_seeds():
    first, again, other = (trained(SMALL, trials=2, seed=seed).weights for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert len({tuple(weights.tolist()) for weights in (*first, *other)}) == 4


def test_worlds_of_the_trials():
    expected = {"in": [True] * 6, "out": [False] * 6, "alternate": [True, False] * 3}
    for world, in_world in expected.items():
        assert trained("remove", trials=6, world=world).in_world.tolist() == in_world
    options = {"trials": 2000, "world": "random", "steps": 1}
    many = trained("remove", **options).in_world
    assert abs(many.mean() - 0.5) < 4 * 0.5 / np.sqrt(2000)
    some = trained("remove", blocks=[7], block=100, **options).in_world
    assert some.tolist() == many[700:800].tolist()


@pytest.mark.parametrize("initial", ["given", "vector", "matrix"])
def test_initial_weights(initial):
    model = dense(5, 3)
    own = torch.cat([w.detach().flatten() for w in model.parameters()])
    given = {"given": "given", "vector": own, "matrix": own + torch.arange(4.0)[:, None]}[initial]
    done = train(model, SMALL, STILL, trials=4, initial=given)
    expected = given if initial == "matrix" else own.expand(4, -1)
    assert torch.equal(done.weights, expected)


def test_the_model_that_was_given_is_not_changed():
    model = dense(5, 3)
    before = [w.detach().clone() for w in model.parameters()]
    done = trained(SMALL, model=model)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    outputs = done.model(1)(torch.tensor(SMALL.records))
    weight, bias = done.weights[1][:15].view(3, 5), done.weights[1][15:]
    torch.testing.assert_close(outputs, torch.tensor(SMALL.records) @ weight.T + bias)


def test_frozen_layers_stay():
    for wrap in (fast, Wrapped):
        model = dense(5, 4, 3)
        model[0].requires_grad_(False)
        done = trained(SMALL, model=wrap(model), trials=2)
        assert done.weights.shape == (2, 15)
        assert torch.equal(next(done.model(1).parameters()), model[0].weight)


def test_trials_that_diverge_are_told():
    done = train(dense(5, 4, 3), SMALL, TrainingConfig(20, 1e30), trials=3, seed=1)
    assert done.diverged.all()
    assert "3 of them diverged" in repr(done)
    assert not trained(SMALL).diverged.any()


def test_an_error_stops_the_other_slices():
    last = []

    class Failing(Observer):
        def see(self, step):
            last.append(step.index)
            if step.index == 2:
                raise KeyError("stop")

    with pytest.raises(KeyError):
        trained(SMALL, Failing(), trials=8, steps=5000)
    assert max(last) < 4999


def test_regression_and_binary_losses_train():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3)).astype(np.float32)
    line = Dataset("line", x, x @ [0.5, -1.0, 0.25], "table", classes=None)
    fit = train(
        dense(3, 1), line, TrainingConfig(steps=200, learning_rate=0.2, loss="squared-error"),
        trials=3, seed=1,
    )  # fmt: skip
    assert fit.mean_loss(line).max() < 1e-6
    halves = Dataset("halves", x, (x[:, 0] > 0).astype(int), "table", classes=2)
    told = train(
        dense(3, 1), halves, trials=3, seed=1,
        training=TrainingConfig(steps=300, learning_rate=2.0, loss="binary-cross-entropy"),
    )  # fmt: skip
    assert told.accuracy(halves).min() > 0.95
    with pytest.raises(ValueError, match="use mean_loss for a regression"):
        fit.accuracy(line)


BAD = [
    ({"trials": 0}, "trials must be at least 1, but it is 0"),
    ({"seed": -1}, r"seed must be a whole number from 0 to 2\^256 - 1"),
    ({"world": "both"}, "world must be one of in, out, alternate, random, but it is 'both'"),
    ({"initial": "zero"}, "initial must be one of fresh, given, but it is 'zero'"),
    ({"initial": torch.zeros(3)}, r"initial must be of shape \(18,\) or \(2, 18\)"),
    ({"compute": Compute("cuda:99")}, "device must be available, but it is 'cuda:99': give cpu"),
    (
        {"compute": Compute(memory=0.01)},
        "must be at least 1.. MB for this model and data, but it is 10 MB: give memory=0.2",
    ),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=lambda v: str(v)[:30])
def test_bad_input_is_one_sentence(options, message):
    with pytest.raises(ValueError, match=message) as caught:
        trained(SMALL, model=dense(5, 3), **{"trials": 2, **options})
    assert "\n" not in str(caught.value)


def test_final_weights_that_do_not_fit_or_are_not_kept():
    done = trained(SMALL, keep_weights=False)
    with pytest.raises(ValueError, match="not kept: train with keep_weights=True"):
        done.accuracy(SMALL)
    few = Compute(memory=0.2)
    with pytest.raises(ValueError, match="final weights of 10000 trials must fit"):
        trained(SMALL, model=dense(5, 1000, 3), trials=10_000, compute=few)


# Parts of a pool ----------------------------------------------------------------------------------


def test_there_is_a_trial_for_each_part():
    assert len(trained(PARTS, trials=None)) == 7
    with pytest.raises(ValueError, match="trials must be 7, one for each part of the pool, but"):
        trained(PARTS, trials=5)


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_records_in_no_part_do_not_matter(rate):
    members = MEMBERS.copy()
    members[:, [2, 7]] = False
    records = SMALL.records.copy()
    records[[2, 7]] = 100.0
    other = Dataset.of(records, SMALL.labels, classes=3)
    first, second = (
        trained(TrainingData.parts(pool, members, 0.6), trials=7, sample_rate=rate).weights
        for pool in (SMALL, other)
    )
    assert torch.equal(first, second)


IMAGES = blobs(40, (1, 8, 8))
CONVOLUTIONAL = {
    "joined": (nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2)),
    "plain": (nn.Conv2d(1, 4, 3), nn.Tanh(), nn.MaxPool2d(2)),
}


@pytest.mark.parametrize(
    ("name", "private"), [("joined", True), ("joined", False), ("plain", True), ("plain", False)]
)
def test_what_is_kept_of_a_pool_changes_nothing(monkeypatch, name, private):
    net = nn.Sequential(*CONVOLUTIONAL[name], nn.Flatten(), nn.Linear(36, 3))
    parts = TrainingData.parts(IMAGES, np.random.default_rng(1).random((5, 40)) < 0.5, 0.5)
    recipe = {"steps": 4, "learning_rate": 0.5, "sample_rate": 0.4}
    training = TrainingConfig(**(RECIPE if private else {}) | recipe)
    pools = []

    class Looking(Observer):
        def see(self, step):
            kept = private or name == "joined"  # the windows of all records, or their moments
            assert bool(step.run.sampler.pool._made) == kept
            pools.append(weakref.ref(step.run.sampler.pool))

    kept = train(net, parts, training, seed=1, observers=[Looking()])
    gc.collect()
    assert pools
    assert not any(pool() for pool in pools)  # let go at the end
    monkeypatch.setattr("dprime.train.slices.KEPT_SHARE", 0)
    other = train(net, parts, training, seed=1)
    torch.testing.assert_close(kept.weights, other.weights, rtol=1e-4, atol=1e-6)
