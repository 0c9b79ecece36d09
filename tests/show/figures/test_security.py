import pytest

from dprime.show.figures import SecurityFigure, SecurityLine
from dprime.show.figures.comparing import SOLID

MEMBERSHIP = SecurityLine("membership", "certified", ((1.0, 0.9567), (2.0, 0.91239)))
AGE = SecurityLine("age", "estimate", ((1.0, 0.99), (2.0, 0.98)))
SEX = SecurityLine("sex", "estimate", ((1.0, 0.995), (2.0, 0.985)))


def test_what_is_certified_is_rounded_down_and_an_estimate_is_called_one():
    assert SecurityFigure((MEMBERSHIP, AGE), "Adult").title == (
        "After 2 epochs on Adult, Bayes security is at least 0.912 for membership and about 0.98 "
        "for age."
    )


def test_certified_lines_alone_are_solid_and_no_two_lines_look_alike():
    figure = SecurityFigure((AGE, MEMBERSHIP, SEX, MEMBERSHIP), "Adult")
    assert [pencil.dash == SOLID for pencil in figure._pencils] == [False, True, False, True]
    assert len({(pencil.ink, pencil.dash) for pencil in figure._pencils}) == 4


def test_the_key_stands_above_all_lines():
    rows = SecurityFigure((MEMBERSHIP, AGE), "Adult").rows()
    named = [row for row in rows if row["label"]]
    assert [row["label"] for row in named] == ["membership (certified)", "age (estimate)"]
    drawn = max(row["bayes_security"] for row in rows if str(row["layer"]).startswith("line"))
    assert all(row["bayes_security"] > drawn for row in named)


def test_accuracy_is_a_share():
    line = SecurityLine("membership", "certified", ((0.8, 0.95), (0.83, 0.9)))
    figure = SecurityFigure((line,), "Adult", "accuracy")
    assert "80 %: at least 0.95; 83 %: at least 0.9" in figure.text
    assert figure.title.startswith("At 83 % accuracy on Adult, Bayes security is at least 0.9 ")


def test_one_point_can_be_drawn():
    line = SecurityLine("membership", "certified", ((0.8, 0.95),))
    assert SecurityFigure((line,), "Adult", "accuracy").svg().startswith("<svg")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SecurityLine("age", "estimate", ()), "points must be one pair or more"),
        (lambda: SecurityLine("age", "estimate", ((1.0, 1.2),)), "security must be"),
        (lambda: SecurityFigure((), "Adult"), "lines must be few enough"),
        (lambda: SecurityFigure((MEMBERSHIP,) * 4, "Adult"), "lines must be 3 at most"),
        (lambda: SecurityFigure((AGE,), "Adult", "steps"), "across must be"),
    ],
)
def test_bad_input_is_one_sentence(make, said):
    with pytest.raises(ValueError, match=said):
        make()
