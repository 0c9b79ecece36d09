"""Write the measured tables of `docs/scaling.md`, from `backends.json` and `backends-gpu.json`.

python benchmarks/backends_page.py
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tables import fill

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "scaling.md"

Found = dict[str, Any]


def main() -> None:
    found = json.loads((HERE / "backends.json").read_text())
    on_gpu = json.loads((HERE / "backends-gpu.json").read_text())
    tables = {"backends": backends(found), "sizes": sizes(found["sizes"], on_gpu["sizes"])}
    PAGE.write_text(fill(PAGE.read_text(), tables))


def backends(found: Found) -> str:
    """What each backend gains and adds, and what a large run takes."""
    speed, overhead, large = found["speed"], found["overhead"], found["large"]
    rates = speed["trials_per_second"]
    names = {
        "here": "here, one thread", "processes": "processes, two workers", "ray": "Ray, two cores",
    }  # fmt: skip
    lines = ["| backend | trials a second | times one process | adds to a block of a second |"]
    lines.append("| :--- | ---: | ---: | ---: |")
    for name, title in names.items():
        ratio = speed["ratio"].get(name, 1.0)
        added = f"{100 * max(0.0, overhead[name]):.1f} %"
        lines.append(f"| {title} | {rates[name]:,.0f} | {ratio:.2f} | {added} |")
    lines += [
        "",
        f"A run of {large['trials']:,} short trials is a file of {large['megabytes']:.1f} MB; the "
        f"driver takes {large['peak_megabytes']:,.0f} MB of memory, most of it PyTorch itself. "
        f"Killed in the middle, it has its next block {large['until_next_block_seconds']:.1f} s "
        f"after `dprime resume`; a finished one has its answer again in "
        f"{large['answer_again_seconds']:.1f} s.",
    ]
    return "\n".join(lines)


def sizes(here: Sequence[Found], on_gpu: Sequence[Found]) -> str:
    """Trials a second and hours for a million, of one core and of one GPU."""
    lines = [
        "| network | weights | records | steps | one core, trials/s | hours | H200, trials/s |"
    ]
    lines[0] += " hours |"
    lines.append("| :--- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for one, other in zip(here, on_gpu, strict=True):
        lines.append(
            f"| `{one['network']}` | {one['weights']:,} | {one['records']:,} | {one['steps']} | "
            f"{_digits(one['trials_per_second'])} | {_digits(one['hours_per_million'])} | "
            f"{_digits(other['trials_per_second'])} | {_digits(other['hours_per_million'])} |"
        )
    return "\n".join(lines)


def _digits(value: float) -> str:
    """Two digits or more, never as a power of ten."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


if __name__ == "__main__":
    main()
