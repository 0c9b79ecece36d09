"""Trainings with Opacus that a monitor once certified, and whose gradients or weights give a
record away.

Each attack shows first that one record moves what is released by more than the clipping norm, or
that it is told from the result; then, that no certificate is left.
"""

import copy

import pytest
import torch
from opacus.layers import DPLSTM
from torch import nn
from torch.nn import functional

from attacked import (
    ALL_MODES,
    CLASSES,
    FEATURES,
    QUIET,
    Calls,
    Training,
    certified,
    not_covered,
    records,
)
from dprime.monitor.problems import Problem

pytestmark = QUIET
BOTH = pytest.mark.parametrize("mode", ["hooks", "ghost"])


def few():
    return (t[:6] for t in records().tensors)


@pytest.mark.parametrize("mode", ALL_MODES)
def test_plain_training_is_certified(mode):
    assert certified(Training(mode=mode).train(2), warnings=[])


def test_warnings_are_sentences():
    assert all(problem.warning.endswith(".") for problem in Problem)


def steep():
    net = nn.Linear(FEATURES, CLASSES)
    net.weight.data.mul_(10.0)
    return net


@pytest.mark.parametrize("mode", ALL_MODES)
@pytest.mark.parametrize("value", [float("nan"), 3e38])
def test_the_model_tells_that_a_record_without_a_finite_gradient_was_there(mode, value):
    """M1: it makes the model NaN."""
    bad = records()
    bad.tensors[0][0] = value
    broken = []
    for data in (bad, records()):
        training = Training(steep(), data, mode).train(4)
        weights = torch.cat([p.flatten() for p in training.net.parameters()])
        broken.append(not bool(weights.isfinite().all()))
    assert broken == [True, False]
    assert certified(training)
    assert not_covered(Training(steep(), bad, mode).train(4), Problem.NOT_FINITE)


def tokens():
    """The head sees the tokens of all records as if each were a record."""

    def does(net, x):
        found = net.embed(x.unsqueeze(1).repeat(1, 8, 1))
        return net.head(found.reshape(-1, 6)).reshape(len(x), 8, CLASSES).mean(1)

    return Calls(does, embed=nn.Linear(FEATURES, 6), head=nn.Linear(6, CLASSES))


def test_a_record_counts_for_each_of_its_tokens():
    """M2: every weight's gradients must have a row for each record."""
    x, y = few()
    attacked = Training(tokens(), attach=False, norm=[0.5] * 4, clipping="per_layer")
    apart = attacked.clipped_sum(3.0 * x, y) - attacked.clipped_sum(3.0 * x[1:], y[1:])
    assert float(apart.norm()) > 2.0
    training = Training(tokens(), norm=[0.5] * 4, clipping="per_layer")
    assert not_covered(training.train(), Problem.UNEVEN)


def tied():
    """A weight that is also used outside of its layer."""

    def does(net, x):
        hidden = net.first(x)
        more = functional.linear(10.0 * hidden.detach(), net.first.weight) if net.on else 0.0
        return hidden + more

    return Calls(does, first=nn.Linear(FEATURES, FEATURES, bias=False), on=True)


class Mixing(nn.Module):
    """A loss in which each record has a part of all."""

    reduction = "mean"

    def forward(self, out, y):
        return nn.functional.cross_entropy(10.0 * out.mean(0) + out, y, reduction="none")


def words(recurrent):
    def does(net, x):
        found = net.embed((x.abs() * 3).long().clamp(max=8))
        return net.out((net.cell(found)[0] if recurrent else found).mean(1))

    cell = DPLSTM(5, 5, batch_first=True) if recurrent else None
    return Calls(does, embed=nn.Embedding(9, 5), out=nn.Linear(5, CLASSES), cell=cell)


