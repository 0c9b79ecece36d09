"""What the scripts for Bernau et al. share: seeds, pictures, and what is no claim."""

import dataclasses
import itertools

import numpy as np
import pytest

from papers.bernau import audits_of, cases, figure4, table2
from papers.bernau.coinciding import together
from papers.bernau.trainings import Guesses, seed_of, seen
from papers.drawing import Line
from papers.reproduce import SEED, Scale

SMOKE = Scale("smoke")
BELIEFS = (0.53, 0.75, 0.9, 0.99)


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("DPRIME_DATA", raising=False)


def row(case=cases.MNIST, place=0, *, wins=0.25, above=0.0):
    found = {
        "advantage": {"value": wins, "standard_error": 0.03},
        "predicted": {"value": 0.256, "standard_error": 0.0},
        "exceedance": {"value": above, "low": 0.0, "high": 0.01},
        "trials": {"in": 500, "out": 500},
    }
    return table2.Row(case, place, found)


def test_every_belief_has_its_own_seed():
    seeds = [seed_of(Scale(seed=seed), belief) for seed in (1, 2) for belief in BELIEFS]
    assert len(set(seeds)) == len(seeds)
    assert seed_of(Scale(), cases.BELIEF) == SEED


def test_noise_is_not_shared_between_beliefs():
    runs = [seen(SMOKE, cases.ADULT, "local", "replace", belief) for belief in BELIEFS]
    standard = [(one.truth - one.distances() ** 2 / 2) / one.distances() for one in runs]
    for one, other in itertools.combinations(standard, 2):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.999


def test_but_between_local_and_global_noise():
    local, wide = (seen(SMOKE, cases.MNIST, each, "add-remove") for each in ("local", "global"))
    # Where every gradient is clipped, global noise is a thousandth wider than local noise.
    assert np.allclose(local.truth, wide.truth, rtol=2e-3, atol=1e-3)


def test_the_training_loss_is_seen_at_every_step():
    found = seen(SMOKE, cases.ADULT, "local", "replace").losses
    assert found.shape == (8, 3)
    assert np.abs(found - np.log(2)).max() < 0.5


def test_local_sensitivities_give_back_epsilon_under_local_noise():
    found = audits_of.audited(SMOKE, cases.ADULT, BELIEFS)
    assert found.epsilons("local")["sensitivities"] == pytest.approx(found.targets, rel=1e-6)


def test_so_that_is_no_claim():
    found = audits_of.measure_audits(SMOKE, cases.ADULT, BELIEFS)
    named = [claim.what for claim in found.claims if ", LS: " in claim.what]
    assert named
    assert not [what for what in named if "sensitivities" in what]


def test_both_slips_of_section_5_3_are_shown():
    found = audits_of.audited(SMOKE, cases.ADULT, BELIEFS).epsilons("local")
    assert found["belief as printed"] == pytest.approx(np.exp(found["belief"]))
    assert found["advantage as printed"] == pytest.approx(found["advantage"] / 2)
    said = audits_of.measure_audits(SMOKE, cases.ADULT, BELIEFS)
    rows = [row[0] for row in said.tables[0].rows]
    assert {"LS, from the belief as printed", "LS, from the advantage as printed"} <= set(rows)


def test_both_adversaries_are_compared_training_by_training():
    """What both have in common leaves no error: here one always wins by the other's share."""
    one = seen(SMOKE, cases.ADULT, "local", "replace")
    shares = np.linspace(0.1, 0.3, len(one.truth))
    flat = np.full(4, 0.5)
    guesses = Guesses(flat, flat, shares)
    won = dataclasses.replace(one, truth=np.ones_like(one.truth), guesses=guesses)
    spread = np.std(1 - shares, ddof=1) / len(shares) ** 0.5
    found = won.ahead()
    assert found.value == pytest.approx(1 - shares.mean())
    assert found.high - found.value == pytest.approx(1.96 * spread, rel=1e-3)


def test_equal_records_make_no_neighbour():
    case = cases.RETAIL
    ranking = cases.ranking_of(SMOKE, case, "replace", keep=None)
    scores = ranking.scores.copy()
    scores[-3:] = 0.0
    equal = dataclasses.replace(ranking, scores=scores)
    found = figure4.neighbours(SMOKE, case, "replace", equal)
    assert [one.place for one in found] == [1, -1]
    assert found[-1].score == ranking.scores[-4] > 0


def test_lines_on_each_other_are_drawn_once():
    lines = [
        Line("a", ((0, 1.0), (1, 2.0))),
        Line("b", ((0, 1.0), (1, 3.0))),
        Line("c", ((0, 1.001, 1.0, 1.002), (1, 2.0, 2.0, 2.0))),
    ]
    assert [line.name for line in together(lines)] == ["a = c", "b"]


def test_a_wide_interval_is_not_hidden():
    lines = [Line("a", ((0, 1.0), (1, 2.0))), Line("b", ((0, 1.0, 0.5, 1.5), (1, 2.0, 1.5, 2.5)))]
    assert len(together(lines)) == 2


def test_all_lines_on_each_other():
    flat = [Line(name, ((0, 3.0), (1, 3.0))) for name in "abc"]
    assert [line.name for line in together(flat)] == ["all 3, on each other"]


def test_a_count_on_other_data_says_so():
    assert table2.counted(SMOKE, row()).published == "0.24"
    assert table2.counted(SMOKE, row(cases.RETAIL)).published == "0.25 on Purchase-100"
    assert table2.counted(SMOKE, row(cases.PURCHASE)).published == "0.25"


def test_every_exceedance_is_in_a_table():
    rows = [row(above=0.002), row(cases.RETAIL, 3)]
    assert table2.exceedance_table(rows, []).rows == (
        ("MNIST, LS bounded", "0.01", "2 of 1,000", "1 of 500"),
        ("retail100 for Purchase-100, GS unbounded", "0.001", "1 of 1,000", "0 of 500"),
    )
    (first, *_) = table2.advantage_table(rows, rows).rows
    assert first[1] == "0.24"
    assert len(first) == 6
    assert float(first[-1]) == pytest.approx(0.256 / 0.276, abs=0.01)


def test_the_picture_counts_by_data_set():
    rows = [row(case, place) for case in cases.cases() for place in range(4)]
    title = table2.drawn(rows).title
    assert "of 16" not in title
    assert title.count("of 4 on") == len(cases.cases())


def test_outliers_are_outside_the_fences_of_all_trainings():
    """Quartiles of 0 to 19 are 4.75 and 14.25; fences lie 14.25 further out."""
    norms = np.arange(20.0).reshape(4, 5)
    assert figure4.outliers_in(norms).tolist() == [0, 0, 0, 0]
    norms[3, 4], norms[0, 0] = 29.0, -10.0
    assert figure4.outliers_in(norms).tolist() == [0.2, 0, 0, 0.2]
    norms[3, 4] = 28.0
    assert figure4.outliers_in(norms).tolist() == [0.2, 0, 0, 0]


def test_shares_of_outliers_are_told_for_other_first_weights():
    ranking = cases.ranking_of(SMOKE, cases.MNIST, "replace", keep=None)
    (*_, one) = figure4.neighbours(SMOKE, cases.MNIST, "replace", ranking)
    told = figure4.outliers_told(SMOKE, "replace", one)
    other = dataclasses.replace(one, norms=np.full_like(one.norms, cases.CLIP_NORM))
    assert "TensorFlow's layers begin with" in told
    assert figure4.outliers_told(SMOKE, "replace", other).startswith("100% of these norms are C")
