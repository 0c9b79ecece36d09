"""What the commands print: mechanisms in a line, risks in a table."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from dprime.mechanisms import DPSGD, Mechanism, PoolSampled
from dprime.profile import Answer, round_down, round_up


def describe(
    mechanism: Mechanism, adjacency: str, group_size: int = 1, *, chosen: str | None = None
) -> str:
    """A mechanism in one line; the digits of a chosen parameter are cut on the safe side."""
    values = mechanism.describe()
    if isinstance(mechanism, PoolSampled):
        inner = describe(mechanism.training, adjacency, group_size, chosen=chosen)
        return f"{inner}, trained on a share {_shown(values, 'probability', chosen)} of a pool"
    if isinstance(mechanism, DPSGD):
        text = (
            f"DP-SGD, noise {_shown(values, 'noise_multiplier', chosen)}, "
            f"rate {_shown(values, 'sample_rate', chosen)}, "
            f"{values['steps']:,} {'step' if mechanism.steps == 1 else 'steps'}, "
            f"{mechanism.sampling} sampling"
        )
    else:
        text = ", ".join(f"{value}" for value in values.values())
    records = "one record" if group_size == 1 else f"the {group_size:,} records of one person"
    changed = f"{records} replaced" if adjacency == "replace" else f"with or without {records}"
    return f"{text}; {changed}"


def _shown(values: dict[str, Any], name: str, chosen: str | None) -> str:
    value = float(values[name])
    return safe_digits(name, value) if name == chosen else f"{value:.6g}"


def safe_digits(name: str, value: float) -> str:
    """A parameter as printed may be typed in again: its digits are cut on the safe side."""
    if isinstance(value, int):
        return f"{value:,}"
    return round_up(value, 6) if name == "noise_multiplier" else round_down(value, 6)


def risk_table(title: str, answers: list[Answer]) -> Table:
    """The profile as a table, one plain sentence beside each number."""
    table = Table(title=title, title_justify="left", title_style="bold", pad_edge=False)
    table.add_column("What", no_wrap=False)
    table.add_column("At most" if answers[0].kind == "certified" else "About", justify="right")
    table.add_column("In plain words")
    for answer in answers:
        least = answer.name == "bayes_security" and answer.kind == "certified"
        shown = round_down(answer.value, 4) if least else round_up(answer.value, 4)
        shown = shown.replace("inf", "no limit")
        table.add_row(answer.title, f"≥ {shown}" if least else shown, answer.sentence)
    table.caption = (
        "Certified: no attacker does better, whatever they know of the other records."
        if answers[0].kind == "certified"
        else "An estimate: the truth can be worse."
    )
    table.caption_justify = "left"
    return table
