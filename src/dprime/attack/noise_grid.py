"""Noise of few bits: an adversary that sees which values it can take.

Box and Muller (1958) make two normal numbers of two uniform ones: a = r cos θ and b = r sin θ,
where u = exp(−r²/2). A generator in single precision has 24 bits for u, so u · 2²⁴ is a whole
number, and a pair of small numbers shows it: an error of 2⁻²⁴ in r² is an error of half a level in
u. The noise is the noisy sum less the clipped sum of the true world.

Which numbers form a pair is unknown. The score is that of a Bayesian whose prior favours ordinary
noise and gives every way to pair numbers a small chance; without a grid it is the log ratio of
`DI`. A layout is a way to pair the weights, as two rows of indexes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from dprime import validate
from dprime.attack.adversary import Adversary, AttackTarget
from dprime.attack.trainer import Attack, Scorer
from dprime.train import EngineContext, Step
from dprime.train.observers import log_mixture

Layout = tuple[Tensor, Tensor]

LEVELS = 2.0**24  # values that a float32 uniform number takes between 0 and 1, near 1
UNIT = 2.0**-24  # the largest relative error of one rounding to float32
NEAR = 0.2  # r² up to which a pair shows its level; beyond, rounding hides most of it
STRAYS = 0.01  # the share of pairs that may lie anywhere although there is a grid
BLURS = (0.0, 2.0**-23, 2.0**-21)  # what else may have moved a number, over σ, such as rounding
DOUBT = 1e-6  # prior of each grid: what few pairs show by accident counts for nothing


@dataclass(frozen=True)
class NoiseGrid(Adversary):
    """Looks for noise of few bits; without a visible grid, it reaches what `DI` does."""

    name = "noise-grid"
    sees = "updates"
    weighs_noise = True
    title = "grid of the noise"

    def craft(self, target: AttackTarget) -> Attack:
        self.check(target)
        about = "a natural record, and the values that the noise takes"
        return Attack(target.natural_worlds(), GridLikelihood, about)


class GridLikelihood(Scorer):
    """The log ratio of the worlds, where the noise may lie on a grid."""

    copies = 5

    def begin(self, run: EngineContext) -> None:
        sizes = [parameter.stop - parameter.start for parameter in run.network.parameters]
        self._layouts = [(one.to(run.device), two.to(run.device)) for one, two in layouts(sizes)]
        self._rate = run.training.sample_rate
        # [world, trial, law of the noise]
        self._logs = np.zeros((2, len(run.trials), 1 + len(BLURS) * len(self._layouts)))

    def see(self, step: Step) -> None:
        sums = step.noisy_sum, step.common_sum, step.differing
        both = worlds_logs(*sums, step.sigma, self._rate, self._layouts)
        self._logs[:, step.rows] += both.cpu().numpy()

    @property
    def scores(self) -> NDArray[np.float64]:  # type: ignore[override]
        return log_odds(self._logs)


def log_odds(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The log ratio of the worlds [trial], where each law of the noise has its prior."""
    before = np.full(logs.shape[2], math.log(DOUBT))
    before[0] = 0.0
    inside, outside = np.logaddexp.reduce(logs + before, axis=2)
    ratio: NDArray[np.float64] = inside - outside
    return ratio


def grid_scores(
    noisy_sums: ArrayLike | Tensor,
    common_sums: ArrayLike | Tensor,
    gradients: Sequence[ArrayLike | Tensor],
    noise: float,
    *,
    sample_rate: float = 1.0,
    sizes: Sequence[int] | None = None,
) -> NDArray[np.float64]:
    """Scores of recorded updates [trial]: a higher score is evidence that the record was there.

    Pass the scores of trainings with and without the record to `dprime.audit.lower_bound`. Every
    digit counts: give float32 as the trainer had it. Multiply an average by its divisor, and the
    difference of the models before and after a step of SGD by the divisor over the learning rate.
    If the noise or the divisor is not known to seven digits, the grid stays hidden.

    All sums and gradients are [trial, step, parameter]. `gradients` are the clipped gradients of
    the attacked record, and for replace of the record in its place, whether drawn or not;
    `common_sums` are the sums of the other records in the batch, without noise. `noise` is σ on the
    sum: Opacus' noise_multiplier times max_grad_norm. `sizes` are the numbers of weights of each
    tensor, in order, if the trainer draws noise for each tensor, as Opacus does.
    """
    released = _recorded("noisy_sums", noisy_sums)
    common = _recorded("common_sums", common_sums, released.shape)
    own = [_recorded("gradients", each, released.shape) for each in gradients]
    if len(own) not in (1, 2):
        remedy = "give the record's, and for replaced records the other's"
        raise validate.invalid_value("gradients", len(own), "one or two tensors", remedy)
    trials, steps, count = released.shape
    sigma = torch.full((trials,), validate.positive("noise", noise))
    tensors = [count] if sizes is None else [validate.whole("sizes", size) for size in sizes]
    if sum(tensors) != count:
        remedy = "give the number of weights of each tensor"
        raise validate.invalid_value("sizes", tensors, f"numbers that add up to {count}", remedy)
    rest = sigma, validate.rate("sample_rate", sample_rate), layouts(tensors)
    each_step = [
        worlds_logs(released[:, step], common[:, step], [each[:, step] for each in own], *rest)
        for step in range(steps)
    ]
    return log_odds(torch.stack(each_step).sum(0).numpy())


