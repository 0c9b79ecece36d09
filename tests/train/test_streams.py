"""Random numbers: the published algorithm, the right distributions, and nothing in common."""

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dprime.seeds import check_seed, fresh_seed
from dprime.train import streams
from dprime.train.streams import Purpose, Streams, signed, threefry

# Known answers of Threefry-2x32, 20 rounds, from the authors' test vectors (kat_vectors).
KNOWN = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


def word(value):
    return torch.tensor([signed(value)], dtype=torch.int32)


@pytest.mark.parametrize(("key", "counter", "expected"), KNOWN)
def test_known_answers(key, counter, expected):
    found = threefry(tuple(map(word, key)), tuple(map(word, counter)))
    assert tuple(int(x) % 2**32 for x in found) == expected


def slow_threefry(key, counter):
    """The same in Python's whole numbers."""
    rotations = (13, 15, 26, 6, 17, 29, 16, 24)
    schedule = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = ((c + k) % 2**32 for c, k in zip(counter, key, strict=True))
    for number in range(20):
        x = (x + y) % 2**32
        turn = rotations[number % 8]
        y = ((y << turn | y >> (32 - turn)) % 2**32) ^ x
        if number % 4 == 3:
            j = number // 4 + 1
            x = (x + schedule[j % 3]) % 2**32
            y = (y + schedule[(j + 1) % 3] + j) % 2**32
    return x, y


words = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))


@given(words, words)
def test_against_whole_numbers(key, counter):
    found = threefry(tuple(map(word, key)), tuple(map(word, counter)))
    assert tuple(int(x) % 2**32 for x in found) == slow_threefry(key, counter)


@given(words, words, st.sampled_from([13, 15, 26, 6, 17, 29, 16, 24]))
def test_both_ways_to_mix_agree(first, second, rotation):
    """The one for GPUs and the one for processors."""
    one, other = (
        [torch.tensor([signed(w) for w in words], dtype=torch.int32) for words in (first, second)]
        for _ in range(2)
    )
    streams._mix_torch(*one, torch.empty_like(one[0]), rotation)
    unsigned = [streams._unsigned(x) for x in (*other, torch.empty_like(other[0]))]
    streams._mix_numpy(*unsigned, rotation)
    assert torch.equal(one[0], other[0])
    assert torch.equal(one[1], other[1])


def normals(seed, trials, count, step=0, purpose=Purpose.NOISE):
    target = torch.zeros(len(trials), count)
    Streams(seed, trials).add_normal(target, torch.ones(len(trials)), purpose, step)
    return target


@given(
    st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=6),
    st.integers(1, 70),
    st.integers(0, 2**64 - 1),
)
@settings(max_examples=40)
def test_a_trials_numbers_are_its_own(trials, count, seed):
    together = normals(seed, trials, count, step=3)
    for row, trial in enumerate(trials):
        torch.testing.assert_close(normals(seed, [trial], count, step=3)[0], together[row])
    drawn = Streams(seed, trials).bernoulli(0.3, count, Purpose.SAMPLING, 5)
    for row, trial in enumerate(trials):
        alone = Streams(seed, [trial]).bernoulli(0.3, count, Purpose.SAMPLING, 5)[0]
        assert torch.equal(alone, drawn[row])


def test_chunks_do_not_matter(monkeypatch):
    whole = normals(1, range(5), 1001)
    bits = Streams(1, range(5)).uniform(1001, Purpose.WEIGHTS)
    for chunk in (1, 64, 1000):
        monkeypatch.setattr("dprime.train.streams.CHUNK", chunk)
        torch.testing.assert_close(normals(1, range(5), 1001), whole)
        assert torch.equal(Streams(1, range(5)).uniform(1001, Purpose.WEIGHTS), bits)


def test_every_key_has_numbers_of_its_own():
    draws = [
        normals(seed, [trial], 8, step, purpose)[0].tolist()
        for seed in (0, 1, 2**32)
        for trial in (0, 1)
        for purpose in Purpose
        for step in (0, 1)
    ]
    assert len({tuple(draw) for draw in draws}) == len(draws)


