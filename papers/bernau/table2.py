"""Table 2: the advantage and δ′ at ρ_β = 0.9, by `dprime audit` on two files."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy import stats

from dprime.bounds import classical_advantage_from_epsilon, epsilon_from_belief
from dprime.show.chart import Chart
from dprime.train import TrainingConfig
from papers.adversary import BELIEF, CLIP_NORM
from papers.bernau.trainings import (
    ADULT,
    LOCATION,
    MNIST,
    PURCHASE,
    PURCHASE_LIKE,
    RETAIL,
    ROWS,
    Case,
    advantage_of,
    cases,
    named,
    recipe_of,
)
from papers.bernau.variants import varied
from papers.drawing import Line, lines_chart
from papers.entry import Measured, Scale, Table
from papers.reproduce import Claim, Estimate, normal, printed, stated

FILE = Path(__file__).with_name("table2.toml")
LOCATION_FILE = Path(__file__).with_name("table2-location30.toml")
REPETITIONS = 1000

ADVANTAGES = {
    MNIST: (0.24, 0.23, 0.18, 0.27),
    **dict.fromkeys(PURCHASE_LIKE, (0.25, 0.23, 0.1, 0.24)),
    ADULT: (0.17, 0.22, 0.13, 0.18),
}
EXCEEDED = {
    MNIST: (2e-3, 2e-3, 0.0, 4e-3),
    **dict.fromkeys(PURCHASE_LIKE, (0.0, 0.0, 0.0, 1e-3)),
    ADULT: (0.0,) * 4,
}
"""As printed, in the order of `ROWS`; those of a stand-in are of Purchase-100."""

LETTERS = ("LS B", "LS U", "GS B", "GS U")
"""Of `ROWS`, as the paper writes them."""

FEWER, MORE = 4000, 10000
"""Trainings of a second count, which decides more, on MNIST and on all others; in a full run."""

KEPT = ("advantage", "predicted", "exceedance")
"""Of what the command says."""

SMOKE = """\
adversary = "di"
metric = "advantage"
data = "digits"
max_records = 40
{audits}
[training]
steps = 3
learning_rate = 0.005
clip_norm = 3.0
expected_batch_size = 40
[claim]
belief = 0.9
composition = "rdp"
delta = 0.01
"""

Audits = dict[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Row:
    """One setting.

    Attributes:
        case: the data set.
        place: among `ROWS`.
        found: what the command says.
    """

    case: Case
    place: int
    found: Mapping[str, Any]

    @property
    def title(self) -> str:
        """As in: Adult, GS bounded."""
        return f"{self.case.label}, {named(*ROWS[self.place])}"

    @property
    def published(self) -> float:
        """The advantage."""
        return ADVANTAGES[self.case][self.place]

    @property
    def printed(self) -> str:
        """The same, and of which data where these are others."""
        of = f" on {self.case.stands_for}" if self.case.stands_for else ""
        return f"{self.published:g}{of}"

    @property
    def varies(self) -> bool:
        """Whether other first weights and columns are tried: with global noise, but for images."""
        return ROWS[self.place][0] == "global" and self.case is not MNIST

    @property
    def trainings(self) -> int:
        """In both worlds."""
        return int(self.found["trials"]["in"] + self.found["trials"]["out"])

    @property
    def advantage(self) -> Estimate:
        """Counted, with the exact interval of the share of right answers."""
        wins = round((self.found["advantage"]["value"] + 1) / 2 * self.trainings)
        return advantage_of(wins, self.trainings)

    @property
    def implied(self) -> Estimate:
        """From noise and local sensitivities."""
        found = self.found["predicted"]
        return normal(found["value"], found["standard_error"])

    @property
    def bound(self) -> float:
        """ρ_α, which the advantage equals by the text where noise is local."""
        return classical_advantage_from_epsilon(epsilon_from_belief(BELIEF), delta=self.case.delta)

    @property
    def exceeded(self) -> Estimate:
        """δ′."""
        found = self.found["exceedance"]
        return Estimate(found["value"], found["low"], found["high"])


def table2(scale: Scale) -> Measured:
    """The command, once with the paper's trainings, and once with more."""
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(paper_size(scale, Path(folder)))
        more = rows_of(more_trainings(scale, Path(folder))) if scale.full else []
    widest = more or rows
    claims = [*(counted(scale, row) for row in widest), *(bound_kept(row) for row in widest)]
    trainings = {row.title: row.trainings for row in rows}
    return Measured(
        claims, {"files": [FILE.name, LOCATION_FILE.name], "trainings": trainings},
        {
            "rows": {row.title: dict(row.found) for row in rows},
            "more": {row.title: dict(row.found) for row in more},
        },
        {"": drawn(widest)},
        tables=[
            advantage_table(rows, more), open_choices(scale, widest), exceedance_table(rows, more),
        ],
    )  # fmt: skip


