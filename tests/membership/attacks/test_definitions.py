"""Every attack beside its plain reference, the rates that scores stand for, vanishing numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime import InputError
from dprime.membership.attacks import RMIA, AttackP, AttackR, Baseline, Evidence, LiRA
from dprime.membership.attacks.thresholds import interpolated_ranks
from dprime.membership.results import precision_over_quantiles
from dprime.membership.signals import Signals
from membership.plain_attacks import (
    attack_p,
    attack_r,
    halves,
    lira,
    of_probabilities,
    rmia,
    signals,
)

TWO_EACH = np.array([[True], [True], [False], [False]])


@pytest.mark.parametrize("online", [True, False])
@pytest.mark.parametrize("variance", ["per-record", "fixed"])
def test_lira_agrees_with_its_definition(online, variance):
    rng = np.random.default_rng(3)
    members = halves(rng, 10, 4, 12)
    shadows = signals(rng.normal(size=12) + 2 * members + rng.normal(size=(10, 12)))
    target = signals(rng.normal(1.0, 2.0, size=12))
    plain = lira(
        target.probability, shadows.probability, members, online=online, fixed=variance == "fixed"
    )
    found = LiRA(online=online, variance=variance).scores(Evidence(target, shadows, members))
    assert found == pytest.approx(plain, rel=1e-9, abs=1e-9)


def test_fixed_variance_is_unbiased_and_ignores_how_records_differ():
    """Records far apart, models that vary with deviation 2: that is what is found."""
    rng = np.random.default_rng(0)
    members = halves(rng, 6, 3, 4000)
    shadows = signals(50 * rng.normal(size=4000) + 2 * rng.normal(size=(6, 4000)))
    means = np.where(members, 0, shadows.logit).sum(0) / 3
    seen = Evidence(signals(means + 1.0), shadows, members)
    scores = LiRA(online=False, variance="fixed").scores(seen)
    assert np.ptp(scores) < 1e-9
    assert 1 / scores.mean() == pytest.approx(2.0, rel=0.02)


def test_models_that_agree_exactly_give_an_order_and_no_infinity():
    shadows = signals([[3.0] * 3, [3.0] * 3, [1.0] * 3, [1.0] * 3])
    seen = Evidence(signals([3.0, 2.5, 1.0]), shadows, TWO_EACH.repeat(3, 1))
    for attack in (LiRA(), LiRA(online=False), LiRA(variance="fixed")):
        scores = attack.scores(seen)
        assert np.isfinite(scores).all()
        assert scores[0] > scores[1] > scores[2]


def test_a_fixed_variance_needs_two_models_somewhere():
    shadows, members = signals([[1.0, 2.0], [2.0, 1.0]]), np.array([[True, True], [False, False]])
    for attack, parameter in ((LiRA(variance="fixed"), "members"), (LiRA(), "shadow models")):
        with pytest.raises(InputError) as refused:
            attack.scores(Evidence(signals([1.0, 2.0]), shadows, members))
        assert refused.value.parameter == parameter


def test_offline_does_not_saturate():
    """Scores whose probability Φ is 1 as a float still have an order."""
    shadows, members = signals([[-1.0] * 2, [1.0] * 2]), np.zeros((2, 2), bool)
    scores = LiRA(online=False).scores(Evidence(signals([40.0, 80.0]), shadows, members))
    assert scores[1] > scores[0] > 20


@pytest.mark.parametrize("gamma", [1.0, 2.0])
@pytest.mark.parametrize(("online", "a"), [(True, 0.3), (False, 0.3), (False, 0.0), (False, 1.0)])
def test_rmia_agrees_with_its_definition(online, gamma, a):
    rng = np.random.default_rng(5)
    members = halves(rng, 8, 3, 15)
    shapes = {"target": 15, "shadows": (8, 15), "population": 40, "shadow_population": (8, 40)}
    case = {name: rng.random(shape) for name, shape in shapes.items()}
    plain = rmia(**case, members=members, online=online, gamma=gamma, a=a)
    seen = Evidence(**{k: of_probabilities(p) for k, p in case.items()}, members=members)
    assert len(np.unique(plain)) > 5
    found = RMIA(online=online, gamma=gamma, offline_a=a).scores(seen)
    assert found == pytest.approx(plain, abs=1e-9)


def test_a_ratio_of_exactly_gamma_counts():
    one, two = of_probabilities([0.5]), of_probabilities([[0.5], [0.5]])
    seen = Evidence(one, two, np.array([[True], [False]]), one, two)
    assert [RMIA(gamma=gamma).scores(seen) for gamma in (1.0, 1.001)] == [1.0, 0.0]


def test_probabilities_too_small_for_a_float_keep_their_ratio():
    """P(x) and p(z) are e^-2000 on the shadow models; the target has e^1000 times that on x."""
    tiny, same = (Signals(np.full(1, log), np.full(1, -1e-300)) for log in (-1000.0, -2000.0))
    tinier = Signals(np.full((2, 1), -2000.0), np.full((2, 1), -1e-300))
    seen = Evidence(tiny, tinier, np.array([[True], [False]]), same, tinier)
    attacks = (RMIA(), RMIA(online=False, offline_a=1.0), RMIA(online=False, offline_a=0.5))
    assert [attack.scores(seen).item() for attack in attacks] == [1.0, 1.0, 0.0]


def test_the_precision_of_the_baseline_is_the_share_of_members():
    """Also where the target has no answer."""
    scores = Baseline().scores(Evidence(signals([np.nan, 1.0, 2.0, np.nan])))
    best = precision_over_quantiles(scores, [True, False, False, False])
    assert (best.value, best.flagged) == (0.25, 4)


def test_attack_p_agrees_with_its_definition_ties_included():
    rng = np.random.default_rng(0)
    target, others = signals(rng.integers(-3, 4, 30)), signals(rng.integers(-3, 4, 17))
    scores = AttackP().scores(Evidence(target, population=others))
    assert scores == pytest.approx(attack_p(target.probability, others.probability), abs=1e-12)


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_attack_p_keeps_the_false_positive_rate(alpha):
    """Fresh records like the population: (αn + 1)/(n + 1) of them are accused."""
    rng = np.random.default_rng(1)
    rates = []
    for _ in range(200):
        evidence = Evidence(signals(rng.normal(size=300)), population=signals(rng.normal(size=99)))
        rates.append((AttackP().scores(evidence) >= 1 - alpha).mean())
    expected = (np.floor(alpha * 99) + 1) / 100
    assert np.mean(rates) == pytest.approx(expected, abs=4 * np.std(rates) / np.sqrt(200))


@pytest.mark.parametrize("inside", [False, True])
def test_attack_r_agrees_with_its_definition(inside):
    rng = np.random.default_rng(0)
    members = halves(rng, 9, 4, 60)
    seen = Evidence(signals(rng.normal(size=60)), signals(rng.normal(size=(9, 60))), members)
    plain = attack_r(seen.target.probability, seen.shadows.probability, members, inside=inside)
    within = ~np.isnan(plain)
    assert 20 < within.sum() < 60
    found = AttackR(thresholds_from="in" if inside else "out").scores(seen)
    assert found[within] == pytest.approx(plain[within], abs=1e-9)
    count, beyond = 4 if inside else 5, found[~within]
    assert ((beyond > count / (count + 1)) | (beyond < 1 / (count + 1))).all()


@pytest.mark.parametrize(
    ("alpha", "low", "high"),
    [(0.1, 0.088, 0.112), (0.2, 0.188, 0.212), (0.5, 0.488, 0.512), (0.05, 0.04, 0.07)],
)
def test_attack_r_keeps_the_false_positive_rate_with_ten_models(alpha, low, high):
    """The smallest rate that the ranks of ten models know is 1/11; 0.05 rests on the line."""
    rng = np.random.default_rng(7)
    target, shadows = signals(rng.normal(size=40_000)), signals(rng.normal(size=(10, 40_000)))
    seen = Evidence(target, shadows, np.zeros((10, 40_000), bool))
    assert low < (AttackR().scores(seen) >= 1 - alpha).mean() < high


def ranks_of(values, others):
    wide = np.broadcast_to(np.array(others, dtype=float)[:, None], (len(others), len(values)))
    return interpolated_ranks(np.array(values, dtype=float), wide, np.ones(wide.shape, bool))


few = st.lists(st.integers(-4, 4), min_size=1, max_size=6)


@given(few, st.lists(st.floats(-6, 6), min_size=2, max_size=6))
def test_ranks_rise_with_the_value_and_tie_in_the_middle(others, values):
    ranks = ranks_of(sorted(values), others)
    assert (np.diff(ranks) >= -1e-12).all()
    assert ((ranks >= 0) & (ranks <= len(others) + 1)).all()
    at = np.array(others)
    below, equal = ((compare(at[:, None], at)).sum(0) for compare in (np.less, np.equal))
    assert ranks_of(others, others) == pytest.approx(below + (equal + 1) / 2)


def test_models_that_are_not_chosen_do_not_count_and_one_tells_above_from_below():
    others = np.array([[1.0], [9.0], [3.0], [-7.0]])
    chosen = np.array([[True], [False], [True], [False]])
    assert interpolated_ranks(np.array([2.0]), others, chosen) == 1.5
    assert ranks_of([0.0, 1.0, 2.0], [1.0]).tolist() == [0.5, 1.0, 1.5]
