"""The two values of an attribute that are told apart best, over the records of a step.

In units of the clipping norm, with n the norms of the clipped gradients of a record with two values
of its attribute, d their distance and z the noise multiplier:

    difference  R = d                                                  (Cherubin et al. 2024)
    term        e^(n0²/z²) + e^(n1²/z²) − 2 e^(⟨g0, g1⟩/z²)            (central limit)
              = (a0 − a1)² + 2 a0 a1 (1 − e^(−d²/2z²)),  a = e^(n²/2z²)

since ⟨g0, g1⟩ = (n0² + n1² − d²)/2. The second form grows with d at given norms, so that a bound on
d bounds the term, and it loses no digits where d is small. No pair exceeds what clipping allows,
R = 2 and 4 sinh(1/z²): n ≤ 1 and ⟨g0, g1⟩ ≥ −n0 n1 ≥ −1, so the term is at most
2 e^(1/z²) − 2 e^(−1/z²). That is the term of membership with one record replaced: attribute
inference is never estimated to be easier.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dprime.attributes.completion_gradients import CompletionGradients

MAX_CLIPPED_DISTANCE = 2.0  # the largest distance of two gradients of norm at most C, in units of C

LARGEST_EXPONENT = 300.0
"""The largest a, which keeps a² finite; beyond it the attacker wins in any case."""

LANDMARKS = 12
"""Values that all others are compared with, to see which records need not be looked at.

