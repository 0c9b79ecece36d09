"""Figure 5: what the closed form costs, and what accountants do.

Seconds for one Bayes security against membership with a sampling rate of 0.001, over epochs. The
closed form is timed here in turns with dprime's accountant, which is certified, both for one record
replaced. The times of dp_accounting, the PLD accountant of the paper, are those of
`benchmarks/results.json`, at every setting there that has this rate: no measurement of this run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dprime import estimates
from dprime.mechanisms import DPSGD, steps_from_epochs
from papers.cherubin.timing import ratio, seconds
from papers.drawing import Line, LinesFigure
from papers.reproduce import Measured, Scale, run, stated

RATE, NOISE = 0.001, 1.0
EPOCHS = (1, 2, 5, 10, 20, 50, 100)
ORDERS = 100.0
"""Orders of magnitude: at least two of them."""

PEERS = Path(__file__).resolve().parents[2] / "benchmarks" / "results.json"


def measure(scale: Scale) -> Measured:
    """Both times at every number of epochs."""
    turns = scale.pick(2, 20, 100)
    taken = {epochs: timed(steps_from_epochs(epochs, RATE), turns) for epochs in EPOCHS}
    closed_form, accountant = (
        [float(np.median(each[k])) for each in taken.values()] for k in (0, 1)
    )
    closed, slowest = float(np.median(closed_form)), max(accountant)
    peers = peer_rows()
    claims = [
        stated(
            "times the closed form: dp_accounting, as measured for the benchmarks",
            f"orders of magnitude: at least {ORDERS:g}",
            ratio([row["seconds"] for row in peers], [closed] * len(peers)), least=ORDERS,
        ),
        stated(
            "times the closed form: dprime's accountant",
            f"orders of magnitude: at least {ORDERS:g}", ratio(accountant, closed_form),
            least=ORDERS,
            why=f"The certified value takes at most {1000 * slowest:.2g} ms here, which is also "
            "fast enough to choose parameters while one looks on.",
        ),
    ]  # fmt: skip
    figure = LinesFigure(
        "figure5",
        f"The closed form takes about {1e6 * closed:.2g} µs, the certified accountant at most "
        f"{1000 * slowest:.2g} ms.",
        "epochs (p = 0.001)", "seconds",
        (
            Line(f"closed form, σ = {NOISE:g}", _points(taken, 0)),
            Line(f"dprime's accountant, σ = {NOISE:g}", _points(taken, 1)),
            Line("dp_accounting, several σ (benchmarks)", sorted(
                (row["epochs"], row["seconds"]) for row in peers
            ), joined=False),
        ), log_x=True, log_y=True,
    )  # fmt: skip
    numbers = {
        "median seconds": {
            str(epochs): {"closed form": float(np.median(a)), "dprime": float(np.median(b))}
            for epochs, (a, b) in taken.items()
        },
        "dp_accounting": peers,
    }
    return Measured(
        claims, {"rate": RATE, "noise": NOISE, "turns": turns, "adjacency": "replace"}, numbers,
        figure,
    )  # fmt: skip


def timed(steps: int, turns: int) -> tuple[list[float], list[float]]:
    """Seconds of the closed form and of the accountant, in turns; the first is not counted."""
    closed: list[float] = []
    ours: list[float] = []
    for turn in range(turns + 1):
        taken = (
            seconds(lambda: estimates.cherubin(NOISE, RATE, steps).bayes_security()),
            seconds(lambda: DPSGD(NOISE, RATE, steps).curve("replace").bayes_security()),
        )
        if turn:
            closed.append(taken[0])
            ours.append(taken[1])
    return closed, ours


def peer_rows() -> list[dict[str, Any]]:
    """What the benchmarks measured of dp_accounting at this rate."""
    rows = json.loads(PEERS.read_text())["speed"]["rows"]
    return [
        {
            "noise": row["setting"]["noise"],
            "epochs": row["setting"]["steps"] * RATE,
            "seconds": row["dp_accounting"]["seconds"],
        }
        for row in rows
        if row["setting"]["rate"] == RATE
    ]


def _points(
    taken: dict[int, tuple[list[float], list[float]]], which: int
) -> Sequence[tuple[float, ...]]:
    """Medians, with the middle half of the turns."""
    return [
        (epochs, *(float(np.quantile(both[which], share)) for share in (0.5, 0.25, 0.75)))
        for epochs, both in taken.items()
    ]


if __name__ == "__main__":
    run(measure, __file__, __doc__)
