"""LiRA and RMIA beside their plain references, and where numbers vanish."""

import numpy as np
import pytest

from dprime import InputError
from dprime.membership.attacks import RMIA, Evidence, LiRA
from dprime.membership.signals import Signals
from membership.plain_attacks import halves, lira, of_probabilities, rmia, signals

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


def test_rounding_is_no_evidence():
    """Differences of a float32's last digit do not outweigh a clear one."""
    close = 4.0 + 1e-9 * np.arange(4)
    shadows = signals(np.stack([close, [3.0, 5.0, 0.0, 2.0]], axis=1))
    scores = LiRA().scores(Evidence(signals([4.0, 4.0]), shadows, TWO_EACH.repeat(2, 1)))
    assert abs(scores[0]) < 0.01 < scores[1]


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
