"""A hand on a slider: what is asked, dropped and drawn, and that it ends where it stops.

How long moves take is measured by benchmarks/page.py.
"""

WATCHED = """() => {
  window.redrawn = new Set();
  for (const chart of document.querySelectorAll(".chart"))
    new MutationObserver(() => window.redrawn.add(chart.id))
      .observe(chart.querySelector(".canvas"), {subtree: true, childList: true, attributes: true});
}"""

MEASURED = "() => performance.getEntriesByName('dprime-move').length"


def test_each_move_is_asked_and_measured_once_and_redraws_what_it_changes(visit):
    """Vega draws anew what it is handed: nothing is handed twice."""
    page = visit.open()
    before = page.evaluate(MEASURED)
    for position in (5, 6, 5):
        visit.slide("a-steps", position)
    assert page.evaluate(MEASURED) == before + 3
    assert sum("/api/risk" in url for url in visit.requests) == 3, "the fourth is remembered"
    visit.quiet()
    page.evaluate(WATCHED)
    visit.slide("ask-delta", 3)
    visit.quiet()
    assert page.evaluate("() => [...window.redrawn]") == ["chart-precision"]


def test_a_quick_hand_ends_where_it_stops(visit_as):
    """The numbers are those of the last position, though most on the way were skipped."""
    page = (visit := visit_as()).open()
    before = visit.drawn()
    for position in range(5, 36):
        visit.slide_only("a-noise_multiplier", position)
        page.wait_for_timeout(16)
    visit.waited(before + 30)
    typed = page.input_value("#a-noise_multiplier-exact")
    slow = visit_as()
    slow.open(visit.shared(f"noise_multiplier={typed}&"))
    assert slow.numbers() == visit.numbers()
    assert f"noise {typed}," in page.inner_text("#described")
    assert int(slow.page.input_value("#a-noise_multiplier")) == 35


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
    before, drawn, held = visit.numbers(), visit.drawn(), visit.hold("**/api/charts?*")
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


def test_the_risk_is_drawn_through_more_points_once_it_is_in_sight(visit):
    page = visit.open()
    visit.quiet()
    assert not any("fine=true" in url for url in visit.requests)
    coarse = visit.rows_of_charts()["chart-risk"]
    with page.expect_response(lambda response: "fine=true" in response.url):
        page.locator("#chart-risk").scroll_into_view_if_needed()
    visit.redrawn("chart-risk", coarse)
