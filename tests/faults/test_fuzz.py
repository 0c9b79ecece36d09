"""Damaged and hostile files are read or refused: see `fuzz.py`, which tries them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FILES = int(os.environ.get("DPRIME_FUZZ", "300"))
"""How many; `make faults` tries ten thousand."""

pytest.importorskip("torch")
pytest.importorskip("fastapi")


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
