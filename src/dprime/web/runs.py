"""The folder of runs as the page sees it: a list with live progress, cards and reports.

Only plain files directly in the folder, or in its own folder of runs, count. A name that somebody
sends is looked up in the list of those files and never becomes a path.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from dprime import validate
from dprime.runs import run_file
from dprime.runs.folder import summary_of
from dprime.runs.run import Run

LISTED = 2_000
"""How many runs are remembered."""

REPORTS = 10
"""How many reports are remembered, of at most 3 MB each."""

Signature = tuple[object, ...]
"""Tells every change of a run's file."""


class UnknownRunError(validate.InputError):
    """There is no such run in the folder."""


@dataclass(frozen=True)
class RunLine:
    """A run in the list: its summary, the verdict, and whether there is a report."""

    name: str
    adversary: str
    data: str
    blocks: int
    done: int
    total_trials: int
    state: Literal["complete", "running", "failed", "incomplete"]
    changed: str
    verdict: str | None
    sentence: str | None
    report: bool


@dataclass(frozen=True)
class RunList:
    """The runs in the folder, and why its other files are none."""

    runs: list[RunLine]
    not_runs: dict[str, str]


class Runs:
    """The runs in a folder.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> Run.create(place / "a.run", "audit", {"adversary": "di", "seed": 1}, blocks=4).close()
    >>> [(run.name, run.state, run.report) for run in Runs(place).listed().runs]
    [('a.run', 'incomplete', False)]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).absolute()
        self._line = lru_cache(LISTED)(self._read_line)
        self._report = lru_cache(REPORTS)(self._written)

    def listed(self) -> RunList:
        """Every run with its progress, and the other files, each with the reason."""
        lines = {self._name(path): self._line(path, _signature(path)) for path in self._files()}
        return RunList(
            [replace(line, name=n) for n, line in lines.items() if isinstance(line, RunLine)],
            {name: line for name, line in lines.items() if isinstance(line, str)},
        )

    def card(self, name: str) -> dict[str, Any]:
        """The privacy card of a finished run."""
        from dprime.audit.record import record_of  # noqa: PLC0415
        from dprime.show.card import card  # noqa: PLC0415  needs an extra

        found = self._reading(self._path(name), lambda path: card(record_of(path)))
        return dict(found)

    def report(self, name: str) -> bytes:
        """The report of a finished run, as HTML."""
        path = self._path(name)
        return self._report(path, _signature(path))

    def _written(self, path: Path, _: Signature) -> bytes:
        from dprime.audit.record import record_of  # noqa: PLC0415  needs an extra
        from dprime.show.report import report_html  # noqa: PLC0415

        html: str = self._reading(path, lambda place: report_html(record_of(place)))
        return html.encode()

    def _files(self) -> list[Path]:
        """The plain files of the folder that could be runs; no links, which may lead out of it."""
        found, place = run_file.candidates(self.folder), self.folder.resolve()
        plain = [path for path in found if path.resolve() == place / self._name(path)]
        return [path for path in plain if path.name.isprintable() and path.name[0] != "."]

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _path(self, name: str) -> Path:
        for path in self._files():
            if self._name(path) == name:
                return path
        raise UnknownRunError(f"run must be one of the folder's, but it is {name!r}: see the list.")

    def _read_line(self, path: Path, _: Signature) -> RunLine | str:
        """A file of the folder; the reason where it is no run."""
        try:
            found: RunLine = self._reading(path, _run)
        except validate.InputError as error:
            return str(error)
        return found

    def _reading(self, path: Path, read: Callable[[Path], Any]) -> Any:
        """Read a run; an error does not name the folder's path."""
        try:
            return read(path)
        except validate.InputError as error:
            raise validate.InputError(self._without_place(str(error))) from None

    def _without_place(self, sentence: str) -> str:
        for place in {str(self.folder), str(self.folder.resolve())}:
            sentence = sentence.replace(f"{place}{os.sep}", "")
        return sentence


def _run(path: Path) -> RunLine:
    """A run's line in the list."""
    with Run.open(path, verify=False) as run:
        summary, answer = summary_of(run), run.result or {}
    verdict = answer.get("verdict")
    known = {name: value for name, value in vars(summary).items() if name != "kind"}
    return RunLine(
        **{**known, "changed": summary.changed.isoformat()},
        verdict=verdict["outcome"] if isinstance(verdict, Mapping) else verdict,
        sentence=answer.get("sentence"),
        report="rows" in answer,
    )


def _signature(path: Path) -> Signature:
    """Size and time of the file and of SQLite's log beside it, and whether somebody works on it."""
    found: list[object] = [run_file.is_locked(path)]
    for place in (path, run_file.sidecar(path, "-wal")):
        with contextlib.suppress(OSError):
            known = place.stat()
            found.append((known.st_mtime_ns, known.st_size, known.st_ino))
    return tuple(found)


def checked_folder(folder: str | os.PathLike[str]) -> Path:
    """A folder that is there."""
    place = Path(folder)
    if not place.is_dir():
        raise validate.invalid_value(
            "folder", str(folder), "a folder", "give the one that runs are in"
        )
    return place
