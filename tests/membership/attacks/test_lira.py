"""LiRA beside its plain reference, and where a variance vanishes."""

import numpy as np
import pytest

from dprime.membership.attacks import Evidence, LiRA
from membership.plain_attacks import halves, lira, signals


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(3)
    members = halves(rng, 10, 4, 12)
    logits = rng.normal(size=12) + 2 * members + rng.normal(size=(10, 12))
    return signals(rng.normal(1.0, 2.0, size=12)), signals(logits), members


@pytest.mark.parametrize("online", [True, False])
@pytest.mark.parametrize("variance", ["per-record", "fixed"])
def test_agrees_with_the_definition(case, online, variance):
    target, shadows, members = case
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
    scores = LiRA(online=False, variance="fixed").scores(
        Evidence(signals(means + 1.0), shadows, members)
    )
    assert np.ptp(scores) < 1e-9
    assert 1 / scores.mean() == pytest.approx(2.0, rel=0.02)


def test_models_that_agree_exactly_give_an_order_and_no_infinity():
    shadows = signals([[3.0] * 3, [3.0] * 3, [1.0] * 3, [1.0] * 3])
    members = np.array([[True] * 3, [True] * 3, [False] * 3, [False] * 3])
    seen = Evidence(signals([3.0, 2.5, 1.0]), shadows, members)
    for attack in (LiRA(), LiRA(online=False), LiRA(variance="fixed")):
        scores = attack.scores(seen)
        assert np.isfinite(scores).all()
        assert scores[0] > scores[1] > scores[2]


def test_rounding_is_no_evidence():
    """Differences of a float32's last digit do not outweigh a clear one."""
    close = 4.0 + 1e-9 * np.arange(4)
    shadows = signals(np.stack([close, [3.0, 5.0, 0.0, 2.0]], axis=1))
    members = np.array([[True, True], [True, True], [False, False], [False, False]])
    scores = LiRA().scores(Evidence(signals([4.0, 4.0]), shadows, members))
    assert abs(scores[0]) < 0.01 < scores[1]


def test_a_fixed_variance_needs_two_models_somewhere():
    shadows, members = signals([[1.0, 2.0], [2.0, 1.0]]), np.array([[True, True], [False, False]])
    seen = Evidence(signals([1.0, 2.0]), shadows, members)
    with pytest.raises(ValueError, match="two models on one side for some record"):
        LiRA(variance="fixed").scores(seen)
    with pytest.raises(ValueError, match="use the fixed variance, use the offline variant"):
        LiRA().scores(seen)


def test_offline_does_not_saturate():
    """Scores whose probability Φ is 1 as a float still have an order."""
    shadows, members = signals([[-1.0] * 2, [1.0] * 2]), np.zeros((2, 2), bool)
    scores = LiRA(online=False).scores(Evidence(signals([40.0, 80.0]), shadows, members))
    assert scores[1] > scores[0] > 20