class TestGhost:
    """M3: what ghost mode does not see is not clipped."""

    def test_a_tied_head(self):
        assert Training(tied(), mode="ghost", attach=False).moved(*few()) > 2.0
        assert not_covered(Training(tied(), mode="ghost").train(), Problem.TOO_LONG)

    def test_a_head_that_is_only_tied_later(self):
        training = Training(tied(), mode="ghost")
        training.net.on = False
        assert certified(training.train())
        training.net.on = True
        assert not_covered(training.next_step(), Problem.TOO_LONG)

    def test_a_penalty_in_the_loss(self):
        class Penalised(Training):
            def loss(self, x, y):
                return super().loss(x, y) + 10.0 * sum((p**2).sum() for p in self.net.parameters())

        assert not_covered(Penalised(mode="ghost").next_step(), Problem.TOO_LONG)

    def test_a_loss_that_mixes_records(self):
        assert not_covered(Training(mode="ghost", criterion=Mixing()).train(), Problem.TOO_LONG)

    @pytest.mark.parametrize("name", ["lstm", "embedding", "convolution"])
    def test_other_layers_stay_certified(self, name):
        layers = nn.Sequential(
            nn.Unflatten(1, (1, FEATURES)), nn.Conv1d(1, 4, 2), nn.GroupNorm(2, 4), nn.Flatten(),
            nn.Linear(4 * (FEATURES - 1), CLASSES),
        )  # fmt: skip
        net = layers if name == "convolution" else words(name == "lstm")
        assert certified(Training(net, mode="ghost").train(2), warnings=[])


class TestOtherWeights:
    """M4: weights that were not attached."""

    def test_a_layer_that_is_unfrozen_for_one_step_in_ghost_mode(self):
        def made(attach):
            net = nn.Sequential(nn.Linear(FEATURES, 5), nn.ReLU(), nn.Linear(5, CLASSES))
            net[0].requires_grad_(False)
            every = lambda _: torch.optim.SGD(net.parameters(), lr=0.1)  # noqa: E731
            return Training(net, mode="ghost", attach=attach, optimizer=every)

        x, y = few()
        attacked = made(attach=False)
        attacked.net[0].requires_grad_(True)
        attacked.net[2].weight.data.mul_(100.0)
        attacked.net[0].bias.data.fill_(1.0)
        with torch.no_grad():
            y[0] = attacked.net(100.0 * x[:1])[0].argmin()
        assert attacked.moved(100.0 * x, y) > 10.0
        training = made(attach=True).train()
        assert certified(training)
        training.net[0].requires_grad_(True)
        training.next_step().net[0].requires_grad_(False)
        assert not_covered(training.train(), Problem.LATER)

    def test_weights_that_join_the_optimizer_later(self):
        training = Training().train()
        extra = nn.Parameter(torch.zeros(2))
        extra.grad_sample = None
        training.net.add_module("extra", nn.Identity())
        training.net.extra.shift = extra
        training.optimizer.add_param_group({"params": [extra]})
        x, y = next(iter(training.loader))
        training.backward(x, y)
        extra.grad_sample = torch.zeros(len(x), 2)
        training.optimizer.step()
        assert not_covered(training, Problem.LATER)

    @BOTH
    def test_a_weight_that_is_frozen_after_backward_has_a_raw_gradient(self, mode):
        training = Training(mode=mode).train()
        weight = training.net[0].weight
        for x, y in training.loader:
            training.backward(x, y)
            before, raw = weight.detach().clone(), weight.grad.clone()
            weight.requires_grad_(False)
            training.optimizer.step()
            torch.testing.assert_close((before - weight) / 0.1, raw, rtol=1e-3, atol=1e-4)
            break
        assert not_covered(training, Problem.LATER)

    @pytest.mark.parametrize(
        "optimizer",
        [
            lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9),
            lambda weights: torch.optim.AdamW(weights, lr=1e-3),
        ],
    )
    def test_momentum_and_weight_decay_may_move_a_frozen_weight(self, optimizer):
        training = Training(optimizer=optimizer).train()
        training.net[0].requires_grad_(False)
        assert certified(training.train(2), warnings=[])

    def test_a_layer_that_is_replaced(self):
        training = Training().train()
        bias = nn.Parameter(records().tensors[0][:, 0][:5].clone())
        bias._forward_counter, bias.grad_sample, bias.summed_grad = 0, None, None
        training.net[0].bias = training.optimizer.param_groups[0]["params"][1] = bias
        assert not_covered(training.train(), Problem.LATER)


