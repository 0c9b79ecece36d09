"""An audit described in plain values, as a TOML file or the command line gives them.

Everything is named, so that a run can be taken up again from its file alone.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from dprime import validate
from dprime.attack import (
    ADVERSARIES,
    Adversary,
    AttackTarget,
    EngineTrainer,
    FunctionTrainer,
    OneAttribute,
    function_named,
)
from dprime.attack.trainer import Trainer
from dprime.audit.audits import (
    Audit,
    Question,
    check_local_claim,
    described,
    play,
    usual_block,
)
from dprime.audit.caveats import beside_claim, certified_epsilon
from dprime.audit.game import blocks_of
from dprime.audit.lower import USUAL_METHOD
from dprime.bounds import epsilon_from_belief, rdp_noise_multiplier_from_epsilon
from dprime.curve import TradeOff
from dprime.data import Dataset, Split, load
from dprime.data.devices import device_named
from dprime.data.loaders import names
from dprime.guarantees import EpsilonDelta
from dprime.mechanisms import ADJACENCIES, DPSGD
from dprime.metrics import OBSERVED, Reading
from dprime.runs import run_file
from dprime.runs.backends.base import Backend
from dprime.runs.run import Run
from dprime.seeds import check_seed, fresh_seed
from dprime.solve import choose
from dprime.train import SGD, Adam, Compute, TrainingConfig
from dprime.train.checks import network_of
from dprime.train.data import check_record
from dprime.train.models import network_named
from dprime.train.optimizers import Optimizer

RECIPE = {"steps": 30, "learning_rate": 0.1, "clip_norm": 1.0}
"""Of a training where nothing else is said."""

USUAL_ADJACENCY = {OneAttribute.name: "replace"}
"""Where nothing else is said, of adversaries whose record is there in both worlds."""

BESIDE_RECIPE = ("optimizer", "momentum")
OF_NOISE = ("noise_multiplier", "sample_rate", "steps")
CLAIMS = ("epsilon", "belief", "delta", "composition", *OF_NOISE)
COMPOSITIONS = ("tight", "rdp")


@dataclass(frozen=True)
class AuditSettings:
    """An audit, by names and numbers.

    Attributes:
        adversary: its name.
        data: a data set's name.
        records: how many of its training records are used, from the first; None takes all.
        data_dir: where the data sets' files are.
        model: "linear", "dense-64-32", "conv-16-32", or "module:function" that returns a network.
        trainer: "module:function" of your own, given a data set and a seed, returning a model.
        adjacency: "add-remove", "replace" or "zero-out"; None takes "replace" for attribute, else
            what holds for the training: "add-remove" for a trainer of your own or with an
            expected_batch_size, else "zero-out".
        record: the index of the record in question; None takes the most unusual one.
        trials: in each world.
        block: trials that are played and stored together.
        metric: by which the claim is judged, or "curve".
        conditions: of the metric, such as {"delta": 1e-5}.
        method: of the lower bound.
        confidence: of the lower bound.
        delta: of every ε that is shown.
        belief: whose exceedance is counted, for the DI adversary.
        belief_prior: the belief before the first step, for the DI adversary.
        assume: "gaussian" accepts that law of the scores for a method that rests on it.
        seed: gives the whole audit; None draws one. The run's file keeps it, so that the run can be
            resumed. Never use it again for a model that is released.
        device: "cpu" or "cuda".
        memory: in GB.
        training: the recipe: steps, learning_rate, clip_norm, noise_multiplier, sample_rate,
            expected_batch_size, sensitivity, loss, optimizer ("sgd", "adam"), momentum.
        claim: {"epsilon": …, "delta": …}; or {"belief": …, "delta": …}, a posterior belief that is
            exceeded with probability δ at most; or the noise_multiplier, sample_rate and steps that
            are claimed. Without it the recipe's own. Without a noise_multiplier in the recipe, the
            noise is chosen so that the claim is kept: by the tight accountant, or with
            {"composition": "rdp"} by Rényi composition, as Bernau et al. 2021 do, which takes more.
        options: of the adversary, such as {"columns": "age", "values": [0.2, 0.8]} for attribute.

    >>> settings = AuditSettings(claim={"epsilon": 4.0}, trials=100, seed=1)
    >>> round(settings.recipe().noise_multiplier, 2)
    5.92
    """

    adversary: str = "malicious-dataset"
    data: str = "digits"
    records: int | None = None
    data_dir: str | None = None
    model: str = "linear"
    trainer: str | None = None
    adjacency: str | None = None
    record: int | None = None
    trials: int = 1000
    block: int | None = None
    metric: str = "curve"
    conditions: Mapping[str, float] = field(default_factory=dict)
    method: str = USUAL_METHOD
    confidence: float = 0.95
    delta: float = 1e-5
    belief: float = 0.9
    belief_prior: float = 0.5
    assume: str | None = None
    seed: int | None = field(default=None, repr=False)
    device: str = "cpu"
    memory: float = 2.0
    training: Mapping[str, Any] = field(default_factory=dict)
    claim: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validate.one_of("adversary", self.adversary, tuple(ADVERSARIES))
        validate.one_of("metric", self.metric, (*OBSERVED, "curve"))
        trials = validate.whole("trials", self.trials)
        if trials < 2:
            raise validate.refusal("trials", trials, "at least 2 in each world", "give 1000")
        seed = fresh_seed() if self.seed is None else check_seed(self.seed)
        usual = usual_block(self.trainer is not None)
        block = usual if self.block is None else validate.whole("block", self.block)
        object.__setattr__(self, "trials", trials)
        object.__setattr__(self, "seed", seed)
        object.__setattr__(self, "block", block)
        for name in ("data", "model", "device"):
            _check_text(name, getattr(self, name))
        for name in ("data_dir", "trainer"):
            if getattr(self, name) is not None:
                _check_text(name, getattr(self, name))
        validate.positive("memory", self.memory, example=2.0)
        validate.inner_probability("belief_prior", self.belief_prior)
        _check_table("conditions", self.conditions)
        _check_claim(self.claim)
        known = {f.name for f in dataclasses.fields(TrainingConfig)} - {
            "schedule",
            "block",
            "optimizer",
        }
        _check_names("training", self.training, (*sorted(known), *BESIDE_RECIPE))
        adjacency = self._holds() if self.adjacency is None else self.adjacency
        validate.one_of("adjacency", adjacency, ADJACENCIES)
        object.__setattr__(self, "adjacency", adjacency)
        self.question()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> AuditSettings:
        """From a mapping, such as a TOML file's; an unknown name is an error.

        >>> AuditSettings.of({"adversery": "di"})
        Traceback (most recent call last):
        dprime.validate.InputError: \
