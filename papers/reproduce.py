"""One table or figure of a paper: what it says, what is measured here, and whether they agree.

    a script's measure(scale) ──► Measured (claims, numbers, a picture) ──► results/NAME.json
                                                                              │
                                                       papers.page ──► docs/papers/PAPER.md

The rule by which a claim agrees was settled before anything was measured:

- A claim has a range. For a number that is measured, by trainings or by chance, it is the published
  value give or take 20 %. For one that follows from a formula it is what rounds to the printed
  digits. For a statement it is what the statement says, such as "above 0".
- Ours has a 95 % interval; that of a computed number is the number.
- The interval lies within the range: agrees. It lies outside of it: differs, and the script says
  why, with a measurement. Otherwise: undecided.
- What was measured on other data than the paper's cannot agree with it: it is comparable, or not.
  What is said of a part of a paper that is not at hand is as we expected, or not.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import stats

from dprime.data import Split, load
from dprime.data.dataset import Dataset
from dprime.data.devices import device_named, device_title
from dprime.runs.config import versions
from dprime.show.chart import Chart
from papers.paper import Basis, paper_of

HERE = Path(__file__).resolve().parent
PICTURES = HERE.parent / "docs" / "papers" / "figures"

TOLERANCE = 0.2
"""Of a published number that was measured."""

CONFIDENCE = 0.95

SAME_BELIEF = 0.05
"""Beliefs that are no further apart show no significant difference: a tenth of the axis from ½ to
1. The papers do not say how much is significant; this is our reading."""

SEED = 2021
"""Of everything, unless another one is given."""

WORDS: Mapping[Basis, tuple[str, str, str]] = {
    "formula": ("agrees", "differs", "undecided"),
    "data": ("agrees", "differs", "undecided"),
    "stand-in": ("comparable", "not comparable", "undecided"),
    "not at hand": ("as expected", "not as expected", "undecided"),
}
"""By what a claim rests on: where the interval lies within the range, outside of it, or neither."""

Size = Literal["smoke", "quick", "full"]


@dataclass(frozen=True)
class Claim:
    """What a paper says beside what was found.

    Attributes:
        what: the number or the statement, in words.
        published: as it is printed.
        ours: what was found.
        low: end of its 95 % interval.
        high: the other end.
        least: of the range in which it agrees.
        most: of that range.
        why: where it differs, what a measurement says of the reason.
        basis: what it rests on, which `publish` takes from the paper.
    """

    what: str
    published: str
    ours: float
    low: float
    high: float
    least: float
    most: float
    why: str = ""
    basis: Basis = "data"

    @property
    def verdict(self) -> str:
        """By the rule above.

        >>> printed("an advantage", 0.25, Estimate(0.24, 0.22, 0.26)).verdict
        'agrees'
        >>> printed("an advantage", 0.25, Estimate(0.24, 0.18, 0.30)).verdict
        'undecided'
        >>> printed("an advantage", 0.25, Estimate(0.40, 0.38, 0.42)).verdict
        'differs'
        """
        within, outside, neither = WORDS[self.basis]
        if self.least <= self.low and self.high <= self.most:
            return within
        if self.high < self.least or self.most < self.low:
            return outside
        return neither

    def as_json(self) -> dict[str, Any]:
        """Of JSON values; an open end is null."""
        values = {
            name: None if isinstance(value, float) and math.isinf(value) else value
            for name, value in asdict(self).items()
        }
        return {**values, "verdict": self.verdict}


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float

    def __sub__(self, other: Estimate) -> Estimate:
        """Of two that were measured apart: the error is that of both."""
        below = math.hypot(self.value - self.low, other.high - other.value)
        above = math.hypot(self.high - self.value, other.value - other.low)
        difference = self.value - other.value
        return Estimate(difference, difference - below, difference + above)


def exact(value: float) -> Estimate:
    """A number without chance in it."""
    return Estimate(value, value, value)


def mean(values: Sequence[float] | np.ndarray[Any, Any]) -> Estimate:
    """The mean of repetitions, with Student's interval.

    >>> mean([1.0, 2.0, 3.0]).value
    2.0
    """
    given = np.asarray(values, float)
    middle = float(given.mean())
    if len(given) < 2:
        return Estimate(middle, -math.inf, math.inf)
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(given) - 1) * stats.sem(given))
    return Estimate(middle, middle - reach, middle + reach)


def normal(value: float, standard_error: float) -> Estimate:
    """A number with a standard error."""
    reach = float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * standard_error
    return Estimate(value, value - reach, value + reach)


def share(count: int, total: int) -> Estimate:
    """A share of trials, with the interval of Clopper and Pearson."""
    found = stats.binomtest(count, total).proportion_ci(CONFIDENCE)
    return Estimate(count / total, float(found.low), float(found.high))


def by_luck(groups: int, each: int, probability: float) -> int:
    """How many of groups × each tests luck brings above, but for 2.5 % of all cases.

    Tests of one group share what they rest on: at worst they go together.

    >>> by_luck(7, 5, 0.025), by_luck(35, 1, 0.025)
    (5, 3)
    """
    return each * int(stats.binom.ppf((1 + CONFIDENCE) / 2, groups, probability))


def explained(claim: Claim, why: str | Callable[[], str]) -> Claim:
    """With the reason, where it does not agree; a function measures it only then."""
    if claim.verdict == "agrees":
        return claim
    return replace(claim, why=why if isinstance(why, str) else why())


def printed(what: str, published: float, ours: Estimate, why: str = "") -> Claim:
    """A number that the paper measured: within a fifth of it."""
    reach = TOLERANCE * abs(published)
    return Claim(
        what, f"{published:g}", ours.value, ours.low, ours.high, published - reach,
        published + reach, why,
    )  # fmt: skip


def computed(what: str, published: str, ours: float, why: str = "") -> Claim:
    """A number that follows from a formula: it rounds to the printed digits.

    >>> computed("an ε", "2.2", 2.197).verdict, computed("an ε", "2.20", 2.19).verdict
    ('agrees', 'differs')
    """
    digits = Decimal(published)
    exponent = digits.as_tuple().exponent
    assert isinstance(exponent, int)
    half = float(Decimal(1).scaleb(exponent) / 2) * (1 + 1e-9)
    value = float(digits)
    return Claim(what, published, ours, ours, ours, value - half, value + half, why)


def stated(
    what: str,
    sentence: str,
    ours: Estimate,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    why: str = "",
) -> Claim:
    """A sentence of the paper, as a range for a number that is measured.

    Args:
        what: the number.
        sentence: what the paper says, in our own words.
        ours: the number as it was found.
        least: that it may be for the sentence to hold.
        most: that it may be.
        why: where it does not hold, what a measurement says of the reason.
    """
    return Claim(what, sentence, ours.value, ours.low, ours.high, least, most, why)


@dataclass(frozen=True)
class Scale:
    """How much is done, and where.

    Attributes:
        size: "smoke" only shows that the script runs, on random records; "quick" takes minutes on
            two cores; "full" has the paper's repetitions.
        device: "cpu" or "cuda".
        memory: in GB.
        seed: gives everything.
    """

    size: Size = "quick"
    device: str = "cpu"
    memory: float = 2.0
    seed: int = SEED

    def pick(self, smoke: Any, quick: Any, full: Any) -> Any:
        """The value for this size."""
        return {"smoke": smoke, "quick": quick, "full": full}[self.size]

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


FORMS: Mapping[str, tuple[tuple[int, ...], int]] = {
    "mnist": ((1, 28, 28), 10), "cifar10": ((3, 32, 32), 10), "adult": ((104,), 2),
    "location30": ((446,), 30), "retail100": ((600,), 100), "purchase100": ((600,), 100),
}  # fmt: skip


@dataclass(frozen=True)
class Kept:
    """Trainings that were made before, in `raw/`: where, how long they took, from which seed."""

    device: str
    seconds: float
    seed: int

    @classmethod
    def of(cls, files: Sequence[Mapping[str, Any]]) -> Kept:
        """Of files that each say so; all of them have one seed."""
        devices = sorted({str(each["device"]) for each in files})
        (seed,) = {each["seed"] for each in files}
        return cls(", ".join(devices), round(sum(each["seconds"] for each in files), 1), seed)


@dataclass(frozen=True)
class Table:
    """Numbers beside the claims, as they are shown on the page."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class Measured:
    """What a script has found.

    Attributes:
        claims: of the paper, with what was found.
        settings: that they rest on, of JSON values.
        numbers: everything that is drawn or may be asked for, of JSON values.
        figure: the picture, or several by a name.
        kept: trainings that it rests on, where they were read and not made.
        tables: numbers that are shown below the claims.
    """

    claims: Sequence[Claim]
    settings: Mapping[str, Any]
    numbers: Mapping[str, Any] = field(default_factory=dict)
    figure: Chart | Mapping[str, Chart] | None = None
    kept: Kept | None = None
    tables: Sequence[Table] = ()

    @property
    def figures(self) -> Mapping[str, Chart]:
        """The pictures by name; a single one has none."""
        return {"": self.figure} if isinstance(self.figure, Chart) else self.figure or {}


