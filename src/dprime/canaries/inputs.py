"""Input canaries: planted records that go through the loader, the model, the loss and the clipping.

They lie far outside the data, so that their gradients are far longer than the clipping norm. If the
clipping is missing or wrong anywhere on their way, those that are in pull the training hard.

Score. At a step that is looked at, u is the noisy sum and g_k the gradient of canary k at the
weights before the step. The score asks how much of each canary's direction is in u, the others'
being accounted for: least squares, u ≈ Σ_k x_k g_k / ‖g_k‖, with a small ridge, over a random part
of the weights. x_k is divided by its error, as the canaries that are not in the batch show it: most
are not. So a training that grows without limit is seen as well as any other. Added up is the
logarithm of the likelihood ratio that x_k would have if it stood out by four such errors; what is
not finite adds nothing. All of it is a function of what the training gave out, and of records that
the curve's attacker chose, so the score obeys the certified curve.

Coins. Every canary has a place in the data, in or out. A place whose canary is out is drawn like
any other and then skipped, so it adds nothing to the batch. So the number of records, and with it
rate, expected batch size, steps and claim, are the same however the coins fall: a coin decides
whether one gradient is added, which is what the curve of adding a record is about.

Records. Canaries must not depend on the data: if one record of the data changed all canaries, the
training would differ in more than that record, and its certificate would be void. `crafted` uses
the shape and the type of a record, never its values.

What may be published. Scores, and the number of right guesses, are functions of the noisy sums, the
canaries and the coins, so the certificate of the steps covers them for every record of the data.
The state tells the coins, and who knows them before the end can spoil the audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, func, nn
from torch.utils.data import Dataset

from dprime import validate
from dprime.canaries.base import PLACES, RECORDS, Canaries, WeightIndex
from dprime.canaries.gradients import log_ratio
from dprime.monitor.opacus_training import OpacusTraining, own_criterion
from dprime.privacy_loss import Array
from dprime.train.hookless import without_hooks

MOST_NUMBERS = 2**24  # the most numbers of canary gradients that are computed at a time (64 MiB)
WEIGHTS_PER_CANARY = 4  # the number of weights in the least squares, for each canary

RIDGE = 1e-3
"""The number added to squared lengths, which are 1, so that similar directions do no harm."""

STANDS_OUT = 4.0  # the share that a canary in the batch is expected to have, in typical errors
NORMAL_MEDIAN = 0.6745  # the median of |N(0, 1)|

Loss = Callable[[Tensor, Tensor], Tensor]


@final
class InputCanaries(Canaries):
    """An audit in one run by records that are mixed into the data.

    Make the data loader from `with_canaries(dataset)`, then call make_private as ever. The data set
    grows by `count` places, whether their canaries are in or out, so rate and steps tell no coin.

    Args:
        records: [canary, ...], far from the data, but not made from them: see `crafted`.
        labels: [canary, ...], not made from the data either.
        loss: of (outputs, labels) for a batch; the monitor's criterion if not given.
        every: look at one of this many steps; each look costs about as much as a training step
            on all canaries.
        seed: of the coins; drawn in secret if not given. Give one where the training is to be
            resumed: the same records must be mixed in again.
        confidence: of the bound on ε, and of the verdict.
    """

    name: ClassVar[str] = "input canaries"
    summed: ClassVar[tuple[str, ...]] = ("total",)

    def __init__(
        self,
        records: Tensor,
        labels: Tensor,
        *,
        loss: Loss | None = None,
        every: int = 5,
        seed: int | None = None,
        confidence: float = 0.95,
    ) -> None:
        super().__init__(len(records), seed=seed, confidence=confidence)
        if len(labels) != len(records):
            wanted = f"{len(records)} of them"
            raise validate.invalid_value("labels", len(labels), wanted, "give one label for each")
        self.records, self.labels = records, labels
        self.every = validate.whole("every", every, example=5)
        self._loss = loss
        self._mixed: Dataset[Any] | None = None
        self._total = np.zeros(self.count)
        self._norm: float | None = None

    @classmethod
    def crafted(
        cls,
        dataset: Any,
        count: int = 500,
        *,
        classes: int,
        scale: float = 1.0,
        factor: float = 10.0,
        seed: int | None = None,
        **options: Any,
    ) -> Self:
        """Canaries for a data set of (tensor, class) pairs.

        Each is a random direction, `factor` times as long as a record can be, with a random class.
        It does not depend on the values of any record, because canaries that follow the data would
        reveal them. So give `scale` and `classes` as they are known without looking at the data.

        Args:
            dataset: what is trained on; shape and type of its first pair are used.
            count: how many canaries.
            classes: how many there are; labels are drawn from 0 to classes - 1.
            scale: the largest number in a record, roughly, such as 1 for pixels from 0 to 1. A
                record of d numbers is at most scale √d long.
            factor: how many times as long as a record.
            seed: of records and coins; drawn in secret if not given.
            options: of `InputCanaries`.

        >>> from torch.utils.data import TensorDataset
        >>> data = TensorDataset(torch.rand(30, 4), torch.arange(30) % 3)
        >>> canaries = InputCanaries.crafted(data, 60, classes=3, seed=1)
        >>> float(canaries.records[0].norm()), len(canaries.with_canaries(data))
        (20.0, 90)
        """
        count = validate.whole("count", count, example=500)
        classes = validate.whole("classes", classes, example=10)
        scale = validate.positive("scale", scale, example=1.0)
        factor = validate.positive("factor", factor, example=10.0)
        record, label = _record_of(dataset[0]), _label_of(dataset[0])
        made = cls(torch.zeros(count, 1), torch.zeros(count), seed=seed, **options)
        rng = made._stream(RECORDS)
        directions = torch.from_numpy(rng.normal(size=(count, record.numel())))
        length = factor * scale * math.sqrt(record.numel())
        directions *= length / directions.norm(dim=1, keepdim=True)
        made.records = directions.to(record.dtype).view(count, *record.shape)
        drawn = torch.from_numpy(rng.integers(classes, size=count))
        made.labels = drawn.to(label.dtype).view(count, *label.shape)
        return made

    def with_canaries(self, dataset: Any) -> Dataset[Any]:
        """The data set with a place for every canary; make the loader of the training from it.

        Where a place is drawn whose canary is out, the batch is one record shorter. Test and
        analyse the model on `dataset` itself.
        """
        _record_of(dataset[0])
        self._mixed = DatasetWithCanaries(dataset, self.records, self.labels, self._inside)
        return self._mixed

    def start(self, training: OpacusTraining) -> None:
        """Refuse a loader without the canaries."""
        super().start(training)
        if self._mixed is None or training.data_loader.dataset is not self._mixed:
            raise validate.invalid_input(
                "data_loader", "over another data set", "over the canaries' with_canaries(dataset)",
                "make the DataLoader from it, then call make_private",
            )  # fmt: skip
        if self._loss is None:
            self._loss = own_criterion(training.criterion)
            if self._loss is None:
                remedy = "give it to the monitor as criterion, or to the canaries as loss"
                raise validate.invalid_input("loss", "missing", "given for input canaries", remedy)
        self._bare = without_hooks(training.module).eval()
        names = {id(p): name for name, p in training.module.named_parameters()}
        self._names = [names[id(p)] for p in training.parameters()]

        shuffled = self._stream(PLACES).permutation(training.size)
        chosen = np.sort(shuffled[: WEIGHTS_PER_CANARY * self.count])
        self._places = WeightIndex(chosen, list(training.parameters()))

    def after_noise(self, training: OpacusTraining) -> None:
        """Score the canaries, at one of `every` steps."""
        self._steps += 1
        if self._steps % self.every:
            return
        noisy = self._places.read(training.noisy()).detach()
        self._lost += not bool(noisy.isfinite().all())
        shares = self._shares(training, noisy)
        self._total += log_ratio(shares, STANDS_OUT, 1.0, training.sample_rate)

    def _shares(self, training: OpacusTraining, noisy: Tensor) -> Array:
        """[canary]: how much of each direction is in the noisy sum, over the typical error."""
        rows = self._directions(training).double()
        squares = rows @ rows.T + RIDGE * torch.eye(self.count).to(rows)
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(squares))
        # Of white noise of variance 1: the diagonal of inverse (squares - ridge) inverse.
        errors = (inverse.diagonal() - RIDGE * inverse.square().sum(1)).sqrt()
        shares = inverse @ (rows @ noisy.double()) / errors
        typical = shares.abs().nanmedian() / NORMAL_MEDIAN  # most canaries are not in the batch
        numbers: Array = (shares / typical).cpu().numpy()
        return numbers

    def _directions(self, training: OpacusTraining) -> Tensor:
        """[canary, chosen weight]: gradients at the weights as they are, of length 1 or 0."""
        weights = {n: p.detach() for n, p in zip(self._names, training.parameters(), strict=True)}
        gradients = func.vmap(func.grad(self._loss_of_one), in_dims=(None, 0, 0))
        rows, lengths, device = [], [], training.device()
        at_once = max(1, MOST_NUMBERS // training.size)
        chunks = zip(self.records.split(at_once), self.labels.split(at_once), strict=True)
        for records, labels in chunks:
            found = gradients(weights, records.to(device), labels.to(device))
            parts = [found[name].flatten(1) for name in self._names]
            rows.append(self._places.read(parts))
            lengths.append(torch.stack([part.norm(dim=1) for part in parts]).norm(dim=0))
        if self._norm is None:
            self._norm = float(torch.cat(lengths).median())
        return nn.functional.normalize(torch.cat(rows)).nan_to_num(0.0, 0.0, 0.0)

    def _loss_of_one(self, weights: dict[str, Tensor], record: Tensor, label: Tensor) -> Tensor:
        assert self._loss is not None
        found = self._loss(func.functional_call(self._bare, weights, record[None]), label[None])
        return found.sum()  # a criterion may give one number a record

    def _scores(self) -> dict[str, Array]:
        return {"share of the sum": self._total}

    def _notes(self) -> list[str]:
        notes = super()._notes()
        assert self._training is not None
        times = (self._norm or 0.0) / self._training.clip_norm
        notes.append(f"The canaries' gradients were {times:.1f} clipping norms long (median).")
        if times < 2:
            notes.append("Clipping was hardly on the test: give canaries that lie farther out.")
        return notes

    def state_dict(self) -> dict[str, Any]:
        """The coins' seed and the score, which are secrets."""
        return super().state_dict() | {"norm": self._norm}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the same coins and score."""
        if self._mixed is not None and state.get("seed") != self._seed:
            raise validate.invalid_input(
                "seed", "another one", "that of the training that was saved",
                "give it when the canaries are made, so that the same records are mixed in",
            )  # fmt: skip
        super().load_state_dict(state)
        self._norm = state["norm"]


class DatasetWithCanaries(Dataset[Any]):
    """A data set with places for further records behind its own, some of which are empty."""

    def __init__(
        self, dataset: Any, records: Tensor, labels: Tensor, inside: NDArray[np.bool_]
    ) -> None:
        self.without_canaries, self.records, self.labels = dataset, records, labels
        self._inside = inside

    def __len__(self) -> int:
        return len(self.without_canaries) + len(self.records)

    def present(self, indices: Sequence[int]) -> list[int]:
        """The indices, out of these, at which there is a record."""
        own = len(self.without_canaries)
        return [i for i in indices if i < own or self._inside[i - own]]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The records of a batch, as loaders ask for them: empty places are skipped."""
        return [self[i] for i in self.present(indices)]

    def __getitem__(self, index: int) -> Any:
        own = len(self.without_canaries)
        if index < own:
            return self.without_canaries[index]
        if not self._inside[index - own]:
            remedy = "take batches from a DataLoader, which skips it"
            raise validate.invalid_input("index", "an empty place", "that of a record", remedy)
        label = self.labels[index - own]
        as_own = isinstance(self.without_canaries[0][1], Tensor)
        return self.records[index - own], label if as_own else label.item()


def _record_of(pair: Any) -> Tensor:
    """The record of a pair, which must be a tensor of numbers."""
    if isinstance(pair, (tuple, list)) and len(pair) == 2:
        record = pair[0]
        if isinstance(record, Tensor) and record.is_floating_point():
            return record
    remedy = "give a data set of such pairs"
    raise validate.invalid_input(
        "dataset", f"of {type(pair).__name__}", "of pairs (tensor of numbers, label)", remedy
    )


def _label_of(pair: Any) -> Tensor:
    """The label of a pair, which must be one number."""
    label = pair[1]
    if isinstance(label, (int, float, np.generic, Tensor)):
        found = torch.as_tensor(label)
        if found.numel() == 1:
            return found
    raise validate.invalid_input(
        "dataset", "one with other labels", "one whose labels are a number each",
        "make records and labels yourself and give them to InputCanaries",
    )  # fmt: skip
