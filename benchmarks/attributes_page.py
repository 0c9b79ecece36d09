"""Write the measured tables and charts of `docs/attributes.md`.

    python benchmarks/attributes_page.py

From `attributes.json` beside this file and `papers/cherubin/raw.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dprime.mechanisms import DPSGD
from dprime.show.figures.security import Across, SecurityFigure, SecurityLine
from dprime.text import round_down, round_up
from tables import fill

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "attributes.md"
ASSETS = PAGE.parent / "assets"
FORM = "central-limit"
LINES = {"full": "age, full analysis", "approximate": "age, approximate analysis"}
PAPER = {"attribute": 0.93, "membership": 0.88}
"""Bayes security after 30 epochs, in the paper's section 6.2."""

DELTA = 1e-5
FIRST_EPOCH = 3
"""From which accuracy is drawn: before it, the model has not learned anything."""

Row = dict[str, Any]


def main() -> None:
    measured = json.loads((HERE / "attributes.json").read_text())
    adult = json.loads((HERE.parent / "papers/cherubin/raw.json").read_text())["adult"]
    page = fill(
        PAGE.read_text(),
        {
            "attack": attack(measured["attack"]),
            "adult": table(adult),
            "pictures": pictures(adult),
            "times": times(measured["times"]),
        },
    )
    PAGE.write_text(page)


