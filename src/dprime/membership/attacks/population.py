"""Attack P asks whether the target's loss on a record is small beside those on the population.

Source: Ye et al. 2022, "Enhanced membership inference attacks against machine learning models".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dprime.membership.attacks.attack import Attack, Evidence, Part
from dprime.membership.signals import Floats


@final
@dataclass(frozen=True)
class AttackP(Attack):
    """The same threshold on the loss for every record, from records that were not trained on.

    The score is the share of the population whose loss is larger than the record's; an equal loss
    counts half. So "score >= 1 - α" is the attack at a false-positive rate of α: of n population
    records and one more like them, it says "member" of the latter with probability α, up to
    1/(n + 1).

    >>> from dprime.membership.signals import Signals
    >>> truth = np.ones(2)
    >>> target = Signals.from_binary_logits([2.5, 0.0], truth)
    >>> others = Signals.from_binary_logits([1.0, 2.0, 3.0, 0.0], np.ones(4))
    >>> AttackP().scores(Evidence(target, population=others)).tolist()
    [0.75, 0.125]
    """

    @property
    def name(self) -> str:
        """As in the paper."""
        return "attack-p"

    @property
    def title(self) -> str:
        """As in the paper."""
        return "Attack P"

    @property
    def needs(self) -> tuple[Part, ...]:
        """The target on the records in question and on the population."""
        return ("target", "population")

    def _scores(self, evidence: Evidence) -> Floats:
        others, loss = np.sort(evidence.of("population").loss), evidence.target.loss
        smaller = np.searchsorted(others, loss, side="left")
        smaller_or_equal = np.searchsorted(others, loss, side="right")
        share: Floats = 1.0 - (smaller + smaller_or_equal) / (2 * len(others))
        return share
