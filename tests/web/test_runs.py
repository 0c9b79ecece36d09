"""The folder of runs: what is listed, while it goes on, and what can be reached."""

import json
import os
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import numpy as np
import pytest

from dprime.audit import record_of
from dprime.runs.folder import summary_of
from dprime.runs.run import Run
from dprime.show.card import card
from dprime.show.report import report_html
from dprime.web.app import create_app
from dprime.web.runs import LINE, LISTED, LONGEST, RunList, Runs, UnknownRunError
from dprime.web.workers import Workers
from specimens.make import copy_of

SCORES = {"score": np.arange(4.0)}


def begun(path, *, blocks=3, done=1, **settings):
    settings = {"adversary": "di", "data": "digits", "seed": 1, **settings}
    with Run.create(path, "audit", settings, blocks) as store:
        for block in range(done):
            store.finish(block, SCORES, seconds=0.1)
    return path


def names(folder):
    return [run.name for run in Runs(folder).listed().runs]


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "runs"
    place.mkdir()
    return place


@pytest.fixture
def ask(caller):
    """What an explorer of a folder answers."""
    return lambda folder, address: type(caller)(create_app(folder, workers=0)).get(address)


def test_a_run_is_listed_with_its_progress(folder):
    assert Runs(folder).listed() == RunList([], {})
    begun(folder / "half.run")
    (line,) = Runs(folder).listed().runs
    found = asdict(line)
    assert found.pop("changed").endswith("+00:00")
    assert found == {
        "name": "half.run", "adversary": "di", "data": "digits", "blocks": 3, "done": 1,
        "total_trials": 4, "state": "incomplete", "verdict": None, "sentence": None,
            "report": False,
    }  # fmt: skip


def test_progress_is_live_and_keeps_no_writer_waiting(folder):
    runs, path = Runs(folder), begun(folder / "live.run", done=0)
    with Run.open(path) as store:
        with store.working():
            for block in range(3):
                store.finish(block, SCORES, seconds=0.1)
                (line,) = runs.listed().runs
                assert (line.done, line.state) == (block + 1, "running")
        assert runs.listed().runs[0].state == "complete"
        store.keep({"verdict": "not refuted", "sentence": "It holds."})
    (line,) = runs.listed().runs
    assert (line.verdict, line.sentence, line.report) == ("not refuted", "It holds.", False)


def test_an_unchanged_run_is_not_read_again(folder, monkeypatch):
    begun(folder / "a.run")
    runs = Runs(folder)
    first = runs.listed()
    monkeypatch.setattr(Run, "open", lambda path: pytest.fail("it has not changed"))
    assert runs.listed() == first


