"""Write the measured tables into `docs/auditing.md`.

    python benchmarks/audits_page.py

From `audits.json` and `kills.json` beside this file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tables import fill

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "auditing.md"

Row = dict[str, Any]


def main() -> None:
    audits, kills = (
        json.loads((HERE / name).read_text()) for name in ("audits.json", "kills.json")
    )
    tables = {
        "power": _power(audits["power"]["rows"]),
        "crafted": _crafted(audits["crafted"]["rows"]),
        "weights": _weights(audits["weights"]),
        "alarms": _alarms(audits["alarms"]),
        "kills": _kills(kills),
    }
    PAGE.write_text(fill(PAGE.read_text(), tables))


def _power(rows: list[Row]) -> str:
    lines = [
        "| certified ε | trials a world | Gaussian, median | band, median | audits with 85 % |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        lines.append(
            f"| {row['epsilon']:g} | {row['trials']:,} | {100 * row['median']['gaussian']:.0f} % | "
            f"{100 * row['median']['band']:.0f} % | {100 * row['reached_85']:.0f} % of "
            f"{row['audits']} |"
        )
    return "\n".join(lines)


def _crafted(rows: list[Row]) -> str:
    lines = ["| data | network | trials a world | natural, d′ | made, d′ |"]
    lines.append("| :--- | :--- | ---: | ---: | ---: |")
    for row in rows:
        natural, made = (
            f"{row[name]['d_prime']:.3f} ± {row[name]['standard_error']:.3f}"
            for name in ("natural", "crafted")
        )
        lines.append(f"| {row['data']} | {row['model']} | {row['trials']:,} | {natural} | {made} |")
    return (
        "\n".join(lines)
        + "\n\n(100 records, 30 full-batch steps, ε = 4; d′ from the area under the ROC curve.)"
    )


def _weights(row: Row) -> str:
    return (
        f"MNIST, 1,000 records, ε = 10, δ = 1e-5, 100 full-batch steps, {row['trials']:,} trials a "
        f"world: ε is at least **{row['gaussian']:.2f}** at 95 % confidence by the Gaussian bound, "
        f"whose test does not object (band: {row['band']:.2f}). The paper reports "
        f"{row['published']:g}."
    )


def _alarms(found: Row) -> str:
    lines = ["| adversary | batches | curve, band | Gaussian, ε | band, ε | Clopper-Pearson, ε |"]
    lines.append("| :--- | :--- | ---: | ---: | ---: | ---: |")
    for row in found["rows"]:
        batches = "full" if row["sample_rate"] == 1 else f"Poisson, rate {row['sample_rate']:g}"
        counts = [
            f"{row['refuted'][k]} of {row['audits']}"
            for k in ("curve", "gaussian", "band", "clopper-pearson")
        ]
        lines.append(f"| `{row['adversary']}` | {batches} | " + " | ".join(counts) + " |")
    limit = found["limit"] * found["rows"][0]["audits"]
    return "\n".join(lines) + f"\n\nAt a nominal 5 %, three standard errors above are {limit:.0f}."


def _kills(row: Row) -> str:
    return (
        f"{row['kills']} kills, {row['before_the_run_existed']} of them before the run's file "
        f"existed; {row['blocks']} blocks and {row['trials']:,} trials in the end. Finished blocks "
        f"lost: {row['finished_blocks_lost']}; played again: {row['blocks_played_again']}; scores "
        f"the same, bit for bit, as in the run that was left alone: "
        f"{'yes' if row['same_scores'] else 'NO'}."
    )


if __name__ == "__main__":
    main()
