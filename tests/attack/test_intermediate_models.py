"""The third adversary: a made record, and what every step moves along its gradient."""

import pytest
import scipy.stats

from dprime.attack import IntermediateModels
from games import engine_setting, played, quick


@pytest.mark.parametrize(("adjacency", "factor"), [("add-remove", 1), ("replace", 2)])
def test_near_the_best_that_any_adversary_can_do_and_not_above(adjacency, factor):
    """The area under the curve of μ = √k/z, or 2√k/z, is Φ(μ/√2)."""
    setting = engine_setting(adjacency=adjacency, noise_multiplier=2.0, steps=8)
    found = played(setting, quick("intermediate-models").craft(setting), trials=200)
    inside, outside = found["score"][found["in_world"]], found["score"][~found["in_world"]]
    area = scipy.stats.mannwhitneyu(inside, outside).statistic / 200**2
    best = scipy.stats.norm.cdf(factor * 2**0.5 / 2**0.5)  # √8/2 = √2
    error = (best * (1 - best) / 200) ** 0.5  # at most that of one world's share
    assert best - 0.1 < area < best + 3 * error


def test_the_candidate_is_judged_by_the_same_score():
    attack = IntermediateModels(shadows=4, outliers=1).craft(engine_setting())
    assert attack.probes is None
    assert attack.canary is None
    assert attack.about == "a record made with shadow models, judged after every step"
