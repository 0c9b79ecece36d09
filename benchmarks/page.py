"""How long does the explorer's page take from a move of a slider to the redrawn charts?

Claim: docs/explorer.md. Measured inside Chromium, to after the paint, over every slider: settings
that nobody has asked for, the same again, the same by another reader, and while the page chooses a
parameter. `make browser` installs what it needs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from benchmarks.timing import Found, explorer, spread_ms

START = "noise_multiplier=1.4&sample_rate=0.007&steps=5000"
CHOOSING = f"mode=choose&target=advantage&value=0.15&{START}"

TIMES = "() => performance.getEntriesByName('dprime-move').map((each) => each.duration)"
DRAWN = "() => Number(document.documentElement.dataset.drawn)"
MOVE = """(range, position) => {
  range.value = position;
  range.dispatchEvent(new Event("input", {bubbles: true}));
}"""


def measure(quick: bool) -> Found:
    with explorer() as (_, address), browsing() as browser:
        plain, choosing = f"{address}/?{START}", f"{address}/?{CHOOSING}"
        first = opened(browser, plain)
        found = {"cold": moves(first, quick), "remembered": moves(first, quick)}
        found["warm server"] = moves(opened(browser, plain), quick)
        found["choosing"] = moves(opened(browser, choosing), quick)
        drag = dragged(opened(browser, plain))
    return {**{kind: spread(times) for kind, times in found.items()}, "drag_ms": drag}


@contextmanager
def browsing() -> Iterator[Any]:
    """Chromium, as Debian has it."""
    with import_module("playwright.sync_api").sync_playwright() as playwright:
        chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


def opened(browser: Any, address: str) -> Any:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    for _ in range(100):  # the server may not be listening yet
        try:
            page.goto(address)
        except Exception:
            page.wait_for_timeout(100)
        else:
            break
    page.wait_for_function(f"() => ({DRAWN})() > 0")
    page.wait_for_timeout(500)
    return page


def moves(page: Any, quick: bool) -> dict[str, float]:
    """Seconds for every slider through a few positions on either side of where it stands."""
    sliders = page.eval_on_selector_all(
        "input[type=range]:not([disabled])",
        "all => all.filter((r) => r.offsetParent).map((r) => r.id)",
    )
    times = {}
    for slider in sliders[: 2 if quick else None]:
        start = int(page.input_value(f"#{slider}"))
        last = int(page.get_attribute(f"#{slider}", "max") or 0)
        for shift in (1, 2, 3, -1, -2, 4, -3, 0):
            if 0 <= start + shift <= last:
                times[f"{slider} {shift:+d}"] = moved(page, slider, start + shift)
    return times


def moved(page: Any, slider: str, position: int) -> float:
    before = page.evaluate(DRAWN)
    page.locator(f"#{slider}").evaluate(MOVE, position)
    page.wait_for_function(f"before => ({DRAWN})() > before", arg=before)
    return float(page.evaluate(TIMES)[-1]) / 1e3


def dragged(page: Any) -> float:
    """A quick hand over 31 positions: milliseconds from where it stops."""
    before = page.evaluate(DRAWN)
    for position in range(5, 36):
        page.locator("#a-noise_multiplier").evaluate(MOVE, position)
        page.wait_for_timeout(16)
    page.wait_for_function(f"last => ({DRAWN})() >= last", arg=before + 31)
    return round(float(page.evaluate(TIMES)[-1]), 1)


def spread(times: dict[str, float]) -> Found:
    """Of all moves, and which took longest."""
    worst = max(times, key=lambda each: times[each])
    return {"moves": len(times), **spread_ms([*times.values()]), "worst": worst}
