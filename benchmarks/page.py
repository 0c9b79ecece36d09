"""How long the explorer's page takes from a move of a slider to the redrawn charts.

    python benchmarks/page.py [--out FILE]

Measured inside Chromium, to after the paint, over every slider: settings that nobody has asked for,
the same again, the same by another reader, and while the page chooses a parameter. `make browser`
installs what it needs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

LOAD = os.getloadavg()[0]
"""Of the machine, before anything was asked: above 0.5, others are at work."""

START = "noise_multiplier=1.4&sample_rate=0.007&steps=5000"
CHOOSING = f"mode=choose&target=advantage&value=0.15&{START}"

TIMES = "() => performance.getEntriesByName('dprime-move').map((each) => each.duration)"
DRAWN = "() => Number(document.documentElement.dataset.drawn)"
MOVE = """(range, position) => {
  range.value = position;
  range.dispatchEvent(new Event("input", {bubbles: true}));
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    options = parser.parse_args()
    with served() as address, browsing() as browser:
        found = measure(address, browser)
    found = {"cores": len(os.sched_getaffinity(0)), "load_before": round(LOAD, 2), **found}
    print(json.dumps(found, indent=1))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


@contextmanager
def served() -> Iterator[str]:
    """The explorer in a process of its own; its address."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "dprime", "explore", folder, "--port", "0"]
        process = subprocess.Popen(
            [*command, "--no-browser", "--json"], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["address"].rstrip("/")
        finally:
            process.terminate()
            process.wait()


@contextmanager
def browsing() -> Iterator[Browser]:
    """Chromium, as Debian has it."""
    with sync_playwright() as playwright:
        chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


def measure(address: str, browser: Browser) -> dict[str, Any]:
    """Milliseconds of each kind of move."""
    first = opened(browser, f"{address}/?{START}")
    found = {"cold": moves(first), "remembered": moves(first)}
    found["warm server"] = moves(opened(browser, f"{address}/?{START}"))
    found["choosing"] = moves(opened(browser, f"{address}/?{CHOOSING}"))
    drag = opened(browser, f"{address}/?{START}")
    return {**{kind: spread(times) for kind, times in found.items()}, "drag_ms": dragged(drag)}


def opened(browser: Browser, address: str) -> Page:
    """The page, once everything is drawn."""
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


def moves(page: Page) -> dict[str, float]:
    """Every slider through a few positions on either side of where it stands."""
    sliders = page.eval_on_selector_all(
        "input[type=range]:not([disabled])",
        "all => all.filter((r) => r.offsetParent).map((r) => r.id)",
    )
    times = {}
    for slider in sliders:
        start = int(page.input_value(f"#{slider}"))
        last = int(page.get_attribute(f"#{slider}", "max") or 0)
        for shift in (1, 2, 3, -1, -2, 4, -3, 0):
            if 0 <= start + shift <= last:
                times[f"{slider} {shift:+d}"] = moved(page, slider, start + shift)
    return times


def moved(page: Page, slider: str, position: int) -> float:
    """One move, to the end."""
    before = page.evaluate(DRAWN)
    page.locator(f"#{slider}").evaluate(MOVE, position)
    page.wait_for_function(f"before => ({DRAWN})() > before", arg=before)
    return float(page.evaluate(TIMES)[-1])


def dragged(page: Page) -> float:
    """A quick hand over 31 positions: from where it stops."""
    before = page.evaluate(DRAWN)
    for position in range(5, 36):
        page.locator("#a-noise_multiplier").evaluate(MOVE, position)
        page.wait_for_timeout(16)
    page.wait_for_function(f"last => ({DRAWN})() >= last", arg=before + 31)
    return round(float(page.evaluate(TIMES)[-1]), 1)


def spread(times: dict[str, float]) -> dict[str, Any]:
    """Median, 95th percentile and worst."""
    ordered = sorted(times.values())
    return {
        "moves": len(ordered),
        "median_ms": round(statistics.median(ordered), 1),
        "percentile_95_ms": round(ordered[int(0.95 * (len(ordered) - 1))], 1),
        "worst_ms": round(ordered[-1], 1),
        "worst": max(times, key=lambda each: times[each]),
    }


if __name__ == "__main__":
    main()
