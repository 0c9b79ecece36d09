"""Trainings that keep or write something of their records where it is hard to see."""

from collections import deque

import numpy as np
import pytest
import torch
from torch import nn

from dprime.monitor import PrivacyWarning, checks
from watching import watch

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing")


class Keeping(nn.Module):
    """A layer that does something with the records of a batch."""

    def __init__(self, keep, **buffers):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.keep = keep
        for name, start in buffers.items():
            self.register_buffer(name, torch.as_tensor(start))

    def forward(self, x):
        if self.training and len(x):
            self.keep(self, x.detach())
        return self.layer(x)


class Saving(Keeping):
    """Saves an array besides its weights."""

    def __init__(self, held):
        super().__init__(lambda layer, x: layer.bank.__setitem__(slice(600, 604), x[0].numpy()))
        self.bank = np.zeros(4000, dtype=np.float32)
        self.held = held

    def get_extra_state(self):
        return self.held(self.bank)

    def set_extra_state(self, state):
        """Nothing is loaded."""


def reason(monitor):
    return getattr(monitor.mechanism(), "reason", "")


def bank(layer, x):
    layer.bank[0] = x[0]


def found(made, wanted, train=None):
    """Train, and see that the monitor gives this reason."""
    monitor = watch(made)
    with pytest.warns(PrivacyWarning):
        (train or made.train)()
    assert reason(monitor) == wanted
    return monitor


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
@pytest.mark.parametrize("start", [float("nan"), float("inf"), -float("inf")])
def test_a_bank_among_values_that_are_not_finite(private, mode, start):
    found(private(mode, net=Keeping(bank, bank=torch.full((3, 4), start))), checks.BUFFERS)


def test_a_bank_that_pytorch_does_not_count(private):
    def keep(layer, x):
        layer.bank.data[0] = x[0]

    net = Keeping(keep, bank=torch.full((3, 4), float("nan")))
    found(private(net=net), checks.BUFFERS)


def test_a_bank_beside_a_huge_value(private):
    found(private(net=Keeping(bank, bank=[[1e30] * 4] * 2)), checks.BUFFERS)


def test_weights_beside_a_nan(private):
    net = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(4, 2))
    net[0].weight.data[4] = float("nan")  # a word that never comes
    data = torch.utils.data.TensorDataset(torch.arange(60)[:, None] % 3, torch.arange(60) % 2)
    made = private(net=net, loader=torch.utils.data.DataLoader(data, batch_size=10))

    def train():
        for records, labels in made.loader:
            made.step(records, labels)
            with torch.no_grad():
                net[0].weight[3] += 1.0

    found(made, checks.MOVED, train)


def test_values_that_stay_are_no_change(private):
    def keep(layer, x):
        layer.mask.copy_(layer.mask.clone())

    mask = torch.full((3, 3), -float("inf")).triu(1)
    monitor = watch(made := private(net=Keeping(keep, mask=mask, odd=[float("nan"), 1.0])))
    made.train()
    assert not reason(monitor)
    assert checks.NOW not in str(monitor)
    made.model._module.odd[1] = 2.0
    assert checks.NOW in str(monitor)


def turn(layer, x):
    layer.number.mul_(-1)


def count_large(layer, x):
    layer.number += int((x.abs() > 1).sum())


def take(layer, x):
    layer.number.fill_(float(x[0, 0]))


@pytest.mark.parametrize(
    ("keep", "start"),
    [(turn, 1.0), (count_large, 1763500000000000000), (take, float("nan"))],
)
def test_one_number_is_compared_exactly(private, keep, start):
    found(private(net=Keeping(keep, number=start)), checks.BUFFERS)


def test_a_large_count_of_the_calls_is_no_change(private):
    net = Keeping(lambda *_: None, number=1763500000000000000, none=float("nan"))
    net.register_forward_pre_hook(lambda layer, x: layer.number.add_(1) and None)
    monitor = watch(made := private(net=net))
    made.train(2)
    assert not reason(monitor)


HELD = {
    "array": lambda array: {"bank": array},
    "deque": lambda array: deque([torch.from_numpy(array)]),
    "set": lambda array: [{1, 2}, (torch.from_numpy(array), open)],
}


@pytest.mark.filterwarnings("ignore::dprime.monitor.PrivacyWarning")
@pytest.mark.parametrize("held", HELD)
def test_what_is_saved_besides(private, held):
    monitor = watch(made := private(net=Saving(HELD[held])))
    made.train()
    assert reason(monitor) == checks.BUFFERS


@pytest.mark.parametrize("held", HELD)
def test_what_is_saved_besides_and_stays(private, held):
    net = Saving(lambda array: HELD[held](array.copy()))
    net.keep = lambda *_: None
    monitor = watch(made := private(net=net))
    made.train()
    assert not reason(monitor)


def ghost_steps(made, change, steps=3):
    """Steps of ghost clipping whose gradients are changed before the noise."""
    for _, (records, labels) in zip(range(steps), made.loader, strict=False):
        made.optimizer.zero_grad()
        made.criterion(made.model(records), labels).backward()
        change([p.grad for p in made.model.parameters()])
        made.optimizer.step()


def scale(gradients):
    for gradient in gradients:
        gradient.data.mul_(5.0)


def shorten(gradients):
    """As `clip_grad_norm_`, but by writes that PyTorch does not count."""
    factor = 0.01 / torch.cat([gradient.flatten() for gradient in gradients]).norm()
    for gradient in gradients:
        gradient.data.mul_(factor.clamp(max=1.0))


def test_gradients_that_are_scaled_after_ghost_clipping(private):
    made = private("ghost")
    found(made, checks.CHANGED, lambda: ghost_steps(made, scale))


def test_a_projection_after_ghost_clipping_stays_certified(private):
    monitor = watch(made := private("ghost"))
    for _ in range(15):  # beyond the steps in which all norms are compared
        ghost_steps(made, shorten, 6)
    assert not reason(monitor)
