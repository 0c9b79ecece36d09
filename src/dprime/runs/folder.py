"""The runs in a folder, each in a line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from dprime import validate
from dprime.runs import run_file
from dprime.runs.contents import KINDS
from dprime.runs.run import Run


@dataclass(frozen=True)
class Summary:
    """A run in a list of runs; without an attack, its `adversary` names its kind."""

    name: str
    kind: str
    adversary: str
    data: str
    blocks: int
    done: int
    total_trials: int
    state: str
    changed: datetime


def summary_of(run: Run) -> Summary:
    """A run in one line."""
    kind, config, state = run.kind, run.config, run.state()
    adversary = _label(config.get("adversary")) or (KINDS[kind] if kind != "audit" else "")
    word = "complete" if state.complete else "incomplete" if state.pending else "failed"
    if run.busy():
        word = "running"
    about = run.path.name, kind, adversary, _label(config.get("data"))
    return Summary(*about, state.blocks, state.done, state.total_trials, word, run.changed())


def _label(value: object) -> str:
    if isinstance(value, Mapping):
        value = value.get("name")
    return "" if value is None else str(value)


def list_runs(folder: str | os.PathLike[str]) -> tuple[list[Summary], dict[str, str]]:
    """The runs in a folder and in its folder runs/, not verified, and files that only look so.

    Each is named by its path in the folder; a file that is no run comes with the reason.
    """
    place = Path(folder)
    if not place.is_dir():
        remedy = "give the folder of the runs"
        raise validate.invalid_value("folder", str(folder), "a folder", remedy)
    runs, others = [], {}
    for path in run_file.candidates(place):
        name = path.relative_to(place).as_posix()
        try:
            with Run.open(path, verify=False) as run:
                runs.append(replace(summary_of(run), name=name))
        except validate.InputError as error:
            others[name] = str(error)
    return runs, others
