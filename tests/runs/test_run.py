"""The store: nothing finished is lost, and whatever is wrong with a file is one sentence."""

import contextlib
import json
import os
import resource
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
from dprime.runs.states import State
from dprime.runs.run import Run, not_runs, runs

SETTINGS = {"adversary": "gradient", "data": {"name": "digits", "records": 100}, "seed": 7}


def scores(block, trials=4):
    draw = np.random.default_rng([7, block])
    return {"scores": draw.normal(size=(trials, 3)), "in_world": draw.random(trials) < 0.5}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "first.run"


@pytest.fixture
def store(path):
    with Run.create(path, SETTINGS, blocks=4) as made:
        yield made


def sentence(caught):
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert "must be" in text
    return text


def test_a_new_run_is_whole(path, store):
    before = datetime.now(UTC)
    with Run.open(path) as opened:
        assert opened.config == SETTINGS
        assert opened.seed == 7
        assert opened.versions["dprime"] == dprime.__version__
        assert opened.versions["numpy"] == np.__version__
        assert opened.versions["python"] == ".".join(map(str, sys.version_info[:3]))
        assert 0 <= (before - opened.created).total_seconds() < 60
        assert opened.pending() == [0, 1, 2, 3]
        assert opened.done() == []
        assert opened.arrays() == {}
        assert opened.result is None
        assert opened.state() == State(4, 0, 0, 4, 0, None)
    assert store.path == path


def test_the_file_says_what_it_is_and_keeps_its_promise_to_the_disk(path, store):
    read = sqlite3.connect(path)
    with contextlib.closing(read):
        assert read.execute("PRAGMA application_id").fetchone() == (run_file.APPLICATION,)
        assert read.execute("PRAGMA user_version").fetchone() == (run_file.FORMAT,)
        assert read.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_a_seed_is_drawn_where_none_is_given(tmp_path):
    seeds = set()
    for name in "abc":
        with Run.create(tmp_path / name, {}, blocks=1) as store:
            seeds.add(store.seed)
    assert len(seeds) == 3


def test_blocks_end_in_any_order_and_are_joined_in_theirs(path, store):
    for block in (2, 0, 3):
        store.finish(block, scores(block, trials=block + 1), seconds=0.5)
    with Run.open(path) as opened:
        assert opened.done() == [0, 2, 3]
        assert opened.pending() == [1]
        assert opened.state() == State(4, 3, 0, 1, 8, None)
        joined = opened.arrays()
    for name in ("scores", "in_world"):
        expected = np.concatenate([scores(b, trials=b + 1)[name] for b in (0, 2, 3)])
        np.testing.assert_array_equal(joined[name], expected)
        assert joined[name].dtype == expected.dtype


@pytest.mark.parametrize(
    "array",
    [
        np.array([np.nan, np.inf, -0.0, 5e-324]),
        np.arange(6, dtype=">i2").reshape(2, 3),
        np.zeros((0, 2), dtype=np.float32),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(["a", "bc"]),
        np.array([True, False]),
    ],
    ids=str,
)
def test_arrays_come_back_bit_for_bit(store, array):
    names = ("file", "allow_pickle", "a name/with signs")  # two of them numpy.savez would take
    store.finish(0, dict.fromkeys(names, array), seconds=0.0)
    back = store.arrays()
    assert set(back) == set(names)
    for name in names:
        assert back[name].dtype == array.dtype
        assert back[name].tobytes() == array.tobytes()


def test_failed_blocks_wait_behind_those_never_tried(store):
    store.fail(0, "ValueError: no")
    store.fail(2, "ValueError: still no")
    store.finish(1, scores(1), seconds=1.0)
    assert store.pending() == [3, 0, 2]
    assert store.state() == State(4, 1, 2, 1, 4, "ValueError: still no")
    store.fail(0, "OSError: yet another \udcff reason")
    assert store.state().last_error == "OSError: yet another ? reason"
    assert store.attempts(0) == 2
    store.finish(0, scores(0), seconds=1.0)
    assert store.attempts(0) == 3
    assert store.state() == State(4, 2, 1, 1, 8, "ValueError: still no")


