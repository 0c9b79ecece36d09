"""The folder of runs: what is listed, while it goes on, and what can be reached."""

import json
import os
from dataclasses import asdict

import numpy as np
import pytest

from dprime.runs.run import Run
from dprime.web.app import create_app
from dprime.web.runs import RunList, Runs, UnknownRunError
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
    assert asked.get("/api/runs").json == {"runs": [], "not_runs": {}}
