"""The baseline: every record is called a member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dprime.membership.attacks.attack import Attack, Evidence, Part
from dprime.membership.signals import Floats


@final
@dataclass(frozen=True)
class Baseline(Attack):
    """The same score for all: its precision is the share of members, and it needs no model.

    >>> from dprime.membership.signals import Signals
    >>> Baseline().scores(Evidence(Signals.from_binary_logits([2.0, 0.0], [1, 1]))).tolist()
    [0.0, 0.0]
    """

    @property
    def name(self) -> str:
        """What it is."""
        return "baseline"

    @property
    def title(self) -> str:
        """What it says."""
        return "Baseline (all members)"

    @property
    def needs(self) -> tuple[Part, ...]:
        """Nothing."""
        return ()

    def _scores(self, evidence: Evidence) -> Floats:
        return np.zeros(evidence.records)
