"""Why no guarantee covers a step: the reason in a few words, and a warning with the remedy."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from dprime.parameters import LEAST_NOISE
from dprime.text import given

_ACCEPT = (
    "where it looks at nothing but released results and fixed rules, call "
    "monitor.accept_changes() after it"
)


class Problem(StrEnum):
    """A reason why a step is not covered; of several, the first here is named.

    Its value is the reason in a few words, as the ledger and checkpoints keep it.

    >>> Problem.NO_NOISE, Problem("a buffer was changed").name
    ('no noise was added', 'BUFFERS')
    """

    warning: str

    def __new__(cls, reason: str, warning: str = "") -> Self:
        """The reason, with what a user is told and what mends it."""
        problem = str.__new__(cls, reason)
        problem._value_, problem.warning = reason, warning
        return problem

    __repr__ = str.__repr__

    NO_NOISE = (
        "no noise was added",
        "No noise was added in a step, so the training is not private: set a noise multiplier of "
        "1 or so in make_private.",
    )
    LITTLE_NOISE = (
        "the noise is too small to hide anything",
        f"The noise multiplier of a step was below {given(LEAST_NOISE)}, which hides nothing, so "
        "the training is not private: set a noise multiplier of 1 or so in make_private.",
    )
    OUTSIDE = (
        "weights were trained outside the optimizer",
        "Weights were trained by another optimizer than Opacus', by the one under it, or with "
        "gradients that were changed after the noise, so without clipping or noise: give all of "
        "them to the optimizer before make_private or freeze them, call only the step of the "
        "optimizer that it returned, and leave the gradients between noise and step alone.",
    )
    REPLACED = (
        "the optimizer's own clipping or noise was replaced",
        "A step did not pass through Opacus' own clipping and noise, so it counts as one without "
        "noise: use an optimizer of Opacus, and put nothing in the place of its methods.",
    )
    NOT_FINITE = (
        "a clipped sum was not finite",
        "A clipped sum had values that are not finite, which no noise hides: the model then tells "
        "that such a record was there. Remove records with NaN, infinite or huge values, and keep "
        "the loss finite, before you train again.",
    )
    HIDDEN = (
        "the noise is not what the optimizer says",
        "The optimizer adds other noise than its noise multiplier says, as Opacus' adaptive "
        "clipping in ghost mode does, which no guarantee covers: use flat clipping.",
    )
    CHANGED = (
        "gradients were changed after the clipping",
        "Gradients were changed between backward and step, after ghost clipping, so that the noise "
        "may not fit them: leave that out, also the scaling of gradients, and keep clip_grad_norm_ "
        "to norm 2 and one max_norm.",
    )
    UNSAMPLED = (
        "the sampling of the batches is not known",
        "How the data loader makes its batches is not known, so no guarantee covers the training: "
        "use make_private(poisson_sampling=True).",
    )
    ALTERED = (
        "the sampler was changed",
        "The sampler or the indices of a Subset were changed during the training, or a pass gave a "
        "record twice, so it is not known how often a record is drawn: leave them as they were "
        "when the monitor was attached.",
    )
    UNEVEN = (
        "a gradient did not have one row for each record",
        "The gradients of some weights did not have one row for each record of the batch, so "
        "a record may count several times: keep the records in the first dimension of what every "
        "layer gets (tokens as [records, tokens, features]).",
    )
    REPEATED = (
        "a batch was used again",
        "A batch was used again for a later step, and who is in it was in both, which sampling "
        "does not cover: take one step for each batch, and draw new ones for each epoch.",
    )
    SAME_NOISE = (
        "noise was drawn again",
        "The generator of the noise was seeded anew, so that a step has the noise of a step before "
        "and their difference has none: seed once, before the training, or never.",
    )
    KNOWN_SEED = (
        "noise or batches are drawn from a seed that everybody knows",
        "A torch.Generator() that was not seeded begins with a seed that is the same everywhere: "
        "leave the generator of the noise and of the data loader out, or call its seed().",
    )
    ELSEWHERE = (
        "records came from elsewhere than the loader",
        "There were more steps than batches from the attached data loader, so it is not known how "
        "their records were sampled: loop over the loader that make_private returned, take one "
        "step for each batch, and attach the monitor before the loop.",
    )
    MULTIPLIED = (
        "other records were clipped than were drawn",
        "The records that were clipped for a step are not those of the batches that the data "
        "loader drew for it, so one record may count several times: put each record through the "
        "model once, one batch at a time, and leave batches whole.",
    )
    AT_ONCE = (
        "two passes over the loader were under way",
        "Two loops over the data loader were under way at once, so a record can come twice in what "
        "looks like one pass: finish one loop before the next.",
    )
    TWO_PASSES = (
        "batches of two passes were added up",
        "A step added up batches of two passes over the data, in which a record can be twice: let "
        "the number of batches in an epoch be a multiple of those in a step.",
    )
    ADDED_UP = (
        "several Poisson batches were added up",
        "A step added up several Poisson batches, which is not certified for replace: leave "
        "adjacency out, or draw larger batches with BatchMemoryManager.",
    )
    FILLED = (
        "random records stand in for empty batches",
        "Random records stand in for empty batches, so a single record can move the sum by twice "
        "the clipping norm, which no analysis covers: leave rand_on_empty out of make_private.",
    )
    MIXED = (
        "records of a batch are mixed",
        "A layer mixes the records of a batch or keeps running statistics of them, so clipping "
        "does not bound what one record does: use GroupNorm or LayerNorm, or put it into eval "
        "mode; give attention batch_first=True and nn.Softmax the dimension of tokens or features, "
        "and in ghost mode leave scale_grad_by_freq out.",
    )
    UNFIT = (
        "ghost mode clips a layer by the norms of wrong gradients",
        "In ghost mode Opacus has wrong gradients for nn.EmbeddingBag and for convolutions whose "
        "padding_mode is not 'zeros', and clips by their norms: add up nn.Embedding, and pad with "
        "a layer of its own (nn.CircularPad2d before padding=0); in mode 'hooks' the gradients are "
        "wrong too, but they are what is clipped.",
    )
    SPREAD = (
        "outputs were compared with the targets of other records",
        "The criterion got outputs and targets of different shapes ([records, 1] and [records], "
        "say), so it compared each output with the targets of all records: give both the same "
        "shape, as with outputs.squeeze(1).",
    )
    DIVIDED = (
        "the loss divides by what the labels of the batch count for",
        "The criterion divides the loss of a batch by the class weights of its records, or by the "
        "number of labels that are not left out (ignore_index), so that one record rescales the "
        "gradients of all others before they are clipped: give the criterion reduction='none', "
        "weigh each record's loss, and take the mean.",
    )
    UNSCALED = (
        "the loss divides by the size of the batch, which is not undone",
        "The criterion takes the mean of a batch and the optimizer has loss_reduction='sum', so "
        "gradients are divided by the size of the batch before they are clipped, and one record "
        "more changes all others: give make_private loss_reduction='mean', or the criterion "
        "reduction='sum'.",
    )
    LATER = (
        "weights were trained that were not attached",
        "The optimizer trained weights that were not attached, so their gradients may not be "
        "clipped: give all weights to make_private, attach the monitor after it, add or unfreeze "
        "none later, and freeze none between backward and step.",
    )
    TOO_LONG = (
        "a part of a gradient was not clipped",
        "A clipped sum had a part that was not clipped with its record, as when a weight is used "
        "outside of its layer in ghost mode (F.linear with a tied weight, a penalty in the loss): "
        'use each weight only in its layer, or grad_sample_mode="hooks".',
    )
    UNSEEN = (
        "ghost mode's norms could not be compared with the gradients",
        "Autograd does not give the gradients of single records in ghost mode, so nobody saw "
        "whether the norms that clip them are right, as with checkpoint(use_reentrant=True): leave "
        "that out, or use grad_sample_mode='hooks'.",
    )
    MOVED = (
        "weights were changed between two steps",
        "Weights were changed between two steps, without clipping or noise: leave that out; "
        f"{_ACCEPT}.",
    )
    BUFFERS = (
        "a buffer was changed",
        "A buffer of the model or the criterion was changed, or came later, without clipping or "
        "noise: keep nothing of the data in buffers or extra states, which go with the model; "
        f"{_ACCEPT}.",
    )
    RESET = (
        "noise, clipping, rate or expected batch size was changed by hand",
        "The noise multiplier, the clipping norm, the sampling rate or the expected batch size was "
        "changed during the training, which tells of the data if it depends on them: use a "
        f"schedule of opacus.schedulers; {_ACCEPT}.",
    )
    SKIPPED = (
        "batches were drawn and passed over",
        "Batches were drawn and no step was made of them (a step left out when the loss is large, "
        "a gradient scaler that skips steps), which tells what was in them: take one step for each "
        "batch, and train without GradScaler.",
    )
    NOT_PUBLIC = (
        "the public constants are not those of the training",
        "The training does not have the public constants that were stated: give the data loader "
        "and the optimizer the sampling rate and the expected batch size of PublicConstants, and "
        "make no more steps than it says.",
    )
    STALE = (
        "records were clipped by norms of an earlier batch",
        "In ghost mode some weights had the norms of an earlier batch, as when a layer is frozen "
        "on the way or a call of the model has no backward: freeze layers before make_private, "
        "and call the model under torch.no_grad() or in eval mode for all else.",
    )
    LOSSES = (
        "the loss was not one number for each record",
        "The loss without its reduction did not have one number for each record, so ghost clipping "
        "clipped no record for itself: give the criterion outputs and targets of shape [records], "
        "not [records, 1], or one loss for each record.",
    )
    MISREAD = (
        "a convolution's gradients were read from other places of memory",
        "Opacus computes the gradients of nn.Conv2d as if the last two dimensions of its input "
        "were contiguous in memory; this input was permuted or in another memory format, so that "
        "values of other places or of other records were read: call .contiguous() on it.",
    )
    REORDERED = (
        "a recurrent layer had the records in another order",
        "A recurrent layer of Opacus got a packed sequence that orders the records by length, so "
        "its rows and those of other layers are of different records: sort each batch by length "
        "before the model gets it, and pack with enforce_sorted=True.",
    )
