"""The rules, by what they are about: a function for each, which is named after its code."""

from collections.abc import Callable, Iterator

from dprime.check.library import HANDLERS
from dprime.check.rules import accounting, data, layers, randomness, sampling, tuning, updates
from dprime.check.script import Found, Occurrence, Script

__all__ = ["FINDS", "unconfirmed"]

FINDS: dict[str, Callable[[Script], Found]] = dict(
    sorted(
        (name[1:].upper(), rule)
        for module in (accounting, data, layers, randomness, sampling, tuning, updates)
        for name, rule in vars(module).items()
        if name.startswith("_dp")
    )
)
"""How a script shows the mistakes that it can show."""

JUDGED = (
    *("noise_multiplier", "sample_rate", "batch_sampler", "sampler", "step_hook", "history"),
    *("accountant", "max_grad_norm", "generator", "loss_reduction", "lr", "step", "n_epochs"),
)
"""Attributes of the private training of which a rule says what setting them does, or harmless."""


def unconfirmed(script: Script) -> Iterator[str]:
    """What the guarantee needs and no rule could tell, to follow "could not confirm"."""
    for step in script.private_steps:
        if sampling.drawn_at(step, script) is None:
            yield f"where the batch for step() in {step.place} comes from"
    for event, *_ in updates.past_criterion(script) if script.ghost is not False else ():
        loss = f"the loss in {event.place}"
        yield f"that {loss} is of the criterion that make_private returned"
    for event in script.events:
        private = [each for each in sampling.owners(event.subject) if each.private]
        if event.kind == "set" and event.name not in JUDGED and private:
            name = event.name or "an attribute"
            yield f"that the training stays as Opacus made it ({event.place} sets {name})"
        if event.kind == "call" and _is_handed(event):
            yield f"what {event.name} ({event.place}) does with the optimizer"


def _is_handed(event: Occurrence) -> bool:
    """Whether code that could not be read gets the private optimizer."""
    known = event.name.startswith(("torch", "opacus")) or event.short in HANDLERS
    unread = event.subject.role == "import" and not known
    given = [each for value in event.arguments.values() for each in value.each]
    return unread and any(each.role == "optimizer" and each.private for each in given)
