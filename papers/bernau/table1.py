"""Table 1: how the work grows with records and steps.

The paper states that dataset sensitivity takes time in proportion to n², the belief to n k (n
records, k steps), and the advantage of one training to neither. Here random records are compared
and trained on, n and k are doubled several times, and a line is fitted to the logarithms of the
times that the processor spent. Intervals are of repeated fits. Beside the times stands the number
of pairs compared and of gradients made, which no clock can disturb.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from dprime.audit.identifiability import advantage
from dprime.data import Dataset
from dprime.data.dissimilarity import dataset_sensitivity
from dprime.show.chart import Chart
from dprime.train import (
    EngineContext,
    LikelihoodRatio,
    Observer,
    Step,
    TrainingConfig,
    TrainingData,
    train,
)
from dprime.train.models import model_named
from papers.drawing import Line, lines_chart
from papers.reproduce import Claim, Estimate, Measured, Scale, mean, printed, run, stated

WIDTH = 104
MODEL = "dense-6-6"
"""Of the paper's training on Adult."""

FLAT = 0.2
"""An exponent this close to 0 is taken for none."""


def measure(scale: Scale) -> Measured:
    """Times and counts over n and k, with a slope for each."""
    compared = scale.pick((40, 80), (1000, 2000, 4000), (1000, 2000, 4000))
    records = scale.pick((40, 80), (8000, 16000, 32000), (8000, 16000, 32000))
    steps = scale.pick((4, 8), (50, 100, 200), (50, 100, 200))
    fits = scale.pick(2, 5, 15)
    few, short = min(records), min(steps)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        times = {
            "DS in n": timed(lambda n: lambda: ranked(n), compared, fits),
            "β in n": timed(lambda n: lambda: believed(n, short), records, fits),
            "β in k": timed(lambda k: lambda: believed(few, k), steps, fits),
            "Adv in n": timed(lambda n: decided(n, short), records, fits),
            "Adv in k": timed(lambda k: decided(few, k), steps, fits),
        }
    finally:
        torch.set_num_threads(threads)
    grids = {name: records if name.endswith("n") else steps for name in times}
    grids["DS in n"] = compared
    slopes = {name: fitted(grids[name], each) for name, each in times.items()}
    return Measured(
        timing(slopes),
        {
            "compared": list(compared),
            "records": list(records),
            "steps": list(steps),
            "fits": fits,
            "threads": 1,
        },
        {"seconds": {name: each.tolist() for name, each in times.items()}},
        drawn(grids, times, slopes),
    )


def timing(slopes: dict[str, Estimate]) -> list[Claim]:
    """Exponents of the times."""
    none = "constant: no growth"
    return [
        printed("DS: exponent of n in the time", 2, slopes["DS in n"]),
        printed("β: exponent of n in the time", 1, slopes["β in n"]),
        printed("β: exponent of k in the time", 1, slopes["β in k"]),
        stated("Adv: exponent of n in the time", none, slopes["Adv in n"], least=-FLAT, most=FLAT),
        stated("Adv: exponent of k in the time", none, slopes["Adv in k"], least=-FLAT, most=FLAT),
    ]


def random_records(count: int) -> Dataset:
    """As wide as those of Adult."""
    rng = np.random.default_rng(count)
    return Dataset.of(rng.random((count, WIDTH), np.float32), np.arange(count) % 2, classes=2)


def ranked(count: int) -> int:
    """Dataset sensitivity of so many records; the number of pairs that were compared."""
    seen = [0]

    def note(done: int, _: int) -> None:
        seen[0] = done

    records = random_records(count).records
    dataset_sensitivity(records, measure="manhattan", keep=1, progress=note)
    return seen[0]


class Gradients(Observer):
    """Counts the records whose gradients a step makes."""

    def begin(self, run: EngineContext) -> None:
        """None yet."""
        self.count = 0

    def see(self, step: Step) -> None:
        """Those of a step."""
        self.count += int(step.mask.sum())


def believed(count: int, steps: int) -> int:
    """A training with the adversary's belief; the number of gradients that were made."""
    gradients, _ = trained(count, steps)
    return gradients.count


def trained(count: int, steps: int) -> tuple[Gradients, LikelihoodRatio]:
    """One training on D."""
    data = random_records(count)
    recipe = TrainingConfig(steps=steps, learning_rate=0.005, clip_norm=3.0, noise_multiplier=8.0)
    gradients, ratio = Gradients(), LikelihoodRatio()
    train(
        model_named(MODEL, data), TrainingData.remove(data, 0), recipe, trials=2, seed=1,
        observers=[ratio, gradients],
    )  # fmt: skip
    return gradients, ratio


def decided(count: int, steps: int) -> Callable[[], object]:
    """The last line of the paper's algorithm 1, after a training of that size."""
    _, ratio = trained(count, steps)
    inside = np.array([True, False])

    def decide() -> None:
        for _ in range(1000):  # one alone is too short for a clock
            advantage(ratio.logs, inside)

    return decide


def timed(
    job: Callable[[int], Callable[[], object]], sizes: Sequence[int], fits: int
) -> np.ndarray[Any, Any]:
    """Seconds of the processor [fit, size]."""
    jobs = [job(size) for size in sizes]
    jobs[0]()  # once before the clock: libraries are loaded
    return np.array([[_seconds(each) for each in jobs] for _ in range(fits)])


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def exponent(sizes: Sequence[int], amounts: Sequence[float] | np.ndarray[Any, Any]) -> float:
    """Of the power that fits best."""
    return float(np.polyfit(np.log(sizes), np.log(amounts), 1)[0])


def fitted(sizes: Sequence[int], seconds: np.ndarray[Any, Any]) -> Estimate:
    """The mean slope of repeated fits."""
    return mean([exponent(sizes, each) for each in seconds])


def drawn(
    grids: dict[str, Sequence[int]],
    times: dict[str, np.ndarray[Any, Any]],
    slopes: dict[str, Estimate],
) -> Chart:
    """Times relative to the smallest size."""
    lines = []
    for name, seconds in times.items():
        relative = np.median(seconds / seconds[:, :1], axis=0)
        sizes = np.array(grids[name]) / grids[name][0]
        lines.append(Line(name, tuple(zip(sizes, relative, strict=True))))
    return lines_chart(
        "table1",
        "Exponents of the time: "
        + ", ".join(f"{name} {each.value:z.2f}" for name, each in slopes.items())
        + ".",
        "n or k, relative to the smallest",
        "time, relative to the smallest",
        tuple(lines),
        log_x=True,
        log_y=True,
    )


if __name__ == "__main__":
    run(measure, __file__, __doc__)
