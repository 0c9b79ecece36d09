"""Table 2: the advantage and δ′ at ρ_β = 0.9.

Four settings of every data set: noise scaled to local (LS) or global sensitivity (GS), one record
replaced (bounded) or left out (unbounded). The paper's twelve are one command, `dprime audit
papers/bernau/table2.toml`, with retail100 in the place of Purchase-100; the four of Location-30,
which stands for it too, are `dprime audit papers/bernau/table2-location30.toml`. Their JSON is read
here. Both stand-ins' rows compare with values on another data set, Purchase-100, which is audited
itself where its file is in the data folder. The advantage is counted, half of the trainings on D
and half on D′; δ′ is the share of trainings on D whose final belief in it exceeds 0.9. The paper's
1,000 trainings cannot tell an advantage from one that is a fifth larger: that count is in a table,
and the claims rest on a second one with more. So is every single δ′, which is a handful of
trainings; claims are what the text says of them, that they are smaller than δ. Beside the count
stands the advantage that noise and local sensitivities imply for the same adversary, which chance
hardly touches. With local noise it follows from the noise alone, whatever the data, and is no
claim. The paper is silent on how weights begin and on how columns are scaled; rows with global
noise are shown for another choice of both as well.
"""

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
from papers.bernau.cases import (
    ADULT,
    BELIEF,
    CLIP_NORM,
    LOCATION,
    MNIST,
    PURCHASE,
    PURCHASE_LIKE,
    RETAIL,
    ROWS,
    Adjacency,
    Case,
    cases,
    named,
    recipe_of,
)
from papers.bernau.trainings import advantage_of
from papers.bernau.variants import varied
from papers.drawing import Line, lines_chart
from papers.reproduce import (
    Claim,
    Estimate,
    Measured,
    Scale,
    Table,
    explained,
    normal,
    printed,
    run,
    stated,
)

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

SMOKE = """\
adversary = "di"
metric = "advantage"
data = "digits"
max_records = 40
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
    def local(self) -> bool:
        """Whether noise is scaled to the local sensitivity."""
        return ROWS[self.place][0] == "local"

    @property
    def trainings(self) -> int:
        """In both worlds."""
        trials = self.found["trials"]
        return int(trials["in"] + trials["out"])

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


def measure(scale: Scale) -> Measured:
    """The command, once with the paper's trainings, and once with more."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows = rows_of(paper_size(scale, place))
        more = rows_of(more_trainings(scale, place)) if scale.size == "full" else []
    widest = more or rows
    claims = [
        *(counted(scale, row) for row in widest),
        *(kept(row) for row in widest),
    ]
    return Measured(
        claims,
        {
            "files": [FILE.name, LOCATION_FILE.name],
            "trainings": {row.title: row.trainings for row in rows},
        },
        {
            "rows": {row.title: dict(row.found) for row in rows},
            "more": {row.title: dict(row.found) for row in more},
        },
        drawn(widest),
        tables=[
            advantage_table(rows, more),
            open_choices(scale, widest),
            exceedance_table(rows, more),
        ],
    )


