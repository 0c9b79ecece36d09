"""What a step costs with the monitor and without it, in one process, taking turns.

    python benchmarks/monitor.py [--quick] [--out benchmarks/monitor.json]

A network with about 100,000 weights is trained on random data of MNIST's shape, and the monitor's
work is timed where it happens, in every step. What it takes to call its hooks at all, a few
microseconds, is not in it. Lines at the end of an epoch are computed on request: they are apart.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from opacus import PrivacyEngine
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from dprime.monitor import Monitor

RECORDS, EPOCHS = 5_000, 10_000
BATCHES = (64, 256)
MODES = ("hooks", "ghost", "functorch", "ew")


def main() -> None:
    options = _options()
    warnings.filterwarnings("ignore", "Secure RNG turned off")
    warnings.filterwarnings("ignore", "Full backward hook is firing")
    torch.set_num_threads(1)  # steadier, and the monitor itself uses no more
    rounds = 50 if options.quick else 200
    result: dict[str, Any] = {"machine": _machine(), "settings": _settings(), "modes": []}
    for mode, batch in itertools.product(MODES, BATCHES):
        found = measure(mode, batch, rounds)
        result["modes"].append({"mode": mode, "batch": batch, **found})
        print(
            f"{mode:10} batch {batch:4}: step {found['step_ms']:.2f} ms, the monitor's own work "
            f"{found['own_us']:.0f} µs ({100 * found['share']:.2f} % of a step), a line "
            f"{found['line_ms']:.1f} ms",
            flush=True,
        )
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="few blocks")
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    return parser.parse_args()


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "opacus": version("opacus"),
        "threads": torch.get_num_threads(),
    }


def _settings() -> dict[str, int]:
    weights = sum(p.numel() for p in _network().parameters())
    return {"weights": weights, "records": RECORDS}


def _network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def measure(mode: str, batch: int, rounds: int) -> dict[str, float]:
    step, monitor = _training(mode, batch)
    for _ in range(20):
        step()
    alone, own = _in_place(step, monitor, rounds)
    line = _timed(monitor.line)
    return {
        "step_ms": round(1e3 * alone, 3),
        "own_us": round(1e6 * own, 1),
        "share": round(own / alone, 5),
        "line_ms": round(1e3 * line, 2),
        "rounds": rounds,
    }


def _in_place(step: Callable[[], None], monitor: Monitor, rounds: int) -> tuple[float, float]:
    """Seconds of a step without the monitor's work, and of that work, timed within the steps.

    Timed by itself, again and again, the work would find everything at hand and take a third.
    """
    spent = [0.0]

    def clocked(method: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            start = time.perf_counter()
            found = method(*arguments, **named)
            spent[0] += time.perf_counter() - start
            return found

        return called

    reader, steps = monitor._reader, monitor._steps
    for name in READ:
        if hasattr(reader, name):
            setattr(reader, name, clocked(getattr(reader, name)))
    steps._made = clocked(steps._made)
    alone, own = [], []
    for _ in range(rounds):
        spent[0], start = 0.0, time.perf_counter()
        step()
        alone.append(time.perf_counter() - start - spent[0])
        own.append(spent[0])
    return _typical(alone), _typical(own)


READ = (
    "entered", "called", "clipped_in_loss", "backward_done", "cleared", "clipped", "summed",
    "noised", "settled",
)  # fmt: skip
"""What the monitor does in a step, besides booking it."""


def _typical(times: list[float]) -> float:
    ordered = sorted(times)
    return statistics.mean(ordered[len(ordered) // 10 : len(ordered) // 2])


def _training(mode: str, batch: int) -> tuple[Callable[[], None], Monitor]:
    """A function that makes one step, and the monitor that sees it."""
    torch.manual_seed(2)
    data = TensorDataset(torch.randn(RECORDS, 1, 28, 28), torch.randint(0, 10, (RECORDS,)))
    net, engine = _network(), PrivacyEngine()
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


if __name__ == "__main__":
    main()
