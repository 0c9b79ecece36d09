"""A run's file: nothing finished is lost, and whatever is wrong with it is one sentence."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import dprime
from dprime.runs import run_file
from dprime.runs.folder import list_runs, summary_of
from dprime.runs.run import Run
from dprime.runs.states import State, Worker

MANY = 2000
"""Trials that fill some pages of the file."""

CONFIG = {"adversary": "gradient", "data": {"name": "digits", "records": 100}, "seed": 7}


def scores(block, trials=4):
    draw = np.random.default_rng([7, block])
    return {"scores": draw.normal(size=(trials, 3)), "in_world": draw.random(trials) < 0.5}


def joined(blocks, trials=4):
    """What a run of these blocks must hold."""
    parts = [scores(block, trials) for block in blocks]
    return {name: np.concatenate([part[name] for part in parts]) for name in scores(0)}


def assert_holds(run, expected):
    found = run.arrays()
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


@pytest.fixture
def path(tmp_path):
    return tmp_path / "first.run"


@pytest.fixture
def run(path):
    with Run.create(path, "audit", CONFIG, blocks=4) as made:
        yield made


def refused(words):
    """One sentence with these words."""
    return pytest.raises(
        dprime.validate.InputError, match=rf"must (be|have) [^\n]*{words}[^\n]*\.$"
    )


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
    assert run.attempts(0) == 3
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
    monkeypatch.setattr("dprime.runs.run.MOST_EVENTS", 20)
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
    assert (run.attempts(1), run.events()) == (1, [])
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
        ("audit", CONFIG, 5, r"\(5 blocks\), but it is of 4 blocks"),
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


def test_creation_that_is_cut_off_leaves_no_run_and_is_no_obstacle(path, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            Run.create(path, "audit", CONFIG, blocks=2)
    assert list_runs(path.parent)[0] == []
    path.with_name("first.run.new").write_bytes(b"what a kill may leave")
    path.with_name("first.run.new-journal").write_bytes(b"and its journal")
    with Run.create(path, "audit", CONFIG, blocks=2) as run:
        assert run.pending() == [0, 1]
    assert sorted(p.name for p in path.parent.iterdir()) == ["first.run", "first.run.lock"]


def test_what_is_not_a_run(tmp_path):
    path = tmp_path / "scores.csv"
    for contents in (b"", b"x", b"a,b\n1,2\n" * 500, b"SQLite format 3\0"):
        path.write_bytes(contents)
        with refused("a dprime run, but it is something else"):
            Run.open(path)
        assert path.read_bytes() == contents
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE blocks (number)")
    sentences = {"other.db": "a dprime run", "": "is a folder", "no/where": "is not there"}
    for name, words in sentences.items():
        with refused(words):
            Run.open(tmp_path / name)


def test_a_run_of_another_format(path, run):
    run.close()
    for version, word in ((1, "an older"), (3, "a newer")):
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute(f"PRAGMA user_version = {version}")
        for verify in (True, False):
            with refused(f"of format 2, but it is of format {version}: read it with {word} dprime"):
                Run.open(path, verify=verify)


@pytest.fixture
def filled(path, run):
    """A run with some pages of arrays, closed; its bytes."""
    for block in range(3):
        run.finish(block, scores(block, MANY), 1.0, "a worker")
    run.fail(3, "ValueError: no")
    run.keep({"epsilon": 1.5})
    run.close()
    return path.read_bytes()


def test_a_file_that_was_cut_off(path, filled):
    for share in (0.02, 0.3, 0.5, 0.9, 0.999):
        path.write_bytes(filled[: int(share * len(filled))])
        for verify in (True, False)[: 1 + (share <= 0.9)]:  # SQLite reads a part of a page
            with refused("a whole run, but it is damaged"):
                Run.open(path, verify=verify)


@pytest.mark.parametrize("count", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_garbage_anywhere_is_noticed_or_harmless(path, filled, count):
    """Whatever 64 bytes are overwritten, a run that opens holds what was put in."""
    draw, noticed = np.random.default_rng(5), 0
    for number, start in enumerate(draw.integers(0, len(filled) - 64, size=count)):
        path.write_bytes(filled[:start] + draw.bytes(64) + filled[start + 64 :])
        for verify in (True, False)[: 1 + (number % 4 == 0)]:
            try:
                with Run.open(path, verify=verify) as run:
                    assert (run.config, run.result, run.seed) == (CONFIG, {"epsilon": 1.5}, 7)
                    if verify:
                        assert run.done() == [0, 1, 2]
                        assert [event.message for event in run.events()] == ["ValueError: no"]
                        assert run.workers()["a worker"].blocks == 3
                    if run.done() == [0, 1, 2]:  # what is read is checked
                        assert_holds(run, joined(range(3), MANY))
            except ValueError as error:
                noticed += verify
                if "must be a whole run, but it is damaged" not in str(error):
                    raise
    assert noticed > 0.75 * count  # nearly all of the file is in use


def test_one_changed_number_in_a_block_is_noticed(path, filled):
    old = scores(1, MANY)["scores"].tobytes()[800:808]
    assert filled.count(old) == 1
    path.write_bytes(filled.replace(old, np.float64(0.5).tobytes()))
    with refused("but it is damaged in block 1: restore a copy"):
        Run.open(path)
    with Run.open(path, verify=False) as run:  # a list of runs does not read its blocks
        assert summary_of(run).done == 3
        with refused("but it is damaged in block 1"):
            run.arrays()


def test_a_block_that_is_gone_is_noticed(path, run):
    with contextlib.closing(sqlite3.connect(path)) as other, other:
        other.execute("DELETE FROM blocks WHERE number = 3")
    with refused("but it is damaged"):
        Run.open(path)


TEXTS = [
    (b'"records": 100', b'"records": 900', "config"),
    (b"ror: no", b"ror: ye", "events"),
    (b"a worker", b"my maker", "workers"),
]


@pytest.mark.parametrize(("before", "after", "where"), TEXTS)
def test_one_changed_text_is_noticed(path, filled, before, after, where):
    path.write_bytes(filled.replace(before, after))
    with refused(f"but it is damaged in its {where}"):
        Run.open(path)


def test_the_file_alone_holds_every_finished_block(path, run, tmp_path):
    run.finish(0, scores(0), seconds=1.0)
    shutil.copy(path, tmp_path / "copy.run")  # without its -wal
    with Run.open(tmp_path / "copy.run") as copied:
        assert copied.done() == [0]


def test_one_works_while_others_read(path, run, monkeypatch):
    monkeypatch.setattr(run_file, "LOCK_PATIENCE", 0.05)
    with Run.open(path) as other:
        assert not other.busy()
        with run.working():
            run.finish(0, scores(0), seconds=1.0)
            assert (other.busy(), other.done()) == (True, [0])
            for change in (
                lambda: other.finish(1, scores(1), seconds=1.0),
                lambda: other.fail(1, "x"),
                lambda: other.keep({}),
                lambda: other.working().__enter__(),
            ):
                with refused("but it is being worked on elsewhere"):
                    change()
            run.finish(1, scores(1), seconds=1.0)
        assert not other.busy()
        other.finish(2, scores(2), seconds=1.0)
    assert run.done() == [0, 1, 2]


@pytest.mark.parametrize("name", ["100% a b.run", "a?mode=ro#b.run", "Ünïcode", "no.dot."])
def test_any_name_will_do(tmp_path, name):
    with Run.create(tmp_path / name, "audit", {}, blocks=1) as made:
        made.finish(0, scores(0), seconds=1.0)
    assert {entry.name for entry in tmp_path.iterdir()} == {name, f"{name}.lock"}
    assert [(run.name, run.state) for run in list_runs(tmp_path)[0]] == [(name, "complete")]


def test_one_run_has_one_lock_by_whatever_name(path, run, monkeypatch):
    monkeypatch.setattr(run_file, "LOCK_PATIENCE", 0.05)
    link = path.parent / "elsewhere" / "link.run"
    link.parent.mkdir()
    link.symlink_to(path)
    for name in (link, "first.run", "elsewhere/../first.run"):
        monkeypatch.chdir(path.parent)
        with Run.open(name) as other:
            monkeypatch.chdir("/")  # a relative name keeps its meaning
            with run.working(), refused("being worked on elsewhere"):
                other.fail(0, "x")


HOLD = """
import sys, time
from dprime.runs.run import Run
with Run.open(sys.argv[1]) as run, run.working():
    print("holding", flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_the_lock_dies_with_its_process(path, run):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "holding\n"
        assert run.busy()
        assert summary_of(run).state == "running"
        with refused("being worked on elsewhere"):
            run.fail(0, "x")
    finally:
        holder.kill()
        holder.communicate()
    assert not run.busy()
    run.finish(0, scores(0), seconds=1.0)


def test_a_full_disk_loses_nothing(path, run):
    run.finish(0, scores(0), seconds=1.0)
    pages = run._db.execute("PRAGMA page_count").fetchone()[0]
    run._db.execute(f"PRAGMA max_page_count = {pages + 1}")  # SQLite's own full disk
    with refused("disk is full.*every finished block is kept"):
        run.finish(1, scores(1, trials=100_000), seconds=1.0)
    run._db.execute("PRAGMA max_page_count = 1000000")
    assert run.done() == [0]
    run.finish(1, scores(1, trials=100_000), seconds=1.0)
    with Run.open(path) as opened:
        assert opened.state().total_trials == 100_004


GROW = """
import resource, sys
import numpy as np
from dprime.runs.run import Run
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # no file may be larger
with Run.open(sys.argv[1]) as run:
    try:
        run.finish(1, {"scores": np.zeros((100_000, 3)), "in_world": np.zeros(100_000, bool)}, 1)
    except ValueError as error:
        print(error)
    print(run.done())
"""


def test_a_disk_that_refuses_to_write_loses_nothing(path, run):
    run.finish(0, scores(0), seconds=1.0)
    run.close()
    program = [sys.executable, "-c", GROW, str(path)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    said, kept = done.stdout.splitlines()
    assert "every finished block is kept" in said
    assert kept == "[0]"
    with Run.open(path) as opened:
        assert opened.done() == [0]


@pytest.fixture
def archive():
    """A folder that may be read and not written, by whoever runs the tests."""
    folder, root = Path(tempfile.mkdtemp()), os.geteuid() == 0
    with Run.create(folder / "old.run", "audit", CONFIG, blocks=2) as made:
        made.finish(0, scores(0), seconds=1.0)
    (folder / "old.run.lock").unlink()
    (folder / "old.run").chmod(0o444)
    folder.chmod(0o555)
    if root:  # who may write anywhere
        os.seteuid(65534)
    yield folder
    if root:
        os.seteuid(0)
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_folder_can_be_read_and_says_so_otherwise(archive):
    with Run.open(archive / "old.run") as old:
        assert_holds(old, joined([0]))
        assert not old.busy()
        with refused("a file that can be used, but it is not"):
            old.finish(1, scores(1), seconds=1.0)
    assert [run.state for run in list_runs(archive)[0]] == ["incomplete"]
    for name in ("new.run", "sub/new.run"):
        with refused("a file that can be used, but it is not"):
            Run.create(archive / name, "audit", {}, blocks=1)
    assert [p.name for p in archive.iterdir()] == ["old.run"]


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
    found, others = list_runs(tmp_path)
    assert [(r.name, r.kind, r.adversary, r.data, r.done, r.blocks, r.state) for r in found] == [
        ("b.run", "inference", "membership inference", "adult", 1, 3, "incomplete"),
        ("c.run", "audit", "gradient", "digits", 2, 2, "complete"),
        ("d.run", "audit", "", "", 0, 1, "failed"),
    ]
    assert found[1].changed == changed
    assert list(others) == ["cut.run", "notes.txt"]
    assert "damaged" in others["cut.run"]
    assert "must be a dprime run" in others["notes.txt"]
    with refused("a folder, but it is"):
        list_runs(tmp_path / "notes.txt")
