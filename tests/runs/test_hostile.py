"""Files made to harm whoever opens them: refused, within bounded memory, and never executed."""

import contextlib
import io
import json
import sqlite3
import zipfile

import numpy as np
import pytest

from dprime.audit.audits import resume
from dprime.runs import run_file
from dprime.runs.folder import list_runs
from dprime.runs.run import Run
from dprime.runs.runner import execute
from dprime.validate import InputError

DEEP = "[" * 200_000 + "]" * 200_000


@pytest.fixture
def path(tmp_path):
    with Run.create(tmp_path / "a.run", "audit", {"seed": 7}, blocks=2) as run:
        for block in range(2):
            run.finish(block, {"scores": np.arange(4.0)}, seconds=0.1)
    return tmp_path / "a.run"


@contextlib.contextmanager
def changing(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        yield db


def with_text(path, name, value):
    """Whoever forges a text forges its digest."""
    with changing(path) as db:
        run_file.put(db, "about", name, value, changed=run_file.now())


def with_block(path, number=0, *, trials=4, layout="scores <f8[trial]", data):
    with changing(path) as db:
        digest = run_file.digest(number, number + 1, trials, layout, data)
        row = trials, layout, data, digest, number
        query = "UPDATE blocks SET trials = ?, layout = ?, arrays = ?, digest = ? WHERE number = ?"
        db.execute(query, row)


def npz(compressed=False, **arrays):
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def declared(shape):
    """An npz file whose array has 32 bytes and declares more."""
    member = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(member, header)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("scores.npy", member.getvalue() + bytes(32))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER UPDATE ON blocks BEGIN DELETE FROM events; END",
        "CREATE VIEW v AS SELECT * FROM about",
        "CREATE TABLE more (x)",
        "ALTER TABLE workers ADD COLUMN x",
    ],
)
def test_other_tables_than_those_of_a_run(path, statement):
    with changing(path) as db:
        db.execute(statement)
    with pytest.raises(InputError, match="damaged in its tables"):
        Run.open(path, verify=False)


@pytest.mark.parametrize(
    "block",
    [
        {"data": npz(compressed=True, scores=np.arange(4.0))},
        {"data": declared((2_000_000_000,))},
        {"data": declared((-1,))},
        {"data": npz(scores=np.arange(4.0)), "trials": 10**12},
        {"data": npz(other=np.arange(4.0))},
        {"data": npz(scores=np.array(4.0))},
        {"data": npz(scores=np.arange(4.0)), "layout": "scores <f4[trial]"},
        {"data": b"no npz file"},
        {"data": npz(scores=np.array([None] * 4))},
        {"data": "a text"},
    ],
)
def test_arrays_that_are_not_what_the_row_says(path, block):
    with_block(path, **block)
    with Run.open(path) as run, pytest.raises(InputError, match="damaged in block 0"):
        run.arrays()


@pytest.mark.parametrize("value", [DEEP, "[1, 2]", "{", "7", '{"a": NaN}x'])
@pytest.mark.parametrize("name", ["config", "request", "result", "versions"])
def test_texts_that_are_no_configuration(path, name, value):
    with_text(path, name, value)
    with Run.open(path) as run, pytest.raises(InputError, match="damaged"):
        getattr(run, name)


@pytest.mark.parametrize(
    ("name", "value"), [("seed", "9" * 5000), ("created", "never"), ("kind", "other")]
)
def test_other_texts(path, name, value):
    with_text(path, name, value)
    with Run.open(path) as run, pytest.raises(InputError, match="damaged"):
        getattr(run, name)


def test_a_text_that_is_too_long(path, monkeypatch):
    with_text(path, "result", json.dumps("x" * 10_000))
    monkeypatch.setattr(run_file, "LONGEST_TEXT", 5_000)
    with pytest.raises(InputError, match="too long to read"):
        Run.open(path, verify=False)


