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
inference is never said to be easier.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dprime.attributes.completion_gradients import CompletionGradients
from dprime.attributes.factors import ALL, Rows

MAX_CLIPPED_DISTANCE = 2.0
"""Two gradients of norm at most C are no further apart, in units of C."""

LARGEST_EXPONENT = 300.0
"""Of a, so that a² is a number; beyond it the attacker wins in any case."""

LANDMARKS = (2, 12)
"""Values that all others are held against, to see which records need not be looked at: in turns."""

FEW = 5
"""Records with the largest bounds, of which all pairs of values are compared first."""

ROUGH = torch.float32
"""What bounds are computed in; the largest itself is computed in float64."""

SLACK = 2e-5
"""How much that may move a squared distance, relative to the squared norms, and any bound."""

ROUNDING = 1e-9
"""More than sums in float64 lose, so that a bound stays one."""

LEAST_NOISE = 0.2
"""With less noise the terms are too large for such bounds."""

AT_ONCE = 1 << 21
"""Pairs that are in memory at the same time."""


@dataclass(frozen=True)
class WorstPair:
    """The largest of both over records that were looked at.

    Attributes:
        difference: R.
        term: of the central-limit form.
        place: of the record with the largest term, or -1.
        pair: the places of its two values; (-1, -1) where only a bound is known.
    """

    difference: float = 0.0
    term: float = 0.0
    place: int = -1
    pair: tuple[int, int] = (-1, -1)

    def merged(self, other: WorstPair) -> WorstPair:
        """The larger of each."""
        ahead = other if other.term > self.term else self
        return WorstPair(
            max(self.difference, other.difference), ahead.term, ahead.place, ahead.pair
        )


def membership(noise_multiplier: float) -> WorstPair:
    """What clipping allows at most: one record replaced by any other."""
    return WorstPair(MAX_CLIPPED_DISTANCE, membership_term(noise_multiplier))


def membership_term(noise_multiplier: float) -> float:
    """4 sinh(1/z²): one record replaced by another whose gradient is opposite, both of norm C.

    >>> round(membership_term(1.0), 4)
    4.7008
    """
    return 4 * math.sinh(min(1 / noise_multiplier**2, 2 * LARGEST_EXPONENT))