Adult, 74 or 150 values of 256 records, thread time: 4 to 7 and 9 to 17 ms with them along private
trainings of 50 to 1,500 steps, 41 to 95 and 210 to 250 ms without.
"""

FEW = 5  # records with the largest bounds, of which all pairs of values are compared first

ROUGH = torch.float32
"""The type that bounds are computed in; the largest pair itself is computed in float64."""

SLACK = 2e-5  # the relative error of that type in a squared distance, against the squared norms
ROUNDING = 1e-9  # a margin above the rounding of sums in float64, so that a bound stays one
AT_ONCE = 1 << 21  # pairs that are in memory at the same time


@dataclass(frozen=True)
class WorstPair:
    """The largest of both over records that were looked at."""

    difference: float = 0.0  # R
    term: float = 0.0  # of the central-limit form
    place: int = -1  # of the record with the largest term
    pair: tuple[int, int] = (-1, -1)  # the places of its two values, where they are known

    def merged(self, other: WorstPair) -> WorstPair:
        """The larger difference and the larger term of two."""
        ahead = other if other.term > self.term else self
        return replace(ahead, difference=max(self.difference, other.difference))


NOTHING = WorstPair()


def membership(noise_multiplier: float) -> WorstPair:
    """The most that clipping allows: one record replaced by any other."""
    return WorstPair(MAX_CLIPPED_DISTANCE, membership_term(noise_multiplier))


def membership_term(noise_multiplier: float) -> float:
    """4 sinh(1/z²): one record replaced by another whose gradient is opposite, both of norm C.

    >>> round(membership_term(1.0), 4)
    4.7008
    """
    return 4 * math.sinh(min(1 / noise_multiplier**2, 2 * LARGEST_EXPONENT))


def full(
    gradients: CompletionGradients, noise_multiplier: float, known: WorstPair = NOTHING
) -> WorstPair:
    """The largest over all pairs of values of all records; `known` is what other records reach."""
    return _search(gradients, noise_multiplier, known, _of_pairs, _from_any_value)


def approximate(
    gradients: CompletionGradients, noise_multiplier: float, known: WorstPair = NOTHING
) -> WorstPair:
    """Bounds from the distances to the mean of a record's gradients, never below `full`.

    R ≤ 2 max ‖g_s − mean‖ (Cherubin et al. 2024, section 5.4), and for the term, with D that bound,
    (max a − min a)² + 2 (max a)² (1 − e^(−D²/2z²)).
    """
    return _search(gradients, noise_multiplier, known, _of_means, _from_the_mean)


Reach = Callable[[Tensor], Tensor]
"""A bound on the distance D from those to the landmarks [record, landmark, completion]."""


def _search(
    gradients: CompletionGradients,
    z: float,
    found: WorstPair,
    look: Callable[[CompletionGradients, Tensor, float], WorstPair],
    reach: Reach,
) -> WorstPair:
    """Look at all records but those that, by bounds that are certain, cannot exceed others.

    To `look` gives the worst pair of some records, from all their products in float64.
    """
    records, completions = gradients.norms.shape
    rows = torch.arange(records, device=gradients.norms.device)
    if completions > LANDMARKS and records > 2 * FEW:
        difference, term = _upper_bounds(gradients, z, reach)
        first = torch.cat([difference.topk(FEW).indices, term.topk(FEW).indices]).unique()
        found = found.merged(look(gradients, first, z))
        rows = ((difference > found.difference) | (term > found.term)).nonzero()[:, 0]
        rows = rows[~torch.isin(rows, first)]
    for part in rows.split(max(1, AT_ONCE // completions**2)) if len(rows) else ():
        found = found.merged(look(gradients, part, z))
    return found


def _of_pairs(gradients: CompletionGradients, rows: Tensor, z: float) -> WorstPair:
    """The worst pair over all values of some records."""
    squares, squared = gradients.exactly(rows)
    a = _growth(squares, z)
    one, other = a[:, :, None], a[:, None, :]
    terms = (one - other) ** 2 - 2 * one * other * torch.expm1(-squared / (2 * z**2))
    best = int(terms.argmax())
    count = squared.shape[1]
    row, pair = divmod(best, count * count)
    return WorstPair(
        min(float(squared.max().sqrt()), MAX_CLIPPED_DISTANCE),
        min(float(terms.view(-1)[best]), membership_term(z)),
        int(rows[row]),
        divmod(pair, count),
    )


def _of_means(gradients: CompletionGradients, rows: Tensor, z: float) -> WorstPair:
    """The worst pair, from the distances of some records' gradients to their mean.

    ‖g_a − mean‖² is the mean of d(a, b)² over b, less half of the mean of d(b, c)² over all pairs.
    """
    squares, squared = gradients.exactly(rows)
    around = squared.mean(dim=2).amax(dim=1) - squared.mean(dim=(1, 2)) / 2
    distance = (2 * (around * (1 + ROUNDING)).sqrt()).clamp(max=MAX_CLIPPED_DISTANCE)
    term = _term_bound(_growth(squares, z), distance, z)
    best = int(term.argmax())
    return WorstPair(float(distance.max()), float(term[best]), int(rows[best]))


# Bounds, by the triangle inequality ---------------------------------------------------------------


def _from_any_value(distances: Tensor) -> Tensor:
    """Every value t belongs to its nearest landmark l, at most ρ(l) away: d ≤ d(s, l) + ρ(l)."""
    nearest, cell = distances.min(dim=1)
    radius = torch.zeros_like(distances[:, :, 0]).scatter_reduce(1, cell, nearest, "amax")
    return (distances + radius[:, :, None]).amax(dim=(1, 2))


def _from_the_mean(distances: Tensor) -> Tensor:
    """‖g_s − mean‖ is at most the mean over t of d(s, l) + d(l, t), with l the landmark of t."""
    nearest, cell = distances.min(dim=1)
    shares = torch.zeros_like(distances[:, :, 0])
    shares.scatter_add_(1, cell, torch.full_like(nearest, 1 / nearest.shape[1]))
    return 2 * ((shares[:, None] @ distances)[:, 0].amax(dim=1) + nearest.mean(dim=1))


def _upper_bounds(gradients: CompletionGradients, z: float, reach: Reach) -> tuple[Tensor, Tensor]:
    """Bounds on difference and term over all pairs of a record's values [record]."""
    squares = gradients.norms.to(ROUGH) ** 2
    # in the middle of equal parts: neighbours in the list of values are often neighbours at all
    middles = (torch.arange(LANDMARKS, device=squares.device) + 0.5) * squares.shape[1] / LANDMARKS
    places = middles.long()
    both = squares[:, places, None] + squares[:, None, :]
    products = gradients.products(places, dtype=ROUGH)
    distances = both.mul_(1 + SLACK).sub_(products, alpha=2).clamp_(min=0).sqrt_()
    difference = (reach(distances).double() * (1 + SLACK)).clamp(max=MAX_CLIPPED_DISTANCE)
    norms = squares.double()
    extremes = torch.stack([norms.amin(1) * (1 - SLACK), norms.amax(1) * (1 + SLACK)], dim=1)
    term = _term_bound(_growth(extremes, z), difference, z) * (1 + SLACK)
    return difference, term.clamp(max=membership_term(z))


# The term -----------------------------------------------------------------------------------------


def _term_bound(a: Tensor, distance: Tensor, z: float) -> Tensor:
    """(max a − min a)² + 2 (max a)² (1 − e^(−D²/2z²)), at most what clipping allows [record]."""
    high, low = a.amax(dim=1), a.amin(dim=1)
    rest = -torch.expm1(-(distance**2) / (2 * z**2))
    return ((high - low) ** 2 + 2 * high**2 * rest).clamp(max=membership_term(z))


def _growth(squares: Tensor, z: float) -> Tensor:
    """The term of a norm: a = e^(n²/2z²)."""
    return (squares / (2 * z**2)).clamp(max=LARGEST_EXPONENT).exp()