def test_what_is_no_run_has_a_reason_without_the_folders_place(folder):
    (folder / "notes.txt").write_text("Try a stronger adversary.")  # nobody takes it for a run
    whole = begun(folder / "cut.run").read_bytes()
    (folder / "cut.run").write_bytes(whole[: len(whole) // 2])
    (folder / "sub").mkdir()
    found = Runs(folder).listed()
    ((name, reason),) = found.not_runs.items()
    assert (found.runs, name) == ([], "cut.run")
    assert reason.startswith(name)
    assert str(folder) not in reason


def test_the_runs_of_the_folder_of_runs_are_listed_by_their_place(folder, ask):
    begun(folder.parent / "beside.run")
    begun(folder / "half.run")
    listed = ask(folder.parent, "/api/runs").json["runs"]
    assert [each["name"] for each in listed] == ["beside.run", "runs/half.run"]
    assert "dprime resume" in ask(folder.parent, "/runs/runs%2Fhalf.run/report").detail


LONG = "x" * 10_000
FORGED = [("verdict", {"outcome": {"a": 1}}), ("adversary", {"name": LONG})]
FORGED += [(name, value) for name in ("verdict", "sentence") for value in ({}, [], 7, LONG)]


@pytest.mark.parametrize(("name", "value"), FORGED)
def test_whatever_a_run_file_says_the_list_is_one(folder, name, value):
    begun(folder / "good.run")
    (folder / "good.run.lock").write_bytes(b"no database" * 100)
    path = begun(folder / "forged.run", done=3, **{name: value} if name == "adversary" else {})
    with Run.open(path) as store:
        store.keep({name: value})
    forged, good = Runs(folder).listed().runs
    assert (good.name, good.state) == ("good.run", "incomplete")
    for text in (forged.verdict, forged.sentence, forged.adversary):
        assert text is None or len(text) <= LONGEST


def test_a_file_that_cannot_be_read_has_its_line_and_is_logged(folder, monkeypatch, caplog):
    begun(folder / "good.run")
    begun(folder / "odd.run", blocks=4)

    def breaks(run):
        if run.path.name == "odd.run":
            raise RuntimeError("a bug")
        return summary_of(run)

    monkeypatch.setattr("dprime.web.runs.summary_of", breaks)
    found = Runs(folder).listed()
    assert [run.name for run in found.runs] == ["good.run"]
    assert found.not_runs["odd.run"].startswith("odd.run cannot be read")
    assert "a bug" in caplog.text


@pytest.mark.slow
def test_a_file_that_is_locked_for_long_keeps_no_list_waiting(folder, monkeypatch):
    """Another program holds one file; it is told, and not tried again at every look."""
    monkeypatch.setattr("dprime.web.runs.LINE", LINE._replace(longest=0.5))
    begun(folder / "good.run")
    pool = Workers(1)
    held = sqlite3.connect(begun(folder / "held.run"), isolation_level=None)
    held.execute("PRAGMA locking_mode = EXCLUSIVE")
    held.execute("BEGIN EXCLUSIVE")
    runs = Runs(folder, pool)
    for _ in range(50):
        found = runs.listed()
        if "too long" in found.not_runs.get("held.run", ""):
            break
    assert [run.name for run in found.runs] == ["good.run"]
    began = time.monotonic()
    assert runs.listed() == found
    assert time.monotonic() - began < 0.4
    held.close()
    pool.stop()


def test_of_more_than_a_thousand_runs_the_newest_are_listed(folder):
    first = begun(folder / "run-0000.run", done=0).read_bytes()
    for number in range(1, 1_005):
        path = folder / f"run-{number:04}.run"
        path.write_bytes(first)
        os.utime(path, (number, number))
    found = Runs(folder).listed()
    assert (len(found.runs), found.left_out) == (LISTED, 5)
    assert [run.name for run in found.runs][:2] == ["run-0000.run", "run-0006.run"]


def test_a_list_that_takes_long_comes_in_parts(folder, monkeypatch):
    monkeypatch.setattr("dprime.web.runs.LISTING", 0.2)
    begun(folder / "a.run")
    held, thread = threading.Event(), ThreadPoolExecutor(1)

    class Held:
        def submit(self, _, function, value):
            return thread.submit(lambda: held.wait(5) and function(value))

    runs = Runs(folder, Held())
    assert runs.listed().not_runs == {"a.run": "a.run is being read: look again."}
    held.set()
    monkeypatch.setattr("dprime.web.runs.LISTING", 20.0)
    assert [run.name for run in runs.listed().runs] == ["a.run"]
    thread.shutdown()


def test_links_and_hidden_files_are_passed_over(folder, tmp_path):
    outside = begun(tmp_path / "outside.run")
    (folder / "runs").symlink_to(tmp_path)
    (folder / "link.run").symlink_to(outside)
    begun(folder / ".hidden.run")
    (folder / "twin.run").symlink_to(begun(folder / "inside.run"))
    assert names(folder) == ["inside.run"]
    for name in ("link.run", ".hidden.run", "twin.run", "runs/outside.run"):
        with pytest.raises(UnknownRunError):
            Runs(folder).report(name)


NAMES = [
    "..%2Foutside.run", "%2e%2e%2foutside.run", "..%5coutside.run", "..", ".", "%2e%2e",
    "%2Fetc%2Fpasswd", "inside.run%00", "inside.run%2f", "INSIDE.RUN", "sub%2Fdeep.run",
    "inside.run-wal", "inside.run.lock", "none.run", "a" * 3000, "%ff%fe", "*", "inside.ru?",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_no_path_leads_out_of_the_folder(folder, tmp_path, ask, name):
    (folder / "sub").mkdir()
    for path in (tmp_path / "outside.run", folder / "inside.run", folder / "sub" / "deep.run"):
        begun(path, done=3)
    for form in ("/api/runs/{}/card", "/runs/{}/report"):
        reply = ask(folder, form.format(name))
        assert (reply.status, str(tmp_path) in reply.body.decode()) == (404, False)


def test_the_report_of_a_run_that_goes_on_is_refused(folder, ask):
    begun(folder / "half.run")
    for address in ("/api/runs/half.run/card", "/runs/half.run/report"):
        reply = ask(folder, address)
        assert (reply.status, "dprime resume half.run" in reply.detail) == (422, True)
        assert str(folder) not in reply.detail


@pytest.fixture
def finished(folder, monkeypatch):
    """An audit that came to its end; how charts are drawn is tested with them."""
    monkeypatch.setattr("dprime.show.report.inline_svg", lambda chart: "<svg></svg>")
    return copy_of("finished", folder)


def test_the_report_and_the_card_of_a_finished_run(finished, folder, ask):
    (line,) = ask(folder, "/api/runs").json["runs"]
    record = record_of(finished)
    told = (line["state"], line["report"], line["sentence"])
    assert told == ("complete", True, record.sentence)
    shown = ask(folder, "/api/runs/finished.run/card")
    assert shown.json == json.loads(json.dumps(card(record)))
    report = ask(folder, "/runs/finished.run/report")
    assert (report.status, report.body.decode()) == (200, report_html(record))
    assert report.headers["content-type"] == "text/html; charset=utf-8"
    policy = report.headers["content-security-policy"]
    assert "script-src" not in policy
    assert "default-src 'none'; style-src 'unsafe-inline'" in policy
    assert "frame-ancestors 'none'" in policy


def test_a_report_is_written_once(finished, folder, monkeypatch):
    runs = Runs(folder)
    first = runs.report("finished.run")
    monkeypatch.setattr("dprime.show.report.report_html", lambda record: "<p>again</p>")
    assert runs.report("finished.run") == first
    os.utime(finished, (1, 1))
    assert runs.report("finished.run") == b"<p>again</p>"


def test_a_folder_that_vanishes_is_empty_and_one_that_is_not_there_refused(folder, caller):
    asked = type(caller)(create_app(folder, workers=0))
    folder.rmdir()
    assert asked.get("/api/runs").json == {"runs": [], "not_runs": {}, "left_out": 0}
    with pytest.raises(ValueError, match="folder must be a folder"):
        create_app(folder)
