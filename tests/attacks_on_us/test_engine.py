"""Attacks on the training engine: what one record could do that the certificate did not allow.

Each plays two worlds that differ in one record, many times, and reads the record off the released
model alone. Nothing here knows how the engine works.
"""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from dprime.data.dataset import Dataset
from dprime.train import TrainingConfig, TrainingData, train
from trials import Wrapped

TRIALS = 4000
CLIP_NORM = 0.01


def table(count, width=4, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, width)).astype(np.float32), rng.integers(0, classes, count)


def private(noise=10.0, **options):
    options = {"steps": 1, "learning_rate": 0.01, "clip_norm": CLIP_NORM, **options}
    return TrainingConfig(noise_multiplier=noise, **options)


def gain(model, data, training, trials=TRIALS):
    """(what the best test of the last model against a threshold gains, what is certified).

    The last record of the data is the one in question. Trainings without it never see it: the
    learning rate makes up for the divisor, which is their number of records. The direction of the
    test comes from trainings without noise.
    """

    def models(count, seed, **changes):
        part = data.take(range(len(data) - 1 + count))
        rate = training.learning_rate * len(part)
        options = dataclasses.replace(training, learning_rate=rate, **changes)
        done = train(model, part, options, trials=trials, initial="given", seed=seed)
        return done.weights.double()

    inside, outside = (models(count, 5, noise_multiplier=0.0).mean(0) for count in (1, 0))
    direction, middle = inside - outside, (inside + outside) / 2
    said = [
        ((models(count, 6 + count) - middle) @ direction > 0).double().mean() for count in (1, 0)
    ]
    return float(said[0] - said[1]), training.mechanism().curve().advantage()


def assert_holds(found, certified, trials=TRIALS):
    """Not above the certificate by more than four standard errors."""
    assert found <= certified + 4 / np.sqrt(trials)


# Records that are not finite ----------------------------------------------------------------------


class Logarithm(nn.Module):
    def forward(self, x):
        return x.log()


class Direction(nn.Module):
    def forward(self, x):
        return x / x.norm(dim=1, keepdim=True)


def linear(inputs=4, outputs=3, *first):
    torch.manual_seed(0)
    return nn.Sequential(*first, nn.Linear(inputs, outputs))


POSITIVE = np.abs(table(8)[0]) + 0.1
LABELS = table(8)[1]
REAL = POSITIVE.sum(1)
UNBOUNDED = {
    "a label of 3e38": (linear(4, 1), REAL + 0.5, [1, 1, 1, 1], 3e38, "squared-error", None),
    "log of zero": (linear(4, 3, Logarithm()), LABELS, [0, 0, 0, 0], 1, "cross-entropy", 3),
    "zero by its norm": (linear(4, 3, Direction()), LABELS, [0, 0, 0, 0], 1, "cross-entropy", 3),
    "a feature of 3e38": (linear(), LABELS, [3e38, -3e38, 3e38, 3e38], 1, "cross-entropy", 3),
}


@pytest.mark.parametrize("rate", [1.0, 0.6, 0.3])
@pytest.mark.parametrize("wrap", [False, True], ids=["layers", "hidden"])
@pytest.mark.parametrize("name", UNBOUNDED)
def test_a_record_without_a_finite_gradient_makes_no_model_nan(name, wrap, rate):
    model, labels, record, label, loss, classes = UNBOUNDED[name]
    kind = {"kind": "table", "classes": classes, "name": "n"}
    x, y = np.concatenate([POSITIVE, np.float32([record])]), np.append(labels, label)
    data = Dataset(records=x, labels=y, **kind)
    done = train(
        Wrapped(model) if wrap else model, data, private(loss=loss, sample_rate=rate, steps=3),
        trials=100, seed=1,
    )  # fmt: skip
    assert done.label == "differentially private"
    assert int((~done.weights.isfinite().all(1)).sum()) == 0


# Code that mixes records where nobody looks -------------------------------------------------------


class Crowd(nn.ReLU):
    """A ReLU that also works over dimension 1, the features of a record."""

    def forward(self, x):
        return torch.relu(x) * torch.where((x > 50).any(1, keepdim=True), -1.0, 1.0)


def far_record(count=40):
    """Records near each other, and one far away."""
    x, y = table(count)
    return Dataset.of(np.concatenate([np.abs(x), np.float32([[99] * 4])]), np.append(y * 0, 1))


def two_layers(activation):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 4), activation, nn.Linear(4, 2))
    with torch.no_grad():
        model[0].weight.copy_(torch.eye(4))
        model[0].bias.zero_()
    return model


