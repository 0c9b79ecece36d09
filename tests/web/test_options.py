"""The positions of the page, their words, and what the registry says of targets."""

from itertools import pairwise

import pytest

from dprime import validate
from dprime.metrics import TARGETS
from dprime.request import MECHANISM, NAMES
from dprime.web.options import PAGE_OPTIONS, SLIDERS, TARGET_SLIDERS
from dprime.web.service import EMPTY, ExplorerService

TEXTS = {name: str(slider.default) for name, slider in SLIDERS.items()}
SERVICE = ExplorerService()


def test_the_page_has_a_slider_for_what_an_address_can_give():
    ends = {name: (each.positions[0], each.positions[-1]) for name, each in SLIDERS.items()}
    assert ends == {
        "noise_multiplier": (0.3, 30), "sample_rate": (1e-5, 1), "steps": (1, 1_000_000),
        "prior": (0.001, 0.9), "belief_prior": (0.01, 0.9), "belief_level": (0.6, 0.99),
        "fpr": (1e-5, 0.1), "delta": (1e-9, 1e-2), "group_size": (1, 10),
    }  # fmt: skip
    assert set(SLIDERS) <= set(NAMES)
    assert set(TARGET_SLIDERS) <= set(TARGETS)
    told = {name: (each.title, each.conditions) for name, each in TARGET_SLIDERS.items()}
    assert told["tpr"] == ("TPR, at most", ["fpr"])
    assert told["bayes_security"] == ("Bayes security, at least", [])
    assert told["belief"] == ("Belief, at most", ["belief_prior"])
    assert PAGE_OPTIONS.adjacency == ["add-remove", "replace", "zero-out"]
    assert {f"risk-{over.replace('_', '-')}" for over in PAGE_OPTIONS.free} <= {*EMPTY}


@pytest.mark.parametrize("slider", [*SLIDERS.values(), *TARGET_SLIDERS.values()],
                         ids=lambda slider: slider.name)  # fmt: skip
def test_positions_rise_hold_the_default_and_are_shown_as_they_are(slider):
    assert all(before < after for before, after in pairwise(slider.positions))
    assert slider.default in slider.positions
    for position, shown in zip(slider.positions, slider.shown, strict=True):
        number = validate.parse(slider.name, shown.removesuffix(" %").replace(",", ""))
        assert number == pytest.approx(position * (100 if shown.endswith(" %") else 1), rel=1e-12)


@pytest.mark.parametrize("free", MECHANISM)
@pytest.mark.parametrize("target", TARGET_SLIDERS)
def test_every_target_can_be_kept_as_the_page_begins(target, free):
    ceiling = TARGET_SLIDERS[target].default
    found = SERVICE.choose(TEXTS, target, str(ceiling), free)
    assert found.chosen.name == free
    reached = found.metrics[target]["value"]
    assert reached >= ceiling if target == "bayes_security" else reached <= ceiling
