import math

import pytest

from dprime.show.charts import (
    FrontierPoint,
    FrontierSeries,
    ImprovementPoint,
    SecurityLine,
    frontier,
    improvement,
    security,
)
from dprime.show.theme import SOLID
from show.examples import drawn
from told import refuses

PRIORS = (0.1, 0.3, 0.5, 0.7, 0.9)


def point(prior, gain, shuffled=0.04, half=0.01):
    own, luck = (gain, gain - half, gain + half), (shuffled, shuffled - half, shuffled + half)
    return ImprovementPoint(prior, *own, *luck)


def gained(*points, **options):
    return improvement(points, "LiRA", "digits", **options)


CLEARLY = (point(0.5, 0.08), point(0.3, 0.07), point(0.7, 0.05))
LUCKY = point(0.1, 0.2, shuffled=0.15, half=0.05)
GAINED = {
    "is at no π told apart from shuffled scores; at π = 50 % it gains 5.1 points over the "
    "baseline, they 4": (point(0.3, 0.05), point(0.5, 0.0512), point(0.7, 0.03)),
    "gains more than shuffled scores at π = 30 % and 50 %; at π = 50 % it gains 8 points over the "
    "baseline, they 4": CLEARLY,
    "gains more than shuffled scores at every π; at π = 50 % it gains 8 points over the baseline, "
    "they 4": CLEARLY[:2],
    "gains more than shuffled scores at π = 50 %; at π = 50 % it gains 8 points over the baseline, "
    "they 4": (LUCKY, CLEARLY[0]),  # the best of those that are told apart
}


@pytest.mark.parametrize("title", GAINED)
def test_what_an_attack_gains_beside_shuffled_scores(title):
    assert gained(*GAINED[title]).title == f"LiRA on digits {title}."


def test_the_text_says_how_the_threshold_was_chosen_and_rounds_outwards():
    assert "the best of 40 thresholds" in gained(point(0.5, 0.05), thresholds=40).text
    assert "best of" not in gained(point(0.5, 0.05)).text
    assert (
        "LiRA: 50 %: about -0.4 % (-1.405 % to 0.6041 %)."
        in gained(point(0.5, -0.004, half=0.010041)).text
    )


def test_the_table_holds_both_lines_in_the_order_of_pi():
    points = point(0.7, 0.03), point(0.3, 0.05)
    lines = drawn(gained(*points))
    for name, parts in (
        ("LiRA", ("improvement", "low", "high")),
        ("shuffled scores", ("shuffled", "shuffled_low", "shuffled_high")),
    ):
        line = lines[name]
        assert list(line.x) == [0.3, 0.7]
        found = list(zip(line.y, line.low, line.high, strict=True))
        assert found == [tuple(getattr(p, part) for part in parts) for p in points[::-1]]
    assert set(lines["baseline"].y) == {0.0}


def bound(precision, accuracies, half=0.01):
    """A line with an accuracy at each π, and a smaller ε at a larger one."""
    points = (
        FrontierPoint(prior, found, found - half, found + half, 1 - prior)
        for prior, found in zip(PRIORS, accuracies, strict=False)
    )
    return FrontierSeries(precision, tuple(points))


CLEAR = bound(0.95257, (0.80, 0.9, 0.85, 0.83, 0.7))
NEAR = bound(0.88, (0.80, 0.9, 0.89, 0.83, 0.7))
APART = bound(0.731, (0.90, 0.8, 0.89, 0.83, 0.7))
OPEN = bound(0.6, (0.90, 0.895, 0.9, 0.89, 0.885))
ON = "On digits the accuracy is highest at π = "


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        ((CLEAR,), f"{ON}30 % where precision is at most 95.26 %: 90 %."),
        ((NEAR,), f"{ON}30 % to 50 % where precision is at most 88 %: 90 %."),
        ((APART,), f"{ON}10 % and 50 % where precision is at most 73.1 %: 90 %."),
        ((OPEN,), "On digits no π stands out where precision is at most 60 %; the highest mean is "
                  "90 %, at π = 10 %."),
        ((OPEN, OPEN), "On digits no π stands out where precision is at most 60 % or 60 %."),
        ((CLEAR, NEAR, OPEN), f"{ON}30 % (precision at most 95.26 %) and 30 % to 50 % (88 %); "
                              "at 60 % no π stands out."),
        ((bound(0.9, (0.8,)),), "On digits the accuracy is 80 % at π = 10 % where precision is at "
                                "most 90 %."),
    ],
)  # fmt: skip
def test_every_pi_that_may_be_the_best_is_named(lines, title):
    assert frontier(lines, "digits").title == title


def test_without_intervals_nothing_is_told_apart():
    points = tuple(FrontierPoint(p.probability, p.accuracy, None, None, 1.0) for p in CLEAR.points)
    for given in (points, (*points[:4], CLEAR.points[4])):
        assert "no π stands out" in frontier((FrontierSeries(0.9, given),), "digits").title


