"""The list of runs with live progress, and the reports."""

import json
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from dprime.runs.run import Run


def row(page, name):
    return page.locator(f"tr[data-run='{name}']")


def looks(visit):
    return sum("/api/runs" in url for url in visit.requests)


@pytest.fixture
def runs(visit):
    visit.page.goto(f"{visit.address}/?view=runs")
    row(visit.page, "finished.run").wait_for()
    return visit.page


def test_the_list(visit, runs, folder):
    with Run.open(folder / "finished.run") as store:
        trials = store.state().total_trials
    assert f"1 of 1 block, {trials} trials" in row(runs, "finished.run").inner_text()
    assert "complete" in row(runs, "finished.run").inner_text()
    half = row(runs, "half.run")
    assert "2 of 4 blocks" in half.inner_text()
    assert "incomplete" in half.inner_text()
    bar = half.locator("progress")
    assert (bar.get_attribute("max"), bar.get_attribute("value")) == ("4", "2")
    assert "No report yet" in half.inner_text()
    assert "broken.run" in runs.inner_text("#not-runs")
    visit.shot("runs")


def test_the_finding_is_the_one_that_was_kept(runs, folder):
    with Run.open(folder / "finished.run") as store:
        sentence = store.result["sentence"]
    assert sentence in row(runs, "finished.run").inner_text()


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


def test_the_focus_stays_while_the_list_is_looked_at_again(visit, runs):
    runs.get_by_role("link", name="Report of finished.run").focus()
    before = looks(visit)
    runs.wait_for_timeout(4500)
    assert looks(visit) >= before + 2
    assert runs.evaluate("() => document.activeElement.textContent") == "Report"


def test_nobody_asks_while_nobody_watches(visit):
    page = visit.open()
    page.wait_for_timeout(2500)
    assert looks(visit) == 0
    page.get_by_role("link", name="Runs", exact=True).click()
    row(page, "finished.run").wait_for()
    page.evaluate(
        """() => {
          Object.defineProperty(document, "visibilityState", {value: "hidden", configurable: true});
          document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    page.wait_for_timeout(300)
    before = looks(visit)
    page.wait_for_timeout(2500)
    assert looks(visit) == before
    page.evaluate(
        """() => {
          delete document.visibilityState;
          document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    page.wait_for_timeout(300)
    assert looks(visit) == before + 1
    page.get_by_role("link", name="Risks", exact=True).click()
    page.wait_for_timeout(300)
    before = looks(visit)
    page.wait_for_timeout(2500)
    assert looks(visit) == before


def test_the_report_opens(visit, runs, folder):
    runs.get_by_role("link", name="Report of finished.run").click()
    runs.wait_for_url(lambda url: url.endswith("/runs/finished.run/report"))
    with Run.open(folder / "finished.run") as store:
        answer = store.result
    assert answer["verdict"]["outcome"] in runs.inner_text("body")
    assert runs.locator("h1").count() == 1
    visit.shot("report")


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
