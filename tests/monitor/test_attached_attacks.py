"""Objects that are not what they seem: settings, methods, models, weights and generators."""

import functools

import opacus
import opacus.optimizers.optimizer as opacus_optimizer
import pytest
import torch
from opacus.optimizers import DPOptimizer
from torch import nn

from dprime.monitor import NoGuarantee, PrivacyWarning
from dprime.monitor.monitor import Monitor
from dprime.monitor.problems import Problem
from watching import ADAPTIVE, watch, watch_shuffled


def reason(monitor):
    mechanism = monitor.ledger.mechanism()
    return mechanism.reason if isinstance(mechanism, NoGuarantee) else ""


def two_steps(made, between=lambda: None):
    batches = iter(made.loader)
    made.step(*next(batches))
    between()
    made.step(*next(batches))


@pytest.mark.parametrize("name", ["max_grad_norm", "expected_batch_size", "noise_multiplier"])
def test_settings_that_are_tensors_change_in_place(private, name):
    made = private()
    setattr(made.optimizer, name, torch.tensor(float(getattr(made.optimizer, name))))
    monitor = watch(made)
    with pytest.warns(PrivacyWarning, match="was changed by hand"):
        two_steps(made, lambda: getattr(made.optimizer, name).mul_(2.0))
    assert reason(monitor) == Problem.RESET


@pytest.mark.skipif(opacus.__version__ < "1.6", reason="adaptive clipping needs Opacus 1.6")
@pytest.mark.parametrize("name", ["clipbound_learning_rate", "target_unclipped_quantile"])
def test_what_adapts_the_clipping_is_not_to_be_changed(private, name):
    made = private(poisson_sampling=False, **ADAPTIVE)
    monitor = watch_shuffled(made)
    with pytest.warns(PrivacyWarning, match="was changed by hand"):
        two_steps(made, lambda: setattr(made.optimizer, name, 0.9))
    assert reason(monitor) == Problem.RESET


def test_methods_that_only_look_like_those_of_opacus(private, monkeypatch):
    right = opacus_optimizer._generate_noise

    @functools.wraps(right)
    def quiet(std, *rest, **named):
        return right(std / 1000, *rest, **named)

    monkeypatch.setattr(opacus_optimizer, "_generate_noise", quiet)
    made = private()
    monitor = watch(made)
    with pytest.warns(PrivacyWarning):
        two_steps(made)
    assert reason(monitor) == Problem.REPLACED


def test_an_optimizer_that_sees_other_gradients(private):
    class Shorter(DPOptimizer):
        @property
        def grad_samples(self):
            return [g if g.dim() > 2 else 0 * g for g in super().grad_samples]

    made = private()
    made.optimizer.__class__ = Shorter
    monitor = watch(made)
    with pytest.warns(PrivacyWarning):
        two_steps(made)
    assert reason(monitor) == Problem.REPLACED


def test_the_plain_model_and_a_part_of_it_are_refused(private):
    made = private()
    inner = made.model._module
    for other in (inner, inner[0]):
        named = made.named() | {"model": other}
        with pytest.raises(ValueError, match="give what make_private returned"):
            Monitor(made.engine, **named, show=None)


def test_complex_weights_are_refused(private):
    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2, 3, dtype=torch.complex64))

        def forward(self, x):
            return (x[:, :3] @ self.weight.T).abs()

    with pytest.raises(ValueError, match=r"weights must be real numbers, .*view_as_real"):
        watch(private("functorch", net=Turned()))


def test_weights_that_are_trained_later_get_noise_with_an_end_too(private):
    made = private()
    late = list(made.model._module[0].parameters())
    for p in late:
        p.requires_grad_(False)
    monitor = watch(made)
    counted = monitor._noise_ends.weights
    batches = iter(made.loader)
    made.step(*next(batches))
    for p in late:
        p.requires_grad_(True)
    made.step(*next(batches))
    tails = [part for part in monitor.mechanism().mechanisms if hasattr(part, "ends_at")]
    assert tails[0].weights == counted + sum(p.numel() for p in late)
    assert monitor.state_dict()["noise"]["weights"] == tails[0].weights


def test_a_generator_that_nobody_seeded_has_a_seed_that_all_know(private):
    assert torch.Generator().initial_seed() == torch.Generator().initial_seed()
    made = private(noise_generator=torch.Generator())
    monitor = watch(made)
    with pytest.warns(PrivacyWarning, match=r"call its seed\(\)"):
        two_steps(made)
    assert reason(monitor) == Problem.KNOWN_SEED


def test_batches_from_such_a_generator(private):
    made = private(loader=private.loader(generator=torch.Generator()))
    monitor = watch(made)
    with pytest.warns(PrivacyWarning, match=r"call its seed\(\)"):
        two_steps(made)
    assert reason(monitor) == Problem.KNOWN_SEED
