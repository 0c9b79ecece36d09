"""Several audits of one file: played one after the other, and one table of all."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from dprime.audit.audits import Played, play_batch
from dprime.audit.config import AuditConfig
from dprime.audit.verdict import Outcome
from dprime.cli.options import INTERRUPTED, look_here
from dprime.cli.tables import plain_table
from dprime.data.devices import device_title
from dprime.metrics import Reading
from dprime.runs.backends import Backend
from dprime.runs.config import versions


def finish_batch(
    configs: Mapping[str, AuditConfig], folder: Path, backend: Backend, as_json: bool
) -> list[Outcome]:
    """Play them all, print what they found, and return it; finished runs stay whatever happens."""
    look_here()
    start = time.perf_counter()
    errors = Console(stderr=True)
    played: list[Played] = []
    try:
        for each in play_batch(configs, folder, backend=backend):
            played.append(each)
            errors.print(
                f"{len(played)} of {len(configs)}: {each.name}, {each.record.verdict.outcome}, "
                f"{each.seconds:.1f} s",
                style="dim", highlight=False,
            )  # fmt: skip
    except KeyboardInterrupt:
        errors.print(
            f"Stopped after {len(played)} of {len(configs)} audits. Give the same command to go "
            f"on: runs are kept in {folder}.",
            highlight=False,
        )
        raise typer.Exit(INTERRUPTED) from None
    outcomes = [each.record.verdict.outcome for each in played]
    if as_json:
        answer = {
            "device": sorted({device_title(each.device) for each in configs.values()}),
            "versions": versions(),
            "seconds": time.perf_counter() - start,
            "audits": [_json(each) for each in played],
        }
        print(json.dumps(answer, indent=2, allow_nan=False))
        return outcomes
    console = Console()
    console.print(batch_table(played))
    if any(each.record.identifiability is not None for each in played):
        console.print(identified_batch(played))
    for sentence in dict.fromkeys(each.record.label for each in played if each.record.label):
        console.print(f"* {sentence}.", style="dim", highlight=False)
    console.print(f"Kept in {folder}; dprime report tells more of each.", style="dim")
    return outcomes


def _json(played: Played) -> dict[str, Any]:
    shown = {"name": played.name, "run": str(played.path), "seconds": played.seconds}
    return shown | played.record.to_dict()


def batch_table(played: list[Played]) -> Table:
    """A line for each audit: what was reached beside what is allowed, in its own metric.

    What all of them have in common is in the title.
    """
    asked = [f"{each.record.adversary}: {_what(each)}" for each in played]
    apart = len(set(asked)) > 1
    title = "Audits" if apart else f"Audits by {asked[0]}"
    what_apart = ["By, and what"] if apart else []
    columns = ("Audit", *what_apart, "Reached ≥", "Allowed ≤", "Claim", "Trials", "Time")
    table = plain_table(title, *columns)
    for column in table.columns:
        column.no_wrap = column.header not in what_apart
    for each, what in zip(played, asked, strict=True):
        record = each.record
        table.add_row(
            _starred(each), *([what] if apart else []), *record.rows[0].shown,
            record.verdict.outcome, f"{record.blocks.trials:,}", f"{each.seconds:.1f} s",
        )  # fmt: skip
    return table


def identified_batch(played: list[Played]) -> Table:
    """The numbers of Bernau et al. for each audit by their adversary."""
    columns = ("Audit", "Advantage", "Predicted", "δ′, 95 % interval")
    table = plain_table("Differential identifiability", *columns)
    for each in played:
        found = each.record.identifiability
        if found is not None:
            seen, predicted, exceeded = (
                found[name] for name in ("advantage", "predicted", "exceedance")
            )
            table.add_row(
                _starred(each), f"{seen['value']:.3f} ± {seen['standard_error']:.3f}",
                "" if predicted is None else f"{predicted['value']:.3f}",
                f"{exceeded['value']:.4f} ({exceeded['low']:.4f} to {exceeded['high']:.4f})",
            )  # fmt: skip
    return table


def _what(played: Played) -> str:
    criterion = played.record.config.criterion
    return criterion.title if isinstance(criterion, Reading) else "The whole curve"


def _starred(played: Played) -> str:
    """The name, with a mark where the training is not DP."""
    return f"{played.name} *" if played.record.label else played.name
