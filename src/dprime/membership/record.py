"""What membership inference found: the record that a run keeps, and tables and reports show."""

from __future__ import annotations

from dataclasses import dataclass, field

from dprime.curve import TradeOff
from dprime.membership.confidence import Interval, precision_of_share
from dprime.membership.results import number_flagged
from dprime.membership.shadows import Scored
from dprime.plain import NOT_KEPT
from dprime.text import round_up

VERDICTS = ("refuted", "inconclusive", "not refuted", "no claim")
"""Of the verdicts on several claims the first of these is that on all."""


@dataclass(frozen=True)
class AttackResult:
    """What one attack reached; intervals are over the targets.

    Attributes:
        tpr: at the false-positive rates that can be counted.
        held_out_precision: at thresholds chosen on other records.
        best_precision: of the top i · 2.5 % (Thudi et al. 2024), chosen after looking.
        shuffled_best: the same for scores dealt out at random, which is what it has for nothing.
        top_precision: of calling a fixed share of the records members.
        targets_that_contradict: targets whose answers contradict the claim, at a level corrected
            for the number of attacks, targets and shares; None without a claim.
    """

    attack: str
    title: str
    auc: Interval
    tpr: dict[float, Interval]
    held_out_precision: Interval | None
    best_precision: Interval
    shuffled_best: Interval
    top_precision: Interval
    targets_that_contradict: int | None
    scored: Scored = field(repr=False, metadata=NOT_KEPT)


@dataclass(frozen=True)
class Allowed:
    """What a claim allows attackers with a TPR of `min_tpr`, the top share, and at each FPR.

    An attack that calls fewer members than the top share may be right more often.
    """

    precision: float
    top_precision: float
    tpr: dict[float, float]


@dataclass(frozen=True, eq=False)
class Inference:
    """What was found at one π.

    Attributes:
        min_tpr: of the attackers that the certified precision is for.
        top_share: the share of records that are called members to test the claim.
        certified: whether the claim was computed from the engine's training, not only stated.
        telling: whether answers that are all right would contradict the claim; else no attack can.
        verdict: refuted, not refuted, inconclusive, or no claim. Inconclusive: too few records are
            attacked for any answers to refute it, or a precision lies above the claim and could
            still be luck.
    """

    probability: float
    records: int
    targets: int
    shadows: int
    confidence: float
    min_tpr: float
    top_share: float
    attacks: tuple[AttackResult, ...]
    certified: bool
    telling: bool
    claim: TradeOff | None = field(repr=False, metadata=NOT_KEPT)
    allowed: Allowed | None = field(init=False)
    verdict: str = field(init=False)
    sentence: str = field(init=False)

    def __post_init__(self) -> None:
        for name in ("allowed", "verdict", "sentence"):  # each reads the one before it
            object.__setattr__(self, name, getattr(self, f"_{name}")())

    def _allowed(self) -> Allowed | None:
        if self.claim is None:
            return None
        flagged = number_flagged(self.top_share, self.records)
        return Allowed(
            self.claim.precision(prior=self.probability, min_tpr=self.min_tpr),
            precision_of_share(self.claim, flagged / self.records, self.probability),
            {rate: self.claim.tpr(fpr=rate) for rate in self.attacks[0].tpr},
        )

    def _verdict(self) -> str:
        if self.allowed is None:
            return "no claim"
        if any(each.targets_that_contradict for each in self.attacks):
            return "refuted"
        limit = self.allowed.top_precision
        above = any(each.top_precision.value > limit for each in self.attacks)
        return "inconclusive" if above or not self.telling else "not refuted"

    def _sentence(self) -> str:
        best = max(self.attacks, key=lambda each: each.top_precision.value)
        reached = (
            f"Of the {100 * self.top_share:g} % of records that {best.title} is surest of, "
            f"{100 * best.top_precision.value:.1f} % are members; {100 * self.probability:g} % of "
            "all records are."
        )
        if self.allowed is None:
            why = "is not private" if self.certified else "has no claim"
            return f"{reached} The training {why}: nothing limits what an attack may reach."
        who = "certified curve" if self.certified else "claim"
        limit = f"For that share the {who} allows {round_up(100 * self.allowed.top_precision)} %"
        ends = {
            "refuted": f", which these answers exceed at {100 * self.confidence:g} % confidence: "
            "the claim is refuted.",
            "inconclusive": ". Inconclusive, because the answers are too few: more records or "
            "fewer attacks could tell.",
            "not refuted": ": the claim is not refuted, which does not prove it.",
        }
        return f"{reached} {limit}{ends[self.verdict]}"


@dataclass(frozen=True, eq=False)
class InferenceRecord:
    """What a run keeps of its inferences, one for each π; the verdict is that of all of them."""

    data: str
    inferences: tuple[Inference, ...]
    verdict: str = field(init=False)
    sentence: str = field(init=False)

    def __post_init__(self) -> None:
        verdicts = [each.verdict for each in self.inferences]
        object.__setattr__(self, "verdict", next(word for word in VERDICTS if word in verdicts))
        object.__setattr__(self, "sentence", " ".join(each.sentence for each in self.inferences))
