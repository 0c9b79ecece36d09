"""Benchmarks: opt-in measurements whose results stand in the documents. See README.md."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

sys.path.append(str(ROOT / "tests"))  # naive copies and planted mistakes, shared with the tests
if find_spec("dprime") is None:  # a plain checkout: the source beside this folder
    sys.path.append(str(ROOT / "src"))