settings must be known names, but it is 'adversery': did you mean \
adversary?
        """
        _check_names("settings", values, tuple(f.name for f in dataclasses.fields(cls)))
        return cls(**values)

    @classmethod
    def from_file(cls, path: str | Path) -> dict[str, Any]:
        """The values in a TOML file."""
        place = Path(path)
        try:
            return tomllib.loads(place.read_text(encoding="utf-8"))
        except OSError as error:
            remedy = "give the path of a TOML file"
            raise validate.refusal(
                "settings", str(path), f"a file to read ({error.strerror})", remedy
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise validate.refusal("settings", str(path), "TOML", str(error)) from None

    def plain(self) -> dict[str, Any]:
        """Of JSON values; `of` makes the same again."""
        return {
            name: dict(value) if isinstance(value, Mapping) else value
            for name, value in ((f.name, getattr(self, f.name)) for f in dataclasses.fields(self))
        }

    def _holds(self) -> str:
        """The adjacency where none is asked for."""
        public = self.training.get("expected_batch_size") is not None
        own = "add-remove" if public or self.trainer is not None else "zero-out"
        return USUAL_ADJACENCY.get(self.adversary, own)

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        assert self.block is not None
        return blocks_of(self.trials, self.block)

    def question(self) -> Question:
        """What is to be decided."""
        rest = (
            self.method, self.confidence, self.delta, self.belief, self.belief_prior, self.assume,
        )  # fmt: skip
        if self.metric == "curve":
            for name, value in self.conditions.items():
                remedy = "leave it out, or name a metric that has it"
                raise validate.refusal(name, value, "left out to judge by the curve", remedy)
            return Question("curve", *rest)
        conditions = dict(self.conditions)
        if self.metric == "epsilon":
            conditions.setdefault("delta", self.delta)
        return Question(Reading(self.metric, conditions), *rest)

    def attacker(self) -> Adversary:
        """The adversary with its options."""
        kind = ADVERSARIES[self.adversary]
        names = tuple(f.name for f in dataclasses.fields(kind))  # type: ignore[arg-type]
        _check_names("options", self.options, names)
        return kind(**self.options)

    def recipe(self) -> TrainingConfig:
        """The engine's recipe, its noise chosen for the claim where none is given."""
        values: dict[str, Any] = {**RECIPE, **self.training}
        optimizer = _optimizer(values.pop("optimizer", "sgd"), values.pop("momentum", 0.0))
        if "noise_multiplier" not in values:
            values["noise_multiplier"] = self._noise(values)
        return TrainingConfig(**values, optimizer=optimizer)

    def _noise(self, recipe: Mapping[str, Any]) -> float:
        if not {"epsilon", "belief"} & set(self.claim):
            raise validate.misfit(
                "noise_multiplier", "missing", "given in the training", "give it, or an ε to claim"
            )
        assert self.adjacency is not None
        rate, steps = recipe.get("sample_rate", 1.0), recipe["steps"]
        delta = self.claim.get("delta", self.delta)
        if self.claim.get("composition") == "rdp":
            if rate != 1.0:
                raise validate.refusal("sample_rate", rate, "1 for Rényi composition", "give tight")
            epsilon = self.claim.get("epsilon") or epsilon_from_belief(self.claim["belief"])
            return rdp_noise_multiplier_from_epsilon(
                epsilon, delta=delta, steps=steps, adjacency=self.adjacency
            )
        target = {"epsilon": self.claim.get("epsilon"), "delta": delta}
        if "belief" in self.claim:
            target = {"belief": self.claim["belief"], "exceeded": delta}
        chosen = choose(DPSGD(sample_rate=rate, steps=steps), adjacency=self.adjacency, **target)
        assert isinstance(chosen, DPSGD)
        assert chosen.noise_multiplier is not None
        return chosen.noise_multiplier

    def claimed(self) -> TradeOff:
        """The certified curve that is claimed."""
        if "epsilon" in self.claim and (self.trainer or "noise_multiplier" in self.training):
            delta = self.claim.get("delta", self.delta)
            return EpsilonDelta(self.claim["epsilon"], delta).curve()
        if self.trainer and not self.claim:
            raise validate.misfit(
                "claim", "missing", "given for a training function of your own",
                "give epsilon and delta, or noise_multiplier, sample_rate and steps",
            )  # fmt: skip
        assert self.adjacency is not None
        if "belief" in self.claim and (self.trainer or "noise_multiplier" in self.training):
            remedy = "leave the noise_multiplier out, or claim an epsilon"
            wanted = "one that the noise is chosen for"
            raise validate.refusal("belief", self.claim["belief"], wanted, remedy)
        named = {name: self.claim[name] for name in OF_NOISE if name in self.claim}
        if self.trainer is None:
            recipe = self.recipe()
            check_local_claim(recipe, self.adjacency)
            own = {name: getattr(recipe, name) for name in OF_NOISE}
            named = {**own, **named}
        return DPSGD(**named).curve(self.adjacency)

    def certified(self) -> str | None:
        """What the accountant certifies beside the claim, where the training is known too.

        >>> words = AuditSettings(claim={"epsilon": 4.0}, training={"noise_multiplier": 2.96})
        >>> words.certified()
        'The accountant certifies ε = 9.089 at δ = 1e-05 for this training; the claim is ε = 4.'
        """
        noise = self.training.get("noise_multiplier")
        if self.trainer is not None or not self.claim or not noise:
            return None
        delta = self.claim.get("delta", self.delta)
        assert self.adjacency is not None
        proved = certified_epsilon(self.recipe(), self.adjacency, delta)
        if proved is None:
            return None
        return beside_claim(proved, self.claimed().epsilon(delta), delta)

    def split(self) -> Split:
        """The data, with the records that may take another's place."""
        validate.one_of("data", self.data, names())
        return load(self.data, self.data_dir)

    def setting(self, split: Split | None = None) -> AttackTarget:
        """What is attacked; the data are loaded unless they are given."""
        split = split or self.split()
        dataset = split.train
        device_named(self.device)
        if self.records is not None:
            count = validate.whole("records", self.records)
            if not 2 <= count <= len(dataset):
                remedy = f"{self.data} has {len(dataset):,}"
                raise validate.refusal("records", count, f"from 2 to {len(dataset):,}", remedy)
            dataset = dataset.take(range(count))
        if self.record is not None:
            check_record(self.record, len(dataset))
        assert self.seed is not None
        setting = AttackTarget(
            trainer=self._trainer(dataset), dataset=dataset,
            adjacency=self.adjacency,  # type: ignore[arg-type]
            pool=split.test, record=self.record, seed=self.seed,
        )  # fmt: skip
        if not ADVERSARIES[self.adversary].any_trainer:
            setting.engine(self.adversary)
        return setting

    def _trainer(self, dataset: Dataset) -> Trainer:
        usual = "squared-error" if dataset.classes is None else "cross-entropy"
        loss = self.training.get("loss", usual)
        if self.trainer is not None:
            return FunctionTrainer(function_named(self.trainer), loss)
        recipe = dataclasses.replace(self.recipe(), loss=loss)
        network = network_named(self.model, dataset)
        x, y = torch.tensor(dataset.records), torch.tensor(dataset.labels)
        network_of(network, x, y, loss)  # says so if they do not fit
        return EngineTrainer(network, recipe, Compute(self.device, self.memory))


