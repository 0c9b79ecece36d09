"""How batches are drawn: DP101 to DP109."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dprime.check.script import NOTHING, Found, Loop, Occurrence, Script, Value


def _dp101(script: Script) -> Found:
    for event in script.trainings:
        other = event.own_engine or event.noiseless
        if event.get("poisson_sampling").is_(False) and not other:
            what = "batches of a fixed size are accounted as Poisson ones"
            yield event, f"poisson_sampling=False: {what}."


def _dp102(script: Script) -> Found:
    given = script.given("data_loader")
    shuffled = [e for e in script.trainings if e.get("poisson_sampling").is_(False)]
    unchanged = {each for event in shuffled for each in event.get("data_loader").each}

    def plain(loaders: list[Value]) -> bool:
        return not any(each.private or each in unchanged for each in loaders)

    for step in script.private_steps if script.trainings else ():
        loop = step.batches
        if loop is not None and plain(loop.loaders):
            what = "another loader than the one that make_private returned"
            if given.intersection(loop.loaders):
                what = "the loader that was given to make_private, not over the one it returned"
            steps = f"steps the private optimizer ({step.place})"
            yield loop, f"The loop that {steps} runs over {what}."
    data = {held for loader in given for held in loader.get("dataset", 0).each}
    for event, loss in script.training_losses:
        drawn = [each.of for each in loss.batches if each.of is not None]
        used = [loader for held in drawn for loader in held.each]
        same = data.intersection(d for loader in used for d in loader.get("dataset", 0).each)
        if same and plain(used) and event.batches and not plain(event.batches.loaders):
            yield event, "The loss is of batches from another loader than make_private returned."


PLAIN = {"RandomSampler", "SequentialSampler", "DistributedSampler"}


def _samplers(script: Script) -> Iterator[tuple[Occurrence, Value, set[str]]]:
    for event in script.trainings:
        for loader in event.get("data_loader").each:
            given = loader.get("sampler", 3), loader.get("batch_sampler", 4)
            behind = [each.short for sampler in given for each in sampler.behind()]
            names = {name for name in behind if name.endswith("Sampler")}
            if names - PLAIN:
                yield event, loader, names


def _dp103(script: Script) -> Found:
    for event, loader, names in _samplers(script):
        weighing = names & {"WeightedRandomSampler", "ImbalancedDatasetSampler"}
        if weighing and event.get("poisson_sampling").is_(False):
            yield loader, f"{weighing.pop()} draws some records more often than others."


def _dp104(script: Script) -> Found:
    for event, loader, names in _samplers(script):
        poisson = any("UniformWithReplacement" in name for name in names)
        if not poisson and not event.get("poisson_sampling").is_(False):
            yield loader, "The loader has its own sampler, which make_private ignores."


def _dp105(script: Script) -> Found:
    for event in script.calls("step"):
        loop = event.batches if event.subject.role == "accountant" else None
        if loop is not None and not any(each.private for each in loop.loaders):
            what = f"batches of the plain loader in {loop.place}"
            yield event, f"A step is counted by hand for {what}."


def _dp106(script: Script) -> Found:
    for event in script.private_steps:
        loop = event.batches
        if loop is not None and any(each.private for each in loop.loaders):
            inner = [node for test in event.tests[loop.tests :] for node in ast.walk(test)]
            if any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in inner):
                yield event, "The private optimizer steps only after several batches."
    for event in script.calls("signal_skip_step"):
        skips = not event.get("do_skip", 0).is_(False)
        if skips and event.loops and event.loops[-1].kind == "batches":
            yield event, "signal_skip_step adds up several batches of the loader before the noise."


def _dp107(script: Script) -> Found:
    for step in script.private_steps:
        depth = drawn_at(step, script)
        inside = [loop for loop in step.loops[depth:] if loop.repeats]
        chosen = {each for loop in inside for each in loop.target.behind()}
        if depth is None or any(loop.target.from_batch for loop in inside):
            continue  # parts of a batch
        if inside and not chosen.intersection(step.subject.each):
            yield step, f"The loop in {inside[0].place} steps again and again on the same batch."
        elif depth and step.loops[depth - 1].kept is not None:
            yield from _kept(step.loops[depth - 1], step.loops[: depth - 1])
        elif not inside:
            yield from _second(step, depth, script)


def drawn_at(step: Occurrence, script: Script) -> int | None:
    """How many loops are around the place where the batch of a step is drawn."""
    found = [place for place, loop in enumerate(step.loops, 1) if loop.kind == "batches"]
    found += [len(event.loops) for event in _nexts(step, script)]
    return max(found, default=None)


def _nexts(step: Occurrence, script: Script) -> Iterator[Occurrence]:
    """Calls of next(loader) in the loops of a step that happen whenever it does."""
    for event in script.calls("next"):
        around = event.loops == step.loops[: len(event.loops)]
        always = all(test in step.tests for test in event.tests)
        if around and always and any(each.role == "batch" for each in event.result.each):
            yield event


def _kept(loop: Loop, around: tuple[Loop, ...]) -> Found:
    """Batches of one pass that are gone through several times."""
    kept = loop.kept or NOTHING
    again = [each for each in around if each not in kept.loops and each.repeats]
    if kept.short == "cycle":
        yield loop, "cycle() keeps the batches of the first pass and gives them again."
    elif again:
        again_at = f"the loop in {again[0].place} goes through the same ones each time"
        yield loop, f"{kept.short}() keeps the batches of one pass, and {again_at}."


def _second(step: Occurrence, depth: int, script: Script) -> Found:
    drawn = [event.order for event in _nexts(step, script) if len(event.loops) == depth]
    known = step.loops[depth - 1].tests if depth else 0
    for earlier in script.private_steps:
        if earlier.order >= step.order or earlier.loops != step.loops or step.excludes(earlier):
            continue
        private = {each for each in earlier.subject.each if each.private}
        both = private.intersection(step.subject.each)
        fresh = any(earlier.order < order < step.order for order in drawn)
        sometimes = len(earlier.tests) > known and len(step.tests) > known
        if both and not fresh and not sometimes:
            yield step, f"The batch was used already, for the step in {earlier.place}."
            return


def _dp108(script: Script) -> Found:
    for event in script.trainings:
        if event.get("rand_on_empty").is_(True):
            yield event, "rand_on_empty=True puts a random record into a batch that is empty."


def _dp109(script: Script) -> Found:
    for event in script.sets("sample_rate", "sampler", "batch_sampler"):
        if any(each.role == "loader" and each.private for each in owners(event.subject)):
            yield event, f"{event.name} of the private loader is set anew."


def owners(value: Value) -> list[Value]:
    """A value, and what it is an attribute of, however deep."""
    found = list(value.each)
    for each in found:
        if each.name.startswith(".") and each.of is not None:
            found += each.of.each
    return found
