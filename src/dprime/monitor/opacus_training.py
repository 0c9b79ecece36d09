"""A training that Opacus has made private: what dprime reads of it, in one place."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from types import CodeType
from typing import Any

import opacus
import torch
from opacus.grad_sample import AbstractGradSampleModule, GradSampleModule
from opacus.layers.dp_rnn import DPRNNBase, RNNLinear
from opacus.optimizers import (
    AdaClipDPOptimizer,
    DPOptimizer,
    DPOptimizerFastGradientClipping,
    DPPerLayerOptimizer,
)
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from torch import Tensor, nn

from dprime import validate
from dprime.mechanisms import Mechanism
from dprime.monitor.contents import modules_of
from dprime.monitor.sampling import Sampling

FIRST_ADAPTIVE = (1, 6)
"""Before this release Opacus recorded the raised noise of adaptive clipping as the spent one."""

Settings = tuple[float, tuple[object, ...], tuple[object, ...]]
"""The noise multiplier; the norms that clip; sampling rate, divisor and reduction of the loss."""

OPACUS = str(Path(opacus.__file__).parent)
"""The folder of Opacus' code."""

ADAPTS_BY = (
    "target_unclipped_quantile", "clipbound_learning_rate", "unclipped_num_std", "max_clipbound",
    "min_clipbound",
)  # fmt: skip
"""The settings by which an adaptive clipping norm follows the noisy count of unclipped records."""

PASSES_ON = (GradSampleModule.forward, AbstractGradSampleModule.forward)
"""The code of `forward` in a wrapper of Opacus that only calls the model."""

FINE = 1.2e-7
"""The ε of float32: with this precision or a finer one rounding is left out."""


