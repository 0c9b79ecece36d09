import io

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dprime.canaries.inputs import InputCanaries
from dprime.monitor.monitor import Monitor
from dprime.monitor.opacus_training import OpacusTraining
from planted_opacus import MISTAKES, MODES, made_private, network, toy
from told import refuses

STEPS, NOISE, BATCH, COUNT = 30, 2.0, 30, 120
DATA = toy(200, features=40)
PUBLIC = {"classes": 3, "scale": 3.0}
"""What is known of the data without looking."""


def model():
    return network(features=40, hidden=32)


def audited(mistake=None, *, steps=STEPS, every=2, **options):
    canaries = InputCanaries.crafted(DATA, COUNT, seed=3, every=every, **PUBLIC)
    private = made_private(
        model(), canaries.with_canaries(DATA), **({"noise": NOISE, "batch": BATCH} | options)
    )
    if mistake is not None:
        MISTAKES[mistake](private)
    Monitor(**private.parts(), watchers=[canaries], show=None)
    private.train(steps)
    return canaries


@pytest.mark.filterwarnings("ignore:Not private. the optimizer's own clipping")
@pytest.mark.filterwarnings("ignore:Not private. a part of a gradient was not clipped")
@pytest.mark.parametrize("mode", MODES)
def test_a_right_training_is_not_refuted_and_one_without_clipping_is(mode):
    """Also where the loss clips."""
    found = audited(mode=mode).result()
    assert found.verdict == "not refuted"
    assert found.needed is not None
    assert found.bound < found.claimed
    assert audited("clipping left out", mode=mode).result().verdict == "refuted"


# Mixing -------------------------------------------------------------------------------------------


def test_crafted_records_lie_far_out_and_have_every_class():
    canaries = InputCanaries.crafted(DATA, 100, classes=3, scale=2.0, factor=7.0, seed=1)
    assert canaries.records.shape == (100, 40)
    assert canaries.records.norm(dim=1) == pytest.approx(7.0 * 2.0 * 40**0.5)
    assert set(canaries.labels.tolist()) == {0, 1, 2}
    assert torch.equal(InputCanaries.crafted(DATA, 100, classes=3, seed=1).labels, canaries.labels)


def test_crafted_canaries_follow_no_record():
    def crafted(records, labels):
        return InputCanaries.crafted(TensorDataset(records, labels), 100, seed=1, **PUBLIC)

    records, labels = DATA.tensors
    far = records.clone()
    far[0] *= 50
    whole = crafted(far, labels)
    unknown = torch.full_like(records, torch.nan)
    for other in (crafted(far[1:], labels[1:]), crafted(unknown, 2 - labels)):
        assert torch.equal(other.records, whole.records)
        assert torch.equal(other.labels, whole.labels)


@pytest.mark.parametrize("label", [torch.tensor([1.0]), torch.tensor(1), 1, 0.5])
def test_crafted_labels_look_like_the_data_s(label):
    data = [(torch.ones(2, 2), label)] * 10
    canaries = InputCanaries.crafted(data, 60, classes=2, seed=1)
    like = torch.as_tensor(label)
    assert canaries.labels.dtype == like.dtype
    assert canaries.labels.shape == (60, *like.shape)
    mixed = canaries.with_canaries(data)
    assert type(mixed[10 + int(np.argmax(canaries._inside))][1]) is type(label)
    records, labels = next(iter(DataLoader(mixed, batch_size=len(mixed))))
    assert records.shape[1:] == (2, 2)
    assert labels.shape == (len(records), *like.shape)


def test_a_batch_has_the_canaries_that_are_in_and_skips_the_others():
    canaries = InputCanaries.crafted(DATA, 100, seed=1, **PUBLIC)
    mixed = canaries.with_canaries(DATA)
    inside = torch.from_numpy(canaries._inside)
    assert torch.equal(mixed[3][0], DATA[3][0])
    records, labels = next(iter(DataLoader(mixed, batch_size=300)))
    assert torch.equal(records, torch.cat([DATA.tensors[0], canaries.records[inside]]))
    assert torch.equal(labels, torch.cat([DATA.tensors[1], canaries.labels[inside]]))
    assert canaries._inside[4]
    assert torch.equal(mixed[204][0], canaries.records[4])
    with pytest.raises(ValueError, match="index must be that of a record, but it is an empty"):
        mixed[200 + int(np.argmin(canaries._inside))]


