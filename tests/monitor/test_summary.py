"""The words around the numbers."""

import pytest

from dprime import DPSGD, Composition
from dprime.curve import TradeOff
from dprime.metrics import risk_profile
from dprime.monitor.ledger import NoGuarantee
from dprime.monitor.summary import line, place, report

ANSWERS = risk_profile(TradeOff.gaussian(0.5))


@pytest.mark.parametrize(
    ("planned", "text"),
    [
        ((None, None), "epoch 2, step 1,200"),
        ((2.5, 1500), "epoch 2 of 2.5, step 1,200 of 1,500"),
        ((2.522, 1500), "epoch 2 of 2.5, step 1,200 of 1,500"),
        ((1.5, 1199), "epoch 2 of 1.5, step 1,200, past the planned 1,199"),
        ((1.0, 600), "epoch 2, past the planned 1, step 1,200, past the planned 600"),
    ],
)
def test_where_the_training_is(planned, text):
    assert place(2, 1200, *planned) == text


def test_ceilings_go_up_and_floors_down():
    found = {answer.name: answer.bounded() for answer in ANSWERS}
    assert found["advantage"] == "at most 0.1975"  # 0.19741
    assert found["bayes_security"] == "at least 0.8025"  # 0.80259
    nothing = risk_profile(NoGuarantee(1, "why").curve())
    assert {a.name: a.bounded() for a in nothing}["epsilon"] == "no limit"


def test_the_line_of_a_training_without_protection():
    assert line("here", ANSWERS[0], None, NoGuarantee(3, "why")) == "here: not private, why."


def test_many_parts_are_not_all_described():
    parts = Composition(*(DPSGD(1.0 + i, 0.1, 10) for i in range(9)))
    text = report("here", parts, "add-remove", ANSWERS, None, ["One thing."], [])
    assert text.count("DP-SGD, noise") == 4
    assert "\n... and 5 more\n" in text
    assert text.endswith("\n\nWarnings:\n- One thing.")
    assert "at the planned end" not in text


def test_before_the_first_step():
    assert "\nNothing was spent yet.\n" in report("here", None, "replace", ANSWERS, None, [], [])
