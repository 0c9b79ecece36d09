from itertools import pairwise

import pytest

from dprime import validate
from dprime.metrics import TARGETS
from dprime.request import NAMES
from dprime.web.answers import Answers
from dprime.web.options import FREE, GOALS, SLIDERS, SPECIFIED, options

TEXTS = {name: str(slider.default) for name, slider in SLIDERS.items()}


def test_the_sliders_of_the_page():
    sizes = {name: len(slider.positions) for name, slider in SLIDERS.items()}
    assert (sizes["noise_multiplier"], sizes["sample_rate"], sizes["steps"]) == (41, 29, 29)
    ends = {name: (slider.positions[0], slider.positions[-1]) for name, slider in SLIDERS.items()}
    assert ends == {
        "noise_multiplier": (0.3, 30), "sample_rate": (1e-5, 1), "steps": (1, 1_000_000),
        "prior": (0.001, 0.9), "belief_prior": (0.01, 0.9), "belief_level": (0.6, 0.99),
        "fpr": (1e-5, 0.1), "delta": (1e-9, 1e-2), "group_size": (1, 10),
    }  # fmt: skip
    assert set(SLIDERS) <= set(NAMES)


@pytest.mark.parametrize("name", [*SLIDERS, *GOALS])
def test_positions_rise_and_hold_the_default(name):
    slider = {**SLIDERS, **GOALS}[name]
    assert all(before < after for before, after in pairwise(slider.positions))
    assert slider.default in slider.positions


@pytest.mark.parametrize("name", [*SLIDERS, *GOALS])
def test_a_shown_position_is_that_number(name):
    """What people read beside a slider is the position, not a rounding of it."""
    slider = {**SLIDERS, **GOALS}[name]
    for position in slider.positions:
        shown = slider.words(position)
        number = validate.parse(name, shown.removesuffix(" %").replace(",", ""))
        assert number == pytest.approx(position * (100 if shown.endswith(" %") else 1), rel=1e-12)


@pytest.mark.parametrize("name", list(SLIDERS))
def test_every_end_of_a_slider_has_an_answer(name):
    answers = Answers()
    for position in (SLIDERS[name].positions[0], SLIDERS[name].positions[-1]):
        found = answers.risk({**TEXTS, name: str(position)})
        assert found["metrics"]["advantage"]["value"] <= 1


@pytest.mark.parametrize("target", list(GOALS))
@pytest.mark.parametrize("free", list(FREE))
def test_every_target_can_be_kept_as_the_page_begins(target, free):
    found = Answers().choose(TEXTS, target, str(GOALS[target].default), free)
    assert found["chosen"]["name"] == free
    reached = found["metrics"][target]["value"]
    ceiling = GOALS[target].default
    assert reached >= ceiling if target == "bayes_security" else reached <= ceiling


def test_targets_and_their_conditions_exist():
    assert set(GOALS) <= set(TARGETS)
    for goal in GOALS.values():
        assert set(goal.conditions) <= set(SLIDERS)


def test_options_are_complete():
    found = options()
    assert list(found["parameters"]) == list(SLIDERS)
    for slider in [*found["parameters"].values(), *found["targets"]]:
        assert len(slider["shown"]) == len(slider["positions"])
        assert len(set(slider["shown"])) == len(slider["shown"])
    assert found["adjacency"] == ["add-remove", "replace", "zero-out"]
    assert [each["name"] for each in found["free"]] == found["over"]
    for over in found["over"]:
        assert f"risk-{over.replace('_', '-')}" in SPECIFIED
