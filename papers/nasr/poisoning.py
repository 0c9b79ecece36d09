"""Why a record that is made anew at every step may tell less than one that is made once.

Adaptive poisoning is said to be stronger than intermediate models, and is weaker in the ladders of
MNIST and CIFAR-10. Both watch how each step lowers the loss on their record. A step adds noise to
all weights, and behind it the record's gradient is another one: only the part of it that still
points along the old one lowers the loss by what the record itself added. That part is measured here
at ε = 4, with the shift and the spread of the scores in the same trainings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dprime.attack import EngineTrainer, Setting
from dprime.attack.adaptive_poisoning import AdaptivePoisoning, Remade
from dprime.attack.adversary import Attack
from dprime.attack.intermediate_models import IntermediateModels
from dprime.attack.scorers import Shown, always
from dprime.audit import AuditSettings
from dprime.show.figures import rung_of
from dprime.train import Final, Observer, Run, Step, train
from papers.drawing import Line, LinesFigure
from papers.nasr.ladder import DRAWN, file_values, seed_of
from papers.reproduce import Claim, Estimate, Measured, Scale, mean, run, stated

TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10 subset", "location30": "Location-30"}
FIXED, REMADE = "intermediate-models", "adaptive-poisoning"
Floats = NDArray[np.float64]


class Turning(Observer):
    """How much of a record's gradient is left behind a step, along its own direction before it.

    Attributes:
        left: ⟨g before, g behind⟩ / ‖g before‖² [trial, step].
        norms: ‖g before‖ [trial, step].
        divisor: that turns sums into averages.
    """

    def __init__(self, shown: Callable[[Step], list[Shown]]) -> None:
        self._shown = shown

    def begin(self, run: Run) -> None:
        """Room for every trial and step."""
        self._run = run
        self.left: Floats = np.zeros((len(run.trials), run.training.steps))
        self.norms = np.zeros_like(self.left)

    def see(self, step: Step) -> None:
        """The step before is over: look at its record again; then keep this step's."""
        if step.index:
            self._behind(step.rows, step.index - 1, step.weights, step.memo[self])
        self.divisor = step.divisor
        x, y = self._shown(step)[0]
        gradient = self._gradient(step.weights, x, y)
        self.norms[step.rows, step.index] = gradient.norm(dim=1).cpu().numpy()
        step.memo[self] = (x, y, gradient)

    def end(self, final: Final) -> None:
        """The last step."""
        self._behind(final.rows, self.left.shape[1] - 1, final.weights, final.memo[self])

    def _behind(self, rows: slice, index: int, weights: Tensor, kept: Any) -> None:
        x, y, before = kept
        along = torch.linalg.vecdot(before, self._gradient(weights, x, y))
        self.left[rows, index] = (along / before.square().sum(dim=1)).cpu().numpy()

    def _gradient(self, weights: Tensor, x: Tensor, y: Tensor) -> Tensor:
        found = self._run.network.gradients(weights, x, y, self._run.training.loss)
        into = torch.zeros_like(weights)
        found.add_weighted(weights.new_ones(len(weights), 1), into)
        return into


@dataclass(frozen=True, eq=False)
class Watched:
    """One adversary's trainings.

    Attributes:
        left: of the record's gradient, the mean over a trial's steps [trial].
        clipped: the share of steps at which the gradient is longer than C.
        shift: of the scores between both worlds, over what the record adds at every step.
        spread: of the scores, over that of the noise along one direction.
        reached: the share of the certified d′.
    """

    left: Floats
    clipped: float
    shift: float
    spread: float
    reached: float

    def in_words(self) -> str:
        """Everything, in one sentence."""
        return (
            f"{self.left.mean():.2f} of the gradient is left, the scores shift by "
            f"{self.shift:.2f} of what the record adds and spread by {self.spread:.2f} of the "
            f"noise, and {self.reached:.2f} of the certified d′ is reached"
        )


def measure(scale: Scale) -> Measured:
    """Both adversaries on every data set."""
    found = {data: watched(data, scale) for data in TITLES}
    claims = [claim_of(TITLES[data], each) for data, each in found.items()]
    numbers = {
        data: {
            name: {**dataclasses.asdict(one), "left": float(one.left.mean())}
            for name, one in each.items()
        }
        for data, each in found.items()
    }
    settings = {"epsilon": DRAWN, "trials": trials(scale), "shadows": shadows(scale)}
    return Measured(claims, settings, numbers, drawn(found))


