"""What an audit is: names and numbers, checked and resolved before the first trial.

    words (options, TOML) ──► AuditConfig.from_words ──► AuditConfig ──► the run's file ──► resume

A mistyped name or value is refused here, where PyTorch is not needed yet. The seed is drawn and the
noise is solved once; the run keeps the outcome, which `resume` reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from functools import cached_property
from typing import Any, cast

from dprime import validate
from dprime.audit.claim import beside_claim, certified_epsilon, check_local_claim
from dprime.audit.estimators import ESTIMATORS, Estimator
from dprime.audit.lower import USUAL_METHOD
from dprime.audit.planner import Criterion, check_curve
from dprime.audit.words import ADVERSARIES, OF_NOISE, WORDS, over_file
from dprime.bounds import epsilon_from_belief, rdp_noise_multiplier_from_epsilon
from dprime.curve import TradeOff
from dprime.data.loaders import names
from dprime.guarantees import EpsilonDelta
from dprime.mechanisms import DEFAULT_ADJACENCY, DPSGD, Adjacency, Mechanism
from dprime.metrics import Reading
from dprime.option import Option, check_names
from dprime.plain import to_json
from dprime.runs.run import Run
from dprime.seeds import fresh_seed
from dprime.solve import choose

TRAINING = {
    "steps": 30,
    "learning_rate": 0.1,
    "clip_norm": 1.0,
    "sample_rate": 1.0,
    "expected_batch_size": None,
    "sensitivity": "global",
    "optimizer": "sgd",
    "momentum": 0.0,
}
"""The default training; its noise is given, or chosen for the claim."""

TARGETS = ("epsilon", "belief")
CLAIMS = (*TARGETS, "delta", "composition", *OF_NOISE)
TABLES = {
    "training": tuple(name for name, word in WORDS.items() if word.option.table == "training"),
    "chosen_for": (*TARGETS, "delta"),
    "claim": None,
    "conditions": None,
}
"""Words that are tables, with the names in them; None where these depend on others."""

BLOCKS = {"engine": 200, "own": 10}
"""Trials in a block, where the engine trains and where a function of the user's own does."""


