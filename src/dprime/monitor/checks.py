"""Checks of a training that Opacus trusts: each finding says what to do."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from torch import nn

from dprime import text
from dprime.interop import gdp_epsilon
from dprime.mechanisms import Mechanism
from dprime.monitor import layers
from dprime.monitor.ledger import Ledger, NoGuarantee, StepRecord
from dprime.monitor.opacus_training import OpacusTraining, rounding_in
from dprime.monitor.problems import Problem
from dprime.text import given


class PrivacyWarning(UserWarning):
    """Something weakens or voids the guarantee of a training; the sentence says what to do."""


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
RECORDED = "The accountant of the privacy engine has recorded {}: its ε is wrong; {}."
KEEP = "keep its step hook, and load both from the same checkpoint"


def at_start(training: OpacusTraining, delta: float) -> Iterator[str]:
    """Yield the findings that need no step."""
    if training.made_poisson and not training.poisson:
        yield NOT_RETURNED
    elif training.sampling.kind == "shuffle":
        yield SHUFFLED
    if training.sampling.kind == "unknown":
        yield Problem.UNSAMPLED.warning
    if any(Problem.MIXED in layers.problems_of(one, training) for one in layers.every(training)):
        yield Problem.MIXED.warning
    if layers.sums_scaled(training):
        yield SUMMED
    if rounding_in(frozenset(p.dtype for p in training.parameters())) > 1.0:
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


def outside(training: OpacusTraining) -> dict[str, nn.Parameter]:
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
        return RECORDED.format(f"{steps:,} steps, but the monitor has {seen.total():,}", KEEP)
    own = {(step.sample_rate, step.batches) for step, _ in entries}
    recorded = Counter[tuple[float, float]]()
    for noise, rate, count in history:
        known = [own_rate * n for own_rate, n in own if recorded_for(own_rate, n, float(rate))]
        if not known and any(recorded_for(own_rate, 1, float(rate)) for own_rate, _ in own):
            return RECORDED.format(
                "steps that added up several batches as if they were made of one",
                "take a step for each batch, and leave signal_skip_step to BatchMemoryManager",
            )
        if not known:
            return RECORDED.format(
                f"the sample rate {given(float(rate))}, which the data loader did not have",
                "use the loader that make_private returned",
            )
        recorded[float(noise), known[0]] += int(count)
    other = "other noise multipliers or rates than the training had"
    return None if seen == recorded else RECORDED.format(other, KEEP)


def too_low(
    accountant: Any, mechanism: Mechanism | None, adjacency: str, delta: float
) -> str | None:
    """The ε of Opacus' accountant "gdp", where more is proved for the same steps."""
    kind = getattr(accountant, "mechanism", lambda: "")()
    history = list(accountant.history)
    if kind != "gdp" or mechanism is None or isinstance(mechanism, NoGuarantee) or not history:
        return None
    own, proved = gdp_epsilon(history, delta), mechanism.curve(adjacency).epsilon(delta)
    if own >= proved:
        return None
    return f'{text.two_epsilons(own, proved, delta)} Use PrivacyEngine(accountant="prv").'


def elsewhere(step: StepRecord) -> bool:
    """Whether the step stands for one that another optimizer made."""
    return step.problem == Problem.OUTSIDE and not step.noise_multiplier


def recorded_for(rate: float, batches: int, recorded: float) -> bool:
    """Whether Opacus records this rate for steps of `batches` batches at `rate`.

    It takes one over the length of the loader, which is rounded down (93 Poisson batches have a
    length of 92).

    >>> recorded_for(1 / 93, 2, recorded=2 / 92), recorded_for(0.1, 1, recorded=0.2)
    (True, False)
    """
    own = (rate, 1.0 / int(1.0 / rate))
    return any(math.isclose(recorded, batches * possible, rel_tol=1e-9) for possible in own)
