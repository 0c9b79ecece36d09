"""The noise: the ideal normal number's rounded sum, to the last bit, and nothing else."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from dprime.train import noise
from dprime.train.noise import add_normal
from dprime.train.streams import Purpose, Streams


def normals(seed, trials, count, step=0):
    target = torch.zeros(len(trials), count, dtype=torch.float64)
    add_normal(Streams(seed, trials), target, torch.ones(len(trials)), Purpose.NOISE, step)
    return target


def slow_sum(streams, row, start, sigma, step, *, rounded=True):
    """Row by number with 60 digits: the same bits, and 256 more of each, by the definition."""
    half, sums = (len(start) + 1) // 2, []
    share = -(-half // 8)

    def number(part, blocks, place, *, size, signed=False):
        """Some bytes of the row's bits."""
        at = slice(row, row + 1)
        made = streams.blocks(Purpose.NOISE, step, blocks, slice(0, blocks), at, part)[0]
        return int.from_bytes(made.numpy()[place : place + size].tobytes(), "little", signed=signed)

    with mp.workdps(120):
        exponent = math.frexp(sigma)[1] - noise.GRID_BITS
        grid = mpf(2) ** exponent
        for place, value in enumerate(start):
            pair, second = place % half, place >= half
            uniform = number(0, share, 8 * pair, size=8) % 2**63
            turn = number(1, share, 8 * pair, size=8, signed=True)
            uniform = (uniform << 256) + number(2, half, 64 * pair, size=32)
            turn = (turn << 256) + number(2, half, 64 * pair + 32, size=32)
            radius = mp.sqrt(-2 * mp.log(mpf(uniform) / 2**319))
            angle = mp.pi * mpf(turn) / 2**319
            normal = radius * (mp.sin(angle) if second else mp.cos(angle))
            total = mpf(value) + mpf(sigma) * normal
            sums.append(float(mp.nint(total / grid) * grid) if rounded else total)
    return sums


@given(
    st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=40),
    st.floats(1e-3, 1e3),
    st.integers(0, 2**256 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**30),
)
@settings(max_examples=25, deadline=None)
def test_the_sum_is_the_ideal_one_rounded(start, sigma, seed, trial, step):
    target = torch.tensor([start, start], dtype=torch.float64)
    streams = Streams(seed, [trial, 5])
    add_normal(streams, target, torch.tensor([sigma, sigma]).double(), Purpose.NOISE, step)
    rounded = float(torch.tensor(sigma).double())
    assert target[0].tolist() == slow_sum(streams, 0, start, rounded, step)
    assert target[1].tolist() == slow_sum(streams, 1, start, rounded, step)


