"""Every slider moves every number that depends on it, and the numbers are the command line's."""

import json
import urllib.request

import pytest

from dprime.text import round_down, round_up

TRAINING = ["noise_multiplier", "sample_rate", "steps", "group_size"]
SLIDERS = {
    "a-noise_multiplier": {"advantage", "tpr", "precision", "epsilon", "d_prime"},
    "a-sample_rate": {"advantage", "tpr", "precision", "epsilon", "d_prime"},
    "a-steps": {"advantage", "tpr", "precision", "epsilon", "d_prime"},
    "a-group_size": {"advantage", "tpr", "precision", "epsilon"},
    "ask-prior": {"precision", "success"},
    "ask-belief_prior": {"belief", "belief_exceeds"},
    "ask-belief_level": {"belief_exceeds"},
    "ask-fpr": {"tpr"},
    "ask-delta": {"epsilon"},
}
"""What each slider must move, at least."""

CURVE = {"trade-off", "trade-off-corner", "precision"}
CHARTS_OF = {
    "a-noise_multiplier": {*CURVE, "risk"},
    "a-sample_rate": {*CURVE, "risk"},
    "a-steps": {*CURVE, "risk"},
    "a-group_size": {*CURVE, "risk"},
    "ask-prior": {"precision"},
    "ask-belief_prior": set(),
    "ask-belief_level": set(),
    "ask-fpr": {"trade-off", "trade-off-corner"},
    "ask-delta": {"precision"},
}
"""The drawings that each slider must change, at least."""


def shown(metrics):
    """The numbers as people read them, from the command line's JSON."""
    digits = {}
    for name, metric in metrics.items():
        value = metric["value"]
        floor = name == "bayes_security"
        text = "no limit" if value is None else round_down(value) if floor else round_up(value)
        digits[name] = f"≥ {text}" if floor else text
    return digits


def options(address):
    with urllib.request.urlopen(f"{address}/api/options") as response:
        return json.load(response)


def test_every_parameter_has_a_slider(visit):
    page = visit.open()
    given = options(visit.address)["parameters"]
    ranges = page.eval_on_selector_all("input[type=range]", "all => all.map((one) => one.id)")
    for name in given:
        assert (f"a-{name}" if name in TRAINING else f"ask-{name}") in ranges
    assert {f"{'a' if n in TRAINING else 'ask'}-{n}" for n in given} == set(SLIDERS)
    visit.shot("desk-light")


@pytest.mark.parametrize("slider", SLIDERS)
def test_a_slider_moves_numbers_drawings_and_address(visit, slider):
    page = visit.open()
    name = slider.split("-", 1)[1]
    given = options(visit.address)["parameters"][name]
    before, drawings = visit.numbers(), visit.rows_of_charts()
    position = given["positions"].index(given["default"]) + 1
    visit.slide(slider, position)
    after = visit.numbers()
    assert SLIDERS[slider] <= {metric for metric in after if after[metric] != before[metric]}
    changed = {
        i.removeprefix("chart-") for i, d in visit.rows_of_charts().items() if d != drawings[i]
    }
    assert CHARTS_OF[slider] <= changed
    control = page.locator(f"[data-name={slider}]")
    assert control.locator(".words").inner_text() == given["shown"][position]
    assert (
        control.locator("input[type=range]").get_attribute("aria-valuetext")
        == given["shown"][position]
    )
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


def test_replacing_a_record_is_another_question(visit, printed):
    page = visit.open()
    before = visit.numbers()
    visit.settled(lambda: page.get_by_role("radio", name="The record replaced").check())
    assert visit.numbers()["advantage"] != before["advantage"]
    assert "--adjacency replace" in visit.command()
    assert visit.numbers() == shown(printed(visit.command())["metrics"])


def test_an_exact_value_can_be_typed(visit, printed):
    page = visit.open()
    visit.type_value("a-sample_rate", "256/60000")
    visit.type_value("a-steps", "14062")
    assert "--sample-rate 256/60000" in visit.command()
    assert visit.numbers() == shown(printed(visit.command())["metrics"])
    assert page.locator("#a-sample_rate").get_attribute("aria-valuetext") == "256/60000"
    assert page.locator("[data-name=a-sample_rate] .words").inner_text() == "256/60000"


