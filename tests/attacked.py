"""Small trainings with Opacus and a monitor on them, for attacks on what is certified."""

from functools import partial

import pytest
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dprime.monitor import Monitor

QUIET = pytest.mark.filterwarnings("ignore::dprime.monitor.PrivacyWarning")

ALL_MODES = ("hooks", "functorch", "ew", "ghost")
FEATURES, CLASSES, RECORDS = 6, 3, 60
STEPS, TWO = 5, 2


def records(count=RECORDS, features=FEATURES, classes=CLASSES, seed=1):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, features, generator=generator)
    return TensorDataset(x, torch.randint(0, classes, (count,), generator=generator))


def network():
    return nn.Sequential(nn.Linear(FEATURES, 5), nn.Tanh(), nn.Linear(5, CLASSES))


def sgd(weights, rate=0.1):
    return torch.optim.SGD([p for p in weights if p.requires_grad], lr=rate)


class Calls(nn.Module):
    """A model that does what a function of its parts and its input says."""

    def __init__(self, does, **parts):
        super().__init__()
        self.does = does
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.does(self, x)


class Training:
    """A small private training: 6 batches an epoch, noise 1, clipping norm 1 unless told."""

    noise, batch, optimizer_of, attached = 1.0, 10, staticmethod(sgd), True

    def __init__(
        self, net=None, data=None, mode="hooks", *, engine=None, criterion=None, loader=None,
        optimizer=None, batch=None, noise=None, norm=1.0, attach=None, watched=None, **made,
    ):  # fmt: skip
        net, self.norm = net or network(), norm
        self.engine = engine or PrivacyEngine(accountant="rdp")
        criterion = criterion or nn.CrossEntropyLoss()
        found = self.engine.make_private(
            module=net, optimizer=(optimizer or self.optimizer_of)(net.parameters()),
            data_loader=loader or DataLoader(data or records(), batch_size=batch or self.batch),
            noise_multiplier=self.noise if noise is None else noise, max_grad_norm=norm,
            criterion=criterion, grad_sample_mode=mode, **made,
        )  # fmt: skip
        self.net, self.model, self.optimizer, self.loader = net, found[0], found[1], found[-1]
        self.criterion = found[2] if len(found) == 4 else criterion
        if self.attached if attach is None else attach:
            self.attach(**watched or {})

    def attach(self, **options):
        """A monitor that sees the training from now on."""
        self.monitor = Monitor(
            self.engine, model=self.model, optimizer=self.optimizer, data_loader=self.loader,
            criterion=self.criterion, **{"conditions": {"delta": 1e-3}, "show": None, **options},
        )  # fmt: skip
        return self.monitor

    def loss(self, x, y):
        return self.criterion(self.model(x), y)

    def backward(self, x, y):
        self.optimizer.zero_grad()
        self.loss(x, y).backward()

    def step(self, x, y):
        self.backward(x, y)
        self.optimizer.step()

    def train(self, epochs=1, between=None, after=None):
        """Epochs of steps, with something done before and after each step of the optimizer."""
        for _ in range(epochs):
            for x, y in self.loader:
                if between is None:
                    self.step(x, y)
                else:
                    self.backward(x, y)
                    between(x, y)
                    self.optimizer.step()
                if after is not None:
                    after(x, y)
        return self

    def next_step(self):
        self.step(*next(iter(self.loader)))
        return self

    def change(self, write):
        """Write to every weight by hand."""
        with torch.no_grad():
            for p in self.net.parameters():
                write(p)

    def clipped_sum(self, x, y):
        """Of one batch, as the optimizer has it before the noise."""
        self.backward(x, y)
        clips = "accumulate" if hasattr(self.optimizer, "accumulate") else "clip_and_accumulate"
        getattr(self.optimizer, clips)()
        parts = [p.summed_grad.flatten().clone() for p in self.optimizer.params]
        self.optimizer.zero_grad()
        return torch.cat(parts)

    def moved(self, x, y, without=slice(1, None)):
        """How far the first record moves the clipped sum, in clipping norms."""
        whole = self.clipped_sum(x, y)
        return float((whole - self.clipped_sum(x[without], y[without])).norm()) / self.norm


def certified(training, warnings=None):
    """Whether something is; the warnings begin like these, if any are named."""
    if warnings is not None:
        found = training.monitor.warnings
        assert [w[: len(begin)] for w, begin in zip(found, warnings, strict=True)] == [*warnings]
    return training.monitor.curve().advantage() < 1.0


def not_covered(training, problem):
    """That nothing is certified, for this reason, with the warning that says what to do."""
    assert getattr(training.monitor.mechanism(), "reason", None) == problem
    assert training.monitor.curve().advantage() == 1.0
    assert problem.warning in training.monitor.warnings
    assert "Not private" in str(training.monitor)
    return True


class Clipping(Training):
    """Its first record shows whether each is clipped for itself; a monitor comes when asked for."""

    noise, batch, attached = 4.0, 16, False
    optimizer_of = staticmethod(partial(sgd, rate=0.01))

    def __init__(self, net, *tensors, mode="hooks", **made):
        super().__init__(net, TensorDataset(*tensors) if tensors else None, mode, **made)
        self.first = [tensor[: made.get("batch", self.batch)] for tensor in tensors]

    def watched(self, epochs=1):
        self.attach()
        return self.train(epochs)

    def gives_away(self, least, problem):
        """The first record moves the sum of the first batch, and no certificate is left."""
        assert self.moved(*self.first) > least
        return not_covered(self.watched(), problem)


def vectors(count=160, features=6, classes=TWO):
    """The first record is long."""
    x, y = torch.randn(count, features), torch.randint(0, classes, (count,))
    x *= 0.1
    x[0] = 3.0
    return x, y


def sequences(count=160, features=6):
    x, y = torch.randn(count, STEPS, features) * 0.1, torch.randint(0, TWO, (count,))
    x[0] = 30.0
    return x, y


def disagreeing(net, x, y):
    """The network and its data, where the first record has the label that is least expected."""
    with torch.no_grad():
        y[0] = net(x[:1])[0].argmin()
    return net, x, y


def linear():
    return nn.Linear(6, TWO)
