"""The list of runs with live progress, and the reports."""

import json
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from dprime.runs.run import Run


def row(page, name):
    return page.locator(f"tr[data-run='{name}']")


def looks(visit, wait=0):
    """How often the list was asked for by then."""
    visit.page.wait_for_timeout(wait)
    return sum("/api/runs" in url for url in visit.requests)


@pytest.fixture
def runs(visit):
    visit.page.goto(f"{visit.address}/?view=runs")
    row(visit.page, "finished.run").wait_for()
    return visit.page


def test_the_list_and_the_report(visit, runs, folder):
    with Run.open(folder / "finished.run") as store:
        trials, answer = store.state().total_trials, store.result
    told = row(runs, "finished.run").inner_text()
    for each in (f"1 of 1 block, {trials} trials", "complete", answer["sentence"]):
        assert each in told
    half = row(runs, "half.run")
    for each in ("2 of 4 blocks", "incomplete", "No report yet"):
        assert each in half.inner_text()
    bar = half.locator("progress")
    assert (bar.get_attribute("max"), bar.get_attribute("value")) == ("4", "2")
    assert "broken.run" in runs.inner_text("#not-runs")
    visit.shot("runs")
    runs.get_by_role("link", name="Report of finished.run").click()
    runs.wait_for_url(lambda url: url.endswith("/runs/finished.run/report"))
    assert answer["verdict"]["outcome"] in runs.inner_text("body")
    assert runs.locator("h1").count() == 1
    visit.shot("report")


def test_progress_is_live(visit, runs, folder):
    settings = {"adversary": "gradient", "data": "digits", "seed": 4}
    place = folder / "live.run"
    try:
        with Run.create(place, "audit", settings, blocks=3) as store, store.working():
            live = row(runs, "live.run")
            live.wait_for()
            assert "0 of 3 blocks" in live.inner_text()
            assert "running" in live.inner_text()
            for block in range(3):
                store.finish(block, {"scores": np.zeros(5)}, seconds=0.1)
                live.get_by_text(f"{block + 1} of 3 blocks, {5 * (block + 1)} trials").wait_for()
                assert live.locator("progress").get_attribute("value") == str(block + 1)
                if block == 1:
                    visit.shot("runs-live")
        live.get_by_text("complete", exact=True).wait_for()
    finally:
        for path in folder.glob("live.run*"):
            path.unlink()
    live.wait_for(state="detached")


SEEN = """(state) => {
  Object.defineProperty(document, "visibilityState", {value: state, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_nobody_asks_while_nobody_watches_and_the_focus_stays(visit):
    page = visit.open()
    assert looks(visit, 2500) == 0
    page.get_by_role("link", name="Runs", exact=True).click()
    row(page, "finished.run").wait_for()
    page.get_by_role("link", name="Report of finished.run").focus()
    before = looks(visit)
    assert looks(visit, 4500) >= before + 2
    assert page.evaluate("() => document.activeElement.textContent") == "Report"
    page.evaluate(SEEN, "hidden")
    before = looks(visit, 300)
    assert looks(visit, 2500) == before
    page.evaluate(SEEN, "visible")
    assert looks(visit, 300) == before + 1
    page.get_by_role("link", name="Risks", exact=True).click()
    before = looks(visit, 300)
    assert looks(visit, 2500) == before


def test_the_card_is_handed_over_as_a_file(visit, runs):
    with runs.expect_download() as handed:
        runs.get_by_role("link", name="Card of finished.run").click()
    assert handed.value.suggested_filename == "finished.run-card.json"
    card = json.loads(Path(handed.value.path()).read_text())
    with urllib.request.urlopen(f"{visit.address}/api/runs/finished.run/card") as response:
        assert card == json.load(response)


def test_a_silent_server_is_said(visit, runs):
    visit.expected = ["net::ERR_FAILED"]
    runs.route("**/api/runs", lambda route: route.abort())
    runs.get_by_text("The explorer does not answer").wait_for()
    assert row(runs, "finished.run").is_visible(), "the last list stays"
    runs.unroute("**/api/runs")
    runs.locator("#runs-notice").wait_for(state="hidden")
