"""A run's file: nothing finished is lost, and whatever is wrong with it is one sentence."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from blocks import CONFIG, assert_holds, joined, refused, scores
from dprime.runs import run_file
from dprime.runs.folder import list_runs, summary_of
from dprime.runs.run import Run

MANY = 2000
"""Trials that fill some pages of the file."""


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


@pytest.mark.skipif(os.name != "posix", reason="needs permissions of POSIX")
def test_a_run_has_a_seed_that_its_owner_alone_can_read(path, run):
    assert path.stat().st_mode & 0o777 == 0o600


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


@pytest.mark.parametrize("name", ["100% a b.run", "a?mode=ro#b.run", "Ünïcode.run", ".run"])
def test_any_name_will_do(tmp_path, name):
    with Run.create(tmp_path / name, "audit", {}, blocks=1) as made:
        made.finish(0, scores(0), seconds=1.0)
    assert {entry.name for entry in tmp_path.iterdir()} == {name}  # every block is done
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
