"""Several audits, played one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from dprime.audit.audits import adversary_of, begin
from dprime.audit.config import AuditConfig
from dprime.audit.record import AuditRecord
from dprime.data import load
from dprime.runs.backends.base import Backend


class Played(NamedTuple):
    """One of several audits: its name in the file, its run, and what it took this time."""

    name: str
    path: Path
    record: AuditRecord
    seconds: float


def play_batch(
    configs: Mapping[str, AuditConfig],
    folder: str | Path,
    *,
    backend: Backend | None = None,
    progress: bool | None = None,
) -> Iterator[Played]:
    """Play audits one after the other, each in a file of its name in the folder."""
    for each in configs.values():  # all are validated before the first is played
        adversary_of(each), each.curve
    place, loaded = Path(folder), None
    place.mkdir(parents=True, exist_ok=True)
    for name, each in configs.items():
        start, path = time.perf_counter(), place / f"{name}.run"
        if loaded != (each.data, each.data_dir):  # loading may take longer than an audit
            loaded, split = (each.data, each.data_dir), load(each.data, each.data_dir)
        record = begin(each, path, backend=backend, progress=progress, split=split, go_on=True)
        yield Played(name, path, record, time.perf_counter() - start)
