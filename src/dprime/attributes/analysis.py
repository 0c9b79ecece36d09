"""One step's analysis: the worst pair of every attribute, at the weights as they are now."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from dprime import validate
from dprime.attributes import worst_pair
from dprime.attributes.attribute import Attribute
from dprime.attributes.completion_gradients import Completions
from dprime.attributes.twin import Twin
from dprime.attributes.worst_pair import WorstPair
from dprime.monitor.opacus_training import OpacusTraining

Batches = Sequence[tuple[Tensor, Tensor]]  # parts of the records with their targets
NUMBERS_AT_ONCE = 1 << 22  # the numbers that a layer may have for the completions of one part

UNMOVED = 1e-6
"""Gradients that differ by less, relative to their norm, are the same: float32 rounds as much."""

ANALYSES: dict[str, Callable[..., WorstPair]] = {
    "full": worst_pair.full,
    "approximate": worst_pair.approximate,
}


class StepAnalysis:
    """Looks at the records of a step with every value of each attribute."""

    def __init__(self, attributes: Mapping[str, Attribute], analysis: str) -> None:
        self._attributes = attributes
        self._search = ANALYSES[analysis]
        self.reached: set[str] = set()  # the attributes that are known to change some gradient
        self.overflown = 0  # how often gradients were no numbers: then nothing can be analysed

    def worst(
        self, twin: Twin, training: OpacusTraining, noise: float, looked_at: Batches
    ) -> dict[str, WorstPair]:
        """The worst pair of every attribute, over the records that are looked at."""
        return {
            name: self._worst(attribute, twin, training, noise, looked_at)
            for name, attribute in self._attributes.items()
        }

    def _worst(
        self,
        attribute: Attribute,
        twin: Twin,
        training: OpacusTraining,
        noise: float,
        looked_at: Batches,
    ) -> WorstPair:
        """The worst pair of one attribute, over all parts of the records."""
        device = training.device()
        columns = torch.tensor(attribute.places, device=device)
        found, longest, first = WorstPair(), 0.0, 0
        for records, targets in looked_at:
            values = torch.tensor(attribute.values, dtype=records.dtype, device=device)
            size = max(1, NUMBERS_AT_ONCE // (len(values) * twin.widest))
            parts = zip(records.split(size), targets.split(size), strict=True)
            for x, y in parts if len(records) else ():
                completions = Completions(x.to(device), y.to(device), columns, values)
                gradients = twin.gradients(completions, training.clipped_to)
                if not bool(gradients.norms.isfinite().all()):
                    self.overflown += 1
                    return worst_pair.membership(noise)
                longest = max(longest, float(gradients.norms.max()))
                fresh = self._search(gradients, noise, found)
                ahead = fresh.term > found.term  # its place counts from the first of this part
                place = fresh.place + first if ahead else found.place
                found = dataclasses.replace(fresh, place=place)
                first += len(x)
        self._refuse_unreached(attribute, found.difference, longest)
        return found

    def _refuse_unreached(self, attribute: Attribute, difference: float, longest: float) -> None:
        """Refuse an attribute that changes no gradient at the first step that has any."""
        if attribute.name in self.reached or longest == 0:
            return
        if difference <= UNMOVED * longest:
            raise validate.invalid_input(
                f"attribute {attribute.name}", "without effect on every gradient",
                "one that the model sees", "check its columns, and whether the model drops them",
            )  # fmt: skip
        self.reached.add(attribute.name)
