"""The draw from a pool: its coins, what it keeps secret, and what it refuses."""

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from dprime import DPSGD, InputError, PoolSampled
from dprime.data import Dataset
from dprime.data.arrays import array_rows
from dprime.membership import pool as module
from dprime.membership.pool import Draw, check_distinct, draw
from dprime.train import TrainingData

TRAINING = DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=500)


@pytest.fixture(scope="module")
def people():
    return Dataset.of(np.arange(120.0).reshape(60, 2), np.arange(60) % 3, name="people")


def naive_coins(seed, count, probability):
    """One record after another, in exact fractions."""
    kept = []
    for place in range(count):
        block, offset = divmod(place, module.BLOCK)
        key = module.PURPOSE + seed.to_bytes(32, "little") + block.to_bytes(8, "little")
        word = hashlib.shake_256(key).digest(8 * offset + 8)[-8:]
        kept.append(int.from_bytes(word, "little") + 1 <= Fraction(probability[place]) * 2**64)
    return kept


def test_coins_are_those_of_a_naive_copy(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 16)
    chances = np.random.default_rng(0).uniform(0.01, 0.99, 50)
    for seed in (0, 1, 2**256 - 1):
        assert draw(50, chances, seed=seed).members.tolist() == naive_coins(seed, 50, chances)


def test_without_a_seed_nobody_can_repeat_the_draw():
    assert (draw(2000, 0.5).members != draw(2000, 0.5).members).any()


def p_value(drawn, chances):
    """Chi-square over all patterns of a few records, which independent coins would make so often.

    drawn [draw, record], chances [record].
    """
    records = len(chances)
    patterns = (np.arange(2**records)[:, None] >> np.arange(records)) & 1
    expected = np.where(patterns == 1, chances, 1 - chances).prod(axis=1)
    found = np.bincount(drawn @ (1 << np.arange(records)), minlength=2**records)
    return chisquare(found, expected * len(drawn)).pvalue


@pytest.mark.parametrize("chances", [[0.2] * 5, [0.1, 0.3, 0.5, 0.6, 0.8]])
def test_records_are_drawn_independently_each_with_its_probability(chances):
    drawn = np.array([draw(5, chances, seed=seed).members for seed in range(6000)])
    assert p_value(drawn, np.array(chances)) > 1e-3
    shared = drawn.copy()
    shared[:, 1] = shared[:, 0]  # the same test sees two records on one coin,
    assert p_value(shared, np.array(chances)) < 1e-9
    rarer = drawn & (np.random.default_rng(0).random(drawn.shape) < 0.8)  # and a smaller π
    assert p_value(rarer, np.array(chances)) < 1e-9
    one = draw(100_000, 0.25, seed=11).members.reshape(-1, 5)  # and so are places of one draw
    assert p_value(one, np.full(5, 0.25)) > 1e-3


def test_a_probability_is_rounded_down_only():
    assert not module.coins(1, 5000, 2.0**-70).any()
    assert module.coins(1, 5000, 1 - 2.0**-53).all()
    for place, word in enumerate(module._words(1, 20).tolist()):
        near = word / 2**64
        for chance in (np.nextafter(near, 0), near, np.nextafter(near, 1)):
            kept = module.coins(1, 20, np.full(20, chance))[place]
            assert kept == (word < math.floor(Fraction(chance) * 2**64))


def test_nothing_shown_depends_on_the_draw():
    first, second = draw(300, 0.2, seed=1), draw(300, 0.2, seed=2)
    assert first.members.sum() != second.members.sum()
    assert repr(first) == repr(second) == str(second)
    own = Draw(first.members, np.linspace(0.1, 0.3, 300))
    assert repr(own) == "Draw(from 300 records, each kept with probability 0.1 to 0.3, 60 expected)"


@pytest.mark.parametrize("seed", [-987654321, 2**256 + 987654321, "987654321", 987654321.5])
def test_a_seed_is_not_shown_when_it_is_refused(seed):
    with pytest.raises(InputError) as refused:
        draw(10, 0.5, seed=seed)
    assert refused.value.parameter == "seed"
    assert "987654321" not in str(refused.value)


def test_the_largest_probability_is_the_prior_and_covers_everyone():
    assert draw(50, 0.2).mechanism(TRAINING) == PoolSampled(TRAINING, 0.2)
    chances = np.array([0.05, 0.3, 0.1, 0.2])
    ran = draw(4, chances).mechanism(TRAINING)
    assert ran == PoolSampled(TRAINING, 0.3, 0.05)
    precisions = [ran.curve().precision(prior=p, min_tpr=0.01) for p in chances]
    assert max(precisions) == ran.curve().precision(prior=ran.prior, min_tpr=0.01)


def test_the_drawn_records_are_taken(people):
    kept = draw(people, 0.5, seed=4)
    taken = kept.take(people)
    assert (taken.records == people.records[kept.members]).all()
    assert (taken.labels == people.labels[kept.members]).all()
    assert taken.classes == people.classes
    subset = kept.subset(people.labels.tolist())
    assert list(subset) == people.labels[kept.members].tolist()
    for each in (kept, draw(people, np.linspace(0.1, 0.7, 60))):  # the engine's expected size
        parts = TrainingData.parts(people, each.members[None], each.probability)
        assert parts.expected == pytest.approx(each.expected, rel=1e-12)


def test_a_small_pool_is_not_taken_whatever_was_drawn():
    assert draw(10, 0.5).empty_probability == pytest.approx(2.0**-10)
    assert draw(2, [0.5, 0.2]).empty_probability == pytest.approx(0.4)
    few = Dataset.of([[1.0], [2.0], [3.0]], [0, 1, 0])
    kept = [draw(few, 0.3, seed=seed) for seed in range(20)]
    assert {bool(each.members.any()) for each in kept} == {True, False}
    sentences = set()
    for each in kept:
        with pytest.raises(InputError) as refused:
            each.take(few)
        sentences.add(str(refused.value))
    (sentence,) = sentences
    assert sentence.startswith("the chance of an empty draw")


def test_repeated_records_are_refused():
    records, labels = np.arange(20.0)[:, None].repeat(2, axis=1), np.zeros(20, dtype=int)
    records[[7, 12, 15]] = records[3]
    with pytest.raises(InputError, match=r"3 repetitions, first record 7 .* same as record 3"):
        draw(Dataset.of(records, labels), 0.5)
    labels[[3, 7, 12, 15]] = [0, 1, 2, 0]  # another label makes another record
    with pytest.raises(InputError, match=r"1 repetition, first record 15 .* as record 3"):
        draw(Dataset.of(records, labels), 0.5)
    with pytest.raises(InputError, match="1 repetition"):
        draw(Dataset.of([[0.0], [-0.0]], [1, 1]), 0.5)


def test_repetitions_are_found_as_a_naive_comparison_finds_them():
    rng = np.random.default_rng(2)
    for _ in range(20):
        columns = [rng.integers(0, 9, size=(12, 2)), rng.integers(0, 3, size=12).astype("f4")]
        whole = [(*a.tolist(), b) for a, b in zip(*columns, strict=True)]
        repeated = [i for i, row in enumerate(whole) if row in whole[:i]]
        if not repeated:
            check_distinct(array_rows(columns))
            continue
        first = repeated[0], whole.index(whole[repeated[0]])
        named = f"first record {first[0]} that is the same as record {first[1]}:"
        with pytest.raises(InputError, match=named) as refused:
            check_distinct(array_rows(columns))
        assert f"one with {len(repeated)} repetition" in str(refused.value)
