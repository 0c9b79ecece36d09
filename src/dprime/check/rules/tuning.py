"""Several trainings on the same data, and choices between them: DP601 and DP602."""

from __future__ import annotations

import ast
import re

from dprime.check.rules.data import records
from dprime.check.script import Found, Loop, Occurrence, Script, Value

FOLDS = re.compile(r"(Fold|ShuffleSplit|LeaveOneOut|LeavePOut)$")
"""Classes of scikit-learn that cut data into parts which overlap."""

SEARCHES = ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "BayesSearchCV")
KEEPING = {"save", "deepcopy", "save_checkpoint", "state_dict", "save_pretrained"}
"""Calls that keep a model."""


def _dp601(script: Script) -> Found:
    for event in script.trainings:
        loop = next((loop for loop in event.loops if _retrains(event, loop)), None)
        if loop is not None and loop.kind == "tuner":
            yield event, f"A tuner ({loop.place}) trains a private model in each of its trials."
        elif loop is not None:
            yield event, f"A private model is trained in every round of the loop in {loop.place}."
    for event in script.calls(*SEARCHES) if script.trainings else ():
        yield event, f"{event.short} trains once for each setting."
    for place, event in enumerate(script.trainings):
        for earlier in script.trainings[:place]:
            if not event.excludes(earlier) and _second(event, earlier):
                first = f"the training in {earlier.place}"
                yield event, f"A second private model is trained on the data of {first}."


def _retrains(event: Occurrence, loop: Loop) -> bool:
    """Whether each round of a loop trains a new model on the same data, with a new engine."""
    if loop.kind == "tuner":
        return True
    models = [each for each in event.get("module").each if each.role == "model"]
    engines = [each for each in event.subject.behind() if each.role == "engine"]
    counts_on = engines and not any(born_in(each, loop) for each in engines)
    if not loop.repeats or counts_on or not models or event.noiseless:
        return False
    if any(model.assumed or not born_in(model.root, loop) for model in models):
        return False
    if any(FOLDS.search(each.name) for each in loop.over.behind()):
        return True  # parts that overlap
    own = set(loop.target.behind())
    return not any(own.intersection(v.behind()) for v in _data(event))


def born_in(value: Value, loop: Loop) -> bool:
    """Whether each round of a loop makes the value anew."""
    return any(loop in each.loops for each in value.behind())


def _data(event: Occurrence) -> list[Value]:
    """The data of a training; the loader where they are not known."""
    loaders = [loader.root for loader in event.get("data_loader").each]
    return [held for o in loaders for held in o.get("dataset", 0).each or (o,)]


def _second(event: Occurrence, earlier: Occurrence) -> bool:
    """Whether two trainings of different models by different engines have the same data."""
    models = [each.get("module").roots for each in (event, earlier)]
    data = [{records(each) for each in _data(made)} for made in (event, earlier)]
    engines = set(event.subject.each) & set(earlier.subject.each)
    return bool(data[0] & data[1]) and not engines and not models[0] & models[1]


def _dp602(script: Script) -> Found:
    said = "A number that was computed from training records decides when to stop or which model"
    for event in script.events if script.trainings else ():
        if event.kind == "decide" and _keeps_or_stops(event.node) and event.subject.from_batch:
            yield event, f"{said} to keep."


def _keeps_or_stops(node: ast.AST) -> bool:
    """A comparison by size upon which a model is kept or the training stops."""
    if not isinstance(node, ast.If):
        return False
    sized = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    compared = [each for each in ast.walk(node.test) if isinstance(each, ast.Compare)]
    inside = [each for statement in node.body for each in ast.walk(statement)]
    called = [each.func for each in inside if isinstance(each, ast.Call)]
    names = {getattr(func, "attr", getattr(func, "id", "")) for func in called}
    stops = any(isinstance(each, ast.Break) for each in inside) or bool(KEEPING & names)
    return stops and any(isinstance(each.ops[0], sized) for each in compared)
