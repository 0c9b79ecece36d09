"""Make the tables and figures of the papers again.

    python -m papers                                # all, quick: minutes on two cores
    python -m papers bernau --only table2 --full --device cuda

Writes results and pictures beside the scripts, and the pages in the documents.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from papers import page
from papers.page import PAPERS
from papers.paper import Paper
from papers.reproduce import Scale, add_options, plainly, publish, scale_of, show, title_of


def main() -> None:
    parser = argparse.ArgumentParser(prog="papers", description=(__doc__ or "").split("\n")[0])
    names = [paper.name for paper in PAPERS]
    parser.add_argument("papers", nargs="*", help=f"{', '.join(names)}; all if not given")
    parser.add_argument("--only", action="append", help="a script's name, such as table2")
    add_options(parser)
    options = parser.parse_args()
    unknown = set(options.papers) - set(names)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; give some of {', '.join(names)}")
    chosen = [
        (paper, script)
        for paper in PAPERS
        for script in paper.scripts
        if not options.papers or paper.name in options.papers
    ]
    there = [script for _, script in chosen]
    missing = set(options.only or ()) - set(there)
    if missing:
        parser.error(f"unknown: {', '.join(sorted(missing))}; there are {', '.join(there)}")
    scale = scale_of(parser, options)
    with plainly(parser):
        for paper, script in chosen:
            if not options.only or script in options.only:
                made(paper, script, scale)
        if scale.size != "smoke":
            page.main()
            print("results are in papers/*/results, pages in docs/papers", file=sys.stderr)


def made(paper: Paper, script: str, scale: Scale) -> None:
    """One table or figure."""
    print(f"{paper.name}/{script}", file=sys.stderr, flush=True)
    module = import_module(f"papers.{paper.name}.{script}")
    show(publish(module.measure, str(module.__file__), scale, title_of(module.__doc__)))


if __name__ == "__main__":
    main()
