"""`dprime runs`: the runs in a folder, and how far each is."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dprime.cli.options import FOLDER, AsJson
from dprime.cli.tables import plain_table
from dprime.runs.folder import Summary, list_runs
from dprime.runs.run import Run
from dprime.runs.run_file import ENDING
from dprime.runs.states import worker_lines

INTERVAL = 1.0
"""Seconds between two looks."""


def runs(
    folder: Annotated[Path, typer.Argument(help="Where the runs are.")] = Path(FOLDER),
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again every second, until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the runs in a folder, or watch them."""
    if as_json:
        found, others = _runs_in(folder)
        listed = [{**vars(each), "changed": each.changed.isoformat()} for each in found]
        print(json.dumps({"runs": listed, "not_runs": others}, indent=2))
    elif watch:
        with suppress(KeyboardInterrupt), Live(_shown(folder), refresh_per_second=4) as live:
            while True:
                time.sleep(INTERVAL)
                live.update(_shown(folder, workers=True))
    else:
        Console().print(_shown(folder))


def _runs_in(folder: Path) -> tuple[list[Summary], dict[str, str]]:
    """The runs, and the files that have a run's name and are none."""
    found, others = list_runs(folder)
    return found, {name: why for name, why in others.items() if name.endswith(ENDING)}


def _shown(folder: Path, *, workers: bool = False) -> Group:
    """The runs, who works on those that are under way, and what is none."""
    found, others = _runs_in(folder)
    parts: list[RenderableType] = [
        _table(folder, found) if found else f"There is no run in {folder}."
    ]
    if workers:
        parts += [_at_work(folder / each.name) for each in found if each.state == "running"]
    parts += [Text(f"{name}: {why}", style="dim") for name, why in others.items()]
    return Group(*parts)


def _table(folder: Path, found: list[Summary]) -> Table:
    columns = ("Run", "What", "Blocks", "Trials", "State", "Last change")
    table = plain_table(f"Runs in {folder}", *columns)
    for column, name in zip(table.columns, columns, strict=True):
        column.no_wrap, column.overflow = name not in ("Run", "What"), "fold"
    for each in found:
        what, blocks = f"{each.adversary} on {each.data}", f"{each.done}/{each.blocks}"
        changed = f"{each.changed:%m-%d %H:%M}"
        table.add_row(each.name, what, blocks, f"{each.trials:,}", each.state, changed)
    return table


def _at_work(path: Path) -> Text:
    """Who works on a run, how fast, and what is left, as far as can be told."""
    with Run.open(path, verify=False) as run:
        workers, state, pace, events = run.workers(), run.state(), run.pace(), run.events()
    left = "no block is done yet"
    if state.trials and pace:
        seconds = (state.blocks - state.done) * state.trials / state.done / pace
        left = f"about {timedelta(seconds=round(seconds))} left"
    lines = [f"{path.name}: {pace:,.3g} trials/s, {left}"]
    lines += [f"  {line}" for line in worker_lines(workers)]
    lines += [f"  {event.outcome}: block {event.block}, {event.message}" for event in events[-3:]]
    return Text("\n".join(lines), style="dim")
