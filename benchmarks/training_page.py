"""Write the measured tables into `docs/training.md`.

    python benchmarks/training_page.py

From `training.json` and `large.json` beside this file, and what `dprime audit` found for Table 2 of
Bernau et al. in `papers/bernau`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tables import fill

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "training.md"
TABLE2 = HERE.parent / "papers" / "bernau" / "table2-runs.json"
NETWORKS = {
    "retail100": "retail100, 600-128-100, n = 1,000",
    "adult": "Adult, 104-6-6-2, n = 1,000",
    "mnist": "MNIST, 16 and 32 filters, n = 100",
}
NOISES = {"LS": "local, **not DP**", "GS": "global"}


def main() -> None:
    tables = {
        "training": _training(_read("training")),
        "table2": _table2(json.loads(TABLE2.read_text())),
        "large": _large(_read("large")),
    }
    PAGE.write_text(fill(PAGE.read_text(), tables))


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text())
    return found


def _training(result: dict[str, Any]) -> str:
    machine = result["machine"]
    peak = machine["matrix_product_gflops"]
    lines = [
        "| training | engine, a trial | Opacus `hooks` | `ew` | `ghost` | least possible |",
        "| :--- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, found in result["settings"].items():
        times, ratios = found["opacus_seconds"], found["ratio"]
        peers = [f"{_time(times[m])} ({ratios[m]:.3g}×)" for m in ("hooks", "ew", "ghost")]
        floor = _time(found["gflop_per_trial"] / peak)
        own = _time(found["seconds_per_trial"])
        lines.append(f"| {NETWORKS[name]} | {own} | {' | '.join(peers)} | {floor} |")
    lines += [
        "",
        f"({machine['threads']} threads, PyTorch {machine['torch']}, Opacus {machine['opacus']}. "
        f"“Least possible”: the multiplications of a trial at {peak:.0f} GFLOP/s, which is what a "
        "large matrix product reaches here, and nothing else.)",
        "",
        "The time per trial hardly depends on how many there are, once both cores have work:",
        "",
        "| training | time per trial, by number of trials | memory above the process' own |",
        "| :--- | :--- | ---: |",
    ]
    for name, found in result["settings"].items():
        flat = ", ".join(f"{int(n):,}: {_time(s)}" for n, s in found["flat"].items())
        lines.append(f"| {NETWORKS[name]} | {flat} | {found['memory_gb']:.2f} GB |")
    return "\n".join(lines)


def _table2(result: dict[str, Any]) -> str:
    """Of the command's own answer; a name is the data set, LS or GS, bounded or unbounded."""
    lines = [
        "| data | noise scaled to | DP | advantage | time |",
        "| :--- | :--- | :--- | ---: | ---: |",
    ]
    for audit in result["audits"]:
        data, noise, kind = audit["name"].split()
        reached = audit["identifiability"]["advantage"]
        lines.append(
            f"| {data} | {NOISES[noise]} | {kind} "
            f"| {reached['value']:.3f} ± {reached['standard_error']:.3f} "
            f"| {audit['seconds']:.1f} s |"
        )
    trainings = sum(audit["blocks"]["trials"] for audit in result["audits"])
    lines += [
        "",
        f"{trainings:,} trainings in **{result['seconds']:.1f} s** on one {result['device'][0]}, "
        "with loading the data, finding the pairs and every bound; ± is one standard error. The "
        "first audit of a data set loads it, and the first of all starts the GPU.",
    ]
    return "\n".join(lines)


def _large(result: dict[str, Any]) -> str:
    own, peer = result["engine"], result["opacus"]
    return "\n".join(
        [
            "| | time on 2 cores | test accuracy |",
            "| :--- | ---: | ---: |",
            f"| dprime | {own['seconds']:.0f} s | {100 * own['accuracy'][0]:.1f} % |",
            f"| Opacus, mode `{peer['mode']}`, its fastest here | {peer['seconds']:.0f} s "
            f"| {100 * peer['accuracy']:.1f} % |",
            "",
            f"({result['steps']} steps, noise multiplier {result['noise_multiplier']:.4f}, "
            f"ε = {result['epsilon']:.3f} certified.)",
        ]
    )


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


if __name__ == "__main__":
    main()
