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
from papers.reproduce import add_options, publish, scale_of, show, title_of


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
    scale = scale_of(options)
    chosen = [paper for paper in PAPERS if not options.papers or paper.name in options.papers]
    for paper in chosen:
        for script in paper.scripts:
            if options.only and script not in options.only:
                continue
            print(f"{paper.name}/{script}", file=sys.stderr, flush=True)
            module = import_module(f"papers.{paper.name}.{script}")
            title = title_of(module.__doc__)
            show(publish(module.measure, str(module.__file__), scale, title))
    if scale.size != "smoke":
        page.main()


if __name__ == "__main__":
    main()