def test_nothing_but_the_batches_tells_how_the_coins_fell():
    seen = set()
    for seed in range(4):
        canaries = InputCanaries.crafted(DATA, COUNT, seed=seed, **PUBLIC)
        private = made_private(model(), canaries.with_canaries(DATA), noise=NOISE, batch=10)
        seen.add((
            len(private.loader.dataset), len(private.loader), private.loader.sample_rate,
            private.optimizer.expected_batch_size,
        ))  # fmt: skip
    assert seen == {(320, 32, 1 / 32, 10)}


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "ew"])  # needs one record
def test_a_batch_of_empty_places_only_is_a_step_without_records(mode):
    canaries = InputCanaries.crafted(DATA, COUNT, seed=3, **PUBLIC)
    data = canaries.with_canaries(DATA)
    private = made_private(model(), data, noise=NOISE, batch=BATCH, mode=mode)
    private.train(1)
    before = torch.cat([p.detach().flatten() for p in private.model.parameters()])
    empty = (200 + np.flatnonzero(~canaries._inside)[:3]).tolist()
    assert private.loader.dataset.present([7, *empty]) == [7]
    x, y = private.loader.collate_fn(private.loader.dataset.__getitems__(empty))
    private.optimizer.zero_grad()
    private.criterion(private.model(x), y).backward()
    private.optimizer.step()
    after = torch.cat([p.detach().flatten() for p in private.model.parameters()])
    moved = (before - after) * private.optimizer.expected_batch_size / 0.1  # the learning rate
    assert len(x) == 0
    assert float(moved.std()) == pytest.approx(NOISE, rel=0.1)  # of 1,411 weights: 5 errors


# Scoring ------------------------------------------------------------------------------------------


def test_the_directions_are_the_records_gradients():
    canaries = audited(steps=1, every=5)
    found = canaries._directions(canaries._training)
    loss = nn.functional.cross_entropy(canaries._bare(canaries.records[:1]), canaries.labels[:1])
    gradient = torch.autograd.grad(loss, list(canaries._bare.parameters()))
    expected = canaries._places.read(g.flatten() for g in gradient)
    assert found[0].numpy() == pytest.approx((expected / expected.norm()).numpy(), abs=1e-4)


def test_a_canary_in_the_sum_stands_out():
    canaries = audited(steps=1, every=5)
    rows = canaries._directions(canaries._training)
    shown = [4, 8, 15]
    noisy = 50 * rows[shown].sum(0) + torch.randn(rows.shape[1], generator=torch.Generator())
    shares = canaries._shares(canaries._training, noisy)
    assert set(np.argsort(shares)[-3:]) == set(shown)


@pytest.mark.parametrize("what", ["sum", "weights"])
def test_numbers_that_are_not_finite_add_nothing(what):
    canaries = audited(steps=1, every=1)
    before, training = canaries._total.copy(), canaries._training
    for p in training.parameters():
        if what == "sum":
            p.grad = torch.full_like(p, torch.inf)
        else:
            p.data.fill_(torch.nan)
    canaries.after_noise(training)
    assert np.array_equal(canaries._total, before)
    told = "1 of the steps had numbers that were not finite" in canaries.result().report()
    assert told == (what == "sum")


def test_the_report_says_how_long_the_gradients_were():
    assert "clipping norms long (median)" in audited(steps=5).result().report()
    near = InputCanaries(torch.zeros(60, 40), torch.zeros(60, dtype=torch.int64), every=1)
    private = made_private(model(), near.with_canaries(DATA), noise=1.0, clip_norm=100.0)
    Monitor(**private.parts(), watchers=[near], show=None)
    private.train(1)
    assert "Clipping was hardly on the test" in near.result().report()


# Resuming -----------------------------------------------------------------------------------------


def test_the_state_survives_a_file_and_needs_the_same_seed():
    canaries = audited(steps=6)
    file = io.BytesIO()
    torch.save(canaries.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    again = InputCanaries.crafted(DATA, COUNT, seed=3, **PUBLIC)
    again.with_canaries(DATA)
    again.load_state_dict(state)
    assert np.array_equal(again._total, canaries._total)
    other = InputCanaries.crafted(DATA, COUNT, seed=4, **PUBLIC)
    other.with_canaries(DATA)
    with pytest.raises(ValueError, match="seed must be that of the training that was saved"):
        other.load_state_dict(state)


# Bad input ----------------------------------------------------------------------------------------


def started(mixed, **other):
    canaries = InputCanaries.crafted(DATA, 60, **PUBLIC)
    data = canaries.with_canaries(DATA)
    private = made_private(model(), data if mixed else DATA, noise=1.0)
    canaries.start(OpacusTraining(**(private.parts() | other)))


def crafted(data=DATA, **options):
    return InputCanaries.crafted(data, **({"count": 60} | PUBLIC | options))


test_what_is_refused = refuses({
    "data_loader be over the canaries' with_canaries(dataset)": lambda: started(False),
    "loss be given for input canaries": lambda: started(True, criterion=None),
    "every be at least 1": lambda: crafted(every=0),
    "factor be above 0": lambda: crafted(factor=0.0),
    "count be at least 50": lambda: crafted(count=10),
    "scale be above 0": lambda: crafted(scale=-1.0),
    "classes be at least 1": lambda: crafted(classes=0),
    "dataset be of pairs": lambda: crafted([(torch.tensor([1, 2]), 0)]),
    "dataset be one whose labels are a number": lambda: crafted([(torch.ones(4), "cat")]),
    "dataset be one whose labels": lambda: crafted([(torch.ones(4), torch.ones(3))]),
    "labels be 60 of them": lambda: InputCanaries(torch.zeros(60, 2), torch.zeros(59)),
})  # fmt: skip
