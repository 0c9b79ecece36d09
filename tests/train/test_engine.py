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
    LikelihoodRatio,
    Observer,
    TrainingConfig,
    TrainingData,
    train,
)
from dprime.train import engine as engine_module
from dprime.train.slices import Slices
from told import refuses
from trials import PAIRS, RECIPE, SMALL, Wrapped, blobs, check_slowly, dense, fast, flat, trained

MEMBERS = np.random.default_rng(5).random((7, 9)) < 0.6
PARTS = TrainingData.parts(SMALL, MEMBERS, 0.6)
WORLDS = {"alone": TrainingData.alone(SMALL), **PAIRS, "parts": PARTS}
STILL = TrainingConfig(steps=1, learning_rate=1e-30, block=3)

RECIPES = {
    "full batch": TrainingConfig(**RECIPE),
    "poisson": TrainingConfig(**RECIPE, sample_rate=0.3),
    "poisson, masked": TrainingConfig(**RECIPE, sample_rate=0.7),
    "momentum": TrainingConfig(**RECIPE, optimizer=SGD(momentum=0.9), schedule=Decay(0.5, 2)),
    "nesterov": TrainingConfig(**RECIPE, optimizer=SGD(momentum=0.9, nesterov=True)),
    "adam": TrainingConfig(**RECIPE, optimizer=Adam(0.8, 0.99, 1e-3), schedule=Cosine(warmup=1)),
    "no privacy": TrainingConfig(steps=4, learning_rate=0.5),
    "clipping alone": TrainingConfig(steps=4, learning_rate=0.5, clip_norm=0.3),
    "local": TrainingConfig(**RECIPE, sensitivity="local"),
    "local, poisson": TrainingConfig(**RECIPE, sensitivity="local", sample_rate=0.4),
}
GLOBAL = [recipe for recipe in RECIPES if "local" not in recipe]
ALL = ["alone", *PAIRS]
CASES = [
    *zip(GLOBAL, itertools.cycle(ALL), itertools.repeat(fast)),
    *zip(GLOBAL, itertools.cycle(reversed(ALL)), itertools.repeat(Wrapped)),
    *(("poisson", pair, fast) for pair in WORLDS),
    *(("local", "remove", fast), ("local, poisson", "replace", fast)),
    *(("local, poisson", "add", Wrapped), ("local", "replace, within", Wrapped)),
    *(("full batch", "parts", fast), ("poisson", "parts", Wrapped)),
    *(("poisson, masked", "parts", fast), ("no privacy", "parts", Wrapped)),
]


@pytest.mark.parametrize(("recipe", "pair", "wrap"), CASES)
def test_the_engine_trains_as_a_plain_loop_does(recipe, pair, wrap):
    """Of a pool, over the records of the trial's own part, divided by the expected size."""
    model, worlds, trials = dense(5, 4, 3), WORLDS[pair], 7 if pair == "parts" else 3
    done = train(wrap(model), worlds, RECIPES[recipe], trials=trials, seed=11)
    starts = train(model, worlds, STILL, trials=trials, seed=11).weights[:3]
    check_slowly(done, model, starts)


