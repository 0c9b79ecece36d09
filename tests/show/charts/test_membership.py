import math

import pytest

from dprime import TradeOff
from dprime.show.charts import (
    Points,
    PrecisionLine,
    PrecisionPoint,
    RocCurve,
    membership_roc,
    precision_over_prior,
)
from show.examples import drawn
from told import refuses

RATES = (0.001, 0.005, 0.01, 0.1, 1.0)
CLAIM = Points.of(TradeOff.gaussian(0.5), also=RATES)
PRIORS = (0.1, 0.3, 0.5, 0.7, 0.9)


def curve(label="LiRA", factor=2.0, width=0.1, rates=RATES):
    """A curve that finds `factor` as much as guessing, with an interval of that relative width."""
    tpr = [min(factor * rate, 1.0) for rate in rates]
    low, high = ([min(x * (1 + side * width), 1.0) for x in tpr] for side in (-1, 1))
    return RocCurve(label, tuple(rates), tuple(tpr), tuple(low), tuple(high))


LUCKY = (0.0, 0.0, 0.05, 0.1, 1.0)
"""Lower ends, above the claim at 1 % alone, which luck may give."""

FOUND = [
    ((curve("Yeom", 1.5), curve(), curve("RMIA", 1.9)), CLAIM, {},
     "Digits: at 1 % false alarms LiRA finds 2 % of the members (95 % interval 1.8 % to 2.2 %); "
     "the claim allows 3.39 %."),
    ((curve("LiRA", 1.5, 0.4), curve("Yeom", 1.0)), CLAIM, {},
     "Digits: at 1 % false alarms no attack is told apart from guessing; the claim allows 3.39 % "
     "of the members to be found."),
    ((curve("LiRA", 1.5, 0.4),), None, {},
     "Digits: at 1 % false alarms LiRA is not told apart from guessing."),
    ((curve("lucky", 2.0, 0.6), curve("sure", 1.8)), None, {},
     "Digits: at 1 % false alarms sure finds 1.8 % of the members (95 % interval 1.62 % to "
     "1.98 %)."),
    ((curve(factor=6.0),), CLAIM, {},  # where it is most, 54 / 21.73
     "Digits: at 10 % false alarms LiRA finds 60 % of the members (95 % interval 54 % to 66 %); "
     "the claim allows only 21.73 %."),
    ((RocCurve("LiRA", RATES, (*LUCKY[2:], 1.0, 1.0), LUCKY, (1.0,) * 5),), CLAIM, {},
     "Digits: at 1 % false alarms LiRA finds 100 % of the members (95 % interval 5 % to 100 %); "
     "the claim allows 3.39 %."),
    ((curve(),), None, {"least_fpr": 0.05},  # a rate that is drawn
     "Digits: at 10 % false alarms LiRA finds 20 % of the members (95 % interval 18 % to 22 %)."),
]  # fmt: skip


@pytest.mark.parametrize(("curves", "claim", "options", "title"), FOUND)
def test_what_the_best_attack_finds_and_what_is_allowed(curves, claim, options, title):
    assert membership_roc(curves, claim, "Digits", **options).title == title
    assert membership_roc(curves, claim, "", **options).title == title[8].upper() + title[9:]


@pytest.mark.parametrize(("place", "count"), [(0, None), (4, 4), (5, 1)])
def test_intervals_above_the_claim_are_counted(place, count):
    curves, claim, *_ = FOUND[place]
    text = membership_roc(curves, claim, "Digits").text
    told = f"At {count} of 5 points the interval lies wholly above the claim; luck alone"
    assert told in text if count else "wholly above" not in text


def test_nothing_is_drawn_where_fewer_than_one_false_alarm_could_be_counted():
    chart = membership_roc((curve(),), CLAIM, "Digits", least_fpr=1 / 150)
    assert all(min(row["fpr"], row["tpr"]) >= 1 / 150 for row in chart.rows())
    assert drawn(chart)["LiRA"].x == (0.01, 0.1, 1.0)
    assert chart.x.domain == (1 / 150, 1.0)
    assert " 0.1 %:" not in chart.text


def test_the_claim_begins_at_the_axis_and_is_never_below_the_curve():
    lines = drawn(membership_roc((curve(),), CLAIM, "D", least_fpr=0.0023))
    allowed = lines["allowed by the claim"]
    assert allowed.x[0] == 0.0023
    pairs = zip(allowed.x, allowed.y, strict=True)
    assert all(tpr >= TradeOff.gaussian(0.5).tpr(fpr) * (1 - 1e-9) for fpr, tpr in pairs)
    assert "allowed by the claim" not in drawn(membership_roc((curve(),), None, "D"))


