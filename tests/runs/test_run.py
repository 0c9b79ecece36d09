"""A run: its blocks, events and result; what is created, opened and refused."""

import contextlib
import json
import sqlite3
from datetime import UTC, datetime

import numpy as np
import pytest

import dprime
from blocks import CONFIG, assert_holds, joined, refused, scores
from dprime.runs import run_file
from dprime.runs.folder import list_runs
from dprime.runs.run import Run
from dprime.runs.states import State, Worker


def test_a_new_run_is_whole(path, run):
    with Run.open(path) as opened:
        assert (opened.kind, opened.config, opened.seed) == ("audit", CONFIG, 7)
        assert opened.versions["dprime"] == dprime.__version__
        assert 0 <= (datetime.now(UTC) - opened.created).total_seconds() < 60
        assert (opened.pending(), opened.done(), opened.arrays()) == ([0, 1, 2, 3], [], {})
        assert (opened.result, opened.request, opened.noted("about")) == (None, None, None)
        assert opened.state() == State(4, 0, 0, 4, 0, None)
        assert (opened.events(), opened.workers()) == ([], {})
    assert run.path == path


def test_the_file_says_what_it_is_and_keeps_its_promise_to_the_disk(path, run):
    with contextlib.closing(sqlite3.connect(path)) as read:
        pragmas = ("application_id", "user_version", "journal_mode")
        said = [read.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
        (text,) = read.execute("SELECT value FROM about WHERE name = 'config'").fetchone()
    assert (said, json.loads(text)) == ([run_file.APPLICATION, 2, "wal"], CONFIG)
    assert run._db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_a_seed_is_drawn_kept_or_a_secret(tmp_path):
    runs = [Run.create(tmp_path / name, "audit", {}, blocks=1) for name in "abc"]
    assert len({run.seed for run in runs}) == 3
    with Run.create(tmp_path / "d", "frontier", {"seed": None}, blocks=1) as run, refused("seed"):
        _ = run.seed


def test_blocks_end_in_any_order_and_are_joined_in_theirs(path, run):
    for block in (2, 0, 3):
        run.finish(block, scores(block), seconds=0.5)
    with Run.open(path) as opened:
        assert (opened.done(), opened.pending()) == ([0, 2, 3], [1])
        assert opened.state() == State(4, 3, 0, 1, 12, None)
        assert_holds(opened, joined([0, 2, 3]))
        later = opened.arrays(since=1)  # the first that was finished is block 2
        np.testing.assert_array_equal(later["scores"], joined([0, 3])["scores"])
        assert opened.arrays(since=3) == {}


def test_arrays_come_back_bit_for_bit(run):
    arrays = {
        "a name/with signs": np.array([np.nan, np.inf]),
        "small": np.array([-0.0, 5e-324]),
        "order": np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)),
        "wide": np.zeros((2, 0), dtype=np.float32),
        "text": np.array(["a", "bc"]),
    }
    run.finish(0, arrays, seconds=0.0)
    for name, found in run.arrays().items():
        assert (found.dtype, found.tobytes()) == (arrays[name].dtype, arrays[name].tobytes())


def test_failed_blocks_wait_behind_those_never_tried(run):
    run.fail(0, "ValueError: no")
    run.fail(2, "ValueError: still no")
    run.finish(1, scores(1), seconds=1.0)
    assert run.pending() == [3, 0, 2]
    assert run.state() == State(4, 1, 2, 1, 4, "ValueError: still no")
    run.fail(0, "OSError: yet another \udcff reason")
    assert run.state().last_error == "OSError: yet another ? reason"
    run.finish(0, scores(0), seconds=1.0)
    assert run.state() == State(4, 2, 1, 1, 8, "ValueError: still no")


def test_events_and_workers_are_added_to(run):
    for block, seconds, worker in ((1, 2.0, "a"), (2, 1.5, "a"), (0, 1.0, "b")):
        run.finish(block, scores(block), seconds, worker)
    run.fail(3, "its process died", "lost with its worker", "b")
    (event,) = run.events()
    assert (event.block, event.outcome, event.worker) == (3, "lost with its worker", "b")
    workers = {name: (w.blocks, w.trials, w.seconds) for name, w in run.workers().items()}
    assert workers == {"a": (2, 8, 3.5), "b": (1, 4, 1.0)}
    assert Worker(1, 4, 2.0).speed == 2


