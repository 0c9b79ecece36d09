"""One table or figure of a paper: the experiment behind it, how much of it is done, what it leaves.

Entry.measure(Scale) ──► Measured (claims, tables, pictures) ──► PAPER/results.json ──► page.py
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dprime import atomic
from dprime.data import Split, load
from dprime.data.dataset import Dataset
from dprime.data.devices import device_title
from dprime.runs.contents import versions
from dprime.show.chart import Chart
from dprime.train import Compute
from papers.page import HERE, Basis
from papers.reproduce import Claim

SEED = 2021
"""Of everything, unless another one is given."""

EXPECTED = "expected"
"""How a statement begins that is not in the part of a paper that is at hand."""

Size = Literal["smoke", "quick", "full"]

FORMS: Mapping[str, tuple[tuple[int, ...], int]] = {
    "mnist": ((1, 28, 28), 10), "cifar10": ((3, 32, 32), 10), "adult": ((104,), 2),
    "location30": ((446,), 30), "retail100": ((600,), 100), "purchase100": ((600,), 100),
}  # fmt: skip
"""Shape of a record and classes of the data sets."""


@dataclass(frozen=True)
class Scale:
    """How much is done, and where.

    Attributes:
        size: "smoke" only shows that an entry runs, on random records; "quick" takes minutes on
            two cores; "full" has the paper's repetitions.
        device: "cpu" or "cuda".
        memory: in GB.
        seed: gives everything.
        processes: trainings at a time, where they do not depend on each other.
    """

    size: Size = "quick"
    device: str = "cpu"
    memory: float = 2.0
    seed: int = SEED
    processes: int = 1

    def pick(self, smoke: Any, quick: Any, full: Any) -> Any:
        """The value for this size."""
        return {"smoke": smoke, "quick": quick, "full": full}[self.size]

    @property
    def full(self) -> bool:
        return self.size == "full"

    @property
    def compute(self) -> Compute:
        return Compute(self.device, self.memory)

    def data(self, name: str) -> Split:
        """A data set; for a smoke test a few random records of its form."""
        if self.size != "smoke":
            return load(name)
        shape, classes = FORMS[name]
        rng = np.random.default_rng(7)

        def made(count: int) -> Dataset:
            records = rng.random((count, *shape), np.float32)
            if len(shape) == 1:
                records = (records < 0.2).astype(np.float32)
            return Dataset.of(records, np.arange(count) % classes, classes=classes, name=name)

        return Split(made(300), made(120))


@dataclass(frozen=True)
class Kept:
    """Trainings that were made before: where, how long they took, from which seed."""

    device: str
    seconds: float
    seed: int

    @classmethod
    def of(cls, parts: Sequence[Mapping[str, Any]]) -> Kept:
        """Of parts that each say so; all of them have one seed."""
        seeds = sorted({each["seed"] for each in parts})
        if len(seeds) > 1:
            raise ValueError(f"trainings in raw.json must be from one seed, these are from {seeds}")
        devices = sorted({str(each["device"]) for each in parts})
        return cls(", ".join(devices), round(sum(each["seconds"] for each in parts), 1), seeds[0])


@dataclass(frozen=True)
class Table:
    """Numbers beside the claims, as they are shown on the page."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class Measured:
    """What an entry has found.

    Attributes:
        claims: of the paper, with what was found.
        settings: that they rest on, of JSON values.
        figures: the pictures by name; a single one needs none.
        kept: trainings that it rests on, where they were read and not made.
        tables: numbers that are shown below the claims.
        numbers: that other documents show, of JSON values.
    """

    claims: Sequence[Claim]
    settings: Mapping[str, Any]
    figures: Mapping[str, Chart] = field(default_factory=dict)
    kept: Kept | None = None
    tables: Sequence[Table] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """One table or figure of a paper.

    Attributes:
        name: of the entry; its place on the page has it too.
        measure: the experiment.
        formulas: how claims begin that are computed from a formula; "" is all of them.
    """

    name: str
    measure: Callable[[Scale], Measured]
    formulas: tuple[str, ...] = ()


