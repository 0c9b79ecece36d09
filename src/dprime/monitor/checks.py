"""What is wrong with a training that Opacus trusts: each finding is one sentence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from opacus.layers import DPMultiheadAttention
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from dprime import text
from dprime.interop import gdp_epsilon
from dprime.mechanisms import Mechanism
from dprime.monitor import criteria
from dprime.monitor.attached import Attached
from dprime.monitor.contents import modules_of
from dprime.monitor.ledger import (
    LITTLE_NOISE,
    NO_NOISE,
    UNKNOWN_SAMPLING,
    Ledger,
    Step,
    Unprotected,
)
from dprime.parameters import LEAST_NOISE
from dprime.text import given


class PrivacyWarning(UserWarning):
    """Something weakens or voids the guarantee of a training; the sentence says what to do."""


MIXING = (
    _InstanceNorm, _BatchNorm, nn.Embedding, nn.EmbeddingBag, nn.MultiheadAttention,
    DPMultiheadAttention,
)  # fmt: skip
"""Layers that mix records in some mode."""

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)

SOFTMAXES = (nn.Softmax, nn.LogSoftmax, nn.Softmin, nn.Softmax2d)
"""Layers that mix the rows of one dimension, which their input may decide."""

SHUFFLED = (
    "The batches are not drawn by Poisson sampling, so the ε of the privacy engine does not hold "
    "for them: dprime certifies a replaced record, with no credit for sampling; use "
    "make_private(poisson_sampling=True)."
)
NOT_RETURNED = (
    "The data loader is not the one that make_private returned, which draws Poisson batches, so "
    "the ε of the privacy engine does not hold for what comes from it: attach to the loader that "
    "make_private returned, and loop over that one."
)
UNKNOWN = (
    "How the data loader makes its batches is not known, so no guarantee covers the training: use "
    "make_private(poisson_sampling=True)."
)
SCHEDULED = (
    "The clipping norm was changed during the training: that is covered only if the schedule was "
    "fixed without looking at the data."
)
NOISE_SCHEDULED = (
    "The noise multiplier was changed during the training: that is covered only if the schedule "
    "was fixed without looking at the data."
)
ACCEPTED = (
    "Weights, buffers or settings were changed by hand and accepted: that is covered only if the "
    "changes follow from released results and rules that were fixed without looking at the data."
)
FEWER = (
    "A step had fewer records than the data loader drew for it: that is covered only if whether a "
    "record is left out depends on nothing but the record itself."
)
COARSE = (
    "The weights have fewer digits than float32, and Opacus clips and sums with no more: the noise "
    "is counted a little smaller for the clipping, but what rounding does to the sums is covered "
    "by no analysis; keep the weights in float32 and let autocast compute with fewer."
)
FORGOTTEN = (
    "A state was loaded that does not have all the steps that were seen since: they were spent too "
    "if anything of them was looked at or kept; the numbers are for the loaded state alone."
)
LEFT_OPEN = (
    "Loops over the data loader were left at different places with a batch drawn that no step was "
    "made of: that is covered only if where a loop ends does not depend on the data."
)
CHOSEN = (
    "Passes over the data loader were drawn and not used, several at once or not as many before "
    "each pass with steps: that is covered only if which passes are used does not depend on the "
    "data."
)
ORDERED = (
    "Batches that are not Poisson samples were drawn before their steps, as with list(loader): "
    "that is covered only if their order does not depend on the data."
)
LEFT_OUT = (
    "No step was made of an empty batch, which tells that nobody was drawn: with a small "
    "probability that gives a record away, which is counted; make a step of empty batches too."
)
NOW = (
    "The weights or buffers are now other ones than the last private step left, which the numbers "
    "are for: do not release the model as it is now, unless what changed it is not from the data."
)
ENCODED = (
    "What the model is called with has a gradient, so it may be made by a network that is trained "
    "with it, but without clipping or noise: that is covered only if this network is never trained "
    "on these data and not released, or learns through the model alone, as the generator of a GAN "
    "does; give its weights to make_private, or freeze them."
)
SUMMED = (
    "The criterion sums the losses of a batch, and Opacus multiplies each gradient by the size of "
    "the batch, which it takes to be divided by: whether there is one record more then changes all "
    "others; give make_private loss_reduction='sum', or the criterion reduction='mean'."
)
PAST_THE_END = (
    "The training went on past its planned end: the forecast is what was spent until now."
)

REPLACED = "the optimizer's own clipping or noise was replaced"
UNSAMPLED = UNKNOWN_SAMPLING
ALTERED = "the sampler was changed"
ELSEWHERE = "records came from elsewhere than the loader"
MULTIPLIED = "other records were clipped than were drawn"
REPEATED = "a batch was used again"
SAME_NOISE = "noise was drawn again"
KNOWN_SEED = "noise or batches are drawn from a seed that everybody knows"
CHANGED = "gradients were changed after the clipping"
MIXED = "records of a batch are mixed"
HIDDEN = "the noise is not what the optimizer says"
TWO_PASSES = "batches of two passes were added up"
AT_ONCE = "two passes over the loader were under way"
ADDED_UP = "several Poisson batches were added up"
FILLED = "random records stand in for empty batches"
OUTSIDE = "weights were trained outside the optimizer"
NOT_FINITE = "a clipped sum was not finite"
TOO_LONG = "a part of a gradient was not clipped"
LOSSES = "the loss was not one number for each record"
REORDERED = "a recurrent layer had the records in another order"
STALE = "records were clipped by norms of an earlier batch"
UNEVEN = "a gradient did not have one row for each record"
LATER = "weights were trained that were not attached"
MOVED = "weights were changed between two steps"
BUFFERS = "a buffer was changed"
RESET = "noise, clipping, rate or expected batch size was changed by hand"
SKIPPED = "batches were drawn and passed over"
SPREAD = "outputs were compared with the targets of other records"
UNFIT = "ghost mode clips a layer by the norms of wrong gradients"
UNSEEN = "ghost mode's norms could not be compared with the gradients"
MISREAD = "a convolution's gradients were read from other places of memory"
UNSCALED = "the loss divides by the size of the batch, which is not undone"
DIVIDED = "the loss divides by what the labels of the batch count for"
NOT_PUBLIC = "the public constants are not those of the training"

ACCEPT = (
    "where it looks at nothing but released results and fixed rules, call "
    "monitor.accept_changes() after it"
)

REASONS = {
    NO_NOISE: (
        "No noise was added in a step, so the training is not private: set a noise multiplier of "
        "1 or so in make_private."
    ),
    LITTLE_NOISE: (
        f"The noise multiplier of a step was below {given(LEAST_NOISE)}, which hides nothing, so "
        "the training is not private: set a noise multiplier of 1 or so in make_private."
    ),
    OUTSIDE: (
        "Weights were trained by another optimizer than Opacus', by the one under it, or with "
        "gradients that were changed after the noise, so without clipping or noise: give all of "
        "them to the optimizer before make_private or freeze them, call only the step of the "
        "optimizer that it returned, and leave the gradients between noise and step alone."
    ),
    REPLACED: (
        "A step did not pass through Opacus' own clipping and noise, so it counts as one without "
        "noise: use an optimizer of Opacus, and put nothing in the place of its methods."
    ),
    NOT_FINITE: (
        "A clipped sum had values that are not finite, which no noise hides: the model then tells "
        "that such a record was there. Remove records with NaN, infinite or huge values, and keep "
        "the loss finite, before you train again."
    ),
    HIDDEN: (
        "The optimizer adds other noise than its noise multiplier says, as Opacus' adaptive "
        "clipping in ghost mode does, which no guarantee covers: use flat clipping."
    ),
    CHANGED: (
        "Gradients were changed between backward and step, after ghost clipping, so that the noise "
        "may not fit them: leave that out, also the scaling of gradients, and keep clip_grad_norm_ "
        "to norm 2 and one max_norm."
    ),
    UNSAMPLED: UNKNOWN,
    ALTERED: (
        "The sampler or the indices of a Subset were changed during the training, or a pass gave a "
        "record twice, so it is not known how often a record is drawn: leave them as they were "
        "when the monitor was attached."
    ),
    UNEVEN: (
        "The gradients of some weights did not have one row for each record of the batch, so "
        "a record may count several times: keep the records in the first dimension of what every "
        "layer gets (tokens as [records, tokens, features])."
    ),
    REPEATED: (
        "A batch was used again for a later step, and who is in it was in both, which sampling "
        "does not cover: take one step for each batch, and draw new ones for each epoch."
    ),
    SAME_NOISE: (
        "The generator of the noise was seeded anew, so that a step has the noise of a step before "
        "and their difference has none: seed once, before the training, or never."
    ),
    KNOWN_SEED: (
        "A torch.Generator() that was not seeded begins with a seed that is the same everywhere: "
        "leave the generator of the noise and of the data loader out, or call its seed()."
    ),
    ELSEWHERE: (
        "There were more steps than batches from the attached data loader, so it is not known how "
        "their records were sampled: loop over the loader that make_private returned, take one "
        "step for each batch, and attach the monitor before the loop."
    ),
    MULTIPLIED: (
        "The records that were clipped for a step are not those of the batches that the data "
        "loader drew for it, so one record may count several times: put each record through the "
        "model once, one batch at a time, and leave batches whole."
    ),
    AT_ONCE: (
        "Two loops over the data loader were under way at once, so a record can come twice in what "
        "looks like one pass: finish one loop before the next."
    ),
    TWO_PASSES: (
        "A step added up batches of two passes over the data, in which a record can be twice: let "
        "the number of batches in an epoch be a multiple of those in a step."
    ),
    ADDED_UP: (
        "A step added up several Poisson batches, which is not certified for replace: leave "
        "adjacency out, or draw larger batches with BatchMemoryManager."
    ),
    FILLED: (
        "Random records stand in for empty batches, so a single record can move the sum by twice "
        "the clipping norm, which no analysis covers: leave rand_on_empty out of make_private."
    ),
    MIXED: (
        "A layer mixes the records of a batch or keeps running statistics of them, so clipping "
        "does not bound what one record does: use GroupNorm or LayerNorm, or put it into eval "
        "mode; give attention batch_first=True and nn.Softmax the dimension of tokens or features, "
        "and in ghost mode leave scale_grad_by_freq out."
    ),
    UNFIT: (
        "In ghost mode Opacus has wrong gradients for nn.EmbeddingBag and for convolutions whose "
        "padding_mode is not 'zeros', and clips by their norms: add up nn.Embedding, and pad with "
        "a layer of its own (nn.CircularPad2d before padding=0); in mode 'hooks' the gradients are "
        "wrong too, but they are what is clipped."
    ),
    SPREAD: (
        "The criterion got outputs and targets of different shapes ([records, 1] and [records], "
        "say), so it compared each output with the targets of all records: give both the same "
        "shape, as with outputs.squeeze(1)."
    ),
    DIVIDED: (
        "The criterion divides the loss of a batch by the class weights of its records, or by the "
        "number of labels that are not left out (ignore_index), so that one record rescales the "
        "gradients of all others before they are clipped: give the criterion reduction='none', "
        "weigh each record's loss, and take the mean."
    ),
    UNSCALED: (
        "The criterion takes the mean of a batch and the optimizer has loss_reduction='sum', so "
        "gradients are divided by the size of the batch before they are clipped, and one record "
        "more changes all others: give make_private loss_reduction='mean', or the criterion "
        "reduction='sum'."
    ),
    LATER: (
        "The optimizer trained weights that were not attached, so their gradients may not be "
        "clipped: give all weights to make_private, attach the monitor after it, add or unfreeze "
        "none later, and freeze none between backward and step."
    ),
    TOO_LONG: (
        "A clipped sum had a part that was not clipped with its record, as when a weight is used "
        "outside of its layer in ghost mode (F.linear with a tied weight, a penalty in the loss): "
        'use each weight only in its layer, or grad_sample_mode="hooks".'
    ),
    UNSEEN: (
        "Autograd does not give the gradients of single records in ghost mode, so nobody saw "
        "whether the norms that clip them are right, as with checkpoint(use_reentrant=True): leave "
        "that out, or use grad_sample_mode='hooks'."
    ),
    MOVED: (
        "Weights were changed between two steps, without clipping or noise: leave that out; "
        f"{ACCEPT}."
    ),
    BUFFERS: (
        "A buffer of the model or the criterion was changed, or came later, without clipping or "
        "noise: keep nothing of the data in buffers or extra states, which go with the model; "
        f"{ACCEPT}."
    ),
    RESET: (
        "The noise multiplier, the clipping norm, the sampling rate or the expected batch size was "
        "changed during the training, which tells of the data if it depends on them: use a "
        f"schedule of opacus.schedulers; {ACCEPT}."
    ),
    SKIPPED: (
        "Batches were drawn and no step was made of them (a step left out when the loss is large, "
        "a gradient scaler that skips steps), which tells what was in them: take one step for each "
        "batch, and train without GradScaler."
    ),
    NOT_PUBLIC: (
        "The training does not have the public constants that were stated: give the data loader "
        "and the optimizer the sampling rate and the expected batch size of PublicConstants, and "
        "make no more steps than it says."
    ),
    STALE: (
        "In ghost mode some weights had the norms of an earlier batch, as when a layer is frozen "
        "on the way or a call of the model has no backward: freeze layers before make_private, "
        "and call the model under torch.no_grad() or in eval mode for all else."
    ),
    LOSSES: (
        "The loss without its reduction did not have one number for each record, so ghost clipping "
        "clipped no record for itself: give the criterion outputs and targets of shape [records], "
        "not [records, 1], or one loss for each record."
    ),
    MISREAD: (
        "Opacus computes the gradients of nn.Conv2d as if the last two dimensions of its input "
        "were contiguous in memory; this input was permuted or in another memory format, so that "
        "values of other places or of other records were read: call .contiguous() on it."
    ),
    REORDERED: (
        "A recurrent layer of Opacus got a packed sequence that orders the records by length, so "
        "its rows and those of other layers are of different records: sort each batch by length "
        "before the model gets it, and pack with enforce_sorted=True."
    ),
}
"""Why no guarantee covers a step; the first that holds is said."""


def at_start(training: Attached, delta: float) -> Iterator[str]:
    """What can be seen before the first step."""
    if training.made_poisson and not training.poisson:
        yield NOT_RETURNED
    elif training.sampling.kind == "shuffle":
        yield SHUFFLED
    if training.sampling.kind == "unknown":
        yield UNKNOWN
    if any(mixes(root, training) for root in training.roots):
        yield REASONS[MIXED]
    if criteria.sums_scaled(training):
        yield SUMMED
    if training.rounding(training.parameters()) > 1.0:
        yield COARSE
    names = list(outside(training))
    if names:
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        yield (
            f"{len(names)} parameters require gradients but are not in the optimizer ({shown}): "
            "give them to it before make_private, or freeze them with requires_grad_(False)."
        )
    if training.records and delta > 1.0 / training.records:
        yield (
            f"δ = {given(delta)} is above 1/{training.records:,}, one over the number of "
            "records, which would allow giving away whole records: ask for a smaller one with "
            'conditions={"delta": ...}.'
        )


def may_mix(layer: nn.Module) -> bool:
    """Whether a layer or a loss may mix records, or have a wrong norm, in some mode."""
    return isinstance(layer, (*MIXING, *criteria.DIVIDING)) or _pads_otherwise(layer)


def softmaxes(training: Attached) -> list[nn.Module]:
    """The layers of model and criterion that may have their softmax over the records."""
    layers = (layer for root in training.roots for layer in modules_of(root))
    return [layer for layer in layers if isinstance(layer, SOFTMAXES)]


def mixes(module: nn.Module, training: Attached | None = None) -> bool:
    """Whether a layer makes one record's output depend on the others, or keeps their statistics.

    Some layers do so only in the mode of a training.
    """
    return any(_mixes(layer, training) for layer in modules_of(module))


def reasons_in(layer: nn.Module, training: Attached) -> Iterator[str]:
    """Why a layer or a loss voids the guarantee of a training, without what is under it."""
    if isinstance(layer, criteria.DIVIDING):
        if criteria.divides_by_weights(layer, training):
            yield DIVIDED
        return
    if _mixes(layer, training):
        yield MIXED
    if unfit_for_ghost(layer, training):
        yield UNFIT


def _mixes(layer: nn.Module, training: Attached | None) -> bool:
    """Whether a layer mixes records by itself."""
    if training is not None and _mixes_in(layer, training):
        return True
    if isinstance(layer, _InstanceNorm):
        # Opacus' fix() clears `track_running_stats`, but PyTorch goes on with the buffers.
        kept = layer.running_mean is not None
        return kept and (layer.training or not layer.track_running_stats)
    return isinstance(layer, _BatchNorm) and (layer.training or layer.running_mean is None)


def _mixes_in(layer: nn.Module, training: Attached) -> bool:
    """Whether a layer whose weights are trained mixes records where they come first."""
    if isinstance(layer, (nn.Embedding, nn.EmbeddingBag)):
        # Autograd divides by a token's count in the batch; the other modes do not call it.
        return layer.scale_grad_by_freq and layer.weight.requires_grad and training.ghost
    if isinstance(layer, (nn.MultiheadAttention, DPMultiheadAttention)) and not layer.batch_first:
        own = {id(part) for part in layer.modules()}
        first: bool = getattr(training.model, "batch_first", False)
        return first and any(id(part) in own for part in training.hooked())
    return False


def unfit_for_ghost(layer: nn.Module, training: Attached) -> bool:
    """Whether ghost mode clips by norms of wrong gradients for a layer.

    Opacus' own functions count a word once that comes several times in a bag, and pad with zeros
    whatever the padding mode. In mode "hooks" their gradients are what is clipped and added up, so
    they are wrong there too, but none is longer than C. Layers that are derived from these have no
    function of Opacus.
    """
    if not training.ghost or getattr(training.model, "force_functorch", False):
        return False
    if type(layer) is not nn.EmbeddingBag and not _pads_otherwise(layer):
        return False
    weight: nn.Parameter = layer.weight  # type: ignore[assignment]
    return weight.requires_grad


def _pads_otherwise(layer: nn.Module) -> bool:
    """Whether a convolution of PyTorch's own pads with other values than zeros."""
    return type(layer) in CONVOLUTIONS and layer.padding_mode != "zeros"


