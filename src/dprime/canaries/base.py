"""Canaries: planted records whose presence was decided by coins, and scores that must not tell it.

What every kind of canary shares: coins from a secret seed, a state to save, and the result.

The coins must be independent of all other randomness in the training, above all of the noise. So
they come from a separate generator, of another kind than PyTorch's, and every stream includes a tag
of dprime: a training or a NumPy generator with the same seed shares nothing with it.

Coins, scores and the state must stay with whoever trains, because the certificate covers the
weights alone. Each kind of canary says what may be published of its report.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed

from dprime import validate
from dprime.canaries.one_run import FEWEST, OneRun, one_run
from dprime.curve import TradeOff
from dprime.interop import from_opacus
from dprime.monitor.ledger import NoGuarantee
from dprime.monitor.opacus_training import OpacusTraining
from dprime.monitor.tails import without_tails
from dprime.monitor.watcher import Watcher
from dprime.privacy_loss import Array
from dprime.seeds import check_seed, fresh_seed

Indices = NDArray[np.int64]

COINS, PLACES, BATCHES, RECORDS = range(4)  # the purposes of randomness, each with its own stream
PUBLIC_SIZE = "zero-out"  # the adjacency that canaries test: each counts, or counts for nothing

TAG = int.from_bytes(b"dprime canaries")
"""Makes these streams differ from those that anybody else draws from the same seed."""


class Canaries(Watcher):
    """Canaries of any kind; an independent fair coin decides whether each is in the training."""

    summed: ClassVar[tuple[str, ...]]
    """What is added up for each canary from step to step, and saved."""

    def __init__(self, count: int, *, seed: int | None = None, confidence: float = 0.95) -> None:
        self.count = validate.whole("count", count, example=1000)
        if self.count < FEWEST:
            remedy = "fewer show nothing; give for example 1000"
            raise validate.invalid_value("count", count, f"at least {FEWEST}", remedy)
        self.confidence = validate.inner_probability("confidence", confidence, example=0.95)
        self._seed = fresh_seed() if seed is None else check_seed(seed)
        self._steps = 0
        self._lost = 0
        self._training: OpacusTraining | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(count={self.count})"

    def _stream(self, purpose: int, step: int = 0) -> np.random.Generator:
        """The random generator for one purpose at one step, always from its beginning."""
        key = (TAG, purpose, step)
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=key))

    @property
    def _inside(self) -> NDArray[np.bool_]:
        """The coins of the canaries: True for in."""
        return self._stream(COINS).random(self.count) < 0.5

    def start(self, training: OpacusTraining) -> None:
        """Refuse a second training, and one whose claim is not about adding one record."""
        if self._training is not None:
            raise validate.invalid_input(
                "canaries", "those of another training", "new ones for each training",
                f"make a {type(self).__name__} for this one",
            )  # fmt: skip
        if not training.poisson:
            raise validate.invalid_input(
                "data_loader", "not Poisson", "a Poisson one for canaries",
                "a canary is in or out, and adding a record to shuffled batches is not covered by "
                "any certified curve; call make_private with poisson_sampling=True",
            )  # fmt: skip
        if distributed.is_available() and distributed.is_initialized():
            raise validate.invalid_input(
                "training", "distributed", "on one process for canaries",
                "audit a training of the same settings on one process",
            )  # fmt: skip
        self._training = training

    def result(self, claim: TradeOff | None = None, *, delta: float = 1e-5) -> OneRun:
        """The result of the canaries for the training so far.

        Ask once, at the end: the confidence holds for each result alone, not for several together.
        The result is for whoever trains; each kind of canary says what may be published.

        Args:
            claim: the certified curve to test, for a record zeroed out or added. By default it is
                what the monitor certifies for the whole training, including the steps before a
                resume. If the monitor certifies nothing, it is the curve of the steps that the
                privacy engine's accountant has recorded; if their number differs from what the
                canaries saw, there is no verdict, and a note says why.
            delta: of the bound on ε.
        """
        if not self._steps:
            raise validate.invalid_input(
                "result", "asked for before any step", "asked for after the training", "train first"
            )
        notes = self._notes()
        if claim is None:
            claim = self._certified()
        if claim is None:
            claim, missing = self._recorded()
            notes += missing
        return one_run(
            self._scores(), self._inside, claim, delta=delta, confidence=self.confidence,
            canaries=self.name, steps=self._steps, notes=tuple(notes),
        )  # fmt: skip

    def report(self) -> str:
        """The result's lines; empty before the first step."""
        return self.result().report() if self._steps else ""

    def _certified(self) -> TradeOff | None:
        """The monitor's curve of the whole training with ideal noise; None where it has none.

        The noise's tails cost something only in events far rarer than canaries can show; counting
        them would only hide how large the claimed ε is.
        """
        mechanism = None if self._training is None else without_tails(self._training.claim())
        if mechanism is None or isinstance(mechanism, NoGuarantee):
            return None
        return mechanism.curve(PUBLIC_SIZE)

    def _recorded(self) -> tuple[TradeOff | None, list[str]]:
        """The curve of what Opacus' accountant recorded; or None, and a note that says why."""
        assert self._training is not None
        history = list(self._training.privacy_engine.accountant.history)
        recorded = sum(steps for _, _, steps in history)
        if recorded == self._steps:
            noisy = min(noise for noise, _, _ in history) > 0
            return (from_opacus(history).curve(PUBLIC_SIZE) if noisy else None), []
        missing = "the accountant's state" if recorded < self._steps else "the monitor's state"
        return None, [
            f"No verdict: Opacus' accountant has recorded {recorded:,} steps, and the canaries saw "
            f"{self._steps:,}. Where the training was resumed, load {missing} too; or ask for "
            "result(claim=monitor.curve())."
        ]

    @abstractmethod
    def _scores(self) -> dict[str, Array]:
        """Each score, with a number for every canary."""

    def _notes(self) -> list[str]:
        if not self._lost:
            return []
        return [
            f"{self._lost:,} of the steps had numbers that were not finite, which tell nothing "
            "here: look at the training."
        ]

    def state_dict(self) -> dict[str, Any]:
        """The state to save with a checkpoint, which must be kept secret.

        It reveals the coins, and scores from which the noise can be computed: the certificate does
        not hold against anyone who has the state and the weights.
        """
        sums = {name: torch.from_numpy(vars(self)[f"_{name}"].copy()) for name in self.summed}
        return sums | {
            "kind": self.name, "count": self.count, "seed": self._seed, "steps": self._steps,
            "lost": self._lost,
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, with the same coins."""
        for name, own in (("kind", self.name), ("count", self.count)):
            if state.get(name) != own:
                remedy = "make the canaries as they were made for the training that was saved"
                what, wanted = f"the state's {name}", repr(own)
                raise validate.invalid_value(what, state.get(name), wanted, remedy)
        self._seed = int(state["seed"])
        self._steps, self._lost = int(state["steps"]), int(state["lost"])
        for name in self.summed:
            vars(self)[f"_{name}"] = state[name].cpu().numpy().copy()


class WeightIndex:
    """Weights out of all parameters, by their positions in these laid end to end, ascending.

    Each stands in the parameter `owner` [place] at `offset` [place].

    >>> places = WeightIndex(np.array([1, 4]), [torch.zeros(2, 2), torch.zeros(3), torch.zeros(1)])
    >>> places.owner.tolist(), places.offset.tolist()
    ([0, 1], [1, 0])
    >>> places.read([torch.tensor([5.0, 6, 7, 8]), torch.tensor([1.0, 2, 3]), torch.tensor([9.0])])
    tensor([6., 1.])
    """

    def __init__(self, flat: Indices, parameters: Sequence[Tensor]) -> None:
        sizes = np.array([p.numel() for p in parameters])
        ends = np.cumsum(sizes)
        self.owner = np.searchsorted(ends, flat, side="right").astype(np.int64)
        self.offset = flat - (ends - sizes)[self.owner]
        self._own = [
            torch.from_numpy(self.offset[self.owner == k]).to(p.device)
            for k, p in enumerate(parameters)
        ]

    def read(self, parts: Iterable[Tensor]) -> Tensor:
        """[..., place]: what stands there in parts [..., weight of a parameter]."""
        pairs = zip(parts, self._own, strict=True)
        found = [part.index_select(-1, own) for part, own in pairs if own.shape[0]]
        return torch.cat(found, dim=-1)
