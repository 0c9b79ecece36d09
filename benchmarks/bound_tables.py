"""The tables of docs/lower-bounds.md: how often lower bounds claim too much."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.coverage import SIZES, decisive, limit, share_over
from benchmarks.tables import Column, Row, percent, table

METHODS = ("clopper-pearson", "band", "steinke", "mahloujifar", "gaussian", "bayesian")
ORDER = ("Gaussian", "Laplace", "randomised response", "subsampled Gaussian")
FORMS = ("continuous", "ties", "few values")
EPSILONS = (0.0, 1.0, 4.0)
EACH = {method: f"{{{method}}}" for method in METHODS}
DELTAS = {0.0: "0", 1e-5: "1e-5", 1e-2: "0.01"}
PLACE: dict[str, Column] = {
    "<mechanism": "{mechanism}", "<scores": "{scores}", "ε": "{epsilon:g}",
    "δ": lambda row: DELTAS[row["delta"]], "trials": "{trials:,}",
}  # fmt: skip


def by(rows: Sequence[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows of each setting of these keys."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def settings(**values: Sequence[Any]) -> list[Row]:
    """All combinations, the last changing fastest."""
    return [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]


def per_method(
    rows: Sequence[Row], at: Sequence[Row], cell: Callable[[list[Row]], str]
) -> list[Row]:
    """Each setting, with what is said of the rows of each method there."""
    found = by(rows, "method", *at[0])
    return [{**each, **{m: cell(found[m, *each.values()]) for m in METHODS}} for each in at]


def worst(rows: Sequence[Row]) -> str:
    return percent(max(map(share_over, rows)))


def run(found: Row) -> str:
    machine = found["machine"]
    packages = machine["packages"]
    return (
        f"{len(found['rows']):,} settings of {found['audits']:,} simulated audits each (Python "
        f"{machine['python']}, NumPy {packages['numpy']}, SciPy {packages['scipy']})."
    )


def summary(found: Row) -> str:
    most = limit(found["audits"])
    where = {
        "gaussian": "Gaussian, continuous scores",
        "bayesian": "all, though it need not hold",
    }
    rows = by(found["rows"], "method")
    lines = []
    for method in METHODS:
        must = [row for row in rows[method,] if decisive(row)] or rows[method,]
        shares = [share_over(row) for row in must]
        lines.append({"method": method, "shares": shares, "where": where.get(method, "all")})
    return table(lines, {
        "<method": "`{method}`", "<settings": "{where}",
        "how many": lambda line: str(len(line["shares"])),
        "too much, on average": lambda line: percent(sum(line["shares"]) / len(line["shares"])),
        "too much, at most": lambda line: percent(max(line["shares"])),
        f"above {percent(most)}": lambda line: str(sum(s > most for s in line["shares"])),
    })  # fmt: skip


def shares(found: Row) -> str:
    """By mechanism, ε and δ: the worst over the number of trials and the form of the scores."""
    at = settings(mechanism=ORDER, epsilon=EPSILONS, delta=tuple(DELTAS))
    own = {title: PLACE[title] for title in ("<mechanism", "ε", "δ")}
    return table(per_method(found["rows"], at, worst), own | EACH)


def power(found: Row) -> str:
    """In brackets where the bound is too high so often that it bounds nothing."""

    def median(rows: list[Row]) -> str:
        (row,) = rows
        text = f"{row['median']:.2f}"
        return f"({text})" if share_over(row) > limit(found["audits"]) else text

    rows = [row for row in found["rows"] if (row["delta"], row["scores"]) == (1e-5, "continuous")]
    at = settings(mechanism=ORDER, epsilon=EPSILONS[1:], trials=SIZES)
    own = {"<mechanism": "{mechanism}", "true ε": "{epsilon:g}", "trials a world": "{trials:,}"}
    return table(per_method(rows, at, median), own | EACH)


def gaussian(found: Row) -> str:
    keys = ("mechanism", "scores", "trials")
    rows = by([row for row in found["rows"] if row["method"] == "gaussian"], *keys)

    def largest(name: str) -> Column:
        return lambda at: percent(max(row[name] for row in rows[*at.values()]))

    def objected(at: Row) -> str:
        mine = [row["objected"] for row in rows[*at.values()]]
        return f"{percent(min(mine))} to {percent(max(mine))}"

    return table(settings(mechanism=ORDER, scores=FORMS, trials=SIZES), {
        "<mechanism": "{mechanism}", "<scores": "{scores}", "trials a world": "{trials:,}",
        "objected to": objected, "claims too much": largest("over"),
        "and is not objected to": largest("over_unobjected"),
    })  # fmt: skip


def everything(found: Row) -> str:
    at = settings(
        mechanism=ORDER, epsilon=EPSILONS, delta=tuple(DELTAS), trials=SIZES, scores=FORMS
    )
    return table(per_method(found["rows"], at, worst), PLACE | EACH)


def verdicts(found: Row) -> str:
    """How many audits of correct trainers refuted, by law of the scores and criterion."""
    laws = by(found["rows"], "law")
    criteria = [row["criterion"] for row in next(iter(laws.values()))]
    rows = [
        {"law": law, "refuted": [row["refuted"] for row in each]} for (law,), each in laws.items()
    ]
    counts = {name: f"{{refuted[{i}]}}" for i, name in enumerate(criteria)}
    return table(rows, {"<scores": "{law}", **counts})


COVERAGE = (run, summary, shares, power, gaussian, everything)
"""The tables of `coverage.json`, by their names."""
