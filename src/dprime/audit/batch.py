"""Several audits, played one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dprime.audit.audits import adversary_of, begin
from dprime.audit.config import AuditConfig
from dprime.audit.files import path_of
from dprime.audit.record import AuditRecord
from dprime.data import load
from dprime.runs.backends.base import Backend


@dataclass(frozen=True, eq=False)
class Played:
    """One of several audits.

    Attributes:
        name: in the file.
        path: of its run.
        record: of what happened.
        seconds: that it took this time.
    """

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
    """Play one after the other, each in its own file in the folder.

    A run that is there already is gone on with; a finished one is concluded anew.

    Args:
        configs: by name.
        folder: of the runs' files; made where there is none.
        backend: where; in this process unless given.
        progress: whether to show a bar; None shows it for long work on a terminal.
    """
    for each in configs.values():  # all are validated before the first is played
        adversary_of(each), each.curve
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    data: tuple[str, str | None] | None = None
    for name, each in configs.items():
        start = time.perf_counter()
        path = path_of(place, name)
        if data != (each.data, each.data_dir):  # loading may take longer than an audit
            data, split = (each.data, each.data_dir), load(each.data, each.data_dir)
        record = begin(each, path, backend=backend, progress=progress, split=split, go_on=True)
        yield Played(name, path, record, time.perf_counter() - start)
