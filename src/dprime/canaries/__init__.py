"""An audit in the user's own training: planted records or gradients, each in or out by a coin.

coins ──► canaries in the batch ──► noisy sums ──► scores ──► guesses ──► OneRun: a lower bound on ε
"""

from typing import TYPE_CHECKING

from dprime._lazy import lazy
from dprime.canaries.one_run import OneRun, one_run

if TYPE_CHECKING:
    from dprime.canaries.gradients import GradientCanaries
    from dprime.canaries.inputs import InputCanaries

__getattr__, __dir__ = lazy(
    __name__,
    {},
    library="opacus",
    needing={"GradientCanaries": "gradients", "InputCanaries": "inputs"},
)

__all__ = ["GradientCanaries", "InputCanaries", "OneRun", "one_run"]
