"""Several audits in one file: what they have in common, and what each has of its own.

trials = 500            # of all of them
[claim]
epsilon = 4.0
[[audits]]
name = "one"            # of the run's file, too
adversary = "gradient"
[[audits]]
name = "other"
adversary = "di"
claim.epsilon = 2.0     # instead of 4
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dprime import validate
from dprime.audit.audits import Audit
from dprime.audit.settings import AuditSettings, begin
from dprime.runs.backends.base import Backend
from dprime.runs.run import Run

KEY = "audits"
NAME = re.compile(r"[^\W_][\w ,.=-]*")


@dataclass(frozen=True, eq=False)
class Played:
    """One of several audits.

    Attributes:
        name: in the file.
        path: of its run.
        found: what it found.
        seconds: that it took this time.
    """

    name: str
    path: Path
    found: Audit
    seconds: float


def audits_in(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of each audit by its name, from those of a file.

    >>> audits_in({"trials": 9, "audits": [{"name": "a"}, {"name": "b", "trials": 2}]})
    {'a': {'trials': 9}, 'b': {'trials': 2}}
    """
    listed = values[KEY]
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise validate.refusal(KEY, listed, "a list of tables", f"begin each with [[{KEY}]]")
    common = {name: value for name, value in values.items() if name != KEY}
    found: dict[str, dict[str, Any]] = {}
    for each in listed:
        own = dict(each)
        name = own.pop("name", "")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            wanted = "letters, digits, spaces and , . = -, the first a letter or a digit"
            raise validate.refusal("name", name, wanted, f"give one in each of [[{KEY}]]")
        if name in found:
            raise validate.refusal("name", name, f"of one of [[{KEY}]] only", "give another")
        found[name] = _over(common, own)
    return found


def _over(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """What an audit has of its own wins, in tables name by name."""
    merged = dict(common)
    for name, value in own.items():
        before = merged.get(name)
        both = isinstance(before, Mapping) and isinstance(value, Mapping)
        merged[name] = {**before, **value} if both else value  # type: ignore[dict-item]
    return merged


def play_batch(
    settings: Mapping[str, AuditSettings],
    folder: str | Path,
    *,
    backend: Backend | None = None,
    progress: bool | None = None,
) -> Iterator[Played]:
    """Play one after the other, each in a file of its own in the folder.

    A run that is there already is gone on with; a finished one is concluded anew.

    Args:
        settings: by name.
        folder: of the runs' files; made where there is none.
        backend: where; in this process unless given.
        progress: whether to show a bar; None shows it for long work on a terminal.
    """
    for each in settings.values():  # what is wrong with one is said before the first is played
        each.attacker(), each.claimed()
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    data: tuple[str, str | None] | None = None
    for name, each in settings.items():
        start = time.perf_counter()
        path = path_of(place, name)
        if data != (each.data, each.data_dir):  # loading may take longer than an audit
            data, split = (each.data, each.data_dir), each.split()
        found = begin(each, path, backend=backend, progress=progress, split=split, go_on=True)
        yield Played(name, path, found, time.perf_counter() - start)


def path_of(folder: Path, name: str) -> Path:
    """Of an audit's run."""
    return folder / f"{name}.run"


def seed_of(folder: Path, name: str) -> dict[str, int]:
    """The seed that a run was begun with, for settings that name none; nothing where it is new."""
    path = path_of(folder, name)
    if not path.exists():
        return {}
    with Run.open(path, verify=False) as run:
        return {"seed": run.seed}
