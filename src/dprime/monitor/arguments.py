"""The checks of a monitor's arguments: each refusal says how to mend the argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dprime import validate
from dprime.mechanisms import ADJACENCIES, Mechanism
from dprime.metrics import Reading, profile
from dprime.monitor.hooks import MARK
from dprime.monitor.opacus_training import OpacusTraining
from dprime.monitor.public import PublicConstants
from dprime.monitor.watcher import Watcher

LISTS: dict[str, tuple[Any, str, str]] = {
    "watchers": (Watcher, "watchers", "GradientCanaries()"),
    "trackers": (Callable, "functions", "to_mlflow()"),
    "other_mechanisms": (Mechanism, "mechanisms", "clip_norm.cost"),
}
"""What the lists among the arguments hold, and an example."""


def refuse_second(**objects: Any) -> None:
    """Refuse a second monitor on the same training."""
    for name, thing in objects.items():
        if hasattr(thing, MARK):
            remedy = f"take the first one off with {name}.{MARK}.detach()"
            raise validate.invalid_input(
                name, "already attached", "watched by one monitor only", remedy
            )


def adjacency_of(
    asked: str | None, training: OpacusTraining, public: PublicConstants | None
) -> str:
    """The adjacency that was asked for, or else the one that the sampling has a guarantee for.

    Opacus takes rate, divisor and number of steps from the number of records, so that adding one
    is covered only where all three are constants.
    """
    usual = "zero-out" if public is None else "add-remove"
    if asked is None:
        return usual if training.poisson else "replace"
    validate.one_of("adjacency", asked, ADJACENCIES)
    if asked == "add-remove" and not training.poisson:
        remedy = "leave it out, or use make_private(poisson_sampling=True)"
        raise validate.invalid_value(
            "adjacency", asked, "'replace' or 'zero-out' without Poisson sampling", remedy
        )
    if asked == "add-remove" and public is None:
        remedy = (
            "leave it out, or state rate, divisor and steps as constants with "
            "Monitor(..., public=PublicConstants(sample_rate, expected_batch_size, steps))"
        )
        raise validate.invalid_value(
            "adjacency", asked, "'zero-out' or 'replace' where Opacus counts the records", remedy
        )
    return asked


def public_constants(given: object, training: OpacusTraining) -> PublicConstants | None:
    """Check that the training has these public constants now."""
    if given is None:
        return None
    if not isinstance(given, PublicConstants):
        remedy = "give PublicConstants(sample_rate=0.01, expected_batch_size=600, steps=500)"
        raise validate.invalid_value("public", given, "PublicConstants", remedy)
    if not training.poisson:
        raise validate.invalid_input(
            "public", "given", "left out without Poisson sampling",
            "use make_private(poisson_sampling=True), or leave it out",
        )  # fmt: skip
    other = given.misfit(training, 0)
    if other:
        remedy = (
            "draw with DPDataLoader(data, sample_rate=...), and set "
            "optimizer.expected_batch_size to the constant before you attach"
        )
        raise validate.invalid_input(
            "public", f"another one ({other})", "as in the training", remedy
        )
    return given


def listed(name: str, given: Any) -> tuple[Any, ...]:
    """Check a sequence of objects of one type; a class in place of an object is refused."""
    kind, plural, example = LISTS[name]
    if isinstance(given, Sequence) and all(isinstance(one, kind) for one in given):
        return tuple(given)
    remedy = f"give for example {name}=[{example}]"
    raise validate.invalid_value(name, given, f"a list of {plural}", remedy)


def readings_of(conditions: object) -> tuple[Reading, ...]:
    """Every metric with its conditions."""
    if conditions is None or isinstance(conditions, Mapping):
        return profile(**(conditions or {}))
    remedy = 'give for example {"delta": 1e-6}'
    raise validate.invalid_value("conditions", conditions, "a mapping of names to numbers", remedy)


def sink_of(show: Any) -> Callable[[str], object] | None:
    """Check the function that is called with the line of each epoch."""
    if show is None or callable(show):
        return show  # type: ignore[no-any-return]
    remedy = "leave it out for lines on stderr, or give for example logger.info"
    raise validate.invalid_value("show", show, "a function that takes a line, or None", remedy)
