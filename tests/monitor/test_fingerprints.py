"""Norms beside those in double precision, for what NumPy and PyTorch hold differently."""

import math

import numpy as np
import pytest
import torch

from dprime.monitor import fingerprints
from dprime.monitor.fingerprints import differ, norms_of, values_of

LARGE = torch.from_numpy(np.random.default_rng(3).normal(size=(1_000, 300)))
TENSORS = {
    "float32": LARGE.float(),
    "float64": LARGE,
    "bfloat16": LARGE.bfloat16(),
    "float16": LARGE.half(),
    "complex": torch.complex(LARGE, 2.0 * LARGE),
    "whole numbers": (10 * LARGE).long(),
    "transposed": LARGE.float().T,
    "every other column": LARGE.float()[:, ::2],
    "channels last": LARGE[:600].float().view(10, 20, 30, 30).to(memory_format=torch.channels_last),
    "repeated": torch.full((1,), 3.0).expand(7),
    "one number": torch.tensor(-2.0),
    "empty": torch.zeros(0),
    "trained": torch.nn.Parameter(LARGE.float()),
}


@pytest.mark.parametrize("name", TENSORS)
def test_a_norm_is_that_in_double_precision(name):
    tensor = TENSORS[name].detach()
    wide = tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
    true = float(torch.linalg.vector_norm(wide))
    assert values_of(norms_of([TENSORS[name]])) == [pytest.approx(true, rel=2e-6)]


def test_a_norm_keeps_its_digits_where_many_squares_are_added():
    """PyTorch's own sum in float32 is wrong in the third digit."""
    ones = torch.ones(20_000_000)
    assert values_of(norms_of([ones])) == [pytest.approx(math.sqrt(ones.numel()), rel=1e-5)]


def test_what_is_not_finite_has_a_norm_and_no_warning():
    huge = torch.full((3,), 1e30)
    found = values_of(norms_of([huge, torch.tensor([1.0, math.nan]), torch.tensor([-math.inf])]))
    assert (found[0], found[2]) == (math.inf, math.inf)
    assert math.isnan(found[1])


def test_norms_differ_where_values_do():
    tensor = TENSORS["float32"]
    norms = norms_of([tensor])
    assert not differ(norms, norms_of([tensor]))
    changed = tensor.clone()
    changed[500, 100] += 1.0
    assert differ(norms, norms_of([changed]))
    nothing = norms_of([torch.tensor([math.nan])])
    assert not differ(nothing, norms_of([torch.tensor([math.nan])]))


def test_what_numpy_cannot_hold_is_left_to_pytorch(monkeypatch):
    """As on a device; norms then wait there until somebody asks."""
    monkeypatch.setattr(fingerprints, "ON_CPU", lambda tensor: False)
    names = ("float32", "bfloat16", "transposed", "trained")
    waiting = norms_of([TENSORS[name] for name in names])
    assert all(isinstance(norm, torch.Tensor) and not norm.requires_grad for norm in waiting)
    monkeypatch.undo()
    own = values_of(norms_of([TENSORS[name] for name in names]))
    assert values_of(waiting) == pytest.approx(own, rel=2e-3)
    assert values_of([waiting[0], own[1]]) == pytest.approx(own[:2], rel=2e-3)