def worlds_logs(
    noisy: Tensor,
    common: Tensor,
    gradients: Sequence[Tensor],
    sigma: Tensor,
    rate: float,
    pairs: Sequence[Layout],
) -> Tensor:
    """The log-likelihood of a step in world `in` and world `out` [world, trial, law of the noise].

    The laws are ordinary noise, and a grid in each layout, more or less blurred. All likelihoods
    are relative to ordinary noise on the common sum.
    """
    undrawn = _law_logs(noisy, common, torch.zeros_like(common), sigma, pairs)
    rest = noisy - common

    def drawn(gradient: Tensor) -> Tensor:
        moved = log_mixture(rest, gradient, sigma, 1.0)[:, None]
        logs = moved + _law_logs(noisy, common, gradient, sigma, pairs)
        if rate == 1:
            return logs
        return torch.logaddexp(logs + math.log(rate), undrawn + math.log1p(-rate))

    first, *second = map(drawn, gradients)
    return torch.stack([first, second[0] if second else undrawn])


def _law_logs(
    noisy: Tensor, common: Tensor, gradient: Tensor, sigma: Tensor, pairs: Sequence[Layout]
) -> Tensor:
    """How much likelier each law makes the noise than ordinary noise is [trial, law]."""
    clipped = common + gradient
    scale = sigma.clamp_min(torch.finfo(sigma.dtype).tiny)
    squares = ((noisy - clipped) / scale[:, None]).square()
    squares[sigma == 0] = torch.inf
    # Entries that rounding has moved by about so much: of the noisy sum, and of what is summed up.
    summed = 2 * clipped.abs() + clipped.square().mean(1, keepdim=True).sqrt()
    blurred = UNIT * (noisy.abs() / 2 + summed) / scale[:, None]
    scale = scale.float().double()  # the generator's own, in single precision

    def exact(trial: Tensor, place: Tensor) -> Tensor:
        value, *known = (each[trial, place].double() for each in (noisy, common, gradient))
        return (value - known[0] - known[1]) / scale[trial]

    laws = [torch.zeros(len(noisy), dtype=torch.float64, device=noisy.device)]
    for first, second in pairs:
        trial, pair = (squares[:, first] + squares[:, second] < NEAR).nonzero(as_tuple=True)
        one, other = first[pair], second[pair]
        a, b = exact(trial, one), exact(trial, other)
        blur_a, blur_b = blurred[trial, one].double(), blurred[trial, other].double()
        for blur in BLURS:
            logs = _pair_logs(a, b, blur_a + blur, blur_b + blur)
            laws.append(torch.zeros_like(laws[0]).index_add_(0, trial, logs))
    return torch.stack(laws, 1)


def _pair_logs(a: Tensor, b: Tensor, blur_a: Tensor, blur_b: Tensor) -> Tensor:
    """The density of each pair's place between two levels, if they lie on levels, over 1 [pair].

    A von Mises density with the width that rounding gives, and a share of strays.
    """
    squared = a.square() + b.square()
    place = torch.exp(-squared / 2) * LEVELS
    # Errors in levels: the generator's r², in about four roundings, and those of both entries.
    width = squared.square() + LEVELS**2 * ((a * blur_a).square() + (b * blur_b).square())
    kappa = (2 * math.pi) ** -2 / width.clamp_min(1e-12)
    peak = kappa * (torch.cos(2 * math.pi * place) - 1) - torch.special.i0e(kappa).log()
    strays = torch.full_like(peak, math.log(STRAYS))
    return torch.logaddexp(peak + math.log1p(-STRAYS), strays)


def layouts(sizes: Sequence[int]) -> list[Layout]:
    """The ways to pair weights that generators have, for noise that is drawn for these tensors.

    Each for all of them at once, and for one tensor after the other.
    """
    found = []
    for way in dict.fromkeys([(sum(sizes),), tuple(sizes)]):
        starts = np.cumsum([0, *way[:-1]])
        tensors = [_pairings(size) for size in way]
        for parts in zip(*tensors, strict=True):
            moved = [start + pairs for start, pairs in zip(starts, parts, strict=True)]
            first, second = torch.from_numpy(np.concatenate(moved, axis=1))
            if len(first):
                found.append((first, second))
    return found


def _pairings(size: int) -> list[NDArray[np.int64]]:
    """The ways to pair the weights of one tensor, each [2, pair].

    Halves (i, h + i), with h half of the size rounded up, as dprime had until version 0.10;
    neighbours (2j, 2j + 1); and eight apart in blocks of sixteen, as PyTorch's `normal_fill` has on
    a CPU. It draws the last sixteen again if some are left over, and fewer than sixteen one by one,
    in double precision.
    """
    half = np.arange(size // 2)
    apart = (np.arange(0, size - 15, 16)[:, None] + np.arange(8)).ravel()
    if size > 16 and size % 16:
        last = size - 16
        apart = np.concatenate([apart[apart + 8 < last], last + np.arange(8)])
    ways = ((half, (size + 1) // 2), (2 * half, 1), (apart, 8))
    return [np.stack([firsts, firsts + distance]) for firsts, distance in ways]


def _recorded(name: str, given: ArrayLike | Tensor, shape: torch.Size | None = None) -> Tensor:
    """Real numbers [trial, step, parameter] in double precision, which keeps every digit."""
    found = given.detach().cpu() if isinstance(given, Tensor) else torch.tensor(np.asarray(given))
    wanted, shown = "(trial, step, parameter)", f"{found.dtype} of shape {tuple(found.shape)}"
    try:
        if found.is_floating_point() and found.dim() == 3:
            return found.double().expand(found.shape if shape is None else shape)
    except RuntimeError:
        wanted = str(shape and tuple(shape))
    remedy = "give recorded sums, one row for each trial and step"
    raise validate.invalid_input(name, shown, f"real numbers of shape {wanted}", remedy)
