"""The monitor's numbers in a tracker of experiments: TensorBoard, MLflow, Weights & Biases.

    Monitor ──► Tracker: `numbers()` as curves over the steps, `str(monitor)` as the latest text

A tracker is a function of the monitor, which calls it at the end of each epoch. ε without a limit
is logged as infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dprime import validate
from dprime.metrics import MetricValue
from dprime.registry import METRICS

if TYPE_CHECKING:
    from dprime.monitor.monitor import Monitor

Tracker = Callable[["Monitor"], object]


def single_precision(answer: MetricValue) -> float:
    """The next float32 on the safe side: trackers keep no more digits, and round to the nearest.

    >>> answer = MetricValue("epsilon", "ε", 0.1 + 1e-9, "certified", {"delta": 1e-5}, "")
    >>> answer.value < single_precision(answer) < answer.value + 1e-8
    True
    """
    value = np.float32(answer.value)
    rises = METRICS[answer.name].rises
    if float(value) < answer.value if rises else float(value) > answer.value:
        value = np.nextafter(value, np.float32(math.inf if rises else -math.inf))
    return float(value)


def to_tensorboard(writer: Any) -> Tracker:
    """Scalars and the report for TensorBoard.

    Args:
        writer: a `torch.utils.tensorboard.SummaryWriter`.

    """

    def track(monitor: Monitor) -> None:
        for name, value in monitor.numbers().items():
            writer.add_scalar(name, value, monitor.ledger.steps)
        writer.add_text("privacy_report", f"```\n{monitor}\n```", monitor.ledger.steps)
        writer.flush()

    return track


def to_mlflow(run_id: str | None = None) -> Tracker:
    """Metrics, and the report as the artifact `privacy_report.txt`, for MLflow.

    Args:
        run_id: of the run; the active one if not given.

    """
    import mlflow  # noqa: PLC0415  it is no dependency

    def track(monitor: Monitor) -> None:
        mlflow.log_metrics(monitor.numbers(), step=monitor.ledger.steps, run_id=run_id)
        mlflow.log_text(str(monitor), "privacy_report.txt", run_id=run_id)

    return track


def to_wandb(run: Any = None) -> Tracker:
    """Metrics over `privacy_step`, and the report in the summary, for Weights & Biases.

    Steps of the run itself count whatever else is logged, and may not go back.

    Args:
        run: from `wandb.init`; the one that is active at the end of the first epoch if not given.

    """
    import wandb  # noqa: PLC0415  it is no dependency

    def track(monitor: Monitor) -> None:
        active = run or wandb.run
        if active is None:
            remedy = "call wandb.init before the training, or give to_wandb(run)"
            raise validate.invalid_input("wandb.run", "missing", "begun", remedy)
        active.define_metric("privacy_*", step_metric="privacy_step")
        active.log({**monitor.numbers(), "privacy_step": monitor.ledger.steps})
        active.summary["privacy_report"] = str(monitor)

    return track