Measure = Callable[[Scale], Measured]


def publish(measure: Measure, script: str | Path, scale: Scale, title: str) -> dict[str, Any]:
    """Measure, and write results and pictures beside the script."""
    place = Path(script).resolve()
    start = time.perf_counter()
    found = with_basis(measure(scale), place)
    result = result_of(found, place.stem, scale, title, time.perf_counter() - start)
    if scale.size != "smoke":
        write(place, result, found.figures)
    return result


def with_basis(found: Measured, script: Path) -> Measured:
    """What was found, each claim with what it rests on."""
    paper = paper_of(script)
    if paper is None:
        return found
    claims = [
        replace(each, basis=paper.basis(script.stem, each.what, each.published))
        for each in found.claims
    ]
    return replace(found, claims=claims)


def result_of(
    found: Measured, stem: str, scale: Scale, title: str, seconds: float
) -> dict[str, Any]:
    """What was found, and how, of JSON values."""
    return {
        "title": title,
        "size": scale.size,
        "seed": scale.seed,
        "device": device_title(scale.device),
        "versions": versions(),
        "seconds": round(seconds, 1),
        "kept": None if found.kept is None else asdict(found.kept),
        "settings": dict(found.settings),
        "claims": [claim.as_json() for claim in found.claims],
        "tables": [asdict(table) for table in found.tables],
        "figures": {picture_name(stem, name): each.title for name, each in found.figures.items()},
        "numbers": dict(found.numbers),
    }


