"""What a step costs with the monitor and without it, in one process, taking turns.

    python benchmarks/monitor.py [--quick] [--out benchmarks/monitor.json]

Two equal trainings of a network with about 100,000 weights on random data of MNIST's shape, one of
them monitored, are run in short blocks by turns; the median over blocks counts. The monitor's own
work is also timed by itself, because it is far below the noise of a step. Lines at the end of an
epoch are computed on request, so their time is given apart.
"""

from __future__ import annotations

import argparse
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
from dprime.profile import Questions

RECORDS, BATCH, EPOCHS = 2_000, 64, 10_000
MODES = ("hooks", "ghost", "functorch", "ew")
BLOCK = 5
"""Steps in a block."""


def main() -> None:
    options = _options()
    warnings.filterwarnings("ignore", "Secure RNG turned off")
    warnings.filterwarnings("ignore", "Full backward hook is firing")
    torch.set_num_threads(1)  # steadier, and the monitor itself uses no more
    blocks = 4 if options.quick else 40
    result: dict[str, Any] = {"machine": _machine(), "settings": _settings(), "modes": {}}
    for mode in MODES:
        found = measure(mode, blocks)
        result["modes"][mode] = found
        print(
            f"{mode:10} step {found['step_ms']:.2f} ms, monitored {found['monitored_ms']:.2f} ms, "
            f"the monitor's own work {found['own_us']:.1f} µs ({100 * found['share']:.2f} % of a "
            f"step), a line {found['line_ms']:.1f} ms",
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
    return {"weights": weights, "records": RECORDS, "batch": BATCH, "block": BLOCK}


def _network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def measure(mode: str, blocks: int) -> dict[str, float]:
    plain, _ = _training(mode, monitored=False)
    watched, monitor = _training(mode, monitored=True)
    assert monitor is not None
    times: dict[str, list[float]] = {"plain": [], "watched": []}
    for number in range(blocks + 2):
        order = [("plain", plain), ("watched", watched)]
        for name, step in order if number % 2 else order[::-1]:
            seconds = _timed(step, BLOCK)
            if number >= 2:  # the first blocks warm up
                times[name].append(seconds)
    step_time, with_monitor = (statistics.median(times[name]) for name in ("plain", "watched"))
    line = _timed(monitor.line)
    own = _own_work(monitor)
    return {
        "step_ms": round(1e3 * step_time, 3),
        "monitored_ms": round(1e3 * with_monitor, 3),
        "own_us": round(1e6 * own, 2),
        "share": round(own / step_time, 5),
        "line_ms": round(1e3 * line, 2),
        "blocks": blocks,
    }


def _training(mode: str, *, monitored: bool) -> tuple[Callable[[], None], Monitor | None]:
    """A function that makes one step, and the monitor that sees it."""
    torch.manual_seed(2)
    data = TensorDataset(torch.randn(RECORDS, 1, 28, 28), torch.randint(0, 10, (RECORDS,)))
    net, engine = _network(), PrivacyEngine()
    made = engine.make_private(
        module=net,
        optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=BATCH),
        criterion=nn.CrossEntropyLoss(),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
    )
    model, optimizer, loader = made[0], made[1], made[-1]
    criterion = made[2] if len(made) == 4 else nn.CrossEntropyLoss()
    monitor = None
    if monitored:
        monitor = Monitor(
            engine, model=model, optimizer=optimizer, data_loader=loader, criterion=criterion,
            epochs=EPOCHS, questions=Questions(delta=1e-5), show=None,
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


def _own_work(monitor: Monitor) -> float:
    """Seconds that the monitor adds to a step, with what it wraps left out."""
    steps, repeats = monitor._steps, 2_000
    training = monitor.training
    records = torch.randn(BATCH, 1, 28, 28)

    def one() -> None:
        training.sampling.pending = [len(records)]  # as if the loader had given a batch
        steps._called(training.module, (records,), {})
        if training.ghost:
            steps.reader.clipped_in_loss(len(records))
            steps.reader.backward_done()
        steps._clip(_nothing)
        steps._add_noise(_nothing)
        steps._pre_step(_made)

    monitor._compare_accountant = _nothing  # type: ignore[method-assign]
    return min(_timed(one, repeats) for _ in range(5))


def _nothing() -> None:
    pass


def _made() -> bool:
    return True


if __name__ == "__main__":
    main()
