"""A hand on a slider: every move is drawn and measured, and a quick one ends where it stops.

How long moves take is measured by benchmarks/page.py.
"""

WATCHED = """() => {
  window.redrawn = new Set();
  for (const chart of document.querySelectorAll(".chart"))
    new MutationObserver(() => window.redrawn.add(chart.id))
      .observe(chart.querySelector(".canvas"), {subtree: true, childList: true, attributes: true});
}"""

MEASURED = "() => performance.getEntriesByName('dprime-move').length"


def test_each_move_is_measured_once(visit):
    page = visit.open()
    before = page.evaluate(MEASURED)
    for position in (12, 13, 12):
        visit.slide("a-noise_multiplier", position)
    assert page.evaluate(MEASURED) == before + 3


def test_a_move_redraws_only_what_it_changes(visit):
    """Vega draws anew what it is handed: nothing is handed twice."""
    page = visit.open()
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
    page.wait_for_function(
        "last => Number(document.documentElement.dataset.drawn) >= last", arg=before + 31
    )
    page.wait_for_function(  # the address follows a little later
        "() => new URLSearchParams(location.search).get('noise_multiplier')"
        " === document.getElementById('a-noise_multiplier-exact').value"
    )
    shown, address = visit.numbers(), page.url
    slow = visit_as()
    slow.open(address[address.index("?") :])
    assert slow.numbers() == shown
    assert int(slow.page.input_value("#a-noise_multiplier")) == 35
