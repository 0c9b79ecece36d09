"""The commands: where each is, and its line in `dprime --help`.

A command's module is imported when the command is called: SciPy and PyTorch are slow to load, and
`--help`, `--version` and a check that has no risk to compute need neither.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from dprime._lazy import load

COMMANDS = {
    "risk": (
        "risks",
        "What an attacker can do at most against DP-SGD with these parameters.",
    ),
    "choose": (
        "risks",
        "The noise (or rate, or steps) that keeps an acceptable risk. Leave out what to choose.",
    ),
    "consequences": (
        "consequences",
        "What follows for deletion requests, reconstructions and the loss on a record.",
    ),
    "check": (
        "checks",
        "Look for mistakes that void the guarantee. Exit code 1 for an error or a warning.",
    ),
    "sample": (
        "samples",
        "Draw a training set from a pool of distinct records, each with its own coin.",
    ),
    "frontier": (
        "frontiers",
        "At one bound on precision: fewer records with less noise, or more with more noise.",
    ),
    "infer": (
        "inferences",
        "Attack models trained on part of a pool: who was in it? Without ε the training is not DP.",
    ),
    "plan": (
        "plans",
        "Compute how many trials an audit needs to refute a claim.",
    ),
    "audit": (
        "audits",
        "Attack a training repeatedly to test its claim. Exit code 1 if the claim is refuted.",
    ),
    "resume": (
        "resumes",
        "Go on with a run where it was left; no finished block is played again.",
    ),
    "runs": (
        "listing",
        "List the runs in a folder, or watch them.",
    ),
    "report": (
        "reports",
        "Write what a run found as one HTML page that opens offline, and as a privacy card.",
    ),
    "bound": (
        "audits",
        "Bound ε from below by your attack's scores, each row a training (or a canary) of its own.",
    ),
    "explore": (
        "explore",
        "Explore risks with sliders, on a page that this machine serves. Ctrl-C ends it.",
    ),
    "demo": (
        "demo",
        "A worked example: what a training reveals, and the noise that would reveal less.",
    ),
}
"""Name: (module, help). The function has the name of the command, and the help as its docstring."""


class OnDemand(TyperGroup):
    """Commands that are listed at once, and imported when they are called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the words name, with all its options."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, imported(name) if name in COMMANDS else command, rest


def listed(app: typer.Typer) -> None:
    """Give the app a line for each command."""
    for name, (_, sentence) in COMMANDS.items():
        app.command(name, help=sentence)(_stand_in)


def _stand_in() -> None:
    """What is listed; what is called is `imported`."""


def imported(name: str) -> Any:
    """The command itself."""
    module, _ = COMMANDS[name]
    alone = typer.Typer(add_completion=False)
    alone.command(name)(load(f"cli.{module}", name))
    return typer.main.get_command(alone)
