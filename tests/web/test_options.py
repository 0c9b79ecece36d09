from dataclasses import asdict
from itertools import pairwise

import pytest

from dprime import validate
from dprime.metrics import CONDITIONS, TARGETS
from dprime.request import MECHANISM, NAMES
from dprime.web.options import PAGE_OPTIONS, SLIDERS, TARGET_SLIDERS
from dprime.web.service import EMPTY, ExplorerService

TEXTS = {name: str(slider.default) for name, slider in SLIDERS.items()}
EVERY = [*SLIDERS.values(), *TARGET_SLIDERS.values()]


@pytest.fixture(scope="module")
def service():
    return ExplorerService()


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


@pytest.mark.parametrize("slider", EVERY, ids=lambda slider: slider.name)
def test_positions_rise_hold_the_default_and_are_shown_as_they_are(slider):
    assert all(before < after for before, after in pairwise(slider.positions))
    assert slider.default in slider.positions
    assert len(set(slider.shown)) == len(slider.positions)
    for position, shown in zip(slider.positions, slider.shown, strict=True):
        number = validate.parse(slider.name, shown.removesuffix(" %").replace(",", ""))
        assert number == pytest.approx(position * (100 if shown.endswith(" %") else 1), rel=1e-12)


@pytest.mark.parametrize("name", list(SLIDERS))
def test_every_end_of_a_slider_has_an_answer(service, name):
    for position in (SLIDERS[name].positions[0], SLIDERS[name].positions[-1]):
        found = service.risk({**TEXTS, name: str(position)})
        assert found.metrics["advantage"]["value"] <= 1


@pytest.mark.parametrize("free", MECHANISM)
@pytest.mark.parametrize("target", TARGET_SLIDERS)
def test_every_target_can_be_kept_as_the_page_begins(service, target, free):
    ceiling = TARGET_SLIDERS[target].default
    found = service.choose(TEXTS, target, str(ceiling), free)
    assert found.chosen.name == free
    reached = found.metrics[target]["value"]
    assert reached >= ceiling if target == "bayes_security" else reached <= ceiling


def test_titles_and_conditions_are_the_registrys():
    assert set(TARGET_SLIDERS) <= set(TARGETS)
    told = {name: (each.title, each.conditions) for name, each in TARGET_SLIDERS.items()}
    assert told["tpr"] == ("TPR, at most", ["fpr"])
    assert told["bayes_security"] == ("Bayes security, at least", [])
    assert told["belief"] == ("Belief, at most", ["belief_prior"])
    defaults = {condition.name: condition.default for condition in CONDITIONS}
    for name in (set(SLIDERS) & set(defaults)) - {"prior"}:  # which has two
        assert SLIDERS[name].default == defaults[name]


def test_options_are_complete():
    found = asdict(PAGE_OPTIONS)
    assert list(found["parameters"]) == list(SLIDERS)
    assert found["adjacency"] == ["add-remove", "replace", "zero-out"]
    for over in found["free"]:
        assert f"risk-{over.replace('_', '-')}" in EMPTY