def test_normal_numbers_are_standard_normal():
    sample = normals(3, range(50), 40_001).double().numpy().ravel()
    assert scipy.stats.kstest(sample, "norm").pvalue > 1e-3
    n = len(sample)
    assert abs(sample.mean()) < 4 / np.sqrt(n)
    assert abs(sample.var() - 1) < 4 * np.sqrt(2 / n)
    assert abs((sample**4).mean() - 3) < 4 * np.sqrt(96 / n)
    for threshold in (3.0, 4.0):
        expected = 2 * n * scipy.stats.norm.sf(threshold)
        assert abs((np.abs(sample) > threshold).sum() - expected) < 4 * np.sqrt(expected)


def test_tails_reach_as_far_as_promised():
    """The smallest radius word that can be drawn gives 6.6 standard deviations."""
    assert np.sqrt(-2 * np.log(0.5 / 2**31)) > 6.6


def correlation(a, b):
    return abs(float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1]))


def test_no_correlation_between_coordinates_steps_trials_and_purposes():
    first = normals(5, range(200), 2000)
    bound = 4.5 / np.sqrt(first.numel())
    assert correlation(first[:, :-1], first[:, 1:]) < bound
    assert correlation(first[:, :1000], first[:, 1000:]) < 4.5 / np.sqrt(first.numel() / 2)
    assert correlation(first[:-1], first[1:]) < bound
    assert correlation(first, normals(5, range(200), 2000, step=1)) < bound
    assert correlation(first, normals(5, range(200), 2000, purpose=Purpose.WEIGHTS)) < bound
    assert correlation(first, normals(6, range(200), 2000)) < bound
    assert correlation(first**2, normals(5, range(200), 2000, step=1) ** 2) < bound


def test_the_two_numbers_of_a_pair_are_independent():
    """Box and Muller make two numbers of one radius: their squares must not correlate either."""
    sample = normals(7, range(100), 20_000)
    low, high = sample[:, :10_000], sample[:, 10_000:]
    assert correlation(low**2, high**2) < 4.5 / np.sqrt(low.numel())
    assert correlation(low.abs(), high.abs()) < 4.5 / np.sqrt(low.numel())


@pytest.mark.parametrize("rate", [0.5, 0.01, 0.999, 1e-4])
def test_sampling_rate(rate):
    drawn = Streams(2, range(400)).bernoulli(rate, 5001, Purpose.SAMPLING, 1)
    n = drawn.numel()
    assert abs(float(drawn.double().mean()) - rate) < 4 * np.sqrt(rate * (1 - rate) / n)


def test_sampling_never_exceeds_its_rate():
    """Rates are rounded down to multiples of 2^-32."""
    assert not Streams(0, range(10)).bernoulli(2.0**-33, 10_000, Purpose.SAMPLING, 0).any()
    assert Streams(0, range(10)).bernoulli(1.0, 10_000, Purpose.SAMPLING, 0).all()


def test_sampling_is_independent_between_records_steps_and_trials():
    own = Streams(9, range(300))
    first = own.bernoulli(0.2, 3000, Purpose.SAMPLING, 0).float()
    later = own.bernoulli(0.2, 3000, Purpose.SAMPLING, 1).float()
    bound = 4.5 / np.sqrt(first.numel())
    assert correlation(first, later) < bound
    assert correlation(first[:, 1:], first[:, :-1]) < bound
    assert correlation(first[1:], first[:-1]) < bound
    sizes = first.sum(1).double()
    spread = float(sizes.var()) / (3000 * 0.2 * 0.8)
    assert abs(spread - 1) < 4.5 * np.sqrt(2 / 300)


def test_uniform_numbers():
    sample = Streams(4, range(50)).uniform(20_000, Purpose.WEIGHTS).double().numpy().ravel()
    assert scipy.stats.kstest(sample, "uniform", args=(-1, 2)).pvalue > 1e-3


def test_scale_and_sum():
    start = torch.full((3, 100), 5.0)
    target = start.clone()
    scale = torch.tensor([0.0, 1.0, 10.0])
    Streams(1, range(3)).add_normal(target, scale, Purpose.NOISE, 0)
    torch.testing.assert_close(target, start + scale[:, None] * normals(1, range(3), 100))


def test_seeds():
    assert check_seed(2**256 - 1) == 2**256 - 1
    assert len({fresh_seed() for _ in range(100)}) == 100
    for bad in (-1, 2**256, True, 1.5, "1", None):
        with pytest.raises(ValueError, match="seed must be a whole number from 0"):
            check_seed(bad)
