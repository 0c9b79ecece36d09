"""How parameters are changed: DP301 to DP312, DP410."""

from __future__ import annotations

from collections.abc import Iterator

from dprime.check.library import SIZES
from dprime.check.script import Found, Occurrence, Script, Value

LARGE_NORM = 1e3  # clipping norms from here on clip nothing


def huge_norm(norm: float | None) -> str:
    """The sentence for a clipping norm that clips nothing, if it is one."""
    huge = norm is not None and norm >= LARGE_NORM
    return f"max_grad_norm is {norm:g}: hardly any gradient is that long." if huge else ""


def _trained(optimizer: Value) -> set[Value]:
    behind = optimizer.get("params", 0).behind()
    return {each.root for each in behind if each.role == "model"}


def _given_parts(script: Script, before: Occurrence) -> set[Value]:
    return {part for model in script.given("module", before) for part in model.parts()}


def _dp301(script: Script) -> Found:
    for event in script.trainings:
        wanted = event.get("module").each
        made = {part for model in wanted for part in model.parts()}
        for optimizer in event.get("optimizer").each:
            models = _trained(optimizer)
            if len(event.models) == len(wanted) and models and not models & made:
                what = f"of another model than the one that is made private in {event.place}"
                yield optimizer, f"The optimizer holds the parameters {what}."


def _plain_steps(script: Script) -> Iterator[Occurrence]:
    """Steps of plain optimizers, unless the batches surely come from other data."""
    private = _known_data(list(script.given("data_loader")))
    for event in script.steps:
        if all(each.role == "optimizer" and not each.private for each in event.subject.each):
            used = _known_data(event.batches.loaders) if event.batches else set()
            if not used or not private or not used.isdisjoint(private):
                yield event


def _known_data(loaders: list[Value]) -> set[str]:
    """Names of torchvision's data sets that loaders draw from; empty where that is not known."""
    sets = [{each.short for each in o.get("dataset", 0).behind()} & {*SIZES} for o in loaders]
    return set().union(*sets) if all(sets) else set()


def _dp302(script: Script) -> Found:
    for event in _plain_steps(script):
        made, found = _given_parts(script, event), event.subject.each
        known = script.given("optimizer", event).issuperset(found) or _inner(found)
        if not known and all(_trained(each) & made for each in found):
            what = "steps parameters of the model that was made private"
            yield event, f"A second, plain optimizer {what}."


def _dp303(script: Script) -> Found:
    for event in _plain_steps(script):
        if script.given("optimizer", event).issuperset(event.subject.each):
            yield event, "step() is called on the optimizer that was given to make_private."


def _dp410(script: Script) -> Found:
    for event in script.steps:
        if _inner(event.subject.each):
            yield event, "original_optimizer.step() goes around Opacus."


def _inner(optimizers: tuple[Value, ...]) -> bool:
    return any(each.name == ".original_optimizer" for each in optimizers)


def _clips(script: Script) -> Iterator[tuple[Occurrence, bool, bool]]:
    """Calls that clip gradients: whether in a private training, and whether surely not by norm 2.

    What cuts each entry alone is a projection, too.
    """
    inner = [step.loops[-1] for step in script.private_steps if step.loops]
    for event in script.calls("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_"):
        by_norm = event.short != "clip_grad_value_"
        other = by_norm and event.get("norm_type", 2).number not in {None, 2}
        yield event, bool(event.loops) and event.loops[-1] in inner, other


def _changes(script: Script) -> Iterator[tuple[Occurrence, Value, Value]]:
    """What is changed in place: `p.grad = g`, `p.grad += g`, `p.data.sub_(g)`; and by what."""
    for event in script.sets("grad", "data"):
        if event.get("value").constant is not None:
            target = Value("", f".{event.name}", of=event.subject, sources=[event.subject])
            yield event, target, event.get("value")
    for event in script.events:
        if event.kind == "call" and event.name.endswith("_") and event.subject.role != "import":
            yield event, event.subject, event.result


def _is_gradient(value: Value) -> bool:
    """Whether it is `p.grad`, or a part of one."""
    return any(e.name == ".grad" for o in value.each for e in (o, *(o.of.each if o.of else ())))


def batch_clipped(script: Script) -> Found:
    """The gradient of a batch is clipped, and gets something random."""
    random = ("randn", "randn_like", "normal", "normal_", "standard_normal", "sample")
    noised = any(
        _is_gradient(target) and any(each.short in random for each in value.behind())
        for _, target, value in _changes(script)
    )
    for event, in_training, _ in _clips(script):
        if noised and event.loops and not in_training:
            what = "and noise is added to it by hand"
            yield event, f"The gradient of a whole batch is clipped, {what}."