def full(
    gradients: CompletionGradients, noise_multiplier: float, known: WorstPair | None = None
) -> WorstPair:
    """The largest over all pairs of values of all records.

    Records that cannot exceed what others reach are left out, by bounds that are certain: distances
    to a few values, the landmarks, bound all others by the triangle inequality.

    Args:
        gradients: of the records' completions.
        noise_multiplier: z.
        known: what other records reach.
    """
    found = known or WorstPair()
    records, completions = gradients.norms.shape
    rows = torch.arange(records, device=gradients.norms.device)
    if noise_multiplier >= LEAST_NOISE:
        for landmarks in LANDMARKS:
            if completions > 4 * landmarks and len(rows) > 2 * FEW:
                bounds = _upper_bounds(gradients, rows, landmarks, noise_multiplier)
                first = _foremost(bounds, found)
                found = found.merged(_exact(gradients, rows[first], noise_multiplier))
                left = _above(bounds, found)
                rows = rows[left[~torch.isin(left, first)]]
    for part in rows.split(max(1, AT_ONCE // completions**2)):
        found = found.merged(_exact(gradients, part, noise_multiplier))
    return found


def approximate(
    gradients: CompletionGradients, noise_multiplier: float, known: WorstPair | None = None
) -> WorstPair:
    """Bounds from the distances to the mean of a record's gradients, never below `full`.

    R ≤ 2 max ‖g_s − mean‖ (Cherubin et al. 2024, section 5.4), and for the term, with D that bound,
    (max a − min a)² + 2 (max a)² (1 − e^(−D²/2z²)).
    """
    known = known or WorstPair()
    squares = _squares(gradients)
    around = gradients.from_mean(dtype=ROUGH).amax(dim=1)
    slack = SLACK * squares.amax(dim=1)
    least, most = (around - slack).clamp(min=0), around + slack
    a = _growth(squares, noise_multiplier)
    rows = _candidates(
        (_distance_bound(least), _term_bound(a, _distance_bound(least), noise_multiplier)),
        (_distance_bound(most), _term_bound(a, _distance_bound(most), noise_multiplier)),
        known,
    )
    for part in rows.split(max(1, AT_ONCE // squares.shape[1] ** 2)):
        known = known.merged(_around_mean(gradients, part, noise_multiplier))
    return known


def _around_mean(gradients: CompletionGradients, rows: Tensor, z: float) -> WorstPair:
    """The bounds of some records, from their exact distances.

    ‖g_a − mean‖² is the mean of d(a, b)² over b, less half of the mean of d(b, c)² over all pairs.
    """
    if not len(rows):
        return WorstPair()
    squares, squared = gradients.exactly(rows)
    around = squared.mean(dim=2).amax(dim=1) - squared.mean(dim=(1, 2)) / 2
    distance = _distance_bound(around * (1 + ROUNDING))
    term = _term_bound(_growth(squares, z), distance, z)
    best = int(term.argmax())
    return WorstPair(float(distance.max()), float(term[best]), int(rows[best]))


def _exact(gradients: CompletionGradients, rows: Tensor, z: float) -> WorstPair:
    """Over all pairs of values of some records."""
    if not len(rows):
        return WorstPair()
    squares, squared = gradients.exactly(rows)
    a = _growth(squares, z)
    terms = _terms(a[:, :, None], a[:, None, :], squared, z)
    best = int(terms.argmax())
    count = squared.shape[1]
    row, pair = divmod(best, count * count)
    return WorstPair(
        min(float(squared.max().sqrt()), MAX_CLIPPED_DISTANCE),
        min(float(terms.view(-1)[best]), membership_term(z)),
        int(rows[row]),
        divmod(pair, count),
    )


def _upper_bounds(
    gradients: CompletionGradients, rows: Tensor, landmarks: int, z: float
) -> tuple[Tensor, Tensor]:
    """What no pair of values of a record exceeds, difference and term [record].

    Every value t belongs to its nearest landmark l, at most ρ(l) away: d(s, t) ≤ d(s, l) + ρ(l).
    """
    chosen: Rows = ALL if len(rows) == len(gradients.norms) else rows  # no copy of all of them
    squares = gradients.norms[chosen].to(ROUGH) ** 2
    places = _in_the_middle(squares.shape[1], landmarks).to(squares.device)
    both = squares[:, places, None] + squares[:, None, :]
    products = gradients.products(chosen, places, dtype=ROUGH)
    distances = both.mul_(1 + SLACK).sub_(products, alpha=2).clamp_(min=0).sqrt_()
    a = _growth(squares, z)
    nearest, cell = distances.min(dim=1)
    empty = torch.zeros_like(distances[:, :, 0])
    radius = empty.scatter_reduce(1, cell, nearest, "amax")
    high = empty.scatter_reduce(1, cell, a, "amax")[:, :, None]
    low = (empty + math.inf).scatter_reduce(1, cell, a, "amin")[:, :, None]
    distances.add_(radius[:, :, None])
    difference = distances.amax(dim=(1, 2))
    own = a[:, None, :]
    spread = torch.maximum(own - low, high - own).clamp_(min=0).square_()
    growth = distances.square_().mul_(-0.5 / z**2).expm1_().mul_(own).mul_(high)
    return difference, spread.sub_(growth, alpha=2).amax(dim=(1, 2))


def _in_the_middle(values: int, parts: int) -> Tensor:
    """The places in the middle of equal parts: neighbours in a list are often neighbours at all."""
    return ((torch.arange(parts) + 0.5) * values / parts).long()


def _foremost(bounds: tuple[Tensor, Tensor], found: WorstPair) -> Tensor:
    """The places of the records with the largest bounds, where these exceed what was found."""
    first: Tensor = torch.cat([bound.topk(FEW).indices for bound in bounds]).unique()
    return first[torch.isin(first, _above(bounds, found))]


def _above(bounds: tuple[Tensor, Tensor], found: WorstPair) -> Tensor:
    """The places of records that may exceed what was found."""
    difference, term = ((bound * (1 + SLACK)).double() for bound in bounds)
    return ((difference > found.difference) | (term > found.term)).nonzero()[:, 0]


def _candidates(
    lower: tuple[Tensor, Tensor], upper: tuple[Tensor, Tensor], known: WorstPair
) -> Tensor:
    """Records whose upper bound reaches what some record has for certain."""
    keep = torch.zeros_like(lower[0], dtype=torch.bool)
    for reached, possible, so_far in zip(lower, upper, (known.difference, known.term), strict=True):
        keep |= possible * (1 + SLACK) >= max(float(reached.max()) * (1 - SLACK), so_far)
    return keep.nonzero()[:, 0]


def _terms(a: Tensor, b: Tensor, squared: Tensor, z: float) -> Tensor:
    """(a − b)² + 2 a b (1 − e^(−d²/2z²))."""
    return (a - b) ** 2 - 2 * a * b * torch.expm1(-squared / (2 * z**2))


def _term_bound(a: Tensor, distance: Tensor, z: float) -> Tensor:
    """(max a − min a)² + 2 (max a)² (1 − e^(−D²/2z²)), at most what clipping allows [record]."""
    high, low = a.amax(dim=1), a.amin(dim=1)
    rest = -torch.expm1(-(distance**2) / (2 * z**2))
    return ((high - low) ** 2 + 2 * high**2 * rest).clamp(max=membership_term(z))


def _distance_bound(around: Tensor) -> Tensor:
    """From the largest squared distance to the mean to the diameter [record]."""
    return (2 * around.double().sqrt()).clamp(max=MAX_CLIPPED_DISTANCE)


def _growth(squares: Tensor, z: float) -> Tensor:
    """What a norm adds: a = e^(n²/2z²)."""
    return (squares / (2 * z**2)).clamp(max=LARGEST_EXPONENT).exp()


def _squares(gradients: CompletionGradients) -> Tensor:
    return gradients.norms**2
