"""Write the measured tables into `docs/membership.md`.

    python benchmarks/membership_page.py

From `membership.json`, `shadows.json` and `shadows-gpu.json` beside this file and `papers/thudi/summary.json`; three of
the paper's figures are copied beside the page.
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
SHOWN = ("figure-3-mnist", "figure-4-mnist", "figure-11-none-mnist")
FIGURES = {
    "3": "3: LiRA, best of 40",
    "3-held-out": "3: LiRA, held out",
    "rmia": "RMIA, best of 40",
    "14": "14: attack P at FPR 0.1",
    "15": "15: attack R at FPR 0.1",
    "15-printed": "15: attack R as printed",
    "16-0.05": "16: attack R at FPR 0.05",
    "16-0.2": "16: attack R at FPR 0.2",
    "16-0.3": "16: attack R at FPR 0.3",
    "16-0.5": "16: attack R at FPR 0.5",
    "17": "17: attack R, matched rates",
}

Found = dict[str, Any]


def main() -> None:
    summary = json.loads((PAPER / "summary.json").read_text())
    for name in SHOWN:
        shutil.copyfile(PAPER / "figures" / f"{name}.svg", ASSETS / f"thudi-{name}.svg")
    tables = {
        "overfitted": _overfitted(json.loads((HERE / "membership.json").read_text())),
        "thudi": _thudi(summary),
        "speed": _speed(
            *(json.loads((HERE / n).read_text()) for n in ("shadows.json", "shadows-gpu.json"))
        ),
    }
    PAGE.write_text(fill(PAGE.read_text(), tables))


def _overfitted(found: Found) -> str:
    lines = ["| attack | AUC, 95 % interval | TPR at FPR 0.01 |", "| :--- | ---: | ---: |"]
    for each in found["attacks"]:
        auc, tpr = each["auc"], each["tpr"][1]
        lines.append(
            f"| {each['title']} | {auc['mean']:.3f} ({auc['low']:.3f} to {auc['high']:.3f}) | "
            f"{tpr['mean']:.3f} |"
        )
    setting = f"{found['shadows']} shadow models, {found['targets']} targets, {found['model']}"
    return "\n".join([*lines, "", f"{setting}, a pool of {found['pool']:,} records."])


def _thudi(summary: Found) -> str:
    lines = [
        "| figure | data | settings | above the baseline | above shuffled scores | above the "
        "certified precision |",
        "| :--- | :--- | ---: | ---: | ---: | ---: |",
    ]
    for name, title in FIGURES.items():
        for data, found in summary.items():
            cell = found[name]
            shuffled = cell.get("above_shuffled", "")
            lines.append(
                f"| {title} | {TITLES[data]} | {cell['cells']} | {cell['above_baseline']} | "
                f"{shuffled} | {cell['above_certified']} |"
            )
    return "\n".join([*lines, "", *_improvement(summary), "", *_aucs(summary), "", *_pictures()])


def _improvement(summary: Found) -> list[str]:
    """Figure 4 as numbers."""
    priors = next(iter(summary.values()))["4"]["prior"]
    lines = [
        "Figure 4, the mean gain over the baseline by π, over all private ε, in points:",
        "",
        "| data | | " + " | ".join(f"{prior:g}" for prior in priors) + " |",
        "| :--- | :--- |" + " ---: |" * len(priors),
    ]
    for data, found in summary.items():
        for name, title in (("improvement", "LiRA"), ("shuffled", "shuffled scores")):
            values = " | ".join(f"{100 * value:.1f}" for value in found["4"][name])
            lines.append(f"| {TITLES[data]} | {title} | {values} |")
    return lines


def _aucs(summary: Found) -> list[str]:
    """The area under the curve at π = ½."""
    first = next(iter(summary.values()))["auc"]
    labels = list(next(iter(first.values())))
    lines = [
        "AUC at π = ½, which no threshold enters:",
        "",
        "| data | attack | " + " | ".join(labels) + " |",
        "| :--- | :--- |" + " ---: |" * len(labels),
    ]
    for data, found in summary.items():
        for attack, values in found["auc"].items():
            shown = " | ".join(f"{values[name][2]:.3f}" for name in labels)
            lines.append(f"| {TITLES[data]} | `{attack}` | {shown} |")
    return lines


def _pictures() -> list[str]:
    texts = (
        "Figure 3: precision of LiRA on MNIST against π, one panel for each ε",
        "Figure 4: gain of LiRA over the baseline on MNIST against π, beside shuffled scores",
        "Figure 11: true against false positives of LiRA on MNIST without privacy",
    )
    return [
        f"![{text}](assets/thudi-{name}.svg)\n" for name, text in zip(SHOWN, texts, strict=True)
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
            f"| {row['network']} | {row['batch']} | {times['private']:.2f} ms | `{mode}` {peers[0]} "
            f"| {times['plain']:.2f} ms | {peers[1]} |"
        )
    full = next(row["full_seconds"] for row in found["rows"] if row["full_seconds"])
    own = gpu["rows"][0]
    return "\n".join(
        [
            *lines,
            "",
            "Milliseconds for one model and step on 2 cores. All 64 models to their end, in one call: "
            f"{full['private']:.0f} seconds with DP, {full['plain']:.0f} without. On one H200, "
            f"{gpu['models']:,} models: {own['seconds']['private']:.0f} seconds with DP, "
            f"{own['seconds']['plain']:.0f} without.",
        ]
    )


if __name__ == "__main__":
    main()
