"""Make the tables and figures of the papers again.

    python -m papers                           # all, quick: minutes on two cores
    python -m papers bernau thudi/figure3      # a paper, and an entry of another
    python -m papers bernau/table2 --full --device cuda

Results are written to papers/PAPER/results.json, from which the documents' pages are built; those
of quick runs to results-quick.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from dprime.data.devices import device_named
from papers.entry import SEED, Entry, Paper, Scale, Size
from papers.page import PAPERS


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="papers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "names", nargs="*", help=f"{', '.join(PAPERS)}, or PAPER/ENTRY; all if not given"
    )
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="minutes, which is the default")
    sizes.add_argument("--full", action="store_true", help="the paper's repetitions")
    sizes.add_argument("--smoke", action="store_true", help="only show that it runs")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--memory", type=float, default=2.0, help="in GB")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of all random numbers: {SEED}")
    parser.add_argument("--processes", type=int, default=1, help="trainings of Cherubin at a time")
    given = parser.parse_args(words)
    size: Size = "full" if given.full else "smoke" if given.smoke else "quick"
    try:
        device_named(given.device)
        chosen = [each for name in given.names or PAPERS for each in named(name)]
        scale = Scale(size, given.device, given.memory, given.seed, given.processes)
        for paper, entry in chosen:
            print(f"{paper.name}/{entry.name}", file=sys.stderr, flush=True)
            show(paper.publish(entry, scale))
    except (ValueError, OSError) as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        parser.exit(130, "stopped; what was finished before is kept\n")


def named(name: str) -> list[tuple[Paper, Entry]]:
    """A paper's entries, or one of them."""
    head, _, wanted = name.partition("/")
    if head not in PAPERS:
        raise ValueError(f"unknown: {head}; give some of {', '.join(PAPERS)}")
    paper: Paper = import_module(f"papers.{head}").PAPER
    found = [(paper, entry) for entry in paper.entries if wanted in ("", entry.name)]
    if not found:
        there = ", ".join(entry.name for entry in paper.entries)
        raise ValueError(f"unknown: {wanted}; {head} has {there}")
    return found


def show(result: Mapping[str, Any]) -> None:
    print(f"{result['size']}, {result['seconds']:g} s, {result['device']}")
    for claim in result["claims"]:
        ends = [claim["ours"], claim["low"], claim["high"]]
        ours, low, high = ("open" if end is None else f"{end:.4g}" for end in ends)
        interval = "" if low == high else f" ({low} to {high})"
        print(f"  {claim['verdict']:<15} {claim['what']}: {claim['published']} | {ours}{interval}")
        if claim["why"]:
            print(f"                  {claim['why']}")


if __name__ == "__main__":
    main()
