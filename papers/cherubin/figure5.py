"""Figure 5: what the closed form costs, and what accountants do.

Seconds for one Bayes security against membership, one record replaced, with a sampling rate of
0.001, over epochs. The closed form is timed in turns with dprime's accountant, which is certified,
and, where it is installed, with dp_accounting, a PLD accountant, asked for δ at ε = 0. The first
turn is not counted, and dp_accounting has fewer turns than the others. Which implementation the
paper timed it does not say. Intervals are over the numbers of epochs, of the medians over turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from dprime import estimates
from dprime.mechanisms import DPSGD
from dprime.parameters import steps_from_epochs
from papers.cherubin.timing import ratio, seconds
from papers.drawing import Line, lines_chart
from papers.reproduce import Claim, Measured, Scale, run, stated

RATE, NOISE = 0.001, 1.0
EPOCHS = (1, 2, 5, 10, 20, 50, 100)
ORDERS = 100.0
"""Orders of magnitude: at least two of them."""

CLOSED, OURS, PEER = "closed form", "dprime's accountant", "dp_accounting"
Times = Mapping[int, Mapping[str, Sequence[float]]]
"""Seconds of every turn, by epochs and by what is timed."""


def measure(scale: Scale) -> Measured:
    """All times at every number of epochs."""
    turns, of_peer = scale.pick((2, 1), (20, 2), (100, 5))
    numbers_of_epochs = scale.pick(EPOCHS[:2], EPOCHS, EPOCHS)
    taken = {
        epochs: timed(answers(steps_from_epochs(epochs, RATE)), turns, of_peer)
        for epochs in numbers_of_epochs
    }
    medians = {
        name: [float(np.median(each[name])) for each in taken.values()]
        for name in taken[EPOCHS[0]]
    }  # fmt: skip
    closed, slowest = float(np.median(medians[CLOSED])), max(medians[OURS])
    figure = lines_chart(
        "figure5",
        f"The closed form takes about {1e6 * closed:.2g} µs, the certified accountant at most "
        f"{1000 * slowest:.2g} ms.",
        "epochs (p = 0.001)", "seconds",
        tuple(Line(f"{name}, σ = {NOISE:g}", _points(taken, name)) for name in medians),
        log_x=True, log_y=True,
    )  # fmt: skip
    numbers = {
        "median seconds": {name: dict(zip(map(str, taken), each, strict=True))
                           for name, each in medians.items()},
    }  # fmt: skip
    settings = {
        "rate": RATE, "noise": NOISE, "turns": turns, "turns of dp_accounting": of_peer,
        "adjacency": "replace",
    }  # fmt: skip
    return Measured(_claims(medians), settings, numbers, figure)


def _claims(medians: Mapping[str, Sequence[float]]) -> list[Claim]:
    """The peer's, where it is installed, and ours."""
    reasons = {
        OURS: f"The certified value takes at most {1000 * max(medians[OURS]):.2g} ms here, which "
        "is also fast enough to choose parameters while one looks on.",
    }
    return [
        stated(
            f"times the closed form: {name}", f"orders of magnitude: at least {ORDERS:g}",
            ratio(medians[name], medians[CLOSED]), least=ORDERS, why=reasons.get(name, ""),
        )
        for name in (PEER, OURS) if name in medians
    ]  # fmt: skip


def answers(steps: int) -> dict[str, Callable[[], float]]:
    """Who gives a Bayes security, one record replaced."""
    found: dict[str, Callable[[], float]] = {
        CLOSED: lambda: estimates.cherubin(NOISE, RATE, steps).bayes_security(),
        OURS: lambda: DPSGD(NOISE, RATE, steps).curve("replace").bayes_security(),
    }
    if find_spec(PEER) is not None:
        found[PEER] = lambda: peer_security(steps)
    return found


def peer_security(steps: int) -> float:
    """By dp_accounting: 1 less δ at ε = 0."""
    dp, pld = import_module(PEER), import_module(f"{PEER}.pld")
    accountant = pld.PLDAccountant(dp.NeighboringRelation.REPLACE_ONE)
    step = dp.PoissonSampledDpEvent(RATE, dp.GaussianDpEvent(NOISE))
    accountant.compose(dp.SelfComposedDpEvent(step, steps))
    return 1 - float(accountant.get_delta(0.0))


def timed(
    asked: Mapping[str, Callable[[], float]], turns: int, of_peer: int
) -> dict[str, list[float]]:
    """Seconds of each, in turns; the first turn is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in asked}
    for turn in range(turns + 1):
        for name, answer in asked.items():
            if name == PEER and turn > of_peer:
                continue
            found = seconds(answer)
            if turn:
                taken[name].append(found)
    return taken


def _points(taken: Times, name: str) -> Sequence[tuple[float, ...]]:
    """Medians, with the middle half of the turns."""
    return [
        (epochs, *(float(np.quantile(each[name], share)) for share in (0.5, 0.25, 0.75)))
        for epochs, each in taken.items()
    ]


if __name__ == "__main__":
    run(measure, __file__, __doc__)
