"""The report as a file: valid, small, and whole with the network off."""

import html.parser
import subprocess
import sys
import urllib.request

import pytest

from dprime.runs.run import Run

NEWER = "color-scheme|text-wrap|print-color-adjust"
"""Properties of CSS that are younger than the checker's own list."""


@pytest.fixture(scope="module")
def report(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("report") / "report.html"
    command = [sys.executable, "-m", "dprime", "report", folder / "finished.run", "--out", place]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return place


def test_the_checker_has_nothing_to_say(report, address, checker, tmp_path):
    """The Nu checker, on the report and on the explorer's page."""
    page = tmp_path / "explorer.html"
    page.write_bytes(urllib.request.urlopen(f"{address}/").read())
    done = subprocess.run(
        [checker, report, page, "--also-check-css", "--ignore-re", f'Property "({NEWER})"'],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.stdout + done.stderr, done.returncode) == ("", 0)


def test_it_is_small_and_whole_with_the_network_off(report, browser):
    assert report.stat().st_size < 3_000_000
    context = browser.new_context(offline=True)
    page = context.new_page()
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(report.as_uri())
    assert page.locator("h1").inner_text().startswith("The claim is not refuted")
    drawings = page.locator("figure svg:visible")
    assert drawings.count() >= 5
    for place in range(drawings.count()):
        assert drawings.nth(place).bounding_box()["height"] > 100
    assert asked == [report.as_uri()]
    assert complaints == []
    context.close()


class Numbers(html.parser.HTMLParser):
    """The exact numbers of a report, by their place in the card."""

    def __init__(self, text):
        super().__init__()
        self.found = {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag == "data" and "data-fact" in values:
            self.found[values["data-fact"]] = values["value"]


def test_its_numbers_are_the_stores(report, folder):
    numbers = Numbers(report.read_text(encoding="utf-8")).found
    with Run.open(folder / "finished.run") as store:
        answer = store.result
    assert float(numbers["verdict.metric.reached"]) == answer["verdict"]["reached"]
    assert float(numbers["verdict.metric.allowed"]) == answer["verdict"]["allowed"]


def test_the_same_page_as_pdf(folder, tmp_path):
    place = tmp_path / "report.pdf"
    command = [sys.executable, "-m", "dprime", "report", folder / "finished.run", "--pdf", place]
    out = ["--out", tmp_path / "report.html"]
    subprocess.run([*command, *out], check=True, capture_output=True, timeout=300)
    assert place.read_bytes().startswith(b"%PDF-")
    assert place.stat().st_size > 50_000
