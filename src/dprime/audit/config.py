"""What an audit is: names and numbers, checked and resolved before the first trial.

    words (options, TOML) ──► AuditConfig.from_words ──► AuditConfig ──► the run's file ──► resume

A mistyped name or value is refused here, where PyTorch is not needed yet. The seed is drawn and the
noise is solved once; the run keeps the outcome, and whoever resumes it reads it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field
from functools import cached_property
from typing import Any, cast

from dprime import validate
from dprime.audit import caveats
from dprime.audit.claim import check_local_claim
from dprime.audit.estimators import ESTIMATORS, FOR_TRIALS, Estimator
from dprime.audit.estimators.base import ASSUMABLE
from dprime.audit.files import check_names
from dprime.audit.lower import USUAL_METHOD
from dprime.audit.planner import Criterion, check_curve
from dprime.bounds import epsilon_from_belief, rdp_noise_multiplier_from_epsilon
from dprime.curve import TradeOff
from dprime.data.loaders import names
from dprime.guarantees import EpsilonDelta
from dprime.mechanisms import ADJACENCIES, DPSGD, Adjacency, Mechanism
from dprime.metrics import OBSERVED, Reading
from dprime.plain import to_json
from dprime.seeds import check_seed, fresh_seed
from dprime.solve import choose

ADVERSARIES: Mapping[str, tuple[str, ...]] = {
    "di": (),
    "api-access": (),
    "static-poisoning": ("shadows", "outliers"),
    "intermediate-models": ("shadows", "outliers"),
    "adaptive-poisoning": ("pgd_steps", "size"),
    "gradient": ("shadows", "share"),
    "malicious-dataset": ("copies",),
    "opposing-dataset": ("copies",),
    "chosen-weights": ("steps", "learning_rate"),
    "attribute": ("columns", "values", "record"),
    "noise-grid": (),
}
"""The options of each adversary; `dprime.attack` has the adversaries, and needs PyTorch."""

TRAINING = {
    "steps": 30, "learning_rate": 0.1, "clip_norm": 1.0, "sample_rate": 1.0,
    "expected_batch_size": None, "sensitivity": "global", "optimizer": "sgd", "momentum": 0.0,
}  # fmt: skip
"""The default training; its noise is given, or chosen for the claim."""

OF_NOISE = ("noise_multiplier", "sample_rate", "steps")
CLAIMS = ("epsilon", "belief", "delta", "composition", *OF_NOISE)
TABLES = ("options", "training", "claim", "chosen_for", "conditions")


def _choice(*options: str) -> Callable[[str, object], str]:
    return lambda name, value: validate.one_of(name, value, options)


CHECKS: Mapping[str, Callable[[str, Any], object]] = {
    "steps": validate.whole,
    "learning_rate": validate.positive,
    "clip_norm": validate.positive,
    "noise_multiplier": validate.at_least_zero,
    "sample_rate": validate.rate,
    "expected_batch_size": validate.positive,
    "momentum": validate.below_one,
    "sensitivity": _choice("global", "local"),
    "optimizer": _choice("sgd", "adam"),
    "loss": _choice("cross-entropy", "squared-error", "binary-cross-entropy"),
}
"""How each value of a training is checked."""


@dataclass(frozen=True, kw_only=True)
class AuditConfig:
    """An audit, resolved: nothing in it is drawn or solved later.

    Attributes:
        adversary: its name.
        options: of the adversary, such as {"columns": "age", "values": [0.2, 0.8]} for attribute.
        data: a data set's name.
        records: how many of its training records are used, from the first; None takes all.
        data_dir: where the data sets' files are.
        model: "linear", "dense-64-32", "conv-16-32", or "module:function" that returns a network.
        trainer: "module:function" of your own, given a data set and a seed, returning a model; for
            a run of Python objects a description.
        training: the recipe, with its noise: steps, learning_rate, clip_norm, noise_multiplier,
            sample_rate, expected_batch_size, sensitivity, loss, optimizer ("sgd", "adam"),
            momentum. Empty where the training is a Python object or a function of your own.
        adjacency: "add-remove", "replace" or "zero-out".
        record: the index of the attacked record; None takes the most unusual one.
        trials: in each world.
        block: trials that are played and stored together.
        claim: what is claimed. Its curve is what the attacker must not exceed.
        chosen_for: what the noise was chosen for, such as {"epsilon": 4.0, "delta": 1e-5}.
        criterion: the reading by which the claim is judged, or "curve" for all of it at once.
        method: of the lower bound.
        confidence: of the lower bound.
        delta: of every ε that is shown.
        belief: ρ_β, the belief whose exceedance is counted, for the DI adversary.
        belief_prior: the belief before the first step, for the DI adversary.
        assume: "gaussian" accepts that law of the scores for a method that rests on it.
        seed: gives the whole audit. Never use it again for a model that is released.
        device: "cpu" or "cuda".
        memory: in GB.
        contents: digests of the records, for a run of Python objects.

    >>> config = AuditConfig.from_words(claim={"epsilon": 4.0}, trials=100, seed=1)
    >>> round(config.training["noise_multiplier"], 2), config.claim.steps
    (5.92, 30)
    """

    adversary: str = "malicious-dataset"
    options: Mapping[str, Any] = field(default_factory=dict)
    data: str = "digits"
    records: int | None = None
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
    belief: float = 0.9
    belief_prior: float = 0.5
    assume: str | None = None
    seed: int = field(repr=False)
    device: str = "cpu"
    memory: float = 2.0
    contents: tuple[str | None, ...] = ()

    def __post_init__(self) -> None:
        for name in ("trials", "block"):
            object.__setattr__(self, name, validate.whole(name, getattr(self, name)))
        if self.trials < 2:
            raise validate.invalid_value(
                "trials", self.trials, "at least 2 in each world", "give 1000"
            )
        check_seed(self.seed)
        validate.one_of("adjacency", self.adjacency, ADJACENCIES)
        validate.positive("memory", self.memory, example=2.0)
        validate.below_one("delta", self.delta, example="1e-5")
        validate.inner_probability("belief", self.belief, example=0.9)
        validate.inner_probability("belief_prior", self.belief_prior)
        validate.inner_probability("confidence", self.confidence, example=0.95)
        if self.assume is not None:
            validate.one_of("assume", self.assume, ASSUMABLE)
        if self.in_python:  # there a method may be an object, of which the run keeps the text
            return
        name = self.method_name
        if not isinstance(self.method, Estimator) or name in ESTIMATORS:
            validate.one_of("method", name, FOR_TRIALS)
        check_curve(self.criterion, name)
        if name == "bayesian" and self.criterion != Reading("epsilon", {"delta": self.delta}):
            wanted = f"one that bounds more than ε at δ = {self.delta:g}"
            raise validate.invalid_value(
                "method", name, wanted, 'give method="band", or judge by ε'
            )

    @classmethod
    def from_words(cls, words: Mapping[str, Any] | None = None, /, **more: Any) -> AuditConfig:
        """The audit that options or a TOML file describe.

        They are named as the attributes are, with `metric` and its `conditions` for the criterion.
        `claim` is {"epsilon": …, "delta": …}; or {"belief": …, "delta": …}, a posterior belief that
        is exceeded with probability δ at most; or the noise_multiplier, sample_rate and steps that
        are claimed; or a mechanism as `Mechanism.to_dict` gives it. Without it the claim is the
        training's own. Without a noise_multiplier in the training, the noise is chosen so that the
        claim is kept: by the tight accountant, or with {"composition": "rdp"} by Rényi composition,
        as Bernau et al. 2021 do, which takes more. The adjacency is "replace" for attribute; else
        it is what holds for the training: "add-remove" for a trainer of your own or with an
        expected_batch_size, "zero-out" without.

        >>> AuditConfig.from_words({"adversery": "di"})
        Traceback (most recent call last):
        dprime.validate.InputError: \