def test_only_the_newest_answer_is_shown(visit):
    page = visit.open()
    last = options(visit.address)["parameters"]["noise_multiplier"]["positions"][-1]

    def drag():
        for position in range(20, 41):
            visit.slide_only("a-noise_multiplier", position)

    visit.settled(drag)
    page.wait_for_timeout(500)
    assert page.input_value("#a-noise_multiplier-exact") == str(int(last))
    assert f"noise {int(last)}," in page.inner_text("#described")


COUNTED = """
  window.counts = [];
  let underWay = 0;
  const plain = window.fetch;
  const end = () => { underWay -= 1; };
  window.fetch = async (address, ...rest) => {
    if (!address.startsWith("/api/charts?")) return plain(address, ...rest);
    underWay += 1;
    window.counts.push(underWay);
    rest[0].signal.addEventListener("abort", end);
    const response = await plain(address, ...rest);
    const read = response.text.bind(response);
    response.text = async () => {
      const text = await read();
      await new Promise((resolve) => setTimeout(resolve, 100));
      rest[0].signal.removeEventListener("abort", end);
      end();
      return text;
    };
    return response;
  };
"""
"""How many questions are under way whenever one is asked, counted inside the page.

No answer comes within 100 ms, however fast the server is.
"""

DRAG = """
  async () => {
    const range = document.querySelector("#a-noise_multiplier");
    for (let position = 0; position <= 40; position += 1) {
      range.value = position;
      range.dispatchEvent(new Event("input", {bubbles: true}));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
"""
"""A hand that takes 20 ms or more from one position to the next."""


def test_at_most_one_question_is_under_way(visit):
    visit.page.add_init_script(COUNTED)
    page = visit.open()
    page.evaluate(DRAG)
    end = "() => document.querySelector('#described').textContent.includes('noise 30,')"
    page.wait_for_function(end)
    counts = page.evaluate("() => window.counts")
    assert max(counts) == 1
    assert 2 < len(counts) < 41, "the page followed the hand, and left out what it flew over"


def test_numbers_do_not_wait_for_charts(visit):
    page = visit.open()
    before, drawn, held = visit.numbers(), visit.drawn(), []

    def hold(route):
        held.append(route)

    page.route("**/api/charts?*", hold)
    visit.slide_only("a-noise_multiplier", 20)
    page.wait_for_function(
        "old => document.querySelector('[data-metric=advantage] .value').textContent !== old",
        arg=before["advantage"],
    )
    page.wait_for_timeout(200)
    assert visit.drawn() == drawn
    visit.settled(lambda: held.pop().continue_())


SIGNALS = """
window.signals = [];
const ask = window.fetch;
window.fetch = (address, options) => {
  if (String(address).includes("/api/risk")) window.signals.push(options.signal);
  return ask(address, options);
};
"""
"""Lets a test see which of the page's questions were given up."""


def test_an_overtaken_question_is_dropped(visit):
    visit.page.add_init_script(SIGNALS)
    page = visit.open()
    held = []

    def hold(route):
        """The first question waits for ever; whoever stops holding would let it go."""
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/api/risk*", hold)
    with page.expect_request("**/api/risk*"):
        visit.slide_only("a-steps", 3)
    visit.slide("ask-fpr", 3)
    assert page.evaluate("window.signals.slice(-2).map((each) => each.aborted)") == [True, False]
    assert "10 steps" in page.inner_text("#described")


def test_drawings_can_be_changed(visit):
    page = visit.open()
    before = visit.rows_of_charts()
    visit.settled(lambda: page.select_option("#over", "steps"))
    visit.settled(lambda: page.locator("#scale").check())
    after = visit.rows_of_charts()
    assert after["chart-risk"] != before["chart-risk"]
    assert after["chart-trade-off-corner"] != before["chart-trade-off-corner"]
    assert after["chart-trade-off"] == before["chart-trade-off"]
    page.wait_for_url(lambda url: "over=steps" in url and "scale=log" in url)
    visit.shot("desk-log-over-steps")


def test_one_move_is_one_question(visit):
    visit.open()
    visit.slide("a-steps", 5)
    visit.slide("a-steps", 6)
    visit.slide("a-steps", 5)
    assert sum("/api/risk" in url for url in visit.requests) == 3, "the fourth answer is remembered"


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
