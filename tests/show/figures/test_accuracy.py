import pytest

from dprime.show.figures import AccuracyFigure, AccuracyPoint


def test_points_stand_in_the_order_of_their_risk():
    points = (AccuracyPoint("b", 0.4, 0.95), AccuracyPoint("a", 0.1001, 0.9, 0.89, 0.91))
    figure = AccuracyFigure(points, "Membership advantage")
    drawn = [row for row in figure.rows() if row["layer"] == "setting"]
    assert [(r["setting"], r["risk"], r["accuracy"]) for r in drawn] == [
        ("a", 0.1001, 0.9), ("b", 0.4, 0.95)
    ]  # fmt: skip
    assert figure.title == (
        "The accuracy is 90 % where membership advantage is at most 0.101, and 95 % where it is "
        "at most 0.4."
    )
    assert "a: 90 % (89 % to 91 %) at 0.101; b: 95 % at 0.4." in figure.text


def test_only_known_intervals_are_drawn():
    points = (AccuracyPoint("b", 0.4, 0.95), AccuracyPoint("a", 0.1, 0.9, 0.89, 0.91))
    rows = AccuracyFigure(points, "risk").rows()
    assert [row["setting"] for row in rows if row["layer"] == "interval"] == ["a"]


def test_one_point_alone():
    figure = AccuracyFigure((AccuracyPoint("a", 0.1, 0.9),), "ε at δ 1e-05")
    assert figure.title == "The accuracy is 90 % where ε at δ 1e-05 is at most 0.1."


def test_refused():
    with pytest.raises(ValueError, match="points must be one point or more"):
        AccuracyFigure((), "risk")
    with pytest.raises(ValueError, match="accuracy must be between 0 and 1"):
        AccuracyPoint("a", 0.1, 95.0)
    with pytest.raises(ValueError, match="risk must be a finite number"):
        AccuracyPoint("a", float("inf"), 0.9)