def test_a_finished_block_is_never_replaced(store):
    store.finish(1, scores(1), seconds=1.0)
    for change in (
        lambda: store.finish(1, scores(2), seconds=1.0),
        lambda: store.fail(1, "ValueError: too late"),
    ):
        with pytest.raises(ValueError, match="block 1 must be not yet done, but it is done") as e:
            change()
        sentence(e)
    np.testing.assert_array_equal(store.arrays()["scores"], scores(1)["scores"])
    assert store.attempts(1) == 1


def test_blocks_that_the_run_does_not_have(store):
    for change in (
        lambda: store.finish(4, scores(4), seconds=1.0),
        lambda: store.fail(-1, "x"),
        lambda: store.attempts(9),
    ):
        with pytest.raises(ValueError, match="block must be between 0 and 3, but it is") as caught:
            change()
        sentence(caught)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, r"arrays must be a mapping of names to arrays, but it is dict \{\}"),
        ([1.0], r"arrays must be a mapping of names to arrays, but it is list \[1.0\]"),
        ({"a": [1.0]}, r"arrays\['a'\] must be an array of trials, but it is list of shape \(1,\)"),
        ({"a": np.array(1.0)}, r"arrays\['a'\] must be an array of trials"),
        ({1: np.zeros(2)}, r"arrays\[1\] must be an array of trials"),
        ({"a": np.array([None])}, r"arrays\['a'\] must be of numbers, but it is of Python objects"),
        ({"a": np.zeros(2), "b": np.zeros(3)}, r"of one length, the block's trials, but it is"),
    ],
)
def test_arrays_that_cannot_be_stored(store, arrays, message):
    with pytest.raises(ValueError, match=message) as caught:
        store.finish(0, arrays, seconds=0.0)
    sentence(caught)
    assert store.pending() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "arrays",
    [
        {"scores": np.zeros(3, dtype=np.float32)},
        {"scores": np.zeros((3, 2))},
        {"score": np.zeros(3)},
        {"scores": np.zeros(3), "more": np.zeros(3)},
    ],
    ids=str,
)
def test_arrays_that_cannot_be_joined(store, arrays):
    store.finish(0, {"scores": np.zeros(5)}, seconds=0.0)
    with pytest.raises(ValueError, match=r"like those of block 0, scores <f8\[trial\]") as caught:
        store.finish(1, arrays, seconds=0.0)
    sentence(caught)


def test_a_block_too_large_for_sqlite(store):
    huge = np.broadcast_to(np.float64(0.0), (120_000_000,))
    with pytest.raises(ValueError, match="at most 900,000,000 bytes, but it is 960,000,000") as e:
        store.finish(0, {"scores": huge}, seconds=0.0)
    sentence(e)


def test_the_answer(path, store):
    store.keep({"epsilon": 1.5, "verdict": "stands"})
    store.keep({"epsilon": None, "verdict": "δ′"})
    with Run.open(path) as opened:
        assert opened.result == {"epsilon": None, "verdict": "δ′"}
    with pytest.raises(ValueError, match="answer must be made of JSON values") as caught:
        store.keep({"epsilon": float("inf")})
    sentence(caught)


@pytest.mark.parametrize(
    ("settings", "blocks", "message"),
    [
        ([1], 2, r"settings must be a mapping of JSON values, but it is \[1\]"),
        ({"a": {1, 2}}, 2, "settings must be made of JSON values, but it is not"),
        ({"a": float("nan")}, 2, "settings must be made of JSON values, but it is not"),
        ({"seed": -1}, 2, "seed must be a whole number from 0 to 2.256 - 1"),
        ({"seed": 0.5}, 2, "seed must be a whole number from 0 to 2.256 - 1"),
        ({}, 0, "blocks must be at least 1, but it is 0"),
        ({}, 1.5, "blocks must be a whole number, but it is 1.5"),
    ],
)
def test_runs_that_cannot_be_created(tmp_path, settings, blocks, message):
    with pytest.raises(ValueError, match=message) as caught:
        Run.create(tmp_path / "a.run", settings, blocks=blocks)
    sentence(caught)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_taken(path, store):
    store.finish(0, scores(0), seconds=0.0)
    with pytest.raises(ValueError, match="must be the name of no file yet, but it is") as caught:
        Run.create(path, {}, blocks=1)
    sentence(caught)
    assert store.done() == [0]
    other = path.with_name("notes.txt")
    other.write_text("mine")
    with pytest.raises(ValueError, match="must be the name of no file yet"):
        Run.create(other, {}, blocks=1)
    assert other.read_text() == "mine"
    assert not other.with_name("notes.txt.lock").exists()