@dataclass(frozen=True, kw_only=True)
class AuditConfig:
    """An audit, resolved: nothing in it is drawn or solved later.

    `words.WORDS` describes most fields. The attacker must not exceed the curve of the `claim`, by
    the `criterion`: a reading, or "curve" for all of it at once. `chosen_for` is what the noise was
    chosen for, such as {"epsilon": 4.0, "delta": 1e-5}. A `record` of None is the most unusual one.
    `training` includes the noise; it is empty if the training is a Python object or a function of
    the user's own. In a run of Python objects `contents` has digests of the records, and data,
    trainer and options are descriptions. Never reuse the seed for a model that is released.

    >>> config = AuditConfig.from_words(claim={"epsilon": 4.0}, trials=100, seed=1)
    >>> round(config.training["noise_multiplier"], 2), config.claim.steps
    (5.92, 30)
    """

    adversary: str = "malicious-dataset"
    options: Mapping[str, Any] = field(default_factory=dict)
    data: str = "digits"
    max_records: int | None = None
    data_dir: str | None = None
    model: str = "linear"
    trainer: str | Mapping[str, str] | None = None
    training: Mapping[str, Any] = field(default_factory=dict)
    adjacency: Adjacency
    record: int | None = None
    trials: int = 1000
    block: int
    claim: Mechanism
    chosen_for: Mapping[str, float] = field(default_factory=dict)
    criterion: Criterion = "curve"
    method: str | Estimator = USUAL_METHOD
    confidence: float = 0.95
    delta: float = 1e-5
    belief_level: float = 0.9
    belief_prior: float = 0.5
    assume: str | None = None
    seed: int = field(repr=False)
    device: str = "cpu"
    memory: float = 2.0
    contents: tuple[str | None, ...] = ()

    def __post_init__(self) -> None:
        if self.in_python:  # checked before; the method may be the text of an object
            return
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            own = each.name == "method" and isinstance(value, Estimator)
            if each.name in WORDS and not own and (value, each.default) != (None, None):
                object.__setattr__(self, each.name, WORDS[each.name].check(each.name, value))
        name = getattr(self.method, "name", self.method)
        if name in ESTIMATORS:
            WORDS["method"].check("method", name)
        check_curve(self.criterion, name)
        if name == "bayesian" and self.criterion != Reading("epsilon", {"delta": self.delta}):
            wanted = f"one that bounds more than ε at δ = {self.delta:g}"
            remedy = 'give method="band", or judge by ε'
            raise validate.invalid_value("method", name, wanted, remedy)

    @classmethod
    def from_words(cls, words: Mapping[str, Any] | None = None, /, **more: Any) -> AuditConfig:
        """The audit that options or a TOML file describe.

        The words are those of the attributes, with `metric` and its `conditions` for the criterion.
        `claim` is {"epsilon": …, "delta": …}; or {"belief": …, "delta": …}, a posterior belief that
        is exceeded with probability δ at most; or the noise_multiplier, sample_rate and steps that
        are claimed; or a mechanism as `Mechanism.to_dict` gives it. The default is the training's
        own. Without a noise_multiplier in the training, the noise is chosen to keep the claim: by
        the tight accountant, or with {"composition": "rdp"} by Rényi composition, as in Bernau et
        al. 2021, which takes more noise. The adjacency is "replace" for attribute; else it is the
        training's: "add-remove" for a trainer of your own or with an expected_batch_size,
        "zero-out" without.

        >>> AuditConfig.from_words({"adversery": "di"})
        Traceback (most recent call last):
        dprime.validate.InputError: \
settings must be known names, but it is 'adversery': did you mean \
adversary?
        """
        values = _checked({**(words or {}), **more})
        claim, training, own = values["claim"], values["training"], values["trainer"] is not None
        usual = {
            "adjacency": usual_adjacency(values),
            "seed": fresh_seed(),
            "block": BLOCKS["own" if own else "engine"],
        }
        values |= {name: each for name, each in usual.items() if values[name] is None}
        values["claim"] = _stated(claim, training, values["adjacency"], values["delta"], own)
        config = cls(**values)
        if not own and "noise_multiplier" not in training:
            return config._solved(claim)
        told = config.chosen_for
        if "epsilon" in told and not config.curve.epsilon(told["delta"]) <= told["epsilon"]:
            wanted, remedy = "what the claimed noise keeps", "leave it out"
            raise validate.invalid_value("chosen_for", dict(told), wanted, remedy)
        return config

    @classmethod
    def from_options(cls, values: Mapping[str, Any], given: Mapping[str, Any]) -> AuditConfig:
        """What a file has, and over it the options that were given."""
        given = dict(given)
        if seed_from := given.pop("seed_from", None):
            if "seed" in given:
                wanted, remedy = "given without --seed", "leave one of them out"
                raise validate.invalid_value("seed_from", str(seed_from), wanted, remedy)
            with Run.open(seed_from, verify=False) as other:
                given["seed"] = other.seed
        return cls.from_words(over_file(values, given))

    @classmethod
    def of(cls, run: Run) -> AuditConfig:
        """The configuration that a run was begun with, by names where it has them."""
        return cls.from_dict(words_of(run))

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> AuditConfig:
        """What `to_dict` gave, as a run keeps it; nothing is solved."""
        values = dict(kept)
        known = {each.name for each in dataclasses.fields(cls)} | {"metric", "conditions"}
        if known - {"criterion", "contents"} != values.keys() - {"contents"}:
            wanted, remedy = "begun by this version of dprime", "begin it anew"
            raise validate.invalid_input("run", "begun by an earlier one", wanted, remedy)
        values["criterion"] = criterion_from(values.pop("metric"), values.pop("conditions"))
        values["claim"] = Mechanism.from_dict(values["claim"])
        values["contents"] = tuple(values.get("contents", ()))
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """The audit as JSON values; `from_words` reads them too, without `contents`."""
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        reading = values.pop("criterion")
        if not self.in_python:
            del values["contents"]
        values |= {
            "metric": "curve" if reading == "curve" else reading.name,
            "conditions": {} if reading == "curve" else reading.conditions,
            "method": self.method if isinstance(self.method, str) else repr(self.method),
            "claim": self.claim.to_dict(),
        }
        return cast(dict[str, Any], to_json(values))

    @property
    def in_python(self) -> bool:
        """Whether the audit has objects in it that no file can name."""
        return bool(self.contents)

    @property
    def blocks(self) -> int:
        """How many blocks the trials of both worlds make."""
        return blocks_of(self.trials, self.block)

    @cached_property
    def curve(self) -> TradeOff:
        """The certified curve that is claimed."""
        return self.claim.curve(self.adjacency)

    def certified(self) -> str | None:
        """What the accountant certifies beside the claim, where both are known and differ."""
        if self.trainer is not None or self.in_python or self.training["sensitivity"] == "local":
            return None
        numbers = {name: self.training[name] for name in OF_NOISE}
        if not numbers["noise_multiplier"] or self.claim == DPSGD(**numbers):
            return None
        public_size = self.training["expected_batch_size"] is None
        delta = self.claim.delta if isinstance(self.claim, EpsilonDelta) else self.delta
        training = DPSGD(**numbers, public_size=public_size)
        proved = certified_epsilon(training, self.adjacency, delta)
        if proved is None:
            return None
        return beside_claim(proved, self.curve.epsilon(delta), delta)

    def _solved(self, claim: Mapping[str, Any]) -> AuditConfig:
        """With the least noise that keeps a claimed ε or belief."""
        open_claim = cast(DPSGD, self.claim)
        delta = claim.get("delta", self.delta)
        target = {name: claim[name] for name in TARGETS if name in claim}
        if claim.get("composition") == "rdp":
            rate, steps = open_claim.sample_rate, cast(int, open_claim.steps)
            if rate != 1.0:
                wanted = "1 for Rényi composition"
                raise validate.invalid_value("sample_rate", rate, wanted, "give tight")
            epsilon = target.get("epsilon") or epsilon_from_belief(target["belief"])
            noise = rdp_noise_multiplier_from_epsilon(
                epsilon, delta=delta, steps=steps, adjacency=self.adjacency
            )
            solved = open_claim.with_parameter("noise_multiplier", noise)
        else:
            condition = {"exceeded" if "belief" in target else "delta": delta}
            solved = choose(open_claim, adjacency=self.adjacency, **target, **condition)
        training = {**self.training, "noise_multiplier": solved.noise_multiplier}
        chosen_for = {**target, "delta": delta}
        return dataclasses.replace(self, claim=solved, chosen_for=chosen_for, training=training)