def paper_size(scale: Scale, folder: Path) -> Audits:
    """1,000 trainings a row; fewer in a quick version; on digits for a smoke test."""
    if scale.size == "full":
        rest = {case: REPETITIONS // 2 for case in cases() if case is PURCHASE}
        return {
            **audited(scale, FILE, folder / "paper", REPETITIONS // 2),
            **audited(scale, LOCATION_FILE, folder / "location30", REPETITIONS // 2),
            **by_case(scale, folder, rest),
        }
    if scale.size == "quick":
        return by_case(scale, folder, {case: case.quick // 2 for case in cases()})
    head, *_ = SMOKE.split("[training]")
    file = folder / "smoke.toml"
    listed = "".join(
        f'[[audits]]\nname = "{case.data} {named(*row)}"\nadjacency = "{row[1]}"\n'
        f'training.sensitivity = "{row[0]}"\n'
        for case in cases()
        for row in ROWS
    )
    file.write_text(head + SMOKE.removeprefix(head) + listed)
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


KEPT = ("advantage", "predicted", "exceedance")


def rows_of(audits: Audits) -> list[Row]:
    """In the order of the table."""
    return [
        Row(case, place, audits[f"{case.data} {named(*row)}"])
        for case in cases()
        for place, row in enumerate(ROWS)
    ]


def as_printed(row: Row, what: str, ours: Estimate, why: str) -> Claim:
    """Against the published advantage, which may be of other data."""
    claim = printed(f"{row.title}: {what}", row.published, ours, why)
    return dataclasses.replace(claim, published=row.printed)


def counted(scale: Scale, row: Row) -> Claim:
    """As the paper counts; what is implied is the same number, and stands in a table."""
    error = row.found["advantage"]["standard_error"]
    claim = as_printed(
        row, f"advantage ({row.trainings:,} trainings)", row.advantage,
        f"One standard error is {error:.3f}. {chance(row)}",
    )  # fmt: skip
    if row.local or row.case is MNIST:
        return claim
    return explained(claim, lambda: f"{claim.why} {behind(scale, row)}")


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
    return (
        f"The implied advantage is that of a local sensitivity of {ours:.2f}, the published one "
        f"that of {theirs:.2f}; {apart(adjacency)}. From the weights that TensorFlow's layers "
        f"begin with, {begun.value:.3f} is implied; see below for columns of variance 1 as well."
    )


def sensitivity_of(recipe: TrainingConfig, advantage: float) -> float:
    """The local sensitivity at every step that implies an advantage under global noise."""
    sigma = recipe.sigma
    return float(2 * stats.norm.ppf((1 + advantage) / 2) * sigma / recipe.steps**0.5)


def apart(adjacency: Adjacency) -> str:
    """Local sensitivities to compare with."""
    if adjacency == "add-remove":
        return f"the largest is C = {CLIP_NORM:g}"
    return (
        f"the largest is 2C = {2 * CLIP_NORM:g}, and two gradients of norm C at right angles have "
        f"{2**0.5 * CLIP_NORM:.2f}"
    )


def open_choices(scale: Scale, rows: Sequence[Row]) -> Table:
    """What is implied with other first weights and other columns, where the paper is silent."""
    found = []
    for row in rows:
        if row.local or row.case is MNIST:
            continue
        made = varied(scale, row.case, *ROWS[row.place], standardised=True)
        ours = f"{made.advantage.value:.3f}"
        found.append((row.title, row.printed, ours, f"{row.implied.value:.3f}"))
    head = ("data and noise", "published", "implied with them", "implied without them")
    title = "Implied advantages from TensorFlow's first weights and columns of variance 1"
    return Table(title, head, tuple(found))


def kept(row: Row) -> Claim:
    """The belief bound holds but for δ."""
    return stated(
        f"{row.title}: δ′ against δ", f"always smaller than δ = {row.case.delta:g}", row.exceeded,
        most=row.case.delta,
    )  # fmt: skip


def advantage_table(rows: Sequence[Row], more: Sequence[Row]) -> Table:
    """Every count."""

    def told(row: Row) -> str:
        found = row.advantage
        return f"{found.value:z.3f} ({found.low:z.3f} to {found.high:z.3f})"

    found = [
        (
            row.title, row.printed, f"{row.trainings:,}: {told(row)}",
            *(f"{each.trainings:,}: {told(each)}" for each in wider),
            f"{(wider or (row,))[0].implied.value:.3f}",
            f"{(wider or (row,))[0].implied.value / row.bound:.3f}",
        )
        for row, wider in beside(rows, more)
    ]  # fmt: skip
    second = ("more trainings",) if more else ()
    head = (
        "data and noise", "published", "trainings: counted", *second, "implied", "implied over ρ_α",
    )  # fmt: skip
    return Table("Advantages", head, tuple(found))


def exceedance_table(rows: Sequence[Row], more: Sequence[Row]) -> Table:
    """Every δ′, as a count."""

    def told(row: Row) -> str:
        trials = row.found["trials"]["in"]
        return f"{row.exceeded.value * trials:.0f} of {trials:,}"

    found = [
        (
            row.title, f"{row.case.delta:g}",
            f"{EXCEEDED[row.case][row.place] * REPETITIONS:.0f} of {REPETITIONS:,}",
            told(row), *(told(each) for each in wider),
        )
        for row, wider in beside(rows, more)
    ]  # fmt: skip
    second = ("with more trainings",) if more else ()
    head = ("data and noise", "δ", "published (Purchase-100's, where a data set stands for it)",
            "ours, on D", *second)  # fmt: skip
    return Table("δ′, as trainings whose belief exceeds 0.9", head, tuple(found))


def beside(rows: Sequence[Row], more: Sequence[Row]) -> list[tuple[Row, tuple[Row, ...]]]:
    """Each setting with that of the second count, where there is one."""
    return [(row, tuple(more[place : place + 1])) for place, row in enumerate(rows)]


def drawn(rows: Sequence[Row]) -> Chart:
    """Published and ours, setting by setting."""

    def line(name: str, values: Sequence[Estimate], aside: float) -> Line:
        points = [
            (place + aside, each.value, each.low, each.high)
            for place, each in enumerate(values, start=1)
        ]
        return Line(name, tuple(points), joined=False)

    def theirs(own: bool) -> Line:
        points = [
            (place + 0.15, row.published)
            for place, row in enumerate(rows, start=1)
            if own == (not row.case.stands_for)
        ]
        name = "published, same data" if own else "published, other data"
        return Line(name, tuple(points), published=True, joined=False)

    inside = {
        case.label: sum(
            row.advantage.low <= row.published <= row.advantage.high
            for row in rows
            if row.case is case
        )
        for case in cases()
    }
    told = ", ".join(f"{count} of {len(ROWS)} on {label}" for label, count in inside.items())
    return lines_chart(
        "table2",
        f"Published advantages within the 95 % interval of ours: {told}.",
        "data and noise (LS, GS: local, global sensitivity; B, U: bounded, unbounded)",
        "advantage",
        (
            line("counted, with 95 % interval", [row.advantage for row in rows], -0.15),
            line("implied by the sensitivities", [row.implied for row in rows], 0.0),
            theirs(True),
            theirs(False),
        ),
        places=tuple(f"{row.case.title}, {LETTERS[row.place]}" for row in rows),
    )


if __name__ == "__main__":
    run(measure, __file__, __doc__)
