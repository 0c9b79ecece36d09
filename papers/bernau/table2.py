"""Table 2: the advantage and δ′ at ρ_β = 0.9, by `dprime audit` on two files."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy import stats

from dprime.bounds import classical_advantage_from_epsilon, epsilon_from_belief
from dprime.show.chart import Chart
from dprime.train import TrainingConfig
from papers.adversary import BELIEF, CLIP_NORM, NOISES, Noise
from papers.bernau.trainings import Case, advantage_of, cases, named, varied
from papers.drawing import Line, lines_chart
from papers.entry import Measured, Scale, Table
from papers.reproduce import Claim, Estimate, normal, printed, stated

FILE = Path(__file__).with_name("table2.toml")
LOCATION_FILE = Path(__file__).with_name("table2-location30.toml")
REPETITIONS = 1000

FEWER, MORE = 4000, 10000
"""Trainings of a second count, which decides more, on MNIST and on all others; in a full run."""

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
    """One setting, and what the command says of it."""

    case: Case
    noise: Noise
    found: Mapping[str, Any]

    @property
    def title(self) -> str:
        """As in: Adult, GS bounded."""
        return f"{self.case.label}, {named(self.noise)}"

    @property
    def published(self) -> float:
        """The advantage."""
        return self.case.advantages[NOISES.index(self.noise)]

    @property
    def printed(self) -> str:
        """The same, and of which data where these are others."""
        of = f" on {self.case.stands_for}" if self.case.stands_for else ""
        return f"{self.published:g}{of}"

    @property
    def varies(self) -> bool:
        """Whether other first weights and columns are tried: with global noise, but for images."""
        return self.noise.sensitivity == "global" and self.case.data != "mnist"

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
        return normal(self.found["predicted"]["value"], self.found["predicted"]["standard_error"])

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
        rows = rows_of(scale, paper_size(scale, Path(folder)))
        more = rows_of(scale, more_trainings(scale, Path(folder))) if scale.full else []
    widest = more or rows
    kept = [
        stated(
            f"{row.title}: δ′ against δ", f"always smaller than δ = {row.case.delta:g}",
            row.exceeded, most=row.case.delta,
        )
        for row in widest
    ]  # fmt: skip
    trainings = {row.title: row.trainings for row in rows}
    advantages, exceedances = counts_of(rows, more)
    return Measured(
        [*map(counted, widest), *kept],
        {"files": [FILE.name, LOCATION_FILE.name], "trainings": trainings}, {"": drawn(widest)},
        tables=[advantages, open_choices(widest), exceedances],
    )  # fmt: skip


def paper_size(scale: Scale, folder: Path) -> Audits:
    """1,000 trainings a row; fewer in a quick version; on digits for a smoke test."""
    if scale.full:
        half = REPETITIONS // 2
        return {
            **audited(scale, FILE, folder / "paper", half),
            **audited(scale, LOCATION_FILE, folder / "location30", half),
            **by_case(folder, dict.fromkeys(cases(scale, "purchase100"), half)),
        }
    if scale.size == "quick":
        return by_case(folder, {case: case.quick // 2 for case in cases(scale)})
    file = folder / "smoke.toml"
    listed = "".join(
        f'[[audits]]\nname = "{case.data} {named(noise)}"\nadjacency = "{noise.adjacency}"\n'
        f'training.sensitivity = "{noise.sensitivity}"\n'
        for case in cases(scale)
        for noise in NOISES
    )
    file.write_text(SMOKE.format(audits=listed))
    return audited(scale, file, folder / "smoke", 4)


def more_trainings(scale: Scale, folder: Path) -> Audits:
    """A second count with more of them."""
    chosen = cases(scale)
    return by_case(folder, {c: (FEWER if c.data == "mnist" else MORE) // 2 for c in chosen})


def by_case(folder: Path, trials: Mapping[Case, int]) -> Audits:
    """The same files cut by data set, each with its own number of trainings."""
    found: Audits = {}
    for case, count in trials.items():
        file = folder / f"{case.data}-{count}.toml"
        file.write_text(audits_of(case))
        found |= audited(case.scale, file, file.with_suffix(""), count)
    return found


def audits_of(case: Case) -> str:
    """A file with the four audits of one data set; those of Purchase-100 are as retail100's."""
    written = "retail100" if case.data == "purchase100" else case.data
    head, *audits = (LOCATION_FILE if written == "location30" else FILE).read_text().split(START)
    own = [each for each in audits if f'data = "{written}"' in each]
    return START.join([head, *(each.replace(written, case.data) for each in own)])


START = "[[audits]]"


def audited(scale: Scale, file: Path, folder: Path, trials: int) -> Audits:
    """What `dprime audit` says of each, by name."""
    command = [
        sys.executable, "-m", "dprime", "audit", str(file), "--json", "--run", str(folder),
        "--trials", str(trials), "--device", scale.device, "--memory", str(scale.memory),
        "--seed", str(scale.seed),
    ]  # fmt: skip
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    kept = ("advantage", "predicted", "exceedance")
    return {
        each["name"]: {
            **{key: each["identifiability"][key] for key in kept}, "trials": each["trials"],
        }
        for each in json.loads(done.stdout)["audits"]
    }  # fmt: skip


