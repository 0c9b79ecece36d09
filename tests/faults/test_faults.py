"""What goes wrong around a run: hostile files (`fuzz.py`), kills, abuse, tests that die."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import kills, load

FILES = int(os.environ.get("DPRIME_FUZZ", "300"))
"""How many; `make faults` tries ten thousand."""


@pytest.mark.slow
def test_damaged_and_hostile_files():
    program = Path(__file__).with_name("fuzz.py")
    quiet = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
    tried = subprocess.run(
        [sys.executable, str(program), str(FILES)],
        capture_output=True, text=True, env=quiet, check=False,
    )  # fmt: skip
    assert tried.returncode == 0, tried.stderr[-4000:]
    found = json.loads(tried.stdout)
    assert sum(kind["files"] for kind in found["kinds"].values()) >= FILES
    print(tried.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["local", "processes"])
def test_nothing_is_lost_and_nothing_hangs(name):
    found = kills.measure(quick=True, only=[name])["backends"][name]
    assert found["kills"] >= 3
    assert found["runs"] >= 1
    wrong = ("finished_blocks_lost", "runs_that_differ", "hung", "left_processes")
    assert [what for what in wrong if found[what]] == []


@pytest.mark.slow
def test_nobody_loses_an_answer_to_abuse(monkeypatch):
    """The short form of the measurement: every fourth move is hostile, so that each kind comes."""
    monkeypatch.setattr(load, "QUIET", 3.0)
    found = load.measured(users=10, seconds=5, abused=0.25)
    assert load.broken(found) == []
    assert found["moves"] > 20
    assert sum(sum(each.values()) for each in found["abuse"].values()) > 5


def test_a_broken_promise_is_told():
    found = {
        "lost_because": {"500 ": 1, load.BUSY: 2}, "abuse": {"dear": {"500": 1, "503": 1}},
        "server_megabytes": 300, "workers_megabytes": 200, "start_megabytes": 290,
    }  # fmt: skip
    assert load.broken(found) == ["lost: 500 ", "dear: 500", "210 MB more than at the start"]


QUICK = "def test_{0}(): pass\n"


@pytest.mark.slow
def test_a_process_that_dies_after_it_has_finished_a_file(tmp_path):
    for helper in ("conftest.py", "commands.py"):
        shutil.copy(Path(__file__).parents[1] / helper, tmp_path)
    for number in range(3):
        (tmp_path / f"test_{number}.py").write_text(QUICK.format(1) + QUICK.format(2))
    dying = "import os, time\ndef test_dying():\n    time.sleep(1)\n    os._exit(1)\n"
    (tmp_path / "test_9.py").write_text(dying + QUICK.format("after"))
    options = ("-n", "2", "--dist", "loadscope", "-p", "no:cacheprovider", "--rootdir", ".")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "."],
        check=False, cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "crashed while running 'test_9.py::test_dying'" in ended.stdout
    assert "crashed and worker restarting disabled" in ended.stdout
