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

RATES = (0.001, 0.005, 0.01, 0.1, 1.0)
CLAIM = Points.of(TradeOff.gaussian(0.5), also=RATES)
PRIORS = (0.1, 0.3, 0.5, 0.7, 0.9)


def drawn(chart):
    return {each.name: each for each in chart.series}


def curve(label="LiRA", factor=2.0, width=0.1, rates=RATES):
    """A curve that finds `factor` as much as guessing, with an interval of that relative width."""
    tpr = [min(factor * rate, 1.0) for rate in rates]
    low, high = ([min(x * (1 + side * width), 1.0) for x in tpr] for side in (-1, 1))
    return RocCurve(label, tuple(rates), tuple(tpr), tuple(low), tuple(high))


def test_the_title_says_what_the_best_attack_finds_and_what_is_allowed():
    curves = (curve("Yeom", 1.5), curve("LiRA", 2.0), curve("RMIA", 1.9))
    assert membership_roc(curves, CLAIM, "Digits").title == (
        "Digits: at 1 % false alarms LiRA finds 2 % of the members (95 % interval 1.8 % to 2.2 %); "
        "the claim allows 3.39 %."
    )
    assert membership_roc(curves, None, "").title == (
        "At 1 % false alarms LiRA finds 2 % of the members (95 % interval 1.8 % to 2.2 %)."
    )


def test_an_interval_that_reaches_guessing_is_no_finding():
    wide = (curve("LiRA", 1.5, width=0.4), curve("Yeom", 1.0))
    assert membership_roc(wide, CLAIM, "Digits").title == (
        "Digits: at 1 % false alarms no attack is told apart from guessing; the claim allows "
        "3.39 % of the members to be found."
    )
    alone = membership_roc(wide[:1], None, "Digits").title
    assert alone == "Digits: at 1 % false alarms LiRA is not told apart from guessing."


def test_a_sure_attack_is_named_before_one_that_only_seems_better():
    curves = (curve("lucky", 2.0, width=0.6), curve("sure", 1.8))
    assert "sure finds 1.8 %" in membership_roc(curves, None, "Digits").title


def test_an_interval_above_the_claim_is_said_with_its_rate():
    chart = membership_roc((curve(factor=6.0),), CLAIM, "Digits")
    assert chart.title == (  # where it is most, 54 / 21.73
        "Digits: at 10 % false alarms LiRA finds 60 % of the members (95 % interval 54 % to 66 %); "
        "the claim allows only 21.73 %."
    )
    assert "At 4 of 5 points the interval lies wholly above the claim; luck alone" in chart.text


def test_as_many_intervals_above_the_claim_as_luck_gives_are_no_finding():
    low = (0.0, 0.0, 0.05, 0.1, 1.0)  # above the claim at 1 % alone
    high = (0.1, 0.1, 0.1, 0.2, 1.0)
    chart = membership_roc((RocCurve("LiRA", RATES, high, low, high),), CLAIM, "Digits")
    assert "only" not in chart.title
    assert "At 1 of 5 points the interval lies wholly above the claim; luck alone" in chart.text


def test_nothing_is_drawn_where_fewer_than_one_false_alarm_could_be_counted():
    chart = membership_roc((curve(),), CLAIM, "Digits", least_fpr=1 / 150)
    for row in chart.rows():
        assert row["fpr"] >= 1 / 150
        assert row["tpr"] >= 1 / 150
    assert drawn(chart)["LiRA"].x == (0.01, 0.1, 1.0)
    assert chart.x.domain == (1 / 150, 1.0)
    assert " 0.1 %:" not in chart.text


def test_the_title_speaks_of_a_rate_that_is_drawn():
    rare = membership_roc((curve(),), CLAIM, "Digits", least_fpr=0.05)
    assert rare.title.startswith("Digits: at 10 % false alarms")


def test_the_claim_begins_at_the_axis_and_is_never_below_the_curve():
    gaussian = TradeOff.gaussian(0.5)
    allowed = drawn(membership_roc((curve(),), CLAIM, "D", least_fpr=0.0023))[
        "allowed by the claim"
    ]
    assert allowed.x[0] == 0.0023
    pairs = zip(allowed.x, allowed.y, strict=True)
    assert all(tpr >= gaussian.tpr(fpr) * (1 - 1e-9) for fpr, tpr in pairs)
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


