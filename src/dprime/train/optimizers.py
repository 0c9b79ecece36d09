"""How a gradient moves the weights: SGD with or without momentum, Adam, and learning rates.

An optimizer is a frozen description; what it remembers is a tuple of tensors shaped like the
weights [trial, parameter], so that trials stay apart. The arithmetic is that of `torch.optim`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from dprime import validate

State = tuple[Tensor, ...]


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
        """Change weights and state in place; `step` counts from 0. The gradient may be spoiled."""


@dataclass(frozen=True)
class SGD(Optimizer):
    """Stochastic gradient descent, with Polyak's or Nesterov's momentum if wanted."""

    momentum: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        validate.below_one("momentum", self.momentum, example=0.9)
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
class Adam(Optimizer):
    """Adam (Kingma and Ba 2015), bias-corrected."""

    beta1: float = 0.9
    beta2: float = 0.999
    floor: float = 1e-8
    copies = 2

    def __post_init__(self) -> None:
        validate.below_one("beta1", self.beta1, example=0.9)
        validate.below_one("beta2", self.beta2, example=0.999)
        validate.positive("floor", self.floor, example=1e-8)

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
class Cosine(Schedule):
    """A linear rise over `warmup` steps, then half a cosine down to zero."""

    warmup: int = 0

    def __post_init__(self) -> None:
        validate.at_least_zero("warmup", self.warmup, example=100)

    def share(self, step: int, steps: int) -> float:
        if step < self.warmup:
            return (step + 1) / self.warmup
        return 0.5 * (1 + math.cos(math.pi * (step - self.warmup) / max(1, steps - self.warmup)))


@dataclass(frozen=True)
class Decay(Schedule):
    """The rate times `factor` after every `every` steps."""

    factor: float
    every: int = 1

    def __post_init__(self) -> None:
        validate.rate("factor", self.factor, example=0.5)
        validate.whole("every", self.every, example=100)

    def share(self, step: int, steps: int) -> float:
        return float(self.factor ** (step // self.every))
