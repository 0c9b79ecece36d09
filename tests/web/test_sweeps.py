from dataclasses import replace

import pytest

from dprime.mechanisms import DPSGD
from dprime.web.options import OVER, SLIDERS
from dprime.web.sweeps import SHARED, Point, Sweeps, advantage, moved, neighbours
from dprime.web.workers import Workers

POINT = Point(DPSGD(1.1, 0.004, 14_000), "add-remove", 1)


def test_shared_positions_are_positions_of_the_sliders():
    for name, positions in SHARED.items():
        assert set(positions) <= set(SLIDERS[name].positions)


@pytest.mark.parametrize("over", OVER)
def test_a_range_holds_the_settings_own_value(over):
    odd = moved(POINT, over, 0.37 if over != "steps" else 37)
    ranges = Sweeps(Workers(0)).ranges(odd, over)
    assert ranges.values == sorted({*SHARED[over], getattr(odd.mechanism, over)})
    assert odd in ranges.risk
    assert odd in ranges.course


@pytest.mark.parametrize("steps", [1, 14_000, 1_000_000, 10_000_000])
def test_a_course_goes_around_the_own_length(steps):
    point = Point(DPSGD(1.1, 0.004, steps), "zero-out", 1)
    ranges = Sweeps(Workers(0)).ranges(point, "noise_multiplier")
    assert steps in ranges.lengths
    assert all(steps / 20 <= count <= steps * 20 for count in ranges.lengths)
    assert {each.adjacency for each in ranges.course} == {"zero-out", "replace"}
    assert len(ranges.course) == 2 * len(ranges.lengths)


def test_in_a_crowd_less_is_looked_at_but_nothing_known_is_left_out():
    sweeps = Sweeps(Workers(0))
    full, sparse = sweeps.ranges(POINT, "steps"), sweeps.ranges(POINT, "steps", crowded=True)
    assert set(sparse.values) < set(full.values)
    assert len(sparse.risk) + len(sparse.course) <= 0.75 * (len(full.risk) + len(full.course))
    assert POINT.mechanism.steps in sparse.values
    for point in [*full.risk, *full.course]:
        sweeps.advantage(point)
    assert sweeps.ranges(POINT, "steps", crowded=True) == full


def test_where_nothing_is_certified_the_trivial_limit_stands():
    """For groups no bound is proved when records are replaced; no attacker beats 1."""
    unproved = Point(DPSGD(1.1, 0.004, 100), "replace", 2)
    with pytest.raises(ValueError, match="no bound is proved"):
        unproved.curve()
    assert advantage(unproved) == 1.0


def test_advantages_are_those_of_the_curves():
    sweeps = Sweeps(Workers(0))
    points = sweeps.ranges(POINT, "noise_multiplier").risk
    for point in points:
        assert sweeps.advantage(point) == point.curve().advantage()
    assert len(sweeps) == len(points)


def test_neighbours_are_one_and_two_moves_away():
    found = list(neighbours(POINT))
    assert len(found) == len(set(found)) == 12
    places = {name: SLIDERS[name].positions.index(getattr(POINT.mechanism, name)) for name in OVER}
    for point in found:
        moved = [
            abs(SLIDERS[name].positions.index(getattr(point.mechanism, name)) - places[name])
            for name in OVER
        ]
        assert sorted(moved) in ([0, 0, 1], [0, 0, 2])


def test_a_setting_off_the_sliders_has_neighbours_along_the_others():
    odd = replace(POINT, mechanism=replace(POINT.mechanism, noise_multiplier=1.2345))
    assert {point.mechanism.noise_multiplier for point in neighbours(odd)} == {1.2345}
    edge = Point(DPSGD(0.3, 1.0, 1), "add-remove", 1)
    assert len(list(neighbours(edge))) == 6
