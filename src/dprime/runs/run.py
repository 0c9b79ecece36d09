"""The store of an audit's runs: settings, blocks of trials as they end, and the answer.

    settings ──► Run.create ──► blocks of trials, one transaction each ──► arrays ──► answer

A run is one file (`run_file` says how it is kept whole). Killed at any moment it keeps every block
that was finished, and `execute` goes on from there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import platform
import sqlite3
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from importlib import metadata
from pathlib import Path
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

import dprime
from dprime import validate
from dprime.runs import run_file
from dprime.runs.run_file import explain_errors
from dprime.runs.states import Event, State, Summary, Worker
from dprime.seeds import check_seed, fresh_seed

Arrays = dict[str, NDArray[Any]]

MOST_EVENTS = 1000
"""That a run remembers."""

LARGEST_BLOCK = 900_000_000
"""Bytes; SQLite takes values of up to 1,000,000,000."""


@final
class Run:
    """One run of an audit in one file. Make it with `Run.create` or `Run.open`.

    Use it in a `with` block, or call `close`. Any number of processes may read it; one may write.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "first.run"
    >>> with Run.create(path, {"adversary": "gradient", "seed": 7}, blocks=2) as store:
    ...     store.finish(0, {"scores": np.array([0.5, 1.5])}, seconds=0.1)
    ...     store.pending(), store.state().trials
    ([1], 2)
    >>> with Run.open(path) as store:
    ...     store.seed, store.arrays()["scores"].tolist()
    (7, [0.5, 1.5])
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._db = connection
        self._lock: sqlite3.Connection | None = None

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], settings: Mapping[str, Any], blocks: int
    ) -> Run:
        """Begin a run: the file appears whole, with every block pending, or not at all.

        Args:
            path: of the new file; its folder is made if need be.
            settings: what the run is, of JSON values. `seed` in it gives every random number; where
                it is not given, one is drawn that nobody can guess. `adversary` and `data` are
                shown in lists of runs.
            blocks: how many blocks of trials the run has.

        >>> import tempfile
        >>> with Run.create(tempfile.mkdtemp() + "/a.run", {"seed": 1}, blocks=3) as store:
        ...     store.pending()
        [0, 1, 2]
        """
        place = Path(path)
        count = validate.whole("blocks", blocks, example=10)
        with explain_errors(place):
            run_file.create(place, _about(settings, count), count)
        return cls.open(place)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Run:
        """Open a run and check that it is whole; another process may be working on it.

        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/a.run"
        >>> Run.create(path, {"adversary": "gradient", "seed": 1}, blocks=3).close()
        >>> with Run.open(path) as store:
        ...     store.config
        {'adversary': 'gradient', 'seed': 1}
        """
        place = Path(path)
        with explain_errors(place):
            return cls(place.resolve(), run_file.connected(place))

    def close(self) -> None:
        """Close the file; it can be opened again."""
        self._release()
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def config(self) -> dict[str, Any]:
        """What the run was created with."""
        return dict(json.loads(self._text("settings")))

    @property
    def versions(self) -> dict[str, str]:
        """Of dprime, Python and the libraries that the run was created with."""
        return dict(json.loads(self._text("versions")))

    @property
    def seed(self) -> int:
        """The seed of the whole run, which resuming it needs.

        Whoever knows it knows the noise of every trial. That does no harm while the models of an
        audit are not released; never use it for a training whose model is.
        """
        return int(self._text("seed"))

    @property
    def created(self) -> datetime:
        """When the run was created."""
        return datetime.fromisoformat(self._text("created"))

    @property
    def result(self) -> dict[str, Any] | None:
        """What was concluded from the run, where that was kept."""
        row = self._row("SELECT value FROM about WHERE name = 'answer'")
        if row is None:
            return None
        answer = json.loads(row[0])
        if not isinstance(answer, dict):
            shown = "damaged: its answer is no table of names and values"
            raise validate.misfit("run", shown, "whole", "dprime resume makes the answer anew")
        return answer

    def keep(self, answer: Mapping[str, Any]) -> None:
        """Keep what was concluded, of JSON values; an earlier answer is replaced.

        >>> import tempfile
        >>> with Run.create(tempfile.mkdtemp() + "/a.run", {"seed": 1}, blocks=1) as store:
        ...     store.keep({"epsilon": 1.5})
        ...     store.result
        {'epsilon': 1.5}
        """
        text = _json("answer", answer)
        with self._transaction() as db:
            self._put(db, "answer", text)

    def pending(self) -> list[int]:
        """The blocks still to be run: those never tried first, then those that failed."""
        return self._numbers("state <> 'done' ORDER BY state = 'failed', number")

    def done(self) -> list[int]:
        """The finished blocks, in order."""
        return self._numbers("state = 'done' ORDER BY number")

    def state(self) -> State:
        """How far the run is."""
        row = self._row(
            "SELECT count(*), total(state = 'done'), total(state = 'failed'), "
            "total(state = 'pending'), total(trials), (SELECT error FROM blocks "
            "WHERE state = 'failed' ORDER BY changed DESC, number DESC LIMIT 1) FROM blocks"
        )
        assert row is not None
        blocks, done, failed, pending, trials = map(int, row[:5])
        return State(blocks, done, failed, pending, trials, last_error=row[5])

    def changed(self) -> datetime:
        """When a block or the answer was stored last."""
        row = self._row(
            "SELECT max(changed) FROM (SELECT changed FROM blocks UNION SELECT changed FROM about)"
        )
        assert row is not None
        return datetime.fromisoformat(row[0])

    def arrays(self) -> Arrays:
        """The arrays of all finished blocks, joined in the order of the blocks."""
        with explain_errors(self.path):
            rows = self._db.execute(
                "SELECT number, arrays FROM blocks WHERE state = 'done' ORDER BY number"
            )
            parts = [_unpacked(packed, self.path, number) for number, packed in rows]
        if not parts:
            return {}
        return {
            name: np.concatenate([part[name] for part in parts], dtype=first.dtype)
            for name, first in parts[0].items()
        }

    def check(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Refuse arrays that could not be stored, or not be joined with those of other blocks."""
        _trials(arrays)
        layout = _layout(arrays)
        size = sum(array.nbytes for array in arrays.values())
        if size > LARGEST_BLOCK:
            limit = f"at most {LARGEST_BLOCK:,} bytes"
            raise validate.misfit("arrays", f"{size:,} bytes", limit, "run smaller blocks")
        row = self._row("SELECT number, layout FROM blocks WHERE state = 'done' LIMIT 1")
        if row is not None and row[1] != layout:
            raise validate.misfit(
                "arrays", layout, f"like those of block {row[0]}, {row[1]}",
                "return arrays of the same names, types and shapes for every block",
            )  # fmt: skip

    def finish(
        self, block: int, arrays: Mapping[str, NDArray[Any]], seconds: float, worker: str = ""
    ) -> None:
        """Run a block's arrays, each with the trial first; a finished block is never replaced.

        Args:
            block: its number.
            arrays: by name.
            seconds: that it took.
            worker: who played it, as people call it.
        """
        self.check(arrays)
        layout, packed = _layout(arrays), _packed(arrays)
        taken = validate.at_least_zero("seconds", seconds)
        with self._transaction() as db:
            self._check_open(block)
            db.execute(
                "UPDATE blocks SET state = 'done', attempts = attempts + 1, error = NULL, "
                "seconds = ?, trials = ?, layout = ?, arrays = ?, digest = ?, changed = ? "
                "WHERE number = ?",
                (
                    taken, _trials(arrays), layout, packed,
                    run_file.digest(block, layout, packed), run_file.now(), block,
                ),
            )  # fmt: skip
            if worker:
                self._count(db, worker, _trials(arrays), taken)

    def fail(self, block: int, error: str, how: str = "failed", worker: str = "") -> None:
        """Record that a block failed, and why; it stays to be tried again.

        Args:
            block: its number.
            error: what went wrong, in a line.
            how: in a few words, such as "out of memory".
            worker: who had it, as people call it.
        """
        reason = error.encode(errors="replace").decode()
        event = Event(run_file.now(), block, how, reason, worker)
        events = [*map(dataclasses.asdict, self.events()), dataclasses.asdict(event)]
        with self._transaction() as db:
            self._put(db, "events", json.dumps(events[-MOST_EVENTS:]))
            self._check_open(block)
            db.execute(
                "UPDATE blocks SET state = 'failed', attempts = attempts + 1, error = ?, "
                "changed = ? WHERE number = ?",
                (reason, run_file.now(), block),
            )

    def events(self) -> list[Event]:
        """What went wrong on the way, the latest last; a block that failed may be done by now."""
        return [Event(**event) for event in json.loads(self._text_or("events", "[]"))]

    def workers(self) -> dict[str, Worker]:
        """Who played how much, by name."""
        found = json.loads(self._text_or("workers", "{}"))
        return {name: Worker(**counted) for name, counted in found.items()}

    def pace(self) -> float:
        """Trials a second, over the last minute in which blocks ended; 0 before the first."""
        row = self._row("SELECT max(changed) FROM blocks WHERE state = 'done'")
        if row is None or row[0] is None:
            return 0.0
        last = datetime.fromisoformat(row[0])
        since = max(self.created, last - timedelta(minutes=1))
        row = self._row(
            "SELECT total(trials) FROM blocks WHERE state = 'done' AND changed > ?",
            since.isoformat(),
        )
        assert row is not None
        return float(row[0]) / max((last - since).total_seconds(), 1e-3)

    def _count(self, db: sqlite3.Connection, worker: str, trials: int, seconds: float) -> None:
        """Add a block to what a worker has played."""
        known = self.workers()
        so_far = known.get(worker, Worker())
        known[worker] = Worker(
            so_far.blocks + 1, so_far.trials + trials, so_far.seconds + seconds, run_file.now()
        )
        plain = {name: dataclasses.asdict(each) for name, each in known.items()}
        self._put(db, "workers", json.dumps(plain))

    @staticmethod
    def _put(db: sqlite3.Connection, name: str, text: str) -> None:
        row = run_file.about_row(name, text)
        db.execute("INSERT OR REPLACE INTO about VALUES (?, ?, ?, ?)", row)

    def attempts(self, block: int) -> int:
        """How often a block ended, done or failed; a try that was killed does not count."""
        return int(self._block(block)[0])

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Hold the run's lock, so that no other process works on it meanwhile."""
        if self._lock is not None:
            yield
            return
        with explain_errors(self.path):
            self._lock = run_file.locked(self.path)
        try:
            yield
        finally:
            self._release()

    def busy(self) -> bool:
        """Whether a process is working on the run at this moment."""
        return self._lock is not None or run_file.is_locked(self.path)

    def summary(self) -> Summary:
        """The run in one line."""
        config, state = self.config, self.state()
        return Summary(
            name=self.path.name,
            adversary=_label(config.get("adversary")),
            data=_label(config.get("data")),
            blocks=state.blocks,
            done=state.done,
            trials=state.trials,
            state=_word(state, self.busy()),
            changed=self.changed(),
        )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, on the disk when it ends."""
        with self.working(), explain_errors(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            # so that the file alone holds everything, also if someone copies it without its -wal
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _row(self, query: str, *values: object) -> tuple[Any, ...] | None:
        with explain_errors(self.path):
            row: tuple[Any, ...] | None = self._db.execute(query, values).fetchone()
        return row

    def _numbers(self, condition: str) -> list[int]:
        with explain_errors(self.path):
            rows = self._db.execute(f"SELECT number FROM blocks WHERE {condition}")
            return [int(number) for (number,) in rows]

    def _text(self, name: str) -> str:
        row = self._row("SELECT value FROM about WHERE name = ?", name)
        if row is None:
            raise run_file.damaged(self.path)
        return str(row[0])

    def _text_or(self, name: str, usual: str) -> str:
        row = self._row("SELECT value FROM about WHERE name = ?", name)
        return usual if row is None else str(row[0])

    def _block(self, block: int) -> tuple[Any, ...]:
        """A block's attempts and state."""
        row = self._row("SELECT attempts, state FROM blocks WHERE number = ?", block)
        if row is None:
            limits = f"between 0 and {self.state().blocks - 1}"
            raise validate.refusal("block", block, limits, "give a block of this run")
        return row

    def _check_open(self, block: int) -> None:
        """Refuse a block that is done."""
        if self._block(block)[1] == "done":
            remedy = "leave it: a finished block is never replaced"
            raise validate.misfit(f"block {block}", "done", "not yet done", remedy)


def runs(folder: str | os.PathLike[str]) -> list[Summary]:
    """The runs in a folder, by name; what is not one is left out (`not_runs` names it).

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> Run.create(place / "a.run", {"adversary": "gradient", "seed": 1}, blocks=4).close()
    >>> [(run.name, run.adversary, run.done, run.blocks, run.state) for run in runs(place)]
    [('a.run', 'gradient', 0, 4, 'incomplete')]
    """
    return [found for found in _survey(folder).values() if isinstance(found, Summary)]


def not_runs(folder: str | os.PathLike[str]) -> dict[str, str]:
    """The files in a folder that are no runs or cannot be read, by name, each with the reason.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> _ = (place / "notes.txt").write_text("Try a stronger adversary.")
    >>> list(not_runs(place))
    ['notes.txt']
    """
    return {name: found for name, found in _survey(folder).items() if isinstance(found, str)}


def _survey(folder: str | os.PathLike[str]) -> dict[str, Summary | str]:
    """Every file of a folder: a run's summary, or why it is none."""
    place = Path(folder)
    if not place.is_dir():
        raise validate.refusal("folder", str(folder), "a folder", "give the folder of the runs")
    return {path.name: _looked_at(path) for path in run_file.candidates(place)}


def _looked_at(path: Path) -> Summary | str:
    try:
        with Run.open(path) as store:
            return store.summary()
    except validate.InputError as error:
        return str(error)


def _word(state: State, busy: bool) -> str:
    """The state of a run in a word."""
    if busy:
        return "running"
    if state.complete:
        return "complete"
    return "incomplete" if state.pending else "failed"


def _label(value: object) -> str:
    """A setting in a word: its name where it has one."""
    if isinstance(value, Mapping):
        value = value.get("name")
    return "" if value is None else str(value)


def _about(settings: object, blocks: int) -> dict[str, str]:
    """The texts that a new run holds."""
    if not isinstance(settings, Mapping):
        remedy = "give for example {'adversary': 'gradient', 'seed': 1}"
        raise validate.refusal("settings", settings, "a mapping of JSON values", remedy)
    seed = settings.get("seed")
    return {
        "settings": _json("settings", settings),
        "versions": _json("versions", versions()),
        "seed": str(fresh_seed() if seed is None else check_seed(seed)),
        "created": run_file.now(),
        "blocks": str(blocks),
    }


def versions() -> dict[str, str]:
    """Of dprime, Python, and the libraries that a result may depend on."""
    found = {"dprime": dprime.__version__, "python": platform.python_version()}
    for library in ("numpy", "scipy", "torch"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[library] = metadata.version(library)
    return found


def _json(name: str, value: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError) as error:
        remedy = "use finite numbers, texts, lists and mappings, and None for what has no value"
        raise validate.misfit(name, f"not ({error})", "made of JSON values", remedy) from None


def _layout(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Names, types and shapes of a block's arrays, the number of trials left open."""
    described = []
    for name, array in sorted(arrays.items()):
        shape = ", ".join(["trial", *map(str, array.shape[1:])])
        described.append(f"{name} {array.dtype.str}[{shape}]")
    return "; ".join(described)


def _trials(arrays: object) -> int:
    """The number of trials in a block: the length of every array."""
    remedy = "return a mapping such as {'scores': array} with the trial first in every array"
    if not isinstance(arrays, Mapping) or not arrays:
        shown = f"{type(arrays).__name__} {arrays!r:.50}"
        raise validate.misfit("arrays", shown, "a mapping of names to arrays", remedy)
    for name, array in arrays.items():
        if not isinstance(name, str) or not isinstance(array, np.ndarray) or array.ndim == 0:
            shown = f"{type(array).__name__} of shape {np.shape(array)}"
            raise validate.misfit(f"arrays[{name!r}]", shown, "an array of trials", remedy)
        if array.dtype.hasobject:
            raise validate.misfit(f"arrays[{name!r}]", "of Python objects", "of numbers", remedy)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) != 1:
        raise validate.misfit("arrays", f"{lengths}", "of one length, the block's trials", remedy)
    return next(iter(lengths.values()))


def _packed(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of an npz file, with no pickle, and any name (`numpy.savez` reserves some)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return buffer.getvalue()


def _unpacked(packed: bytes, path: Path, block: int) -> Arrays:
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error):
        raise run_file.damaged(path, f"in block {block}") from None
