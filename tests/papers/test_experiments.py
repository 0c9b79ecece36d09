"""What the papers' experiments conclude, and from what."""

import dataclasses
import itertools
import json

import numpy as np
import pytest

from dprime import TradeOff
from dprime.audit.identifiability import predicted_advantage
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.train import SGD, FinalAccuracy, TrainingConfig, train
from papers.adversary import BELIEF, CLIP_NORM, belief_exceeded
from papers.bernau import audits, neighbours, table2
from papers.bernau import trainings as bernau
from papers.bernau.coinciding import together
from papers.bernau.trainings import ADULT, MNIST, PURCHASE, PURCHASE_LIKE, RETAIL, seen
from papers.cherubin import trainings as cherubin
from papers.cherubin.threats import drawn
from papers.drawing import Line
from papers.entry import SEED, Scale
from papers.mosaicrown import accuracy
from papers.mosaicrown.experiment import Data, network
from papers.mosaicrown.neighbours import Replacements, most_moving
from papers.nasr import ladder
from papers.nasr.ladder import MANY, STATIC, Reached
from papers.thudi import aimed
from papers.thudi.attacks import ALPHAS, SETUPS, Game, rates_at
from papers.thudi.formulas import better_rdp_epsilon, difference, figure8

SMOKE, FULL = Scale("smoke"), Scale("full")
BELIEFS = (0.53, 0.75, 0.9, 0.99)


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("DPRIME_DATA", raising=False)


def row(case=MNIST, place=0, above=0.0):
    found = {
        "advantage": {"value": 0.25, "standard_error": 0.03},
        "predicted": {"value": 0.256, "standard_error": 0.0},
        "exceedance": {"value": above, "low": 0.0, "high": 0.01},
        "trials": {"in": 500, "out": 500},
    }
    return table2.Row(case, place, found)


def test_every_belief_has_its_own_noise_which_both_sensitivities_share():
    seeds = [bernau.seed_of(Scale(seed=seed), belief) for seed in (1, 2) for belief in BELIEFS]
    assert len(set(seeds)) == len(seeds)
    assert bernau.seed_of(Scale(), BELIEF) == SEED
    runs = [seen(SMOKE, ADULT, "local", "replace", belief) for belief in BELIEFS]
    standard = [(one.truth - one.distances**2 / 2) / one.distances for one in runs]
    for one, other in itertools.combinations(standard, 2):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.999
    local, wide = (seen(SMOKE, MNIST, each, "add-remove") for each in ("local", "global"))
    # Where every gradient is clipped, global noise is a thousandth wider than local noise.
    assert np.allclose(local.truth, wide.truth, rtol=2e-3, atol=1e-3)


def test_the_training_loss_is_seen_at_every_step():
    found = seen(SMOKE, ADULT, "local", "replace").losses
    assert found.shape == (8, 3)
    assert np.abs(found - np.log(2)).max() < 0.5


def test_local_sensitivities_give_back_epsilon_which_is_no_claim_and_slips_are_shown():
    found = audits.Audited.of(SMOKE, ADULT, BELIEFS)
    epsilons = found.epsilons("local")
    assert epsilons["sensitivities"] == pytest.approx(found.targets, rel=1e-6)
    assert epsilons["belief as printed"] == pytest.approx(np.exp(epsilons["belief"]))
    assert epsilons["advantage as printed"] == pytest.approx(epsilons["advantage"] / 2)
    said = audits.audits(lambda: [ADULT], BELIEFS, SMOKE)
    named = [claim.what for claim in said.claims if ", LS: " in claim.what]
    assert named
    assert not [what for what in named if "sensitivities" in what]
    rows = {row[0] for row in said.tables[0].rows}
    assert {"LS, from the belief as printed", "LS, from the advantage as printed"} <= rows


def test_both_adversaries_are_compared_training_by_training():
    """What both have in common leaves no error: here one always wins by the other's share."""
    one = seen(SMOKE, ADULT, "local", "replace")
    shares, flat = np.linspace(0.1, 0.3, len(one.truth)), np.full(4, 0.5)
    won = dataclasses.replace(
        one, logs=np.where(one.in_world, 1.0, -1.0), guesses=bernau.Guesses(flat, flat, shares)
    )
    spread = np.std(1 - shares, ddof=1) / len(shares) ** 0.5
    found = won.ahead()
    assert found.value == pytest.approx(1 - shares.mean())
    assert found.high - found.value == pytest.approx(1.96 * spread, rel=1e-3)


