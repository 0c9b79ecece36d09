"""RMIA beside its plain reference."""

import numpy as np
import pytest

from dprime.membership.attacks import RMIA, Evidence
from dprime.membership.signals import Signals
from membership.plain_attacks import halves, rmia


def signals(probabilities):
    p = np.asarray(probabilities, dtype=float)
    return Signals(np.log(p), np.log1p(-p))


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(5)
    members = halves(rng, 8, 3, 15)
    return {
        "target": rng.random(15),
        "shadows": rng.random((8, 15)),
        "members": members,
        "population": rng.random(40),
        "shadow_population": rng.random((8, 40)),
    }


def of(case):
    return Evidence(**{k: v if k == "members" else signals(v) for k, v in case.items()})


@pytest.mark.parametrize("gamma", [1.0, 2.0])
@pytest.mark.parametrize(("online", "a"), [(True, 0.3), (False, 0.3), (False, 0.0), (False, 1.0)])
def test_agrees_with_the_definition(case, online, gamma, a):
    plain = rmia(**case, online=online, gamma=gamma, a=a)
    found = RMIA(online=online, gamma=gamma, offline_a=a).scores(of(case))
    assert len(np.unique(plain)) > 5
    assert found == pytest.approx(plain, abs=1e-9)


def test_a_ratio_of_exactly_gamma_counts():
    one = signals([0.5])
    shadows = signals([[0.5], [0.5]])
    seen = Evidence(one, shadows, np.array([[True], [False]]), one, signals([[0.5], [0.5]]))
    assert RMIA(gamma=1.0).scores(seen) == 1.0
    assert RMIA(gamma=1.001).scores(seen) == 0.0


def test_probabilities_too_small_for_a_float_keep_their_ratio():
    """P(x) and p(z) are e^-2000 on the shadow models; the target has e^1000 times that on x."""
    tiny = Signals(np.full(1, -1000.0), np.full(1, -1e-300))
    tinier = Signals(np.full((2, 1), -2000.0), np.full((2, 1), -1e-300))
    same = Signals(np.full(1, -2000.0), np.full(1, -1e-300))
    seen = Evidence(tiny, tinier, np.array([[True], [False]]), same, tinier)
    assert RMIA().scores(seen) == 1.0
    assert RMIA(online=False, offline_a=1.0).scores(seen) == 1.0
    assert RMIA(online=False, offline_a=0.5).scores(seen) == 0.0