@pytest.mark.parametrize(
    ("pair", "rate"), [("remove, first", 1.0), ("replace, within", 0.7), ("replace", 0.3)]
)
def test_slices_of_trials_and_of_batches_change_nothing(monkeypatch, pair, rate):
    """Also beside the differing records, wherever they stand."""
    options = {"trials": 13, "block": 5, "sample_rate": rate}
    whole = trained(pair, **options)
    for width, records in ((1, 9), (4, 1), (4, 3), (4, 5)):
        sizes = Slices(width, max(records, len(PAIRS[pair].differing)))
        monkeypatch.setattr(engine_module, "slice_plan", lambda *_, sizes=sizes: sizes)
        cut = trained(pair, **options)
        torch.testing.assert_close(cut.weights, whole.weights, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("data", [SMALL, PARTS], ids=["one", "parts"])
def test_a_block_run_alone_gives_the_same_bits(data):
    options = {"trials": 7, "sample_rate": 0.4, "block": 3}
    whole = trained(data, **options)
    for block, rows in [(0, slice(0, 3)), (1, slice(3, 6)), (2, slice(6, 7))]:
        part = trained(data, blocks=[block], **options)
        assert part.trials.tolist() == list(range(7))[rows]
        assert torch.equal(part.weights, whole.weights[rows])


def test_worlds_of_the_trials():
    expected = {"in": [True] * 6, "out": [False] * 6, "alternate": [True, False] * 3}
    for world, in_world in expected.items():
        assert trained("remove", trials=6, world=world).in_world.tolist() == in_world
    options = {"trials": 2000, "world": "random", "steps": 1, "block": 100}
    many = trained("remove", **options).in_world
    assert abs(many.mean() - 0.5) < 4 * 0.5 / np.sqrt(2000)
    some = trained("remove", blocks=[7], **options).in_world
    assert some.tolist() == many[700:800].tolist()


@pytest.mark.parametrize("initial", ["given", "vector", "matrix"])
def test_initial_weights_and_a_model_that_is_not_changed(initial):
    model = dense(5, 3)
    own = flat(model)
    given = {"given": "given", "vector": own, "matrix": own + torch.arange(4.0)[:, None]}[initial]
    done = train(model, SMALL, STILL, trials=4, initial=given)
    assert torch.equal(done.weights, given if initial == "matrix" else own.expand(4, -1))
    moved = train(model, SMALL, RECIPES["no privacy"], trials=4, initial=given)
    assert torch.equal(flat(model), own)
    assert torch.equal(flat(moved.model(1)), moved.weights[1])
    assert not torch.equal(flat(moved.model(1)), own)


@pytest.mark.parametrize("wrap", [fast, Wrapped])
def test_frozen_layers_stay(wrap):
    model = dense(5, 4, 3)
    model[0].requires_grad_(False)
    done = trained(SMALL, model=wrap(model), trials=2)
    assert done.weights.shape == (2, 15)
    assert torch.equal(next(done.model(1).parameters()), model[0].weight)


def test_what_is_told_of_trials_that_diverge_or_are_not_private():
    done = train(dense(5, 4, 3), SMALL, TrainingConfig(20, 1e30, block=2), trials=3, seed=1)
    assert done.diverged.all()
    assert "3 of them diverged" in repr(done)
    assert not trained(SMALL).diverged.any()
    assert "not DP" in repr(trained("remove", sensitivity="local"))


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


def test_a_step_that_is_over_is_let_go():
    """In a reference cycle its gradients would stay in memory until somebody collects it."""
    steps = []

    class Looking(Observer):
        def see(self, step):
            assert not any(earlier() for earlier in steps)
            steps.append(weakref.ref(step))

    gc.disable()
    trained(SMALL, Looking(), trials=1)
    gc.enable()
    assert len(steps) == 3


def asked(**options):
    return lambda: trained(**{"pair": SMALL, "model": dense(5, 3), "trials": 2, **options})


MANY = {"trials": 10_000, "model": dense(5, 1000, 3), "compute": Compute(memory=0.2)}
test_bad_input_is_one_sentence = refuses(
    {
        "trials be at least 1": asked(trials=0),
        "trials be 7, one for each part of the pool": asked(pair=PARTS, trials=5),
        "seed be a whole number from 0 to 2^256 - 1": asked(seed=-1),
        "world be one of in, out, alternate, random": asked(world="both"),
        "blocks be between 0 and 0": asked(blocks=[1]),
        "initial be one of fresh, given": asked(initial="zero"),
        "initial be of shape (18,) or (2, 18)": asked(initial=torch.zeros(3)),
        "data be two worlds for a canary gradient": asked(canary=object()),
        "data be two worlds for local sensitivity": asked(sensitivity="local"),
        "data be two worlds for a likelihood ratio": lambda: trained(SMALL, LikelihoodRatio()),
        "noise_multiplier be above 0": lambda: trained(
            "remove", LikelihoodRatio(), noise_multiplier=0.0
        ),
        "device be available": asked(compute=Compute("cuda:99")),
        "memory be at least 1": asked(compute=Compute(memory=0.01)),
        "The final weights of 10000 trials fit": asked(**MANY),
        "The final weights be kept": lambda: trained(SMALL, keep_weights=False).accuracy(SMALL),
    }
)


# Parts of a pool ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_records_in_no_part_do_not_matter(rate):
    members, records = MEMBERS.copy(), SMALL.records.copy()
    members[:, [2, 7]] = False
    records[[2, 7]] = 100.0
    pools = SMALL, Dataset.of(records, SMALL.labels, classes=3)
    first, second = (
        trained(TrainingData.parts(pool, members, 0.6), trials=None, sample_rate=rate)
        for pool in pools
    )
    assert len(first) == 7
    assert torch.equal(first.weights, second.weights)


CONVOLUTIONAL = {
    "joined": (nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2)),
    "plain": (nn.Conv2d(1, 4, 3), nn.Tanh(), nn.MaxPool2d(2)),
}


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_what_is_kept_of_a_pool_changes_nothing(monkeypatch, name, private):
    net = nn.Sequential(*CONVOLUTIONAL[name], nn.Flatten(), nn.Linear(36, 3))
    members = np.random.default_rng(1).random((5, 40)) < 0.5
    parts = TrainingData.parts(blobs(40, (1, 8, 8)), members, 0.5)
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