def paper_size(scale: Scale, folder: Path) -> Audits:
    """1,000 trainings a row; fewer in a quick version; on digits for a smoke test."""
    if scale.full:
        rest = {case: REPETITIONS // 2 for case in cases() if case is PURCHASE}
        return {
            **audited(scale, FILE, folder / "paper", REPETITIONS // 2),
            **audited(scale, LOCATION_FILE, folder / "location30", REPETITIONS // 2),
            **by_case(scale, folder, rest),
        }
    if scale.size == "quick":
        return by_case(scale, folder, {case: case.quick // 2 for case in cases()})
    file = folder / "smoke.toml"
    listed = "".join(
        f'[[audits]]\nname = "{case.data} {named(*row)}"\nadjacency = "{row[1]}"\n'
        f'training.sensitivity = "{row[0]}"\n'
        for case in cases()
        for row in ROWS
    )
    file.write_text(SMOKE.format(audits=listed))
    return audited(scale, file, folder / "smoke", 4)


def more_trainings(scale: Scale, folder: Path) -> Audits:
    """A second count with more of them."""
    trials = {case: (FEWER if case is MNIST else MORE) // 2 for case in cases()}
    return by_case(scale, folder, trials)


def by_case(scale: Scale, folder: Path, trials: Mapping[Case, int]) -> Audits:
    """The same files cut by data set, each with its own number of trainings."""
    found: Audits = {}
    for case, count in trials.items():
        file = folder / f"{case.data}-{count}.toml"
        file.write_text(audits_of(case))
        found |= audited(scale, file, file.with_suffix(""), count)
    return found


def audits_of(case: Case) -> str:
    """A file with the four audits of one data set; those of Purchase-100 are as retail100's."""
    written = RETAIL if case is PURCHASE else case
    head, *audits = (LOCATION_FILE if case is LOCATION else FILE).read_text().split("[[audits]]")
    own = [each for each in audits if f'data = "{written.data}"' in each]
    return "[[audits]]".join([head, *(each.replace(written.data, case.data) for each in own)])


def audited(scale: Scale, file: Path, folder: Path, trials: int) -> Audits:
    """What `dprime audit` says of each, by name."""
    command = [
        sys.executable, "-m", "dprime", "audit", str(file), "--json", "--run", str(folder),
        "--trials", str(trials), "--device", scale.device, "--memory", str(scale.memory),
        "--seed", str(scale.seed),
    ]  # fmt: skip
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return {
        each["name"]: {
            **{key: each["identifiability"][key] for key in KEPT},
            "trials": each["trials"],
            "seconds": round(each["seconds"], 2),
        }
        for each in json.loads(done.stdout)["audits"]
    }


def rows_of(audits: Audits) -> list[Row]:
    """In the order of the table."""
    return [
        Row(case, place, audits[f"{case.data} {named(*row)}"])
        for case in cases()
        for place, row in enumerate(ROWS)
    ]


def counted(scale: Scale, row: Row) -> Claim:
    """As the paper counts; what is implied is the same number, and stands in a table."""
    error = row.found["advantage"]["standard_error"]
    why = f"One standard error is {error:.3f}. {chance(row)}"
    claim = printed(
        f"{row.title}: advantage ({row.trainings:,} trainings)", row.published, row.advantage, why,
        reason=(lambda: f"{why} {behind(scale, row)}") if row.varies else "",
    )  # fmt: skip
    return dataclasses.replace(claim, published=row.printed)


def chance(row: Row) -> str:
    """How often an experiment of the paper's size is as far from what is implied."""
    published, expected = row.published, row.implied.value
    wins = stats.binom(REPETITIONS, (1 + expected) / 2)
    off = abs(published - expected)
    low, high = (REPETITIONS * (1 + expected + side * off) / 2 for side in (-1, 1))
    chance = float(wins.cdf(low + 1e-9) + wins.sf(high - 1e-9 - 1))
    return (
        f"At the implied {expected:.3f}, {min(1.0, chance):.1%} of experiments with 1,000 "
        f"trainings are as far from it as the published {published:g}."
    )


def behind(scale: Scale, row: Row) -> str:
    """Global noise: the local sensitivities that stand for both advantages, and other weights."""
    sensitivity, adjacency = ROWS[row.place]
    recipe = recipe_of(scale, row.case, sensitivity, adjacency)
    ours, theirs = (sensitivity_of(recipe, each) for each in (row.implied.value, row.published))
    begun = varied(scale, row.case, sensitivity, adjacency).advantage
    apart = f"the largest is C = {CLIP_NORM:g}"
    if adjacency == "replace":
        apart = (
            f"the largest is 2C = {2 * CLIP_NORM:g}, and two gradients of norm C at right angles "
            f"have {2**0.5 * CLIP_NORM:.2f}"
        )
    return (
        f"The implied advantage is that of a local sensitivity of {ours:.2f}, the published one "
        f"that of {theirs:.2f}; {apart}. From the weights that TensorFlow's layers begin with, "
        f"{begun.value:.3f} is implied; see below for columns of variance 1 as well."
    )


def sensitivity_of(recipe: TrainingConfig, advantage: float) -> float:
    """The local sensitivity at every step that implies an advantage under global noise."""
    return float(2 * stats.norm.ppf((1 + advantage) / 2) * recipe.sigma / recipe.steps**0.5)


def bound_kept(row: Row) -> Claim:
    """The belief bound holds but for δ."""
    return stated(
        f"{row.title}: δ′ against δ", f"always smaller than δ = {row.case.delta:g}", row.exceeded,
        most=row.case.delta,
    )  # fmt: skip


def open_choices(scale: Scale, rows: Sequence[Row]) -> Table:
    """What is implied with other first weights and other columns, where the paper is silent."""
    found = []
    for row in (each for each in rows if each.varies):
        made = varied(scale, row.case, *ROWS[row.place], standardised=True).advantage
        found.append((row.title, row.printed, f"{made.value:.3f}", f"{row.implied.value:.3f}"))
    head = ("data and noise", "published", "implied with them", "implied without them")
    title = "Implied advantages from TensorFlow's first weights and columns of variance 1"
    return Table(title, head, tuple(found))


def advantage_table(rows: Sequence[Row], more: Sequence[Row]) -> Table:
    """Every count."""
    found = []
    for wider in zip(rows, *([more] if more else []), strict=True):
        row, best = wider[0], wider[-1].implied.value
        told = [f"{each.trainings:,}: {each.advantage.told('z.3f')}" for each in wider]
        found.append((row.title, row.printed, *told, f"{best:.3f}", f"{best / row.bound:.3f}"))
    second = ("more trainings",) if more else ()
    head = ("data and noise", "published", "trainings: counted", *second)
    return Table("Advantages", (*head, "implied", "implied over ρ_α"), tuple(found))


def exceedance_table(rows: Sequence[Row], more: Sequence[Row]) -> Table:
    """Every δ′, as a count."""
    found = []
    for wider in zip(rows, *([more] if more else []), strict=True):
        row, trials = wider[0], [each.found["trials"]["in"] for each in wider]
        told = [f"{r.exceeded.value * n:.0f} of {n:,}" for r, n in zip(wider, trials, strict=True)]
        theirs = f"{EXCEEDED[row.case][row.place] * REPETITIONS:.0f} of {REPETITIONS:,}"
        found.append((row.title, f"{row.case.delta:g}", theirs, *told))
    second = ("with more trainings",) if more else ()
    head = ("data and noise", "δ", "published (Purchase-100's, where a data set stands for it)",
            "ours, on D", *second)  # fmt: skip
    return Table("δ′, as trainings whose belief exceeds 0.9", head, tuple(found))


def drawn(rows: Sequence[Row]) -> Chart:
    """Published and ours, setting by setting."""
    places = list(enumerate(rows, start=1))

    def ours(name: str, values: Sequence[Estimate], aside: float) -> Line:
        points = [(i + aside, v.value, v.low, v.high) for i, v in enumerate(values, start=1)]
        return Line(name, points, "points")

    def theirs(name: str, other: bool) -> Line:
        shown = [(place, row) for place, row in places if other == bool(row.case.stands_for)]
        return Line(name, [(place + 0.15, row.published) for place, row in shown], "published")

    inside: dict[str, int] = {}
    for row in rows:
        hit = row.advantage.low <= row.published <= row.advantage.high
        inside[row.case.label] = inside.get(row.case.label, 0) + hit
    told = ", ".join(f"{count} of {len(ROWS)} on {label}" for label, count in inside.items())
    return lines_chart(
        f"Published advantages within the 95 % interval of ours: {told}.",
        "data and noise (LS, GS: local, global sensitivity; B, U: bounded, unbounded)",
        "advantage",
        [
            ours("counted, with 95 % interval", [row.advantage for row in rows], -0.15),
            ours("implied by the sensitivities", [row.implied for row in rows], 0.0),
            theirs("published, same data", False), theirs("published, other data", True),
        ],
        places=[f"{row.case.title}, {LETTERS[row.place]}" for row in rows],
    )  # fmt: skip
