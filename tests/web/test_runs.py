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

from dprime.runs.folder import summary_of
from dprime.runs.run import Run
from dprime.web.app import create_app
from dprime.web.runs import LINE, LISTED, LONGEST, RunList, Runs, UnknownRunError
from dprime.web.workers import Workers
from specimens.make import copy_of

SCORES = {"score": np.arange(4.0)}


def begun(path, *, blocks=3, done=1, **settings):
    with Run.create(
        path, "audit", {"adversary": "di", "data": "digits", "seed": 1, **settings}, blocks
    ) as s:
        for block in range(done):
            s.finish(block, SCORES, seconds=0.1)
    return path


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "runs"
    place.mkdir()
    return place


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with an audit that came to its end."""
    return copy_of("finished", tmp_path_factory.mktemp("finished")).parent


def test_an_empty_folder(folder):
    assert Runs(folder).listed() == RunList([], {})


def test_a_run_is_listed_with_its_progress(folder):
    begun(folder / "half.run")
    (line,) = Runs(folder).listed().runs
    found = asdict(line)
    assert found.pop("changed").endswith("+00:00")
    assert found == {
        "name": "half.run", "adversary": "di", "data": "digits", "blocks": 3, "done": 1,
        "total_trials": 4, "state": "incomplete", "verdict": None, "sentence": None,
            "report": False,
    }  # fmt: skip


def test_progress_is_live_while_somebody_writes(folder):
    runs, path = Runs(folder), begun(folder / "live.run", done=0)
    with Run.open(path) as store, store.working():
        seen = []
        for block in range(3):
            store.finish(block, SCORES, seconds=0.1)
            (line,) = runs.listed().runs
            seen.append((line.done, line.state))
        assert seen == [(1, "running"), (2, "running"), (3, "running")]
    (line,) = runs.listed().runs
    assert (line.done, line.state) == (3, "complete")


def test_looking_does_not_keep_a_writer_waiting(folder):
    path = begun(folder / "live.run", done=0)
    runs = Runs(folder)
    runs.listed()
    with Run.open(path) as store:
        store.finish(0, SCORES, seconds=0.1)
        runs.listed()
        store.finish(1, SCORES, seconds=0.1)
        assert store.done() == [0, 1]


def test_an_answer_that_is_kept_later_is_seen(folder):
    path = begun(folder / "a.run", done=3)
    runs = Runs(folder)
    assert runs.listed().runs[0].verdict is None
    with Run.open(path) as store:
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
    (folder / "notes.txt").write_text("Try a stronger adversary.")
    begun(folder / "cut.run")
    whole = (folder / "cut.run").read_bytes()
    (folder / "cut.run").write_bytes(whole[: len(whole) // 2])
    (folder / "sub").mkdir()
    found = Runs(folder).listed()
    assert found.runs == []
    assert set(found.not_runs) == {"cut.run"}  # nobody takes a note for a run
    for name, reason in found.not_runs.items():
        assert reason.startswith(name)
        assert str(folder) not in reason


def test_the_runs_of_the_folder_of_runs_are_listed_by_their_place(folder, caller):
    begun(folder.parent / "beside.run")
    begun(folder / "half.run")
    asked = type(caller)(create_app(folder.parent, workers=0))
    listed = asked.get("/api/runs").json["runs"]
    assert [each["name"] for each in listed] == ["beside.run", "runs/half.run"]
    reply = asked.get("/runs/runs%2Fhalf.run/report")
    assert (reply.status, "dprime resume" in reply.detail) == (422, True)


FORGED = {
    "verdict": [{}, [], 7, "x" * 10_000, {"outcome": {"a": 1}}],
    "sentence": [{}, [], 7, "x" * 10_000],
    "adversary": [{"name": "x" * 10_000}],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, all_ in FORGED.items() for v in all_])
def test_whatever_a_run_file_says_the_list_is_one(folder, name, value):
    begun(folder / "good.run")
    path = begun(folder / "forged.run", done=3, **{name: value} if name == "adversary" else {})
    with Run.open(path) as store:
        store.keep({name: value})
    forged, good = Runs(folder).listed().runs
    assert good.name == "good.run"
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


def test_a_forged_lock_takes_nothing_down(folder):
    begun(folder / "good.run")
    (folder / "good.run.lock").write_bytes(b"no database" * 100)
    assert [run.state for run in Runs(folder).listed().runs] == ["incomplete"]


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


def test_a_thousand_runs_and_more_are_listed_the_newest(folder, monkeypatch):
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
        submit = staticmethod(lambda _, function, value: thread.submit(one_by_one, function, value))

    def one_by_one(function, value):
        held.wait(5)
        return function(value)

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
    inside = begun(folder / "inside.run")
    (folder / "twin.run").symlink_to(inside)
    assert [run.name for run in Runs(folder).listed().runs] == ["inside.run"]
    for name in ("link.run", ".hidden.run", "twin.run", "runs/outside.run"):
        with pytest.raises(UnknownRunError):
            Runs(folder).report(name)


NAMES = [
    "..%2Foutside.run", "%2e%2e%2foutside.run", "..%5coutside.run", "..", ".", "%2e%2e",
    "%2Fetc%2Fpasswd", "inside.run%00", "inside.run%2f", "INSIDE.RUN", "sub%2Fdeep.run",
    "inside.run-wal", "inside.run.lock", "none.run", "a" * 3000, "%ff%fe", "*", "inside.ru?",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["/api/runs/{}/card", "/runs/{}/report"])
def test_no_path_leads_out_of_the_folder(folder, tmp_path, caller, name, form):
    begun(tmp_path / "outside.run", done=3)
    begun(folder / "inside.run", done=3)
    (folder / "sub").mkdir()
    begun(folder / "sub" / "deep.run", done=3)
    reply = type(caller)(create_app(folder, workers=0)).get(form.format(name))
    assert reply.status == 404
    assert str(tmp_path) not in reply.body.decode()


def test_the_report_of_a_run_that_goes_on_is_refused(folder, caller):
    begun(folder / "half.run")
    asked = type(caller)(create_app(folder, workers=0))
    for address in ("/api/runs/half.run/card", "/runs/half.run/report"):
        reply = asked.get(address)
        assert reply.status == 422
        assert "dprime resume half.run" in reply.detail
        assert str(folder) not in reply.detail


@pytest.fixture
def undrawn(monkeypatch):
    """How charts are drawn is tested with them."""
    monkeypatch.setattr("dprime.show.report.inline_svg", lambda chart: "<svg></svg>")


def test_the_report_and_the_card_of_a_finished_run(finished, caller, undrawn):
    from dprime.audit import record_of
    from dprime.show.card import card
    from dprime.show.report import report_html

    asked = type(caller)(create_app(finished, workers=0))
    (line,) = asked.get("/api/runs").json["runs"]
    assert (line["state"], line["report"]) == ("complete", True)
    facts = record_of(finished / "finished.run")
    assert line["sentence"] == facts.sentence
    shown = asked.get("/api/runs/finished.run/card")
    assert shown.json == json.loads(json.dumps(card(facts)))
    report = asked.get("/runs/finished.run/report")
    assert report.status == 200
    assert report.headers["content-type"] == "text/html; charset=utf-8"
    assert report.body.decode() == report_html(facts)
    policy = report.headers["content-security-policy"]
    assert "script-src" not in policy
    assert "default-src 'none'; style-src 'unsafe-inline'" in policy
    assert "frame-ancestors 'none'" in policy


def test_a_report_is_written_once(finished, monkeypatch, undrawn):
    import dprime.show.report as reports

    runs = Runs(finished)
    first = runs.report("finished.run")
    monkeypatch.setattr(reports, "report_html", lambda facts: pytest.fail("it has not changed"))
    assert runs.report("finished.run") == first
    os.utime(finished / "finished.run", (1, 1))
    monkeypatch.setattr(reports, "report_html", lambda facts: "<p>again</p>")
    assert runs.report("finished.run") == b"<p>again</p>"


def test_a_folder_that_vanishes_is_empty(folder, caller):
    asked = type(caller)(create_app(folder, workers=0))
    folder.rmdir()
    assert asked.get("/api/runs").json == {"runs": [], "not_runs": {}, "left_out": 0}