def rows_of(scale: Scale, audits: Audits) -> list[Row]:
    """In the order of the table."""
    return [
        Row(case, noise, audits[f"{case.data} {named(noise)}"])
        for case in cases(scale)
        for noise in NOISES
    ]


def counted(row: Row) -> Claim:
    """As the paper counts; what is implied is the same number, and stands in a table."""
    error = row.found["advantage"]["standard_error"]
    why = f"One standard error is {error:.3f}. {chance(row)}"
    claim = printed(
        f"{row.title}: advantage ({row.trainings:,} trainings)", row.published, row.advantage, why,
        reason=(lambda: f"{why} {behind(row)}") if row.varies else "",
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


def behind(row: Row) -> str:
    """Global noise: the local sensitivities that stand for both advantages, and other weights."""
    recipe = row.case.recipe(row.noise)
    ours, theirs = (sensitivity_of(recipe, each) for each in (row.implied.value, row.published))
    apart = f"the largest is C = {CLIP_NORM:g}"
    if row.noise.adjacency == "replace":
        apart = (
            f"the largest is 2C = {2 * CLIP_NORM:g}, and two gradients of norm C at right angles "
            f"have {2**0.5 * CLIP_NORM:.2f}"
        )
    return (
        f"The implied advantage is that of a local sensitivity of {ours:.2f}, the published one "
        f"that of {theirs:.2f}; {apart}. From the weights that TensorFlow's layers begin with, "
        f"{varied(row.case, row.noise).implied.value:.3f} is implied; see below for columns of "
        "variance 1 as well."
    )


def sensitivity_of(recipe: TrainingConfig, advantage: float) -> float:
    """The local sensitivity at every step that implies an advantage under global noise."""
    return float(2 * stats.norm.ppf((1 + advantage) / 2) * recipe.sigma / recipe.steps**0.5)


def open_choices(rows: Sequence[Row]) -> Table:
    """What is implied with other first weights and other columns, where the paper is silent."""
    found = []
    for row in (each for each in rows if each.varies):
        made = varied(row.case, row.noise, standardised=True).implied
        found.append((row.title, row.printed, f"{made.value:.3f}", f"{row.implied.value:.3f}"))
    head = ("data and noise", "published", "implied with them", "implied without them")
    title = "Implied advantages from TensorFlow's first weights and columns of variance 1"
    return Table(title, head, tuple(found))


def counts_of(rows: Sequence[Row], more: Sequence[Row]) -> tuple[Table, Table]:
    """Every advantage and every δ′, as counts."""
    advantages, exceedances = [], []
    for wider in zip(rows, *([more] if more else []), strict=True):
        row, best = wider[0], wider[-1].implied.value
        told = [f"{each.trainings:,}: {each.advantage.told('z.3f')}" for each in wider]
        implied = f"{best:.3f}", f"{best / row.bound:.3f}"
        advantages.append((row.title, row.printed, *told, *implied))
        inside = [(each, each.found["trials"]["in"]) for each in wider]
        own = [f"{each.exceeded.value * count:.0f} of {count:,}" for each, count in inside]
        share = row.case.exceeded[NOISES.index(row.noise)]
        theirs = f"{share * REPETITIONS:.0f} of {REPETITIONS:,}"
        exceedances.append((row.title, f"{row.case.delta:g}", theirs, *own))
    second = ("more trainings",) if more else ()
    head = ("data and noise", "published", "trainings: counted", *second)
    theirs = "published (Purchase-100's, where a data set stands for it)"
    other = ("with more trainings",) if more else ()
    return (
        Table("Advantages", (*head, "implied", "implied over ρ_α"), tuple(advantages)),
        Table("δ′, as trainings whose belief exceeds 0.9",
              ("data and noise", "δ", theirs, "ours, on D", *other), tuple(exceedances)),
    )  # fmt: skip


def drawn(rows: Sequence[Row]) -> Chart:
    """Published and ours, setting by setting."""

    def ours(name: str, values: Sequence[Estimate], aside: float) -> Line:
        points = [(i + aside, v.value, v.low, v.high) for i, v in enumerate(values, start=1)]
        return Line(name, points, "points")

    def theirs(name: str, other: bool) -> Line:
        shown = [(i, row) for i, row in enumerate(rows, 1) if other == bool(row.case.stands_for)]
        return Line(name, [(place + 0.15, row.published) for place, row in shown], "published")

    inside: Counter[str] = Counter()
    for row in rows:
        inside[row.case.label] += row.advantage.low <= row.published <= row.advantage.high
    told = ", ".join(f"{count} of {len(NOISES)} on {label}" for label, count in inside.items())
    return lines_chart(
        f"Published advantages within the 95 % interval of ours: {told}.",
        "data and noise (LS, GS: local, global sensitivity; B, U: bounded, unbounded)",
        "advantage",
        [
            ours("counted, with 95 % interval", [row.advantage for row in rows], -0.15),
            ours("implied by the sensitivities", [row.implied for row in rows], 0.0),
            theirs("published, same data", False), theirs("published, other data", True),
        ],
        places=[f"{row.case.title}, {letters(row.noise)}" for row in rows],
    )  # fmt: skip


def letters(noise: Noise) -> str:
    """As the paper writes them: "LS B"."""
    return f"{named(noise)[:2]} {noise.word[0].upper()}"
