"""The lines and the report of a monitor, in plain text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from dprime import text
from dprime.mechanisms import Composition, Mechanism
from dprime.metrics import MetricValue
from dprime.monitor.ledger import Accumulated, NoGuarantee
from dprime.monitor.tails import NoiseTails
from dprime.text import round_up

LISTED = 4
"""Parts of a training that are described one by one."""


def place(epoch: int, steps: int, planned_epochs: float | None, planned: int | None) -> str:
    """Where the training is.

    >>> place(3, 300, 10.0, 1000)
    'epoch 3 of 10, step 300 of 1,000'
    >>> place(3, 49, 2.0, 46)
    'epoch 3, past the planned 2, step 49, past the planned 46'
    """
    return f"epoch {_reached(epoch, planned_epochs)}, step {_reached(steps, planned)}"


def _reached(number: int, planned: float | None) -> str:
    """A number, and that of the plan to at most one decimal.

    >>> _reached(1, 2.522), _reached(3, 2.5), _reached(4, 2.5)
    ('1 of 2.5', '3 of 2.5', '4, past the planned 2.5')
    """
    if planned is None:
        return f"{number:,}"
    end = f"{planned:,.1f}".removesuffix(".0")
    past = number > math.ceil(planned - 1e-9)
    return f"{number:,}, past the planned {end}" if past else f"{number:,} of {end}"


def line(
    where: str, spent: MetricValue, forecast: MetricValue | None, mechanism: Mechanism | None
) -> str:
    """The line of an epoch, one sentence."""
    if isinstance(mechanism, NoGuarantee):
        return f"{where}: not private, {mechanism.reason}."
    end = "" if forecast is None else f", {forecast.bounded()} at the planned end"
    return f"{where}: {spent.title} {spent.bounded()} now{end}."


def report(
    where: str,
    mechanism: Mechanism | None,
    adjacency: str,
    spent: Sequence[MetricValue],
    forecast: Sequence[MetricValue] | None,
    warnings: Iterable[str],
    findings: Iterable[str],
    *,
    ideal_noise: bool = False,
) -> str:
    """The report: table, warnings, and findings of the watchers."""
    lines = [f"Privacy of this training ({where})", *described(mechanism, adjacency), ""]
    lines += [*_table(spent, forecast), *rests_on(mechanism, adjacency, ideal_noise)]
    listed = list(warnings)
    if listed:
        lines += ["", "Warnings:", *(f"- {sentence}" for sentence in listed)]
    for found in findings:
        lines += ["", found.rstrip()]
    return "\n".join(lines)


def rests_on(mechanism: Mechanism | None, adjacency: str, ideal_noise: bool) -> list[str]:
    """What is certified, and notes on the steps that were seen or not, and on the noise."""
    if isinstance(mechanism, NoGuarantee):
        return [f"Not private: {mechanism.reason}."]
    if mechanism is None:
        return [text.certified(adjacency)]
    tails = (part for part in _parts(mechanism) if isinstance(part, NoiseTails))
    untold = text.IDEAL_NOISE if ideal_noise else text.SECURE_NOISE
    noise = [_plain(part, adjacency) for part in tails] or [untold]
    return [text.certified(adjacency), text.SEEN, text.UNSEEN, *noise]


def _plain(tails: NoiseTails, adjacency: str) -> str:
    return text.plain_noise(tails.ends_at, round_up(tails.probability(adjacency)))


def _parts(mechanism: Mechanism) -> tuple[Mechanism, ...]:
    return mechanism.mechanisms if isinstance(mechanism, Composition) else (mechanism,)


def described(mechanism: Mechanism | None, adjacency: str) -> list[str]:
    """Each part of what was run, in a line."""
    if mechanism is None:
        return ["Nothing was spent yet."]
    parts = [part for part in _parts(mechanism) if not isinstance(part, NoiseTails)]
    more = [f"... and {len(parts) - LISTED:,} more"] if len(parts) > LISTED else []
    return [*(_part(part, adjacency) for part in parts[:LISTED]), *more]


def _part(mechanism: Mechanism, adjacency: str) -> str:
    if isinstance(mechanism, NoGuarantee):
        return f"{mechanism.steps:,} steps, not all of them covered by a guarantee"
    if isinstance(mechanism, Accumulated):
        inner = text.describe(mechanism.training.to_dict(), adjacency)
        return f"{inner}; {mechanism.batches} batches added up in each step"
    return text.describe(mechanism.to_dict(), adjacency)


def _table(spent: Sequence[MetricValue], forecast: Sequence[MetricValue] | None) -> list[str]:
    columns = [
        ["", *(answer.title for answer in spent)],
        ["spent now", *(answer.shown() for answer in spent)],
    ]
    if forecast is not None:
        columns.append(["at the planned end", *(answer.shown() for answer in forecast)])
    return text.aligned([*zip(*columns, strict=True)])
