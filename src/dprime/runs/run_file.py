"""The file of a run: an SQLite database that a kill at any moment leaves whole, and its lock.

Table `about` holds texts by name, `blocks` one row for each block with the bytes of an npz file,
`events` and `workers` what went wrong and who did how much. Every text, event and finished block
has a digest, because SQLite's own check does not look inside the values. Texts are checked whenever
a run is opened, the rest when it is resumed or reported.

Reading never waits. To write, a process locks a file beside the run (`NAME.lock`, an empty SQLite
file that is locked as SQLite does it on every system); the operating system releases it when the
process ends, however it ends. Once every block is done, whoever locked the file removes it. A run's
files are opened through SQLite alone, because on POSIX systems closing a file in any other way
drops the locks that the process holds on it. SQLite's log needs a disk of the machine itself: keep
a run that is worked on off network folders.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import dprime
from dprime import atomic, validate
from dprime.options import RUNS
from dprime.runs.contents import LARGEST_BLOCK

APPLICATION = 0x64707275  # marks an SQLite file as a dprime run: "dpru"
FORMAT = 2  # the version of the tables below
TABLES = """
CREATE TABLE about (
    name TEXT PRIMARY KEY, value TEXT NOT NULL, digest TEXT NOT NULL, changed TEXT NOT NULL
);
CREATE TABLE blocks (
    number INTEGER PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('pending', 'done', 'failed')),
    attempts INTEGER NOT NULL,
    error TEXT,
    seconds REAL,
    trials INTEGER NOT NULL,
    finished INTEGER UNIQUE,
    layout TEXT,
    digest TEXT,
    changed TEXT NOT NULL,
    arrays BLOB,
    CHECK ((state = 'done') = (arrays IS NOT NULL)),
    CHECK ((state = 'done') = (finished IS NOT NULL)),
    CHECK ((state = 'failed') = (error IS NOT NULL))
);
CREATE TABLE events (
    number INTEGER PRIMARY KEY, time TEXT NOT NULL, block INTEGER NOT NULL, outcome TEXT NOT NULL,
    message TEXT NOT NULL, worker TEXT NOT NULL, digest TEXT NOT NULL
);
CREATE TABLE workers (
    name TEXT PRIMARY KEY, blocks INTEGER NOT NULL, trials INTEGER NOT NULL, seconds REAL NOT NULL,
    changed TEXT NOT NULL, digest TEXT NOT NULL
);
"""

SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"

DIGESTED = {
    "about": "name, value",
    "events": "number, time, block, outcome, message, worker",
    "workers": "name, blocks, trials, seconds, changed",
    "blocks": "number, finished, trials, layout, arrays",
}
"""The columns of each table that a row's digest covers."""

MOST_EVENTS = 1000
"""How many events a run remembers."""

ENDING = ".run"  # by which lists find runs
LOCK, NEW = ".lock", ".new"
SIDECARS = (LOCK, NEW, "-wal", "-shm", "-journal")
"""Endings of the files that belong to a run and are not one."""

LONGEST_TEXT = 50_000_000
"""Bytes of a configuration or a result; more is not read."""

LONGEST_ROW = LARGEST_BLOCK + 10_000_000

LOCK_PATIENCE, READ_PATIENCE = 0.5, 30.0  # seconds to wait for our lock and for SQLite's
NO_RUN = ("something else", "a dprime run", "give a file of an audit, inference or frontier")
DAMAGED = ("damaged", "a whole run", "restore a copy, or run it again")
TOO_LONG = ("one with a text or a block too long to read", *DAMAGED[1:])
WAIT = "wait until that ends; reading the run is possible meanwhile"
EXPLAINED = {
    sqlite3.SQLITE_NOTADB: NO_RUN,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_TOOBIG: TOO_LONG,
    sqlite3.SQLITE_BUSY: ("being worked on elsewhere", "free to work on", WAIT),
}
"""What SQLite's errors mean to the user: what the file is, what it must be, and what to do."""

DENIED = [sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM]
DENIED += [sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL]
"""What the system may refuse."""


def connected(path: Path, *, verify: bool, repair: bool = False) -> sqlite3.Connection:
    """A run's file, checked; where nothing may be written beside it, it is read as it is.

    A damaged result is no obstacle to a `repair`.
    """
    if not path.is_file():
        shown = f"{str(path)!r}, which is {'a folder' if path.is_dir() else 'not there'}"
        remedy = "dprime runs lists those there are"
        raise validate.invalid_input("path", shown, "a run's file", remedy)
    as_now = {"effective_ids": os.access in os.supports_effective_ids}
    writable = all(os.access(place, os.W_OK, **as_now) for place in (path, path.parent))
    alone = not sidecar(path, "-wal").exists()
    db = _database(path, "rw" if writable else "ro&immutable=1" if alone else "ro")
    try:
        db.execute("PRAGMA synchronous = FULL")
        _check(db, path, verify, repair)
    except BaseException:
        db.close()
        raise
    return db


