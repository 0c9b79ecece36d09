"""A lower curve that holds at every point at once, whatever the law of the scores.

Thresholds are taken at fixed *ranks*, half of them at ranks of the largest `out` scores, half at
ranks of the smallest `in` scores. At the r-th largest of n `out` scores:

- FP = Pr[score > threshold] of a fresh `out` score is at most a Beta(r, n + 1 − r) variable.
  Proof: break ties by independent uniform numbers. Then the true share above the r-th largest has
  exactly that law (uniform order statistics), and a strictly larger score is above it in any case.
- FN is the binomial rate of `in` scores at or below the threshold. They are independent of the
  `out` scores, hence of the threshold, so their Clopper-Pearson end holds.

Beta(r, n + 1 − r) is also what Clopper-Pearson has for r − 1 errors, so both ends are one function.
The ranks of `in` scores are the same on the mirrored game (worlds exchanged, scores negated). With
k thresholds each end has the level 1 − √(1 − α/k), so both ends of one threshold hold but for a
probability of α/k (the worlds are independent), and those of all thresholds but for α (Bonferroni).
Then every point lies below the true curve, and so does their concave hull.

A fault may also push the scores the wrong way round, so that members score lower. A low score is as
good an answer as a high one, so the same points are taken of the turned scores, with a share
`TURNED` of α. The expected direction keeps the rest, which costs about one trial in a hundred.

Which ranks: 0.35 n and from there thirds down to 1 gave the largest typical ε and advantage, taken
together, for Gaussian scores of d′ from 0.5 to 4 and n from 100 to 10,000. To share the error
between the ranks exactly, by the probability that no order statistic leaves its limit, was tried:
it needs limits at many ranks to read the other world's rate, and came out below this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final

import numpy as np

from dprime import validate
from dprime.audit.estimators.base import Estimator, Reached, each_of_two, geometric_ranks, upper_end
from dprime.audit.scores import Scores
from dprime.metrics import Reading
from dprime.parameters import limited, parameter
from dprime.shapes import Point, Polygon

TURNED = 0.05  # the share of α that guards against scores that point the wrong way round


@final
@dataclass(frozen=True)
class Band(Estimator):
    """A bound on the whole curve at once: any metric may be read off it afterwards.

    The highest rank is a share of the trials; each rank is by `ratio` smaller than the next.
    """

    largest_rank: float = parameter(0.35, partial(validate.inner_probability, example=0.35))
    ratio: float = parameter(3.0, limited(validate.number, "give 3.0", least=1.01))

    name: ClassVar[str] = "band"
    whole_curve: ClassVar[bool] = True

    def reached(
        self, scores: Scores, metric: Reading, delta: float, alpha: float, seed: int
    ) -> Reached:
        points = [
            *self._one_way(scores, (1.0 - TURNED) * alpha),
            *self._one_way(scores.turned(), TURNED * alpha),
        ]
        return Polygon.from_points(points), {}

    def _one_way(self, scores: Scores, alpha: float) -> Iterator[Point]:
        """Points that all lie below the true curve but for a probability of alpha."""
        ranks_in, ranks_out = (self.ranks(trials) for trials in scores.sizes)
        level = each_of_two(alpha / (len(ranks_in) + len(ranks_out)))
        ordered = scores.sorted()
        mirrored = Scores(-ordered.outside[::-1], -ordered.inside[::-1])
        yield from _points(ordered, ranks_out, level)
        # A test for "not a member" has (FNR, TNR) for (FPR, TPR).
        yield from ((1.0 - tnr, 1.0 - fnr) for fnr, tnr in _points(mirrored, ranks_in, level))

    def ranks(self, trials: int) -> list[int]:
        return geometric_ranks(trials, self.largest_rank, self.ratio)


def _points(ordered: Scores, ranks: list[int], level: float) -> Iterator[Point]:
    """(FPR, TPR) at thresholds at these ranks of the largest `out` scores."""
    inside, outside = ordered.sizes
    thresholds = ordered.outside[outside - np.array(ranks)]
    missed = np.searchsorted(ordered.inside, thresholds, side="right")  # at or below: no member
    for rank, errors in zip(ranks, missed, strict=True):
        yield upper_end(rank - 1, outside, level), 1.0 - upper_end(int(errors), inside, level)