def outside(training: Attached) -> dict[str, nn.Parameter]:
    """Parameters that could be trained, but not by the optimizer that was attached."""
    trained = {id(p) for p in training.parameters()}
    return {
        name: p
        for name, p in training.module.named_parameters()
        if p.requires_grad and id(p) not in trained
    }


def disagreement(history: Sequence[tuple[Any, Any, Any]], ledger: Ledger) -> str | None:
    """How Opacus' accountant differs from what was seen; None where they agree."""
    seen = Counter[tuple[float, float]]()
    entries = [(step, n) for step, n in ledger.entries if not elsewhere(step)]
    for step, count in entries:
        seen[step.recorded, step.batches * step.sample_rate] += count
    steps = sum(int(count) for *_, count in history)
    if steps != seen.total():
        return (
            f"The accountant of the privacy engine has recorded {steps:,} steps, but the monitor "
            f"has {seen.total():,}: its ε is wrong; keep its step hook, and load both from the "
            "same checkpoint."
        )
    own = {(step.sample_rate, step.batches) for step, _ in entries}
    recorded = Counter[tuple[float, float]]()
    for noise, rate, count in history:
        known = [own_rate * n for own_rate, n in own if recorded_for(own_rate, n, float(rate))]
        if not known and any(recorded_for(own_rate, 1, float(rate)) for own_rate, _ in own):
            return (
                "The accountant of the privacy engine has recorded steps that added up several "
                "batches as if they were made of one: its ε is wrong; take a step for each batch, "
                "and leave signal_skip_step to BatchMemoryManager."
            )
        if not known:
            return (
                f"The accountant of the privacy engine has recorded the sample rate "
                f"{given(float(rate))}, which the data loader did not have: its ε is wrong; use "
                "the loader that make_private returned."
            )
        recorded[float(noise), known[0]] += int(count)
    if seen == recorded:
        return None
    return (
        "The accountant of the privacy engine has recorded other noise multipliers or rates than "
        "the training had: its ε is wrong; keep its step hook, and load both from the same "
        "checkpoint."
    )