def usual_adjacency(words: Mapping[str, Any]) -> str:
    """The adjacency of an audit that names none, by its words."""
    if words.get("adversary") == "attribute":
        return "replace"
    training = words.get("training")
    constant = isinstance(training, Mapping) and training.get("expected_batch_size") is not None
    public = constant or words.get("trainer") is not None
    return DEFAULT_ADJACENCY if public else "zero-out"


def usual_options() -> tuple[Option, ...]:
    """The options of an audit, with its defaults."""
    usual = {each.name: each.default for each in dataclasses.fields(AuditConfig)} | TRAINING
    usual |= {"metric": "curve"}
    return tuple(
        word.option.here(None if usual.get(name) is MISSING else usual.get(name))
        for name, word in WORDS.items()
    )


def words_of(run: Run) -> Mapping[str, Any]:
    """What the file of an audit's run says of its configuration."""
    if run.kind != "audit":
        shown, name = f"that of another kind, {run.kind}", run.path.name
        remedy = f"dprime resume {name} goes on with it, and dprime report {name} shows it"
        raise validate.invalid_input("run", shown, "that of an audit", remedy)
    return run.request or run.config


def _checked(words: Mapping[str, Any]) -> dict[str, Any]:
    """The words with what they leave out, of known names; the configuration checks values."""
    usual: dict[str, Any] = {
        each.name: None if each.default is MISSING else each.default
        for each in dataclasses.fields(AuditConfig)
        if each.name not in ("criterion", "contents")
    }
    usual |= {"metric": "curve", "options": {}} | {name: {} for name in TABLES}
    check_names("settings", words, usual)
    values = {**usual, **words}
    adversary = validate.one_of("adversary", values["adversary"], tuple(ADVERSARIES))
    _check_options(values["options"], adversary)
    for name, known in TABLES.items():
        check_names(name, values[name], known)
    validate.one_of("data", values["data"], names())
    metric, conditions = values.pop("metric"), values.pop("conditions")
    if WORDS["metric"].check("metric", metric) == "epsilon":
        conditions = {"delta": values["delta"], **conditions}
    recipe = {
        name: value if value is None else WORDS[name].check(name, value)
        for name, value in values["training"].items()
    }  # complete but for its noise; of a function of the user's own, what was said
    return values | {
        "criterion": criterion_from(metric, conditions),
        "training": recipe if values["trainer"] is not None else {**TRAINING, **recipe},
    }


