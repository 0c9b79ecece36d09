"""Which dissimilarity of records tells most of their gradients (section 6.1 of the paper).

Records are drawn, and a network with fresh weights; every pair's dissimilarity is compared with the
distance of its clipped gradients, by Spearman's rank correlation. Each repetition has other records
and other weights, so that intervals have both in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from scipy import stats

from dprime.data import Dataset
from dprime.data.dissimilarity import Ranking, dissimilarity
from dprime.train import Compute, EngineContext, Observer, Step, TrainingConfig, train
from dprime.train.models import model_named
from papers.bernau.cases import (
    ADULT,
    CLIP_NORM,
    LEARNING_RATE,
    MNIST,
    PURCHASE_LIKE,
    Case,
    Floats,
    cases,
    data_of,
    split_of,
)
from papers.reproduce import Claim, Scale, mean, stated

TABLE = ("hamming", "euclidean", "manhattan", "cosine")
CANDIDATES = {MNIST: ("ssim", "euclidean"), **dict.fromkeys((*PURCHASE_LIKE, ADULT), TABLE)}
CHOSEN = {MNIST: "ssim", **dict.fromkeys(PURCHASE_LIKE, "hamming"), ADULT: "manhattan"}
RECORDS = 50
"""That are compared with as many others in each repetition."""


def measure_claims(scale: Scale) -> tuple[list[Claim], dict[str, Any]]:
    """The measure that the paper chose against each other one, and all correlations."""
    claims: list[Claim] = []
    numbers: dict[str, Any] = {}
    for case in cases():
        found = correlations(scale, case)
        numbers[case.title] = {name: float(np.mean(each)) for name, each in found.items()}
        told = ", ".join(f"{name} {value:.3f}" for name, value in numbers[case.title].items())
        best = CHOSEN[case]
        claims += [
            stated(
                f"{case.label}: rank correlation of gradients' distances with {best} less that "
                f"with {other}",
                f"{best} worked best: above 0",
                mean(found[best] - found[other]),
                least=1e-9,
                why=f"Mean correlations: {told}.",
            )
            for other in CANDIDATES[case]
            if other != best and not alike(found[best], found[other])
        ]
    return claims, numbers


def alike(first: Floats, second: Floats) -> bool:
    """Where two measures order all pairs in the same way: then neither can work better."""
    return bool(np.abs(first - second).max() < 1e-9)


def correlations(scale: Scale, case: Case) -> dict[str, Floats]:
    """By measure [repetition]."""
    data = split_of(scale, case).train
    rng = np.random.default_rng(scale.seed)
    count = scale.pick(5, RECORDS, RECORDS)
    rows: dict[str, list[float]] = {name: [] for name in CANDIDATES[case]}
    for repetition in range(scale.pick(2, 20, 100)):
        drawn = data.take(rng.choice(len(data), 2 * count, replace=False))
        gradients = clipped_gradients(scale, case, drawn, repetition)
        apart = torch.cdist(gradients[:count], gradients[count:]).numpy().ravel()
        for name, found in rows.items():
            between = dissimilarity(drawn.records[:count], drawn.records[count:], name)
            found.append(float(stats.spearmanr(between.ravel(), apart).statistic))
    return {name: np.array(found) for name, found in rows.items()}


class FirstNorms(Observer):
    """How long every record's gradient is at the first step, before clipping.

    Attributes:
        norms: [trial, record].
    """

    def begin(self, run: EngineContext) -> None:
        """None yet."""
        self._rows: dict[int, Floats] = {}

    def see(self, step: Step) -> None:
        """Copy."""
        self._rows[step.rows.start] = step.norms.double().cpu().numpy()

    @property
    def norms(self) -> Floats:
        """All slices of trials."""
        return np.concatenate([self._rows[start] for start in sorted(self._rows)])


def first_norms(scale: Scale, case: Case, data: Dataset) -> Floats:
    """Of D at fresh weights [trial, record]."""
    seen = FirstNorms()
    recipe = TrainingConfig(steps=1, learning_rate=LEARNING_RATE, clip_norm=CLIP_NORM)
    train(
        model_named(case.model, data), data, recipe, trials=scale.pick(2, 20, 100),
        seed=scale.seed, observers=[seen], keep_weights=False,
        compute=Compute(scale.device, scale.memory),
    )  # fmt: skip
    return seen.norms


def norms_told(scale: Scale, case: Case, ranking: Ranking) -> str:
    """What a record's place among all of D says of its gradient, where one is left out."""
    data, _ = data_of(scale, case)
    norms = first_norms(scale, case, data)[:, ranking.records]
    found = mean([stats.spearmanr(ranking.scores, each).statistic for each in norms])
    clipped = float((norms > CLIP_NORM).mean())
    return (
        f"Over the records of D, dataset sensitivity has a rank correlation of {found.value:z.3f} "
        f"({found.low:z.3f} to {found.high:z.3f}) with the gradient's length at the first step, "
        f"and {clipped:.0%} of these gradients are longer than C, to which they are clipped."
    )


def distances_told(case: Case, means: Mapping[str, float]) -> str:
    """What a pair's dissimilarity says of its gradients, where one record takes another's place."""
    measure = CHOSEN[case]
    return (
        f"Over pairs of records, {measure} has a rank correlation of {means[measure]:.3f} with the "
        "distance of their clipped gradients at the first step."
    )


class Clipped(Observer):
    """The clipped gradient of every record at the first step."""

    def begin(self, run: EngineContext) -> None:
        """None yet."""
        self.rows: list[torch.Tensor] = []

    def see(self, step: Step) -> None:
        """One after the other [record, parameter]."""
        for part in step.parts:
            for record in range(part.records):
                self.rows.append(part.clipped(record, step.clip_norm, step.own_sum))


def clipped_gradients(scale: Scale, case: Case, drawn: Dataset, repetition: int) -> torch.Tensor:
    """At fresh weights [record, parameter]."""
    seen = Clipped()
    recipe = TrainingConfig(steps=1, learning_rate=LEARNING_RATE, clip_norm=CLIP_NORM)
    train(
        model_named(case.model, drawn), drawn, recipe, trials=1, seed=scale.seed + repetition,
        observers=[seen], keep_weights=False,
    )  # fmt: skip
    return torch.cat(seen.rows).cpu()