def test_equal_records_make_no_neighbour():
    ranking = bernau.ranking_of(SMOKE, RETAIL, "replace", keep=None)
    scores = ranking.scores.copy()
    scores[-3:] = 0.0
    equal = dataclasses.replace(ranking, scores=scores)
    found = neighbours.neighbours(SMOKE, RETAIL, "replace", equal)
    assert [one.place for one in found] == [1, -1]
    assert found[-1].score == ranking.scores[-4] > 0


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ({"a": ((0, 1.0), (1, 2.0)), "b": ((0, 1.0), (1, 3.0)),
          "c": ((0, 1.001, 1.0, 1.002), (1, 2.0, 2.0, 2.0))}, ["a = c", "b"]),
        ({"a": ((0, 1.0), (1, 2.0)), "b": ((0, 1.0, 0.5, 1.5), (1, 2.0, 1.5, 2.5))}, ["a", "b"]),
        (dict.fromkeys("abc", ((0, 3.0), (1, 3.0))), ["all 3, on each other"]),
    ],
)  # fmt: skip
def test_lines_on_each_other_are_drawn_once_but_no_wide_interval_is_hidden(lines, names):
    found = together([Line(name, points) for name, points in lines.items()])
    assert [line.name for line in found] == names


def test_table_2_says_of_which_data_a_number_is():
    for case, told in ((MNIST, "0.24"), (RETAIL, "0.25 on Purchase-100"), (PURCHASE, "0.25")):
        assert table2.counted(SMOKE, row(case)).published == told
    rows = [row(above=0.002), row(RETAIL, 3)]
    assert table2.exceedance_table(rows, []).rows == (
        ("MNIST, LS bounded", "0.01", "2 of 1,000", "1 of 500"),
        ("retail100 for Purchase-100, GS unbounded", "0.001", "1 of 1,000", "0 of 500"),
    )
    (first, *_) = table2.advantage_table(rows, rows).rows
    assert (first[1], len(first)) == ("0.24", 6)
    assert float(first[-1]) == pytest.approx(0.256 / 0.276, abs=0.01)
    title = table2.drawn([row(case, at) for case in bernau.cases() for at in range(4)]).title
    assert title.count("of 4 on") == len(bernau.cases())


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_the_sensitivity_behind_an_advantage(adjacency):
    sigmas = seen(SMOKE, bernau.LOCATION, "global", adjacency).sigmas
    recipe = bernau.recipe_of(SMOKE, bernau.LOCATION, "global", adjacency)
    for norm in (0.5, 4.2):
        implied = predicted_advantage(sigmas, np.full_like(sigmas, norm)).value
        assert table2.sensitivity_of(recipe, implied) == pytest.approx(norm, rel=1e-5)


@pytest.mark.parametrize("case", PURCHASE_LIKE, ids=lambda case: case.data)
def test_held_out_records_are_never_trained_on(case):
    kept = bernau.held_out(SMOKE, case).records
    for trained in bernau.data_of(SMOKE, case):
        assert not (kept[:, None] == trained.records).all(axis=2).any()


def test_outliers_are_outside_the_fences_of_all_trainings():
    """Quartiles of 0 to 19 are 4.75 and 14.25; fences lie 14.25 further out."""
    norms = np.arange(20.0).reshape(4, 5)
    assert neighbours.outliers(norms).tolist() == [0, 0, 0, 0]
    norms[3, 4], norms[0, 0] = 29.0, -10.0
    assert neighbours.outliers(norms).tolist() == [0.2, 0, 0, 0.2]
    norms[3, 4] = 28.0
    assert neighbours.outliers(norms).tolist() == [0.2, 0, 0, 0]


def test_shares_of_outliers_are_told_for_other_first_weights():
    ranking = bernau.ranking_of(SMOKE, MNIST, "replace", keep=None)
    (*_, one) = neighbours.neighbours(SMOKE, MNIST, "replace", ranking)
    other = dataclasses.replace(one, norms=np.full_like(one.norms, CLIP_NORM))
    told = [neighbours.outliers_told(SMOKE, "replace", each) for each in (one, other)]
    assert "TensorFlow's layers begin with" in told[0]
    assert told[1].startswith("100% of these norms are C")


def test_neighbours_go_from_the_most_to_the_least_different():
    data, scores = Data.drawn(SMOKE, 20, 1), []
    for worlds in data.neighbours("replace", "cpu", keep=3):
        ours, theirs = worlds.differing.records[:1], worlds.differing.records[1:]
        measure = default_measure(data.inside.kind)
        one = dataset_sensitivity(ours, theirs, adjacency="replace", measure=measure)
        scores.append(float(one.scores[0]))
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1]


@pytest.mark.parametrize(("mu", "delta"), [(0.3, 0.05), (1.2, 1e-4)])
def test_a_belief_is_exceeded_with_the_probability_it_is_named_for(mu, delta):
    above = TradeOff.gaussian(mu).belief_exceeds_in_worst_pair(belief_exceeded(mu, delta))
    assert above == pytest.approx(delta, rel=1e-6)


