"""What does a step cost with the monitor and without it, in one process, taking turns?

Claim: docs/monitor.md. Two trainings of the same network on random data of MNIST's shape, one with
the monitor and one that it was taken off again, make four steps in turn, after the first steps in
which the monitor looks at everything. The difference is all that the monitor costs, its hooks
included. Lines at the end of an epoch are computed on request: they are apart.
"""

from __future__ import annotations

import itertools
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from benchmarks.networks import Loop, convolutional, dense, loop
from benchmarks.timing import Found, say, seconds
from dprime.monitor import Monitor

RECORDS, EPOCHS = 5_000, 10_000
FIRST, TURN = 130, 4
"""Steps before anything is timed, and steps that are timed at once."""

NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "784-128-10": lambda: nn.Sequential(nn.Flatten(), dense(784, 128, 10)),
    "convolution": convolutional,
}
CASES = [
    *itertools.product(["784-128-10"], ["hooks", "ghost", "functorch", "ew"], [64, 256]),
    *itertools.product(["convolution"], ["hooks", "ghost"], [64, 256]),
]
"""Network, mode of Opacus and size of a batch."""


def measure(quick: bool) -> Found:
    warnings.filterwarnings("ignore", "Secure RNG turned off")
    warnings.filterwarnings("ignore", "Full backward hook is firing")
    torch.set_num_threads(1)  # steadier, and the monitor itself uses no more
    cases = []
    for network, mode, batch in CASES:
        found = compared(network, mode, batch, 2 if quick else 10)
        cases.append({"network": network, "mode": mode, "batch": batch, **found})
        say(
            f"{network:11} {mode:9} batch {batch:3}: step {found['step_ms']:.2f} ms, the monitor "
            f"adds {found['added_us']:.0f} µs ({100 * found['share']:.2f} %), a line "
            f"{found['line_ms']:.1f} ms"
        )
    return {"records": RECORDS, "cases": cases}


def compared(network: str, mode: str, batch: int, least_s: float) -> dict[str, float]:
    """Seconds of a step with the monitor and without, by steps that take turns."""
    watched, monitor = _training(network, mode, batch)
    alone, other = _training(network, mode, batch)
    other.detach()
    for _ in range(FIRST):
        watched()
        alone()
    turns = [(watched, list[float]()), (alone, list[float]())]
    end, least = time.perf_counter() + least_s, 10
    while time.perf_counter() < end or len(turns[0][1]) < least:
        turns.reverse()
        for step, times in turns:
            step()  # what the other training has put out of the processor's caches
            times.append(seconds(step, TURN))
    found = {step: _typical(times) for step, times in turns}
    added = found[watched] - found[alone]
    return {
        "step_ms": round(1e3 * found[alone], 3),
        "added_us": round(1e6 * added, 1),
        "share": round(added / found[alone], 5),
        "line_ms": round(1e3 * seconds(monitor.line), 2),
        "turns": len(turns[0][1]),
    }


def _typical(times: list[float]) -> float:
    ordered = sorted(times)
    return statistics.mean(ordered[len(ordered) // 10 : len(ordered) // 2])


def _training(network: str, mode: str, batch: int) -> tuple[Callable[[], None], Monitor]:
    """A function that makes one step, and the monitor that sees it."""
    torch.manual_seed(2)
    data = TensorDataset(torch.randn(RECORDS, 1, 28, 28), torch.randint(0, 10, (RECORDS,)))
    torch.manual_seed(1)
    made = loop(
        NETWORKS[network](), data, batch, rate=0.1, noise_multiplier=1.0, max_grad_norm=1.0,
        grad_sample_mode=mode,
    )  # fmt: skip
    monitor = Monitor(**made.parts(), epochs=EPOCHS, conditions={"delta": 1e-5}, show=None)
    return partial(_step, made, made.batches()), monitor


def _step(made: Loop, batches: Iterator[tuple[Tensor, Tensor]]) -> None:
    made.step(*next(batches))
