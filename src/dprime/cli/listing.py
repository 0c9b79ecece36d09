"""`dprime runs`: the runs in a folder, and how far each is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dprime import validate
from dprime.audit.run_file import ENDING
from dprime.audit.store import not_runs
from dprime.audit.store import runs as list_runs
from dprime.cli.options import AsJson

FOLDER = "runs"
"""Where runs are kept unless another place is given."""


def runs(
    folder: Annotated[Path, typer.Argument(help="Where the runs are.")] = Path(FOLDER),
    as_json: AsJson = False,
) -> None:
    """List the runs in a folder."""
    if not folder.is_dir():
        raise validate.refusal("folder", str(folder), "a folder", "give the one that runs are in")
    others = {name: why for name, why in not_runs(folder).items() if name.endswith(ENDING)}
    found = list_runs(folder)
    if as_json:
        listed = [{**vars(each), "changed": each.changed.isoformat()} for each in found]
        print(json.dumps({"runs": listed, "not_runs": others}, indent=2))
        return
    table = Table(title=f"Runs in {folder}", title_justify="left", pad_edge=False)
    for name in ("Run", "What", "Blocks", "Trials", "State", "Last change"):
        justify: Any = "right" if name in ("Blocks", "Trials") else "left"
        table.add_column(
            name, justify=justify, no_wrap=name not in ("Run", "What"), overflow="fold"
        )
    for each in found:
        table.add_row(
            each.name, f"{each.adversary} on {each.data}", f"{each.done}/{each.blocks}",
            f"{each.trials:,}", each.state, f"{each.changed:%m-%d %H:%M}",
        )  # fmt: skip
    console = Console()
    console.print(table if found else f"There is no run in {folder}.")
    for name, reason in others.items():
        console.print(f"{name}: {reason}", style="dim", highlight=False)
