"""The commands: where each is, its line in `dprime --help`, and examples.

A command's module is imported when the command is called: SciPy and PyTorch are slow to load, and
`--help`, `--version` and a check that has no risk to compute need neither.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from dprime._lazy import load

UsageError: Any = typer.BadParameter.__bases__[0]
"""Unknown options and the like; Typer does not export the class itself."""


class Entry(NamedTuple):
    """A command: its module, what it does, examples, and the page that explains it."""

    module: str
    help: str
    examples: tuple[str, ...]
    page: str


COMMANDS = {
    "risk": Entry(
        "risks",
        "Bound what an attacker can achieve against a training, or under a stated guarantee.",
        (
            "--noise-multiplier 1.1 --batch-size 256 --dataset-size 60000 --epochs 60",
            "--epsilon 3 --delta 1e-5",
            "training.pt",
        ),
        "meaning.md",
    ),
    "choose": Entry(
        "risks",
        "Find the noise, sampling rate or number of steps that keeps a risk below a target.",
        (
            "--epsilon 3 --batch-size 256 --dataset-size 60000 --epochs 60",
            "--advantage 0.1 --sample-rate 0.01 --steps 2000",
        ),
        "choosing.md",
    ),
    "consequences": Entry(
        "risks",
        "Bound what a training on a part of a pool allows in deletion, reconstruction and loss.",
        (
            "--noise-multiplier 1 --sample-rate 0.01 --steps 2000 --sampling-probability 0.001",
            "--noise-multiplier 2 --sample-rate 0.01 --epochs 20 --sampling-probability 0.1",
        ),
        "consequences.md",
    ),
    "check": Entry(
        "checks",
        "Find mistakes in Opacus scripts, notebooks or checkpoints. Exit code 1 if there is one.",
        ("train.py", "training.pt --dataset-size 60000"),
        "check.md",
    ),
    "sample": Entry(
        "samples",
        "Draw a secret training set from a pool by independent coin flips.",
        (
            "pool.csv --sampling-probability 0.2 --out train.csv",
            "pool.csv --probability-column share --out train.csv --batch-size 64",
        ),
        "sampling.md",
    ),
    "frontier": Entry(
        "pools",
        "Compare less data with more noise at an equal bound on attack precision.",
        ("--precision 0.731 --plan-only", "--precision 0.731 --epochs 5 --charts charts"),
        "frontier.md",
    ),
    "infer": Entry(
        "pools",
        "Compare membership inference attacks (LiRA, RMIA, …) with the certified bound.",
        ("--pool-size 300 --epsilon 3 --epochs 5", "--pool-size 300 --attacks lira,rmia"),
        "membership.md",
    ),
    "plan": Entry(
        "audits",
        "Compute how many trials an audit needs, or what --trials can show.",
        ("--epsilon 4", "--epsilon 4 --trials 1000"),
        "planning.md",
    ),
    "audit": Entry(
        "audits",
        "Attack a training repeatedly to test its claim. Exit code 1 if it is refuted.",
        ("--epsilon 4 --max-records 100", "audits.toml --fail-on inconclusive"),
        "auditing.md",
    ),
    "resume": Entry(
        "runs",
        "Continue an interrupted run; finished blocks are kept.",
        ("runs/first.run", "runs/first.run --backend processes --workers 4"),
        "auditing.md",
    ),
    "runs": Entry(
        "runs",
        "List the runs in a folder, and in its folder runs/, with their progress.",
        ("", "--watch"),
        "auditing.md",
    ),
    "report": Entry(
        "reports",
        "Write an audit's report and privacy card. Exit code 1 if claim or limit is not kept.",
        ("runs/first.run", "runs/first.run --out report.html --card card.md --pdf report.pdf"),
        "report.md",
    ),
    "bound": Entry(
        "audits",
        "Compute a lower bound on ε from your own attack scores.",
        ("scores.csv", "scores.csv --method gaussian --delta 1e-6"),
        "lower-bounds.md",
    ),
    "explore": Entry(
        "explore",
        "Serve the interactive explorer on this machine, until Ctrl-C.",
        ("", "runs --port 8765 --no-browser"),
        "explorer.md",
    ),
    "demo": Entry(
        "demo",
        "Run a worked example, which ends with a real audit.",
        ("", "| less"),
        "index.md",
    ),
}
"""By name; the function has the name of the command, and the help as its docstring."""


def without_types(parameters: list[Any]) -> list[Any]:
    """Parameters whose help shows no type of Python: flags have none, arguments have a name."""
    for each in parameters:
        if each.param_type_name == "argument":
            each.display_type = lambda _: ""
        elif each.is_flag:
            each.metavar = ""
    return parameters


class OnDemand(TyperGroup):
    """Commands that are listed at once, and imported when they are called."""

    def get_params(self, ctx: Any) -> list[Any]:
        return without_types(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the words name, with all its options."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, imported(name) if name in COMMANDS else command, rest


def listed(app: typer.Typer) -> None:
    """Give the app a line for each command."""
    for name, entry in COMMANDS.items():
        app.command(name, help=entry.help)(_stand_in)


def _stand_in() -> None:
    """What is listed; what is called is `imported`."""


def imported(name: str) -> Any:
    """The command itself."""
    from dprime.cli.command import Command  # noqa: PLC0415  a list of commands needs no more

    alone, entry = typer.Typer(add_completion=False, rich_markup_mode="rich"), COMMANDS[name]
    function = load(f"cli.{entry.module}", name)
    examples = [f"dprime {name} {each}".rstrip() for each in entry.examples]
    alone.command(name, cls=Command, epilog="\n\n".join(["Examples:", *examples]))(function)
    return typer.main.get_command(alone)
