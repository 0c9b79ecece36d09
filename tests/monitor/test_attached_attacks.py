"""Objects that are not what they seem: settings, methods, models, weights and generators."""

import functools

import opacus
import opacus.optimizers.optimizer as opacus_optimizer
import pytest
import torch
from opacus.optimizers import DPOptimizer

from dprime.monitor.problems import Problem
from watching import ADAPTIVE, refused, watch, watch_shuffled


def steps(made, between=lambda: None, count=2):
    """Steps of one pass, with something done before each but the first."""

    def act():
        batches = iter(made.loader)
        for number in range(count):
            if number:
                between()
            made.step(*next(batches))

    return act


@pytest.mark.parametrize("name", ["max_grad_norm", "expected_batch_size", "noise_multiplier"])
def test_settings_that_are_tensors_change_in_place(private, name):
    made = private()
    setattr(made.optimizer, name, torch.tensor(float(getattr(made.optimizer, name))))
    doubled = steps(made, lambda: getattr(made.optimizer, name).mul_(2.0))
    refused(watch(made), doubled, Problem.RESET)


@pytest.mark.skipif(opacus.__version__ < "1.6", reason="adaptive clipping needs Opacus 1.6")
@pytest.mark.parametrize("name", ["clipbound_learning_rate", "target_unclipped_quantile"])
def test_what_adapts_the_clipping_is_not_to_be_changed(private, name):
    made = private(poisson_sampling=False, **ADAPTIVE)
    changed = steps(made, lambda: setattr(made.optimizer, name, 0.9))
    refused(watch_shuffled(made), changed, Problem.RESET)


def test_methods_that_only_look_like_those_of_opacus(private, monkeypatch):
    right = opacus_optimizer._generate_noise

    @functools.wraps(right)
    def quiet(std, *rest, **named):
        return right(std / 1000, *rest, **named)

    monkeypatch.setattr(opacus_optimizer, "_generate_noise", quiet)
    made = private()
    refused(watch(made), steps(made), Problem.REPLACED)


def test_an_optimizer_that_sees_other_gradients(private):
    class Shorter(DPOptimizer):
        @property
        def grad_samples(self):
            return [g if g.dim() > 2 else 0 * g for g in super().grad_samples]

    made = private()
    made.optimizer.__class__ = Shorter
    refused(watch(made), steps(made), Problem.REPLACED)


def test_weights_that_are_trained_later_get_noise_with_an_end_too(private):
    made = private()
    late = list(made.model._module[0].parameters())
    for p in late:
        p.requires_grad_(False)
    monitor = watch(made)
    counted = monitor._noise_ends.weights
    steps(made, lambda: [p.requires_grad_(True) for p in late])()
    tails = [part for part in monitor.mechanism().mechanisms if hasattr(part, "ends_at")]
    assert tails[0].weights == counted + sum(p.numel() for p in late)
    assert monitor.state_dict()["noise"]["weights"] == tails[0].weights


def test_a_generator_that_nobody_seeded_has_a_seed_that_all_know(private):
    assert torch.Generator().initial_seed() == torch.Generator().initial_seed()
    for made in (
        private(noise_generator=torch.Generator()),
        private(loader=private.loader(generator=torch.Generator())),
    ):
        refused(watch(made), steps(made), Problem.KNOWN_SEED)


def noise_of(made, before, count=4):
    """The noise of some steps with something done before each but the first."""
    released = []

    def note():
        clipped = torch.cat([p.summed_grad.flatten() for p in made.optimizer.params])
        noisy = torch.cat([p.grad.flatten() for p in made.optimizer.params])
        released.append(noisy * made.optimizer.expected_batch_size - clipped)
        before()

    torch.manual_seed(7)
    return steps(made, note, count), released


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ew"])
def test_a_generator_that_is_seeded_in_every_step(private, mode):
    monitor = watch(made := private(mode))
    made.loader = list(made.loader)  # whose draws take no random numbers of the noise
    act, noise = noise_of(made, lambda: torch.manual_seed(7))
    refused(monitor, act, Problem.SAME_NOISE)
    assert float((noise[1] - noise[0]).norm()) < 1e-4 * float(noise[0].norm())


def test_a_generator_of_its_own_that_is_set_back(private):
    own = torch.Generator().manual_seed(1)
    made = private(noise_generator=own)
    refused(watch(made), steps(made, lambda: own.manual_seed(1)), Problem.SAME_NOISE)


def test_seeding_before_the_training_is_no_repetition(private):
    monitor = watch(made := private())
    act, noise = noise_of(made, lambda: None)
    act()
    assert float((noise[1] - noise[0]).norm()) > float(noise[0].norm())
    assert monitor.warnings == []
