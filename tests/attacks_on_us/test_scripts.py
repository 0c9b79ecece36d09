"""What honest scripts do that is not private: a certificate must be gone, or name the condition."""

import pytest
import torch
from opacus.data_loader import DPDataLoader
from torch import nn
from torch.utils.data import TensorDataset

from attacked import Training
from dprime.monitor import PrivacyWarning

WEIGHTS = torch.tensor([1.0, 500.0])


def full_batch(net, x, y, **made):
    loader = DPDataLoader(TensorDataset(x, y), sample_rate=1.0)
    watched = {"conditions": None}
    return Training(net, loader=loader, noise=10.0, watched=watched, optimizer=slow, **made)


def slow(weights):
    return torch.optim.SGD(weights, lr=1e-3)


def one_step(criterion, rare, mode="hooks"):
    """The clipped sum of a full batch, with a record of the rare class or without; a monitor."""
    x = torch.zeros(40, 10)
    x[:, 0] = 3.0
    y = torch.zeros(40, dtype=torch.long)
    if rare:
        x, y = torch.cat([x, torch.eye(10)[1:2]]), torch.cat([y, torch.ones(1, dtype=torch.long)])
    net = nn.Linear(10, 2, bias=False)
    nn.init.zeros_(net.weight)
    training = full_batch(net, x, y, criterion=criterion, mode=mode).train()
    return net.weight.summed_grad.clone(), training.monitor


@pytest.mark.parametrize("kind", [nn.CrossEntropyLoss, nn.NLLLoss])
def test_class_weights_in_a_mean(kind):
    """The rare record divides everybody's gradient by 13 before it is clipped."""
    with pytest.warns(PrivacyWarning, match="the loss divides by what the labels"):
        inside, monitor = one_step(kind(weight=WEIGHTS), rare=True)
    with pytest.warns(PrivacyWarning, match="weigh each record's loss, and take the mean"):
        outside, _ = one_step(kind(weight=WEIGHTS), rare=False)
    assert float((inside - outside).norm()) > 5
    assert "Not private: the loss divides by what the labels of the batch count for." in str(
        monitor
    )


def test_a_label_that_the_mean_leaves_out():
    """One of two labelled records more halves everybody else's share."""
    x, y = torch.eye(3).repeat(20, 1), torch.full((60,), -100)
    sums = []
    for labelled in (1, 2):
        y[:labelled] = 0
        net = nn.Linear(3, 2, bias=False)
        nn.init.ones_(net.weight)
        training = full_batch(net, x, y)
        training.loss(*next(iter(training.loader))).backward()
        with pytest.warns(PrivacyWarning, match="labels that are not left out"):
            training.optimizer.step()
        assert training.monitor.curve().advantage() == 1
        sums.append(net.weight.summed_grad.clone())
    assert float((sums[0] - sums[1]).norm()) > 0.1  # the first record moved too


def test_class_weights_in_ghost_mode_weigh_each_record_alone():
    inside, monitor = one_step(nn.CrossEntropyLoss(weight=WEIGHTS), rare=True, mode="ghost")
    outside, _ = one_step(nn.CrossEntropyLoss(weight=WEIGHTS), rare=False, mode="ghost")
    assert float((inside - outside).norm()) <= 1.001
    assert "Certified" in str(monitor)


def test_the_report_names_what_is_left_to_the_user():
    report = one_step(nn.CrossEntropyLoss(), rare=True)[1].report()
    for said in ("divided by the batch's class weights", "the seed is secret"):
        assert said in report
    assert "computed from these data before" in report