def test_random_replacements_that_move_further():
    first = np.array([1.0, 1.1, 0.9, 1.0])
    moved = [first + 0.1, first - 0.1, first + np.array([0.5, -0.4, 0.3, -0.3])]
    found = Replacements(np.stack(moved, 1), np.array([False, True, False]))
    assert (found.further(first), found.surely_further(first)) == (2, 1)
    claim = most_moving(first, found)
    assert claim.ours == pytest.approx(1 / 3)
    assert "2 of 3 move it further than the 1.00" in claim.why
    assert "not the most moving one" in claim.why
    assert "the same class moves it by 0.90 to 0.90 (1 of 3)" in claim.why
    assert "not the most moving" not in most_moving(first + 9, found).why


def test_accuracy_before_training_is_that_of_the_weights_that_all_cases_start_from():
    worlds = accuracy.neighbours(SMOKE, 40)["replace"]
    others = accuracy.beside(SMOKE, worlds, SGD())
    still = FinalAccuracy(accuracy.held_out(SMOKE))
    recipe = TrainingConfig(steps=1, learning_rate=1e-12)
    train(
        network(SMOKE, worlds.common), worlds, recipe, trials=2, seed=SMOKE.seed, world="in",
        observers=[still], keep_weights=False, progress=False,
    )  # fmt: skip
    assert np.array_equal(others.before, still.values)
    assert not np.array_equal(others.before, others.free)


def reached(share, adversary=STATIC):
    """An interval of a tenth to both sides, where the certified d′ is 1."""
    return Reached(adversary, 1.0, share, share - 0.1, share + 0.1, 1.0, {}, 1000, "", 0)


def ladder_of(static, api, gradient=1.0):
    """The same at every ε."""
    shares = {name: 1.0 for step in ladder.ORDER for name in step[:2]}
    shares |= {STATIC: static, "api-access": api, "gradient": gradient}
    return {
        (name, epsilon): dataclasses.replace(reached(share, name), epsilon=epsilon)
        for name, share in shares.items()
        for epsilon in ladder.EPSILONS
    }


@pytest.fixture
def keep(tmp_path, monkeypatch):
    """A play with many shadow models, at ε = 1."""
    monkeypatch.setattr(ladder, "HERE", tmp_path)

    def kept(share):
        content = {"device": "a GPU", "seconds": 1.0, "seed": SEED, "shadows": MANY,
                   "reached": [reached(share).as_json()]}  # fmt: skip
        name = f"mnist-{STATIC}-epsilon-1-shadows-{MANY}"
        (tmp_path / "raw.json").write_text(json.dumps({name: content}))

    return kept


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.5, "it reaches 0.50 (0.40 to 0.60): it had chosen badly."), (0.1, "is not shown.")],
)
def test_a_record_that_is_chosen_again_tells(keep, share, said):
    keep(share)
    claims, again = ladder.steps_of("mnist", "MNIST", FULL, ladder_of(0.0, 0.6))
    assert [each.verdict for each in claims[:4]] == ["differs"] * 4
    assert said in claims[0].why
    assert claims[1].why.endswith("The reason is not measured.")  # no play at ε = 2 is kept
    assert len(again) == 1


@pytest.mark.parametrize(
    ("scale", "found", "verdicts"),
    [
        (FULL, ladder_of(0.6, 0.6), {"agrees"}),
        (FULL, ladder_of(0.4, 0.6), {"undecided", "agrees"}),
        (Scale("quick"), ladder_of(0.0, 0.6), {"differs", "agrees"}),
        (FULL, ladder_of(0.6, 0.6, gradient=0.1), {"differs", "agrees"}),
    ],
)
def test_only_where_a_made_record_falls_behind_in_full(keep, scale, found, verdicts, monkeypatch):
    keep(0.5)
    claims, again = ladder.steps_of("mnist", "MNIST", scale, found)
    assert {each.verdict for each in claims} == verdicts
    assert not again
    assert not [each for each in claims if "chosen" in each.why]


def test_another_number_of_shadow_models_has_random_numbers_of_its_own(monkeypatch):
    chosen = []

    def begin(settings, *_, **__):
        chosen.append(settings)
        raise InterruptedError

    monkeypatch.setattr(ladder, "begin", begin)
    for many in (0, 7):
        with pytest.raises(InterruptedError):
            ladder.play("mnist", SMOKE, STATIC, [2.0], many)
    usual, other = chosen
    assert (usual.options, other.options) == ({"shadows": 2}, {"shadows": 7})
    assert usual.chosen_for["epsilon"] == other.chosen_for["epsilon"] == 2.0
    assert usual.seed != other.seed
    assert dataclasses.replace(other, seed=usual.seed, options=usual.options) == usual


