"""A process of the tests that dies silently must fail the run: no other may wait for it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
