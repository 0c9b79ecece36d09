"""A question as texts, from a command line or an address, and its certified answer.

    texts ──► Asked (mechanism, adjacency, group size, conditions) ──► printed(answers)

Names and texts are those of `dprime risk` and `dprime choose`, so that the same words give the same
numbers wherever they are typed.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dprime import validate
from dprime.mechanisms import ADJACENCIES, DPSGD, Mechanism, PoolSampled
from dprime.metrics import METRICS, OPTIONS, TARGETS, MetricValue, Reading, profile
from dprime.parameters import steps_from_epochs
from dprime.solve import choose
from dprime.text import round_down, round_up

Texts = Mapping[str, str]

MECHANISM = ("noise_multiplier", "sample_rate", "steps")
"""The parameters of DP-SGD; `choose` finds one of them."""

CONDITIONS = ("prior", "belief_prior", "belief", "fpr", "delta", "min_tpr", "exceeded")
"""What an address can give for the metrics to be read at; a command line has `OPTIONS`."""

NAMES = (*MECHANISM, "adjacency", "group_size", *CONDITIONS)
"""Everything that an address can give beside a target; a command has more options."""

TARGETS_ASKED = tuple(
    name
    for name in TARGETS
    if {METRICS[name].option(condition) for condition in METRICS[name].conditions} <= {*CONDITIONS}
)
"""The targets whose conditions an address can give."""

GIVE_IT = "give it, or let dprime choose find it"
"""The remedy where a parameter is missing; a command names its {option}."""


@dataclass(frozen=True)
class Asked:
    """A question in numbers.

    Attributes:
        mechanism: what was run; one parameter is missing where it is to be chosen.
        adjacency: "add-remove", "replace" or "zero-out".
        group_size: records that one person may have.
        readings: the metrics with their conditions.
        target: the acceptable risk with its conditions, as `choose` takes them; empty for `risk`.
    """

    mechanism: DPSGD
    adjacency: str
    group_size: int
    readings: tuple[Reading, ...]
    target: tuple[tuple[str, float], ...] = ()

    def sought(self) -> Mechanism:
        """What `choose` completes: where no parameter is missing, the share of a pool."""
        wanted = dict(self.target)
        if self.mechanism.free_parameters() or not {"precision", "belief"} & set(wanted):
            return self.mechanism
        return self.mechanism if "prior" in wanted else PoolSampled(self.mechanism)

    def answered_by(self, chosen: DPSGD) -> Asked:
        """The same question of a mechanism whose parameter was found."""
        return replace(self, mechanism=chosen, target=())


def level(condition: str) -> str:
    """What `choose` calls a condition, which may not have the name of a target.

    >>> level("belief"), level("fpr")
    ('belief_level', 'fpr')
    """
    return f"{condition}_level" if condition in TARGETS else condition


def typed(**texts: str | None) -> dict[str, str]:
    """The options that were given."""
    return {name: text for name, text in texts.items() if text is not None}


def training_asked(texts: Texts, missing: str = GIVE_IT) -> DPSGD:
    """The DP-SGD that the texts describe; `missing` is the remedy where a parameter is not given.

    >>> training_asked({"noise_multiplier": "1", "sample_rate": "0.01", "epochs": "20"}).steps
    2000
    """
    mechanism = _described(texts)
    if mechanism.free_parameters():
        name = mechanism.free_parameters()[0]
        raise validate.misfit(name, "missing", "given", missing.format(option=_option(name)))
    return mechanism


def risk_asked(texts: Texts, missing: str = GIVE_IT) -> Asked:
    """The question that `dprime risk` has with these options.

    >>> asked = risk_asked({"noise_multiplier": "1.1", "sample_rate": "256/60000", "steps": "10"})
    >>> asked.mechanism.steps, asked.adjacency, asked.readings[2].title
    (10, 'add-remove', 'TPR at FPR 0.01')
    """
    mechanism = training_asked(texts, missing)
    readings, size = profile(**_conditions(texts)), _group_size(texts)
    return Asked(mechanism, _adjacency(texts, mechanism), size, readings)


def target_asked(texts: Texts, targets: Texts) -> Asked:
    """The question that `dprime choose` has with these options; it refuses all but one target.

    >>> asked = target_asked({"sample_rate": "0.01", "steps": "2000"}, {"success": "0.6"})
    >>> asked.mechanism.free_parameters(), asked.target
    (['noise_multiplier'], (('success', 0.6),))
    """
    mechanism = _described(texts)
    goals = _numbers(targets, tuple(targets))
    given = _conditions(texts)
    if "belief" in goals and "prior" in given:
        given.setdefault("belief_prior", given["prior"])
    wanted = goals | {  # the targets' own conditions; the others only shape the table
        name: given[METRICS[goal].option(name)]
        for goal in goals
        for name in METRICS[goal].conditions
        if METRICS[goal].option(name) in given
    }
    size, adjacency = _group_size(texts), _adjacency(texts, mechanism, goals)
    return Asked(mechanism, adjacency, size, profile(**given), tuple(wanted.items()))


def choose_asked(texts: Texts, target: str, value: str, free: str) -> Asked:
    """The same with the parameter named that is to be found; what is given for it is not read.

    >>> given = {"sample_rate": "0.01", "steps": "2000", "fpr": "0.01"}
    >>> choose_asked(given, "tpr", "0.03", "noise_multiplier").target
    (('tpr', 0.03), ('fpr', 0.01))
    """
    validate.one_of("target", target, TARGETS_ASKED)
    validate.one_of("free", free, MECHANISM)
    given = {name: text for name, text in texts.items() if name != free}
    for name in _described(given).free_parameters():
        if name != free:
            raise validate.misfit(name, "missing", "given", "give it, or make it the free one")
    return target_asked(given, {target: value})


def chosen(asked: Asked) -> DPSGD:
    """The mechanism with its missing parameter found, always on the safe side."""
    return choose(
        asked.mechanism,
        adjacency=asked.adjacency,
        group_size=asked.group_size,
        **dict(asked.target),  # type: ignore[arg-type]
    )


def printed(
    mechanism: Mechanism, adjacency: str, group_size: int, answers: list[MetricValue]
) -> dict[str, Any]:
    """What `--json` prints: the mechanism, the adjacency, the group size and every metric."""
    return {
        "mechanism": mechanism.to_dict(),
        "adjacency": adjacency,
        "group_size": group_size,
        "metrics": {answer.name: answer.as_json() for answer in answers},
    }


def safe_digits(name: str, value: float) -> str:
    """A chosen parameter as printed may be typed in again: its digits are cut on the safe side."""
    if isinstance(value, int):
        return f"{value:,}"
    return round_up(value, 6) if name == "noise_multiplier" else round_down(value, 6)


def describe(
    mechanism: Mechanism, adjacency: str, group_size: int = 1, *, chosen: str | None = None
) -> str:
    """A mechanism in one line; the digits of a chosen parameter are cut on the safe side."""
    values = mechanism.to_dict()
    if isinstance(mechanism, PoolSampled):
        inner = describe(mechanism.training, adjacency, group_size, chosen=chosen)
        return f"{inner}, trained on a share {_digits(values, 'probability', chosen)} of a pool"
    if isinstance(mechanism, DPSGD):
        text = (
            f"DP-SGD, noise {_digits(values, 'noise_multiplier', chosen)}, "
            f"rate {_digits(values, 'sample_rate', chosen)}, "
            f"{values['steps']:,} {'step' if mechanism.steps == 1 else 'steps'}, "
            f"{mechanism.sampling} sampling"
        )
    else:
        text = ", ".join(f"{value}" for value in values.values())
    records = "one record" if group_size == 1 else f"the {group_size:,} records of one person"
    changed = {"replace": f"{records} replaced", "zero-out": f"{records} zeroed out"}
    return f"{text}; {changed.get(adjacency, f'with or without {records}')}"


def _digits(values: Mapping[str, Any], name: str, chosen: str | None) -> str:
    value = float(values[name])
    return safe_digits(name, value) if name == chosen else f"{value:.6g}"


def risk_command(texts: Texts) -> str:
    """The command that gives the same answer.

    >>> risk_command({"noise_multiplier": "1.1", "sample_rate": "256/60000", "steps": "10"})
    'dprime risk --noise-multiplier 1.1 --sample-rate 256/60000 --steps 10'
    """
    return _command("risk", {name: texts[name] for name in NAMES if name in texts})


def choose_command(texts: Texts, target: str, value: str, free: str) -> str:
    """The command that chooses the same.

    >>> choose_command({"sample_rate": "0.01", "steps": "10"}, "advantage", "0.1", "steps")
    'dprime choose --advantage 0.1 --sample-rate 0.01'
    """
    options = {target: value}
    for name in NAMES:
        if name in texts and name != free:
            options[level(name)] = texts[name]
    return _command("choose", options)


def _command(name: str, options: Texts) -> str:
    words = ["dprime", name]
    for option, text in options.items():
        words += [_option(option), text]
    return shlex.join(words)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _described(texts: Texts) -> DPSGD:
    """The DP-SGD that the texts describe; what was not given stays open."""
    numbers: dict[str, Any] = _numbers(texts, MECHANISM)
    if "sampling" in texts:
        numbers["sampling"] = texts["sampling"]
    mechanism = DPSGD(**numbers)
    if "epochs" not in texts:
        return mechanism
    lengths = {name: texts.get(name) for name in ("steps", "epochs")}
    validate.exactly_one("steps, epochs", lengths, "leave one out")
    if mechanism.sample_rate is None:
        raise validate.InputError.of(
            "sample_rate",
            "be given with epochs",
            "it is missing",
            "add --sample-rate, or give --steps",
        )
    epochs = validate.parse("epochs", texts["epochs"])
    return replace(mechanism, steps=steps_from_epochs(epochs, mechanism.sample_rate))


def _adjacency(texts: Texts, mechanism: DPSGD, goals: Mapping[str, float] | None = None) -> str:
    """The adjacency that was asked for; guessing a secret is a question of replacing a record."""
    if "secret_success" in (goals or {}):
        return texts.get("adjacency", "replace")  # `choose` refuses any other
    adjacency = texts.get("adjacency", mechanism.default_adjacency)
    if "max_prior" in texts and adjacency != "replace":
        raise validate.refusal(
            "adjacency",
            adjacency,
            "'replace' to ask about a secret (max_prior)",
            "add --adjacency replace",
        )
    return validate.one_of("adjacency", adjacency, ADJACENCIES)


def _group_size(texts: Texts) -> int:
    size = validate.parse("group_size", texts.get("group_size", "1"))
    return validate.whole("group_size", size, example=1)


def _conditions(texts: Texts) -> dict[str, float]:
    """The conditions that were given, by their options; the prior is that of precision and success.

    `choose` gives a condition that has the name of a target as its level.
    """
    given = {name: name if name in texts else level(name) for name in OPTIONS}
    return {
        name: validate.parse(text, texts[text]) for name, text in given.items() if text in texts
    }


def _numbers(texts: Texts, names: tuple[str, ...]) -> dict[str, float]:
    return {name: validate.parse(name, texts[name]) for name in names if name in texts}
