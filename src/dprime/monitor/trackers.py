"""The monitor's numbers in a tracker of experiments: TensorBoard, MLflow, Weights & Biases.

A tracker is a function that the monitor calls with itself at the end of each epoch. It logs the
numbers over the steps, and the report as text. An ε without a limit is infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dprime.metrics import MetricValue
from dprime.registry import METRICS

if TYPE_CHECKING:
    from dprime.monitor.monitor import Monitor

Tracker = Callable[["Monitor"], object]


def single_precision(answer: MetricValue) -> float:
    """The next float32 on the safe side: TensorBoard keeps no more digits."""
    value = np.float32(answer.value)
    rises = METRICS[answer.name].rises
    if float(value) < answer.value if rises else float(value) > answer.value:
        value = np.nextafter(value, np.float32(math.inf if rises else -math.inf))
    return float(value)


def to_tensorboard(writer: Any) -> Tracker:
    """Scalars and the report for a `torch.utils.tensorboard.SummaryWriter`."""

    def track(monitor: Monitor) -> None:
        for name, value in monitor.numbers().items():
            writer.add_scalar(name, value, monitor.ledger.steps)
        writer.add_text("privacy_report", f"```\n{monitor}\n```", monitor.ledger.steps)
        writer.flush()

    return track


def to_mlflow(run_id: str | None = None) -> Tracker:
    """Metrics, and the artifact `privacy_report.txt`, of the active run or another one."""
    import mlflow  # noqa: PLC0415  it is no dependency

    def track(monitor: Monitor) -> None:
        mlflow.log_metrics(monitor.numbers(), step=monitor.ledger.steps, run_id=run_id)
        mlflow.log_text(str(monitor), "privacy_report.txt", run_id=run_id)

    return track


def to_wandb(run: Any = None) -> Tracker:
    """Metrics over `privacy_step`, and the report in the summary, of the active run or another one.

    The run's own steps count whatever is logged, and may not go back.
    """
    import wandb  # noqa: PLC0415  it is no dependency

    def track(monitor: Monitor) -> None:
        active = wandb if run is None else run
        active.define_metric("privacy_*", step_metric="privacy_step")
        active.log({**monitor.numbers(), "privacy_step": monitor.ledger.steps})
        active.summary["privacy_report"] = str(monitor)

    return track
