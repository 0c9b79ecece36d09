"""Ghost clipping whose losses, factors or norms do not clip each record for itself."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional

from attacked import QUIET, TWO, Clipping, certified, disagreeing, linear, not_covered, vectors
from dprime import DPSGD
from dprime.monitor.problems import Problem

pytestmark = QUIET
Ghost = partial(Clipping, mode="ghost")


@pytest.mark.parametrize("criterion", [nn.BCEWithLogitsLoss, nn.MSELoss])
def test_losses_of_another_shape_clip_no_record_for_itself(criterion):
    """Of shape [records, 1] they are multiplied with factors of shape [records]: a table."""
    x, _ = vectors()
    x *= 0.2
    x[0] = 0.25
    net = nn.Linear(6, 1, bias=False)
    net.weight.data.fill_(-1.0)
    training = Ghost(net, x, torch.ones(len(x), 1), criterion=criterion())
    assert training.gives_away(4.0, Problem.LOSSES)


def test_one_loss_for_each_record_is_covered():
    x, y = vectors()
    net = nn.Sequential(nn.Linear(6, 1), nn.Flatten(0))
    assert certified(Ghost(net, x, y.float(), criterion=nn.MSELoss()).watched(2))


def test_another_norm_during_backward():
    """The model clips to 50, and says 1 to whoever asks later."""

    class Loud(Clipping):
        def backward(self, x, y):
            self.model.max_grad_norm = 50.0
            super().backward(x, y)
            self.model.max_grad_norm = 1.0

    training = Loud(*disagreeing(linear(), *vectors()), mode="ghost")
    assert training.moved(*training.first) > 3.0
    spent = training.watched().monitor.curve().advantage()
    assert spent > 0.99 * DPSGD(4.0 / 50.0, 0.1, 10).curve("zero-out").advantage()


def test_one_factor_for_the_whole_batch():
    training = Ghost(*disagreeing(linear(), *vectors()))
    model = training.model

    def mean():
        factors = (1.0 / (model.get_norm_sample() + 1e-6)).clamp(max=1.0)
        return torch.full_like(factors, float(factors.mean()))

    model.get_clipping_coef = mean
    assert training.gives_away(3.0, Problem.REPLACED)


def test_a_hook_that_multiplies_gradients():
    def triple(p):
        p.grad.mul_(3.0)

    training = Ghost(*disagreeing(linear(), *vectors()))
    for p in training.net.parameters():
        p.register_post_accumulate_grad_hook(triple)
    assert training.gives_away(2.5, Problem.CHANGED)


def test_a_hook_that_undoes_the_factors():
    class Normalised(nn.Module):
        def forward(self, x):
            if x.requires_grad:
                x.register_hook(lambda g: 0.5 * g / (g.norm(dim=1, keepdim=True) + 1e-9))
            return x

    x, y = vectors()
    x[:40] = 3.0 * torch.randn(40, 6).sign()
    net = nn.Sequential(nn.Linear(6, 8), Normalised(), nn.Linear(8, 2))
    assert Ghost(net, x, y).gives_away(3.0, Problem.TOO_LONG)


def test_a_second_pass_without_the_factors():
    class ByHand(Clipping):
        def backward(self, x, y):
            self.optimizer.zero_grad()
            losses = functional.cross_entropy(self.model(x), y, reduction="none")
            losses.mean().backward(retain_graph=True)
            self.optimizer.zero_grad()
            factors = self.model.get_clipping_coef()
            self.model.disable_hooks()
            (losses * factors.mean()).sum().backward()
            self.model.enable_hooks()

    training = ByHand(*disagreeing(linear(), *vectors()), mode="ghost")
    assert training.gives_away(3.0, Problem.REPLACED)


class Freezing(Clipping):
    steps = 0

    def backward(self, x, y):
        self.steps += 1
        if self.steps == 2:
            self.model._module[0].requires_grad_(False)
        super().backward(x, y)


class Called(Clipping):
    steps = 0

    def backward(self, x, y):
        self.steps += 1
        super().backward(x, y)
        if self.steps == 8:  # the next look at single records is at the call 16
            self.model(x)


class TestNormsOfAnEarlierBatch:
    """Opacus keeps the norms of a weight that had no gradient, and clips later records by them."""

    def test_a_layer_frozen_on_the_way(self):
        (x, y), sums = vectors(), []

        def made():
            torch.manual_seed(1)
            net = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 2))
            return Freezing(net, x, y, mode="ghost", poisson_sampling=False)

        for first in (0.1, 1000.0):
            x[0] = first
            training = made()
            training.backward(x[:16], y[:16])
            training.backward(x[16:32], y[16:32])
            sums.append(torch.cat([p.grad.flatten() for p in training.net[1].parameters()]))
        assert float((sums[0] - sums[1]).norm()) > 0.1  # the record is not in that batch
        assert not_covered(made().watched(), Problem.STALE)

    def test_a_call_without_backward(self):
        x, y = torch.rand(160, 1, 6, 6), torch.randint(0, TWO, (160,))
        net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Conv2d(4, TWO, 4), nn.Flatten())
        training = Called(net, x, y, mode="ghost", norm=0.05, poisson_sampling=False).watched()
        x[0] = 40.0
        assert training.moved(x[:16], y[:16], without=[5, *range(1, 16)]) > 2.5
        assert not_covered(training, Problem.STALE)
