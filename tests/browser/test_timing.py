"""From a move of a slider to the redrawn charts: measured inside the page, to after the paint."""

import statistics

MEDIAN, WORST = 100.0, 300.0
"""Milliseconds."""

TIMES = "() => performance.getEntriesByName('dprime-move').map((each) => each.duration)"


def positions(visit, slider):
    """A few positions on either side of where the slider stands, as a hand finds them."""
    start = int(visit.page.input_value(f"#{slider}"))
    last = int(visit.page.get_attribute(f"#{slider}", "max"))
    near = (start + 1, start + 2, start + 3, start - 1, start - 2, start + 4, start - 3, start)
    return [place for place in near if 0 <= place <= last]


def moves(visit):
    """Every slider through its positions; the time of each move by slider and position."""
    page = visit.page
    sliders = page.eval_on_selector_all(
        "input[type=range]:not([disabled])",
        "all => all.filter((r) => r.offsetParent).map((r) => r.id)",
    )
    times = {}
    for slider in sliders:
        for place in positions(visit, slider):
            before = len(page.evaluate(TIMES))
            visit.slide(slider, place)
            (times[slider, place],) = page.evaluate(TIMES)[before:]
    return times


def report(kind, times):
    ordered = sorted(times.values())
    slowest, place = max(times, key=times.get)
    print(
        f"\n{kind}: {len(times)} moves, median {statistics.median(ordered):.0f} ms, 95 % below "
        f"{ordered[int(0.95 * len(times))]:.0f} ms, worst {ordered[-1]:.0f} ms ({slowest}, {place})"
    )


def check(times):
    assert statistics.median(times.values()) < MEDIAN
    assert max(times.values()) < WORST


def test_moves_are_fast(visit_as):
    visit = visit_as()
    visit.open("?noise_multiplier=1.4&sample_rate=0.007&steps=5000")
    visit.page.wait_for_timeout(500)
    cold = moves(visit)
    again = moves(visit)
    visit = visit_as()
    visit.open("?noise_multiplier=1.4&sample_rate=0.007&steps=5000")
    warm = moves(visit)
    for kind, times in (("cold", cold), ("warm server", warm), ("remembered", again)):
        report(kind, times)
    assert len(cold) >= 60
    for times in (cold, warm, again):
        check(times)


def test_moves_are_fast_while_choosing(visit):
    visit.open("?mode=choose&target=advantage&value=0.15&steps=5000&sample_rate=0.007")
    visit.page.wait_for_timeout(500)
    times = moves(visit)
    report("choosing", times)
    assert len(times) >= 40
    check(times)


def test_a_quick_hand_ends_where_it_stops(visit):
    page = visit.open()
    before = visit.drawn()
    for position in range(5, 36):
        visit.slide_only("a-noise_multiplier", position)
        page.wait_for_timeout(16)
    page.wait_for_function(
        "last => Number(document.documentElement.dataset.drawn) >= last", arg=before + 31
    )
    last = page.evaluate(TIMES)[-1]
    print(f"\nafter a drag over 31 positions: {last:.0f} ms")
    assert last < WORST
