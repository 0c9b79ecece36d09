"""The scores of an audit's trials, checked, and the one rule that turns them into answers.

The attacker says "member" where a score lies strictly above the threshold: ties need no luck.
"""

from __future__ import annotations

import csv
import io
from array import array
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dprime import bounded, validate
from dprime.data import arrays
from dprime.privacy_loss import Array


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
