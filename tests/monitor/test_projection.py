"""Which changes of the clipped sum are the same projection in every step."""

import pytest
import torch
from torch import nn

from dprime.monitor.projection import SumProjection


def gradients(seed, length=3.0):
    generator = torch.Generator().manual_seed(seed)
    found = [torch.randn(4, 3, generator=generator), torch.randn(5, generator=generator)]
    factor = length / torch.cat([each.flatten() for each in found]).norm()
    return [factor * each for each in found]


def told(*changes, lengths=(3.0, 3.0, 3.0)):
    """Whether each step fits; a change is made to the gradients in place."""
    projection, fits = SumProjection(), []
    for seed, (change, length) in enumerate(zip(changes, lengths, strict=False)):
        parameters = [nn.Parameter(torch.zeros_like(each)) for each in gradients(0)]
        for parameter, gradient in zip(parameters, gradients(seed, length), strict=True):
            parameter.grad = gradient
        projection.keep([p.grad for p in parameters])
        before = [p.grad._version for p in parameters]
        change(parameters)
        written = [p.grad._version for p in parameters] != before
        fits.append(projection.fits([p.grad for p in parameters], written=written))
    return fits


def norm(limit, kind=2.0):
    return lambda parameters: nn.utils.clip_grad_norm_(parameters, limit, norm_type=kind)


def value(limit):
    return lambda parameters: nn.utils.clip_grad_value_(parameters, limit)


def scaled(factor):
    return lambda parameters: [p.grad.mul_(factor) for p in parameters]


def nothing(_):
    """Leaves the gradients as they are."""


def first_only(parameters):
    nn.utils.clip_grad_norm_(parameters[:1], 0.5)


@pytest.mark.parametrize("change", [norm(1.0), value(0.3), nothing, norm(100.0)])
def test_a_projection_fits(change):
    assert told(change, change, change) == [True, True, True]


@pytest.mark.parametrize(
    ("changes", "lengths"),
    [
        ((norm(1.0), norm(1.0), norm(1.0)), (0.5, 3.0, 0.7)),  # not all are long
        ((norm(1.0), nothing, norm(1.0)), (3.0, 0.5, 3.0)),
    ],
)
def test_short_sums_stay_as_they_are(changes, lengths):
    assert told(*changes, lengths=lengths) == [True, True, True]


@pytest.mark.parametrize(
    "changes",
    [
        (norm(1.0), norm(0.9)),  # a radius that may depend on the records
        (norm(1.0), nothing),  # left out of a sum that is longer
        (nothing, norm(1.0)),
        (norm(100.0), norm(1.0)),  # the first was longer, and stayed
        (norm(1.0), value(0.3)),
        (scaled(0.5), scaled(0.4)),
        (value(0.3), value(0.2)),
    ],
)
def test_a_projection_that_changes_does_not_fit(changes):
    assert told(*changes) == [True, False]


@pytest.mark.parametrize("change", [scaled(3.0), scaled(-1.0), first_only, norm(1.0, kind=1.0)])
def test_other_changes_do_not_fit(change):
    assert False in told(change, change, lengths=(3.0, 4.0))