Raw = dict[str, Any]
"""Of trainings: the device, the time, the seed and what was found, of JSON values."""


def kept_in(folder: Path, name: str, seed: int) -> Path:
    """The file of trainings that are kept; another seed than the usual one has its own."""
    return folder / (f"{name}.json" if seed == SEED else f"{name}-seed{seed}.json")


def kept_or(folder: Path, name: str, scale: Scale, make: Callable[[], Raw]) -> Raw:
    """Trainings that are kept; where they are missing they are made, and kept from then on."""
    place = kept_in(folder, name, scale.seed)
    if not place.exists():
        print(f"{place.name} is not there: it is made on {scale.device}", file=sys.stderr)
        folder.mkdir(exist_ok=True)
        place.write_text(json.dumps(make()) + "\n")
    found: Raw = json.loads(place.read_text())
    return found


def write(script: Path, result: Mapping[str, Any], figures: Mapping[str, Chart]) -> None:
    """Results of a full run and of a quick one stand side by side; pictures are of the full one."""
    folder = script.parent / "results"
    folder.mkdir(exist_ok=True)
    name = f"{script.stem}.json" if result["size"] == "full" else f"{script.stem}-quick.json"
    (folder / name).write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
    if figures and (result["size"] == "full" or not (folder / f"{script.stem}.json").exists()):
        PICTURES.mkdir(parents=True, exist_ok=True)
        for part, each in figures.items():
            name = picture_name(script.stem, part)
            each.save(PICTURES / f"{script.parent.name}-{name}.svg")


def picture_name(stem: str, part: str) -> str:
    """Of a picture's file."""
    return f"{stem}-{part}" if part else stem


def run(measure: Measure, script: str, doc: str | None) -> None:
    """The command line of a script."""
    title = title_of(doc)
    parser = argparse.ArgumentParser(description=title)
    add_options(parser)
    scale = scale_of(parser, parser.parse_args())
    with plainly(parser):
        show(publish(measure, script, scale, title))


@contextmanager
def plainly(parser: argparse.ArgumentParser) -> Iterator[None]:
    """What is wrong is said in a sentence; who stops it is not shown where it was."""
    try:
        yield
    except (ValueError, OSError) as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        parser.exit(130, "stopped; what was finished before is kept\n")


def title_of(doc: str | None) -> str:
    """The first line of a script's description."""
    return (doc or "").split("\n", maxsplit=1)[0].removesuffix(".")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options that all scripts have."""
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--full", action="store_true", help="the paper's repetitions")
    sizes.add_argument("--smoke", action="store_true", help="only show that it runs")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--memory", type=float, default=2.0, help="in GB")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of all random numbers: {SEED}")


def scale_of(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Scale:
    """What the options ask for; a device that is not there is refused before anything is done."""
    size: Size = "full" if options.full else "smoke" if options.smoke else "quick"
    with plainly(parser):
        device_named(options.device)
    return Scale(size, options.device, options.memory, options.seed)


def show(result: Mapping[str, Any]) -> None:
    """A line for each claim."""
    print(f"{result['title']} ({result['size']}, {result['seconds']:g} s, {result['device']})")
    for claim in result["claims"]:
        ends = [claim["ours"], claim["low"], claim["high"]]
        ours, low, high = ("open" if end is None else f"{end:.4g}" for end in ends)
        interval = "" if low == high else f" ({low} to {high})"
        print(f"  {claim['verdict']:<15} {claim['what']}: {claim['published']} | {ours}{interval}")
        if claim["why"]:
            print(f"                  {claim['why']}")
