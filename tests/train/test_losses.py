"""Losses on layouts of the engine against PyTorch's."""

import pytest
import torch
from torch.func import grad

from dprime.train.losses import PLAIN, cross_entropy, named_loss, per_trial, plain_cross_entropy


@pytest.mark.parametrize("scale", [1.0, 50.0, 1e4])
def test_cross_entropy_and_its_gradient(scale):
    torch.manual_seed(0)
    logits = (scale * torch.randn(3, 7, 5)).requires_grad_()
    labels, upstream = torch.randint(0, 5, (3, 7)), torch.rand(3, 7)
    losses = cross_entropy(logits, labels)
    (own,) = torch.autograd.grad(losses, logits, upstream)
    expected = plain_cross_entropy(logits.flatten(0, 1), labels.flatten()).view(3, 7)
    (theirs,) = torch.autograd.grad(expected, logits, upstream)
    torch.testing.assert_close(losses, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(own, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PLAIN)
def test_trials_together_are_records_apart(name):
    torch.manual_seed(0)
    outputs = torch.randn(3, 4, 2 if name == "cross-entropy" else 1)
    labels = torch.randint(0, 2, (1, 4))
    losses = per_trial(name, outputs, labels)
    expected = torch.stack([named_loss(name)(own, labels[0]) for own in outputs])
    torch.testing.assert_close(losses, expected)


def test_a_loss_of_ones_own():
    def hinge(outputs, labels):
        return (1 - outputs.gather(1, labels[:, None])[:, 0]).clamp(min=0)

    def one_at_a_time(outputs, labels):
        assert len(outputs) == len(labels) == 1
        return hinge(outputs, labels) if labels > 0 else hinge(outputs, labels) * 2

    outputs, labels = torch.randn(3, 4, 2), torch.randint(0, 2, (3, 4))
    found = per_trial(hinge, outputs, labels)
    torch.testing.assert_close(found[1], hinge(outputs[1], labels[1]))
    torch.testing.assert_close(per_trial(one_at_a_time, outputs, labels), found * (2 - labels))
    assert grad(lambda out: per_trial(hinge, out, labels).sum())(outputs).shape == outputs.shape
