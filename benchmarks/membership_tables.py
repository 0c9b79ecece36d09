"""The tables of docs/membership.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.tables import Column, Row, table

DATA = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
PICTURES = {
    "figure3-mnist": "Figure 3: precision of LiRA on MNIST against π, one panel for each ε",
    "figure4-mnist": (
        "Figure 4: gain of LiRA over the baseline on MNIST against π, beside shuffled scores"
    ),
    "figure11-mnist-none": (
        "Figure 11: true against false positives of LiRA on MNIST without privacy"
    ),
}
FIGURES = {
    "3: LiRA, best of 40": ("figure3", "lira"),
    "3: LiRA, held out": ("figure3", "lira_held_out"),
    "RMIA, best of 40": ("figure3", "rmia"),
    "14: attack P aimed at FPR 0.1": ("figure14",),
    "15: attack R aimed at FPR 0.1": ("figure15", "corrected"),
    "15: attack R as printed": ("figure15", "printed"),
    **{
        f"16: attack R aimed at FPR {rate}": ("figure16", rate, "corrected")
        for rate in ("0.05", "0.2", "0.3", "0.5")
    },
    "17: attack R, matched rates": ("figure17", "corrected"),
}
"""Where the counts of a figure are: its result, then names below the data set."""

BEST = ("3: LiRA, best of 40", "RMIA, best of 40")
"""Figures of the best of 40, which shuffled scores are set beside."""


def overfitted(found: Row) -> str:
    made = table(found["attacks"], {
        "<attack": "{title}",
        "AUC, 95 % interval": "{auc[value]:.3f} ({auc[low]:.3f} to {auc[high]:.3f})",
        "TPR at FPR 0.01": "{tpr[0.01][value]:.3f}",
    })  # fmt: skip
    return f"{made}\n\n" + (
        "{targets} targets, attacked with the same {shadows} shadow models (the intervals are over "
        "targets, not over shadow models), {model}, {records:,} records attacked of a pool of "
        "{pool:,}."
    ).format(**found)


def thudi(found: Row) -> str:
    """How many settings of the paper's figures lie above what, from full results."""
    rows = []
    for title, (figure, *names) in FIGURES.items():
        for data, name in DATA.items():
            cell: Any = found[figure]["numbers"][data]
            for each in names:
                cell = cell[each]
            rows.append({"title": title, "name": name, **cell})

    def count(kind: str, part: str) -> Callable[[Row], str]:
        def cell(row: Row) -> str:
            cells = row[part]["cells"]
            shown = cells and (kind == "above_baseline" or row["title"] in BEST)
            return f"{row[part][kind]} of {cells}" if shown else ""

        return cell

    def had(row: Row) -> str:
        return "{:.2f} to {:.2f}".format(*row["fpr_had"]) if "fpr_had" in row else ""

    made = table(rows, [
        ("<figure", "{title}"), ("<data", "{name}"), ("FPR that was had", had),
        ("above the baseline: with DP", count("above_baseline", "private")),
        ("no DP", count("above_baseline", "no DP")),
        ("above shuffled scores: with DP", count("above_shuffled", "private")),
        ("no DP", count("above_shuffled", "no DP")),
        ("above the certified precision", "{private[above_certified]}"),
    ])  # fmt: skip
    note = (
        "A setting counts as above where the 95 % interval of the differences, repetition by "
        "repetition, is above 0; luck alone gives one in forty. Lower ends against the certified "
        "precision are corrected over the settings of a figure. FPR that was had: the least and "
        "the largest over all settings, where the stated one was aimed at; shadow models at π = ½ "
        "are not like targets at another π."
    )
    pictures = [f"![{text}](papers/figures/thudi-{name}.svg)" for name, text in PICTURES.items()]
    gains, areas = _gains(found["figure4"]["numbers"]), _areas(found["figure11"]["numbers"]["auc"])
    return "\n\n".join([made, note, gains, areas, *pictures])


def _gains(numbers: Row) -> str:
    """Figure 4 as numbers."""
    titles = {"improvement": "LiRA", "shuffled": "shuffled scores"}
    rows = [
        {"data": DATA[data], "title": title, "points": [100 * gain for gain in found[name]]}
        for data, found in numbers.items()
        for name, title in titles.items()
    ]
    columns: list[tuple[str, Column]] = [("<data", "{data}"), ("<", "{title}")]
    priors = numbers["mnist"]["prior"]
    columns += [(f"{prior:g}", f"{{points[{i}]:.1f}}") for i, prior in enumerate(priors)]
    return (
        "Figure 4, the mean gain over the baseline by π, over all private ε, in points:\n\n"
        + table(rows, columns).replace("|  |", "| |", 1)
    )


def _areas(numbers: Row) -> str:
    """The area under the curve, over all π."""
    rows = [
        {"data": DATA[data], "attack": attack, "auc": values}
        for data, found in numbers.items()
        for attack, values in found.items()
    ]
    columns: dict[str, Column] = {"<data": "{data}", "<attack": "`{attack}`"}
    for label in rows[0]["auc"]:
        columns[label] = (
            f"{{auc[{label}][0]:.3f}} ({{auc[{label}][1]:.3f}} to {{auc[{label}][2]:.3f}})"
        )
    return (
        "AUC, which no threshold enters, mean over all π with its 95 % interval over "
        "repetitions:\n\n" + table(rows, columns)
    )


def speed(found: Row, gpu: Row) -> str:
    """Ratios over the engine's own time; each row's fastest mode of Opacus."""

    def peer(row: Row, name: str) -> str:
        times, ratio = row["ms_per_model_step"], row["ratio"]
        loader, indexed = f"{name}, loader", f"{name}, indexed"
        return f"{times[loader]:.2f} ms ({ratio[loader]:.1f}×; indexed {ratio[indexed]:.1f}×)"

    made = table(found["rows"], {
        "<network": "{network}", "batch": "{batch}",
        "engine, DP": "{ms_per_model_step[private]:.2f} ms",
        "Opacus, fastest mode": lambda row: (
            f"`{row['opacus_mode']}` {peer(row, row['opacus_mode'])}"
        ),
        "engine, no DP": "{ms_per_model_step[plain]:.2f} ms",
        "plain PyTorch": lambda row: peer(row, "plain"),
    })  # fmt: skip
    full = next(row["full_seconds"] for row in found["rows"] if row["full_seconds"])
    own = gpu["rows"][0]["seconds"]
    return (
        f"{made}\n\nMilliseconds for one model and step on 2 cores. All 64 models to their end, in "
        f"one call: {full['private']:.0f} seconds with DP, {full['plain']:.0f} without. On one "
        f"H200, {gpu['models']:,} models: {own['private']:.0f} seconds with DP, "
        f"{own['plain']:.0f} without."
    )
