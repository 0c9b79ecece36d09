"""The folder of runs as the page sees it: a list with live progress, cards and reports.

Only plain files directly in the folder, or in its own folder of runs, count. A name that somebody
sends is looked up in the list of those files and never becomes a path.
"""

from __future__ import annotations

import contextlib
import heapq
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from dprime import validate
from dprime.runs import run_file
from dprime.runs.folder import summary_of
from dprime.runs.run import Run
from dprime.web.ranges import Answers
from dprime.web.workers import BusyError, TooLongError, Work, Workers, within

LISTED = 1_000
"""How many files are listed and remembered: the newest."""

REPORTS = 10
"""How many reports are remembered, of at most 3 MB each."""

LISTING = 2.0
"""Seconds in which a list is made; what is not read by then is read for the next one."""

LINE, REPORT = Work(3, 2.0, slow=True), Work(4, 60.0, slow=True)
"""How a file is read for the list, and a report or a card written."""

LONGEST = 500
"""Letters of a text in the list."""

Signature = tuple[object, ...]
"""Tells every change of a run's file."""

Key = tuple[Path, Signature]
Written = TypeVar("Written")
LOG = logging.getLogger(__name__)


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
    """The newest runs in the folder, why its other files are none, and how many are left out."""

    runs: list[RunLine]
    not_runs: dict[str, str]
    left_out: int = 0


class Runs:
    """The runs in a folder."""

    def __init__(self, folder: str | os.PathLike[str], pool: Workers | None = None) -> None:
        self.folder = Path(folder).absolute()
        pool = pool or Workers(0)
        self._lines, self._reports = Answers(pool, LISTED), Answers(pool, REPORTS)

    def listed(self) -> RunList:
        """Every run with its progress, and the other files, each with the reason."""
        found = self._files()
        newest = sorted(heapq.nlargest(LISTED, found, key=_changed))
        with within(LISTING):
            keys = [(path, _signature(path)) for path in newest]
            self._lines.begin(LINE, _line, keys)
            lines = {self._name(key[0]): self._line(key) for key in keys}
        return RunList(
            [replace(line, name=n) for n, line in lines.items() if isinstance(line, RunLine)],
            {name: line for name, line in lines.items() if isinstance(line, str)},
            len(found) - len(newest),
        )

    def card(self, name: str) -> dict[str, Any]:
        """The privacy card of a finished run."""
        return self._written(_card, name)

    def report(self, name: str) -> bytes:
        """The report of a finished run, as HTML."""
        return self._written(_report, name)

    def _written(self, write: Callable[[Key], Written], name: str) -> Written:
        path = self._path(name)
        with within(REPORT.longest):
            return self._reports.of(REPORT, write, (path, _signature(path)))

    def _line(self, key: Key) -> RunLine | str:
        """A file of the folder as far as it is known."""
        try:
            return self._lines.of(LINE, _line, key)
        except TooLongError:
            return f"{key[0].name} takes too long to read."
        except BusyError:
            return f"{key[0].name} is being read: look again."

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


def _line(key: Key) -> RunLine | str:
    """A file's line in the list; the reason where it has none."""
    path, _ = key
    try:
        with _without_place(path):
            return _run(path)
    except validate.InputError as error:
        return str(error)[:LONGEST]
    except Exception:  # whatever somebody put into it, the others are listed
        LOG.exception("%r", path.name)
        return f"{path.name} cannot be read: the terminal of the explorer says more."


def _card(key: Key) -> dict[str, Any]:
    from dprime.audit.record import record_of  # noqa: PLC0415
    from dprime.show.card import card  # noqa: PLC0415  needs an extra

    with _without_place(key[0]):
        return dict(card(record_of(key[0])))


def _report(key: Key) -> bytes:
    from dprime.audit.record import record_of  # noqa: PLC0415
    from dprime.show.report import report_html  # noqa: PLC0415  needs an extra

    with _without_place(key[0]):
        return report_html(record_of(key[0])).encode()


@contextlib.contextmanager
def _without_place(path: Path) -> Iterator[None]:
    """An error that is told in a page does not name the folder's path."""
    try:
        yield
    except validate.InputError as error:
        sentence = str(error)
        for place in {str(path.parent), str(path.parent.resolve())}:
            sentence = sentence.replace(f"{place}{os.sep}", "")
        raise validate.InputError(sentence) from None


def _run(path: Path) -> RunLine:
    with Run.open(path, verify=False) as run:
        summary, answer = summary_of(run), run.result or {}
    verdict = answer.get("verdict")
    known = {name: value for name, value in vars(summary).items() if name != "kind"}
    known |= {"adversary": _short(summary.adversary), "data": _short(summary.data)}
    return RunLine(
        **{**known, "changed": summary.changed.isoformat()},
        verdict=_short(verdict.get("outcome") if isinstance(verdict, Mapping) else verdict),
        sentence=_short(answer.get("sentence")),
        report="rows" in answer,
    )


def _short(value: object) -> str | None:
    """A text of a file as it can be listed; what is none is left out."""
    return value[:LONGEST] if isinstance(value, str) else None


def _changed(path: Path) -> float:
    """When a file was changed; long ago if it is gone."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


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
