"""Requests for an inference or a frontier, by names and numbers, as commands take them.

    options ──► InferenceRequest, FrontierRequest ──► the run's file ──► resume

Needs PyTorch only to train.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dprime import options, validate
from dprime.data import Split, load
from dprime.data.loaders import names
from dprime.membership.config import InferenceConfig, Recipe
from dprime.membership.planner import DELTA, MIN_TPR, PoolPlan, plan
from dprime.membership.pool import outside
from dprime.option import Option, configured, options_of
from dprime.parameters import Checked, one_of
from dprime.plain import to_json

if TYPE_CHECKING:
    from dprime.membership.frontiers import FrontierRecord
    from dprime.membership.inference import InferenceRecord
    from dprime.runs.backends import Backend

MOST_RECORDS = 1000  # records of the pool that are attacked where no number is given

LARGEST_POPULATION = 1000

EPOCHS = 15.0  # passes over the drawn part where neither epochs nor steps are given

OF_THE_ENGINE = ("model", "device", "learning_rate", "clip_norm", "momentum", "memory")
"""Options that a training function of the user's own does not have."""


@dataclass(frozen=True, kw_only=True)
class PoolRequest(Checked):
    """The common part of both requests: the pool, the network and where it is trained."""

    data: str = configured(options.DATA, "digits", one_of(*names()))
    data_dir: str | None = configured(options.DATA_DIR)
    pool_size: int | None = configured(options.POOL_SIZE)
    model: str
    device: str = configured(options.DEVICE, "cpu")
    memory: float = configured(options.MEMORY, 2.0)

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Self:
        """What `to_dict` gave, as a run keeps it."""
        for kind, values in ((cls, kept), (Recipe, kept.get("recipe"))):
            if values and set(values) != {each.name for each in dataclasses.fields(kind)}:
                wanted, remedy = "of this version of dprime", "begin it again"
                raise validate.invalid_input("run", "of an earlier one", wanted, remedy)
        return cls(**kept)

    def to_dict(self) -> dict[str, Any]:
        values: dict[str, Any] = to_json(dataclasses.asdict(self))
        return values

    def split(self) -> Split:
        """The distinct records of the training part, or the first of them; and the test part."""
        split, count = load(self.data, self.data_dir), self.pool_size
        pool = split.train.distinct()
        if count is not None:
            if not 2 <= count <= len(pool):
                wanted = f"from 2 to {len(pool):,}"
                remedy = f"{self.data} has {len(pool):,} distinct records"
                raise validate.invalid_value("pool_size", count, wanted, remedy)
            pool = pool.take(range(count))
        return Split(pool, split.test)


@dataclass(frozen=True, kw_only=True)
class FrontierRequest(PoolRequest):
    """A frontier: shares of a pool, and the bound on precision that all of them keep."""

    precision: float = configured(
        dataclasses.replace(options.PRECISION, required=True),
        check=partial(validate.inner_probability, example=0.731),
    )
    sampling_probabilities: Sequence[float] | None = configured(options.SAMPLING_PROBABILITIES)
    model: str = configured(options.MODEL, "linear")
    learning_rates: tuple[float, ...] = configured(options.LEARNING_RATES, (1.0,))
    min_tpr: float = configured(options.MIN_TPR, MIN_TPR, validate.rate)
    delta: float = configured(options.DELTA, DELTA, validate.inner_probability)
    batch_size: int = configured(options.BATCH_SIZE, 256, validate.positive)
    epochs: float | None = configured(options.EPOCHS, EPOCHS)
    steps: int | None = configured(options.STEPS)
    clip_norm: float = configured(options.CLIP_NORM, 1.0, validate.positive)
    momentum: float = configured(options.MOMENTUM, 0.0)
    repetitions: int = configured(options.REPETITIONS, 5)
    seed: int | None = configured(options.SEED)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        given = {"epochs": None, **values} if "steps" in values else values
        return cls(**given)

    def planned(self) -> tuple[Split, PoolPlan]:
        split = self.split()
        named = ("epochs", "steps", "min_tpr", "delta", "sampling_probabilities")
        own: dict[str, Any] = {name: getattr(self, name) for name in named}
        size = len(split.train)
        return split, plan(self.precision, pool_size=size, batch_size=self.batch_size, **own)

    def train(self, path: Path, backend: Backend) -> FrontierRecord:
        from dprime.membership.frontiers import frontier  # noqa: PLC0415  it needs PyTorch
        from dprime.train import SGD, Compute  # noqa: PLC0415
        from dprime.train.models import network_named  # noqa: PLC0415

        split, made = self.planned()
        return frontier(
            made,
            split,
            network_named(self.model, split.train),
            learning_rate=self.learning_rates,
            clip_norm=self.clip_norm,
            repetitions=self.repetitions,
            seed=self.seed,
            optimizer=SGD(momentum=self.momentum),
            compute=Compute(self.device, self.memory),
            file=path,
            backend=backend,
            request=self.to_dict(),
        )


@dataclass(frozen=True, kw_only=True)
class InferenceRequest(PoolRequest):
    """An inference: models on parts of a pool, and the attacks on them."""

    model: str = configured(options.MODEL, "dense-64")
    trainer: str | None = configured(options.TRAINER)
    shadow_file: str | None = configured(options.SHADOW_FILE)
    recipe: Recipe = field(default_factory=Recipe)
    config: InferenceConfig = field(default_factory=InferenceConfig)

    @classmethod
    def takes(cls) -> tuple[Option, ...]:
        """The options that describe an inference."""
        parts = (cls, Recipe, InferenceConfig)
        every = {each.name: each for part in parts for each in options_of(part)}
        every["records"] = options.RECORDS.here(MOST_RECORDS)
        return tuple(every.values())

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        for name in OF_THE_ENGINE if "trainer" in values else ():
            if name in values:
                wanted = "left out with a trainer of your own"
                remedy = "leave it out; batch, epochs and noise are what you claim of it"
                raise validate.invalid_value(name, values[name], wanted, remedy)
        own = dict(values)
        for part, made in (("recipe", Recipe), ("config", InferenceConfig)):
            known = [each.name for each in options_of(made)]
            own[part] = made(**{name: own.pop(name) for name in known if name in own})
        return cls(**own)

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Self:
        found = super().from_dict(kept)
        recipe, config = Recipe(**kept["recipe"]), InferenceConfig(**kept["config"])
        return dataclasses.replace(found, recipe=recipe, config=config)

    def play(self, path: Path, backend: Backend) -> tuple[InferenceRecord, dict[str, int]]:
        """Finish a run; with its record, the numbers of strangers used and left out."""
        from dprime.membership.inference import infer  # noqa: PLC0415  it needs PyTorch
        from dprime.membership.shadows import Trainers  # noqa: PLC0415
        from dprime.train import Compute  # noqa: PLC0415

        split = self.split()
        pool, strangers = split.train, outside(split.test, split.train)
        others = strangers.take(range(min(len(strangers), LARGEST_POPULATION)))
        trainers = Trainers.named(
            self.recipe,
            pool,
            model=self.model,
            own=self.trainer,
            compute=Compute(self.device, self.memory),
        )
        config = self.config
        if config.records is None:
            config = dataclasses.replace(config, records=min(MOST_RECORDS, len(pool)))
        claim = trainers.claim if trainers.own else None
        play = partial(infer, file=path, shadow_file=self.shadow_file, backend=backend)
        found = play(pool, others, trainers, config, claim=claim, request=self.to_dict())
        return found, {"records": len(others), "left_out": len(split.test) - len(strangers)}