def begin(
    settings: AuditSettings,
    path: str | Path,
    *,
    backend: Backend | None = None,
    progress: bool | None = None,
    split: Split | None = None,
    go_on: bool = False,
) -> Audit:
    """Begin a run in a new file, and play it to its end.

    All settings are validated before the file is created. A run that is there already and was begun
    in Python with the same objects is resumed, and known by these settings from then on.

    Args:
        settings: of the audit.
        path: of the file.
        backend: where blocks are played; in this process unless given.
        progress: whether to show a bar; None shows it for long work on a terminal.
        split: the data, where they are loaded already.
        go_on: whether a run of the same settings that is there already is resumed.
    """
    attacker = settings.attacker()
    settings.claimed()
    setting = settings.setting(split)
    if isinstance(attacker, OneAttribute):
        attacker.check(setting)
    with _opened(settings, setting, path, go_on) as run:
        return _play(run, settings, setting, backend, progress)


def _opened(settings: AuditSettings, setting: AttackTarget, path: str | Path, go_on: bool) -> Run:
    """A new run, or one of the same settings or of the same objects."""
    if Path(path).exists() and run_file.is_run(Path(path)):
        with Run.open(path, verify=False) as run:
            objects = run.kind == "audit" and _of_objects(run)
        if objects:
            assert settings.block is not None
            config = described(
                settings.attacker(), setting, settings.claimed(), settings.question(),
                settings.trials, settings.block,
            )  # fmt: skip
            return Run.open_or_create(path, "audit", config, settings.blocks, settings.plain())
    opened = Run.open_or_create if go_on else Run.create
    return opened(path, "audit", settings.plain(), settings.blocks)