def trials(scale: Scale) -> int:
    """Of both worlds together."""
    return int(scale.pick(20, 200, 1000))


def shadows(scale: Scale) -> int:
    """Of the adversary that makes its record once."""
    return int(scale.pick(2, 10, 50))


def watched(data: str, scale: Scale) -> dict[str, Watched]:
    """Each adversary makes its record and watches trainings of both worlds."""
    values = {key: value for key, value in file_values(data, scale).items() if key != "audits"}
    seed = seed_of(scale, data, 7)
    audit = dataclasses.replace(
        AuditSettings.of({**values, "adversary": REMADE}),
        claim={**values["claim"], "epsilon": DRAWN}, seed=seed,
    )  # fmt: skip
    setting = audit.setting(scale.data(data))
    allowed = audit.claimed().d_prime()
    remade = AdaptivePoisoning().craft(setting)
    assert isinstance(remade.insert, Remade)
    fixed = IntermediateModels(shadows=shadows(scale)).craft(setting)
    assert fixed.worlds.differing is not None
    return {
        FIXED: _watch(setting, fixed, always(fixed.worlds.differing), allowed, seed, scale),
        REMADE: _watch(setting, remade, remade.insert.current, allowed, seed, scale),
    }


def _watch(
    setting: Setting, attack: Attack, shown: Callable[[Step], list[Shown]], allowed: float,
    seed: int, scale: Scale,
) -> Watched:  # fmt: skip
    trainer = setting.trainer
    assert isinstance(trainer, EngineTrainer)
    turning, scorer, recipe = Turning(shown), attack.scorer(), trainer.training
    done = train(
        trainer.model, attack.worlds, recipe, trials=trials(scale), seed=seed,
        observers=[turning, scorer], insert=attack.insert, keep_weights=False,
        device=trainer.device, memory=trainer.memory, progress=False,
    )  # fmt: skip
    assert recipe.clip_norm is not None
    ins, outs = scorer.scores[done.in_world], scorer.scores[~done.in_world]
    length = recipe.learning_rate * recipe.clip_norm / turning.divisor
    noise = length * recipe.noise_multiplier * recipe.steps**0.5
    return Watched(
        left=turning.left.mean(axis=1),
        clipped=float((turning.norms > recipe.clip_norm).mean()),
        shift=float(ins.mean() - outs.mean()) / (length * recipe.steps),
        spread=float(((ins.var(ddof=1) + outs.var(ddof=1)) / 2) ** 0.5) / noise,
        reached=rung_of("", ins, outs).value / allowed,
    )


def claim_of(title: str, found: dict[str, Watched]) -> Claim:
    """That the remade record keeps as much of its gradient as the fixed one."""
    fixed, remade = found[FIXED], found[REMADE]
    apart: Estimate = mean(remade.left) - mean(fixed.left)
    return stated(
        f"{title}: part of the record's gradient that a step leaves, remade less made once",
        "a record made anew at every step adds to that: at least 0", apart, least=0.0,
        why=f"Made once: {fixed.in_words()}. Remade: {remade.in_words()}. Its gradient is longer "
        f"than C at {fixed.clipped:.0%} and {remade.clipped:.0%} of the steps.",
    )  # fmt: skip


def drawn(found: dict[str, dict[str, Watched]]) -> LinesFigure:
    """The part that is left against the share of d′ that is reached."""
    lines = [
        Line(
            name, [(each[name].left.mean(), each[name].reached) for each in found.values()],
            joined=False,
        )
        for name in (FIXED, REMADE)
    ]  # fmt: skip
    worst = min(found, key=lambda data: float(found[data][REMADE].left.mean()))
    one = found[worst][REMADE]
    return LinesFigure(
        "poisoning",
        f"On {TITLES[worst]} a step leaves {one.left.mean():.2f} of the remade record's gradient, "
        f"and {one.reached:.2f} of the certified d′ is reached",
        "part of the record's gradient that a step leaves", "share of the certified d′",
        tuple(lines),
    )  # fmt: skip


if __name__ == "__main__":
    run(measure, __file__, __doc__)
