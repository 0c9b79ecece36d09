"""Write the tables of `docs/lower-bounds.md` from `coverage.json` beside this file.

python benchmarks/coverage_page.py
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from coverage import SIZES, decisive, limit, share_over
from tables import fill

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "lower-bounds.md"
METHODS = ("clopper-pearson", "band", "steinke", "mahloujifar", "gaussian", "bayesian")
ORDER = ("Gaussian", "Laplace", "randomised response", "subsampled Gaussian")
FORMS = ("continuous", "ties", "few values")
EPSILONS = (0.0, 1.0, 4.0)
DELTAS = {0.0: "0", 1e-5: "1e-5", 1e-2: "0.01"}

Row = dict[str, Any]


def main() -> None:
    result = json.loads((HERE / "coverage.json").read_text())
    rows = result["rows"]
    tables = {
        "coverage-run": _run(result),
        "coverage-summary": _summary(rows, result["audits"]),
        "coverage-shares": _shares(rows),
        "coverage-power": _power(rows, result["audits"]),
        "coverage-gaussian": _gaussian(rows),
        "coverage-everything": _everything(rows),
        "verdicts": _verdicts(json.loads((HERE / "verdicts.json").read_text())),
    }
    PAGE.write_text(fill(PAGE.read_text(), tables))


def _table(head: Sequence[str], words: int, rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose first `words` columns are text."""
    rule = [":---"] * words + ["---:"] * (len(head) - words)
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *rows])


def _verdicts(result: dict[str, Any]) -> str:
    """How many audits of correct trainers refuted, by law of the scores and criterion."""
    found = {(row["law"], row["criterion"]): row for row in result["rows"]}
    laws, criteria = (list(dict.fromkeys(names)) for names in zip(*found, strict=True))
    lines = []
    for law in laws:
        rows = [found[law, criterion] for criterion in criteria]
        lines.append([law, *(str(row["refuted"]) for row in rows)])
    return _table(["scores", *criteria], 1, lines)


def _run(result: dict[str, Any]) -> str:
    machine = result["machine"]
    return (
        f"{len(result['rows']):,} settings of {result['audits']:,} simulated audits each (Python "
        f"{machine['python']}, NumPy {machine['numpy']}, SciPy {machine['scipy']})."
    )


def _summary(rows: list[Row], audits: int) -> str:
    lines = []
    for method in METHODS:
        mine = [row for row in rows if row["method"] == method]
        bound = [row for row in mine if decisive(row)]
        shares = [share_over(row) for row in bound or mine]
        above = sum(share > limit(audits) for share in shares)
        where = {
            "gaussian": "Gaussian, continuous scores",
            "bayesian": "all, though it need not hold",
        }.get(method, "all")
        lines.append(
            [
                f"`{method}`", where, str(len(shares)), _percent(sum(shares) / len(shares)),
                _percent(max(shares)), str(above),
            ]
        )  # fmt: skip
    head = [
        "method", "settings", "how many", "too much, on average", "too much, at most",
        f"above {_percent(limit(audits))}",
    ]  # fmt: skip
    return _table(head, 2, lines)


def _worst(rows: list[Row], keys: Sequence[str]) -> dict[tuple[Any, ...], float]:
    """The largest share of audits that claim too much, over everything but these keys."""
    worst: dict[tuple[Any, ...], float] = defaultdict(float)
    for row in rows:
        place = tuple(row[key] for key in keys)
        worst[place] = max(worst[place], share_over(row))
    return worst


def _shares(rows: list[Row]) -> str:
    """By mechanism, ε and δ: the worst over the number of trials and the form of the scores."""
    worst = _worst(rows, ("method", "mechanism", "epsilon", "delta"))
    return _table(
        ["mechanism", "ε", "δ", *METHODS],
        1,
        [
            [
                mechanism, f"{epsilon:g}", DELTAS[delta],
                *(_percent(worst[method, mechanism, epsilon, delta]) for method in METHODS),
            ]
            for mechanism, epsilon, delta in itertools.product(ORDER, EPSILONS, DELTAS)
        ],
    )  # fmt: skip


def _found(rows: list[Row], **wanted: object) -> Callable[[str], Row]:
    """The row of each method under these conditions."""
    chosen = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    by_method = {row["method"]: row for row in chosen}
    return lambda method: by_method[method]


def _power(rows: list[Row], audits: int) -> str:
    lines = []
    for mechanism, epsilon, trials in itertools.product(ORDER, EPSILONS[1:], SIZES):
        row = _found(
            rows, mechanism=mechanism, epsilon=epsilon, trials=trials, delta=1e-5,
            scores="continuous",
        )  # fmt: skip
        found = [_median(row(method), audits) for method in METHODS]
        lines.append([mechanism, f"{epsilon:g}", f"{trials:,}", *found])
    return _table(["mechanism", "true ε", "trials a world", *METHODS], 1, lines)


def _median(row: Row, audits: int) -> str:
    """In brackets where the bound is too high so often that it bounds nothing."""
    text = f"{row['median']:.2f}"
    return f"({text})" if share_over(row) > limit(audits) else text


def _gaussian(rows: list[Row]) -> str:
    lines = []
    for mechanism, form, trials in itertools.product(ORDER, FORMS, SIZES):
        place = ("gaussian", mechanism, form, trials)
        keys = ("method", "mechanism", "scores", "trials")
        mine = [row for row in rows if tuple(row[key] for key in keys) == place]
        objected = [row["objected"] for row in mine]
        lines.append(
            [
                mechanism, form, f"{trials:,}",
                f"{_percent(min(objected))} to {_percent(max(objected))}",
                _percent(max(row["over"] for row in mine)),
                _percent(max(row["over_unobjected"] for row in mine)),
            ]
        )  # fmt: skip
    head = [
        "mechanism", "scores", "trials a world", "objected to", "claims too much",
        "and is not objected to",
    ]  # fmt: skip
    return _table(head, 2, lines)


def _everything(rows: list[Row]) -> str:
    lines = []
    for mechanism, epsilon, delta, trials, form in itertools.product(
        ORDER, EPSILONS, DELTAS, SIZES, FORMS
    ):
        row = _found(
            rows, mechanism=mechanism, epsilon=epsilon, delta=delta, trials=trials, scores=form
        )
        shares = [_percent(share_over(row(method))) for method in METHODS]
        lines.append([mechanism, form, f"{epsilon:g}", DELTAS[delta], f"{trials:,}", *shares])
    return _table(["mechanism", "scores", "ε", "δ", "trials", *METHODS], 2, lines)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


if __name__ == "__main__":
    main()
