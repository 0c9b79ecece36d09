"""What is taken from the records, and records that are there several times: DP801 to DP803."""

from __future__ import annotations

import re

from dprime.check.rules.layers import private_inputs
from dprime.check.script import Found, Script, Value

FITTED = re.compile(
    r"^sklearn\.(preprocessing|decomposition|feature_extraction|feature_selection|impute|manifold|"
    r"random_projection|cluster|compose|pipeline)(\.|$)"
)
STATISTICS = (
    *("mean", "std", "var", "median", "quantile", "percentile", "nanmean", "nanstd", "cov"),
    *("std_mean", "var_mean"),
)
LIMITS = ("min", "max", "amin", "amax", "ptp")
"""Statistics where the records are scaled by them; else they say how many classes there are."""


def _dp801(script: Script) -> Found:
    sets = _training_data(script)
    data = {each for held in sets for each in _made_of(held)}
    divisors = {v for each in data if each.name == "Div" for v in each.sources[-1].behind()}

    def is_of(value: Value) -> bool:  # not what a loop over batches computes
        behind = value.behind(lambda each: each.role in ("loader", "output") or each.name == "call")
        return bool(data.intersection(value.each)) or bool(sets.intersection(behind))

    for event in script.calls("fit", "fit_transform", "partial_fit"):
        made_by = [each.short for each in event.subject.behind() if FITTED.match(each.name)]
        if made_by and is_of(event.get("X", 0)):
            yield event, f"{made_by[0]} is fitted to the training data."
    words = ("build_vocab_from_iterator", "build_vocab", "train_new_from_iterator")
    for event in script.calls(*words):
        if any(map(is_of, event.arguments.values())):
            yield event, "The vocabulary is made from the training data."
    for event in script.calls(*STATISTICS, *LIMITS):
        rows = event.subject
        if rows.role == "import" and event.name.startswith(("numpy.", "torch.")):
            rows = event.get("input", 0)
        if (event.short in STATISTICS or event.result in divisors) and is_of(rows):
            yield event, f"{event.short}() is taken over the training data."


def _made_of(data: Value) -> list[Value]:
    """What records were computed from; not what a scaler was fitted to that transformed them."""
    found = {id(data): data}
    for each in (order := [data]):
        fitted = each.sources if each.short == "transform" else ()
        new = [inner for inner in each.inner() if id(inner) not in found and inner not in fitted]
        found |= {id(inner): inner for inner in new}
        order += new
    return order


def _training_data(script: Script) -> set[Value]:
    """The data of the private training, and what it is a part of."""
    found = [held for o in script.given("data_loader") for held in o.get("dataset", 0).each]
    for each in found:
        if each.short in ("Subset", "random_split"):
            found += each.get("dataset", 0).each or each.sources
    return set(found)


def _dp802(script: Script) -> Found:
    for each in (each for held in _training_data(script) for each in held.behind()):
        listed = each.get("datasets", 0).items or [] if each.short == "ConcatDataset" else []
        if any(_overlap(a, b) for place, a in enumerate(listed) for b in listed[place + 1 :]):
            yield each, "The same records are put together more than once."


def _overlap(one: Value, other: Value) -> bool:
    """Whether two data sets have records in common; parts of one split have none."""
    if all(each.name == "random_split" for each in (*one.each, *other.each)):
        return one is other
    sets = [{records(e) for e in held.behind() if e.role == "data"} for held in (one, other)]
    return bool(sets[0] & sets[1])


def records(data: Value) -> object:
    """What is the same for two data sets of the same records."""
    if data.name.startswith("torchvision.datasets"):
        return data.name, data.get("train", 1).constant, data.get("split").constant
    return data


def _dp803(script: Script) -> Found:
    if any(event.own_engine or event.get("batch_first").is_(False) for event in script.trainings):
        return
    for each in private_inputs(script).behind():
        if _joined(each) or _several_rows(each):
            yield each, "The model is given several rows for each record of the batch."


def _several_rows(value: Value) -> bool:
    """`x.repeat(4, 1)`, `torch.repeat_interleave(x, 2)`."""
    rows, first = (value.get("input", 0), 1) if value.of is None else (value.of, 0)
    given = [v for k, v in value.arguments.items() if isinstance(k, int)][first:]
    if value.short not in ("repeat", "repeat_interleave") or not given or not rows.from_batch:
        return False
    if value.short == "repeat":
        count = (given[0].items or given)[0].number
        return count is not None and count > 1
    dim = value.get("dim", first + 1)
    return dim.constant is None or dim.number == 0


def _joined(value: Value) -> bool:
    """`torch.cat([x, x])`: rows below rows, each time all of them."""
    dim = value.get("dim", 1)
    names = ("cat", "concat", "concatenate", "vstack", "row_stack")
    if value.short not in names or not (dim.constant is None or dim.number == 0):
        return False
    listed = value.get("tensors", 0).items or []
    return sum(map(_whole_batch, listed)) > 1


def _whole_batch(value: Value) -> bool:
    """Whether it was computed from all rows of a batch, not from a part of them."""
    behind = value.behind(lambda each: each.name == "[]")
    return any(each.role == "batch" and each.of is not None and each.of.private for each in behind)
