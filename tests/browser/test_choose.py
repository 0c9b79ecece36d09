"""The other direction: from an acceptable risk to the parameter that keeps it."""

import re

import pytest

FREE = {"noise_multiplier": "Noise", "sample_rate": "Sampling rate", "steps": "Steps"}
TARGETS = ["advantage", "bayes_security", "tpr", "epsilon", "precision", "belief", "success"]


def reached(visit, target):
    return float(visit.numbers()[target].removeprefix("≥ "))


def limit(page):
    return float(page.input_value("#value-of-target-exact"))


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_is_kept(visit, printed, target):
    page = visit.open("?mode=choose")
    if target != "advantage":
        visit.settled(lambda: page.select_option("#target", target))
    told = printed(visit.command())
    chosen = told["mechanism"]["noise_multiplier"]
    typed = float(page.input_value("#a-noise_multiplier-exact"))
    assert chosen <= typed <= chosen * 1.00001, "rounded up, to the safe side"
    if target == "bayes_security":
        assert told["metrics"][target]["value"] >= limit(page)
    else:
        assert told["metrics"][target]["value"] <= limit(page)
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
    chosen = printed(visit.command())["mechanism"][free]
    typed = float(page.input_value(f"#a-{free}-exact"))
    safe = chosen <= typed if free == "noise_multiplier" else typed <= chosen
    assert safe
    assert typed == pytest.approx(chosen, rel=1e-4)
    others = [name for name in FREE if name != free]
    assert all(page.locator(f"#a-{name}").is_enabled() for name in others)


def test_the_limit_moves_the_chosen_value(visit):
    page = visit.open("?mode=choose")
    before = float(page.input_value("#a-noise_multiplier-exact"))
    visit.slide("value-of-target", 1)
    assert limit(page) == 0.02
    assert float(page.input_value("#a-noise_multiplier-exact")) > before
    assert reached(visit, "advantage") <= 0.02
    visit.type_value("value-of-target", "0.123")
    assert float(page.input_value("#a-noise_multiplier-exact")) < before
    assert "0.123" in page.inner_text("#finding")


def test_there_and_back_again(visit):
    page = visit.open("?mode=choose&value=0.1")
    chosen = page.input_value("#a-noise_multiplier-exact")
    assert chosen in page.inner_text("#finding")
    visit.settled(lambda: page.get_by_label("The risk of a setting").check())
    assert page.input_value("#a-noise_multiplier-exact") == chosen, "the slider stays where it is"
    assert f"--noise-multiplier {chosen}" in visit.command()
    assert reached(visit, "advantage") <= 0.1
    visit.settled(lambda: page.get_by_label("The setting for a risk").check())
    assert page.input_value("#a-noise_multiplier-exact") == chosen


def test_an_impossible_target_is_answered_with_the_sentence(visit):
    visit.expected = ["status of 422"]
    page = visit.open("?mode=choose&target=tpr&value=0.03")
    before = visit.numbers()
    visit.type_value("value-of-target", "0.005")
    sentence = page.inner_text("[data-name=value-of-target] .error")
    assert re.match(r"tpr must be above 0\.01 .*so ask for more than 0\.01\.$", sentence)
    assert visit.numbers() == before
    assert "answer of before" in page.inner_text("#notice")
    visit.shot("choose-impossible")
