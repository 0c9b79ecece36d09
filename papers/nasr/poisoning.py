"""What is lost when a record is bent anew at every step.

Adaptive poisoning is said to be stronger than intermediate models, and is weaker in the ladders of
MNIST and CIFAR-10. It gives its record the label with the largest loss at every step, and then
bends its numbers until the loss is larger still. Here the same natural record is used in three
ways, at ε = 4: with a label that shadow models find unlikely, chosen once; relabelled at every
step; relabelled and bent at every step, as in the ladders. Trainings of both worlds have the same
noise, so that the shift of the scores is that of the record alone. Where the loss is a straight
line along a step, the shift is what the record adds (1), the spread is that of the noise (1), and
all of the certified d′ is reached. A full version has fewer trainings than the ladders: each is
compared with itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime.attack import AdaptivePoisoning, EngineTrainer, Setting
from dprime.attack.adversary import Attack, Scorer
from dprime.attack.poison import candidates
from dprime.attack.scorers import Gain, always
from dprime.audit import AuditSettings
from dprime.train import Training, train
from papers.drawing import Line, LinesFigure
from papers.nasr.ladder import DRAWN, file_values, seed_of
from papers.reproduce import Claim, Estimate, Measured, Scale, mean, run, stated

TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10 subset", "location30": "Location-30"}
ONCE, RELABELLED, BENT = "made once", "relabelled", "relabelled and bent"
MISLABELLED = 1
"""The place of the natural record with an unlikely label among the poisons."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Paired:
    """Scores of the same trainings with and without the record, in units of what it adds.

    Attributes:
        inside: [trial], over what the record adds in all steps.
        outside: [trial], with the same noise.
        noise: the standard deviation of the noise along one direction, in the same unit.
    """

    inside: Floats
    outside: Floats
    noise: float

    @property
    def shift(self) -> Estimate:
        """By the record."""
        return mean(self.inside - self.outside)

    @property
    def spread(self) -> float:
        """Of the scores, over that of the noise."""
        variance = (self.inside.var(ddof=1) + self.outside.var(ddof=1)) / 2
        return float(variance**0.5) / self.noise

    @property
    def reached(self) -> Estimate:
        """The share of the certified d′, shift over spread, with the jackknife's interval."""
        count = len(self.inside)
        whole = self.shift.value / self.spread
        without = []
        for trial in range(count):
            one = Paired(np.delete(self.inside, trial), np.delete(self.outside, trial), self.noise)
            without.append(one.shift.value / one.spread)
        return mean([count * whole - (count - 1) * each for each in without])


Found = Mapping[str, Paired]
"""By what is done with the record."""


def measure(scale: Scale) -> Measured:
    """Three uses of one record on every data set."""
    found = {data: played(data, scale) for data in TITLES}
    claims = [
        claim_of(TITLES[data], each, more, less)
        for data, each in found.items()
        for more, less in ((RELABELLED, ONCE), (BENT, RELABELLED))
    ]
    numbers = {
        data: {
            name: {
                "shift": dataclasses.asdict(one.shift), "spread": one.spread,
                "share of the certified d_prime": dataclasses.asdict(one.reached),
            }
            for name, one in each.items()
        }
        for data, each in found.items()
    }  # fmt: skip
    settings = {"epsilon": DRAWN, "trials a world": trials(scale), "shadows": shadows(scale)}
    return Measured(claims, settings, numbers, drawn(found))


def trials(scale: Scale) -> int:
    """Of each world."""
    return int(scale.pick(5, 100, 120))


def shadows(scale: Scale) -> int:
    """By which the unlikely label is found."""
    return int(scale.pick(2, 10, 10))


def played(data: str, scale: Scale) -> Found:
    """The record in all three ways."""
    values = {key: value for key, value in file_values(data, scale).items() if key != "audits"}
    audit = dataclasses.replace(
        AuditSettings.of({**values, "adversary": "adaptive-poisoning"}),
        claim={**values["claim"], "epsilon": DRAWN}, seed=seed_of(scale, data, 7),
    )  # fmt: skip
    setting = audit.setting(scale.data(data))
    once = candidates(setting, shadows(scale), outliers=1)[MISLABELLED]
    assert once.differing is not None
    fixed = always(once.differing)
    return {
        ONCE: _paired(setting, Attack(once, lambda: Gain(fixed), ONCE), scale),
        RELABELLED: _paired(setting, AdaptivePoisoning(bends=0).craft(setting), scale),
        BENT: _paired(setting, AdaptivePoisoning().craft(setting), scale),
    }


def _paired(setting: Setting, attack: Attack, scale: Scale) -> Paired:
    trainer = setting.trainer
    assert isinstance(trainer, EngineTrainer)
    inside, outside = (
        _scores(trainer, attack, world, setting.seed, trials(scale)) for world in ("in", "out")
    )
    adds, noise = _units(trainer.training, len(attack.worlds.common) + 1)
    return Paired(inside / adds, outside / adds, noise / adds)


def _scores(trainer: EngineTrainer, attack: Attack, world: Any, seed: int, count: int) -> Floats:
    scorer: Scorer = attack.scorer()
    train(
        trainer.model, attack.worlds, trainer.training, trials=count, seed=seed, world=world,
        observers=[scorer], insert=attack.insert, keep_weights=False, device=trainer.device,
        memory=trainer.memory, progress=False,
    )  # fmt: skip
    return scorer.scores


def _units(recipe: Training, records: int) -> tuple[float, float]:
    """What a clipped gradient adds in all steps along itself, and the noise beside it."""
    assert recipe.clip_norm is not None
    length = recipe.learning_rate * recipe.clip_norm / records
    return length * recipe.steps, length * recipe.noise_multiplier * recipe.steps**0.5


def claim_of(title: str, found: Found, more: str, less: str) -> Claim:
    """That the next use of the record tells at least as much."""
    apart = found[more].reached - found[less].reached
    told = "; ".join(
        f"{name}: shift {found[name].shift.value:.2f}, spread {found[name].spread:.2f}, "
        f"{found[name].reached.value:.2f} of the certified d′ ({found[name].reached.low:.2f} to "
        f"{found[name].reached.high:.2f})"
        for name in (less, more)
    )
    return stated(
        f"{title}: share of the certified d′, {more} less {less}",
        "a record made anew at every step adds: at least 0", apart, least=0.0,
        why=f"{told[0].upper()}{told[1:]}.",
    )  # fmt: skip


def drawn(found: Mapping[str, Found]) -> LinesFigure:
    """The share of d′ by what is done with the record."""
    names = (ONCE, RELABELLED, BENT)
    lines = []
    for aside, (data, each) in zip((-0.1, 0.0, 0.1), found.items(), strict=True):
        shares = [each[name].reached for name in names]
        points = [
            (place + aside, one.value, one.low, one.high)
            for place, one in enumerate(shares, start=1)
        ]
        lines.append(Line(TITLES[data], points, joined=False))
    least = min(found, key=lambda data: found[data][BENT].reached.value)
    one = found[least]
    return LinesFigure(
        "poisoning",
        f"On {TITLES[least]} the record reaches {one[ONCE].reached.value:.2f} of the certified d′ "
        f"made once, {one[RELABELLED].reached.value:.2f} relabelled and "
        f"{one[BENT].reached.value:.2f} bent at every step.",
        "what is done with the record", "share of the certified d′", tuple(lines), places=names,
    )  # fmt: skip


if __name__ == "__main__":
    run(measure, __file__, __doc__)
