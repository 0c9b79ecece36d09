import math

import pytest

from dprime.show.figures import FrontierFigure, FrontierPoint, FrontierSeries

PRIORS = (0.1, 0.3, 0.5, 0.7, 0.9)


def bound(precision, accuracies, half=0.01):
    """A line with an accuracy at each π, and a smaller ε at a larger one."""
    return FrontierSeries(
        precision,
        tuple(
            FrontierPoint(prior, accuracy, accuracy - half, accuracy + half, 1 - prior, 1 + prior)
            for prior, accuracy in zip(PRIORS, accuracies, strict=False)
        ),
    )


CLEAR = bound(0.95257, (0.80, 0.9, 0.85, 0.83, 0.7))
NEAR = bound(0.88, (0.80, 0.9, 0.89, 0.83, 0.7))
APART = bound(0.731, (0.90, 0.8, 0.89, 0.83, 0.7))
OPEN = bound(0.6, (0.90, 0.895, 0.9, 0.89, 0.885))


def title(*lines):
    return FrontierFigure(lines, "digits").title


def test_a_best_pi_is_named_where_its_interval_lies_above_all_others():
    assert title(CLEAR) == (
        "On digits the accuracy is highest at π = 30 % where precision is at most 95.3 %: 90 %."
    )


def test_every_pi_that_may_be_the_best_is_named():
    assert title(NEAR).startswith("On digits the accuracy is highest at π = 30 % to 50 % where")
    assert title(APART).startswith("On digits the accuracy is highest at π = 10 % and 50 % where")


def test_where_all_intervals_overlap_no_pi_stands_out():
    assert title(OPEN) == (
        "On digits no π stands out where precision is at most 60 %; the highest mean is 90 %, at "
        "π = 10 %."
    )
    assert title(OPEN, OPEN) == (
        "On digits no π stands out where precision is at most 60 % or 60 %."
    )


def test_several_bounds_in_one_sentence():
    assert title(CLEAR, NEAR, OPEN) == (
        "On digits the accuracy is highest at π = 30 % (precision at most 95.3 %) and 30 % to 50 % "
        "(88 %); at 60 % no π stands out."
    )


def test_without_intervals_nothing_is_told_apart():
    points = tuple(FrontierPoint(p.probability, p.accuracy, None, None, 1.0) for p in CLEAR.points)
    assert "no π stands out" in title(FrontierSeries(0.9, points))
    one_known = (*points[:4], CLEAR.points[4])
    assert "no π stands out" in title(FrontierSeries(0.9, one_known))


def test_a_single_training():
    assert title(bound(0.9, (0.8,))) == (
        "On digits the accuracy is 80 % at π = 10 % where precision is at most 90 %."
    )


def test_a_bound_is_never_printed_below_itself():
    figure = FrontierFigure((CLEAR,), "digits")
    named = [row["label"] for row in figure.rows() if "precision" in (row["label"] or "")]
    assert named == ["precision at most 95.3 %"]
    assert "Precision at most 95.3 %" in figure.text


def test_the_table_holds_every_training_with_its_epsilon_and_noise():
    shown = FrontierFigure((CLEAR, NEAR), "digits")
    for place, line in enumerate(shown.series, start=1):
        found = [row for row in shown.table() if row["layer"] == f"bound {place}"]
        assert [row["precision"] for row in found] == [line.precision] * 5
        names = ("probability", "accuracy", "low", "high", "epsilon", "noise_multiplier")
        assert [tuple(row[name] for name in names) for row in found] == [
            tuple(getattr(point, name) for name in names) for point in line.points
        ]
        (best,) = [row for row in shown.table() if row["layer"] == f"best {place}"]
        assert best["probability"] == 0.3


def test_epsilon_is_told_at_both_ends_of_a_line_rounded_up():
    ends = (
        FrontierPoint(0.1, 0.9, None, None, math.inf),
        FrontierPoint(0.9, 0.8, None, None, 0.12341),
    )
    figure = FrontierFigure((FrontierSeries(0.7, ends),), "digits")
    told = [row["label"] for row in figure.rows() if (row["label"] or "").startswith("ε")]
    assert told == ["ε = ∞", "ε = 0.124"]
    assert [row["epsilon"] for row in figure.table()][:2] == [None, 0.12341]


def test_words_of_lines_that_meet_keep_apart():
    figure = FrontierFigure((NEAR, NEAR, NEAR), "digits")
    rows = [row for row in figure.rows() if (row["label"] or "").startswith("ε")]
    left = sorted(row["accuracy"] for row in rows if row["layer"].endswith("left"))
    low, high = figure.spec()["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert min(left[1] - left[0], left[2] - left[1]) * 230 / (high - low) >= 12  # pixels


def test_an_unknown_interval_is_not_drawn():
    unknown = FrontierPoint(0.1, 0.9, None, None, 1.0)
    known = FrontierPoint(0.9, 0.8, 0.79, 0.81, 1.0)
    for points, drawn in (((unknown,), 0), ((unknown, known), 1), ((known,), 1)):
        svg = FrontierFigure((FrontierSeries(0.7, points),), "digits").svg()
        marks = svg.split("mark-rule role-mark")[1:]
        assert sum(part.split("</g>")[0].count("<line") for part in marks) == drawn


def test_the_axis_speaks_of_no_accuracy_above_100_percent():
    figure = FrontierFigure(
        (FrontierSeries(0.7, (FrontierPoint(0.5, 1.0, 0.99, 1.01, 1.0),)),), "x"
    )
    assert max(figure.spec()["layer"][0]["encoding"]["y"]["axis"]["values"]) == 1.0
    assert figure.table()[0]["high"] == 1.0


def test_refused():
    with pytest.raises(ValueError, match="series must be few enough to tell apart"):
        FrontierFigure((), "digits")
    with pytest.raises(ValueError, match="points must be one point or more"):
        FrontierSeries(0.9, ())
    with pytest.raises(ValueError, match="precision must be strictly between"):
        FrontierSeries(1.0, CLEAR.points)
    with pytest.raises(ValueError, match="low, high must be both given or both None"):
        FrontierPoint(0.5, 0.9, 0.8, None, 1.0)
    with pytest.raises(ValueError, match="epsilon must be a finite number"):
        FrontierPoint(0.5, 0.9, 0.8, 0.95, math.nan)
    with pytest.raises(ValueError, match="epsilon must be 0 or more"):
        FrontierPoint(0.5, 0.9, 0.8, 0.95, -1.0)