settings must be known names, but it is 'adversery': did you mean \
adversary?
        """
        values = _checked({**(words or {}), **more})
        claim, training, own = values["claim"], values["training"], values["trainer"] is not None
        if values["adjacency"] is None:
            public = own or training["expected_batch_size"] is not None
            usual = "add-remove" if public else "zero-out"
            values["adjacency"] = "replace" if values["adversary"] == "attribute" else usual
        if values["seed"] is None:
            values["seed"] = fresh_seed()
        if values["block"] is None:
            values["block"] = usual_block(own)
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
    def from_dict(cls, kept: Mapping[str, Any]) -> AuditConfig:
        """What `to_dict` gave, as a run keeps it; nothing is solved."""
        values = dict(kept)
        if "chosen_for" not in values:
            wanted, remedy = "begun by this version of dprime", "begin it anew"
            raise validate.invalid_input("run", "begun by an earlier one", wanted, remedy)
        values["criterion"] = criterion_from(values.pop("metric"), values.pop("conditions"))
        values["claim"] = Mechanism.from_dict(values["claim"])
        values["contents"] = tuple(values.get("contents", ()))
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """The audit as JSON values; `from_words` reads them too, without `contents`."""
        values = {
            f.name: to_json(getattr(self, f.name))
            for f in dataclasses.fields(self)
            if f.name not in ("criterion", "method", "claim")
        }
        if not self.in_python:
            del values["contents"]
        curve = self.criterion == "curve"
        return values | {
            "metric": "curve" if curve else cast(Reading, self.criterion).name,
            "conditions": {} if curve else dict(cast(Reading, self.criterion).conditions),
            "method": self.method if isinstance(self.method, str) else repr(self.method),
            "claim": to_json(self.claim.to_dict()),
        }

    @property
    def in_python(self) -> bool:
        """Whether the audit has objects in it that no file can name."""
        return bool(self.contents)

    @property
    def method_name(self) -> str:
        return str(getattr(self.method, "name", self.method))

    @property
    def blocks(self) -> int:
        return blocks_of(self.trials, self.block)

    @cached_property
    def curve(self) -> TradeOff:
        """The certified curve that is claimed."""
        return self.claim.curve(self.adjacency)

    def certified(self) -> str | None:
        """What the accountant certifies beside the claim, where both are known and differ.

        >>> claim, training = {"epsilon": 4.0}, {"noise_multiplier": 2.96}
        >>> AuditConfig.from_words(claim=claim, training=training).certified()
        'The accountant certifies ε = 9.089 at δ = 1e-05 for this training; the claim is ε = 4.'
        """
        if self.trainer is not None or self.in_python or self.training["sensitivity"] == "local":
            return None
        numbers = {name: self.training[name] for name in OF_NOISE}
        if not numbers["noise_multiplier"] or self.claim == DPSGD(**numbers):
            return None
        public_size = self.training["expected_batch_size"] is None
        delta = self.claim.delta if isinstance(self.claim, EpsilonDelta) else self.delta
        training = DPSGD(**numbers, public_size=public_size)
        proved = caveats.certified_epsilon(training, self.adjacency, delta)
        if proved is None:
            return None
        return caveats.beside_claim(proved, self.curve.epsilon(delta), delta)

    def _solved(self, claim: Mapping[str, Any]) -> AuditConfig:
        """With the least noise that keeps a claimed ε or belief."""
        open_claim = cast(DPSGD, self.claim)
        delta = claim.get("delta", self.delta)
        target = {name: claim[name] for name in ("epsilon", "belief") if name in claim}
        if claim.get("composition") == "rdp":
            rate, steps = open_claim.sample_rate, cast(int, open_claim.steps)
            if rate != 1.0:
                raise validate.invalid_value(
                    "sample_rate", rate, "1 for Rényi composition", "give tight"
                )
            epsilon = target.get("epsilon") or epsilon_from_belief(target["belief"])
            noise = rdp_noise_multiplier_from_epsilon(
                epsilon, delta=delta, steps=steps, adjacency=self.adjacency
            )
            solved = open_claim.with_parameter("noise_multiplier", noise)
        else:
            condition = {"exceeded" if "belief" in target else "delta": delta}
            solved = choose(open_claim, adjacency=self.adjacency, **target, **condition)
        return dataclasses.replace(
            self, claim=solved, chosen_for={**target, "delta": delta},
            training={**self.training, "noise_multiplier": solved.noise_multiplier},
        )  # fmt: skip


def _checked(words: Mapping[str, Any]) -> dict[str, Any]:
    """The words with what they leave out, of known names and of the right types."""
    usual: dict[str, Any] = {
        f.name: None if f.default is MISSING else f.default
        for f in dataclasses.fields(AuditConfig)
        if f.name not in ("criterion", "contents")
    }
    usual |= {"metric": "curve"} | {name: {} for name in TABLES}
    check_names("settings", words, usual)
    values = {**usual, **words}
    adversary = validate.one_of("adversary", values["adversary"], tuple(ADVERSARIES))
    check_names("options", values["options"], ADVERSARIES[adversary])
    check_names("chosen_for", values["chosen_for"], ("epsilon", "belief", "delta"))
    for name in ("data", "model", "device", "data_dir", "trainer"):
        given = values[name]
        if not (isinstance(given, str) and given) and (given, usual[name]) != (None, None):
            raise validate.invalid_value(name, given, "a text that is not empty", "give a name")
    validate.one_of("data", values["data"], names())
    if values["records"] is not None:
        values["records"] = validate.whole("records", values["records"])
    validate.one_of("metric", values["metric"], (*OBSERVED, "curve"))
    metric, conditions = values.pop("metric"), values.pop("conditions")
    check_names("conditions", conditions)
    if metric == "epsilon":
        conditions = {"delta": values["delta"], **conditions}
    _check_claim(values["claim"])
    check_names("training", values["training"], CHECKS)
    recipe = {
        name: value if value is None else CHECKS[name](name, value)
        for name, value in values["training"].items()
    }  # complete but for its noise; of a function of the user's own, what was said
    return values | {
        "criterion": criterion_from(metric, conditions),
        "training": recipe if values["trainer"] is not None else {**TRAINING, **recipe},
    }


def criterion_from(metric: str, conditions: Mapping[str, float]) -> Criterion:
    """The metric with its own conditions, or the curve, which has none."""
    if metric != "curve":
        return Reading(metric, conditions)
    for name, value in conditions.items():
        remedy = "leave it out, or name a metric that has it"
        raise validate.invalid_value(name, value, "left out to judge by the curve", remedy)
    return "curve"


def _check_claim(claim: Mapping[str, Any]) -> None:
    """Refuse unknown names, and an ε beside another claim."""
    if isinstance(claim, Mapping) and "name" in claim:
        return  # a mechanism, which checks itself
    check_names("claim", claim, CLAIMS)
    validate.one_of("composition", claim.get("composition", "tight"), ("tight", "rdp"))
    claimed = [name for name in ("epsilon", "belief", *OF_NOISE) if name in claim]
    if len(claimed) > 1 and claimed[0] not in OF_NOISE:
        wanted = "an epsilon, a belief, or the numbers of a training"
        shown = f"{claimed[0]} and {claimed[1]}"
        raise validate.invalid_input("claim", shown, wanted, "leave one of them out")
    for name in ("delta", "composition"):
        if name in claim and not {"epsilon", "belief"} & set(claim):
            wanted = "an epsilon or a belief with it"
            raise validate.invalid_input("claim", f"a {name} alone", wanted, "give both")


def _stated(
    claim: Mapping[str, Any], training: Mapping[str, Any], adjacency: str, delta: float, own: bool
) -> Mechanism:
    """The claimed mechanism, its noise left open where it is to be chosen."""
    given = own or "noise_multiplier" in training
    if "name" in claim and given:
        return Mechanism.from_dict(claim)
    if "epsilon" in claim and given:
        return EpsilonDelta(claim["epsilon"], claim.get("delta", delta), adjacency=adjacency)
    if "belief" in claim and given:
        remedy = "leave the noise_multiplier out, or claim an epsilon"
        wanted = "one that the noise is chosen for"
        raise validate.invalid_value("belief", claim["belief"], wanted, remedy)
    if own and not claim:
        raise validate.invalid_input(
            "claim", "missing", "given for a training function of your own",
            "give epsilon and delta, or noise_multiplier, sample_rate and steps",
        )  # fmt: skip
    if not given and not {"epsilon", "belief"} & set(claim):
        remedy = "give it, or an ε to claim"
        raise validate.invalid_input("noise_multiplier", "missing", "given in the training", remedy)
    if not own:
        check_local_claim(training["sensitivity"], training["sample_rate"], adjacency)
    numbers = {} if own else {name: training.get(name) for name in OF_NOISE}
    return DPSGD(**{**numbers, **{name: claim[name] for name in OF_NOISE if name in claim}})


def blocks_of(trials: int, block: int) -> int:
    """How many blocks make this number of trials in each world.

    >>> blocks_of(1000, 300)
    7
    """
    return -(-2 * trials // block)


def usual_block(own_trainer: bool) -> int:
    """Trials in a block: many for the engine, few for a training function of the user's own."""
    return 10 if own_trainer else 200
