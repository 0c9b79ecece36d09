"""The other direction: from an acceptable risk to the parameter that keeps it."""

import re

import pytest

FREE = {"noise_multiplier": "Noise", "sample_rate": "Sampling rate", "steps": "Steps"}
TARGETS = ["advantage", "bayes_security", "tpr", "epsilon", "precision", "belief", "success"]


def typed(page, name):
    return float(page.input_value(f"#{name}-exact"))


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_is_kept(visit, printed, target):
    page = visit.open("?mode=choose")
    if target != "advantage":
        visit.settled(lambda: page.select_option("#target", target))
    told = printed(visit.command())
    chosen = told["mechanism"]["noise_multiplier"]
    rounded = typed(page, "a-noise_multiplier")
    assert chosen <= rounded <= chosen * 1.00001, "rounded up, to the safe side"
    reached, limit = told["metrics"][target]["value"], typed(page, "value-of-target")
    assert reached >= limit if target == "bayes_security" else reached <= limit
    assert visit.numbers().keys() == told["metrics"].keys()
    visit.shot(f"choose-{target}")


@pytest.mark.parametrize("free", FREE)
def test_every_parameter_can_be_chosen(visit, printed, free):
    page = visit.open("?mode=choose&value=0.15")
    if free != "noise_multiplier":
        visit.settled(lambda: page.get_by_role("radio", name=FREE[free], exact=True).check())
    slider = page.locator(f"#a-{free}")
    assert slider.is_disabled()
    assert slider.get_attribute("aria-valuetext").endswith(", chosen")
    assert f"--{free.replace('_', '-')}" not in visit.command()
    chosen, rounded = printed(visit.command())["mechanism"][free], typed(page, f"a-{free}")
    assert chosen <= rounded if free == "noise_multiplier" else rounded <= chosen
    assert rounded == pytest.approx(chosen, rel=1e-4)
    assert all(page.locator(f"#a-{name}").is_enabled() for name in FREE if name != free)


def test_the_limit_moves_the_chosen_value_which_stays_when_one_goes_back(visit):
    page = visit.open("?mode=choose")
    before = typed(page, "a-noise_multiplier")
    visit.slide("value-of-target", 1)
    assert typed(page, "value-of-target") == 0.02
    assert typed(page, "a-noise_multiplier") > before
    assert float(visit.numbers()["advantage"]) <= 0.02
    visit.type_value("value-of-target", "0.123")
    chosen = page.input_value("#a-noise_multiplier-exact")
    assert float(chosen) < before
    assert "0.123" in page.inner_text("#finding")
    assert chosen in page.inner_text("#finding")
    visit.settled(lambda: page.get_by_label("The risk of a setting").check())
    assert f"--noise-multiplier {chosen}" in visit.command()
    assert float(visit.numbers()["advantage"]) <= 0.123
    visit.settled(lambda: page.get_by_label("The setting for a risk").check())
    assert page.input_value("#a-noise_multiplier-exact") == chosen


def test_an_impossible_target_is_answered_with_the_sentence(visit):
    visit.expected = ["status of 422"]
    page = visit.open("?mode=choose&target=tpr&value=0.03")
    before = visit.numbers()
    visit.type_value("value-of-target", "0.005")
    sentence = page.inner_text("[data-name=value-of-target] .error")
    assert re.match(r"tpr must be above 0\.01, .*so ask for more than 0\.01\.$", sentence)
    assert visit.numbers() == before
    assert "answer of before" in page.inner_text("#notice")
    visit.shot("choose-impossible")
