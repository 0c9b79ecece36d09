"""The scores of an audit's trials, checked, and the one rule that turns them into answers.

The attacker says "member" where a score lies strictly above the threshold: ties need no luck.

How far the scores of two worlds lie apart, d′, is an estimate, which bounds nothing. It follows
from the area A under the ROC curve: the share of pairs, one trial of each world, in which the one
with the record has the higher score; a tie counts half.
"""

from __future__ import annotations

import csv
import io
import math
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dprime import bounded, validate
from dprime.data import arrays
from dprime.privacy_loss import Array
from dprime.roc import wins


@dataclass(frozen=True, eq=False)
class Scores:
    """One score for each trial of world `in` and of world `out`; higher means more like `in`.

    Within a world the scores are independent and of one law, and the worlds are independent of
    each other. Infinite scores are allowed, NaN is refused.
    """

    inside: Array
    outside: Array

    @staticmethod
    def checked(in_scores: ArrayLike, out_scores: ArrayLike) -> Scores:
        return Scores(_checked("in_scores", in_scores), _checked("out_scores", out_scores))

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self.inside), len(self.outside)

    def false_positives(self, threshold: float) -> int:
        return int((self.outside > threshold).sum())

    def false_negatives(self, threshold: float) -> int:
        return int((self.inside <= threshold).sum())

    def sorted(self) -> Scores:
        return Scores(np.sort(self.inside), np.sort(self.outside))

    def mirrored(self) -> Scores:
        """The same game for the answer "not a member": worlds exchanged, scores negated."""
        return Scores(-self.outside, -self.inside)

    def turned(self) -> Scores:
        """The same where low scores mean "member"; what failed (∞) still counts against it."""
        return Scores(
            np.where(np.isinf(self.inside), -np.inf, -self.inside),
            np.where(np.isinf(self.outside), np.inf, -self.outside),
        )

    def split(self, share: float, seed: int) -> tuple[Scores, Scores]:
        """A share of each world to choose with, and the rest to count; neither is empty.

        Which trial goes where is drawn without looking at any score, so the rest is as good as a
        sample that nobody has seen, also where the scores came sorted.
        """
        rng = np.random.default_rng(seed)
        held_out, counted = [], []
        for world in (self.inside, self.outside):
            order = rng.permutation(len(world))
            held = min(max(1, int(share * len(world))), len(world) - 1)
            held_out.append(world[order[:held]])
            counted.append(world[order[held:]])
        return Scores(*held_out), Scores(*counted)


def _checked(name: str, scores: ArrayLike) -> Array:
    row = arrays.numbers(name, scores).astype(np.float64)
    if row.ndim != 1 or len(row) < 2:
        shown, wanted = f"of shape {row.shape}", "a row of two or more numbers"
        remedy = "give one score for each trial, such as [0.3, 1.7, 0.9]"
        raise validate.invalid_input(name, shown, wanted, remedy)
    if missing := int(np.isnan(row).sum()):
        remedy = "say what a trial without a score means, such as -inf for not a member"
        raise validate.invalid_input(name, f"NaN in {missing} of {len(row)}", "free of NaN", remedy)
    return row


class Separation(NamedTuple):
    """An estimate of d′ between the ends of its interval; the upper one may be infinite."""

    low: float
    value: float
    high: float


def separation(in_scores: ArrayLike, out_scores: ArrayLike, confidence: float = 0.95) -> Separation:
    """An adversary's d′ with its interval, from the ranks of its scores.

    d′ = √2 Φ⁻¹(A) is exact for Gaussian scores of equal variance, and ranks are robust to long
    tails. The error is that of DeLong et al. 1988. It fails if the worlds are fully separated; then
    trials are paired, each pair is right with probability A, and the interval is Clopper and
    Pearson's, open on the far side.

    >>> rng = np.random.default_rng(1)
    >>> found = separation(rng.normal(1.0, 1.0, 500), rng.normal(0.0, 1.0, 500))
    >>> found.low < 1.0 < found.high
    True
    """
    validate.inner_probability("confidence", confidence, example=0.95)
    inside, outside = finite_scores("in_scores", in_scores), finite_scores("out_scores", out_scores)
    n, m = len(inside), len(outside)
    beaten, beats = wins(inside, outside) / m, 1 - wins(outside, inside) / n
    share, tail = float(beaten.mean()), (1 - confidence) / 2
    pairs = min(n, m)
    half = 1 / (2 * n * m)  # half a pair of trials
    value = _distance(min(max(share, half), 1 - half))
    edge = tail ** (1 / pairs)  # Clopper and Pearson 1934, all of `pairs` right
    if share >= 1 - half:
        return Separation(min(_distance(edge), value), value, math.inf)
    if share <= half or pairs < 2:
        low, high = _distance(half), _distance(1 - edge)
        return Separation(min(low, value), value, max(high, value))
    variance = beaten.var(ddof=1) / n + beats.var(ddof=1) / m  # DeLong et al. 1988
    slope = 2 * math.sqrt(math.pi) * math.exp(float(scipy.special.ndtri(share)) ** 2 / 2)
    width = -float(scipy.special.ndtri(tail)) * slope * math.sqrt(variance)
    return Separation(value - width, value, value + width)


def finite_scores(name: str, scores: ArrayLike) -> Array:
    """The finite ones of a list of scores [trial]."""
    array = np.asarray(scores, dtype=np.float64)
    kept = array[np.isfinite(array)]
    if array.ndim != 1 or not len(kept):
        shown, wanted = f"of shape {array.shape}", "a list of numbers, not all infinite or NaN"
        raise validate.invalid_input(name, shown, wanted, "give one score a trial")
    return kept


def _distance(area: float) -> float:
    return math.sqrt(2) * float(scipy.special.ndtri(area))


WORLDS = {"in": "in", "out": "out", "1": "in", "0": "out"}
"""What a file may call the worlds."""

LARGEST = 1_000_000_000  # bytes of a file of scores


def read_scores(path: Path) -> tuple[Array, Array]:
    """The scores of world `in` and of world `out` in a CSV file with a header."""
    found = {"in": array("d"), "out": array("d")}
    content = io.BytesIO(bounded.read_bytes(path, LARGEST, "give the path of a CSV file"))
    try:
        reader = csv.reader(io.TextIOWrapper(content, "utf-8-sig", newline=""))
        places = _columns(next(reader, []))
        for row in filter(None, reader):
            score, world = (row[place] if place < len(row) else "" for place in places)
            line = reader.line_num
            validate.one_of(f"world in line {line}", world.strip().lower(), tuple(WORLDS))
            number = validate.parse(f"score in line {line}", score)
            found[WORLDS[world.strip().lower()]].append(number)
    except (UnicodeDecodeError, csv.Error) as error:
        wanted = f"a CSV file to read ({error})"
        raise validate.invalid_value("scores", str(path), wanted, "give its path") from None
    return np.asarray(found["in"]), np.asarray(found["out"])


def _columns(header: list[str]) -> tuple[int, int]:
    """Where the scores and the worlds are."""
    if [header.count(name) for name in ("score", "world")] != [1, 1]:
        shown = f"one with {', '.join(header) or 'nothing'}"
        remedy = "give a header with score and world, and in or out as the world"
        wanted = "a CSV file with the columns score and world, once each"
        raise validate.invalid_input("scores", shown, wanted, remedy)
    return header.index("score"), header.index("world")
