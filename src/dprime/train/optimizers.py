"""How a gradient moves the weights: SGD with or without momentum, Adam, and learning rates.

What an optimizer remembers is a tuple of tensors shaped like the weights [trial, parameter]. The
arithmetic is that of `torch.optim`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from dprime import validate
from dprime.parameters import Checked, checked, parameter

State = tuple[Tensor, ...]
_DECAY = partial(validate.below_one, example=0.9)


class Optimizer(ABC):
    """A rule that moves weights along a gradient."""

    @property
    @abstractmethod
    def copies(self) -> int:
        """How many tensors of the weights' size it remembers."""

    def start(self, weights: Tensor) -> State:
        return tuple(torch.zeros_like(weights) for _ in range(self.copies))

    @abstractmethod
    def move(self, weights: Tensor, gradient: Tensor, rate: float, step: int, state: State) -> None:
        """Change weights and state in place; the gradient is scratch. `step` counts from 0."""


@dataclass(frozen=True)
class SGD(Checked, Optimizer):
    """Stochastic gradient descent, with Polyak's or Nesterov's momentum if wanted."""

    momentum: float = parameter(0.0, _DECAY)
    nesterov: bool = False

    def check_together(self) -> None:
        if self.nesterov and self.momentum == 0:
            remedy = "give a number such as 0.9, or nesterov=False"
            raise validate.invalid_value("momentum", self.momentum, "above 0 with nesterov", remedy)

    @property
    def copies(self) -> int:
        return int(self.momentum > 0)

    def move(self, weights: Tensor, gradient: Tensor, rate: float, step: int, state: State) -> None:
        """With v = momentum v + g: w -= rate v, or w -= rate (g + momentum v) for Nesterov."""
        moved = gradient
        if state:
            moved = state[0].mul_(self.momentum).add_(gradient)
        if self.nesterov:
            weights.add_(gradient, alpha=-rate)
            rate *= self.momentum
        weights.add_(moved, alpha=-rate)

    def gradient_of(self, moved: Tensor, velocity: Tensor) -> Tensor:
        """The gradient that moved the weights by -rate · moved, from the velocity before."""
        if not self.nesterov:
            return moved - self.momentum * velocity
        return (moved - self.momentum**2 * velocity) / (1 + self.momentum)


@dataclass(frozen=True)
class Adam(Checked, Optimizer):
    """Adam (Kingma and Ba 2015), bias-corrected."""

    beta1: float = parameter(0.9, _DECAY)
    beta2: float = parameter(0.999, _DECAY)
    floor: float = parameter(1e-8, partial(validate.positive, example=1e-8))
    copies = 2

    def move(self, weights: Tensor, gradient: Tensor, rate: float, step: int, state: State) -> None:
        """By w -= rate m / (√v + floor), both moments corrected for their start at zero."""
        first, second = state
        first.mul_(self.beta1).add_(gradient, alpha=1 - self.beta1)
        second.mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
        first_correction = 1 - self.beta1 ** (step + 1)
        second_correction = 1 - self.beta2 ** (step + 1)
        torch.sqrt(second, out=gradient)
        gradient.div_(math.sqrt(second_correction)).add_(self.floor)
        weights.addcdiv_(first, gradient, value=-rate / first_correction)


class Schedule(ABC):
    """The learning rate's share of its peak at each step."""

    @abstractmethod
    def share(self, step: int, steps: int) -> float:
        """Between 0 and 1; `step` counts from 0."""


@dataclass(frozen=True)
class Constant(Schedule):
    """The same rate at every step."""

    def share(self, step: int, steps: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Cosine(Checked, Schedule):
    """A linear rise over `warmup` steps, then half a cosine down to zero."""

    warmup: int = parameter(0, partial(validate.at_least_zero, example=100))

    def share(self, step: int, steps: int) -> float:
        if step < self.warmup:
            return (step + 1) / self.warmup
        return 0.5 * (1 + math.cos(math.pi * (step - self.warmup) / max(1, steps - self.warmup)))


@dataclass(frozen=True)
class Decay(Checked, Schedule):
    """The rate times `factor` after every `every` steps."""

    factor: float = field(metadata=checked(partial(validate.rate, example=0.5)))
    every: int = parameter(1, partial(validate.whole, example=100))

    def share(self, step: int, steps: int) -> float:
        return float(self.factor ** (step // self.every))