def play(pool, epochs, auc, repetitions=5):
    """One setting in which all repetitions have about this AUC, and gain as much above ½."""
    aucs = [auc + 0.001 * turn for turn in range(repetitions)]
    attack = {"auc": aucs, "at_fpr": {"0.1": aucs}}
    cell = {"prior": 0.5, "members": [0.5] * repetitions, "attack-p": attack}
    return {"pool": pool, "epochs": epochs, "epsilon": 15.0, "cells": [cell]}


USUAL = play(5000, 20, 0.55)


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
    found = aimed.Varied(USUAL, (play(20_000, 20, auc), play(2500, 20, 0.9)))
    assert found.told("attack-p", "0.1").endswith(told)
    assert [each["pool"] for each in found.by("pool")] == [2500, 5000, 20_000]


def test_epochs_are_told_for_what_they_add_and_a_missing_pool_is_said():
    found = aimed.Varied(USUAL, (play(5000, 40, 0.60), play(5000, 5, 0.9)))
    told = found.told("attack-p", "0.1")
    assert "From 20 to 40 it changes by +5.0 points" in told
    assert "more epochs add to it." in told
    assert "Reason not measured" in told
    assert "not measured" in aimed.reason({}, "mnist", "attack-p", "0.1")
    assert aimed.varied(Scale("quick")) == {}


def test_another_pool_has_the_rates_of_the_usual_one():
    for pool, epochs in itertools.chain(*aimed.CHOSEN["full"].values()):
        other = aimed.setup_with(SETUPS["full"], pool, epochs)
        assert other.batch / other.pool == SETUPS["full"].batch / SETUPS["full"].pool


def test_half_of_the_records_against_half_of_epsilon():
    assert difference(1.0) < 0 < difference(5.0)


def test_every_seed_has_draws_of_its_own():
    seeds = [Game("mnist", 3.0, Scale("smoke", seed=s)).own_seed(0) for s in range(2015, 2030)]
    assert len(set(seeds)) == len(seeds)
    other = dataclasses.replace(SETUPS["smoke"], epochs=2)
    assert Game("mnist", 3.0, SMOKE, other).own_seed(0) not in seeds


def test_the_printed_noise_is_that_of_renyi_dp_and_no_mistake():
    """4.0412 for (1, 1e-5): what an accountant with Balle et al.'s conversion gives."""
    (claim,) = figure8(SMOKE).claims
    assert claim.ours == pytest.approx(1.001, abs=5e-4)
    assert claim.verdict == "agrees"
    assert better_rdp_epsilon(3.7306) > 1.08  # exactly enough, but not by that way


@pytest.mark.parametrize("alpha", ALPHAS)
def test_attacks_that_carry_their_false_positive_rate(alpha):
    scores, members = np.linspace(0, 1, 101), np.arange(101) % 4 == 0
    flagged = scores >= 1 - alpha - 1e-9
    assert flagged.sum() == round(100 * alpha) + 1
    expected = members[flagged].mean(), flagged[~members].mean()
    assert rates_at(scores, members, alpha) == pytest.approx(expected)
    assert rates_at(np.array([np.nan, 0.0]), np.array([True, True]), 0.1) == (None, None)


def test_the_seed_reaches_the_trainings(monkeypatch, tmp_path):
    one, same, other = (cherubin.train(cherubin.RETAIL, Scale("smoke", seed=s)) for s in (5, 5, 6))
    assert one["runs"] == same["runs"]
    assert one["runs"] != other["runs"]
    assert (one["seed"], other["seed"]) == (5, 6)
    monkeypatch.setattr(cherubin, "HERE", tmp_path)
    monkeypatch.setattr(cherubin, "train", lambda case, scale: {"seed": scale.seed})
    for size in ("quick", "full"):
        assert cherubin.trained(cherubin.RETAIL, Scale(size, seed=77))["seed"] == 77
    assert (tmp_path / "raw-seed77.json").exists()
    cherubin.trained.cache_clear()


def test_the_published_have_the_colours_of_ours():
    found = json.loads((cherubin.HERE / "raw.json").read_text())["adult"]
    epochs = found["epochs"]
    numbers = {"accuracy": [0.8] * epochs, "attribute": [[0.95, 0.94, 0.96]] * epochs,
               "membership, certified": [0.9] * epochs}  # fmt: skip
    inks = {line.name: line.pencil.ink for line in drawn("adult", found, numbers).series}
    assert inks["ours: age, estimate"] == inks["published: age"]
    assert inks["ours: membership, certified"] == inks["published: membership"]
    assert len(set(inks.values())) == 2


def test_what_the_triangle_inequality_forces_is_no_claim():
    for one in json.loads((cherubin.HERE / "raw.json").read_text())["adult"]["runs"]:
        found = one["security"]["closed-form"]
        pairs = zip(found["approximate"], found["full"], strict=True)
        assert all(rough <= full for rough, full in pairs)