def create(path: Path, about: Mapping[str, str], blocks: int) -> None:
    """A new run with every block pending: it appears whole under its name, or not at all."""
    _check_free(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = sidecar(path, NEW)
    with contextlib.closing(locked(path)):
        _check_free(path)  # again: now nobody else can make it
        try:
            remove(fresh)  # what a killed creation left
            os.close(os.open(fresh, os.O_CREAT | os.O_EXCL, 0o600))  # it has a seed
            _write(fresh, about, blocks)
            fresh.replace(path)
        finally:
            remove(fresh)
        atomic.sync(path.parent)


def _check_free(path: Path) -> None:
    if os.path.lexists(path):
        remedy = "give another name, or resume that run"
        raise validate.invalid_value("path", str(path), "the name of no file yet", remedy)


def _write(path: Path, about: Mapping[str, str], blocks: int) -> None:
    with contextlib.closing(_database(path, "rwc")) as db:
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {FORMAT}")
        db.executescript(f"BEGIN; {TABLES}")
        for name, value in about.items():
            put(db, "about", name, value, changed=now())
        columns = "number, state, attempts, trials, changed"
        rows = ((number, "pending", 0, 0, now()) for number in range(blocks))
        db.executemany(f"INSERT INTO blocks ({columns}) VALUES (?, ?, ?, ?, ?)", rows)
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode = WAL")


def remove(path: Path) -> None:
    """Remove a run and the files beside it."""
    for ending in ("", *SIDECARS):
        sidecar(path, ending).unlink(missing_ok=True)


def locked(path: Path) -> sqlite3.Connection:
    """The run's lock: held until this connection is closed or its process ends."""
    with explain_errors(path):
        lock = _database(sidecar(path, LOCK), "rwc", patience=LOCK_PATIENCE)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except BaseException:
            lock.close()
            raise
    return lock


def remove_lock(path: Path) -> None:
    """Remove the lock of a finished run while it is held: no block of it is played again."""
    with contextlib.suppress(OSError):  # a system may refuse to remove a file that is open
        sidecar(path, LOCK).unlink()


def is_locked(path: Path) -> bool:
    """Whether a process holds the run's lock at this moment."""
    lock = sidecar(path, LOCK)
    if not lock.is_file():
        return False
    with contextlib.closing(_database(lock, "ro", patience=0.0)) as looking:
        try:
            looking.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.DatabaseError as error:  # anybody may have put anything there
            return _code(error) == sqlite3.SQLITE_BUSY
    return False


def candidates(folder: Path) -> list[Path]:
    """The files that could be runs: by their ending, in a folder and in its own folder of runs."""
    found = (path for place in (folder, folder / RUNS) for path in place.glob(f"*{ENDING}"))
    return sorted(path for path in found if path.is_file())


@contextlib.contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turn what the disk or SQLite objects to into one sentence; other errors are bugs."""
    try:
        yield
    except UnicodeDecodeError as error:  # of a text that SQLite cites
        raise damaged(path) from error
    except (OSError, sqlite3.DatabaseError) as error:
        if _code(error) in EXPLAINED:
            raise validate.invalid_input(str(path), *EXPLAINED[_code(error)]) from error
        if isinstance(error, sqlite3.DatabaseError) and _code(error) not in DENIED:
            raise
        reason, wanted = getattr(error, "strerror", None) or error, "a file that can be used"
        remedy = "check its folder, the rights to it and the disk; every finished block is kept"
        raise validate.invalid_input(str(path), f"not ({reason})", wanted, remedy) from error


def put(db: sqlite3.Connection, table: str, *values: object, **more: object) -> None:
    """Insert a row or replace it: the values that its digest covers, in order, and `more`."""
    row = dict(zip(DIGESTED[table].split(", "), values, strict=True))
    row |= {"digest": digest(*values), **more}
    marks = ", ".join("?" * len(row))
    query = f"INSERT OR REPLACE INTO {table} ({', '.join(row)}) VALUES ({marks})"
    db.execute(query, tuple(row.values()))


def add_event(
    db: sqlite3.Connection, block: object, outcome: str, message: str, worker: str = ""
) -> None:
    """Add to what went wrong; only the latest of it is kept."""
    (last,) = db.execute("SELECT coalesce(max(number), 0) FROM events").fetchone()
    put(db, "events", last + 1, now(), block, outcome, message, worker)
    db.execute("DELETE FROM events WHERE number <= ?", (last + 1 - MOST_EVENTS,))


def damage(db: sqlite3.Connection) -> dict[str, list[object]]:
    """The damaged rows of each table, by their first column; nothing where all are whole."""
    found = {table: [*damaged_rows(db, table)] for table in DIGESTED}
    return found if any(found.values()) else {}


def clear(db: sqlite3.Connection, found: Mapping[str, list[object]]) -> None:
    """Give out damaged blocks again, forget other damaged rows, and what was concluded from all."""
    for table in ("about", "events", "workers"):
        first = DIGESTED[table].partition(",")[0]
        db.executemany(f"DELETE FROM {table} WHERE {first} = ?", [(row,) for row in found[table]])
    db.execute("DELETE FROM about WHERE name = 'result'")
    again = "finished = NULL, arrays = NULL, digest = NULL, trials = 0, error = NULL"
    for block in found["blocks"]:
        db.execute(f"UPDATE blocks SET state = 'pending', {again} WHERE number = ?", (block,))
        add_event(db, block, "found damaged", "its arrays were not as they were stored")


def digest(*parts: object) -> str:
    """A text that tells every change of the parts."""
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode(errors="replace")
        state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()


def now() -> str:
    """The time in the form in which it is stored."""
    return datetime.now(UTC).isoformat()


def sidecar(path: Path, ending: str) -> Path:
    """The file that belongs to a run and has this ending."""
    return path.with_name(path.name + ending)


def damaged(path: Path, where: str = "") -> validate.InputError:
    """The error for a file that was cut off or overwritten somewhere."""
    found, requirement, remedy = DAMAGED
    return validate.invalid_input(str(path), f"{found} {where}".strip(), requirement, remedy)


def is_run(path: Path) -> bool:
    """Whether a file says of itself that it is a run."""
    try:
        with contextlib.closing(_database(path, "ro")) as db:
            return _pragma(db, "application_id") == APPLICATION
    except sqlite3.DatabaseError:
        return False


def _database(path: Path, mode: str, *, patience: float = READ_PATIENCE) -> sqlite3.Connection:
    """A connection that begins transactions only when told to."""
    address = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, timeout=patience, isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.text_factory = lambda text: text.decode(errors="replace")  # the digests tell
    return connection


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


def _check(db: sqlite3.Connection, path: Path, whole: bool, repair: bool) -> None:
    if _pragma(db, "application_id") != APPLICATION:
        raise validate.invalid_input(str(path), *NO_RUN)
    version = _pragma(db, "user_version")
    if version != FORMAT:
        other = "a newer" if version > FORMAT else "an older"
        remedy = f"read it with {other} dprime than this one ({dprime.__version__})"
        found, requirement = f"of format {version}", f"a run of format {FORMAT}"
        raise validate.invalid_input(str(path), found, requirement, remedy)
    if db.execute(SCHEMA).fetchall() != _own_schema():
        raise damaged(path, "in its tables")
    if whole:
        check_pages(db, path)
    for table in DIGESTED if whole else ("about",):
        for first in damaged_rows(db, table):
            if not (repair and first == "result"):
                named = {"about": f"its {first}", "blocks": f"block {first}"}
                raise damaged(path, f"in {named.get(table, f'its {table}')}")
    count = db.execute("SELECT count(*) FROM blocks").fetchone()[0]
    if db.execute("SELECT value FROM about WHERE name = 'blocks'").fetchone() != (str(count),):
        raise damaged(path)


def check_pages(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a file whose pages SQLite cannot follow."""
    if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise damaged(path)


def damaged_rows(db: sqlite3.Connection, table: str) -> Iterator[object]:
    """The first column of each row whose digest tells of other values; of blocks, of those done."""
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_ROW if table == "blocks" else LONGEST_TEXT)
    where = "WHERE state = 'done'" if table == "blocks" else ""
    try:
        for *values, kept in db.execute(f"SELECT {DIGESTED[table]}, digest FROM {table} {where}"):
            if digest(*values) != kept:
                yield values[0]
    finally:
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_ROW)


@functools.cache
def _own_schema() -> list[tuple[str, ...]]:
    """The tables as they are made here: a file that has views or triggers besides runs code."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.executescript(TABLES)
        return db.execute(SCHEMA).fetchall()


def _code(error: Exception) -> int:
    """SQLite's error code without its details, which are in the higher bits."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