SETTINGS = [
    {"UNSURE": 0.5},  # every number is decided exactly
    {"LEAST": 0.3, "MOST": 0.6},  # all radii beyond: the bits that were not drawn matter there
    *({"TOGETHER": pairs} for pairs in (8, 64, 1000)),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_how_it_is_computed_does_not_matter(monkeypatch, settings):
    fast = normals(1, [0, 1, 9], 801, step=7)
    for name, value in settings.items():
        monkeypatch.setattr(noise, name, value)
    assert torch.equal(normals(1, [0, 1, 9], 801, step=7), fast)


def test_the_error_of_double_precision_is_a_third_of_what_is_allowed_at_most(monkeypatch):
    """Radii at both ends of what is decided in double precision, against 120 digits."""
    generator = np.random.default_rng(1)
    small, large = np.geomspace(2.0**-24, 2.0**-20, 300), np.geomspace(2.0**-23, 2.0**-12, 300)
    ends = np.concatenate([small, 1 - large, generator.uniform(size=300)])
    radii = torch.tensor([[int(mpf(u) * 2**63) for u in ends]])
    angles = torch.tensor(generator.integers(-(2**63), 2**63 - 1, (1, len(ends))))
    radius, angle, doubtful = noise._polar(radii, angles)
    assert len(doubtful) <= 2
    largest = 0.0
    for number, (word, turn) in enumerate(zip(radii[0].tolist(), angles[0].tolist(), strict=True)):
        for function, exact in ((torch.cos, mp.cos), (torch.sin, mp.sin)):
            found = float(radius[0, number] * function(angle[0, number]))
            with mp.workdps(60):
                for bit in (0, 1):  # the bits that were not drawn lie between these
                    true = mp.sqrt(-2 * mp.log(mpf(word + bit) / 2**63))
                    true *= exact(mp.pi * mpf(turn + bit) / 2**63)
                    largest = max(largest, abs(float(true - found)))
    assert largest * 2.0**noise.GRID_BITS < noise.UNSURE / 3


def test_sums_within_a_hair_of_the_middle():
    """S is chosen so that (S + σN)/Δ is a whole number and a half, but for the rounding of S."""
    seed_of = Streams(5, [0])
    unit = torch.tensor([1.0])
    with mp.workdps(60):
        sums = slow_sum(seed_of, 0, [0.0] * 400, 1.0, 3, rounded=False)
    for shift in (0.5, 3.5, -1000.5):
        start = [float(shift * mpf(2) ** -16 - number) for number in sums]
        target = torch.tensor([start], dtype=torch.float64)
        add_normal(seed_of, target, unit, Purpose.NOISE, 3)
        assert target[0].tolist() == slow_sum(seed_of, 0, start, 1.0, 3)
        above = (target[0] * 2**16 > shift).double().mean()
        assert 0.4 < above < 0.6


def test_tails_have_no_end():
    """The least radius that can be drawn is 9.3, and its next bits reach beyond any number."""
    radius, _, doubtful = noise._polar(torch.tensor([[0]]), torch.tensor([[0]]))
    assert float(radius) > 9.3
    assert doubtful == [[0, 0]]
    lowest = noise._beginning((0, 0))
    assert math.isinf(float(noise.EXACT.sqrt(-2 * noise.EXACT.log(lowest)).b))


def test_normal_numbers_are_standard_normal():
    sample = normals(3, range(50), 40_001).numpy().ravel()
    assert scipy.stats.kstest(sample, "norm").pvalue > 1e-3
    n = len(sample)
    assert abs(sample.mean()) < 4 / np.sqrt(n)
    assert abs(sample.var() - 1) < 4 * np.sqrt(2 / n)
    assert abs((sample**4).mean() - 3) < 4 * np.sqrt(96 / n)
    for threshold in (3.0, 4.0):
        expected = 2 * n * scipy.stats.norm.sf(threshold)
        assert abs((np.abs(sample) > threshold).sum() - expected) < 4 * np.sqrt(expected)
    squares = sample.reshape(50, -1) ** 2  # the two numbers of a pair have one radius
    pairs = np.corrcoef(squares[:, :20_000].ravel(), squares[:, 20_001:].ravel())[0, 1]
    assert abs(pairs) < 4.5 / np.sqrt(n / 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sigma", [1e-9, 0.7, 3.0, 1e7])
def test_scale_grid_and_sum(dtype, sigma):
    start = torch.full((2, 1001), 5.0, dtype=dtype)
    target = start.clone()
    add_normal(Streams(1, range(2)), target, torch.full((2,), sigma), Purpose.NOISE, 0)
    grid = 2.0 ** (math.frexp(sigma)[1] - noise.GRID_BITS)
    assert 2**16 <= sigma / grid < 2**17
    if dtype == torch.float64:
        assert bool((target / grid == (target / grid).round()).all())
    expected = start.double() + float(torch.tensor(sigma)) * normals(1, range(2), 1001)
    rounding = 1e-6 * expected.abs().max() if dtype == torch.float32 else 0
    assert (target.double() - expected).abs().max() <= 1.5 * grid + rounding  # both are rounded


def test_a_trial_without_noise_stays_as_it_is():
    target = torch.full((3, 100), math.pi)
    add_normal(Streams(1, range(3)), target, torch.tensor([0.0, 1.0, 0.0]), Purpose.NOISE, 0)
    assert (target[[0, 2]] == torch.tensor(math.pi)).all()
    assert (target[1] != torch.tensor(math.pi)).all()