@dataclass(frozen=True)
class Paper:
    """A publication.

    Attributes:
        name: of its folder and of its page.
        entries: in the paper's order.
        stand_ins: words by which a claim names data in the place of the paper's.
    """

    name: str
    entries: tuple[Entry, ...]
    stand_ins: tuple[str, ...] = ()

    def basis(self, entry: Entry, claim: Claim) -> Basis:
        """What a claim rests on."""
        if claim.published.startswith(EXPECTED):
            return "not at hand"
        if claim.what.startswith(entry.formulas):
            return "formula"
        return "stand-in" if any(each in claim.what for each in self.stand_ins) else "data"

    def result(self, entry: Entry, scale: Scale) -> dict[str, Any]:
        """What an entry finds, and how, of JSON values."""
        start = time.perf_counter()
        found = entry.measure(scale)
        claims = [replace(each, basis=self.basis(entry, each)) for each in found.claims]
        return {
            "size": scale.size,
            "seed": scale.seed,
            "device": device_title(scale.device),
            "versions": versions(),
            "seconds": round(time.perf_counter() - start, 1),
            "kept": None if found.kept is None else asdict(found.kept),
            "settings": dict(found.settings),
            "claims": [claim.as_json() for claim in claims],
            "tables": [asdict(table) for table in found.tables],
            "figures": {
                f"{entry.name}-{part}" if part else entry.name: picture(each)
                for part, each in found.figures.items()
            },
            "numbers": dict(found.numbers),
        }

    def publish(self, entry: Entry, scale: Scale, folder: Path = HERE) -> dict[str, Any]:
        """Measure, and write the result; a quick one stands in a file of its own."""
        result = self.result(entry, scale)
        if scale.size != "smoke":
            place = folder / self.name / ("results.json" if scale.full else "results-quick.json")
            before = _read(place) or {"look": {}, "results": {}}
            looks = [_look_of(each["spec"]) for each in result["figures"].values()]
            found = {**before["results"], entry.name: result}
            order = [each.name for each in self.entries if each.name in found]
            results = {name: found[name] for name in order}
            _write(place, {"look": (looks or [before["look"]])[0], "results": results}, depth=4)
        return result


def _look_of(spec: dict[str, Any]) -> dict[str, Any]:
    """Taken out of a picture: what all have in common, which is kept once."""
    return {key: spec.pop(key) for key in ("config", "background", "padding")}


DIGITS = 7
"""Of numbers in a picture that is kept."""


def picture(figure: Chart) -> dict[str, Any]:
    """A picture to be kept: its title, and what is drawn."""
    spec = figure.spec()
    rows = [
        {
            name: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
            for name, value in row.items()
        }
        for row in spec["datasets"]["rows"]
    ]
    return {"title": figure.title, "spec": {**spec, "datasets": {"rows": rows}}}


Raw = dict[str, Any]
"""Of trainings: the device, the time, the seed and what was found, of JSON values."""


def kept_place(folder: Path, name: str, seed: int) -> Path:
    """The file of trainings that are kept; another seed than the usual one has its own.

    Those in the usual file stand for the usual seed, whichever they were made from.
    """
    usual = folder / "raw.json"
    if seed == SEED or _read(usual).get(name, {}).get("seed") == seed:
        return usual
    return folder / f"raw-seed{seed}.json"


def is_kept(folder: Path, name: str, seed: int) -> bool:
    return name in _read(kept_place(folder, name, seed))


def kept_or(folder: Path, name: str, scale: Scale, make: Callable[[], Raw]) -> Raw:
    """Trainings that are kept; where they are missing they are made, and kept from then on."""
    place = kept_place(folder, name, scale.seed)
    if name not in _read(place):
        print(f"{name} is not in {place.name}: it is made on {scale.device}", file=sys.stderr)
        made = make()
        _write(place, {**_read(place), name: made}, depth=1)
    found: Raw = _read(place)[name]
    return found


def _read(place: Path) -> dict[str, Any]:
    return _parsed(place, place.stat().st_mtime_ns) if place.exists() else {}


@lru_cache(maxsize=8)
def _parsed(place: Path, changed: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(place.read_text())
    return found


def _write(place: Path, values: Mapping[str, Any], depth: int) -> None:
    """A value in a line from this depth on; the file is whole at any time."""
    place.parent.mkdir(exist_ok=True)
    atomic.write(place.name, place, _text(values, depth) + "\n")


def _text(value: Any, depth: int, indent: str = "") -> str:
    if not depth or not value or not isinstance(value, dict | list | tuple):
        return json.dumps(value, allow_nan=False, ensure_ascii=False)
    deeper = f"{indent} "
    if isinstance(value, dict):
        items = [f"{json.dumps(n)}: {_text(v, depth - 1, deeper)}" for n, v in value.items()]
    else:
        items = [_text(each, depth - 1, deeper) for each in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n{deeper}" + f",\n{deeper}".join(items) + f"\n{indent}{last}"
