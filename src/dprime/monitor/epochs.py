"""Epochs of a training: passes over the loader in which steps were made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dprime.metrics import MetricValue
from dprime.monitor.sampling import Pass, Sampling


@dataclass(frozen=True, repr=False)
class AtEpoch(MetricValue):
    """A metric at the end of an epoch: which one it was, and the steps until then."""

    epoch: int
    step: int

    def as_json(self) -> dict[str, object]:
        return {"epoch": self.epoch, "step": self.step, **super().as_json()}


class Epochs:
    """Counts the epochs, and says with which step each of them ended.

    A pass over the loader is an epoch if steps were made of it, also where it was left early. It is
    over when its batches are used up, when it was left, or with the first step of a later pass.
    Steps whose batches nobody saw being drawn make an epoch for as many as the loader gives in one,
    and so do batches that each come from another pass, as with `next(iter(loader))`.

    Args:
        sampling: of the loader.
        batches: of steps that were made before.

    """

    def __init__(self, sampling: Sampling, batches: int = 0) -> None:
        self._sampling = sampling
        self._before, self._unseen = divmod(batches, sampling.length)
        self._ends: list[int] = []
        self._open: Pass | None = None
        self._closed: Pass | None = None

    def ends(self, steps: int) -> list[tuple[int, int]]:
        """Each epoch that is over with its last step, where `steps` have been made."""
        one = self._open
        left = one is not None and self._sampling.over(one) and not one.single
        ends = [*self._ends, steps] if left else self._ends
        return [(number, end) for number, end in enumerate(ends, start=self._before + 1)]

    def over(self) -> int:
        return self._before + len(self.ends(0))

    def follows(self, step_of: Pass | None) -> bool:
        """Whether a step is the first after a pass that is thereby over."""
        before = self._open
        later = before is not None and step_of is not None and step_of.number > before.number
        return self._full() if later and self._dissolved() else later

    def step(self, step_of: Pass | None, batches: int) -> bool:
        """Count a step of a pass; True where an epoch is over with it."""
        if step_of is None or step_of.taken > step_of.drawn or (step_of.left and step_of.single):
            self._unseen += batches
            return self._full()
        if step_of is self._closed:  # its last batches came later than it seemed
            self._ends.pop()
            self._closed = None
        if self._open is None or step_of.number > self._open.number:
            self._open = step_of
        return self._sampling.over(self._open)

    def between(self, *, beginning: bool) -> bool:
        """Whether an epoch is over where a loop over the loader begins or has ended."""
        if self._dissolved():
            return self._full()
        if self._open is None:
            return False
        return (beginning and self._open.complete) or self._sampling.over(self._open)

    def _dissolved(self) -> bool:
        """Whether the pass was of a single batch: that is kept for an epoch of many."""
        if self._open is None or not self._open.single:
            return False
        self._open, self._unseen = None, self._unseen + 1
        return True

    def _full(self) -> bool:
        """Whether the steps in no pass fill an epoch, which is then counted as one."""
        if self._unseen < self._sampling.length:
            return False
        self._unseen -= self._sampling.length
        return True

    def end(self, steps: int) -> None:
        self._ends.append(steps)
        self._closed, self._open = self._open, None

    def state_dict(self, steps: int) -> dict[str, Any]:
        return {
            "epoch_ends": [end for _, end in self.ends(steps)],
            "epochs_before": self._before,
            "batches_unseen": self._unseen,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what was saved; the pass that was under way there goes on with the next."""
        self._ends = list(state["epoch_ends"])
        self._before = int(state["epochs_before"])
        self._unseen = int(state["batches_unseen"])
        self._open = self._closed = None