@pytest.mark.parametrize("code", ["pwned:net", "pwned: net", "pwned:net(", "pwned:a:b", "pwned:"])
@pytest.mark.parametrize("name", ["model", "trainer"])
def test_code_that_the_file_names_is_not_run(path, name, code, tmp_path, monkeypatch):
    (tmp_path / "pwned.py").write_text("import pathlib\npathlib.Path('pwned').touch()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with_text(path, "config", json.dumps({"seed": 7, name: code}))
    with_text(path, "request", json.dumps({name: "linear"}))  # which hides nothing
    with pytest.raises(InputError, match="imports and calls 'pwned:"):
        resume(path)
    assert not (tmp_path / "pwned").exists()


def test_one_bad_file_does_not_hide_the_others(path, tmp_path):
    for number in range(6):
        copy = tmp_path / f"bad-{number}.run"
        copy.write_bytes(path.read_bytes())
    with_text(tmp_path / "bad-0.run", "config", DEEP)
    with changing(tmp_path / "bad-1.run") as db:
        db.execute("CREATE VIEW v AS SELECT 1")
    with_text(tmp_path / "bad-2.run", "created", "x")
    with_text(tmp_path / "bad-3.run", "kind", "other")
    with changing(tmp_path / "bad-4.run") as db:
        db.execute("UPDATE blocks SET trials = ?", ("9" * 400,))
    with changing(tmp_path / "bad-5.run") as db:
        db.execute("UPDATE blocks SET changed = x'ff' WHERE number = 0")
    found, others = list_runs(tmp_path)
    assert [run.name for run in found] == ["a.run", "bad-2.run"]
    assert set(others) == {f"bad-{number}.run" for number in (0, 1, 3, 4, 5)}


# Damaged by accident ------------------------------------------------------------------------------


def test_a_damaged_block_is_given_out_again(path):
    with Run.open(path) as run:
        run.keep({"answer": 1})
    with changing(path) as db:
        db.execute("UPDATE blocks SET arrays = substr(arrays, 1, 200) || x'00' WHERE number = 1")
    with pytest.raises(InputError, match="damaged in block 1: restore a copy"):
        Run.open(path)
    assert [run.done for run in list_runs(path.parent)[0]] == [2]  # a list does not read blocks
    with Run.open(path, verify=False) as run, pytest.raises(InputError, match="in block 1"):
        run.arrays()
    with Run.open_to_go_on(path) as run:
        assert (run.pending(), run.result) == ([1], None)
        (event,) = run.events()
        assert (event.block, event.outcome) == (1, "found damaged")
        execute(run, lambda block: {"scores": np.arange(4.0)})
        assert run.arrays()["scores"].tolist() == [0.0, 1.0, 2.0, 3.0] * 2


def test_a_damaged_result_or_event_is_forgotten(path):
    with Run.open(path) as run:
        run.keep({"answer": 1})
        run.note("about", "words that are needed")
    with changing(path) as db:
        db.execute("UPDATE about SET value = '{}' WHERE name = 'result'")
    with Run.open_to_go_on(path) as run:
        assert (run.result, run.pending()) == (None, [])
    with changing(path) as db:
        db.execute("UPDATE about SET value = '{}' WHERE name = 'config'")
    with pytest.raises(InputError, match="damaged in its config"):
        Run.open_to_go_on(path)


def test_a_whole_run_is_not_written_to(path, monkeypatch):
    with Run.open(path) as run:
        run.keep({"answer": 1})
    before = path.read_bytes()
    monkeypatch.setattr(run_file, "locked", None)  # whoever wants to write needs the lock
    with Run.open_to_go_on(path) as run:
        execute(run, lambda block: {})
        run.keep({"answer": 1})
    assert path.read_bytes() == before


@pytest.mark.parametrize("change", ["delete", "move", "replace"])
def test_a_file_that_goes_while_it_is_worked_on(path, tmp_path, change):
    other = tmp_path / "other.run"
    other.write_bytes(path.read_bytes())

    def work(block):
        {
            "delete": path.unlink,
            "move": lambda: path.rename(tmp_path / "b"),
            "replace": lambda: other.replace(path),
        }[change]()
        return {"scores": np.arange(4.0)}

    with changing(path) as db:
        db.execute("UPDATE blocks SET arrays = x'00' WHERE number = 1")
    with (
        Run.open_to_go_on(path) as run,
        pytest.raises(InputError, match="deleted, moved or replaced"),
    ):
        execute(run, work)
