"""Noise that is drawn again: the difference of two steps has none."""

import pytest
import torch

from dprime.monitor import NoGuarantee, PrivacyWarning
from dprime.monitor.problems import Problem
from watching import watch


def sums_of(made, seed_anew, steps=4):
    """The noisy sums of some steps with learning rate 0, and the monitor that saw them."""
    monitor, released = watch(made), []
    torch.manual_seed(3)
    for number, (x, y) in enumerate(made.loader):
        if number == steps:
            break
        made.optimizer.zero_grad()
        made.criterion(made.model(x), y).backward()
        if seed_anew:
            torch.manual_seed(7)
        made.optimizer.step()
        clipped = torch.cat([p.summed_grad.flatten() for p in made.optimizer.params])
        noisy = torch.cat([p.grad.flatten() for p in made.optimizer.params])
        released.append(noisy * made.optimizer.expected_batch_size - clipped)
    return released, monitor


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ew"])
def test_a_generator_that_is_seeded_in_every_step(private, mode):
    made = private(mode)
    with pytest.warns(PrivacyWarning, match="seed once, before the training"):
        noise, monitor = sums_of(made, seed_anew=True)
    assert float((noise[1] - noise[0]).norm()) < 1e-4 * float(noise[0].norm())
    assert isinstance(monitor.ledger.mechanism(), NoGuarantee)
    assert monitor.ledger.last.problem == Problem.SAME_NOISE


def test_a_generator_of_its_own_that_is_set_back(private):
    own = torch.Generator().manual_seed(1)
    made = private(noise_generator=own)
    monitor = watch(made)
    batches = iter(made.loader)
    made.step(*next(batches))
    own.manual_seed(1)
    with pytest.warns(PrivacyWarning, match="seed once"):
        made.step(*next(batches))
    assert isinstance(monitor.ledger.mechanism(), NoGuarantee)


def test_seeding_before_the_training_is_no_repetition(private):
    noise, monitor = sums_of(private(), seed_anew=False)
    assert float((noise[1] - noise[0]).norm()) > float(noise[0].norm())
    assert monitor.warnings == []
