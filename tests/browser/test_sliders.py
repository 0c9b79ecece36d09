"""Every slider moves every number that depends on it, and the numbers are the command line's."""

import json
import urllib.request

import pytest

from dprime.text import round_down, round_up

TRAINING = ["noise_multiplier", "sample_rate", "steps", "group_size"]
OF_CURVE = {"advantage", "tpr", "precision", "epsilon"}
CURVE = {"trade-off", "trade-off-corner", "precision"}
MOVES = {
    **{f"a-{name}": (OF_CURVE, {*CURVE, "risk"}) for name in TRAINING},
    "ask-prior": ({"precision", "success"}, {"precision"}),
    "ask-belief_prior": ({"belief", "belief_exceeds"}, set()),
    "ask-belief_level": ({"belief_exceeds"}, set()),
    "ask-fpr": ({"tpr"}, {"trade-off", "trade-off-corner"}),
    "ask-delta": ({"epsilon"}, {"precision"}),
}
"""The numbers and the drawings that each slider must change, at least."""


def shown(metrics):
    """The numbers as people read them, from the command line's JSON."""
    digits = {}
    for name, metric in metrics.items():
        value = metric["value"]
        floor = name == "bayes_security"
        text = "no limit" if value is None else round_down(value) if floor else round_up(value)
        digits[name] = f"≥ {text}" if floor else text
    return digits


@pytest.fixture(scope="session")
def parameters(address):
    with urllib.request.urlopen(f"{address}/api/options") as response:
        return json.load(response)["parameters"]


@pytest.mark.parametrize("slider", MOVES)
def test_a_slider_moves_numbers_drawings_and_address(visit, parameters, slider):
    page = visit.open()
    assert {f"{'a' if n in TRAINING else 'ask'}-{n}" for n in parameters} == set(MOVES)
    name = slider.split("-", 1)[1]
    given, (moved, redrawn) = parameters[name], MOVES[slider]
    before, drawings = visit.numbers(), visit.rows_of_charts()
    position = given["positions"].index(given["default"]) + 1
    visit.slide(slider, position)
    after = visit.numbers()
    assert moved <= {metric for metric in after if after[metric] != before[metric]}
    changed = {each for each, d in visit.rows_of_charts().items() if d != drawings[each]}
    assert {f"chart-{each}" for each in redrawn} <= changed
    control = page.locator(f"[data-name={slider}]")
    words = control.locator("input[type=range]").get_attribute("aria-valuetext")
    assert control.locator(".words").inner_text() == words == given["shown"][position]
    page.wait_for_function(
        "([name, value]) => Number(new URLSearchParams(location.search).get(name)) === value",
        arg=[name, given["positions"][position]],
    )


@pytest.mark.parametrize(
    "moves",
    [
        {},
        {"a-noise_multiplier": 2, "a-steps": 24, "ask-fpr": 0},
        {"a-noise_multiplier": 30, "a-sample_rate": 28, "a-group_size": 2, "ask-delta": 0},
        {"ask-prior": 0, "ask-belief_prior": 2, "ask-belief_level": 9},
    ],
)
def test_numbers_equal_the_command_line(visit, printed, moves):
    visit.open()
    for slider, position in moves.items():
        visit.slide(slider, position)
    told = printed(visit.command())
    assert visit.numbers() == shown(told["metrics"])
    for name in ("noise_multiplier", "sample_rate", "steps"):
        assert told["mechanism"][name] == float(visit.page.input_value(f"#a-{name}-exact"))


def test_the_answer_of_the_server_is_exactly_the_one_of_the_command_line(visit, printed):
    page = visit.open()
    with page.expect_response(lambda response: "/api/risk" in response.url) as heard:
        visit.slide("a-noise_multiplier", 3)
    answer = heard.value.json()
    told = printed(visit.command())
    for name, metric in answer["metrics"].items():
        words = {part: metric.pop(part) for part in ("title", "shown", "sentence")}
        assert visit.numbers()[name] == words["shown"]
    assert {name: answer[name] for name in told} == told


def test_exact_values_and_another_adjacency(visit, printed):
    page = visit.open()
    visit.type_value("a-sample_rate", "256/60000")
    visit.type_value("a-steps", "14062")
    assert "--sample-rate 256/60000" in visit.command()
    assert page.locator("#a-sample_rate").get_attribute("aria-valuetext") == "256/60000"
    assert page.locator("[data-name=a-sample_rate] .words").inner_text() == "256/60000"
    before = visit.numbers()
    assert before == shown(printed(visit.command())["metrics"])
    visit.settled(lambda: page.get_by_role("radio", name="The record replaced").check())
    assert visit.numbers()["advantage"] != before["advantage"]
    assert "--adjacency replace" in visit.command()
    assert visit.numbers() == shown(printed(visit.command())["metrics"])


def test_a_probability_may_be_typed_as_a_percentage(visit, printed):
    page = visit.open()
    visit.slide("ask-fpr", 10)
    numbers, position = visit.numbers(), page.input_value("#ask-fpr")
    visit.slide("ask-fpr", 2)
    visit.type_value("ask-fpr", "2 %")
    assert visit.numbers() == numbers
    assert page.input_value("#ask-fpr") == position
    assert shown(printed(visit.command())["metrics"]) == numbers
    visit.expected = ["status of 422"]
    visit.type_value("a-noise_multiplier", "110 %")
    assert "noise_multiplier must be a number" in page.inner_text("#a-noise_multiplier-error")


def test_drawings_can_be_changed(visit):
    page = visit.open()
    before = visit.rows_of_charts()
    visit.settled(lambda: page.select_option("#over", "steps"))
    visit.settled(lambda: page.locator("#scale").check())
    after = visit.rows_of_charts()
    changed = [each.removeprefix("chart-") for each in before if after[each] != before[each]]
    assert sorted(changed) == ["risk", "trade-off-corner"]
    visit.shared("over=steps", "scale=log")
    visit.shot("desk-log-over-steps")
