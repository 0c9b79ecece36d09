"""The result of canaries in one training: a lower bound on ε, and a verdict on the claim.

Setting. m canaries, each in the training by its own fair coin, and one training with the output y.
A coin decides one thing, whether its canary's gradient is added in the steps where it is drawn:
the number of records, the rate, the steps, the claim and c are the same however the coins fall.
Each canary has a score that depends on y and on nothing that depends on its coin. The c canaries
of the largest scores are guessed to be in; W is the number of right guesses. c is fixed before
looking. Nobody is guessed to be out: a record that was never drawn into a batch looks just like one
that is out, so "out" can never be said with much certainty, and "in" can.

Derivation. Fix all coins but that of canary i. "i is guessed, and so are at least v - 1 others that
are in" is an event in y alone. If i is in, it says: i is guessed and W ≥ v. If i is out: i is
guessed, wrongly, and W ≥ v - 1. With F the claimed curve (largest TPR at an FPR, concave) and
p_k = Pr[W = k], the mean over i and over all other coins (Jensen) is

    (2/m) Σ_{k≥v} k p_k ≤ F((2/m) Σ_{k≥v-1} (c - k) p_k)      for every v,                    (1)

where the 2 is one over the chance of a coin. This is inequality (1) of
`dprime.audit.estimators.one_run` with m/2 in the place of m, and with the claim in one direction,
"in", instead of both. So what is derived there holds here with m/2: `least_total` (Mahloujifar,
Melis and Chaudhuri 2024) for the whole curve, and `exact_p_value` (Steinke, Nasr and Jagielski
2023) for (ε, δ), where all these events say Σ_k (k p_k - e^ε (c - k + 1) p_{k-1})⁺ ≤ (m/2) δ.
Guessing in one direction only makes both stronger: F is concave, so (1) with m/2 says more.

Why the curve and not ε alone. However many guesses are right, the bound on ε cannot pass what so
many guesses can show: 250 right out of 250 show no more than ε = 4.2. A claim of ε = 8 could then
never be refuted. But its curve says much more than its ε at one δ, and that is tested.

Several scores are tested at a level shared between them (Bonferroni), and ties are treated as in
`dprime.audit.estimators.one_run`: the right guesses are those that 95 % of the ways to break them
reach, at 0.95 of the level.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from dprime import validate
from dprime.audit.estimators.base import checked_claim
from dprime.audit.estimators.one_run import (
    AGREEING,
    LARGEST_EPSILON,
    Guessed,
    exact_p_value,
    last_rejected,
    least_total,
    right_above,
)
from dprime.audit.scores import Scores
from dprime.curve import TradeOff
from dprime.privacy_loss import Array
from dprime.text import given, round_down, round_up, told

FEWEST = 50  # fewer canaries show nothing, and coins might fall all on one side
GRID = 20  # the number of guess counts that are tried, up to half the canaries

Outcome = Literal["refuted", "not refuted", "inconclusive", "no claim"]


@dataclass(frozen=True)
class OneRun:
    """The result of the canaries of one training.

    Attributes:
        canaries: their kind.
        count: how many there were, in or out.
        guesses: how many were guessed to be in.
        counted: by score, how many of these guesses were right.
        needed: the claim is refuted from this number of right guesses on; None where not even right
            guesses throughout would refute it, or no claim was tested.
        confidence: of the bound, and of the verdict.
        delta: of the bound on ε.
        bound: with this confidence, the training's ε at `delta` is at least this.
        claimed: the claim's ε at `delta`; None where no claim was tested.
        verdict: "refuted" where the right guesses contradict the certified curve, "inconclusive"
            where no number of them would, "no claim" where none was tested, else "not refuted",
            which is no proof.
        steps: of the training that were seen.
        notes: what else must be known to read this.
    """

    __repr__ = told("canaries", "count", "verdict", "bound", "claimed", "delta")

    canaries: str
    count: int
    guesses: int
    counted: Mapping[str, int]
    needed: int | None
    confidence: float
    delta: float
    bound: float
    claimed: float | None
    verdict: Outcome
    steps: int
    notes: tuple[str, ...] = ()

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted."""
        return self.verdict == "refuted"

    @property
    def right(self) -> int:
        """The right guesses of the better score."""
        return max(self.counted.values())

    @property
    def sentence(self) -> str:
        """The verdict in plain words."""
        found = f"{self.right:,} of the {self.guesses:,} canaries guessed to be in were in"
        if self.verdict == "no claim":
            return f"{found}; no claim was tested."
        claim = f"the claim (ε at most {_up(self.claimed)} at δ = {given(self.delta)})"
        if self.refuted:
            often = round_up(100.0 * (1.0 - self.confidence))
            return (
                f"{found}: {claim} is refuted. Where it is true, so many are right in at most "
                f"{often} % of trainings."
            )
        if self.needed is None:
            return (
                f"{found}: inconclusive, because right guesses throughout would not have refuted "
                f"{claim}; use more canaries."
            )
        return (
            f"{found}: {claim} is not refuted, which does not prove it. {self.needed:,} right "
            f"guesses would refute it at {100 * self.confidence:g} % confidence."
        )

    def report(self) -> str:
        """Bound, verdict and notes, a line each."""
        lines = [
            f"Audit in one run: {self.count:,} {self.canaries}, {self.steps:,} steps.",
            f"At {100 * self.confidence:g} % confidence the ε at δ = {given(self.delta)} of this "
            f"training is at least {round_down(self.bound)}.",
            self.sentence,
            *self.notes,
        ]
        return "\n".join(lines)

    def as_json(self) -> dict[str, object]:
        """Values for JSON; no canary's coin is among them."""
        claimed = None
        if self.claimed is not None:
            value = self.claimed if np.isfinite(self.claimed) else None
            claimed = {"value": value, "kind": "certified", "delta": self.delta}
        return {
            "canaries": self.canaries, "count": self.count, "steps": self.steps,
            "guesses": self.guesses, "right": dict(self.counted), "needed": self.needed,
            "confidence": self.confidence,
            "epsilon": {"value": self.bound, "kind": "lower bound", "delta": self.delta},
            "claimed_epsilon": claimed, "verdict": self.verdict, "sentence": self.sentence,
            "notes": list(self.notes),
        }  # fmt: skip


