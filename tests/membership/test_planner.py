"""The planner: every point keeps the target, with no more noise than that takes."""

import json
import math
from dataclasses import replace

import pytest

from dprime import DPSGD, EpsilonDelta, InputError
from dprime.membership.planner import PoolPoint, plan, usual_probabilities
from dprime.plain import to_json
from dprime.text import round_up

POOL = {"pool_size": 60_000, "batch_size": 1024}
MADE = plan(0.731, **POOL, epochs=15, sampling_probabilities=[0.6, 0.1, 0.73])


def precision_at(point: PoolPoint, noise: float, min_tpr: float = 0.01) -> float:
    curve = DPSGD(noise, point.sample_rate, point.steps).curve()
    return curve.precision(prior=point.probability, min_tpr=min_tpr)


@pytest.mark.parametrize("point", MADE.points, ids=lambda point: f"{point.probability:g}")
def test_the_target_is_kept_and_a_little_less_noise_breaks_it(point):
    assert point.precision == precision_at(point, point.noise_multiplier) <= 0.731
    assert precision_at(point, 0.995 * point.noise_multiplier) > 0.731
    assert point.mechanism().prior == point.probability
    assert point.epsilon == point.mechanism().curve().epsilon(1e-5)
    assert point.expected_records == pytest.approx(60_000 * point.probability)
    assert point.sample_rate == pytest.approx(1024 / point.expected_records)
    assert point.steps == math.ceil(15 * point.expected_records / 1024 - 1e-9)


@pytest.mark.parametrize("point", MADE.points, ids=lambda point: f"{point.probability:g}")
def test_the_theorem_is_valid_and_asks_for_more_noise(point):
    prior, other = point.probability, point.by_theorem
    share, odds = 1 - 1e-5 / 0.01, (0.731 / 0.269) / (prior / (1 - prior))
    assert other.epsilon == pytest.approx(math.log(odds * share), rel=1e-9)  # T theorem 3.3
    assert EpsilonDelta(other.epsilon, 1e-5).curve().precision(prior, 0.01) <= 0.731
    kept = DPSGD(other.noise_multiplier, point.sample_rate, point.steps).curve().epsilon(1e-5)
    assert 0.995 * other.epsilon < kept <= other.epsilon
    assert other.noise_multiplier > point.noise_multiplier
    assert precision_at(point, other.noise_multiplier) < 0.731


def test_where_the_theorem_says_nothing_the_curve_still_does():
    """With t at most δ, one pair (ε, δ) allows a precision of 1."""
    (point,) = plan(0.731, **POOL, epochs=5, sampling_probabilities=[0.3], min_tpr=1e-6).points
    assert point.by_theorem is None
    assert precision_at(point, point.noise_multiplier, 1e-6) <= 0.731


def test_the_same_steps_at_the_usual_probabilities_and_a_part_that_is_the_batch():
    made = plan(0.4, pool_size=1000, batch_size=100, steps=7)
    assert [point.probability for point in made.points] == usual_probabilities(0.4, 0.1)
    assert {point.steps for point in made.points} == {made.steps} == {7}
    assert made.points[0].sample_rate == 1.0
    assert all(point.precision <= 0.4 for point in made.points)


@pytest.mark.parametrize("target", [0.011, 0.05, 0.099, 0.2, 0.5, 0.7, 0.731, 0.8811, 0.999])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.995])
def test_usual_probabilities(target, share):
    found = usual_probabilities(target, share * target)
    assert found == sorted(set(found))
    assert share * target <= found[0]
    assert 0 < found[0] <= found[-1] < target
    assert share or len(found) >= 5


def test_what_no_noise_meets_says_where():
    with pytest.raises(InputError, match=r"At probability 0.73.*: The target .* cannot be met"):
        plan(0.731, **POOL, epochs=15, sampling_probabilities=[0.731 - 1e-9])


def test_in_words_and_as_json():
    assert [point.probability for point in MADE.points] == [0.1, 0.6, 0.73]
    assert "find at least 1 % of the members at or below 0.731" in MADE.planned
    endless = replace(MADE, points=(replace(MADE.points[0], epsilon=math.inf),))
    shown = json.loads(json.dumps(to_json(endless), allow_nan=False))
    assert (shown["kind"], shown["points"][0]["epsilon"]) == ("certified", None)
    noise = round_up(MADE.points[0].noise_multiplier)
    assert endless.planned.endswith(f"noise {noise} at π = 0.1.")