@dataclass(frozen=True, eq=False)
class OpacusTraining:
    """The objects of one training, as `PrivacyEngine.make_private` returned them.

    Adaptive clipping makes the clipping norm follow a count of the records that were not clipped.
    The count gets separate noise, and the gradient's noise is raised from z to z_eff with
    1/z_eff² = 1/z² − 1/(2σ_u)², σ_u the count's noise (Andrew et al. 2021, theorem 1). Replace one
    record, and the sum moves by at most 2C under the noise z_eff C, the count by at most 1 under
    σ_u: together (2/z_eff)² + 1/σ_u² = (2/z)², so a step costs what its z says, and what is made of
    the noisy count costs nothing more. That holds where batches have a public size, because Opacus
    divides the count by the size. With Poisson batches the size is itself a secret; the ratio then
    has a different spread with the record and without it, no analysis covers it, and it is refused.

    In ghost mode (`PrivacyEngineAdaptiveClipping`) the same sum holds with σ_u = batch/20. But
    there Opacus 1.6 weighs the mean loss of the batch, not the loss of each record, with the
    clipping factors: no record is clipped for itself. Older releases clip, but record the raised
    noise as the one that was spent. So it is refused whatever the sampling.

    Attributes:
        privacy_engine: Opacus' own.
        model: the wrapped model, which the user trains; or the hooks, where it is not wrapped.
        optimizer: Opacus' optimizer.
        data_loader: gives the batches.
        criterion: the loss, where it was given.
        claimed: says what the monitor certifies; see `claim`.
    """

    privacy_engine: Any
    model: nn.Module
    optimizer: DPOptimizer
    data_loader: Any
    criterion: Any = None
    claimed: Callable[[], Mechanism | None] = field(default=lambda: None, repr=False)

    def __post_init__(self) -> None:
        for name, found, wanted, remedy in self._misfits():
            raise validate.invalid_input(name, found, wanted, remedy)

    def _misfits(self) -> Iterator[tuple[str, str, str, str]]:
        """What is not as `make_private` returned it, or has no guarantee."""
        model, optimizer = self.model, self.optimizer
        if not isinstance(optimizer, DPOptimizer):
            kind = f"a {type(optimizer).__name__}"
            yield "optimizer", kind, "Opacus' own", "give the one that make_private returned"
        if not hasattr(getattr(self.privacy_engine, "accountant", None), "history"):
            kind = f"a {type(self.privacy_engine).__name__}"
            remedy = "give the PrivacyEngine whose make_private was called"
            yield "privacy_engine", kind, "Opacus' own", remedy
        if self.ghost and not hasattr(model, "max_grad_norm"):
            wanted, remedy = "what make_private returned", "in ghost mode that is what clips"
            yield "model", f"a {type(model).__name__}", wanted, remedy
        _ = self.attached_weights  # before anything can be added
        if any(p.is_complex() for p in self.parameters()):  # each part would get noise z/√2 only
            yield "weights", "complex", "real numbers", "train torch.view_as_real of them"
        given = {id(p) for root in self.roots for p in root.parameters()}
        seen = [id(p) in given for p in self.parameters()]
        makes_gradients = any("opacus" in kind.__module__ for kind in type(model).__mro__)
        if not all(seen) or not any(seen) or not makes_gradients:
            some = "of some weights" if any(seen) and not all(seen) else "any weight"
            lacking = f"one without {some} of the optimizer" if not all(seen) else "the plain one"
            yield "model", lacking, "the one that is trained", "give what make_private returned"
        if self.adaptive:
            yield from self._misfits_of_adaptive()
        hook = getattr(optimizer, "step_hook", None)
        named = inspect.getclosurevars(hook).nonlocals if inspect.isfunction(hook) else {}
        told = named.get("self")  # the accountant that hears of the steps
        if hasattr(told, "history") and told is not self.privacy_engine.accountant:
            remedy = "give the PrivacyEngine whose make_private was called"
            yield "privacy_engine", "another one", "the one that made the optimizer", remedy

    def _misfits_of_adaptive(self) -> Iterator[tuple[str, str, str, str]]:
        """Why no guarantee covers adaptive clipping here; see above."""
        if self.ghost:
            yield (
                "clipping", "adaptive", "flat in ghost mode",
                "Opacus 1.6 does not clip each record for itself there, and older releases record "
                "the wrong noise; use flat clipping",
            )  # fmt: skip
        if self.poisson:
            yield (
                "clipping", "adaptive with Poisson batches", "flat where batch sizes are secret",
                "no analysis covers a count divided by a secret size; use flat clipping, or "
                "make_private(poisson_sampling=False)",
            )  # fmt: skip
        if tuple(map(int, str(opacus.__version__).split(".")[:2])) < FIRST_ADAPTIVE:
            yield (
                "opacus", repr(opacus.__version__), "1.6 or later for adaptive clipping",
                "older releases do not keep the noise that was asked for",
            )  # fmt: skip

    @cached_property
    def roots(self) -> list[nn.Module]:
        """The modules whose weights and buffers make the loss: the model, and the criterion."""
        criterion = own_criterion(self.criterion)
        return [self.module, *([criterion] if isinstance(criterion, nn.Module) else [])]

    def claim(self) -> Mechanism | None:
        """The mechanism that the monitor certifies for the steps so far; None before the first.

        It includes the monitor's `other_mechanisms`, and is `NoGuarantee` with the reason where no
        guarantee covers a step. While a step is being made it is not in it yet.
        """
        return self.claimed()

    @cached_property
    def sampling(self) -> Sampling:
        """The way in which batches are made."""
        return Sampling(self.data_loader)

    @cached_property
    def module(self) -> nn.Module:
        """The user's model under Opacus' wrapper."""
        found: nn.Module = getattr(self.model, "_module", self.model)
        return found

    @property
    def entrance(self) -> nn.Module:
        """The module that is called first with the weights that the optimizer has.

        It is the user's own where Opacus' wrapper only calls it. In some modes the wrapper first
        puts other tensors in the place of the weights.
        """
        wrapped = isinstance(self.model, nn.Module) and type(self.model).forward not in PASSES_ON
        return self.model if wrapped else self.module

    @cached_property
    def ghost(self) -> bool:
        """Whether records are clipped inside the loss, and no gradient of a record is kept."""
        return isinstance(self.optimizer, DPOptimizerFastGradientClipping)

    @cached_property
    def adaptive(self) -> bool:
        """Whether the clipping norm follows the gradients."""
        if not self.ghost:
            return isinstance(self.optimizer, AdaClipDPOptimizer)
        # Named, not imported: the first releases of ghost mode have no adaptive one.
        names = {type(self.criterion).__name__, type(self.privacy_engine).__name__}
        in_loss = {"DPLossFastGradientAdaptiveClipping", "PrivacyEngineAdaptiveClipping"}
        return bool(names & in_loss) or self.noise_hidden

    @property
    def noise_hidden(self) -> bool:
        """Whether the optimizer adds other noise than its noise multiplier says."""
        return hasattr(self.optimizer, "_adjusted_noise_multiplier")

    @property
    def clips_with(self) -> str:
        """The optimizer's method that is called once records are clipped, or clips them."""
        return "accumulate" if self.ghost else "clip_and_accumulate"

    def untouched(self) -> bool:
        """Whether clipping and noise are Opacus' own: neither overridden nor replaced."""
        names = (self.clips_with, "add_noise", "scale_grad", "_get_flat_grad_sample")
        methods = [getattr(self.optimizer, name) for name in names]
        properties = [
            getattr(inspect.getattr_static(type(self.optimizer), name), "fget", None)
            for name in ("grad_samples", "params")
        ]
        return all(map(is_opacus_own, [*methods, *properties]))

    @property
    def untouched_noise(self) -> bool:
        """Whether the function that draws the noise is Opacus' own."""
        for home, known, code in self._drawing:
            function = home["_generate_noise"]
            if function is not known or code is None or function.__code__ is not code:
                return False
        return True

    @cached_property
    def _drawing(self) -> list[tuple[dict[str, Any], Any, CodeType | None]]:
        """What the modules of the optimizer's class and its bases hold, and draw the noise with.

        The code is None where it is not Opacus' own.
        """
        homes = [vars(sys.modules[kind.__module__]) for kind in type(self.optimizer).__mro__]
        drawing = [(home, home["_generate_noise"]) for home in homes if "_generate_noise" in home]
        return [
            (home, function, function.__code__ if is_opacus_own(function) else None)
            for home, function in drawing
        ]

    @cached_property
    def fills_empty_batches(self) -> bool:
        """Whether Opacus puts random records where no record was drawn."""
        return bool(getattr(getattr(self.data_loader, "collate_fn", None), "rand_on_empty", False))

    @property
    def poisson(self) -> bool:
        """Whether every record is in a batch independently of the others."""
        return self.sampling.kind == "poisson"

    @property
    def made_poisson(self) -> bool:
        """Whether `make_private` was asked for Poisson batches, as far as the model tells."""
        return not getattr(self.model, "grad_accumulation_allowed", True)

    @property
    def sample_rate(self) -> float:
        """The probability with which a record is in a batch."""
        return self.sampling.rate

    @property
    def records(self) -> int | None:
        """The number of records, where the loader says it."""
        dataset = getattr(self.data_loader, "dataset", None)
        return len(dataset) if isinstance(dataset, Sized) else None

    @property
    def noise_multiplier(self) -> float:
        """The noise's standard deviation over the clipping norm, as it is now."""
        return float(self.optimizer.noise_multiplier)

    @property
    def clip_norm(self) -> float:
        """The clipping norm C, as it is now."""
        return float(self.optimizer.max_grad_norm)

    @property
    def clipped_to(self) -> float:
        """The norm that records are really clipped to, which should be C.

        In ghost mode the model clips, to the norm that it holds; layer by layer it is the norm of
        all layers' norms.
        """
        if self.ghost:
            return float(self.model.max_grad_norm)  # type: ignore[arg-type]
        if isinstance(self.optimizer, DPPerLayerOptimizer):
            return float(torch.norm(torch.Tensor(self.optimizer.max_grad_norms), p=2))
        return float(self.optimizer.max_grad_norm)

    @property
    def settings(self) -> Settings:
        """The settings that decide the noise and the scale of the sum, as they are now."""
        optimizer = self.optimizer
        norms: list[Any]
        if self.adaptive:  # the norm itself follows from the noisy count, by these
            norms = [getattr(optimizer, name, None) for name in ADAPTS_BY]
        else:
            norms = [optimizer.max_grad_norm, *getattr(optimizer, "max_grad_norms", ())]
            norms += [self.model.max_grad_norm] if self.ghost else []
        numbers = [*norms, optimizer.expected_batch_size]
        # As they are now: a tensor would change in place and stay equal to itself.
        numbers = [None if number is None else float(number) for number in numbers]
        scale = (self.sampling.rate, numbers.pop(), optimizer.loss_reduction)
        return float(optimizer.noise_multiplier), tuple(numbers), scale

    def hooked(self) -> list[nn.Module]:
        """The layers whose gradients Opacus computes for each record, by hooks on each of them."""
        found = getattr(self.model, "iterate_submodules", lambda _: ())(self.module)
        return [layer for layer in found if not isinstance(layer, RNNLinear)]

    def recurrent(self) -> list[nn.Module]:
        """Opacus' recurrent layers."""
        return [layer for layer in modules_of(self.module) if isinstance(layer, DPRNNBase)]

    @cached_property
    def attached_weights(self) -> frozenset[int]:
        """The weights that a step may have: the optimizer's, or in ghost mode those that clip."""
        if self.ghost:
            return frozenset(map(id, self.model.trainable_parameters))  # type: ignore[arg-type]
        return frozenset(map(id, self.in_groups()))

    @property
    def accumulated(self) -> int:
        """Batches that the current step is made of, as Opacus counts them."""
        return int(self.optimizer.accumulated_iterations)

    @property
    def size(self) -> int:
        """The weights that are trained."""
        return sum(p.numel() for p in self.parameters())

    def parameters(self) -> list[nn.Parameter]:
        """The weights that are trained, in the optimizer's order."""
        weights: list[nn.Parameter] = self.optimizer.params
        return weights

    def in_groups(self) -> list[nn.Parameter]:
        """The optimizer's weights, also those that are frozen."""
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def may_move(self) -> list[nn.Parameter]:
        """The weights that the coming step may change: also frozen ones whose gradient stays zero.

        Momentum and weight decay go on moving those.
        """
        return [
            p
            for group in self.optimizer.param_groups
            for p in group["params"]
            if p.requires_grad or p.grad is not None
        ]

    def summed(self) -> Iterator[Tensor]:
        """The clipped sum of the batch so far, one flat part for each parameter."""
        for p in self.parameters():
            summed: Tensor = p.summed_grad  # type: ignore[attr-defined]
            yield summed.view(-1)

    def noisy(self) -> Iterator[Tensor]:
        """The sum with its noise, after it was added: not yet divided by the batch size."""
        for p in self.parameters():
            assert p.grad is not None
            yield p.grad.view(-1)

    def device(self) -> torch.device:
        """The device of the weights."""
        return self.parameters()[0].device


@lru_cache(maxsize=64)
def rounding_in(kinds: frozenset[torch.dtype]) -> float:
    """The factor by which a clipped norm can exceed C in the coarsest of some precisions.

    It is 1 for float32 and finer ones. They are those of the weights, or of each record's gradients
    or norms where autocast gives them fewer digits. Opacus computes norms, factors and products in
    them: five roundings for each record, of half an ε of the precision. bfloat16 reached 1.010 C;
    1 + 4 ε is 1.031.
    """
    coarsest = max((torch.finfo(kind).eps for kind in kinds), default=0.0)
    return 1.0 if coarsest <= FINE else 1.0 + 4.0 * coarsest


def is_opacus_own(method: Any) -> bool:
    """Whether code is in Opacus' files; what wraps it may say that it is the same."""
    own = getattr(method, "__func__", method)
    code = getattr(own, "__code__", None)
    if code is None or hasattr(own, "__wrapped__"):
        return False
    return str(code.co_filename).startswith(OPACUS)


def own_criterion(criterion: Any) -> Any:
    """The user's criterion, without the loss that ghost mode wraps around it."""
    wrapped = isinstance(criterion, DPLossFastGradientClipping)
    return criterion.criterion if wrapped else criterion
