import pytest

from dprime import TradeOff
from dprime.show.figures import MembershipRocFigure, Points, RocCurve

RATES = (0.001, 0.005, 0.01, 0.1, 1.0)
CLAIM = Points.of(TradeOff.gaussian(0.5), also=RATES)


def curve(label="LiRA", factor=2.0, width=0.1, rates=RATES):
    """A curve that finds `factor` as much as guessing, with an interval of that relative width."""
    tpr = [min(factor * rate, 1.0) for rate in rates]
    low, high = ([min(x * (1 + side * width), 1.0) for x in tpr] for side in (-1, 1))
    return RocCurve(label, tuple(rates), tuple(tpr), tuple(low), tuple(high))


def drawn(figure, layer):
    return [(row["fpr"], row["tpr"]) for row in figure.rows() if row["layer"] == layer]


def test_the_title_says_what_the_best_attack_finds_and_what_is_allowed():
    curves = (curve("Yeom", 1.5), curve("LiRA", 2.0), curve("RMIA", 1.9))
    assert MembershipRocFigure(curves, CLAIM, "Digits").title == (
        "Digits: at 1 % false alarms LiRA finds 2 % of the members (95 % interval 1.8 % to 2.2 %); "
        "the claim allows 3.39 %."
    )
    assert MembershipRocFigure(curves, None, "").title == (
        "At 1 % false alarms LiRA finds 2 % of the members (95 % interval 1.8 % to 2.2 %)."
    )


def test_an_interval_that_reaches_guessing_is_no_finding():
    wide = (curve("LiRA", 1.5, width=0.4), curve("Yeom", 1.0))
    assert MembershipRocFigure(wide, CLAIM, "Digits").title == (
        "Digits: at 1 % false alarms no attack is told apart from guessing; the claim allows "
        "3.39 % of the members to be found."
    )
    alone = MembershipRocFigure(wide[:1], None, "Digits").title
    assert alone == "Digits: at 1 % false alarms LiRA is not told apart from guessing."


def test_a_sure_attack_is_named_before_one_that_only_seems_better():
    curves = (curve("lucky", 2.0, width=0.6), curve("sure", 1.8))
    assert "sure finds 1.8 %" in MembershipRocFigure(curves, None, "Digits").title


def test_an_interval_above_the_claim_is_said_with_its_rate():
    figure = MembershipRocFigure((curve(factor=6.0),), CLAIM, "Digits")
    assert figure.title == (  # where it is most, 54 / 21.8
        "Digits: at 10 % false alarms LiRA finds 60 % of the members (95 % interval 54 % to 66 %); "
        "the claim allows only 21.8 %."
    )
    assert "At 4 of 5 points the interval lies wholly above the claim; luck alone" in figure.text


def test_as_many_intervals_above_the_claim_as_luck_gives_are_no_finding():
    low = (0.0, 0.0, 0.05, 0.1, 1.0)  # above the claim at 1 % alone
    high = (0.1, 0.1, 0.1, 0.2, 1.0)
    figure = MembershipRocFigure((RocCurve("LiRA", RATES, high, low, high),), CLAIM, "Digits")
    assert "only" not in figure.title
    assert "At 1 of 5 points the interval lies wholly above the claim; luck alone" in figure.text


def test_nothing_is_drawn_where_fewer_than_one_false_alarm_could_be_counted():
    figure = MembershipRocFigure((curve(),), CLAIM, "Digits", least_fpr=1 / 150)
    for row in figure.rows():
        assert row["fpr"] >= 1 / 150
        assert row["tpr"] >= 1 / 150
    assert [fpr for fpr, _ in drawn(figure, "attack 1")] == [0.01, 0.1, 1.0]
    assert figure.spec()["layer"][0]["encoding"]["x"]["scale"]["domain"] == [1 / 150, 1.0]
    assert "at 0.1 %" not in figure.text


def test_the_title_speaks_of_a_rate_that_is_drawn():
    rare = MembershipRocFigure((curve(),), CLAIM, "Digits", least_fpr=0.05)
    assert rare.title.startswith("Digits: at 10 % false alarms")


def test_the_claim_begins_at_the_axis_and_is_never_below_the_curve():
    gaussian = TradeOff.gaussian(0.5)
    figure = MembershipRocFigure((curve(),), CLAIM, "Digits", least_fpr=0.0023)
    allowed = drawn(figure, "allowed")
    assert allowed[0][0] == 0.0023
    assert all(tpr >= gaussian.tpr(fpr) * (1 - 1e-9) for fpr, tpr in allowed)
    assert not drawn(MembershipRocFigure((curve(),), None, "Digits"), "allowed")


def test_a_rate_too_small_for_the_axis_is_left_out_and_an_end_below_it_stays_in_the_table():
    found = RocCurve("LiRA", RATES, (0.0, 0.01, 0.02, 0.2, 1.0), (0.0,) * 5, (1.0,) * 5)
    figure = MembershipRocFigure((found,), None, "Digits")
    assert [fpr for fpr, _ in drawn(figure, "attack 1")] == [0.005, 0.01, 0.1, 1.0]
    assert {row["low"] for row in figure.table() if row["layer"] == "attack 1"} == {0.0}
    assert "NaN" not in figure.svg()
    assert "Infinity" not in figure.svg()


def test_between_two_points_an_attacker_may_toss_a_coin():
    found = curve(rates=(0.1, 0.2))
    assert found.at(0.15) == pytest.approx((0.3, 0.27, 0.33))
    assert found.at(0.6) == pytest.approx((0.7, 0.68, 0.72))  # half way to (1, 1)


def test_every_line_is_named_in_the_key_in_the_colour_of_its_pencil():
    curves = tuple(curve(name) for name in ("a", "b", "c"))
    rows = MembershipRocFigure(curves, CLAIM, "Digits").rows()
    named = {row["label"]: row["layer"].split()[1] for row in rows if row["label"]}
    assert named == {
        "guessing": "muted", "a": "second", "b": "ink", "c": "first",
        "allowed by the claim": "first",
    }  # fmt: skip
    # below the line of guessing, where no curve is
    assert all(row["tpr"] < row["fpr"] for row in rows if row["label"])


def test_refused():
    with pytest.raises(ValueError, match="curves must be few enough to tell apart"):
        MembershipRocFigure((), None, "Digits")
    with pytest.raises(ValueError, match="points must be two lists of the same length"):
        RocCurve("a", (0.1,), (), (), ())
    with pytest.raises(ValueError, match="low and high must be as many as the rates"):
        RocCurve("a", (0.1,), (0.2,), (), ())
    with pytest.raises(ValueError, match="low, tpr, high must be ascending"):
        RocCurve("a", (0.1,), (0.2,), (0.3,), (0.4,))
    with pytest.raises(ValueError, match=r"the largest fpr must be 0\.5 \(least_fpr\) or more"):
        MembershipRocFigure((curve(rates=(0.1, 0.2)),), None, "Digits", least_fpr=0.5)
    with pytest.raises(ValueError, match="least_fpr must be strictly between 0 and 1"):
        MembershipRocFigure((curve(),), None, "Digits", least_fpr=0.0)
