"""`dprime runs` and `dprime resume`: how far runs are, and how they go on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dprime import options, validate
from dprime.cli import command
from dprime.cli.command import argument, takes
from dprime.cli.tables import plain_table
from dprime.runs.folder import Summary, list_runs
from dprime.runs.run import Run
from dprime.runs.runner import check_code
from dprime.runs.states import worker_lines
from dprime.text import printable

INTERVAL = 1.0
"""Seconds between two looks."""

NO_RUN = "There is no run in {folder} yet: dprime audit --epsilon 4 --max-records 100 makes one."
OF_MODELS = ("that of shadow models alone", "one with a result")


# resume -------------------------------------------------------------------------------------------


@takes(*options.BACKENDS, options.ALLOW_CODE, options.FAIL_ON, options.JSON)
def resume(run: Annotated[Path, argument("RUN", "File of the run.")], **given: str) -> None:
    """Continue an interrupted run; finished blocks are kept."""
    command.check_fail_on(given)
    command.check_torch("an audit")
    with Run.open_to_go_on(run) as opened:
        kind, request, state = opened.kind, opened.request, opened.state()
        allowed = "allow_code" in given
        if kind != "audit":  # it refuses objects first, whose descriptions may look like code
            check_code(opened, allowed=allowed)
    done = f"{state.done} of {state.blocks} blocks are done"
    todo = "nothing is left to play" if state.complete else "going on"
    command.starting(f"{run}: {done}, {todo}", given)
    where = command.backend_of(given, "auto" if request is None else request["device"])
    if kind == "audit":
        from dprime.audit.audits import resume as go_on  # noqa: PLC0415  it needs PyTorch
        from dprime.cli.audits import finish_audit  # noqa: PLC0415

        finish_audit(run, lambda: go_on(run, backend=where, allow_code=allowed), given)
        return
    if request is None:
        raise _without_names(run, kind)
    from dprime.cli.pools import finish_frontier, finish_inference  # noqa: PLC0415
    from dprime.membership.requests import FrontierRequest, InferenceRequest  # noqa: PLC0415

    if kind == "inference":
        asked = InferenceRequest.from_dict(request)
        command.exit_on([finish_inference(asked, run, where, given).verdict], given)
    else:
        finish_frontier(FrontierRequest.from_dict(request), run, where, given)


def _without_names(run: Path, kind: str) -> validate.InputError:
    """The error for a run that was begun in Python with objects."""
    if kind == "models":
        remedy = "resume the inference that has them as its --shadow-file"
        return validate.invalid_input("run", *OF_MODELS, remedy)
    remedy = (
        "call the same function again with the same file, or "
        f"dprime {'infer' if kind == 'inference' else kind} with the options that describe it and "
        f"--run {run}"
    )
    shown = "one that was begun in Python, with objects that have no name"
    return validate.invalid_input("run", shown, "described by names", remedy)


def show_kept(path: Path, given: Mapping[str, str]) -> bool:
    """Print the tables of what an inference or a frontier has kept; an audit has a page instead."""
    with Run.open(path, verify=False) as run:
        kind = run.kind
    if kind == "audit":
        return False
    for name in (each for each in given if each != "json"):
        wanted = f"left out, as this is no audit but {kind}"
        remedy = "leave it out for tables; for a page, report an audit of the same training"
        raise validate.invalid_value(name, given[name], wanted, remedy)
    with Run.open(path) as run:
        result = run.result
    if kind == "models":
        remedy = "report the inference that they were trained for"
        raise validate.invalid_input("run", *OF_MODELS, remedy)
    if result is None:
        remedy = f"dprime resume {path.name}"
        raise validate.invalid_input("run", "not concluded yet", "concluded", remedy)
    command.show(result, given, *_tables(kind, result))
    return True


def _tables(kind: str, result: Mapping[str, Any]) -> list[Table | str]:
    from dprime.cli.pools import frontier_table, inference_tables  # noqa: PLC0415

    if kind == "frontier":
        return [frontier_table(result), result["sentence"]]
    if "inferences" in result:
        return inference_tables(result)
    wanted, remedy = "of this version of dprime", "infer again"
    raise validate.invalid_input("run", "of an earlier one", wanted, remedy)


# runs ---------------------------------------------------------------------------------------------


@takes(options.WATCH, options.JSON)
def runs(
    folder: Annotated[Path, argument("FOLDER", "Folder of the runs.")] = command.HERE, **given: str
) -> None:
    """List the runs in a folder, and in its folder runs/, with their progress."""
    if "watch" in given and "json" not in given:
        with suppress(KeyboardInterrupt), Live(_shown(folder), refresh_per_second=4) as live:
            while True:
                time.sleep(INTERVAL)
                live.update(_shown(folder, workers=True))
        return
    found, others = list_runs(folder)
    listed = [{**vars(each), "changed": each.changed.isoformat()} for each in found]
    command.show({"runs": listed, "not_runs": others}, given, _shown(folder))


def _shown(folder: Path, *, workers: bool = False) -> Group:
    """The runs, who works on those that are under way, and what is none."""
    found, others = list_runs(folder)
    where = "this folder" if folder == command.HERE else folder
    parts: list[RenderableType] = [_table(where, found) if found else NO_RUN.format(folder=where)]
    if workers:
        parts += [_at_work(folder / each.name) for each in found if each.state == "running"]
    parts += [Text(printable(f"{name}: {why}"), style="dim") for name, why in others.items()]
    return Group(*parts)


def _table(where: Path | str, found: list[Summary]) -> Table:
    columns = ("Run", "What", "Blocks", "Trials", "State", "Last change")
    table = plain_table(f"Runs in {where}", *columns)
    for column in table.columns[-2:]:
        column.no_wrap = True
    for each in found:
        what, blocks = f"{each.adversary} on {each.data}", f"{each.done}/{each.blocks}"
        changed = f"{each.changed:%m-%d %H:%M %Z}"
        counted = f"{each.total_trials:,}"
        cells = (each.name, what, blocks, counted, each.state, changed)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def _at_work(path: Path) -> Text:
    """Who works on a run, how fast, and what is left, as far as can be told."""
    with Run.open(path, verify=False) as run:
        workers, state, pace, events = run.workers(), run.state(), run.pace(), run.events()
    left = "no block is done yet"
    if state.total_trials and pace:
        seconds = (state.blocks - state.done) * state.total_trials / state.done / pace
        left = f"about {timedelta(seconds=round(seconds))} left"
    lines = [f"{path.name}: {pace:,.3g} trials/s, {left}"]
    lines += [f"  {line}" for line in worker_lines(workers)]
    lines += [f"  {event.outcome}: block {event.block}, {event.message}" for event in events[-3:]]
    return Text(printable("\n".join(lines)), style="dim")
