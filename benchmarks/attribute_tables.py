"""The tables and charts of docs/attributes.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from benchmarks.tables import Column, Row, table
from dprime.mechanisms import DPSGD
from dprime.show.figures.security import Across, SecurityFigure, SecurityLine
from dprime.text import round_down, round_up

FORM = "central-limit"
LINES = {"full": "age, full analysis", "approximate": "age, approximate analysis"}
DELTA = 1e-5
FIRST_EPOCH = 3
"""From which accuracy is drawn: before it, the model has not learned anything."""

ADULT: dict[str, tuple[str, str, int, str]] = {
    "Bayes security after 30 epochs": ("attribute", "membership", 3, "0.93 and 0.88"),
    "attacker right": ("attribute_success", "membership_success", 1, "53 and 56 %"),
    "TPR at FPR 0.1, as 1 + FPR − β*": (
        "attribute_tpr_of_security", "membership_tpr_of_security", 1, "16 and 20 %",
    ),
    "TPR at FPR 0.1, off the curve": ("attribute_tpr", "membership_tpr", 1, ""),
    "Bayes security after 20 epochs, full": ("full", "membership", 3, "0.945 or 0.950"),
    "the same, approximate": ("approximate", "", 3, "the other of the two"),
}  # fmt: skip
"""Of section 6.2 of the paper: names of our numbers, their digits, and what the paper says."""


def attack(found: Row) -> str:
    """What the attacker reached beside the estimate, the largest noise first."""
    return table(sorted(found["attack"], key=lambda row: -row["noise_multiplier"]), {
        "noise": "{noise_multiplier:g}", "rate": "{sample_rate:g}", "steps": "{steps:,}",
        "advantage reached": "{advantage:.3f} ± {standard_error:.3f}",
        "estimated": f"{{estimated[{FORM}]:.3f}}", "share": "{share:.2f}",
    })  # fmt: skip


def times(found: Row) -> str:
    """Figure 8 of the paper: seconds for an epoch, in turns, and times that of plain Opacus."""
    rows = found["times"]
    first = rows[0]
    kinds = ("seconds", "times the epoch of Opacus")
    lines = [
        {"name": name, "cells": [[row[kind][name] for kind in kinds] for row in rows]}
        for name in first["seconds"]
    ]
    columns: dict[str, Column] = {"<an epoch": "{name}"}
    for i, row in enumerate(rows):
        title = f"{row['threads']} thread{'s' if row['threads'] > 1 else ''}"
        columns[title] = f"{{cells[{i}][0]:.2f}} s ({{cells[{i}][1]:.1f}}×)"
    network = "-".join(str(width) for width in first["network"])
    return table(lines, columns) + (
        f"\n\nMedians of {first['epochs']} epochs, in turns, on 2 cores; {network}, "
        f"{first['values']} values, batches of {first['batch']}."
    )


def adult(found: Row) -> str:
    """The numbers of the paper's section 6.2, beside its own."""
    runs = found["runs"]

    def over_runs(read: Callable[[Row], float], digits: int) -> str:
        """The ends over all trainings; shares have one digit, in per cent."""
        scale, unit = (100, " %") if digits == 1 else (1, "")
        values = sorted(scale * read(run) for run in runs)
        return " to ".join(dict.fromkeys(f"{v:.{digits}f}" for v in (values[0], values[-1]))) + unit

    def cell(name: str, title: str, digits: int) -> str:
        if not name:
            return ""
        if "20 epochs" in title or "the same" in title:
            return over_runs(lambda run: float(run["security"][FORM][name][19]), digits)
        return over_runs(lambda run: float(run["table"][FORM][name]), digits)

    made = table([{"title": title, "row": row} for title, row in ADULT.items()], {
        "<": "{title}", "attribute": lambda at: cell(at["row"][0], at["title"], at["row"][2]),
        "membership": lambda at: cell(at["row"][1], at["title"], at["row"][2]),
        "the paper's": "{row[3]}",
    }).replace("|  |", "| |", 1)  # fmt: skip
    certified = round_down(runs[0]["table"][FORM]["certified"])
    epsilon = round_up(_training(found, found["epochs"]).curve().epsilon(DELTA), 3)
    accuracy = over_runs(lambda run: float(run["accuracy"][-1]), 1)
    return (
        f"{made}\n\n{len(runs)} trainings, central-limit form; accuracy on adult.test is "
        f"{accuracy}. The certified Bayes security against membership is at least {certified}, and "
        f"ε at δ = 1e-5 at most {epsilon}, after 30 epochs, with ideal noise.\n\n{_claims(runs)}"
    )


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


def pictures(found: Row) -> str:
    """Figures 9 and 1 of the paper, of the first training."""
    return "\n\n".join(
        f"![Adult, in the form of the paper's {name}: {_figure(found, across).title}]"
        f"(assets/attributes-adult-{across}.svg)"
        for across, name in zip(ACROSS, ("figure 9", "figure 1"), strict=True)
    )


def charts(found: Row) -> dict[str, str]:
    """The drawings of these pictures."""
    return {
        f"assets/attributes-adult-{across}.svg": _figure(found, across).svg() for across in ACROSS
    }


ACROSS: tuple[Across, ...] = ("epochs", "accuracy")


def _figure(found: Row, across: Across) -> SecurityFigure:
    run, epochs = found["runs"][0], found["epochs"]
    order, at = list(range(epochs)), [float(epoch) for epoch in range(1, epochs + 1)]
    if across == "accuracy":
        at = run["accuracy"]
        order = []
        for epoch in range(FIRST_EPOCH - 1, epochs):  # whose accuracy no earlier one reached
            if not order or at[epoch] > at[order[-1]]:
                order.append(epoch)

    def line(
        name: str, kind: Literal["certified", "estimate"], security: Sequence[float]
    ) -> SecurityLine:
        return SecurityLine(name, kind, tuple((at[each], security[each]) for each in order))

    certified = [
        _training(found, each + 1).curve("replace").bayes_security() for each in range(epochs)
    ]
    lines = [line("membership", "certified", certified)]
    lines += [line(name, "estimate", run["security"][FORM][kind]) for kind, name in LINES.items()]
    return SecurityFigure(tuple(lines), "Adult", across)


def _training(found: Row, epochs: int) -> DPSGD:
    """As Opacus did it, after some epochs."""
    steps = -(-found["records"] // found["batch"])
    return DPSGD(found["noise_multiplier"], 1 / steps, steps * epochs)
