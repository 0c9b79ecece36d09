"""Noise that is not normal: PyTorch's own, which Opacus adds unless it is in secure mode.

A pair of normal numbers is sqrt(-2 ln u) away from the origin, with u a multiple of 2**-24. So
u = exp(-r²/2) tells whether a pair was moved, and no pair is farther out than u = 2**-24.
"""

import math
import warnings

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from opacus.optimizers.optimizer import _generate_noise
from torch import nn

from attacked import Training, records
from dprime import DPSGD
from dprime.check.files import check_script
from dprime.check.source import Source
from dprime.monitor.tails import NoiseTails

LEVELS = 2**24
END = math.sqrt(2 * 24 * math.log(2))


def squared_radii(noise):
    """Of pairs: the numbers i and i + 8 of each block of 16."""
    blocks = noise[: len(noise) // 16 * 16].reshape(-1, 2, 8)
    return (blocks**2).sum(axis=1).ravel()


def off_the_grid(noise):
    """How far exp(-r²/2) is from the grid, for pairs near the origin; 0.25 for real numbers."""
    squared = squared_radii(noise)
    near = np.exp(-0.5 * squared[squared < 0.03]) * LEVELS
    return float(np.abs(near - np.rint(near)).mean())


def auc(above, below):
    return float(np.mean(np.asarray(above)[:, None] > np.asarray(below)[None, :]))


def watched(noise=1.0, engine=PrivacyEngine, **options):
    """A linear model of 640 weights under Opacus: rate 1/10, 10 steps an epoch."""
    torch.manual_seed(1)
    net, data = nn.Linear(64, 10, bias=False), records(100, 64, 10)
    options = {"conditions": None, **options}
    return Training(net, data, engine=engine(), noise=noise, watched=options)


def test_the_grid_separates_the_worlds_and_the_monitor_says_so():
    """z = 100, a gradient of norm C over 5,000 weights, the noisy sum seen."""
    torch.manual_seed(2)
    clean = torch.randn(5000)  # what the others add, known to the attacker
    record = torch.full((5000,), 5000**-0.5)

    def score(*, member, secure):
        noise = _generate_noise(100.0, clean, secure_mode=secure)
        noisy = clean + record + noise if member else clean + noise
        return off_the_grid((noisy.double() - clean.double()).numpy() / 100.0)

    def reached(*, secure):
        worlds = ([score(member=m, secure=secure) for _ in range(60)] for m in (True, False))
        return auc(*worlds)

    assert DPSGD(100.0, 1.0, 1).curve().advantage() < 0.004  # an AUC of 0.503 at most
    assert reached(secure=False) > 0.99
    assert 0.35 < reached(secure=True) < 0.65

    said = watched().train(3).monitor.report()
    assert "lie on a grid" in said
    assert "secure_mode" in said
    assert "AUC 1.00" in said


def test_no_pair_is_beyond_the_end():
    torch.manual_seed(3)
    squared = squared_radii(torch.normal(0.0, 1.0, (16_000_000,)).numpy().astype(np.float64))
    assert squared.max() <= (END + 1e-5) ** 2
    assert squared.max() > 5.2**2  # some 10 of 8 million are beyond


def chance_of_leaving(shift, pairs, levels):
    """That one of the pairs, each moved by `shift`, is beyond the end; every angle is as likely.

    The radii are those of `levels`, as many as PyTorch has for each 2**24 of them.
    """
    radius = np.sqrt(-2.0 * np.log(levels / LEVELS))
    cosine = (END**2 - radius**2 - shift**2) / (2.0 * radius * shift)
    share = np.arccos(np.clip(cosine, -1.0, 1.0)) / math.pi
    chance = float(share.sum()) * (levels[1] - levels[0]) / LEVELS
    return -math.expm1(pairs * math.log1p(-chance))


PYTORCH = np.arange(1, LEVELS // 16, dtype=np.float64)
"""The radii near the end that PyTorch's normal numbers have."""


@pytest.mark.parametrize("noise", [0.5, 1.0, 2.0])
def test_what_only_a_member_can_cause_is_in_every_delta(noise):
    """A record whose gradient lies in one pair of weights, or in all of them alike."""
    monitor = watched(noise).train(3).monitor
    steps, rate, weights = 30, 0.1, 640
    in_one = chance_of_leaving(1.0 / noise, 1, PYTORCH)
    in_all = chance_of_leaving((weights / 2) ** -0.5 / noise, weights // 2, PYTORCH)
    for chance in (in_one, in_all):
        event = -math.expm1(steps * math.log1p(-rate * chance))
        assert event > 0
        assert monitor.curve().delta(60.0) >= event  # without the record it cannot happen
    limit = monitor.curve().delta(60.0)
    assert limit <= 3 * steps * rate * (in_one + in_all)  # and little more is taken than that


@pytest.mark.parametrize("weights", [16, 5120, 1 << 20])
def test_the_end_of_every_pair_is_counted(weights):
    """On the end itself lies 2^-24 of each pair, and any shift takes half of it outside."""
    for noise in (1.0, 30.0):
        chance = chance_of_leaving((weights / 2) ** -0.5 / noise, weights // 2, PYTORCH)
        counted = NoiseTails(END, weights, ((noise, 1.0, 1, 1),)).probability("zero-out")
        assert chance <= counted <= 3 * chance + 3e-6 / noise + 3e-7


def test_noise_may_be_taken_as_ideal_by_name():
    monitor = watched(ideal_noise=True).train(3).monitor
    assert monitor.mechanism() == DPSGD(1.0, 0.1, 30, public_size=True)
    said = monitor.report()
    assert "The noise is taken as ideal, as ideal_noise=True asks." in said
    assert "AUC 1.00" in said
    plain = watched().monitor
    plain.load_state_dict(monitor.state_dict())
    assert "The noise is taken as ideal" in str(plain)


def test_an_event_above_delta_leaves_no_epsilon():
    """ε at δ = 1e-5 was certified; an event of more than δ gives the record away."""
    training = watched()
    training.monitor.ledger.add(training.monitor._progress.next_step(), 1)
    small = training.monitor.curve()
    assert math.isfinite(small.epsilon(1e-5))
    training.monitor.ledger.add(training.monitor._progress.next_step(), 999)
    chance = 1000 * 0.1 * chance_of_leaving(1.0, 1, PYTORCH)
    assert chance > 1e-5
    assert DPSGD(1.0, 0.1, 1000).curve().delta(60.0) < 1e-5
    assert training.monitor.curve().epsilon(1e-5) == math.inf


def test_check_gives_the_note():
    lines = [
        "from opacus import PrivacyEngine",
        "engine = PrivacyEngine()",
        "engine.make_private(module=model, optimizer=optimizer, data_loader=loader)",
    ]
    found = check_script(Source("train.py", "\n".join(lines))).findings
    (note,) = (each for each in found if each.code == "DP703")
    assert note.rule.severity == "note"
    for number in ("5.768", "AUC 1.00", "0.503"):
        assert number in note.rule.why


def test_secure_mode_is_believed_where_the_engine_made_the_generator():
    class Secure(PrivacyEngine):
        """As with torchcsprng, which current releases of PyTorch cannot load."""

        def __init__(self):
            super().__init__()
            self.secure_mode, self.secure_rng = True, torch.Generator()
            self.secure_rng.seed()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        secure = watched(engine=Secure)
    assert secure.optimizer.secure_mode
    said = secure.train(3).monitor.report()
    assert "secure mode" in said
    assert "lie on a grid" not in said
    assert secure.monitor.mechanism() == DPSGD(1.0, 0.1, 30, public_size=True)

    unproved = watched()
    unproved.optimizer.secure_mode = True  # four draws of the plain generator
    assert unproved.train(3).monitor.mechanism() != DPSGD(1.0, 0.1, 30, public_size=True)