def _up(epsilon: float | None) -> str:
    return "any number" if epsilon is None or not np.isfinite(epsilon) else round_up(epsilon)


def one_run(
    scores: Mapping[str, Array],
    inside: NDArray[np.bool_],
    claim: TradeOff | None,
    *,
    delta: float = 1e-5,
    confidence: float = 0.95,
    canaries: str = "canaries",
    steps: int = 0,
    notes: tuple[str, ...] = (),
) -> OneRun:
    """The result of canary scores for one training.

    Args:
        scores: one or more scores by name, each with a number for every canary; higher means more
            like "in". They depend on the training's output alone, never on a coin. A score that is
            not finite counts as 0.
        inside: for each canary, how its coin fell.
        claim: the certified curve that is tested, of a record zeroed out or added; None for none.
        delta: of the bound on ε.
        confidence: of the bound and, apart from it, of the verdict.
        canaries: what the report calls them.
        steps: that were seen, for the report.
        notes: for the report.

    >>> rng = np.random.default_rng(0)
    >>> inside = rng.random(1000) < 0.5
    >>> seen = {"score": rng.normal(size=1000) + 4 * inside}
    >>> found = one_run(seen, inside, TradeOff.gaussian(1.0))
    >>> found.verdict, found.guesses, found.right, found.needed
    ('refuted', 125, 125, 121)
    >>> one_run(seen, inside, TradeOff.gaussian(4.0)).verdict
    'inconclusive'
    """
    count = len(inside)
    if count < FEWEST:
        remedy = "fewer show nothing; give for example 1000"
        raise validate.invalid_value("count", count, f"at least {FEWEST} canaries", remedy)
    delta = validate.inner_probability("delta", delta, example="1e-5")
    confidence = validate.inner_probability("confidence", confidence, example=0.95)
    claim = None if claim is None else checked_claim(claim)
    level = AGREEING * (1.0 - confidence) / len(scores)  # Bonferroni over the scores
    guesses, needed = (count // 4, None) if claim is None else plan_guesses(claim, count, level)
    counted = {name: right_guesses(score, inside, guesses) for name, score in scores.items()}
    right = max(counted.values())
    if claim is None:
        verdict: Outcome = "no claim"
    elif needed is None:
        verdict = "inconclusive"
    else:
        verdict = "refuted" if right >= needed else "not refuted"
    return OneRun(
        canaries, count, guesses, counted, needed, confidence, delta,
        bound=lower_epsilon(_seen(count, guesses, right), delta, level),
        claimed=None if claim is None else claim.epsilon(delta),
        verdict=verdict, steps=steps, notes=notes,
    )  # fmt: skip


def _seen(count: int, guesses: int, right: int) -> Guessed:
    """The most guesses: half the canaries, rounded up, because only "in" is guessed."""
    return Guessed(-(-count // 2), guesses, right)


def right_guesses(scores: Array, inside: NDArray[np.bool_], guesses: int) -> int:
    """How many of the largest scores belong to canaries that are in, at least, however ties break.

    >>> inside = np.array([True, True, False, True, False])
    >>> right_guesses(np.array([5.0, 4.0, 3.0, np.nan, -1.0]), inside, 3)
    2
    """
    scores = np.where(np.isfinite(scores), scores, 0.0)
    last = np.partition(scores, len(scores) - guesses)[len(scores) - guesses]
    return right_above(Scores(scores[inside], scores[~inside]), last, guesses, 1 - AGREEING)


def lower_epsilon(seen: Guessed, delta: float, level: float) -> float:
    """The largest ε that the right guesses reject at a level; 0 where they reject none."""
    return last_rejected(lambda e: exact_p_value(seen, e, delta) <= level, LARGEST_EPSILON)


@lru_cache(64)
def plan_guesses(claim: TradeOff, count: int, level: float) -> tuple[int, int | None]:
    """How many canaries to guess, and how many right guesses refute the claim (None: no number).

    It depends on the claim, the canaries and the level only, so it is fixed before looking. A
    large claim allows a few guesses to be right throughout: then only many guesses can refute it.
    For each number of guesses there is a least number of right ones that refutes the claim. The
    number taken does so against the weakest attacker, as measured by the d′ of Gaussian scores.

    >>> plan_guesses(TradeOff.gaussian(0.5), 1000, 0.02375)
    (100, 87)
    >>> plan_guesses(TradeOff.gaussian(1.5), 1000, 0.02375)
    (200, 200)
    >>> plan_guesses(TradeOff.gaussian(2.0), 1000, 0.02375)
    (250, None)
    """
    best: tuple[float, int, int] | None = None
    for guesses in sorted({max(1, round(count / 2 * k / GRID)) for k in range(1, GRID + 1)}):
        needed = _needed(claim, count, guesses, level)
        if needed is None:
            continue
        reached_at = _d_prime_for(needed, guesses, count)
        if best is None or reached_at < best[0]:
            best = reached_at, guesses, needed
    return (count // 4, None) if best is None else best[1:]


def _needed(claim: TradeOff, count: int, guesses: int, level: float) -> int | None:
    """The least number of right guesses that refutes the claim: more right ones do so too."""

    def refutes(right: int) -> bool:
        return least_total(claim.shape.fpr, _seen(count, guesses, right), level) > 1

    if not refutes(guesses):
        return None
    return bisect.bisect_left(range(guesses + 1), True, key=refutes)


def _d_prime_for(right: int, guesses: int, count: int) -> float:
    """The d′ of Gaussian scores at which this number of right guesses is expected, rounded.

    Half of the canaries are in, N(d′, 1), half are out, N(0, 1). Those above a threshold t are
    guessed: a share Φ(d′ - t) of the one half, and Φ(-t) of the other.
    """
    above = 2 * (right - 0.5) / count, 2 * (guesses - right + 0.5) / count
    inside, outside = scipy.special.ndtri(above)
    return max(0.0, float(inside - outside))
