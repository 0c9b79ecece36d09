"""What a run's file holds: what the run is, its blocks and their arrays, and its result."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

import dprime
from dprime import validate
from dprime.runs import run_file
from dprime.runs.arrays import ArraysError, layout_of, unpack
from dprime.runs.config import differences, json_text
from dprime.runs.run_file import explain_errors
from dprime.runs.states import Event, State, Worker

NAMES_CODE = ("model", "trainer")
"""What of a configuration may name a function of the user's own."""

KINDS = {
    "audit": "audit",
    "inference": "membership inference",
    "frontier": "frontier",
    "models": "shadow models",
}
"""What runs do, by their kind."""

Values = Mapping[str, Any]


class RunContents(ABC):
    """What a run keeps, which any number of processes may read while one works on it."""

    path: Path
    _db: sqlite3.Connection

    @abstractmethod
    def state(self) -> State:
        """How far it is."""

    def _counted(self) -> State:
        last = "SELECT error FROM blocks WHERE state = 'failed' ORDER BY changed DESC, number DESC"
        counts = ", ".join(f"sum(state = '{word}')" for word in ("done", "failed", "pending"))
        query = f"SELECT count(*), {counts}, sum(trials), ({last} LIMIT 1) FROM blocks"
        row = self._rows(query)[0]
        if not all(isinstance(number, int) for number in row[:-1]):
            raise run_file.damaged(self.path, "in its blocks")
        return State(*row)

    @property
    def kind(self) -> str:
        """What the run is: "audit", "inference", "frontier" or "models"."""
        if (kind := self._text("kind")) in KINDS:
            return kind
        raise run_file.damaged(self.path, "in its kind")

    @property
    def config(self) -> dict[str, Any]:
        return self._json(self._text("config"))

    @property
    def request(self) -> dict[str, Any] | None:
        """Names and numbers from which the work can be made again; None if it was objects."""
        return self._noted_json("request")

    @property
    def code(self) -> list[str]:
        """The Python code that resuming the run imports and calls, as "module:function"."""
        given = [
            each.get(name) for each in (self.config, self.request or {}) for name in NAMES_CODE
        ]
        named = [each for each in given if isinstance(each, str) and ":" in each]
        return list(dict.fromkeys(named))

    @property
    def result(self) -> dict[str, Any] | None:
        return self._noted_json("result")

    @property
    def versions(self) -> dict[str, str]:
        return self._json(self._text("versions"))

    @property
    def seed(self) -> int:
        """The seed of the whole run, which tells the noise of every trial.

        That does no harm in an audit; never use it for a model that is released.
        """
        if text := self._text("seed"):
            with contextlib.suppress(ValueError):
                return int(text)
            raise run_file.damaged(self.path)
        wanted = "one that keeps its seed"
        raise validate.invalid_input("run", "one whose seed is a secret", wanted, "")

    @property
    def created(self) -> datetime:
        return self._time(self._text("created"))

    def noted(self, name: str) -> str | None:
        """A text that was kept; None where there is none of this name."""
        rows = self._rows("SELECT value FROM about WHERE name = ?", name)
        return str(rows[0][0]) if rows else None

    def pending(self) -> list[int]:
        """The blocks still to be run: those never tried first, then those that failed."""
        return self._blocks("state <> 'done' ORDER BY state = 'failed', number")

    def done(self) -> list[int]:
        return self._blocks("state = 'done' ORDER BY number")

    def changed(self) -> datetime:
        times = "SELECT changed FROM blocks UNION ALL SELECT changed FROM about"
        return self._time(str(self._rows(f"SELECT max(changed) FROM ({times})")[0][0]))

    def arrays(self, since: int = 0) -> dict[str, np.ndarray[Any, Any]]:
        """The arrays of finished blocks in order, without `since`, those finished first."""
        columns, parts = run_file.DIGESTED["blocks"], []
        query = f"SELECT {columns}, digest FROM blocks WHERE finished > ? ORDER BY number"
        with explain_errors(self.path):
            for *values, kept in self._db.execute(query, (since,)):
                parts.append(self._block_arrays(*values, kept=kept))
        return {
            name: np.concatenate([part[name] for part in parts], dtype=array.dtype)
            for name, array in (parts[0] if parts else {}).items()
        }

    def _block_arrays(
        self, number: int, finished: int, trials: int, layout: str, data: bytes, *, kept: str
    ) -> dict[str, np.ndarray[Any, Any]]:
        """The arrays of a row, if they are those that it says it has."""
        told = run_file.digest(number, finished, trials, layout, data)
        if told == kept and isinstance(data, bytes):
            with contextlib.suppress(ArraysError):
                arrays = unpack(data)
                lengths = {array.shape[:1] for array in arrays.values()}
                if layout_of(arrays) == layout and lengths == {(trials,)}:
                    return arrays
        raise run_file.damaged(self.path, f"in block {number}")

    def events(self) -> list[Event]:
        """What went wrong on the way, the latest last; a block that failed may be done by now."""
        columns = ", ".join(field.name for field in dataclasses.fields(Event))
        return [Event(*row) for row in self._rows(f"SELECT {columns} FROM events ORDER BY number")]

    def workers(self) -> dict[str, Worker]:
        rows = self._rows(f"SELECT {run_file.DIGESTED['workers']} FROM workers ORDER BY name")
        return {name: Worker(*row) for name, *row in rows}

    def pace(self) -> float:
        """Trials a second, over the last minute in which blocks ended; 0 before the first."""
        rows = self._rows("SELECT changed, trials FROM blocks WHERE state = 'done'")
        ended = [(self._time(str(changed)), trials) for changed, trials in rows]
        if not ended:
            return 0.0
        start = max(self.created, max(ended)[0] - timedelta(minutes=1))
        trials = sum(float(trials) for moment, trials in ended if moment > start)
        return trials / max((max(ended)[0] - start).total_seconds(), 1e-3)

    def attempts(self, block: int) -> int:
        """How often a block ended, done or failed; a try that was killed does not count."""
        return self._tried(block)[1]

    def _tried(self, block: int) -> tuple[str, int]:
        rows = self._rows("SELECT state, attempts FROM blocks WHERE number = ?", block)
        if not rows:
            limits = f"between 0 and {self.state().blocks - 1}"
            raise validate.invalid_value("block", block, limits, "give a block of this run")
        return rows[0][0], rows[0][1]

    def check_code(self, *, allowed: bool) -> None:
        """Refuse to run code that the file names, unless whoever resumes it allows that."""
        if self.code and not allowed:
            shown = f"one that imports and calls {' and '.join(map(repr, self.code))}"
            remedy = "if you trust the file, resume it with --allow-code (allow_code=True)"
            raise validate.invalid_input("run", shown, "allowed to run that code", remedy)

    def check_version(self) -> None:
        """Refuse to add to what another version has played: its trials may have other scores."""
        begun = self.versions.get("dprime", dprime.__version__)
        if self.state().done and self.pending() and begun != dprime.__version__:
            shown = f"begun by {begun} and played in part"
            remedy = f"begin it anew, or finish it with dprime {begun}"
            raise validate.invalid_input("run", shown, f"of dprime {dprime.__version__}", remedy)

    def check_complete(self, what: str) -> None:
        """Refuse to conclude where blocks are missing, whose contents are `what`."""
        state = self.state()
        if not state.complete:
            counts = f"{state.failed} of {state.blocks} blocks of {what}"
            raise validate.InputError(f"{counts} could not be trained: {state.last_error}.")

    def _check_same(self, kind: str, config: Values, blocks: int) -> None:
        """Refuse another configuration than that of the run, and say what differs."""
        before = {"kind": self.kind, **self.config}
        apart = differences(before, {"kind": kind, **json.loads(json_text("config", config))})
        if apart is None and self.state().blocks != blocks:
            apart = (f"{self.state().blocks} blocks", f"{blocks} blocks")
        if apart is not None:
            found, wanted = f"of {apart[0]}", f"of the same settings ({apart[1]})"
            remedy = "give another path, or the settings that it was made with"
            raise validate.invalid_input(self.path.name, found, wanted, remedy)

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with explain_errors(self.path):
            return self._db.execute(query, values).fetchall()

    def _blocks(self, condition: str) -> list[int]:
        return [number for (number,) in self._rows(f"SELECT number FROM blocks WHERE {condition}")]

    def _text(self, name: str) -> str:
        if (text := self.noted(name)) is None:
            raise run_file.damaged(self.path)
        return text

    def _time(self, text: str) -> datetime:
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            raise run_file.damaged(self.path) from None

    def _noted_json(self, name: str) -> dict[str, Any] | None:
        text = self.noted(name)
        return None if text is None else self._json(text)

    def _json(self, text: str) -> dict[str, Any]:
        try:
            return dict(json.loads(text))
        except (ValueError, TypeError, RecursionError):
            raise run_file.damaged(self.path) from None