class TestOtherChanges:
    """M5, M6: weights that something else changes."""

    def test_an_optimizer_with_a_closure(self):
        training = Training().train()
        x, y = records().tensors
        other = torch.optim.LBFGS(training.net.parameters(), max_iter=20)

        def closure():
            other.zero_grad()
            hidden = torch.tanh(functional.linear(x, *weights[:2]))
            loss = functional.cross_entropy(functional.linear(hidden, *weights[2:]), y)
            loss.backward()
            return loss

        weights = list(training.net.parameters())
        for p in weights:
            p.grad = None
        before = [p.detach().clone() for p in weights]
        other.step(closure)
        assert not all(map(torch.equal, before, weights))
        assert not_covered(training, Problem.OUTSIDE)

    @pytest.mark.parametrize("way", ["in place", "data", "set data", "averaged"])
    def test_weights_that_are_changed_by_hand(self, way):
        training = Training().train()
        assert certified(training)
        p = training.net[0].weight
        value = 1e-3 * records().tensors[0][0, 0]
        with torch.no_grad():
            if way == "in place":
                p[0, 0] += value
            elif way == "data":
                p.data[0, 0] = value
            elif way == "set data":
                p.data = p.data + value
        if way == "averaged":
            before = copy.deepcopy(training.net.state_dict())
            training.train()
            training.net.load_state_dict(before)
        assert not_covered(training.train(), Problem.MOVED)

    def test_weights_that_are_moved_while_gradients_are_computed(self):
        """Sharpness-aware minimisation with raw gradients, which takes its shift back."""
        training = Training().train()
        training.change(lambda p: p.add_(0.1))
        training.backward(*next(iter(training.loader)))
        training.change(lambda p: p.sub_(0.1))
        training.optimizer.step()
        assert not_covered(training, Problem.MOVED)

    def test_a_second_pass_at_weights_that_a_raw_gradient_moved(self):
        training = Training().train()

        def move(x, y):
            before = copy.deepcopy(training.net.state_dict())
            training.change(lambda p: p.data.add_(3.0 * p.grad / p.grad.norm()))
            training.backward(x, y)
            training.net.load_state_dict(before)

        assert not_covered(training.train(between=move), Problem.MOVED)

    def test_weights_that_are_put_back_are_as_before(self):
        """An evaluation with averaged weights between two steps."""
        training = Training().train()
        own = copy.deepcopy(training.net.state_dict())
        training.change(lambda p: p.mul_(0.9))
        training.net.load_state_dict(own)
        assert certified(training.train(), warnings=[])

    def test_changes_that_follow_a_public_rule_can_be_accepted(self):
        training = Training()

        def clamp(*_):
            training.change(lambda p: p.clamp_(-0.2, 0.2))
            training.monitor.accept_changes()

        assert certified(training.train(after=clamp))
        assert [w for w in training.monitor.warnings if "accepted" in w]

    def test_writes_to_trained_weights_are_found_beside_many_frozen_values(self):
        net = nn.Sequential(
            nn.Linear(FEATURES, 1100), nn.Linear(1100, 1000), nn.Linear(1000, CLASSES)
        ).requires_grad_(False)
        net[2].requires_grad_(True)
        raw = []

        def write(*_):
            if len(raw) in (2, 4, 5, 8, 9, 10):  # so that steps 1, 2, 4, 8 see nothing
                net[2].weight.data -= 5.0 * raw[-1]

        keep = lambda *_: raw.append(net[2].weight.grad.clone())  # noqa: E731
        assert not_covered(Training(net).train(2, keep, write), Problem.MOVED)

    def test_what_the_monitor_before_saw_is_not_forgotten(self):
        training = Training().train()
        with torch.no_grad():
            training.net[0].weight[0] = records().tensors[0][0]
        assert not_covered(training.train(), Problem.MOVED)
        training.engine.dprime_monitor.detach()
        training.attach()
        assert not_covered(training, Problem.MOVED)

    def test_a_covered_training_stays_covered_by_the_next_monitor(self):
        training = Training().train()
        training.engine.dprime_monitor.detach()
        training.attach()
        assert certified(training.train(), ["The privacy engine had recorded 6 steps before"])