def test_the_table_holds_every_training_and_a_ring_the_best():
    chart = frontier((CLEAR, NEAR), "digits")
    for line in (CLEAR, NEAR):
        found = drawn(chart)[f"precision at most {line.limit}"]
        assert list(found.x) == [*PRIORS]
        columns = zip(found.y, found.low, found.high, strict=True)
        assert list(columns) == [(p.accuracy, p.low, p.high) for p in line.points]
    rings = [each for each in chart.series if each.name.startswith("highest")]
    assert [(ring.x, ring.y) for ring in rings] == [((0.3,), (0.9,))] * 2
    assert [ring.key for ring in rings] == [True, False]


def test_epsilon_is_told_at_both_ends_of_a_line_rounded_up():
    ends = (0.1, 0.9, None, None, math.inf), (0.5, 0.8, None, None, 1.0), (
        0.9, 0.8, None, None, 0.12341,
    )  # fmt: skip
    points = tuple(FrontierPoint(*each) for each in ends)
    chart = frontier((FrontierSeries(0.7, points),), "digits")
    assert drawn(chart)["precision at most 70 %"].words == ["ε = ∞", "", "ε = 0.1235"]
    assert "precision is at most 70 %, ε is ∞, 1, 0.1235." in chart.text


def test_words_of_lines_that_meet_keep_apart():
    chart = frontier((NEAR, NEAR, NEAR), "digits")
    left = [each.side[0] for each in chart.series if each.words]
    assert sorted(left) == ["above-left", "below-left", "left"]
    assert len({each.aside for each in chart.series if each.words}) == 3


def test_an_unknown_interval_is_not_drawn_and_a_known_one_ends_at_100_percent():
    unknown = FrontierPoint(0.1, 0.9, None, None, 1.0)
    known = FrontierPoint(0.9, 0.99, 0.79, 1.01, 1.0)
    for points, bars in (((unknown,), 0), ((unknown, known), 1), ((known,), 1)):
        chart = frontier((FrontierSeries(0.7, points),), "digits")
        marks = chart.svg().split("mark-rule role-mark")[1:]
        assert sum(part.split("</g>")[0].count("<line") for part in marks) == bars
    assert chart.series[0].high == (1.0,)


MEMBERSHIP = SecurityLine("membership", "certified", ((1.0, 0.9567), (2.0, 0.91239)))
AGE = SecurityLine("age", "estimate", ((1.0, 0.99), (2.0, 0.98)))
SEX = SecurityLine("sex", "estimate", ((1.0, 0.995), (2.0, 0.985)))


def test_what_is_certified_is_rounded_down_and_an_estimate_is_called_one():
    chart = security((MEMBERSHIP, AGE), "Adult")
    assert chart.title == (
        "After 2 epochs on Adult, Bayes security is at least 0.9123 for membership and about 0.98 "
        "for age."
    )
    assert "Membership (certified): 1: at least 0.9567; 2: at least 0.9123." in chart.text
    assert "Age (estimate): 1: about 0.99; 2: about 0.98." in chart.text
    assert [each.step for each in chart.series] == ["before", None]


def test_certified_lines_alone_are_solid_and_no_two_lines_look_alike():
    pencils = [each.pencil for each in security((AGE, MEMBERSHIP, SEX, MEMBERSHIP), "A").series]
    assert [pencil.dash == SOLID for pencil in pencils] == [False, True, False, True]
    assert len({(pencil.ink, pencil.dash) for pencil in pencils}) == 4


def test_accuracy_is_a_share():
    line = SecurityLine("membership", "certified", ((0.8, 0.95), (0.83, 0.9)))
    chart = security((line,), "Adult", "accuracy")
    assert "80 %: at least 0.95; 83 %: at least 0.9" in chart.text
    assert chart.title.startswith("At 83 % accuracy on Adult, Bayes security is at least 0.9 ")
    one = SecurityLine("membership", "certified", ((0.8, 0.95),))
    assert security((one,), "Adult", "accuracy").svg().startswith("<svg")


OFF = ImprovementPoint(0.5, 0.1, 0.2, 0.3, 0, 0, 0)
test_refused = refuses({
    "points be one point or more": gained,
    "points be one point": lambda: FrontierSeries(0.9, ()),
    "points be one": lambda: SecurityLine("age", "estimate", ()),
    "series LiRA be ascending": lambda: gained(OFF),
    "series shuffled scores be ascending": lambda: gained(point(0.5, 0.1, math.nan)),
    "thresholds be at least 1": lambda: gained(point(0.5, 0.1), thresholds=0),
    "series be few enough to tell apart": lambda: frontier((), "digits"),
    "precision be strictly between": lambda: FrontierSeries(1.0, CLEAR.points),
    "series precision at most 90 % be": lambda: frontier((bound(0.9, (math.inf,)),), "digits"),
    "lines be few enough": lambda: security((), "Adult"),
    "lines be 3 at most": lambda: security((MEMBERSHIP,) * 4, "Adult"),
    "across be one of epochs, accuracy": lambda: security((AGE,), "Adult", "steps"),
})  # fmt: skip