def test_a_rate_too_small_for_the_axis_is_left_out_and_an_end_below_it_stays_in_the_table():
    found = RocCurve("LiRA", RATES, (0.0, 0.01, 0.02, 0.2, 1.0), (0.0,) * 5, (1.0,) * 5)
    chart = membership_roc((found,), None, "Digits")
    assert drawn(chart)["LiRA"].x == (0.005, 0.01, 0.1, 1.0)
    assert {row["low"] for row in chart.table() if row["series"] == "LiRA"} == {0.0}
    assert "NaN" not in chart.svg()
    assert "Infinity" not in chart.svg()


def test_between_two_points_an_attacker_may_toss_a_coin():
    found = curve(rates=(0.1, 0.2))
    assert found.at(0.15) == pytest.approx((0.3, 0.27, 0.33))
    assert found.at(0.6) == pytest.approx((0.7, 0.68, 0.72))  # half way to (1, 1)


def allowed(epsilon, prior):
    return TradeOff.from_lines([(epsilon, 0.0)]).precision(prior)


def point(prior, gain=0.0, half=0.02, certified=None, shuffled=None):
    limit = None if certified is None else allowed(certified, prior)
    luck = None if shuffled is None else prior + shuffled
    return PrecisionPoint(
        prior, prior + gain, prior + gain - half, prior + gain + half, limit, luck
    )


def line(label="ε = 3", *, priors=PRIORS, **options):
    """Precision `gain` above the baseline at five π."""
    return PrecisionLine(label, tuple(point(prior, **options) for prior in priors))


def chart(*lines, **options):
    return precision_over_prior(lines, attack="LiRA", data="digits", **options)


COUNTED = {
    "the baseline at 5 of 15 settings": [line(gain=0.03), line(gain=0.01), line(gain=-0.05)],
    "the baseline at none of 5 settings": [line(gain=0.02, half=0.02)],
    "the baseline at 1 of 11 settings, as luck alone may give": [
        line(), line(priors=(0.5,), gain=0.05, half=0.04), line(),
    ],
    "the baseline at 10 of 10 settings, above that of shuffled scores at 5": [
        line(gain=0.05, shuffled=0.04), line(gain=0.05, shuffled=0.01),
    ],
    "the baseline at 10 of 10 settings, above that of shuffled scores at none of 5": [
        line(gain=0.05, shuffled=0.04), line(gain=0.05),
    ],
    "the certified one at 4 of 5 settings": [line(gain=0.09, certified=0.3), line(gain=0.05)],
}  # fmt: skip


@pytest.mark.parametrize("title", COUNTED)
def test_settings_are_counted_whose_lower_end_is_above(title):
    made = chart(*COUNTED[title])
    assert made.title == f"LiRA's precision on digits is above {title}."
    bounded = "At 4 of 5 it lies wholly above the certified precision, which bounds" in made.text
    assert bounded == ("certified" in title)


def test_the_table_holds_the_numbers_of_every_panel():
    lines = line("ε = 1", gain=0.02, certified=1.0, shuffled=0.01), line("no DP", gain=0.08)
    table = chart(*lines).table()
    names = ("panel", "prior", "precision", "low", "high")
    found = [tuple(row[name] for name in names) for row in table if "LiRA" in row["series"]]
    assert found == [
        (one.label, p.prior, p.precision, p.low, min(p.high, 1.0))
        for one in lines
        for p in one.points
    ]
    limits = [(row["panel"], row["precision"]) for row in table if "certified" in row["series"]]
    assert limits == [("ε = 1", allowed(1.0, prior)) for prior in PRIORS]
    assert {row["panel"] for row in table if "shuffled" in row["series"]} == {"ε = 1"}
    assert [*drawn(chart(line(), baseline=False))] == ["LiRA (95 % interval)"]


def test_what_is_allowed_is_read_aloud_rounded_up_and_intervals_end_at_100_percent():
    text = chart(line(certified=1.0)).text
    assert "ε = 3, certified limit: 10 %: at most 23.2 %; 30 %: at most 53.82 %" in text
    assert "50 %: at most 73.11 %" in text  # 0.731059
    assert "(95 % to 100 %)" in chart(line(priors=(0.9,), gain=0.09, half=0.04)).text


test_refused = refuses({
    "curves be few enough to tell apart": lambda: membership_roc((), None, "Digits"),
    "points be two lists of the same": lambda: RocCurve("a", (0.1,), (), (), ()),
    "low and high be as many as the rates": lambda: RocCurve("a", (0.1,), (0.2,), (), ()),
    "the largest fpr be 0.5 (least_fpr) or more": lambda: membership_roc(
        (curve(rates=(0.1, 0.2)),), None, "Digits", least_fpr=0.5
    ),
    "least_fpr be strictly": lambda: membership_roc((curve(),), None, "Digits", least_fpr=0.0),
    "series LiRA be ascending": lambda: membership_roc((curve(width=-0.1),), None, "Digits"),
    "lines be one line or more": chart,
    "series LiRA (95 % interval) be": lambda: chart(line(half=-0.1)),
    "series LiRA (95 % interval) be a": lambda: chart(line(gain=math.nan)),
})  # fmt: skip
