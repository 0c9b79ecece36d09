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
from typing import Any

import torch
from opacus import PrivacyEngine
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.networks import convolutional, dense
from benchmarks.timing import say
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


def measure(quick: bool) -> dict[str, Any]:
    warnings.filterwarnings("ignore", "Secure RNG turned off")
    warnings.filterwarnings("ignore", "Full backward hook is firing")
    torch.set_num_threads(1)  # steadier, and the monitor itself uses no more
    result: dict[str, Any] = {"records": RECORDS, "cases": []}
    for network, mode, batch in CASES:
        found = compared(network, mode, batch, 2 if quick else 10)
        result["cases"].append({"network": network, "mode": mode, "batch": batch, **found})
        say(
            f"{network:11} {mode:9} batch {batch:3}: step {found['step_ms']:.2f} ms, the monitor "
            f"adds {found['added_us']:.0f} µs ({100 * found['share']:.2f} %), a line "
            f"{found['line_ms']:.1f} ms"
        )
    return result


def compared(network: str, mode: str, batch: int, seconds: float) -> dict[str, float]:
    """Seconds of a step with the monitor and without, by steps that take turns."""
    watched, monitor = _training(network, mode, batch)
    alone, other = _training(network, mode, batch)
    other.detach()
    for _ in range(FIRST):
        watched()
        alone()
    turns = [(watched, list[float]()), (alone, list[float]())]
    end, least = time.perf_counter() + seconds, 10
    while time.perf_counter() < end or len(turns[0][1]) < least:
        turns.reverse()
        for step, times in turns:
            step()  # what the other training has put out of the processor's caches
            times.append(_timed(step, TURN))
    found = {step: _typical(times) for step, times in turns}
    added = found[watched] - found[alone]
    return {
        "step_ms": round(1e3 * found[alone], 3),
        "added_us": round(1e6 * added, 1),
        "share": round(added / found[alone], 5),
        "line_ms": round(1e3 * _timed(monitor.line), 2),
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
    net, engine = NETWORKS[network](), PrivacyEngine()
    made = engine.make_private(
        module=net,
        optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=batch),
        criterion=nn.CrossEntropyLoss(),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
    )
    model, optimizer, loader = made[0], made[1], made[-1]
    criterion = made[2] if len(made) == 4 else nn.CrossEntropyLoss()
    monitor = Monitor(
        engine, model=model, optimizer=optimizer, data_loader=loader, criterion=criterion,
        epochs=EPOCHS, conditions={"delta": 1e-5}, show=None,
    )  # fmt: skip
    batches = _forever(loader)

    def step() -> None:
        records, labels = next(batches)
        optimizer.zero_grad()
        criterion(model(records), labels).backward()
        optimizer.step()

    return step, monitor


def _forever(loader: Any) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        yield from loader


def _timed(action: Callable[[], object], repeats: int = 1) -> float:
    """Seconds for one of so many repetitions."""
    start = time.perf_counter()
    for _ in range(repeats):
        action()
    return (time.perf_counter() - start) / repeats
