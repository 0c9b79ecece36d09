"""Table 1: how the work grows with records and steps, by lines fitted to logarithms of times."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from dprime.audit.identifiability import advantage
from dprime.data import Dataset
from dprime.data.devices import one_thread
from dprime.data.dissimilarity import dataset_sensitivity
from dprime.train import LikelihoodRatio, TrainingConfig, TrainingData, train
from dprime.train.models import model_named
from papers.adversary import CLIP_NORM, LEARNING_RATE
from papers.drawing import line, lines_chart
from papers.entry import Measured, Scale
from papers.reproduce import Floats, mean, printed, stated

WIDTH, MODEL = 104, "dense-6-6"
"""Of the paper's training on Adult."""

FLAT = 0.2
"""An exponent this close to 0 is taken for none."""

Work = Callable[[], object]


def table1(scale: Scale) -> Measured:
    """Times over n and k, with a slope for each."""
    compared = scale.pick((40, 80), (1000, 2000, 4000), (1000, 2000, 4000))
    records = scale.pick((40, 80), (8000, 16000, 32000), (8000, 16000, 32000))
    steps = scale.pick((4, 8), (50, 100, 200), (50, 100, 200))
    fits = scale.pick(2, 5, 15)
    few, short = min(records), min(steps)
    jobs: dict[str, tuple[Sequence[int], Callable[[int], Work]]] = {
        "DS in n": (compared, lambda n: lambda: ranked(n)),
        "β in n": (records, lambda n: lambda: trained(n, short)),
        "β in k": (steps, lambda k: lambda: trained(few, k)),
        "Adv in n": (records, lambda n: decided(n, short)),
        "Adv in k": (steps, lambda k: decided(few, k)),
    }
    with one_thread():
        times = {name: timed(job, sizes, fits) for name, (sizes, job) in jobs.items()}
    slopes, lines = {}, []
    for name, (sizes, _) in jobs.items():
        fitted = [float(np.polyfit(np.log(sizes), np.log(each), 1)[0]) for each in times[name]]
        slopes[name] = mean(fitted)
        relative = np.median(times[name] / times[name][:, :1], axis=0)
        lines.append(line(name, np.array(sizes) / sizes[0], relative))
    told = ", ".join(f"{name} {each.value:z.2f}" for name, each in slopes.items())
    figure = lines_chart(
        f"Exponents of the time: {told}.", "n or k, relative to the smallest",
        "time, relative to the smallest", lines, "xy",
    )  # fmt: skip
    claims = [
        *(
            printed(f"{what}: exponent of {n} in the time", exponent, slopes[f"{what} in {n}"])
            for what, n, exponent in (("DS", "n", 2), ("β", "n", 1), ("β", "k", 1))
        ),
        *(
            stated(
                f"Adv: exponent of {size} in the time", "constant: no growth",
                slopes[f"Adv in {size}"], least=-FLAT, most=FLAT,
            )
            for size in ("n", "k")
        ),
    ]  # fmt: skip
    settings = {"compared": list(compared), "records": list(records), "steps": list(steps)}
    return Measured(claims, {**settings, "fits": fits, "threads": 1}, {"": figure})


def random_records(count: int) -> Dataset:
    """As wide as those of Adult."""
    rng = np.random.default_rng(count)
    return Dataset.of(rng.random((count, WIDTH), np.float32), np.arange(count) % 2, classes=2)


def ranked(count: int) -> None:
    """Dataset sensitivity of so many records."""
    dataset_sensitivity(random_records(count).records, measure="manhattan", keep=1)


def trained(count: int, steps: int) -> LikelihoodRatio:
    """Two trainings with the adversary's belief."""
    data, ratio = random_records(count), LikelihoodRatio()
    recipe = TrainingConfig(
        steps=steps, learning_rate=LEARNING_RATE, clip_norm=CLIP_NORM, noise_multiplier=8.0
    )
    worlds = TrainingData.remove(data, 0)
    train(model_named(MODEL, data), worlds, recipe, trials=2, seed=1, observers=[ratio])
    return ratio


def decided(count: int, steps: int) -> Work:
    """The last line of the paper's algorithm 1, after a training of that size."""
    logs, inside = trained(count, steps).logs, np.array([True, False])

    def decide() -> None:
        for _ in range(1000):  # one alone is too short for a clock
            advantage(logs, inside)

    return decide


def timed(job: Callable[[int], Work], sizes: Sequence[int], fits: int) -> Floats:
    """Seconds of the processor [fit, size]."""
    jobs = [job(size) for size in sizes]
    jobs[0]()  # once before the clock: libraries are loaded

    def seconds(work: Work) -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    return np.array([[seconds(each) for each in jobs] for _ in range(fits)])