def test_creation_that_is_cut_off_leaves_no_run_and_is_no_obstacle(path, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            Run.create(path, SETTINGS, blocks=2)
    assert runs(path.parent) == []
    path.with_name("first.run.new").write_bytes(b"what a kill may leave")
    path.with_name("first.run.new-journal").write_bytes(b"and its journal")
    with Run.create(path, SETTINGS, blocks=2) as store:
        assert store.pending() == [0, 1]
    assert sorted(p.name for p in path.parent.iterdir()) == ["first.run", "first.run.lock"]


def test_a_path_with_no_run_names_those_that_are_there(tmp_path):
    for name in ("mnist-gradient.run", "adult.run"):
        Run.create(tmp_path / name, {}, blocks=1).close()
    (tmp_path / "mnist-gradient.txt").write_text("not a run")
    with pytest.raises(ValueError, match=r"did you mean mnist-gradient\.run") as caught:
        Run.open(tmp_path / "mnist_gradient.run")
    assert "txt" not in sentence(caught)
    with pytest.raises(ValueError, match=r"did you mean adult\.run or mnist-gradient\.run"):
        Run.open(tmp_path / "zzz")
    with pytest.raises(ValueError, match="which is a folder: "):
        Run.open(tmp_path)
    with pytest.raises(ValueError, match="which is not there: there is no run in its folder"):
        Run.open(tmp_path / "no" / "where")


@pytest.mark.parametrize("contents", [b"", b"x", b"a,b\n1,2\n" * 500, b"SQLite format 3\0"])
def test_what_is_not_a_run(tmp_path, contents):
    path = tmp_path / "scores.csv"
    path.write_bytes(contents)
    with pytest.raises(ValueError, match="must be a dprime run, but it is something else") as e:
        Run.open(path)
    sentence(e)
    assert path.read_bytes() == contents


def test_another_database_is_not_a_run(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE blocks (number)")
    with pytest.raises(ValueError, match="must be a dprime run"):
        Run.open(tmp_path / "other.db")


@pytest.mark.parametrize(("version", "word"), [(0, "older"), (2, "newer")])
def test_a_run_of_another_format(path, store, version, word):
    store.close()
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(ValueError, match=f"of format 1, but it is of format {version}: ") as caught:
        Run.open(path)
    assert f"{word} dprime than this one ({dprime.__version__})" in sentence(caught)


@pytest.fixture
def filled(path, store):
    """A run with some pages of arrays, closed; its bytes, and what is in it."""
    for block in range(3):
        store.finish(block, scores(block, trials=500), seconds=1.0)
    store.keep({"epsilon": 1.5})
    store.close()
    return path.read_bytes()


def test_a_file_that_was_cut_off(path, filled):
    for share in (0.02, 0.3, 0.5, 0.9, 0.999):
        path.write_bytes(filled[: int(share * len(filled))])
        with pytest.raises(ValueError, match="must be a whole run, but it is damaged") as caught:
            Run.open(path)
        sentence(caught)


def test_garbage_anywhere_is_noticed_or_harmless(path, filled):
    """Whatever 64 bytes are overwritten, a run that opens holds what was put in."""
    whole = {n: np.concatenate([scores(b, 500)[n] for b in range(3)]) for n in scores(0)}
    draw = np.random.default_rng(5)
    said = []
    for start in draw.integers(0, len(filled) - 64, size=200):
        path.write_bytes(filled[:start] + draw.bytes(64) + filled[start + 64 :])
        try:
            opened = Run.open(path)
        except ValueError as error:
            said.append(str(error))
            continue
        with opened:
            assert opened.config == SETTINGS
            assert opened.result == {"epsilon": 1.5}
            assert opened.seed == 7
            assert opened.done() == [0, 1, 2]
            for name, array in opened.arrays().items():
                np.testing.assert_array_equal(array, whole[name])
    assert len(said) > 150  # nearly all of the file is in use
    assert all("must be a whole run, but it is damaged" in text for text in said)


def test_one_changed_number_in_a_block_is_noticed(path, filled):
    old = scores(1, 500)["scores"].tobytes()[800:808]
    assert filled.count(old) == 1
    path.write_bytes(filled.replace(old, np.float64(0.5).tobytes()))
    with pytest.raises(ValueError, match="but it is damaged in block 1: restore a copy"):
        Run.open(path)


def test_one_changed_setting_is_noticed(path, filled):
    path.write_bytes(filled.replace(b'"records": 100', b'"records": 900'))
    with pytest.raises(ValueError, match="but it is damaged in its settings"):
        Run.open(path)


def test_the_file_alone_holds_every_finished_block(path, store, tmp_path):
    store.finish(0, scores(0), seconds=1.0)
    shutil.copy(path, tmp_path / "copy.run")  # without its -wal
    with Run.open(tmp_path / "copy.run") as copied:
        assert copied.done() == [0]


def test_one_works_while_others_read(path, store):
    with Run.open(path) as other:
        assert not other.busy()
        with store.working():
            store.finish(0, scores(0), seconds=1.0)
            assert other.busy()
            assert other.done() == [0]
            for change in (
                lambda: other.finish(1, scores(1), seconds=1.0),
                lambda: other.fail(1, "x"),
                lambda: other.keep({}),
                lambda: other.working().__enter__(),
            ):
                with pytest.raises(ValueError, match="but it is being worked on elsewhere") as e:
                    change()
                sentence(e)
            store.finish(1, scores(1), seconds=1.0)
        assert not other.busy()
        other.finish(2, scores(2), seconds=1.0)
    assert store.done() == [0, 1, 2]


@pytest.mark.parametrize("name", ["a b.run", "100%.run", "a?mode=ro#b.run", "Ünïcode", "no.dot."])
def test_any_name_will_do(tmp_path, name):
    with Run.create(tmp_path / name, {}, blocks=1) as made:
        made.finish(0, scores(0), seconds=1.0)
    assert {entry.name for entry in tmp_path.iterdir()} == {name, f"{name}.lock"}
    assert [(run.name, run.state) for run in runs(tmp_path)] == [(name, "complete")]


def test_one_run_has_one_lock_by_whatever_name(path, store, monkeypatch):
    link = path.parent / "elsewhere" / "link.run"
    link.parent.mkdir()
    link.symlink_to(path)
    monkeypatch.chdir(path.parent)
    for name in (link, "first.run", "elsewhere/../first.run"):
        with Run.open(name) as other:
            monkeypatch.chdir("/")  # a relative name keeps its meaning
            with store.working(), pytest.raises(ValueError, match="being worked on elsewhere"):
                other.fail(0, "x")
            monkeypatch.chdir(path.parent)


HOLD = """
import sys, time
from dprime.runs.run import Run
with Run.open(sys.argv[1]) as store, store.working():
    print("holding", flush=True)
    time.sleep(60)
"""


def test_the_lock_dies_with_its_process(path, store):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "holding\n"
        assert store.busy()
        assert store.summary().state == "running"
        with pytest.raises(ValueError, match="being worked on elsewhere"):
            store.fail(0, "x")
    finally:
        holder.kill()
        holder.communicate()
    assert not store.busy()
    store.finish(0, scores(0), seconds=1.0)


def test_a_full_disk_loses_nothing(path, store):
    store.finish(0, scores(0), seconds=1.0)
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages + 1}")  # SQLite's own full disk
    with pytest.raises(ValueError, match="must be able to take more, but it is full") as caught:
        store.finish(1, scores(1, trials=100_000), seconds=1.0)
    sentence(caught)
    store._db.execute("PRAGMA max_page_count = 1000000")
    assert store.done() == [0]
    store.finish(1, scores(1, trials=100_000), seconds=1.0)
    with Run.open(path) as opened:
        assert opened.state().trials == 100_004


GROW = """
import resource, sys
import numpy as np
from dprime.runs.run import Run
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # no file may be larger
with Run.open(sys.argv[1]) as store:
    try:
        store.finish(1, {"scores": np.zeros((100_000, 3)), "in_world": np.zeros(100_000, bool)}, 1)
    except ValueError as error:
        print(error)
    print(store.done())
"""


def test_a_disk_that_refuses_to_write_loses_nothing(path, store):
    store.finish(0, scores(0), seconds=1.0)
    store.close()
    done = subprocess.run(
        [sys.executable, "-c", GROW, str(path)], capture_output=True, text=True, check=True
    )
    said, kept = done.stdout.splitlines()
    assert "must be" in said
    assert "every finished block is kept" in said
    assert kept == "[0]"
    with Run.open(path) as opened:
        assert opened.done() == [0]
    assert resource.getrlimit(resource.RLIMIT_FSIZE) != (200_000, 200_000)


@pytest.fixture
def archive():
    """A folder that may be read and not written, by whoever runs the tests."""
    folder = Path(tempfile.mkdtemp())
    with Run.create(folder / "old.run", SETTINGS, blocks=2) as made:
        made.finish(0, scores(0), seconds=1.0)
    (folder / "old.run.lock").unlink()
    for entry in (*folder.iterdir(), folder):
        entry.chmod(0o555 if entry.is_dir() else 0o444)
    root = os.geteuid() == 0
    if root:  # who may write anywhere
        os.seteuid(65534)
    yield folder
    if root:
        os.seteuid(0)
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_folder_can_be_read_and_says_so_otherwise(archive):
    with Run.open(archive / "old.run") as old:
        np.testing.assert_array_equal(old.arrays()["scores"], scores(0)["scores"])
        assert not old.busy()
        with pytest.raises(ValueError, match="must be a file that can be used, but it is not") as e:
            old.finish(1, scores(1), seconds=1.0)
        sentence(e)
    assert [run.state for run in runs(archive)] == ["incomplete"]
    for name in ("new.run", "sub/new.run"):
        with pytest.raises(ValueError, match="must be a file that can be used, but it is not") as e:
            Run.create(archive / name, {}, blocks=1)
        sentence(e)
    assert [p.name for p in archive.iterdir()] == ["old.run"]


def test_runs_of_a_folder(tmp_path):
    with Run.create(tmp_path / "c.run", SETTINGS, blocks=2) as made:
        for block in range(2):
            made.finish(block, scores(block), seconds=1.0)
        done = made.changed()
    with Run.create(tmp_path / "b.run", {"adversary": {"name": "loss"}}, blocks=3) as made:
        made.finish(0, scores(0), seconds=1.0)
        made.fail(1, "ValueError: no")
    with Run.create(tmp_path / "d.run", {}, blocks=1) as made:
        made.fail(0, "ValueError: no")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "cut.run").write_bytes((tmp_path / "c.run").read_bytes()[:9000])
    (tmp_path / "folder").mkdir()
    found = runs(tmp_path)
    assert [(r.name, r.adversary, r.data, r.done, r.blocks, r.trials, r.state) for r in found] == [
        ("b.run", "loss", "", 1, 3, 4, "incomplete"),
        ("c.run", "gradient", "digits", 2, 2, 8, "complete"),
        ("d.run", "", "", 0, 1, 0, "failed"),
    ]
    assert found[1].changed == done
    others = not_runs(tmp_path)
    assert list(others) == ["cut.run", "notes.txt"]
    assert "damaged" in others["cut.run"]
    assert "must be a dprime run" in others["notes.txt"]
    with pytest.raises(ValueError, match="folder must be a folder, but it is"):
        runs(tmp_path / "notes.txt")


def test_settings_are_json_for_any_reader(path, store):
    with contextlib.closing(sqlite3.connect(path)) as read:
        (text,) = read.execute("SELECT value FROM about WHERE name = 'settings'").fetchone()
    assert json.loads(text) == SETTINGS
    assert store.config == SETTINGS
