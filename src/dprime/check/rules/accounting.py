"""Whether there is a private training, and all that it spends is counted: DP0, DP4 and DP5."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dprime.check.library import size_of
from dprime.check.rules.tuning import born_in
from dprime.check.rules.updates import batch_clipped
from dprime.check.script import NOTHING, Found, Occurrence, Place, Script, Value

OTHERS = (
    *("tensorflow_privacy", "jax_privacy", "dp_accounting", "diffprivlib", "objax.privacy"),
    *("fastDP", "private_transformers", "private_vision", "pyvacy"),
)
"""Libraries for private training that this check does not read."""


def _dp001(script: Script) -> Found:
    if _has_training(script) or _unused(script):
        return
    loaded = [f"{name}." for name in script.libraries]
    used = [each for each in OTHERS if any(name.startswith(f"{each}.") for name in loaded)]
    why = ""
    if used:
        why = f": this check reads Opacus, not {used[0]}"
    elif _attached(script):
        why = ": attach() belongs to Opacus before 1.0"
    elif script.engines:
        why = ": the engine is handed to code in another file"
    yield Value(place=Place(script.source, 1)), f"No private training was found{why}."


def _dp002(script: Script) -> Found:
    if not _has_training(script) and _unused(script):
        what = "A PrivacyEngine is made, but make_private is not called in this file."
        yield script.engines[0], what


def _has_training(script: Script) -> bool:
    by_hand = bool(script.calls("DPOptimizer")) or any(batch_clipped(script))
    return bool(script.trainings) or by_hand


def _attached(script: Script) -> bool:
    """Whether an engine is one of Opacus before 1.0, which got the model at once."""
    whole = any(engine.get("module", 0) is not NOTHING for engine in script.engines)
    to = [each for event in script.calls("attach") for each in event.subject.each]
    return whole or any(each.role == "engine" for each in to)


def _unused(script: Script) -> bool:
    """Whether there are engines, and every one stays in this file."""
    calls = [e for e in script.events if e.kind == "call" and e.subject.role != "engine"]
    given = [value for event in calls for value in event.arguments.values()]
    handed = Value(sources=[*given, *script.returned]).behind()
    engines = bool(script.engines) and not _attached(script)
    return engines and not any(each.role == "engine" for each in handed)


def _loads(script: Script) -> dict[str, Occurrence]:
    """Where states are loaded into the model and the optimizer of the private training."""
    counting = script.calls("load_checkpoint", "load_state_dict")
    if any(o.role in ("engine", "accountant") for event in counting for o in event.subject.each):
        return {}
    last = [0, *(event.order for event in script.private_steps or script.trainings)][-1]
    given = script.given("module") | script.given("optimizer")
    found: dict[str, Occurrence] = {}
    for event in script.calls("load_state_dict"):
        copied = any(each.role == "model" for each in event.get("state_dict", 0).behind())
        for each in event.subject.each if event.order < last and not copied else ():
            if each.private or each.root in given:
                found.setdefault(each.role, event)
    return found


def _dp401(script: Script) -> Found:
    event = _loads(script).get("optimizer")
    if event is not None:
        what = "The optimizer's state is loaded and the training goes on"
        yield event, f"{what}, but the accountant starts from nothing."


def _dp402(script: Script) -> Found:
    loads = _loads(script)
    if "model" in loads and "optimizer" not in loads:
        yield loads["model"], "Saved weights are loaded before the private training."


def _dp403(script: Script) -> Found:
    for place, event in enumerate(script.trainings):
        models = event.get("module").roots
        for engine in (each for each in event.subject.each if each.role == "engine"):
            loops = [loop for loop in event.loops if loop in engine.loops and loop.kind != "tuner"]
            for loop in loops:
                if not any(born_in(model, loop) for model in models):
                    what = f"is made in every round of the loop in {loop.place}"
                    goes_on = "for a model that goes on from round to round"
                    yield engine, f"A PrivacyEngine {what}, {goes_on}."
        for earlier in script.trainings[:place]:
            same_engine = set(event.subject.each) & set(earlier.subject.each)
            same = models & earlier.get("module").roots
            if same and not same_engine and not event.excludes(earlier):
                model = f"The model that was made private in {earlier.place}"
                yield event, f"{model} gets a second PrivacyEngine."


def _dp404(script: Script) -> Found:
    steps, asked = script.private_steps, script.calls("get_epsilon", "get_privacy_spent")
    if steps and asked and asked[-1].order < steps[0].order:
        yield asked[-1], "get_epsilon is only called before the first step."


def _dp405(script: Script) -> Found:
    for event in [*script.calls("attach_step_hook"), *script.sets("step_hook")]:
        given = event.get("value" if event.kind == "set" else "fn", 0)
        counts = any(each.role == "accountant" for each in given.behind())
        if event.surely_private and not counts:
            yield event, "The step hook of the private optimizer is replaced."


def _dp406(script: Script) -> Found:
    put = [e for e in script.events if e.kind == "put"] + script.calls("clear", "pop", "remove")
    places = [(e, e.subject.of) for e in put if e.subject.name == ".history"]
    places += [(event, event.subject) for event in script.sets("history")]
    for event, accountant in places:  # not of one that was made to try numbers out
        if accountant is not None and accountant.name == ".accountant":
            yield event, "The accountant's history is written over."
    for event in script.sets("accountant"):
        used = [e for e in script.trainings if e.order < event.order]
        if any(event.subject in made.subject.each for made in used):
            yield event, "The engine gets another accountant after make_private."


def _changed_noise(script: Script) -> list[tuple[Occurrence, float | None]]:
    sets = script.sets("noise_multiplier")
    return [(event, event.get("value").number) for event in sets if event.surely_private]


def _noise_schedules(script: Script) -> list[Occurrence]:
    return script.calls("ExponentialNoise", "LambdaNoise", "StepNoise")


def _dp407(script: Script) -> Found:
    for event, noise in _changed_noise(script):
        if noise is None or noise > 0:
            yield event, "The private optimizer's noise is changed by hand."


def _dp408(script: Script) -> Found:
    made = [*script.trainings, *script.calls("DPOptimizer")]
    found = [(e, e.get("noise_multiplier").number, "noise_multiplier is") for e in made]
    for event in _noise_schedules(script):
        found.append((event, event.get("gamma").number, f"{event.short} multiplies the noise by"))
    for event, value in _changed_noise(script):
        found.append((event, value, "The private optimizer's noise is set to"))
    for event, noise, what in found:
        if noise is not None and noise <= 0:
            yield event, f"{what} {noise:g}."


def _dp411(script: Script) -> Found:
    for event in script.trainings:
        planned = event.get("epochs").number
        for step in script.private_steps if planned is not None else ():
            own = any(each.training is event for each in step.subject.each)
            taken = _epochs(step, event) if own else None
            if planned is not None and taken is not None and taken > planned:
                yield event, f"The noise is for {planned:g} epochs, the loop trains for {taken:g}."


def _epochs(step: Occurrence, event: Occurrence) -> float | None:
    """How often the loop over batches is run through, since make_private."""
    loops = [loop for loop in step.loops if loop not in event.loops]
    times = [loop.times for loop in loops[:-1] if loop.times is not None]
    known = bool(loops) and loops[-1].kind == "batches" and len(times) == len(loops) - 1
    return math.prod(times) if known else None


def _dp412(script: Script) -> Found:
    for event in _noise_schedules(script) if script.calls("make_private_with_epsilon") else ():
        yield event, f"{event.short} changes the noise that was chosen for the target ε."


def _dp413(script: Script) -> Found:
    made = [event.result for event in script.calls("create_accountant", "GaussianAccountant")]
    for each in [*script.engines, *made]:
        named = each.get("accountant").is_("gdp") or each.get("mechanism", 0).is_("gdp")
        if named or each.short == "GaussianAccountant":
            yield each, 'The accountant is "gdp".'


LARGE_DELTA = 1e-3  # a δ from here on is large for any data set


def _deltas(script: Script) -> Iterator[tuple[Occurrence, Value]]:
    for event in script.trainings:
        yield event, event.get("target_delta")
    for event in script.calls("get_epsilon", "get_privacy_spent"):
        yield event, event.get("delta", 0)


def too_large(delta: float, records: int | None) -> tuple[str, str] | None:
    """The code and the sentence for a δ that is too large for this number of records."""
    if records is not None and delta * records > 1 + 1e-9:
        return "DP501", f"δ is {delta:g}, more than one over the {records:,} records."
    return ("DP502", f"δ is {delta:g}.") if delta >= LARGE_DELTA else None


def _judged(script: Script, code: str) -> Found:
    for event, given in _deltas(script):
        found = None if given.number is None else too_large(given.number, _records(script))
        if found is not None and found[0] == code:
            yield event, found[1]


def _dp501(script: Script) -> Found:
    yield from _judged(script, "DP501")
    for event, given in _deltas(script):
        for each in given.each:
            above, below = each.sources if each.name == "Div" else (NOTHING, NOTHING)
            loaders = [o.of for o in below.each if o.role == "len" and o.of is not None]
            batches = any(_in_batches(o) for held in loaders for o in held.each)
            if batches and (above.number or 0) >= 1:
                yield event, "δ is one over the number of batches, which is more than 1/N."


def _in_batches(loader: Value) -> bool:
    """Whether it is a loader whose batches have more than one record."""
    size = loader.root.get("batch_size", 1)
    one = size.number == 1 or (size is NOTHING and not loader.root.assumed)
    return loader.role == "loader" and not one


def _dp502(script: Script) -> Found:
    yield from _judged(script, "DP502")


RECORDS = ("data", "targets", "labels", "samples", "imgs", "indices", "train_data")
"""Attributes of a data set that hold its records; where they are set, their number is not known."""


def _records(script: Script) -> int | None:
    """Records of the private training's data, where the user or the script tells."""
    if script.records is not None:
        return script.records
    if any(o.role == "data" for event in script.sets(*RECORDS) for o in event.subject.each):
        return None
    sizes = {size_of(loader.get("dataset", 0)) for loader in script.given("data_loader")}
    return sizes.pop() if len(sizes) == 1 else None
