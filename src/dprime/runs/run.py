"""A run: its configuration, its blocks as they end, and its result, in one file.

    config ──► Run.create ──► blocks, one transaction each ──► arrays ──► result

Killed at any moment a run keeps every block that was finished, and `execute` goes on from there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self, final

import numpy as np

import dprime
from dprime import validate
from dprime.runs import run_file
from dprime.runs.arrays import Arrays, ArraysError, layout_of, pack, unpack
from dprime.runs.config import differences, json_text, versions
from dprime.runs.run_file import explain_errors
from dprime.runs.states import FAILED, Event, State, Worker
from dprime.seeds import check_seed, fresh_seed

KINDS = {
    "audit": "audit",
    "inference": "membership inference",
    "frontier": "frontier",
    "models": "shadow models",
}
"""What runs do, by their kind."""

MOST_BLOCKS = 1_000_000

NAMES_CODE = ("model", "trainer")
"""What of a configuration may name a function of the user's own."""


PathLike = str | os.PathLike[str]
Values = Mapping[str, Any]


@final
class Run:
    """One run in one file. Make it with `Run.create`, `Run.open` or `Run.open_or_create`.

    Use it in a `with` block, or call `close`. Any number of processes may read it; one may write.

    >>> import tempfile
    >>> import numpy as np
    >>> path = Path(tempfile.mkdtemp()) / "first.run"
    >>> with Run.create(path, "audit", {"adversary": "gradient", "seed": 7}, blocks=2) as run:
    ...     run.finish(0, {"scores": np.array([0.5, 1.5])}, seconds=0.1)
    ...     run.pending(), run.state().total_trials
    ([1], 2)
    >>> with Run.open(path) as run:
    ...     run.seed, run.arrays()["scores"].tolist()
    (7, [0.5, 1.5])
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._db = connection
        self._file = path.stat()
        self._lock: sqlite3.Connection | None = None
        self._state: State | None = None  # known while the lock is held
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def create(
        cls, path: PathLike, kind: str, config: Values, blocks: int, request: Values | None = None
    ) -> Run:
        """Begin a run: the file appears whole, with every block pending, or not at all.

        The `config` says what the run is, in JSON values. A `seed` in it gives every random number;
        one is drawn where the name is missing, and none is kept where it is None. A `request` has
        the names from which the work can be made again, where the configuration only describes it.
        """
        place = Path(path)
        seed = config.get("seed", ...)
        if seed is not None:
            seed = fresh_seed() if seed is ... else check_seed(seed)
        about = {
            "kind": validate.one_of("kind", kind, tuple(KINDS)),
            "config": json_text("config", config),
            "versions": json.dumps(versions()),
            "seed": "" if seed is None else str(seed),
            "created": run_file.now(),
            "blocks": str(_checked_blocks(blocks)),
        }
        if request is not None:
            about["request"] = json_text("request", request)
        with explain_errors(place):
            run_file.create(place, about, int(about["blocks"]))
        return cls.open(place)

    @classmethod
    def open(cls, path: PathLike, *, verify: bool = True) -> Run:
        """Open a run, which another process may work on; to `verify` all of it reads all of it."""
        place = Path(path)
        with explain_errors(place):
            return cls(place.resolve(), run_file.connected(place, verify=verify))

    @classmethod
    def open_to_go_on(cls, path: PathLike) -> Run:
        """Open a run to work on it: what is damaged and can be made again will be.

        A damaged block is played again from the seed, and an event says so; a damaged result is
        concluded again. A damaged configuration is refused, and so is a damaged file.
        """
        place = Path(path)
        with explain_errors(place):
            but = frozenset({"result"})
            run = cls(place.resolve(), run_file.connected(place, verify=False, but=but))
        try:
            with explain_errors(run.path):
                run_file.check_pages(run._db, run.path)
                damage = run_file.damage(run._db)
            if damage:
                with run._transaction() as db:
                    run_file.clear(db, damage)
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def open_or_create(
        cls,
        path: PathLike | None,
        kind: str,
        config: Values,
        blocks: int,
        request: Values | None = None,
    ) -> Run:
        """The run at a path if its configuration is the same, or a new one; None: until closed."""
        if path is None:
            folder = tempfile.TemporaryDirectory(prefix="dprime-")
            run = cls.create(Path(folder.name) / "temporary.run", kind, config, blocks, request)
            run._folder = folder
            return run
        if not os.path.lexists(path):
            return cls.create(path, kind, config, blocks, request)
        run = cls.open_to_go_on(path)
        try:
            run._check_same(kind, config, blocks)
            if request is not None and run.request is None:  # it was begun with objects
                run.note("request", json_text("request", request))
        except BaseException:
            run.close()
            raise
        return run

    def close(self) -> None:
        """Close the file; it can be opened again, unless it was a temporary one."""
        self._release()
        self._db.close()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def temporary(self) -> bool:
        """Whether its file goes when it is closed."""
        return self._folder is not None

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

    def keep(self, record: Values) -> None:
        """Keep what was concluded, in JSON values; an earlier result is replaced."""
        self.note("result", json_text("result", record))

    def note(self, name: str, text: str) -> None:
        """Keep a text that the work needs when it is resumed; the same one is not written again."""
        if self.noted(name) == text:
            return
        with self._transaction() as db:
            run_file.put(db, "about", name, text, changed=run_file.now())

    def noted(self, name: str) -> str | None:
        """A text that was kept; None where there is none of this name."""
        rows = self._rows("SELECT value FROM about WHERE name = ?", name)
        return str(rows[0][0]) if rows else None

    def pending(self) -> list[int]:
        """The blocks still to be run: those never tried first, then those that failed."""
        return self._blocks("state <> 'done' ORDER BY state = 'failed', number")

    def done(self) -> list[int]:
        return self._blocks("state = 'done' ORDER BY number")

    def state(self) -> State:
        """How far it is; while this process works on it, no block is counted twice."""
        if self._state is not None:
            return self._state
        last = "SELECT error FROM blocks WHERE state = 'failed' ORDER BY changed DESC, number DESC"
        counts = ", ".join(f"sum(state = '{word}')" for word in ("done", "failed", "pending"))
        query = f"SELECT count(*), {counts}, sum(trials), ({last} LIMIT 1) FROM blocks"
        row = self._rows(query)[0]
        if not all(isinstance(number, int) for number in row[:-1]):
            raise run_file.damaged(self.path, "in its blocks")
        found = State(*row)
        if self._lock is not None:
            self._state = found
        return found

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

    def finish(self, block: int, arrays: Arrays, seconds: float, worker: str = "") -> None:
        """Store a block's arrays, each with the trial first; a finished block is never replaced."""
        trials, layout, data = pack(arrays)
        with self._transaction() as db:
            for other, its in db.execute(
                "SELECT number, layout FROM blocks WHERE finished LIMIT 1"
            ):
                if layout != its:
                    wanted = f"be like those of block {other}, {its}"
                    remedy = "return arrays of the same names, types and shapes for every block"
                    raise ArraysError.of("arrays", wanted, f"they are {layout}", remedy)
            (last,) = db.execute("SELECT coalesce(max(finished), 0) FROM blocks").fetchone()
            kept = {"finished": last + 1, "trials": trials, "layout": layout, "arrays": data}
            digest = run_file.digest(block, *kept.values())
            was = self._end(block, "done", error=None, digest=digest, seconds=seconds, **kept)
            if worker:
                before = self.workers().get(worker, Worker())
                counts = before.blocks + 1, before.trials + trials, before.seconds + seconds
                run_file.put(db, "workers", worker, *counts, run_file.now())
        if self._state is not None:
            self._state = self._state.after(was, "done", trials=trials)

    def fail(self, block: int, error: str, outcome: str = FAILED, worker: str = "") -> None:
        """Record how a try of a block ended, and why; the block stays to be tried again."""
        reason = error.encode(errors="replace").decode()
        with self._transaction() as db:
            was = self._end(block, "failed", error=reason)
            run_file.add_event(db, block, outcome, reason, worker)
        if self._state is not None:
            self._state = self._state.after(was, "failed", error=reason)

    def _end(self, block: int, state: str, **values: object) -> str:
        """Change the row of a block whose try has ended, and say what it was; not one done."""
        before, _ = self._tried(block)
        if before == "done":
            remedy = "leave it: a finished block is never replaced"
            raise validate.invalid_input(f"block {block}", "done", "not yet done", remedy)
        row = {"state": state, "changed": run_file.now(), **values}
        changes = ", ".join(f"{name} = ?" for name in row)
        query = f"UPDATE blocks SET attempts = attempts + 1, {changes} WHERE number = ?"
        self._db.execute(query, (*row.values(), block))
        return before

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

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Hold the run's lock, so that no other process works on it meanwhile."""
        if self._lock is not None:
            yield
            return
        self._lock = run_file.locked(self.path)
        try:
            yield
        finally:
            self._release()

    def busy(self) -> bool:
        """Whether a process is working on the run at this moment."""
        return self._lock is not None or run_file.is_locked(self.path)

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

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, on the disk when it ends."""
        with self.working(), explain_errors(self.path):
            self._check_there()
            self._db.execute("BEGIN IMMEDIATE")
            with self._db:
                yield self._db
            # so that the file alone holds everything, also if someone copies it without its -wal
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _check_there(self) -> None:
        """Refuse to write where the file is not under its name any more: nobody would find it."""
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(self._file, self.path.stat()):
                return
        shown, wanted = "deleted, moved or replaced", "left in its place while it is worked on"
        remedy = "finished blocks are in the file that was there: put it back and resume"
        raise validate.invalid_input(str(self.path), shown, wanted, remedy)

    def _release(self) -> None:
        if self._lock is not None:
            lock, self._lock = self._lock, None
            with contextlib.closing(lock), contextlib.suppress(validate.InputError):
                if self.state().complete:  # which cannot be told of a damaged file
                    run_file.remove_lock(self.path)
            self._state = None

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


def _checked_blocks(blocks: int) -> int:
    """So many that each has its row; more are larger blocks."""
    if validate.whole("blocks", blocks, example=10) > MOST_BLOCKS:
        wanted, remedy = f"at most {MOST_BLOCKS:,}", "ask for fewer trials or larger blocks"
        raise validate.invalid_value("blocks", blocks, wanted, remedy)
    return blocks
