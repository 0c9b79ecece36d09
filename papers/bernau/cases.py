"""The paper's trainings: data, networks, the pair D and D′, and the noise.

The paper has three data sets, and Purchase-100 is one of them. Two others stand in its place, each
under its own name: retail100, which has the same form, and Location-30, which comes from the same
collection as Purchase-100. Who has the file of Purchase-100 gets its trainings as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dprime.bounds import epsilon_from_belief, rdp_noise_multiplier_from_epsilon
from dprime.data import Dataset, Split, files, shokri
from dprime.data.dissimilarity import Ranking, dataset_sensitivity, default_measure
from dprime.train import TrainingConfig, TrainingData
from papers.reproduce import Scale

Sensitivity = Literal["local", "global"]
Adjacency = Literal["replace", "add-remove"]
Floats = NDArray[np.float64]

BELIEF = 0.9
"""ρ_β of all figures but 7 to 9."""

CLIP_NORM, LEARNING_RATE, STEPS = 3.0, 0.005, 30
"""Of section 6."""

LOOKED_AT = 2000
"""Records outside of D among which x′ is looked for, as `dprime audit` does it."""

HELD_OUT = 1000
"""Records on which accuracy is measured, and which the other adversary must not call members."""

ROWS: tuple[tuple[Sensitivity, Adjacency], ...] = (
    ("local", "replace"),
    ("local", "add-remove"),
    ("global", "replace"),
    ("global", "add-remove"),
)
WORDS = {"local": "LS", "global": "GS", "replace": "bounded", "add-remove": "unbounded"}


@dataclass(frozen=True)
class Case:
    """A training on one data set.

    Attributes:
        data: the name of the data set.
        title: as it is called on the page.
        records: of D; δ is one over it.
        model: by dprime's name.
        quick: trials in a quick version.
        stands_for: the data set of the paper in whose place it is.
    """

    data: str
    title: str
    records: int
    model: str
    quick: int
    stands_for: str = ""

    @property
    def label(self) -> str:
        """In a claim: which data these are, and whose place they take."""
        return f"{self.title} for {self.stands_for}" if self.stands_for else self.title

    @property
    def delta(self) -> float:
        """1/|D|."""
        return 1 / self.records


MNIST = Case("mnist", "MNIST", 100, "conv-16-32", 16)
RETAIL = Case("retail100", "retail100", 1000, "dense-128", 24, "Purchase-100")
LOCATION = Case("location30", "Location-30", 1000, "dense-128", 12, "Purchase-100")
PURCHASE = Case("purchase100", "Purchase-100", 1000, "dense-128", 12)
ADULT = Case("adult", "Adult", 1000, "dense-6-6", 200)

PURCHASE_LIKE = (RETAIL, LOCATION, PURCHASE)
"""Everything that the paper's claims on Purchase-100 are tested on."""


def has_purchase() -> bool:
    """Whether the file of Purchase-100 is in the data folder, where its loader looks for it."""
    return shokri.PURCHASE100.look(files.folder(None), "dataset_purchase") is not None


def purchase_like() -> tuple[Case, ...]:
    """Those of `PURCHASE_LIKE` that take part: both stand-ins, and Purchase-100 if it is there."""
    return tuple(case for case in PURCHASE_LIKE if case is not PURCHASE or has_purchase())


def cases() -> tuple[Case, ...]:
    """All that take part, in the paper's order."""
    return (MNIST, *purchase_like(), ADULT)


def trials_of(scale: Scale, case: Case) -> int:
    """The paper has 1,000."""
    count: int = scale.pick(8, case.quick, 1000)
    return count


def steps_of(scale: Scale) -> int:
    """The paper has 30."""
    count: int = scale.pick(3, STEPS, STEPS)
    return count


@cache
def split_of(scale: Scale, case: Case) -> Split:
    """The whole data set, read once."""
    return scale.data(case.data)


def data_of(scale: Scale, case: Case) -> tuple[Dataset, Dataset]:
    """D, and the records that may take another's place."""
    split = split_of(scale, case)
    count = scale.pick(40, case.records, case.records)
    others = split.test.take(range(min(LOOKED_AT, len(split.test))))
    return split.train.take(range(count)), others


def held_out(scale: Scale, case: Case) -> Dataset:
    """From the end of the test data, or of the training data where x′ is looked for in all others.

    None of them is ever trained on: D is at the beginning of the training data.
    """
    split = split_of(scale, case)
    count = scale.pick(40, HELD_OUT, HELD_OUT)
    source = split.test if len(split.test) >= LOOKED_AT + count else split.train
    return source.take(range(len(source) - count, len(source)))


def ranking_of(scale: Scale, case: Case, adjacency: Adjacency, keep: int | None = 1) -> Ranking:
    """Neighbours D′ of D by their dataset sensitivity (the paper's definition 6).

    So many are kept from either end, or all of them.
    """
    data, others = data_of(scale, case)
    return dataset_sensitivity(
        data.records,
        others.records if adjacency == "replace" else None,
        adjacency=adjacency,
        measure=default_measure(data.kind),
        keep=keep,
        device=scale.device,
    )


def worlds_of(scale: Scale, case: Case, ranking: Ranking, place: int = 0) -> TrainingData:
    """D and the D′ at that place of the ranking."""
    data, others = data_of(scale, case)
    record = int(ranking.records[place])
    if ranking.partners is None:
        return TrainingData.remove(data, record)
    return TrainingData.replace(data, record, others.take([int(ranking.partners[place])]))


def recipe_of(
    scale: Scale, case: Case, sensitivity: Sensitivity, adjacency: Adjacency, belief: float = BELIEF
) -> TrainingConfig:
    """Noise for a belief of at most ρ_β, by Rényi composition."""
    steps = steps_of(scale)
    return TrainingConfig(
        steps=steps,
        learning_rate=LEARNING_RATE,
        clip_norm=CLIP_NORM,
        noise_multiplier=rdp_noise_multiplier_from_epsilon(
            epsilon_from_belief(belief), delta=case.delta, steps=steps, adjacency=adjacency
        ),
        sensitivity=sensitivity,
    )


def named(sensitivity: str, adjacency: str) -> str:
    """As the paper's table 2 has it: "LS bounded"."""
    return f"{WORDS[sensitivity]} {WORDS[adjacency]}"


def settings_of(scale: Scale, chosen: Sequence[Case]) -> dict[str, Any]:
    """What every figure's trainings have in common."""
    return {
        "steps": steps_of(scale),
        "learning_rate": LEARNING_RATE,
        "clip_norm": CLIP_NORM,
        "composition": "rdp",
        "data": {
            case.title: {
                "records": case.records,
                "delta": case.delta,
                "model": case.model,
                "trials": trials_of(scale, case),
            }
            for case in chosen
        },
    }


def rounded(values: Any, digits: int = 5) -> Any:
    """Numbers as plain lists, with as many digits as anybody reads."""
    return np.round(np.asarray(values, float), digits).tolist()
