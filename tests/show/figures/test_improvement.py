import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime.show.figures import ImprovementFigure, ImprovementPoint
from dprime.show.figures.improvement import _range


def point(prior, improvement, shuffled=0.04, half=0.01):
    return ImprovementPoint(
        prior, improvement, improvement - half, improvement + half,
        shuffled, shuffled - half, shuffled + half,
    )  # fmt: skip


def figure(*points, **options):
    return ImprovementFigure(points, "LiRA", "digits", **options)


def test_intervals_that_overlap_are_not_told_apart():
    assert figure(point(0.3, 0.05), point(0.5, 0.0512), point(0.7, 0.03)).title == (
        "LiRA on digits is at no π told apart from shuffled scores; at π = 50 % it gains 5.1 "
        "points over the baseline, they 4."
    )


def test_the_title_names_each_pi_at_which_the_attack_gains_more():
    points = (point(0.5, 0.08), point(0.3, 0.07), point(0.7, 0.05))
    assert figure(*points).title == (
        "LiRA on digits gains more than shuffled scores at π = 30 % and 50 %; at π = 50 % it gains "
        "8 points over the baseline, they 4."
    )
    assert "at every π" in figure(*points[:2]).title


def test_the_best_gain_of_the_title_is_one_that_is_told_apart():
    lucky = point(0.1, 0.2, shuffled=0.15, half=0.05)
    assert "at π = 50 % it gains 8 points" in figure(lucky, point(0.5, 0.08)).title


def test_the_text_says_how_the_threshold_was_chosen():
    assert "the best of 40 thresholds" in figure(point(0.5, 0.05), thresholds=40).text
    assert "best of" not in figure(point(0.5, 0.05)).text
    told = "π = 50 %: -0.4 (-1.4 to 0.6), shuffled 4 (3 to 5)"
    assert told in figure(point(0.5, -0.004)).text


def test_the_table_holds_both_lines_in_the_order_of_pi():
    shown = figure(point(0.7, 0.03), point(0.3, 0.05))
    for layer, field in (("attack", "improvement"), ("shuffled", "shuffled")):
        found = [
            (r["prior"], r["improvement"], r["low"], r["high"])
            for r in shown.table()
            if r["layer"] == layer
        ]
        low, high = ("low", "high") if layer == "attack" else ("shuffled_low", "shuffled_high")
        expected = [
            tuple(getattr(p, name) for name in ("prior", field, low, high))
            for p in reversed(shown.points)
        ]
        assert found == expected


def test_the_baseline_is_always_in_view():
    for points in ([point(0.5, 0.3)], [point(0.5, -0.3)]):
        low, high = figure(*points).spec()["layer"][0]["encoding"]["y"]["scale"]["domain"]
        assert low < 0 < high


@given(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))
def test_a_printed_interval_is_not_narrower_than_the_interval(one, other):
    low, high = sorted((one, other))
    least, most = (float(part) for part in _range(low, high).split(" to "))
    assert least <= 100 * low + 1e-12
    assert most >= 100 * high - 1e-12


def test_refused():
    with pytest.raises(ValueError, match="points must be one point or more"):
        figure()
    with pytest.raises(ValueError, match="low, improvement, high must be ascending"):
        ImprovementPoint(0.5, 0.1, 0.2, 0.3, 0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="low, shuffled, high must be ascending"):
        ImprovementPoint(0.5, 0.1, 0.0, 0.3, 0.1, 0.0, 0.05)
    with pytest.raises(ValueError, match="thresholds must be at least 1"):
        figure(point(0.5, 0.1), thresholds=0)
