"""The answers of models about records: all that a membership attack may see.

p is the probability that the model gives to a record's true class. Both ln p and ln(1 - p) are
kept, because neither can be had from the other where p is close to 0 or 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dprime import validate
from dprime.data import arrays
from dprime.data.dataset import Dataset

if TYPE_CHECKING:
    from torch import nn

    from dprime.train import Trained

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

NAMES = ("log_p", "log1m_p")

BATCH = 1024  # records that a module is asked about at once


@dataclass(frozen=True, eq=False)
class Signals:
    """The confidence of models: ln p and ln(1 - p) of the true class [..., record]."""

    log_p: Floats = field(repr=False)
    log1m_p: Floats = field(repr=False)

    def __post_init__(self) -> None:
        for name in NAMES:
            given = arrays.numbers(name, getattr(self, name))
            object.__setattr__(self, name, arrays.frozen(given, np.float64))
        if self.log_p.shape != self.log1m_p.shape or (self.log_p > 0).any():
            wanted, remedy = "logarithms, 0 at most, both alike", "use Signals.from_logits"
            raise validate.invalid_input("log_p", "something else", wanted, remedy)

    @classmethod
    def from_logits(cls, logits: ArrayLike, labels: ArrayLike) -> Self:
        """The confidence from logits [..., record, class], or from the one logit of class 1."""
        outputs = arrays.numbers("logits", logits).astype(np.float64)
        places = arrays.numbers("labels", labels)
        *_, records, classes = 0, 0, *outputs.shape
        known = np.isin(places, range(max(2, classes)))
        if outputs.ndim < 2 or places.shape != (records,) or not known.all():
            wanted = f"a class from 0 to {max(2, classes) - 1} for each record of the logits"
            remedy = "give logits [..., record, class] and labels [record]"
            raise validate.invalid_input("labels", f"of shape {places.shape}", wanted, remedy)
        with np.errstate(invalid="ignore"):  # a model that diverged has no signals
            if classes == 1:
                logit = np.where(places == 1, outputs[..., 0], -outputs[..., 0])
            else:
                truth = np.broadcast_to(places[:, None] == np.arange(classes), outputs.shape)
                others = scipy.special.logsumexp(np.where(truth, -np.inf, outputs), axis=-1)
                # p = 1 / (1 + Σ e^(other - own)), so logit p = own - ln Σ e^other
                logit = outputs[truth].reshape(outputs.shape[:-1]) - others
            return cls(-np.logaddexp(0.0, -logit), -np.logaddexp(0.0, logit))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.log_p.shape

    @property
    def loss(self) -> Floats:
        """The cross-entropy, -ln p."""
        return -self.log_p

    @property
    def logit(self) -> Floats:
        """ln(p / (1 - p)), the logit-scaled confidence (Carlini et al. 2022)."""
        with np.errstate(invalid="ignore"):
            return np.subtract(self.log_p, self.log1m_p)

    @property
    def probability(self) -> Floats:
        return np.exp(self.log_p)

    @property
    def known(self) -> Bools:
        """True where the answer is finite; a model that diverged has none."""
        return np.isfinite(self.log_p) & np.isfinite(self.log1m_p)

    def of_model(self, model: int | slice) -> Signals:
        """The answers of one of several models [record], or of some of them [model, record]."""
        return Signals(self.log_p[model], self.log1m_p[model])

    def take(self, records: ArrayLike) -> Signals:
        """The answers about some records, by their places or by a mask."""
        places = arrays.places(records, self.shape[-1])
        return Signals(self.log_p[..., places], self.log1m_p[..., places])


def signals_of(model: nn.Module | Trained, records: Dataset, *, device: str = "cpu") -> Signals:
    """The answers about records: [record] for a module, [trial, record] for `Trained`.

    The outputs are read as logits: one for each class, or a single one for class 1. A
    module is asked where it is, in evaluation mode; models of `Trained` on the `device`.
    """
    if records.classes is None:
        remedy = "membership attacks need the probability of a class"
        raise validate.invalid_input("records", "a regression", "records with classes", remedy)
    from dprime.train import Trained  # noqa: PLC0415  all else here works without PyTorch

    if isinstance(model, Trained):
        outputs, axis = _of_trials(model, records, device), 0
    else:
        outputs, axis = _of_module(model, records), -1
    parts = [vars(Signals.from_logits(*each)) for each in outputs]
    return Signals(*(np.concatenate([part[name] for part in parts], axis) for name in NAMES))


def _of_trials(
    trained: Trained, records: Dataset, device: str
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Outputs [trial, record, class] of some models at a time, and labels."""
    import torch  # noqa: PLC0415

    from dprime.data.devices import device_named  # noqa: PLC0415
    from dprime.train.evaluate import outputs_of  # noqa: PLC0415

    network, place = trained.network, device_named(device)
    if trained.weights is None:
        remedy = "train with keep_weights=True"
        raise validate.invalid_input("model", "without its weights", "trained and kept", remedy)
    network.model.to(place)
    x = torch.tensor(records.records, device=place)
    for parts in outputs_of(network, trained.weights.to(place), x):
        yield torch.cat(parts, 1).cpu().numpy(), records.labels
    network.model.cpu()


def _of_module(model: nn.Module, records: Dataset) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Outputs [record, class] about some records at a time, and their labels."""
    import torch  # noqa: PLC0415

    device = next((weight.device for weight in model.parameters()), None)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for start in range(0, len(records), BATCH):
                part = slice(start, start + BATCH)
                x = torch.tensor(records.records[part], device=device)
                yield model(x).cpu().numpy(), records.labels[part]
    finally:
        model.train(was_training)
