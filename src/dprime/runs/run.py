"""A run: its configuration, its blocks as they end, and its result, in one file.

config ──► Run.create ──► blocks, one transaction each ──► arrays ──► result
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self, TypeVar, final

import numpy as np

from dprime import validate
from dprime.runs import contents, run_file
from dprime.runs.contents import KINDS, Arrays, ArraysError, Values, json_text
from dprime.runs.run_file import explain_errors
from dprime.runs.states import FAILED, Event, State, Worker
from dprime.seeds import check_seed, fresh_seed

MOST_BLOCKS = 1_000_000

T = TypeVar("T")
PathLike = str | os.PathLike[str]


@final
class Run:
    """One run in one file. Make it with `Run.create`, `Run.open` or `Run.open_or_create`.

    Use it in a `with` block, or call `close`. Any number of processes may read it; one may write.
    Killed at any moment it keeps every finished block, and `execute` goes on from there.

    >>> import tempfile
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
        if validate.whole("blocks", blocks, example=10) > MOST_BLOCKS:
            wanted, remedy = f"at most {MOST_BLOCKS:,}", "ask for fewer trials or larger blocks"
            raise validate.invalid_value("blocks", blocks, wanted, remedy)
        about = {
            "kind": validate.one_of("kind", kind, tuple(KINDS)),
            "config": json_text("config", config),
            "versions": json.dumps(contents.versions()),
            "seed": "" if seed is None else str(seed),
            "created": run_file.now(),
            "blocks": str(blocks),
        }
        if request is not None:
            about["request"] = json_text("request", request)
        with explain_errors(place):
            run_file.create(place, about, blocks)
        return cls.open(place)

    @classmethod
    def open(cls, path: PathLike, *, verify: bool = True) -> Run:
        """Open a run, which another process may work on; to `verify` all of it reads all of it."""
        place = Path(path)
        with explain_errors(place):
            return cls(place.resolve(), run_file.connected(place, verify=verify))

    @classmethod
    def open_to_go_on(cls, path: PathLike) -> Run:
        """Open a run to work on it; whatever can be made again may be damaged.

        A damaged block is played again from the seed, and an event says so; a damaged result is
        concluded again. A damaged configuration is refused, and so is a damaged file.
        """
        place = Path(path)
        with explain_errors(place):
            run = cls(place.resolve(), run_file.connected(place, verify=False, repair=True))
        with run._closed_on_error(), explain_errors(run.path):
            run_file.check_pages(run._db, run.path)
            if damage := run_file.damage(run._db):
                with run._transaction() as db:
                    run_file.clear(db, damage)
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
        with run._closed_on_error():
            name, given = run.path.name, _values(json_text("config", config))
            contents.check_same(name, {"kind": run.kind, **run.config}, {"kind": kind, **given})
            contents.check_same(name, {"blocks": run.state().blocks}, {"blocks": blocks})
            if request is not None and run.request is None:  # it was begun with objects
                run.note("request", json_text("request", request))
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

    @contextlib.contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    # What it holds, which any number of processes may read while one works on it

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
        return self._read(_values, self._text("config"))

    @property
    def request(self) -> dict[str, Any] | None:
        """Names and numbers from which the work can be made again; None if it was objects."""
        return None if (text := self.noted("request")) is None else self._read(_values, text)

    @property
    def result(self) -> dict[str, Any] | None:
        return None if (text := self.noted("result")) is None else self._read(_values, text)

    @property
    def versions(self) -> dict[str, str]:
        return self._read(_values, self._text("versions"))

    @property
    def seed(self) -> int:
        """The seed of the whole run, which tells the noise of every trial.

        That does no harm in an audit; never use it for a model that is released.
        """
        if not (text := self._text("seed")):
            wanted = "one that keeps its seed"
            raise validate.invalid_input("run", "one whose seed is a secret", wanted, "")
        return self._read(int, text)

    @property
    def created(self) -> datetime:
        return self._moment(self._text("created"))

    def noted(self, name: str) -> str | None:
        """A text that was kept; None where there is none of this name."""
        rows = self._rows("SELECT value FROM about WHERE name = ?", name)
        return str(rows[0][0]) if rows else None

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

    def pending(self) -> list[int]:
        """The blocks still to be run: those never tried first, then those that failed."""
        return self._blocks("state <> 'done' ORDER BY state = 'failed', number")

    def done(self) -> list[int]:
        return self._blocks("state = 'done' ORDER BY number")

    def changed(self) -> datetime:
        times = "SELECT changed FROM blocks UNION ALL SELECT changed FROM about"
        return self._moment(self._rows(f"SELECT max(changed) FROM ({times})")[0][0])

    def arrays(self, since: int = 0) -> dict[str, np.ndarray[Any, Any]]:
        """The arrays of finished blocks in order, without `since`, those finished first."""
        columns, parts = run_file.DIGESTED["blocks"], []
        query = f"SELECT digest, {columns} FROM blocks WHERE finished > ? ORDER BY number"
        with explain_errors(self.path):
            for kept, number, *row in self._db.execute(query, (since,)):
                try:
                    if run_file.digest(number, *row) != kept:
                        raise ArraysError
                    parts.append(contents.unpack(*row[1:]))
                except ArraysError:
                    raise run_file.damaged(self.path, f"in block {number}") from None
        return {
            name: np.concatenate([part[name] for part in parts], dtype=array.dtype)
            for name, array in (parts[0] if parts else {}).items()
        }

    def events(self) -> list[Event]:
        """What went wrong, the latest last; a block that failed may be done by now."""
        rows = self._rows(f"SELECT {run_file.DIGESTED['events']} FROM events ORDER BY number")
        return [Event(*row) for _, *row in rows]

    def workers(self) -> dict[str, Worker]:
        rows = self._rows(f"SELECT {run_file.DIGESTED['workers']} FROM workers ORDER BY name")
        return {name: Worker(*row) for name, *row in rows}

    def pace(self) -> float:
        """Trials a second, over the last minute in which blocks ended; 0 before the first."""
        rows = self._rows("SELECT changed, trials FROM blocks WHERE state = 'done'")
        ended = [(self._moment(changed), trials) for changed, trials in rows]
        if not ended:
            return 0.0
        start = max(self.created, max(ended)[0] - timedelta(minutes=1))
        trials = sum(float(trials) for moment, trials in ended if moment > start)
        return trials / max((max(ended)[0] - start).total_seconds(), 1e-3)

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with explain_errors(self.path):
            return self._db.execute(query, values).fetchall()

    def _blocks(self, condition: str) -> list[int]:
        return [number for (number,) in self._rows(f"SELECT number FROM blocks WHERE {condition}")]

    def _text(self, name: str) -> str:
        if (text := self.noted(name)) is None:
            raise run_file.damaged(self.path)
        return text

    def _moment(self, text: object) -> datetime:
        return self._read(datetime.fromisoformat, str(text))

    def _read(self, read: Callable[[str], T], text: str) -> T:
        try:
            return read(text)
        except (ValueError, TypeError, RecursionError):
            raise run_file.damaged(self.path) from None

    # What is added to it, by the process that holds its lock

    def keep(self, record: Values) -> None:
        """Keep what was concluded, in JSON values; an earlier result is replaced."""
        self.note("result", json_text("result", record))

    def note(self, name: str, text: str) -> None:
        """Keep a text that the work needs when it is resumed; the same one is not written again."""
        if self.noted(name) == text:
            return
        with self._transaction() as db:
            run_file.put(db, "about", name, text, changed=run_file.now())

    def finish(self, block: int, arrays: Arrays, seconds: float, worker: str = "") -> None:
        """Store a block's arrays, each with the trial first; a finished block is never replaced."""
        trials, layout, data = contents.pack(arrays)
        with self._transaction() as db:
            first = "SELECT number, layout FROM blocks WHERE finished LIMIT 1"
            for other, its in db.execute(first):
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
        rows = self._rows("SELECT state FROM blocks WHERE number = ?", block)
        if not rows:
            limits = f"between 0 and {self.state().blocks - 1}"
            raise validate.invalid_value("block", block, limits, "give a block of this run")
        if rows[0] == ("done",):
            remedy = "leave it: a finished block is never replaced"
            raise validate.invalid_input(f"block {block}", "done", "not yet done", remedy)
        row = {"state": state, "changed": run_file.now(), **values}
        changes = ", ".join(f"{name} = ?" for name in row)
        query = f"UPDATE blocks SET attempts = attempts + 1, {changes} WHERE number = ?"
        self._db.execute(query, (*row.values(), block))
        return str(rows[0][0])

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
        """Refuse to write to a file that is no longer under its name: it would be lost."""
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


def _values(text: str) -> dict[str, Any]:
    return dict(json.loads(text))
