"""What Thudi's scripts conclude from plays that were made."""

import dataclasses

import numpy as np
import pytest

from papers.reproduce import Scale, exact, explained, stated
from papers.thudi import figure2, figure8, variations
from papers.thudi.attacks import ALPHAS, SETUPS, Game, rates_at
from papers.thudi.variations import Varied


def play(pool, epochs, auc, repetitions=5):
    """One setting in which all repetitions have about this AUC, and gain as much above ½."""
    aucs = [auc + 0.001 * turn for turn in range(repetitions)]
    attack = {"auc": aucs, "at_fpr": {"0.1": aucs}}
    cell = {"prior": 0.5, "members": [0.5] * repetitions, "attack-p": attack}
    return {"pool": pool, "epochs": epochs, "epsilon": 15.0, "cells": [cell]}


def test_pools_and_epochs_stand_apart():
    usual = play(5000, 20, 0.55)
    found = Varied(usual, (play(10_000, 20, 0.53), play(2500, 20, 0.60), play(5000, 5, 0.51)))
    assert [each["pool"] for each in found.by("pool")] == [2500, 5000, 10_000]
    assert [each["epochs"] for each in found.by("epochs")] == [5, 20]


@pytest.mark.parametrize(
    ("auc", "told"),
    [
        (0.51, "a larger pool takes from it, and our small one is a part of the reason."),
        (0.552, "that a larger pool changes it is not shown."),
        (0.59, "a larger pool adds to it."),
    ],
)
def test_a_small_pool_is_a_reason_where_a_larger_one_takes_from_the_gain(auc, told):
    """Against the usual one, whatever a smaller one has."""
    found = Varied(play(5000, 20, 0.55), (play(20_000, 20, auc), play(2500, 20, 0.9)))
    assert found.told("attack-p", "0.1").endswith(told)


def test_epochs_are_told_for_what_they_add():
    found = Varied(play(5000, 20, 0.55), (play(5000, 40, 0.60), play(5000, 5, 0.9)))
    told = found.told("attack-p", "0.1")
    assert "From 20 to 40 it changes by +5.0 points" in told
    assert "more epochs add to it." in told


def test_without_another_pool_the_reason_is_not_measured():
    found = Varied(play(5000, 20, 0.55), (play(5000, 40, 0.60),))
    assert "Reason not measured" in found.told("attack-p", "0.1")
    assert "not measured" in variations.reason({}, "mnist", "attack-p", "0.1")


def test_another_pool_has_the_rates_of_the_usual_one():
    usual = SETUPS["full"]
    for plays in variations.CHOSEN["full"].values():
        for pool, epochs in plays:
            other = variations._setup(usual, pool, epochs)
            assert other.batch / other.pool == usual.batch / usual.pool


def test_a_quick_version_varies_nothing():
    assert variations.varied(Scale("quick")) == {}


def test_a_reason_stands_where_a_claim_does_not_agree():
    right, wrong = (stated("a number", "above 0", exact(x), least=0.0) for x in (1.0, -1.0))
    assert explained(right, "because").why == ""
    assert explained(wrong, "because").why == "because"


def test_half_of_the_records_against_half_of_epsilon():
    assert figure2.difference(1.0) < 0 < figure2.difference(5.0)


def test_every_seed_has_draws_of_its_own():
    seeds = [
        Game("mnist", 3.0, Scale("smoke", seed=seed)).own_seed(0) for seed in range(2015, 2030)
    ]
    assert len(set(seeds)) == len(seeds)
    other = dataclasses.replace(SETUPS["smoke"], epochs=2)
    assert Game("mnist", 3.0, Scale("smoke"), other).own_seed(0) not in seeds


def test_the_printed_noise_is_that_of_renyi_dp_and_no_mistake():
    """4.0412 for (1, 1e-5): what an accountant with Balle et al.'s conversion gives."""
    (claim,) = figure8.measure(Scale("smoke")).claims
    assert claim.ours == pytest.approx(1.001, abs=5e-4)
    assert claim.verdict == "agrees"
    assert figure8.better_rdp_epsilon(3.7306) > 1.08  # exactly enough, but not by that way


@pytest.mark.parametrize("alpha", ALPHAS)
def test_attacks_that_carry_their_false_positive_rate(alpha):
    scores, members = np.linspace(0, 1, 101), np.arange(101) % 4 == 0
    flagged = scores >= 1 - alpha - 1e-9
    assert flagged.sum() == round(100 * alpha) + 1
    expected = members[flagged].mean(), flagged[~members].mean()
    assert rates_at(scores, members, alpha) == pytest.approx(expected)


def test_a_rate_of_no_record_is_none():
    assert rates_at(np.array([np.nan, 0.0]), np.array([True, True]), 0.1) == (None, None)
