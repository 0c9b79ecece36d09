"""Where the noise comes from: DP701 to DP703."""

from __future__ import annotations

from collections.abc import Iterator

from dprime.check.script import UNKNOWN, Found, Loop, Occurrence, Script


def _seeds(script: Script) -> Iterator[tuple[Occurrence, Loop | None]]:
    """Constant seeds that decide about the noise, each with the loop of the training around it."""
    given = [made.get("noise_generator") for made in script.trainings]
    given += [made.get("value") for made in script.sets("generator")]
    generators = {each for value in given for each in value.behind()}
    made = [loop for training in script.trainings for loop in training.loops]
    around = [loop for step in script.private_steps for loop in step.loops if loop not in made]
    names = ("manual_seed", "manual_seed_all", "seed_everything", "set_seed")
    for event in script.calls(*names) if script.trainings else ():
        fixed = all(each.constant not in (UNKNOWN, None) for each in event.get("seed", 0).each)
        noise = event.subject.role == "import" or generators.intersection(event.subject.each)
        if fixed and noise:
            yield event, next((loop for loop in event.loops if loop in around), None)


def _dp701(script: Script) -> Found:
    for event, loop in _seeds(script):
        if loop is not None:
            yield event, f"A constant seed is set in every round of the loop in {loop.place}."


def _dp702(script: Script) -> Found:
    secure = any(engine.get("secure_mode").is_(True) for engine in script.engines)
    for event, loop in _seeds(script):
        if loop is None and not (secure and event.subject.role == "import"):
            yield event, "The noise comes from a seed in the script."
            return


def _dp703(script: Script) -> Found:
    for engine in script.engines if script.trainings else ():
        if engine.get("secure_mode").constant in (None, False):
            yield engine, "secure_mode is off."
