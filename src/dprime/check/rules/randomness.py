"""Where the noise comes from: DP701 to DP703."""

from __future__ import annotations

from collections.abc import Iterator

from dprime.check.report import error, note
from dprime.check.script import UNKNOWN, Found, Loop, Occurrence, Script
from dprime.text import GRID


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
        if fixed and (
            event.subject.role == "import" or generators.intersection(event.subject.each)
        ):
            yield event, next((loop for loop in event.loops if loop in around), None)


@error(
    "DP701: the same noise again",
    why="A seed that is set anew in the loop repeats the noise, and noise that repeats can be "
    "subtracted.",
    remedy="Seed once, before the training, or not at all.",
)
def _repeated_seed(script: Script) -> Found:
    for event, loop in _seeds(script):
        if loop is not None:
            yield event, f"A constant seed is set in every round of the loop in {loop.place}."


@note(
    "DP702: a fixed seed",
    why="Whoever knows the seed can draw the same noise and subtract it.",
    remedy="For the model that you publish, leave the seed out, or use secure_mode=True.",
)
def _fixed_seed(script: Script) -> Found:
    secure = any(engine.get("secure_mode").is_(True) for engine in script.engines)
    for event, loop in _seeds(script):
        if loop is None and not (secure and event.subject.role == "import"):
            yield event, "The noise comes from a seed in the script."
            return


@note(
    "DP703: secure mode is off",
    why=f"{GRID}. They also end at 5.768 standard deviations: at rate 0.01, noise 1 and 1,000 "
    "steps, an output that is impossible without the record has a probability of 2.3e-5 with it, "
    "more than a δ of 1e-5.",
    remedy="For the model that you publish, use PrivacyEngine(secure_mode=True); where it is not "
    "to be had, let dprime.monitor count the tails, and publish no more digits than are needed.",
)
def _not_secure(script: Script) -> Found:
    for engine in script.engines if script.trainings else ():
        if engine.get("secure_mode").constant in (None, False):
            yield engine, "secure_mode is off."
