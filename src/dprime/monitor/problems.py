"""Why no guarantee covers a step: the reason in a few words, and advice."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

_ACCEPT = (
    "where it follows from released results and fixed rules alone, call monitor.accept_changes() "
    "after it."
)


class Problem(StrEnum):
    """A reason why a step is not covered; of several, the first here is named.

    Its value is the reason as the ledger and checkpoints keep it.

    >>> Problem.NO_NOISE, Problem("a buffer was changed").name
    ('no noise was added', 'BUFFERS')
    >>> Problem.NO_NOISE.warning
    'Not private: no noise was added. Set a noise multiplier of 1 or so in make_private.'
    """

    warning: str

    def __new__(cls, reason: str, advice: str = "") -> Self:
        """The reason, with what a user should do."""
        problem = str.__new__(cls, reason)
        problem._value_, problem.warning = reason, f"Not private: {reason}. {advice}"
        return problem

    __repr__ = str.__repr__

    NO_NOISE = "no noise was added", "Set a noise multiplier of 1 or so in make_private."
    LITTLE_NOISE = (
        "the noise is too small to hide anything",
        "Set a noise multiplier of 1 or so in make_private.",
    )
    OUTSIDE = (
        "weights were trained outside the optimizer",
        "Another optimizer than Opacus', or the one under it, changed weights, or gradients were "
        "changed after the noise: give all weights to the optimizer before make_private or freeze "
        "them, call only the step of the optimizer that it returned, and leave the gradients "
        "between noise and step alone.",
    )
    REPLACED = (
        "the optimizer's own clipping or noise was replaced",
        "Use an optimizer of Opacus, and put nothing in the place of its methods.",
    )
    NOT_FINITE = (
        "a clipped sum was not finite",
        "No noise hides that such a record was there: remove records with NaN, infinite or huge "
        "values, and keep the loss finite, before you train again.",
    )
    HIDDEN = (
        "the noise is not what the optimizer says",
        "Opacus' adaptive clipping in ghost mode adds noise that no guarantee covers: use flat "
        "clipping.",
    )
    CHANGED = (
        "gradients were changed after the clipping",
        "In ghost mode, do nothing to gradients between backward and step, such as scaling them, "
        "but clip_grad_norm_ to norm 2 and one max_norm.",
    )
    UNSAMPLED = (
        "the sampling of the batches is not known",
        "Use make_private(poisson_sampling=True).",
    )
    ALTERED = (
        "the sampler was changed",
        "The sampler or the indices of a Subset were changed during the training, or a pass gave a "
        "record twice: leave them as they were when the monitor was attached.",
    )
    UNEVEN = (
        "a gradient did not have one row for each record",
        "Keep the records in the first dimension of what every layer gets (tokens as [records, "
        "tokens, features]), or a record may count several times.",
    )
    REPEATED = (
        "a batch was used again",
        "Take one step for each batch, and draw new ones for each epoch.",
    )
    SAME_NOISE = (
        "noise was drawn again",
        "The generator of the noise was seeded anew, and the difference of two steps has no noise: "
        "seed once, before the training, or never.",
    )
    KNOWN_SEED = (
        "noise or batches are drawn from a seed that everybody knows",
        "That is what an unseeded torch.Generator() begins with: leave the generator of the noise "
        "and of the data loader out, or call its seed().",
    )
    ELSEWHERE = (
        "records came from elsewhere than the loader",
        "There were more steps than batches from the attached data loader: loop over the loader "
        "that make_private returned, take one step for each batch, and attach the monitor before "
        "the loop.",
    )
    MULTIPLIED = (
        "other records were clipped than were drawn",
        "One record may count several times: put each record through the model once, one batch at "
        "a time, and leave batches whole.",
    )
    AT_ONCE = (
        "two passes over the loader were under way",
        "A record can come twice in what looks like one pass: finish one loop before the next.",
    )
    TWO_PASSES = (
        "batches of two passes were added up",
        "A record can be in both: let the number of batches in an epoch be a multiple of those in "
        "a step.",
    )
    ADDED_UP = (
        "several Poisson batches were added up",
        "That is not certified for replace: leave adjacency out, or draw larger batches with "
        "BatchMemoryManager.",
    )
    FILLED = (
        "random records stand in for empty batches",
        "One record can then move the sum by twice the clipping norm: leave rand_on_empty out of "
        "make_private.",
    )
    MIXED = (
        "records of a batch are mixed",
        "A layer mixes them or keeps running statistics, so clipping does not bound what one "
        "record does: use GroupNorm or LayerNorm, or put it into eval mode; give attention "
        "batch_first=True and nn.Softmax the dimension of tokens or features, and in ghost mode "
        "leave scale_grad_by_freq out.",
    )
    UNFIT = (
        "ghost mode clips a layer by the norms of wrong gradients",
        "Opacus has wrong gradients for nn.EmbeddingBag and for convolutions whose padding_mode is "
        "not 'zeros': add up nn.Embedding, and pad with a separate layer (nn.CircularPad2d "
        "before padding=0); in mode 'hooks' what is clipped are the wrong gradients themselves.",
    )
    SPREAD = (
        "outputs were compared with the targets of other records",
        "The criterion got outputs and targets of different shapes ([records, 1] and [records], "
        "say): give both the same shape, as with outputs.squeeze(1).",
    )
    DIVIDED = (
        "the loss divides by what the labels of the batch count for",
        "By class weights, or by the number of labels that are not left out (ignore_index), one "
        "record rescales the gradients of all others before they are clipped: give the criterion "
        "reduction='none', weigh each record's loss, and take the mean.",
    )
    UNSCALED = (
        "the loss divides by the size of the batch, which is not undone",
        "The criterion takes a mean and the optimizer has loss_reduction='sum', so one record more "
        "changes all others: give make_private loss_reduction='mean', or the criterion "
        "reduction='sum'.",
    )
    LATER = (
        "weights were trained that were not attached",
        "Their gradients may not be clipped: give all weights to make_private, attach the monitor "
        "after it, add or unfreeze none later, and freeze none between backward and step.",
    )
    TOO_LONG = (
        "a part of a gradient was not clipped",
        "In ghost mode a weight may be used outside of its layer (F.linear with a tied weight, a "
        'penalty in the loss): use each weight only in its layer, or grad_sample_mode="hooks".',
    )
    UNSEEN = (
        "ghost mode's norms could not be compared with the gradients",
        "Autograd does not give the gradients of single records, as with "
        "checkpoint(use_reentrant=True): leave that out, or use grad_sample_mode='hooks'.",
    )
    MOVED = "weights were changed between two steps", f"Leave that out; {_ACCEPT}"
    BUFFERS = (
        "a buffer was changed",
        "Keep nothing of the data in buffers or extra states of model or criterion, which are "
        f"released with the model; {_ACCEPT}",
    )
    RESET = (
        "noise, clipping, rate or expected batch size was changed by hand",
        f"That tells of the data if it depends on them: use a schedule of opacus.schedulers; "
        f"{_ACCEPT}",
    )
    SKIPPED = (
        "batches were drawn and passed over",
        "No step was made of them (a step left out when the loss is large, a gradient scaler that "
        "skips steps), which tells what was in them: take one step for each batch, and train "
        "without GradScaler.",
    )
    NOT_PUBLIC = (
        "the public constants are not those of the training",
        "Give the data loader and the optimizer the sampling rate and the expected batch size of "
        "PublicConstants, and make no more steps than it says.",
    )
    STALE = (
        "records were clipped by norms of an earlier batch",
        "In ghost mode a layer was frozen on the way, or a call of the model had no backward: "
        "freeze layers before make_private, and call the model under torch.no_grad() or in eval "
        "mode for all else.",
    )
    LOSSES = (
        "the loss was not one number for each record",
        "Ghost clipping then clips no record for itself: give the criterion outputs and targets of "
        "shape [records], not [records, 1], or one loss for each record.",
    )
    MISREAD = (
        "a convolution's gradients were read from other places of memory",
        "Opacus takes the last two dimensions of an input of nn.Conv2d to be contiguous; this one "
        "was permuted or in another memory format: call .contiguous() on it.",
    )
    REORDERED = (
        "a recurrent layer had the records in another order",
        "A packed sequence ordered the records by length, so its rows and those of other layers "
        "are of different records: sort each batch by length before the model gets it, and pack "
        "with enforce_sorted=True.",
    )