def test_only_the_latest_failures_are_kept(path, monkeypatch):
    monkeypatch.setattr("dprime.runs.run_file.MOST_EVENTS", 20)
    with Run.create(path, "audit", {}, blocks=30) as run:
        for block in range(30):
            run.fail(block, f"no {block:02}")
        assert [event.message for event in run.events()] == [f"no {n:02}" for n in range(10, 30)]


def test_a_finished_block_is_never_replaced_and_there_are_no_others(run):
    run.finish(1, scores(1), seconds=1.0)
    for change in (lambda: run.finish(1, scores(2), 1.0), lambda: run.fail(1, "too late")):
        with refused("not yet done, but it is done"):
            change()
    assert_holds(run, joined([1]))
    assert run.events() == []
    for change in (lambda: run.finish(4, scores(4), 1.0), lambda: run.fail(-1, "x")):
        with refused("between 0 and 3, but it is"):
            change()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, r"NumPy arrays of trials, without objects, but they are \{\}"),
        (np.zeros(3), "NumPy arrays of trials"),
        ({"a": [1.0]}, r"NumPy arrays of trials, .* they are \{'a': \[1.0\]\}"),
        ({"a": np.array(1.0)}, "NumPy arrays of trials"),
        ({"a": np.array([None])}, "NumPy arrays of trials"),
        ({"a": np.zeros(2), "b": np.zeros(3)}, "of one length, the block's trials"),
        ({"a": np.broadcast_to(0.0, (120_000_000,))}, "at most 900,000,000 bytes"),
        ({"a": np.zeros(3, dtype=np.float32)}, r"like those of block 0, a <f8\[trial\]"),
        ({"a": np.zeros((3, 2))}, "like those of block 0"),
        ({"b": np.zeros(3)}, "like those of block 0"),
        ({"a": np.zeros(3), "more": np.zeros(3)}, "like those of block 0"),
    ],
)
def test_arrays_that_cannot_be_stored_or_joined(run, arrays, message):
    run.finish(0, {"a": np.zeros(5)}, seconds=0.0)
    with refused(message):
        run.finish(1, arrays, seconds=0.0)
    assert run.pending() == [1, 2, 3]


def test_the_result(path, run):
    run.keep({"epsilon": 1.5, "verdict": "stands"})
    run.keep({"epsilon": None, "verdict": "δ′"})
    with Run.open(path) as opened:
        assert opened.result == {"epsilon": None, "verdict": "δ′"}
    with refused("made of JSON values"):
        run.keep({"epsilon": float("inf")})


@pytest.mark.parametrize(
    ("kind", "config", "blocks", "message"),
    [
        ("audit", {}, 1_000_001, "at most 1,000,000, but it is 1000001"),
        ("audit", {"a": {1, 2}}, 2, "made of JSON values, but it is not"),
        ("audit", {"seed": -1}, 2, "a whole number from 0 to 2.256 - 1"),
        ("audit", {}, 0, "at least 1, but it is 0"),
        ("race", {}, 1, "one of audit, inference, frontier, models"),
    ],
)
def test_runs_that_cannot_be_created(tmp_path, kind, config, blocks, message):
    with refused(message):
        Run.create(tmp_path / "a.run", kind, config, blocks=blocks)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_taken(path, run):
    other = path.with_name("notes.txt")
    other.write_text("mine")
    for place in (path, other):
        with refused("the name of no file yet, but it is"):
            Run.create(place, "audit", {}, blocks=1)
    assert run.config == CONFIG
    assert other.read_text() == "mine"
    assert not other.with_name("notes.txt.lock").exists()