def test_curves_that_are_refused():
    with pytest.raises(ValueError, match="curves must be few enough to tell apart"):
        membership_roc((), None, "Digits")
    with pytest.raises(ValueError, match="points must be two lists of the same length"):
        RocCurve("a", (0.1,), (), (), ())
    with pytest.raises(ValueError, match="low and high must be as many as the rates"):
        RocCurve("a", (0.1,), (0.2,), (), ())
    with pytest.raises(ValueError, match="low, tpr, high must be ascending"):
        RocCurve("a", (0.1,), (0.2,), (0.3,), (0.4,))
    with pytest.raises(ValueError, match=r"the largest fpr must be 0\.5 \(least_fpr\) or more"):
        membership_roc((curve(rates=(0.1, 0.2)),), None, "Digits", least_fpr=0.5)
    with pytest.raises(ValueError, match="least_fpr must be strictly between 0 and 1"):
        membership_roc((curve(),), None, "Digits", least_fpr=0.0)


def allowed(epsilon, prior):
    return TradeOff.from_lines([(epsilon, 0.0)]).precision(prior)


def line(label="ε = 3", gain=0.0, half=0.02, certified=None, shuffled=None):
    """Precision `gain` above the baseline at five π."""
    return PrecisionLine(
        label,
        tuple(
            PrecisionPoint(
                prior, prior + gain, prior + gain - half, prior + gain + half,
                None if certified is None else allowed(certified, prior),
                None if shuffled is None else prior + shuffled,
            )
            for prior in PRIORS
        ),
    )  # fmt: skip


def chart(*lines, **options):
    return precision_over_prior(lines, attack="LiRA", data="digits", **options)


def test_the_title_counts_where_the_lower_end_is_above_the_baseline():
    title = chart(line(gain=0.03), line(gain=0.01), line(gain=-0.05)).title
    assert title == "LiRA's precision on digits is above the baseline at 5 of 15 settings."
    title = chart(line(gain=0.02, half=0.02)).title
    assert title == "LiRA's precision on digits is above the baseline at none of 5 settings."


def test_what_luck_gives_is_no_finding():
    lucky = PrecisionLine("ε = 1", (PrecisionPoint(0.5, 0.55, 0.51, 0.59),))
    title = chart(line(), lucky, line()).title
    assert title.endswith("at 1 of 11 settings, as luck alone may give.")


def test_shuffled_scores_show_what_the_choice_of_a_threshold_gives():
    title = chart(line(gain=0.05, shuffled=0.04), line(gain=0.05, shuffled=0.01)).title
    assert title.endswith("at 10 of 10 settings, above that of shuffled scores at 5.")
    title = chart(line(gain=0.05, shuffled=0.04), line(gain=0.05)).title
    assert title.endswith("at 10 of 10 settings, above that of shuffled scores at none of 5.")


def test_a_precision_above_the_certified_one_comes_first():
    beyond = chart(line(gain=0.09, certified=0.3), line(gain=0.05))
    assert beyond.title.endswith("is above the certified one at 4 of 5 settings.")
    assert "At 4 of 5 it lies wholly above the certified precision, which bounds" in beyond.text


def test_the_table_holds_the_numbers_of_every_panel():
    lines = line("ε = 1", 0.02, certified=1.0, shuffled=0.01), line("no DP", 0.08)
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
    assert [each.name for each in chart(line(), baseline=False).series] == ["LiRA (95 % interval)"]


def test_what_is_allowed_is_read_aloud_rounded_up():
    text = chart(line(certified=1.0)).text
    assert "ε = 3, certified limit: 10 %: at most 23.2 %; 30 %: at most 53.82 %" in text
    assert "50 %: at most 73.11 %" in text  # 0.731059


def test_an_interval_beyond_100_percent_ends_there():
    top = PrecisionLine("no DP", (PrecisionPoint(0.9, 0.99, 0.95, 1.03),))
    assert chart(top).series[0].high == [1.0]
    assert "(95 % to 100 %)" in chart(top).text


def test_refused():
    with pytest.raises(ValueError, match="lines must be one line or more"):
        chart()
    with pytest.raises(ValueError, match="points must be one point or more"):
        PrecisionLine("ε = 1", ())
    with pytest.raises(ValueError, match="low, precision, high must be ascending"):
        PrecisionPoint(0.5, 0.6, 0.7, 0.8)
    with pytest.raises(ValueError, match="certified must be between 0 and 1"):
        PrecisionPoint(0.5, 0.6, 0.5, 0.8, certified=1.2)
    with pytest.raises(ValueError, match="prior must be strictly between"):
        PrecisionPoint(1.0, 0.6, 0.5, 0.8)
