"""Write the measured tables into `docs/membership.md`.

    python benchmarks/membership_page.py

From `membership.json`, `shadows.json` and `shadows-gpu.json` beside this file and the full results
in `papers/thudi/results.json`; three of the paper's figures are copied beside the page.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tables import fill

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGE, ASSETS = ROOT / "docs" / "membership.md", ROOT / "docs" / "assets"
PAPER = ROOT / "papers" / "thudi"
TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
SHOWN = {
    "figure3-mnist": "figure-3-mnist",
    "figure4-mnist": "figure-4-mnist",
    "figure11-mnist-none": "figure-11-none-mnist",
}
"""Pictures, and their names beside the page."""

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

FPR = 0.01

BEST = ("3: LiRA, best of 40", "RMIA, best of 40")
"""Figures of the best of 40, which shuffled scores are set beside."""

Found = dict[str, Any]


def main() -> None:
    for name, beside in SHOWN.items():
        shutil.copyfile(PAPER / "figures" / f"{name}.svg", ASSETS / f"thudi-{beside}.svg")
    tables = {
        "overfitted": _overfitted(json.loads((HERE / "membership.json").read_text())),
        "thudi": _thudi(),
        "speed": _speed(
            *(json.loads((HERE / n).read_text()) for n in ("shadows.json", "shadows-gpu.json"))
        ),
    }
    PAGE.write_text(fill(PAGE.read_text(), tables))


def _overfitted(found: Found) -> str:
    lines = ["| attack | AUC, 95 % interval | TPR at FPR 0.01 |", "| :--- | ---: | ---: |"]
    for each in found["attacks"]:
        auc, tpr = each["auc"], each["tpr"][str(FPR)]
        lines.append(
            f"| {each['title']} | {auc['value']:.3f} ({auc['low']:.3f} to {auc['high']:.3f}) | "
            f"{tpr['value']:.3f} |"
        )
    setting = (
        f"{found['targets']} targets, attacked with the same {found['shadows']} shadow models (the "
        f"intervals are over targets, not over shadow models), {found['model']}, "
        f"{found['records']:,} records attacked of a pool of {found['pool']:,}."
    )
    return "\n".join([*lines, "", setting])


def _numbers(figure: str) -> Found:
    """Of a full result."""
    results: Found = json.loads((PAPER / "results.json").read_text())["results"]
    found: Found = results[figure]["numbers"]
    return found


def _counts(data: str, figure: str, *names: str) -> Found:
    """How many settings lie above what."""
    found: Found = _numbers(figure)[data]
    for name in names:
        found = found[name]
    return found


def _thudi() -> str:
    lines = [
        "| figure | data | FPR that was had | above the baseline: with DP | no DP | above shuffled "
        "scores: with DP | no DP | above the certified precision |",
        "| :--- | :--- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for title, place in FIGURES.items():
        for data, name in TITLES.items():
            cell = _counts(data, *place)
            had = "{:.2f} to {:.2f}".format(*cell["fpr_had"]) if "fpr_had" in cell else ""
            private, open_ = cell["private"], cell["no DP"]
            counts = [
                f"{part[kind]} of {part['cells']}" if kind in shown and part["cells"] else ""
                for kind in ("above_baseline", "above_shuffled")
                for part in (private, open_)
                for shown in [
                    ("above_baseline", "above_shuffled") if title in BEST else ("above_baseline",)
                ]
            ]
            lines.append(
                f"| {title} | {name} | {had} | {' | '.join(counts)} | "
                f"{private['above_certified']} |"
            )
    note = (
        "A setting counts as above where the 95 % interval of the differences, repetition by "
        "repetition, is above 0; luck alone gives one in forty. Lower ends against the certified "
        "precision are corrected over the settings of a figure. FPR that was had: the least and "
        "the largest over all settings, where the stated one was aimed at; shadow models at π = ½ "
        "are not like targets at another π."
    )
    return "\n".join([*lines, "", note, "", *_improvement(), "", *_aucs(), "", *_pictures()])


def _improvement() -> list[str]:
    """Figure 4 as numbers."""
    numbers = _numbers("figure4")
    priors = numbers["mnist"]["prior"]
    lines = [
        "Figure 4, the mean gain over the baseline by π, over all private ε, in points:",
        "",
        "| data | | " + " | ".join(f"{prior:g}" for prior in priors) + " |",
        "| :--- | :--- |" + " ---: |" * len(priors),
    ]
    for data, found in numbers.items():
        for name, title in (("improvement", "LiRA"), ("shuffled", "shuffled scores")):
            values = " | ".join(f"{100 * value:.1f}" for value in found[name])
            lines.append(f"| {TITLES[data]} | {title} | {values} |")
    return lines


def _aucs() -> list[str]:
    """The area under the curve, over all π."""
    numbers = _numbers("figure11")["auc"]
    labels = list(numbers["mnist"]["lira"])
    lines = [
        "AUC, which no threshold enters, mean over all π with its 95 % interval over repetitions:",
        "",
        "| data | attack | " + " | ".join(labels) + " |",
        "| :--- | :--- |" + " ---: |" * len(labels),
    ]
    for data, found in numbers.items():
        for attack, values in found.items():
            shown = " | ".join("{:.3f} ({:.3f} to {:.3f})".format(*values[name]) for name in labels)
            lines.append(f"| {TITLES[data]} | `{attack}` | {shown} |")
    return lines


def _pictures() -> list[str]:
    texts = (
        "Figure 3: precision of LiRA on MNIST against π, one panel for each ε",
        "Figure 4: gain of LiRA over the baseline on MNIST against π, beside shuffled scores",
        "Figure 11: true against false positives of LiRA on MNIST without privacy",
    )
    return [
        f"![{text}](assets/thudi-{name}.svg)\n"
        for name, text in zip(SHOWN.values(), texts, strict=True)
    ]


def _speed(found: Found, gpu: Found) -> str:
    """Ratios over the engine's own time; each row's fastest mode of Opacus."""
    lines = [
        "| network | batch | engine, DP | Opacus, fastest mode | engine, no DP | plain PyTorch |",
        "| :--- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in found["rows"]:
        times, ratio, mode = row["ms_per_model_step"], row["ratio"], row["opacus_mode"]
        peers = [
            f"{times[f'{peer}, loader']:.2f} ms ({ratio[f'{peer}, loader']:.1f}×; indexed "
            f"{ratio[f'{peer}, indexed']:.1f}×)"
            for peer in (mode, "plain")
        ]
        lines.append(
            f"| {row['network']} | {row['batch']} | {times['private']:.2f} ms | `{mode}` "
            f"{peers[0]} | {times['plain']:.2f} ms | {peers[1]} |"
        )
    full = next(row["full_seconds"] for row in found["rows"] if row["full_seconds"])
    own = gpu["rows"][0]
    return "\n".join(
        [
            *lines,
            "",
            "Milliseconds for one model and step on 2 cores. All 64 models to their end, in one "
            "call: "
            f"{full['private']:.0f} seconds with DP, {full['plain']:.0f} without. On one H200, "
            f"{gpu['models']:,} models: {own['seconds']['private']:.0f} seconds with DP, "
            f"{own['seconds']['plain']:.0f} without.",
        ]
    )


if __name__ == "__main__":
    main()