def attack(rows: Sequence[Row]) -> str:
    """What the attacker reached beside the estimate, the largest noise first."""
    lines = ["| noise | rate | steps | advantage reached | estimated | share |"]
    lines.append("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in sorted(rows, key=lambda row: -row["noise_multiplier"]):
        reached = f"{row['advantage']:.3f} ± {row['standard_error']:.3f}"
        lines.append(
            f"| {row['noise_multiplier']:g} | {row['sample_rate']:g} | {row['steps']:,} | "
            f"{reached} | {row['estimated'][FORM]:.3f} | {row['share']:.2f} |"
        )
    return "\n".join(lines)


def table(adult: Row) -> str:
    """The numbers of the paper's section 6.2, beside its own."""
    runs = adult["runs"]

    def over_runs(read: Callable[[Row], float], digits: int, share: bool = False) -> str:
        values = sorted(read(run) * (100 if share else 1) for run in runs)
        ends = dict.fromkeys(f"{value:.{digits}f}" for value in (values[0], values[-1]))
        return " to ".join(ends) + (" %" if share else "")

    def final(name: str) -> Callable[[Row], float]:
        return lambda run: float(run["table"][FORM][name])

    def after(line: str) -> Callable[[Row], float]:
        return lambda run: float(run["security"][FORM][line][19])

    rows = [
        ("Bayes security after 30 epochs", over_runs(final("attribute"), 3),
         over_runs(final("membership"), 3), f"{PAPER['attribute']} and {PAPER['membership']}"),
        ("attacker right", over_runs(final("attribute_success"), 1, True),
         over_runs(final("membership_success"), 1, True), "53 and 56 %"),
        ("TPR at FPR 0.1, as 1 + FPR − β*", over_runs(final("attribute_tpr_of_security"), 1, True),
         over_runs(final("membership_tpr_of_security"), 1, True), "16 and 20 %"),
        ("TPR at FPR 0.1, off the curve", over_runs(final("attribute_tpr"), 1, True),
         over_runs(final("membership_tpr"), 1, True), ""),
        ("Bayes security after 20 epochs, full", over_runs(after("full"), 3),
         over_runs(after("membership"), 3), "0.945 or 0.950"),
        ("the same, approximate", over_runs(after("approximate"), 3), "", "the other of the two"),
    ]  # fmt: skip
    lines = ["| | attribute | membership | the paper's |", "| :--- | ---: | ---: | ---: |"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    certified = round_down(runs[0]["table"][FORM]["certified"])
    epsilon = round_up(_training(adult, adult["epochs"]).curve().epsilon(DELTA), 3)
    accuracy = over_runs(lambda run: run["accuracy"][-1], 1, True)
    closing = (
        f"{len(runs)} trainings, central-limit form; accuracy on adult.test is {accuracy}. The "
        f"certified Bayes security against membership is at least {certified}, and ε at δ = 1e-5 "
        f"at most {epsilon}, after 30 epochs, with ideal noise."
    )
    return "\n".join([*lines, "", closing, "", _claims(runs)])


def _claims(runs: Sequence[Row]) -> str:
    """Whether what must hold held, in every epoch of every training and in both forms."""
    rows = [
        row
        for run in runs
        for one in run["security"].values()
        for row in zip(one["full"], one["approximate"], one["membership"], strict=True)
    ]
    held = [
        all(full >= member for full, _, member in rows),
        all(rough <= full for full, rough, _ in rows),
    ]
    if all(held):
        return (
            "In no epoch of any training was attribute inference said to be easier than "
            "membership, or the approximate analysis above the full one."
        )
    return f"**It did not hold that attribute is above membership, approximate below full: {held}**"


def pictures(adult: Row) -> str:
    """Figures 9 and 1 of the paper, of the first training."""
    shown = []
    for across, name in (("epochs", "figure 9"), ("accuracy", "figure 1")):
        figure = _figure(adult, across)
        place = f"attributes-adult-{across}.svg"
        figure.save(ASSETS / place)
        shown.append(f"![Adult, in the form of the paper's {name}: {figure.title}](assets/{place})")
    return "\n\n".join(shown)


def _figure(adult: Row, across: str) -> SecurityFigure:
    run, first = adult["runs"][0], 0 if across == "epochs" else FIRST_EPOCH - 1
    at = run["accuracy"] if across == "accuracy" else list(range(1, adult["epochs"] + 1))
    order = sorted(range(first, adult["epochs"]), key=lambda epoch: (at[epoch], epoch))
    if across == "accuracy":  # the best accuracy that each amount of security buys
        order = _frontier(order, at)
    lines = [SecurityLine("membership", "certified", _points(at, _certified(adult), order))]
    for kind, name in LINES.items():
        lines.append(
            SecurityLine(name, "estimate", _points(at, run["security"][FORM][kind], order))
        )
    shown: Across = "accuracy" if across == "accuracy" else "epochs"
    return SecurityFigure(tuple(lines), "Adult", shown)


def _frontier(order: Sequence[int], accuracy: Sequence[float]) -> list[int]:
    """Epochs whose accuracy no earlier one reached."""
    kept: list[int] = []
    for epoch in sorted(order):
        if not kept or accuracy[epoch] > accuracy[kept[-1]]:
            kept.append(epoch)
    return kept


def _certified(adult: Row) -> list[float]:
    """What no attacker on membership can beat, epoch by epoch."""
    return [
        _training(adult, epoch).curve("replace").bayes_security()
        for epoch in range(1, adult["epochs"] + 1)
    ]


def _training(adult: Row, epochs: int) -> DPSGD:
    """As Opacus did it, after some epochs."""
    steps = -(-adult["records"] // adult["batch"])
    return DPSGD(adult["noise_multiplier"], 1 / steps, steps * epochs)


def _points(
    at: Sequence[float], security: Sequence[float], order: Sequence[int]
) -> tuple[tuple[float, float], ...]:
    return tuple((float(at[epoch]), float(security[epoch])) for epoch in order)


def times(rows: Sequence[Row]) -> str:
    """Figure 8 of the paper: seconds for an epoch, in turns, and times that of plain Opacus."""
    names = list(rows[0]["seconds"])
    head = [f"{row['threads']} thread{'s' if row['threads'] > 1 else ''}" for row in rows]
    lines = ["| an epoch | " + " | ".join(head) + " |", "| :--- |" + " ---: |" * len(rows)]
    for name in names:
        cells = [
            f"{row['seconds'][name]:.2f} s ({row['times the epoch of Opacus'][name]:.1f}×)"
            for row in rows
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    network = "-".join(str(width) for width in rows[0]["network"])
    lines += ["", f"Medians of {rows[0]['epochs']} epochs, in turns, on 2 cores; {network}, "
              f"{rows[0]['values']} values, batches of {rows[0]['batch']}."]  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    main()