def _check_options(given: Any, adversary: str) -> None:
    for name in given if isinstance(given, Mapping) else ():
        owners = [each for each, own in ADVERSARIES.items() if name in own]
        if owners and adversary not in owners:
            remedy = f"it is an option of {', '.join(owners)}"
            raise validate.invalid_value(name, given[name], f"left out for {adversary}", remedy)
    check_names("options", given, ADVERSARIES[adversary])


def criterion_from(metric: str, conditions: Mapping[str, float]) -> Criterion:
    """The metric with its own conditions, or the curve, which has none."""
    if metric != "curve":
        return Reading(metric, conditions)
    for name, value in conditions.items():
        remedy = "leave it out, or name a metric that has it"
        raise validate.invalid_value(name, value, "left out to judge by the curve", remedy)
    return "curve"


def _stated(
    claim: Mapping[str, Any], training: Mapping[str, Any], adjacency: str, delta: float, own: bool
) -> Mechanism:
    """The claimed mechanism, its noise left open where it is to be chosen."""
    given = own or "noise_multiplier" in training
    target = [name for name in TARGETS if name in claim]
    numbers = {name: claim[name] for name in OF_NOISE if name in claim}
    if "name" not in claim:  # else a mechanism, which checks itself
        _check_together(claim)
    elif given:
        return Mechanism.from_dict(claim)
    if given and "epsilon" in claim:
        return EpsilonDelta(claim["epsilon"], claim.get("delta", delta), adjacency=adjacency)
    if given and "belief" in claim:
        wanted = "one that the noise is chosen for"
        remedy = "leave the noise_multiplier out, or claim an epsilon"
        raise validate.invalid_value("belief", claim["belief"], wanted, remedy)
    if own and not claim:
        wanted = "given for a training function of your own"
        remedy = "give epsilon and delta, or noise_multiplier, sample_rate and steps"
        raise validate.invalid_input("claim", "missing", wanted, remedy)
    if not given and not target:
        remedy = "give it, or an ε to claim"
        raise validate.invalid_input("noise_multiplier", "missing", "given in the training", remedy)
    if not own:
        check_local_claim(training["sensitivity"], training["sample_rate"], adjacency)
        numbers = {name: training.get(name) for name in OF_NOISE} | numbers
    return DPSGD(**numbers)


def _check_together(claim: Mapping[str, Any]) -> None:
    """Refuse a claim of two kinds, and a delta or a composition alone."""
    check_names("claim", claim, CLAIMS)
    validate.one_of("composition", claim.get("composition", "tight"), ("tight", "rdp"))
    kinds = ({*OF_NOISE}, *({name, "delta", "composition"} for name in TARGETS))
    alone = claim and claim.keys() <= {"delta", "composition"}
    if alone or not any(claim.keys() <= kind for kind in kinds):
        wanted = "an epsilon or a belief, with its delta; or the numbers of a training"
        shown = " and ".join(claim)
        raise validate.invalid_input("claim", shown, wanted, "give one of them")


def blocks_of(trials: int, block: int) -> int:
    """How many blocks make this number of trials in each world."""
    return -(-2 * trials // block)
