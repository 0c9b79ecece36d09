"""Section 6.2: the table of both threats for the best models."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dprime.curve import TradeOff
from dprime.data import Split
from dprime.mechanisms import DPSGD
from dprime.parameters import steps_from_epochs
from papers.cherubin.closed_form import mu_of, records_of
from papers.cherubin.trainings import (
    ADULT,
    AT_EPOCHS,
    CASES,
    EPOCHS,
    FPR,
    OTHER,
    SECURITY,
    Case,
    Recipe,
    Run,
    Trained,
    both,
    kept,
    public_accuracy,
    settings_of,
    watched,
)
from papers.entry import Measured, Scale, Table
from papers.reproduce import Claim, Estimate, computed, half_digit, mean, printed, stated

FORM, OTHER_FORM = "closed-form", "central-limit"


@dataclass(frozen=True)
class Printed:
    """One line of the table, and the settings behind it; pairs are AI and MIA.

    Attributes:
        title: of the data set.
        given: records that the paper says it has.
        records: that are taken here, for what is certified.
        batch: L.
        noise: σ.
        delta: of the ε beside it in figure 1.
        accuracy: of the best model.
        security: Bayes security.
        right: how often the attacker is.
        tpr: at a false-positive rate of 0.1.
    """

    title: str
    given: int
    records: int
    batch: int
    noise: str
    delta: str
    accuracy: float
    security: tuple[str, str]
    right: tuple[str, str]
    tpr: tuple[str, str]

    @property
    def certified(self) -> TradeOff:
        """The curve of the printed noise."""
        rate = self.batch / self.records
        return DPSGD(float(self.noise), rate, steps_from_epochs(EPOCHS, rate)).curve("replace")


TABLE = {
    "adult": Printed("Adult", 32_561, 26_300, 256, "3.51", "3.8e-6", 0.83, ("0.93", "0.88"),
                     ("0.53", "0.56"), ("0.16", "0.20")),
    "retail100": Printed("Purchase", 197_324, 197_324, 512, "1.8", "4e-7", 0.73, ("0.99", "0.87"),
                         ("0.51", "0.57"), ("0.11", "0.23")),
}  # fmt: skip


def section6_2(scale: Scale) -> Measured:
    """Every number of the table."""
    found = both(scale)
    claims: list[Claim] = []
    rows: list[tuple[str, ...]] = []
    for data, each in found.items():
        case, row = CASES[data], TABLE[data]
        claims += [membership(row), *attribute(case, row, each, scale)]
        rows += readings(case, row, each)
    columns = Table(
        "All three columns; certified values have the numbers of records above",
        ("", "Bayes security", "attacker right", "TPR at FPR 0.1"), tuple(rows),
    )  # fmt: skip
    return Measured(
        claims, {data: settings_of(each) for data, each in found.items()},
        kept=kept(scale, *found.values()), tables=[columns, records_table()],
    )  # fmt: skip


def after_all(times: float = 1.0) -> float:
    """The closed form for membership after all epochs, where μ is this many times that of eq. 4."""
    wanted = mu_of(1 - SECURITY)
    return TradeOff.gaussian(times * wanted * (EPOCHS / AT_EPOCHS) ** 0.5).bayes_security()


def membership(row: Printed) -> Claim:
    """What follows from the closed form alone, over all noises that round to the printed one."""
    noise, half = float(row.noise), half_digit(row.noise)
    low, high = (after_all((noise + sign * half) / noise) for sign in (1, -1))
    most = float(row.security[1]) + half_digit(row.security[1]) * (1 + 1e-9)

    def needs() -> str:
        """What it would take to reach the printed security."""
        wanted = mu_of(1 - most) / mu_of(1 - after_all()) * noise
        records = records_of(wanted, row.batch, SECURITY, AT_EPOCHS)
        return (
            f"With the noise of equation 4 as it is, it is {after_all():.4f} for every number of "
            f"records. It rounds to the printed value if that noise was above {wanted:.3f} and "
            f"then taken as {row.noise}, that is with fewer than {records:,.0f} records; which "
            f"number was used is not said. With {row.records:,} records "
            f"{row.certified.bayes_security():.4f} is certified for a noise of {row.noise}."
        )

    what = f"{row.title}: Bayes security against membership, over all noises that round to"
    ours = Estimate(after_all(), low, high)
    return computed(f"{what} {row.noise}", row.security[1], ours, reason=needs)


def readings(case: Case, row: Printed, found: Trained) -> list[tuple[str, ...]]:
    """The table as it is printed, as it follows from its first column, and as it was found."""

    def read(name: str, security: float) -> tuple[str, ...]:
        curve = TradeOff.from_lines([(0.0, 1 - security)])
        values = (security, curve.secret_success(0.5), curve.tpr(FPR))
        return (name, *(f"{value:.4g}" for value in values))

    rows: list[tuple[str, ...]] = []
    for place, threat in enumerate(("attribute", "membership")):
        name, security = f"{row.title}, {threat}", row.security[place]
        rows.append((f"{name}: printed", security, row.right[place], row.tpr[place]))
        rows.append(read(f"{name}: by the printed security", float(security)))
    ours = float(np.mean([one["table"][FORM]["attribute"] for one in found["runs"]]))
    rows.insert(2, read(f"{case.title}, attribute: found", ours))
    rows.append(read(f"{row.title}, membership: closed form", after_all()))
    curve = row.certified
    certified = (curve.bayes_security(), curve.success(0.5), curve.tpr(FPR))
    rows.append((f"{row.title}, membership: certified", *(f"{one:.4g}" for one in certified)))
    return rows


def records_table() -> Table:
    """How many records the printed numbers would need, over their rounding."""
    rows = []
    for row in TABLE.values():
        (high, low), deltas = (
            [float(digits) + sign * half_digit(digits) for sign in (1, -1)]
            for digits in (row.noise, row.delta)
        )
        by_noise = [records_of(each, row.batch, SECURITY, AT_EPOCHS) for each in (high, low)]
        ends = by_noise, [1 / (10 * each) for each in deltas]
        told = (f"{least:,.0f} to {most:,.0f}" for least, most in ends)
        rows.append((row.title, f"{row.given:,}", *told))
    return Table(
        "Records that the printed numbers need",
        ("", "in the data set", "by the noise, equation 4", "if δ were 1/(10 N)"), tuple(rows),
    )  # fmt: skip


def attribute(case: Case, row: Printed, found: Trained, scale: Scale) -> list[Claim]:
    """What is measured along trainings."""
    runs = found["runs"]
    tables = [one["table"][FORM] for one in runs]
    share = mean([(1 - one["attribute"]) / (1 - one["membership"]) for one in tables])
    of_attribute, of_membership = (1 - float(security) for security in row.security)
    least, most = (
        1 - float(security) + sign * half_digit(security)
        for security, sign in zip(TABLE["adult"].security, (1, -1), strict=True)
    )
    much = least / most  # the largest share that the printed securities of Adult leave open
    return [
        printed(
            f"{case.title}: accuracy of the best model", row.accuracy,
            mean([max(one["accuracy"]) for one in runs]), accuracy_told(case, found, scale),
        ),
        printed(
            f"{case.title}: advantage on the attribute", round(of_attribute, 4),
            mean([1 - one["attribute"] for one in tables]),
            f"Bayes security is printed with two digits, {row.security[0]}. {distances_told(runs)}"
            f"{other_item(case, found, scale)}",
            rounding=half_digit(row.security[0]),
        ),
        stated(
            f"{case.title}: advantage on the attribute as a share of that on membership",
            f"much tighter: at most {much:.2f} (our reading)", share, most=much,
            why=f"By the printed securities it is {of_attribute / of_membership:.2f} on "
            f"{row.title}.",
        ),
    ]  # fmt: skip


def distances_told(runs: Sequence[Run]) -> str:
    distances = [one["differences"]["full"]["mean"] for one in runs]
    other = [1 - one["table"][OTHER_FORM]["attribute"] for one in runs]
    return (
        f"The largest distance of a batch's gradients is {min(distances):.2f} to "
        f"{max(distances):.2f} C in the mean of a training, of at most 2 C. By the central-limit "
        f"form the advantage is {np.mean(other):.4f}."
    )


def other_item(case: Case, found: Trained, scale: Scale) -> str:
    """What another item would reveal, and what records with few and with many items do."""
    if case.other is None:
        return ""
    records, runs = scale.data(case.data).train.records, found["runs"]
    first, last = (float(records[:, place].mean()) for place in (0, case.other))
    return (
        f" How frequent the item is explains little: {first:.0%} have the first; with the "
        f"last as the secret, which {last:.1%} have, the advantage is "
        f"{np.mean([one[OTHER] for one in runs]):.4f}. But a record has only "
        f"{records.sum(axis=1).mean():.1f} items in the mean. "
        f"{by_items(case, found['seed'], scale)}"
    )


@functools.cache
def by_items(case: Case, seed: int, scale: Scale) -> str:
    """One training on the records with the fewest items, and one on those with the most."""
    recipe = Recipe.of(case, replace(scale, size=scale.pick("smoke", "quick", "quick")))
    split, epochs = scale.data(case.data), scale.pick(2, EPOCHS, EPOCHS)
    order = np.argsort(split.train.records.sum(axis=1), kind="stable")
    told = []
    for kind, places in (("fewest", order[: recipe.records]), ("most", order[-recipe.records :])):
        data = Split(split.train.take(places), split.test)
        one = watched(case, recipe, data, case.learning_rates[0], seed, epochs, scale)
        items = data.train.records.sum(axis=1).mean()
        told.append(
            f"the {recipe.records:,} records with the {kind}, {items:.1f}, it is "
            f"{1 - one['table'][FORM]['attribute']:.4f}"
        )
    return f"In a training on {' and in one on '.join(told)}."


def accuracy_told(case: Case, found: Trained, scale: Scale) -> str:
    """What the same network reaches without privacy."""
    if case == ADULT:
        return ""
    public = public_accuracy(case, found, scale)
    return (
        f"retail100 is another task: without privacy the same network reaches {public:.2f} with "
        f"these {found['records']:,} records."
    )