def _of_objects(run: Run) -> bool:
    """Whether an audit was begun in Python with objects."""
    return isinstance(run.config.get("trainer"), Mapping)


def resume(
    path: str | Path,
    *,
    backend: Backend | None = None,
    progress: bool | None = None,
    split: Split | None = None,
) -> Audit:
    """Go on with a run, and conclude; a finished block is not played again."""
    with Run.open(path) as run:
        settings = settings_of(run)
        return _play(run, settings, settings.setting(split), backend, progress)


def settings_of(run: Run) -> AuditSettings:
    """The settings that a run was begun with."""
    if run.kind != "audit":
        wanted, remedy = "that of an audit", f"dprime resume {run.path.name} goes on with it"
        raise validate.misfit("run", f"that of another kind, {run.kind}", wanted, remedy)
    values = run.request if _of_objects(run) else run.config
    if values is None:
        remedy = (
            "call dprime.audit.audit again with the same path, or dprime audit with the options "
            f"that describe it and --out {run.path.name}"
        )
        shown = "one that was begun in Python, with objects that have no name"
        raise validate.misfit("run", shown, "begun by dprime audit", remedy)
    return AuditSettings.of(values)


def _play(
    run: Run,
    settings: AuditSettings,
    setting: AttackTarget,
    backend: Backend | None,
    progress: bool | None,
) -> Audit:
    assert settings.block is not None
    return play(
        run, settings.attacker(), setting, settings.claimed(), settings.question(),
        settings.trials, settings.block, backend=backend, progress=progress,
    )  # fmt: skip


def _optimizer(name: str, momentum: float) -> Optimizer:
    validate.one_of("optimizer", name, ("sgd", "adam"))
    return SGD(momentum=momentum) if name == "sgd" else Adam()


def _check_text(name: str, given: object) -> None:
    if not isinstance(given, str) or not given:
        raise validate.refusal(name, given, "a text that is not empty", "give a name")


def _check_claim(claim: Mapping[str, Any]) -> None:
    """Refuse unknown names, and an ε beside another claim."""
    _check_names("claim", claim, CLAIMS)
    validate.one_of("composition", claim.get("composition", "tight"), COMPOSITIONS)
    claimed = [name for name in ("epsilon", "belief", *OF_NOISE) if name in claim]
    if len(claimed) > 1 and claimed[0] not in OF_NOISE:
        remedy = "leave one of them out"
        wanted = "an epsilon, a belief, or the numbers of a training"
        raise validate.misfit("claim", f"{claimed[0]} and {claimed[1]}", wanted, remedy)
    for name in ("delta", "composition"):
        if name in claim and not {"epsilon", "belief"} & set(claim):
            wanted = "an epsilon or a belief with it"
            raise validate.misfit("claim", f"a {name} alone", wanted, "give both")


def _check_table(name: str, given: object, known: tuple[str, ...] = ()) -> None:
    if not isinstance(given, Mapping):  # a file may hold anything
        remedy = f"give some of {', '.join(known)}" if known else "give for example fpr = 0.01"
        raise validate.refusal(name, given, "a table of names and values", remedy)


def _check_names(name: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Refuse what is not known, with the name that was likely meant."""
    _check_table(name, given, known)
    for one in given:
        if one not in known:
            near = difflib.get_close_matches(one, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}."
            raise validate.InputError(f"{name} must be known names, but it is {one!r}: {hint}")