_dp304 = batch_clipped


CLIPPED_AGAIN = {
    False: "clip_grad_norm_ is called on gradients that Opacus replaces in step().",
    True: "clip_grad_norm_ shortens the sum of the clipped gradients, but not the noise.",
    None: "clip_grad_norm_ is called on gradients that Opacus clips already.",
}
"""By whether the training has ghost clipping; None where that is not known."""


def _dp305(script: Script) -> Found:
    for event, in_training, other_norm in _clips(script):
        if in_training and not (script.ghost and other_norm):
            yield event, CLIPPED_AGAIN[script.ghost]


def _dp306(script: Script) -> Found:
    for event, target, value in _changes(script):
        models = {each.root for each in target.behind() if each.role == "model"}
        bare = any(each.name == ".grad" for each in value.behind()) and not _is_gradient(target)
        steps = [step for step in script.private_steps if step.order < event.order]
        noised = any(set(step.loops) & set(event.loops) for step in steps)
        if models and bare and not noised and models <= _given_parts(script, event):
            yield event, "Parameters of the private model are changed by their bare gradients."


def _dp307(script: Script) -> Found:
    for event in script.trainings:
        if sentence := huge_norm(event.get("max_grad_norm").number):
            yield event, sentence


def _dp308(script: Script) -> Found:
    for event in script.trainings:
        if event.get("clipping").is_("adaptive"):
            yield event, 'clipping is "adaptive".'
    for engine in script.engines:
        if engine.short == "PrivacyEngineAdaptiveClipping":
            yield engine, "The engine adapts the clipping norm to the records."


def _norms(script: Script) -> tuple[list[Occurrence], bool]:
    """Where the private norm is set, and whether clipping and noise then have two norms."""
    layered = any(event.get("clipping").is_("per_layer") for event in script.trainings)
    sets = [event for event in script.sets("max_grad_norm") if event.subject.private]
    return sets, layered or bool(script.ghost)


def _dp309(script: Script) -> Found:
    sets, apart = _norms(script)
    schedules = script.calls("ExponentialGradClip", "LambdaGradClip", "StepGradClip")
    for event in [*schedules, *sets] if apart else ():
        if event.kind == "call":
            yield event, f"{event.short} changes the noise alone here."
        else:
            yield event, "max_grad_norm is set, but changes the noise alone."


def _dp310(script: Script) -> Found:
    sets, apart = _norms(script)
    for event in sets if not apart else ():
        used = event.get("value").behind(lambda each: each.name == ".max_grad_norm")
        if any(each.role in ("batch", "model", "output") or each.name == ".grad" for each in used):
            yield event, "max_grad_norm is set to a number that is computed."


def _dp311(script: Script) -> Found:
    for event, loss, trainings in past_criterion(script):
        elsewhere = any(
            each.name == "parameter" or (each.role == "import" and "torch" not in each.name)
            for each in loss.behind()
        )  # a function of another file, or a value of which nothing is known, may clip
        if all(each.ghost for each in trainings) and loss.from_batch and not elsewhere:
            yield event, "The loss is not made by the criterion that make_private returned."


def past_criterion(script: Script) -> Iterator[tuple[Occurrence, Value, list[Occurrence]]]:
    """Losses that the criterion of make_private does not seem to make, of private models."""
    for event, loss in script.training_losses:
        made = list(loss.behind())
        outputs = [o for each in made if each.role == "output" and each.of for o in each.of.each]
        trainings = [each.training for each in outputs if each.training is not None]
        if trainings and not any(each.role == "criterion" and each.private for each in made):
            yield event, loss, trainings


def _dp312(script: Script) -> Found:
    for event, in_training, other_norm in _clips(script) if script.ghost else ():
        if in_training and other_norm:
            norm = "another norm than 2 after ghost clipping"
            yield event, f"clip_grad_norm_ is called with {norm}."
    for event, target, _ in _changes(script) if script.ghost else ():
        losses = [each for each, _ in script.losses if each.order < event.order]
        inner = losses[-1].loops[-1:] if losses else ()
        steps = [e for e in script.private_steps if event.order < e.order and e.loops[-1:] == inner]
        if inner and steps and _is_gradient(target):
            yield event, "Gradients are changed between backward() and step()."
