"""Trainings that keep or write something of their records where it is hard to see."""

from collections import OrderedDict, deque
from threading import Lock

import numpy as np
import opacus
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dprime.monitor import checks
from dprime.monitor.problems import Problem
from watching import reason, refused, watch

BOTH = pytest.mark.parametrize("mode", ["hooks", "ghost"])
NAN, INF = float("nan"), float("inf")


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

    def __init__(self, held, keep):
        super().__init__(keep)
        self.bank = np.zeros(4000, dtype=np.float32)
        self.held = held

    def get_extra_state(self):
        return self.held(self.bank)

    def set_extra_state(self, state):
        """Nothing is loaded."""


def bank(layer, x):
    layer.bank[0] = x[0]


def uncounted(layer, x):
    layer.bank.data[0] = x[0]


def turn(layer, x):
    layer.number.mul_(-1)


def count_large(layer, x):
    layer.number += int((x.abs() > 1).sum())


def take(layer, x):
    layer.number.fill_(float(x[0, 0]))


def nothing(*_):
    """Keeps nothing."""


@BOTH
@pytest.mark.parametrize(
    ("keep", "buffers"),
    [
        *((bank, {"bank": torch.full((3, 4), start)}) for start in (NAN, INF, -INF)),
        (uncounted, {"bank": torch.full((3, 4), NAN)}),
        (bank, {"bank": [[1e30] * 4] * 2}),
        (turn, {"number": 1.0}),  # one number is compared exactly
        (count_large, {"number": 1763500000000000000}),
        (take, {"number": NAN}),
    ],
)
def test_a_buffer_that_keeps_records(private, mode, keep, buffers):
    made = private(mode, net=Keeping(keep, **buffers))
    refused(watch(made), made.train, Problem.BUFFERS)


def test_weights_beside_a_nan(private):
    net = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(4, 2))
    net[0].weight.data[4] = NAN  # a word that never comes
    data = TensorDataset(torch.arange(60)[:, None] % 3, torch.arange(60) % 2)
    made = private(net=net, loader=DataLoader(data, batch_size=10))

    def train():
        for records, labels in made.loader:
            made.step(records, labels)
            with torch.no_grad():
                net[0].weight[3] += 1.0

    refused(watch(made), train, Problem.MOVED)


def test_values_that_stay_are_no_change(private):
    def keep(layer, x):
        layer.mask.copy_(layer.mask.clone())

    mask = torch.full((3, 3), -INF).triu(1)
    monitor = watch(made := private(net=Keeping(keep, mask=mask, odd=[NAN, 1.0])))
    made.train()
    assert not reason(monitor)
    assert checks.NOW not in str(monitor)
    made.model._module.odd[1] = 2.0
    assert checks.NOW in str(monitor)


def test_a_large_count_of_the_calls_is_no_change(private):
    net = Keeping(nothing, number=1763500000000000000, none=NAN)
    net.register_forward_pre_hook(lambda layer, x: layer.number.add_(1) and None)
    monitor = watch(made := private(net=net))
    made.train(2)
    assert not reason(monitor)


LOCK = Lock()


def cyclic(state):
    state["itself"] = state
    return state


HELD = {
    "array": lambda array: {"bank": array},
    "deque": lambda array: deque([torch.from_numpy(array)]),
    "set": lambda array: [{1, 2}, (torch.from_numpy(array), open)],
    "no form": lambda array: {"lock": LOCK, "bank": [torch.from_numpy(array)], "of": print},
    "cycle": lambda array: cyclic({"bank": array}),
}


@pytest.mark.parametrize("held", HELD)
def test_what_is_saved_besides(private, held):
    def keep(layer, x):
        layer.bank[600:604] = x[0].numpy()

    made = private(net=Saving(HELD[held], keep))
    refused(watch(made), made.train, Problem.BUFFERS)
    monitor = watch(made := private(net=Saving(lambda array: HELD[held](array.copy()), nothing)))
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


@pytest.mark.parametrize("epochs", [0, 1])
def test_gradients_that_are_changed_after_ghost_clipping(private, epochs):
    """In the first step copies tell, and later norms."""
    monitor = watch(made := private("ghost"))
    made.train(epochs)
    refused(monitor, lambda: ghost_steps(made, scale), Problem.CHANGED)
    monitor = watch(made := private("ghost"))
    for _ in range(15):  # beyond the steps in which all norms are compared
        ghost_steps(made, shorten, 6)
    assert not reason(monitor)  # a projection


def inner(made):
    return made.optimizer.original_optimizer


def write(made, how):
    def written(*_):
        for p in made.optimizer.params:
            how(p)

    return written


def take_noise_off(p):
    p.grad.data.copy_(p.summed_grad / 10)


def add_sum(p):
    p.detach().add_(p.summed_grad)


def add_sum_uncounted(p):
    p.data.add_(p.summed_grad)


@BOTH
@pytest.mark.parametrize("how", [take_noise_off, add_sum, add_sum_uncounted])
def test_what_is_written_before_the_step(private, mode, how):
    made = private(mode)
    inner(made).register_step_pre_hook(write(made, how))
    refused(watch(made), made.train, Problem.OUTSIDE)


@pytest.mark.parametrize("later", [True, False])
def test_weights_that_are_written_after_the_step(private, later):
    made = private()

    def train():
        made.train()
        if later:
            inner(made).register_step_post_hook(write(made, add_sum))
        made.train()

    if not later:
        inner(made).register_step_post_hook(write(made, add_sum))
    refused(watch(made), train, Problem.MOVED)