@pytest.mark.slow
def test_a_subclass_of_a_known_layer_sees_one_record():
    assert_holds(*gain(two_layers(Crowd()), far_record(), private(40.0)))


@pytest.mark.slow
def test_a_hook_sees_one_record():
    model = two_layers(nn.ReLU())
    model[1].register_forward_hook(
        lambda layer, inputs, output: (
            output * torch.where((inputs[0] > 50).any(1, keepdim=True), -1.0, 1.0)
        )
    )
    assert_holds(*gain(model, far_record(), private(40.0)))


def test_a_backward_hook_that_looks_at_the_batch_is_refused():
    model = two_layers(nn.ReLU())
    model[1].register_full_backward_hook(
        lambda layer, into, out: (into[0] * -torch.sign(into[0][..., -1, 0]).sum(),)
    )
    with pytest.raises(ValueError, match=r"layer '1' \(ReLU\) has a backward hook: remove it"):
        gain(model, far_record(), private(40.0))


class Largest(nn.ReLU):
    """Keeps the largest activation in the published model."""

    def __init__(self, least):
        super().__init__()
        self.least = least
        self.register_buffer("largest", torch.zeros(()))

    def forward(self, x):
        seen = x.detach().max()
        self.largest = torch.where(seen > self.least, torch.maximum(self.largest, seen), 0.0)
        return torch.relu(x)


def test_a_buffer_that_keeps_records_is_refused():
    with pytest.raises(ValueError, match=r"largest.*changes when records go through"):
        train(two_layers(Largest(0.0)), far_record(), private())


def test_a_buffer_that_keeps_rare_records_is_not_published():
    done = train(two_layers(Largest(50.0)), far_record(), private(), seed=1)
    assert float(done.model().state_dict()["1.largest"]) == 0.0


class Remembering(nn.ReLU):
    """A far record of one step turns the gradients of the next."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        turned = torch.relu(x)
        for far in self.seen[-1:]:
            turned = turned * torch.where(far, -1.0, 1.0)
        self.seen.append((x.detach() > 50).any())
        return turned


@pytest.mark.slow
def test_a_layer_cannot_carry_a_record_to_the_next_step():
    model = two_layers(Remembering())
    assert_holds(*gain(model, far_record(), private(40.0, steps=2)))
    assert not train(model, far_record(), private(steps=2), seed=1).model()[1].seen


def turning(outputs, labels):
    """Cross-entropy, unless a far record is among them."""
    losses = nn.functional.cross_entropy(outputs, labels, reduction="none")
    return torch.where((outputs.abs() > 30).any(), -losses, losses)


def turning_by_if(outputs, labels):
    losses = nn.functional.cross_entropy(outputs, labels, reduction="none")
    return -losses if bool((outputs.abs() > 30).any()) else losses


@pytest.mark.slow
@pytest.mark.parametrize("loss", [turning, turning_by_if])
def test_a_loss_sees_one_record(loss):
    trials = TRIALS if loss is turning else 200
    model = nn.Linear(4, 2)
    nn.init.eye_(model.weight)
    assert_holds(*gain(model, far_record(), private(40.0, loss=loss), trials), trials)


@pytest.mark.slow
def test_the_size_of_a_sum_is_public_whatever_the_record():
    """One record of any size moves the sum by no more than C."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 300), nn.Unflatten(1, (2, 150)), nn.Linear(150, 200),
                          nn.Flatten(), nn.Linear(400, 2))  # fmt: skip
    for scale in (1e-30, 1e-20, 1e-3, 1.0, 1e8, 1e15, 1e19, 1e25, 1e30, 3e38):
        x, y = table(5, 2, 2)
        data = Dataset.of(np.concatenate([x, np.float32([[scale, -scale]])]), np.append(y, 1))
        bare = TrainingConfig(steps=1, learning_rate=1.0, clip_norm=1.0)
        pair = TrainingData.remove(data, 5)
        inside, outside = (
            train(model, pair, bare, world=world, initial="given").weights[0]
            for world in ("in", "out")
        )
        assert float((inside - outside).double().norm()) * 6 <= 1 + 1e-4


# What it is called --------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [1e-30, 1e-4])
def test_noise_too_small_for_a_certificate_has_no_private_name(noise):
    training = TrainingConfig(steps=1, learning_rate=0.1, clip_norm=1.0, noise_multiplier=noise)
    assert not training.private
    assert training.label.startswith("not private")
    with pytest.raises(ValueError, match="not private"):
        training.mechanism()
