"""Random bits: the published cipher, the right distributions, and nothing in common."""

import struct

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dprime.seeds import check_seed, fresh_seed
from dprime.train import streams
from dprime.train.streams import Purpose, Streams, keystream

TURNS = [(0, 1, 3, 16), (2, 3, 1, 12), (0, 1, 3, 8), (2, 3, 1, 7)]


def slow_block(key, nonce, counter):
    """A block of ChaCha20 in Python's whole numbers (RFC 8439, with a counter of 64 bits)."""
    start = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key)]
    start += [counter % 2**32, counter >> 32, nonce % 2**32, nonce >> 32]
    state = list(start)
    for turn in (0, 1) * 10:  # columns, then diagonals
        for i in range(4):
            places = [4 * row + (i + row * turn) % 4 for row in range(4)]
            for left, right, far, bits in TURNS:
                a, b, d = places[left], places[right], places[far]
                state[a] = (state[a] + state[b]) % 2**32
                mixed = state[d] ^ state[a]
                state[d] = (mixed << bits | mixed >> (32 - bits)) % 2**32
    return struct.pack("<16I", *((x + y) % 2**32 for x, y in zip(state, start, strict=True)))


def test_known_answer():
    """The key stream of RFC 8439, appendix A.1, vector 1."""
    known = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    assert keystream(bytes(32), 0, 0, 1).numpy().tobytes()[:32].hex() == known
    assert slow_block(bytes(32), 0, 0)[:32].hex() == known


@given(
    st.binary(min_size=32, max_size=32),
    st.integers(0, 2**64 - 1),
    st.one_of(st.integers(0, 2**63), st.integers(2**32 - 4, 2**32 + 4)),
    st.integers(1, 5),
)
def test_against_whole_numbers(key, nonce, first, blocks):
    """Also where the lower half of the counter overflows."""
    expected = b"".join(slow_block(key, nonce, first + i) for i in range(blocks))
    assert keystream(key, nonce, first, blocks).numpy().tobytes() == expected


def test_long_streams_are_made_in_pieces(monkeypatch):
    whole = keystream(bytes(32), 1, 5, 1000)
    monkeypatch.setattr(streams, "ZEROS", memoryview(bytes(64 * 7)))
    assert torch.equal(keystream(bytes(32), 1, 5, 1000), whole)


TRIALS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=6)


@given(TRIALS, st.integers(1, 70), st.integers(0, 2**256 - 1))
def test_a_trials_bits_are_its_own(trials, count, seed):
    drawn = Streams(seed, trials).bernoulli(0.3, count, Purpose.SAMPLING, 5)
    for row, trial in enumerate(trials):
        alone = Streams(seed, [trial]).bernoulli(0.3, count, Purpose.SAMPLING, 5)[0]
        assert torch.equal(alone, drawn[row])


def test_a_part_of_a_share():
    """Any blocks of any rows are those of the whole."""
    own = Streams(1, [3, 4, 5, 9, 10, 2])
    whole = own.blocks(Purpose.NOISE, 7, 4, slice(0, 4), slice(0, 6), part=1).view(6, 4, 64)
    for rows in (slice(0, 6), slice(1, 4), slice(2, 3), slice(3, 6)):
        for wanted in (slice(0, 4), slice(1, 3), slice(3, 4)):
            part = own.blocks(Purpose.NOISE, 7, 4, wanted, rows, part=1)
            assert torch.equal(part.view(part.shape[0], -1, 64), whole[rows, wanted])


def test_no_two_places_share_bits():
    """Steps, parts, purposes, seeds and trials."""
    rows = [
        own.blocks(purpose, step, 1, slice(0, 1), slice(0, 2), part)
        for seed in (0, 1, 2**64, 2**128, 2**255)
        for own in (Streams(seed, [trial, trial + 1]) for trial in (0, 2, 2**31))
        for purpose in Purpose
        for step in (0, 1, 2**40)
        for part in range(4)
    ]
    rows = torch.cat(rows).numpy()
    assert len({row.tobytes() for row in rows}) == len(rows)


def test_sampling_rates_are_kept_and_never_exceeded():
    """Rates are rounded down to multiples of 2^-32."""
    for rate in (0.5, 0.01, 0.999, 1e-4):
        drawn = Streams(2, range(400)).bernoulli(rate, 5001, Purpose.SAMPLING, 1)
        error = np.sqrt(rate * (1 - rate) / drawn.numel())
        assert abs(float(drawn.double().mean()) - rate) < 4 * error
    assert not Streams(0, range(10)).bernoulli(2.0**-33, 10_000, Purpose.SAMPLING, 0).any()
    assert Streams(0, range(10)).bernoulli(1.0, 10_000, Purpose.SAMPLING, 0).all()


def test_sampling_is_independent_between_records_steps_and_trials():
    own = Streams(9, range(300))
    first, later = (own.bernoulli(0.2, 3000, Purpose.SAMPLING, step).float() for step in (0, 1))
    pairs = (first, later), (first[:, 1:], first[:, :-1]), (first[1:], first[:-1])
    for one, other in pairs:
        together = torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1]
        assert abs(float(together)) < 4.5 / np.sqrt(first.numel())
    spread = float(first.sum(1).double().var()) / (3000 * 0.2 * 0.8)
    assert abs(spread - 1) < 4.5 * np.sqrt(2 / 300)


def test_seeds():
    assert check_seed(2**256 - 1) == 2**256 - 1
    assert min(fresh_seed() for _ in range(100)) < 2**254 < max(fresh_seed() for _ in range(100))
    for bad in (-1, 2**256, 1.5, "1", None):
        with pytest.raises(ValueError, match="seed must be a whole number from 0"):
            check_seed(bad)