def too_low(
    accountant: Any, mechanism: Mechanism | None, adjacency: str, delta: float
) -> str | None:
    """The ε of Opacus' accountant "gdp", where more is proved for the same steps."""
    kind = getattr(accountant, "mechanism", lambda: "")()
    history = list(accountant.history)
    if kind != "gdp" or mechanism is None or isinstance(mechanism, Unprotected) or not history:
        return None
    own, proved = gdp_epsilon(history, delta), mechanism.curve(adjacency).epsilon(delta)
    if own >= proved:
        return None
    return f'{text.two_epsilons(own, proved, delta)} Use PrivacyEngine(accountant="prv").'


def elsewhere(step: Step) -> bool:
    """Whether it stands for what another optimizer did."""
    return step.uncovered == OUTSIDE and not step.noise_multiplier


def recorded_for(rate: float, batches: int, recorded: float) -> bool:
    """Whether Opacus records this for steps of so many batches of a rate.

    It takes one over the length of the loader, which is rounded down (93 Poisson batches have a
    length of 92).

    >>> recorded_for(1 / 93, 2, recorded=2 / 92), recorded_for(0.1, 1, recorded=0.2)
    (True, False)
    """
    own = (rate, 1.0 / int(1.0 / rate))
    return any(math.isclose(recorded, batches * possible, rel_tol=1e-9) for possible in own)