def test_weights_that_are_written_after_the_last_step(private):
    monitor = watch(made := private())
    made.train()
    inner(made).register_step_post_hook(write(made, add_sum))
    made.step(*next(iter(made.loader)))
    assert checks.NOW in str(monitor)


def in_eval(private):
    """Only the head is in training mode."""
    head = nn.Sequential(nn.Linear(4, 6).requires_grad_(False), nn.Tanh(), nn.Linear(6, 2))
    made = private(net=nn.Sequential(head), trained=lambda net: net[0][2].parameters())
    made.model.eval()
    head[2].train()
    return made


def test_only_the_head_is_in_training(private):
    made = in_eval(private)

    def train():
        weight = made.optimizer.params[0]
        for records, labels in made.loader:
            made.optimizer.zero_grad()
            made.criterion(made.model(records), labels).backward()
            ascent = weight.grad.clone()
            weight.detach().add_(ascent)
            made.optimizer.zero_grad()
            made.criterion(made.model(records), labels).backward()
            weight.detach().sub_(ascent)
            made.optimizer.step()

    refused(watch(made), train, Problem.MOVED)


def test_evaluations_are_no_training(private):
    monitor = watch(made := in_eval(private))
    for records, labels in made.loader:
        with torch.no_grad():
            made.model(torch.randn(50, 4))
        made.step(records, labels)
        made.model.eval()
        made.model(torch.randn(50, 4))
        made.model._module[0][2].train()
    assert not reason(monitor)


class Lookahead(torch.optim.Optimizer):
    """As timm has it: it does not call the constructor that lets hooks run."""

    def __init__(self, base, closure=None):
        for moment in ("step", "state_dict", "load_state_dict"):
            for when in ("pre", "post"):
                setattr(self, f"_optimizer_{moment}_{when}_hooks", OrderedDict())
        self.base, self.closure, self.steps = base, closure, 0
        self.param_groups, self.defaults, self.state = base.param_groups, base.defaults, base.state

    @torch.no_grad()
    def step(self, closure=None):
        self.base.step(self.closure)
        self.steps += 1
        if self.steps % 3 == 0:
            for p in self.param_groups[0]["params"]:
                slow = self.state[p].setdefault("slow", p.detach().clone())
                p.copy_(slow.lerp_(p, 0.5))

    def zero_grad(self, set_to_none=True):
        self.base.zero_grad(set_to_none)


class Hooked(Lookahead):
    """With the constructor of PyTorch."""

    def __init__(self, base, closure=None):
        torch.optim.Optimizer.__init__(self, base.param_groups, {})
        super().__init__(base, closure)


class Twice(torch.optim.SGD):
    """Calls a step that has hooks, and goes on."""

    @torch.no_grad()
    def step(self, closure=None):
        super().step()
        for p in self.param_groups[0]["params"]:
            p.mul_(0.99)


def looking_ahead(private, kind, closure=None):
    made = private()
    plain = torch.optim.SGD(made.model.parameters(), lr=0.1)
    other = Twice(made.model.parameters(), lr=0.1) if kind is Twice else kind(plain, closure)
    made.optimizer.original_optimizer = other
    return made


def raw_gradients(made):
    made.optimizer.zero_grad()
    with torch.enable_grad():
        made.criterion(made.model(torch.ones(5, 4)), torch.ones(5).long()).backward()


@pytest.mark.parametrize("kind", [Lookahead, Hooked, Twice])
def test_an_optimizer_within_the_step_has_the_noisy_gradient(private, kind):
    monitor = watch(made := looking_ahead(private, kind))
    made.train(2)
    assert not reason(monitor)
    assert checks.NOW not in str(monitor)


@pytest.mark.parametrize("through_model", [True, False])
def test_an_optimizer_within_the_step_with_gradients_of_its_own(private, through_model):
    def closure():
        if through_model:
            raw_gradients(made)
        else:
            for p in made.optimizer.params:
                p.grad.add_(p.summed_grad)

    made = looking_ahead(private, Lookahead, closure)
    refused(watch(made), lambda: made.step(*next(iter(made.loader))), Problem.OUTSIDE)


def test_the_optimizer_within_the_step_makes_no_other(private):
    made = looking_ahead(private, Lookahead)

    def train():
        made.train()
        raw_gradients(made)
        inner(made).base.step()

    refused(watch(made), train, Problem.OUTSIDE)


@pytest.mark.skipif(opacus.__version__ < "1.6", reason="came with Opacus 1.6")
@pytest.mark.parametrize(("mode", "wrap"), [("ew", True), ("hooks", False)])
def test_weights_that_a_hook_from_before_puts_in_for_one_call(private, mode, wrap):
    """Where Opacus' wrapper is what is called first, or where there is none."""
    made = private(mode, net=(net := private.network()), wrap_model=wrap)
    called, kept = made.model if wrap else net, []

    def put_in(_, x):
        kept[:] = [p.detach().clone() for p in net.parameters()]
        for p in net.parameters():
            p.data.add_(x[0].mean())

    def take_out(*_):
        for p, own in zip(net.parameters(), kept, strict=True):
            p.data.copy_(own)

    def train():
        made.model = called
        made.train()

    called.register_forward_pre_hook(put_in)
    called.register_forward_hook(take_out)
    refused(watch(made), train, Problem.MOVED)
