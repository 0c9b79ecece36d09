"""A first convolution joined with its group normalisation, against PyTorch in double precision."""

import copy

import pytest
import torch
from torch import nn
from torch.func import functional_call, jacrev

from dprime.train.batches import Records
from dprime.train.network import layered
from dprime.train.convolution import NormalisedConv2d

TRIALS, RECORDS = 3, 4
torch.manual_seed(0)  # of the networks below
ODD = {"stride": (2, 1), "padding": (1, 2), "dilation": (2, 1)}
CASES = {
    "plain": (nn.Conv2d(2, 6, 3), nn.GroupNorm(3, 6)),
    "without bias": (nn.Conv2d(2, 6, 3, bias=False), nn.GroupNorm(3, 6)),
    "stride, padding, dilation": (nn.Conv2d(2, 6, (3, 2), **ODD), nn.GroupNorm(2, 6)),
    "one group": (nn.Conv2d(2, 6, 3), nn.GroupNorm(1, 6)),
    "a group per channel": (nn.Conv2d(2, 6, 3), nn.GroupNorm(6, 6)),
    "large eps": (nn.Conv2d(2, 6, 3), nn.GroupNorm(3, 6, eps=0.5)),
}


def exact(network, vector, records, errors):
    """Outputs, and every record's gradient of Σ errors·outputs, by autograd in double precision."""
    model = copy.deepcopy(network.model).double()

    def outputs(vector):
        weights = {p.name: p.view(vector[None])[0] for p in network.parameters}
        return functional_call(model, weights, records.double())

    def products(vector):
        return (outputs(vector) * errors.double()).flatten(1).sum(1)

    return outputs(vector.double()), jacrev(products)(vector.double())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("shared", "stay", "level"), [(1, 1, 30.0), (1, 0, 0.0), (0, 0, 30.0)])
def test_agrees_with_the_two_layers(case, shared, stay, level):
    torch.manual_seed(1)
    network = layered(nn.Sequential(*CASES[case]))
    (stage,) = network.stages
    assert isinstance(stage.apply, NormalisedConv2d)
    weights = network.given_weights() + 0.3 * torch.randn(TRIALS, network.size)
    x = level + torch.randn(1 if shared else TRIALS, RECORDS, 2, 9, 8)
    records = Records(x, constant=stay)
    views = [p.view(weights) for p in stage.parameters]
    for _ in range(2):  # the second time from what was kept
        y, seen = stage.apply.forward(views, records)
    errors, c, sums = torch.randn(y.shape), torch.rand(TRIALS, RECORDS), torch.zeros_like(weights)
    seen.error = errors.flatten(3).mT
    part = seen.changed(lambda x: x[:, 1:3])
    seen.add_weighted(c, [p.view(sums) for p in stage.parameters])
    torch.testing.assert_close(part.squared_norms(), seen.squared_norms()[:, 1:3])
    for r in range(TRIALS):
        outputs, gradients = exact(network, weights[r], x[0 if shared else r], errors[r])
        size = gradients.abs().max()
        torch.testing.assert_close(y[r].double(), outputs, rtol=1e-5, atol=2e-5)
        norms = seen.squared_norms()[r].double().sqrt()
        torch.testing.assert_close(norms, gradients.norm(dim=1), rtol=2e-5, atol=0)
        total = (c[r, :, None].double() * gradients).sum(0)
        torch.testing.assert_close(sums[r].double(), total, rtol=1e-5, atol=1e-5 * size)


def test_only_a_first_convolution_is_joined():
    def kinds(*layers):
        stages = layered(nn.Sequential(*layers)).stages
        return " ".join(type(stage.apply).__name__ for stage in stages)

    conv, norm = nn.Conv2d(2, 6, 3), nn.GroupNorm(3, 6)
    assert kinds(nn.ELU(), conv, norm) == "ELU NormalisedConv2d"
    assert kinds(nn.Conv2d(1, 2, 3), conv, norm) == "Conv2d Conv2d GroupNorm"
    assert kinds(conv, nn.ReLU(), norm) == "Conv2d ReLU GroupNorm"
    assert kinds(conv) == "Conv2d"