@pytest.mark.parametrize(
    ("kind", "config", "blocks", "words"),
    [
        ("audit", CONFIG | {"trials": 5}, 4, r"settings \(trials 5\), but it is of no trials"),
        ("audit", CONFIG | {"seed": 8}, 4, r"settings \(another seed\), but it is of another seed"),
        ("audit", CONFIG | {"data": {"name": "digits", "records": 9}}, 4, "of data records 100"),
        ("audit", {"seed": 7}, 4, "of adversary gradient, data name digits and data records 100"),
        ("audit", CONFIG, 5, r"\(blocks 5\), but it is of blocks 4"),
        ("frontier", CONFIG, 4, r"\(kind frontier\), but it is of kind audit"),
    ],
)
def test_other_settings_than_those_of_the_run(path, run, kind, config, blocks, words):
    run.finish(0, scores(0), seconds=1.0)
    with refused(words):
        Run.open_or_create(path, kind, config, blocks)
    assert run.done() == [0]


def test_the_same_settings_open_the_run(path):
    solved = {"noise": [5.924370, 1.0], "points": [{"noise": 5.924370}], "seed": 1 << 200}
    with Run.open_or_create(path, "frontier", solved, 2) as run:
        run.finish(0, scores(0), seconds=1.0)
    elsewhere = 5.924370 * (1 + 1e-12)  # solved on another machine
    again = {**solved, "noise": (elsewhere, 1.0), "points": [{"noise": elsewhere}]}
    with Run.open_or_create(path, "frontier", again, 2, request={"words": "of it"}) as run:
        assert (run.done(), run.request) == ([0], {"words": "of it"})
    noise = [{"noise": [5.924371, 1.0]}, {"noise": [5.924370]}, {"points": [{"noise": 5.924371}]}]
    for apart in (*noise, {"seed": (1 << 200) + 1}):
        with refused("of the same settings"):
            Run.open_or_create(path, "frontier", {**solved, **apart}, 2)


def test_without_a_path_the_run_is_gone_when_it_is_closed():
    with Run.open_or_create(None, "audit", CONFIG, 1) as run:
        run.finish(0, scores(0), seconds=1.0)
        folder = run.path.parent
    assert not folder.exists()


def test_the_state_is_that_of_the_rows_while_blocks_end(path):
    rng = np.random.default_rng(0)
    with Run.create(path.with_name("many.run"), "audit", {"seed": 1}, blocks=30) as run:
        with run.working():
            for _ in range(60):
                pending = run.pending()
                block = int(rng.choice(pending))
                if rng.random() < 0.4:
                    run.fail(block, f"reason {rng.integers(5)}")
                elif len(pending) > 1:
                    run.finish(block, {"scores": np.zeros(3)}, seconds=0.1)
                with Run.open(run.path, verify=False) as other:
                    assert run.state() == other.state()
        assert run.state().failed


def test_runs_of_a_folder(tmp_path):
    def made(name, kind, config, blocks, done=0, failed=()):
        with Run.create(tmp_path / name, kind, config, blocks=blocks) as run:
            for block in range(done):
                run.finish(block, scores(block), seconds=1.0)
            for block in failed:
                run.fail(block, "ValueError: no")
            return run.changed()

    changed = made("c.run", "audit", CONFIG, 2, done=2)
    made("b.run", "inference", {"data": "adult"}, 3, done=1, failed=[1])
    made("d.run", "audit", {}, 1, failed=[0])
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "cut.run").write_bytes((tmp_path / "c.run").read_bytes()[:9000])
    (tmp_path / "folder").mkdir()
    (tmp_path / "runs").mkdir()
    made("runs/c.run", "audit", CONFIG, 1)
    found, others = list_runs(tmp_path)
    assert [(r.name, r.kind, r.adversary, r.data, r.done, r.blocks, r.state) for r in found] == [
        ("b.run", "inference", "membership inference", "adult", 1, 3, "incomplete"),
        ("c.run", "audit", "gradient", "digits", 2, 2, "complete"),
        ("d.run", "audit", "", "", 0, 1, "failed"),
        ("runs/c.run", "audit", "gradient", "digits", 0, 1, "incomplete"),
    ]
    assert found[1].changed == changed
    assert list(others) == ["cut.run"]
    assert "damaged" in others["cut.run"]
    with refused("a folder, but it is"):
        list_runs(tmp_path / "notes.txt")
