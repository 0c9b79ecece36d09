"""Golden numbers: what the toolkit computes, to hold a rewritten one against.

    python benchmarks/golden.py --out benchmarks/golden.json            # about a minute
    python benchmarks/golden.py --compare benchmarks/golden.json [--only SECTION]

Everything is seeded and runs on one core. `--compare` computes again and lists each difference with
its path, the old and the new value, and their relative difference; up to 1e-12 it counts as
"digits", and anything beyond ends with status 1. Another processor or PyTorch may round trainings
differently: write the numbers on the machine that compares them.

Names of the toolkit stand in `NAMES`, parameters in tables and in the function that uses them. Each
setting is drawn by a generator of its own: one that is added leaves the others as they are.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import inspect
import json
import math
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

Values = dict[str, Any]
SCRIPTS = Path(__file__).resolve().parent.parent / "tests" / "check" / "scripts"
EXACT = 1e-12
"""The largest relative difference that counts as digits."""

NAMES = """
    dprime: DPSGD GDP PLD RDP ZCDP Composition EpsilonDelta EpsilonDeltaProfile Gaussian Laplace
    dprime: PoolSampled RandomizedResponse InputError choose
    dprime.consequences: consequences
    dprime.estimates: cherubin central_limit
    dprime.metrics: Reading
    dprime.data: Dataset Split load
    dprime.train: train TrainingConfig SGD Adam Cosine Decay TrainingData
    dprime.train.models: model_named
    dprime.attack: ADVERSARIES EngineTrainer FunctionTrainer AttackTarget
    dprime.audit: AuditConfig audit begin lower_bound plan_audit=plan record_of rejects
    dprime.audit: Band ClopperPearson Mahloujifar Steinke
    dprime.membership: infer InferenceConfig Recipe frontier draw plan_pool=plan
    dprime.monitor: Monitor NoiseTails
    dprime.canaries: GradientCanaries InputCanaries
    dprime.attributes: Attribute AttributeInference
    dprime.canaries.one_run: one_run
    dprime.check: check
    dprime.show: card
    opacus: PrivacyEngine
    torch.utils.data: DataLoader TensorDataset
"""
"""By module; `ours=theirs` where the name there is not the one used here."""


class Toolkit:
    """Its names, each loaded when it is first used: a section needs its own modules only."""

    def __getattr__(self, name: str) -> Any:
        for module, names in (line.split(": ") for line in NAMES.strip().splitlines()):
            for ours, _, theirs in (word.partition("=") for word in names.split()):
                if ours == name:
                    return getattr(import_module(module.strip()), theirs or ours)
        raise AttributeError(name)


api: Any = Toolkit()


def attempt(action: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """The answer, or that there is none; a bug of the toolkit is not caught."""
    try:
        return action(*arguments, **named)
    except api.InputError:
        return "refused"


def pick(thing: Any, names: str) -> Values:
    """Some of its attributes; methods are called."""
    found = {name: getattr(thing, name) for name in names.split()}
    return {name: value() if callable(value) else value for name, value in found.items()}


def digest(array: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def summary(scores: Any) -> Values:
    return {**pick(np.asarray(scores), "mean std min max"), "digest": digest(scores)}


# Curves and what follows from them ----------------------------------------------------------------

ADJACENCIES = ("add-remove", "replace", "zero-out")
METRICS = {
    "advantage": "", "bayes_security": "", "tpr": "fpr", "fpr": "tpr", "precision": "prior least",
    "negative_accuracy": "prior least", "success": "prior", "secret_success": "prior",
    "belief": "prior exceeded", "belief_exceeds": "belief prior",
    "belief_exceeds_in_worst_pair": "belief prior",
    "epsilon": "delta", "delta": "epsilon", "d_prime": "",
}  # fmt: skip
"""What is read off a curve, and at which conditions."""

CONDITIONS: dict[str, tuple[float, ...]] = {
    "delta": (1e-5, 1e-8, 1e-3), "epsilon": (1.0, 0.1, 4.0), "fpr": (0.01, 1e-4, 0.2),
    "tpr": (0.5, 0.03, 0.9), "prior": (0.1, 0.5, 0.7), "least": (0.01, 1e-4, 0.3),
    "exceeded": (1e-3, 0.02, 1e-6), "belief": (0.9, 0.6, 0.99),
}  # fmt: skip
"""The settings take turns."""


def read(curve: Any, turn: int = 0, names: Iterable[str] = METRICS) -> Values:
    at = {name: values[turn % len(values)] for name, values in CONDITIONS.items()}
    return {name: getattr(curve, name)(*map(at.get, METRICS[name].split())) for name in names}


class _Draws(random.Random):
    """Random parameters, remembered in the order in which they are drawn."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.drawn: list[Any] = []
        self.stated = {"adjacency": self.one(*ADJACENCIES)}

    def one(self, *options: Any) -> Any:
        self.drawn.append(options[int(self.random() * len(options))])
        return self.drawn[-1]

    def log(self, low: float, high: float) -> float:
        return float(self.one(low * (high / low) ** self.random()))

    def whole(self, low: int, high: int) -> int:
        return round(self.log(low, high))


def dpsgd(d: _Draws, **options: Any) -> Any:
    return api.DPSGD(d.log(0.5, 6), d.log(1e-3, 0.4), d.whole(1, 2000), **options)


def rdp(d: _Draws) -> Any:
    orders, slope = (1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0), d.log(0.005, 0.5)
    return api.RDP(orders, tuple(slope * order for order in orders), **d.stated)


def pld(d: _Draws) -> Any:
    p, q = (np.array([d.log(0.05, 1) for _ in range(4)]) for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    return api.PLD(tuple(np.log(p / q).tolist()), tuple((0.999 * p).tolist()), **d.stated)


KINDS: dict[str, tuple[int, Callable[[_Draws], Any]]] = {
    "poisson": (28, dpsgd),
    "public-size": (8, lambda d: dpsgd(d, public_size=True)),
    "fixed-size": (16, lambda d: dpsgd(d, sampling="fixed-size")),
    "shuffle": (16, lambda d: dpsgd(d, sampling="shuffle")),
    "one-batch": (6, lambda d: api.DPSGD(
        d.log(1, 9), 1.0, d.whole(1, 99), sampling=d.one("poisson", "fixed-size", "shuffle"))),
    "gaussian": (12, lambda d: api.Gaussian(d.log(0.3, 20), d.whole(1, 100))),
    "laplace": (10, lambda d: api.Laplace(d.log(0.3, 9), d.whole(1, 60), **d.stated)),
    "randomised": (10, lambda d: api.RandomizedResponse(
        d.log(0.05, 5), d.one(2, 3, 10), d.whole(1, 40), **d.stated)),
    "epsilon-delta": (10, lambda d: api.EpsilonDelta(
        d.log(0.05, 6), d.one(0.0, 1e-6, 0.01), d.whole(1, 20), **d.stated)),
    "profile": (6, lambda d: api.EpsilonDeltaProfile(
        tuple((epsilon, d.log(1e-9, 0.3)) for epsilon in (0.1, 0.5, 2.0)), **d.stated)),
    "rdp": (6, rdp),
    "zcdp": (6, lambda d: api.ZCDP(d.log(1e-3, 2), d.one(0.0, 0.01), **d.stated)),
    "gdp": (6, lambda d: api.GDP(d.log(0.05, 6), **d.stated)),
    "pld": (6, pld),
    "tails": (4, lambda d: api.NoiseTails(
        d.one(5.768, 8.57), d.whole(10, 9999), ((d.log(0.5, 3), d.log(0.01, 0.3), 100, 1),))),
    "composed": (30, lambda d: api.Composition(*(KINDS[each][1](d) for each in d.one(
        "poisson poisson", "poisson gaussian", "poisson laplace", "shuffle shuffle", "poisson rdp",
        "fixed-size gaussian", "public-size poisson", "epsilon-delta gdp", "randomised poisson",
        "pld zcdp gaussian", "shuffle fixed-size public-size", "shuffle poisson", "rdp profile",
        "poisson tails").split()))),
    "pool": (20, lambda d: api.PoolSampled(
        KINDS[d.one("poisson", "poisson", "gaussian", "laplace", "composed")][1](d),
        d.log(0.05, 0.9), d.one(None, 0.03))),
}  # fmt: skip
"""How many settings there are of a kind, and how one is drawn."""


def curves() -> Values:
    found = {}
    for kind, (count, make) in KINDS.items():
        for turn in range(count):
            d = _Draws(f"{kind} {turn}")
            mechanism, group = make(d), 1 if turn % 4 else d.one(2, 5)
            own = {"drawn": d.drawn, "own": attempt(getattr, mechanism, "default_adjacency")}
            for each in ADJACENCIES:
                curve = attempt(mechanism.curve, each, group_size=group)
                own[each] = curve if curve == "refused" else read(curve, turn)
            found[f"{kind} {turn}"] = own
    return found


TARGETS: dict[str, Values] = {
    "advantage": {"advantage": 0.2}, "bayes_security": {"bayes_security": 0.9},
    "tpr": {"tpr": 0.05, "fpr": 0.01}, "epsilon": {"epsilon": 2.0, "delta": 1e-5},
    "precision": {"precision": 0.8, "prior": 0.3, "min_tpr": 0.02},
    "belief": {"belief": 0.9, "belief_prior": 0.4, "exceeded": 1e-3},
    "success": {"success": 0.75, "prior": 0.4},
    "secret_success": {"secret_success": 0.3, "max_prior": 0.1},
}  # fmt: skip


def choose() -> Values:
    """The parameter that was left out. For a pool, its own probability is the prior."""
    replaced, fixed, shuffled = {"adjacency": "replace"}, "fixed-size", "shuffle"
    opened: dict[str, tuple[Any, Values]] = {
        "noise": (api.DPSGD(None, 0.02, 400), {}),
        "noise, replace": (api.DPSGD(None, 0.02, 400), replaced),
        "noise, group": (api.DPSGD(None, 0.02, 100), {"group_size": 3}),
        "noise, public size": (api.DPSGD(None, 0.05, 100, public_size=True), {}),
        "noise, fixed size": (api.DPSGD(None, 0.05, 100, sampling=fixed), replaced),
        "noise, shuffled": (api.DPSGD(None, 0.05, 100, sampling=shuffled), replaced),
        "rate": (api.DPSGD(1.2, None, 200), {}), "steps": (api.DPSGD(1.5, 0.01, None), {}),
        "rate, shuffled": (api.DPSGD(9.0, None, 200, sampling=shuffled), replaced),
        "epochs": (api.DPSGD(1.5, 0.01, None), {"round_to": "epochs"}),
        "gaussian": (api.Gaussian(None, 30), {}), "gaussian steps": (api.Gaussian(9.0, None), {}),
        "laplace": (api.Laplace(None, 5, **replaced), {}),
        "laplace steps": (api.Laplace(9.0, None), {}),
        "randomised": (api.RandomizedResponse(None, 3, 4), {}),
        "randomised steps": (api.RandomizedResponse(0.1, 3, None), {}),
        "epsilon": (api.EpsilonDelta(None, 1e-6, 2, **replaced), {}),
        "epsilon steps": (api.EpsilonDelta(0.1, 1e-6, None), {}),
        "zcdp": (api.ZCDP(**replaced), {}), "gdp": (api.GDP(**replaced), {}),
        "part": (api.Composition(api.Gaussian(20.0, 2), api.DPSGD(None, 0.02, 100)), {}),
        "pool": (api.PoolSampled(api.DPSGD(1.5, 0.02, 200)), {}),
        "pool, noise": (api.PoolSampled(api.DPSGD(None, 0.02, 200), 0.3, 0.1), {}),
    }  # fmt: skip

    def solved(mechanism: Any, how: Values, target: Values) -> Any:
        if isinstance(mechanism, api.PoolSampled):
            target = {name: value for name, value in target.items() if "prior" not in name}
        before = dict(leaves(plain(mechanism.to_dict())))
        after = dict(leaves(plain(api.choose(mechanism, **how, **target).to_dict())))
        return next(value for path, value in after.items() if value != before.get(path))

    return {
        name: {metric: attempt(solved, *each, target) for metric, target in TARGETS.items()}
        for name, each in opened.items()
    }


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "epsilon": (0.3, 1.0, 4.0), "delta": (1e-3, 1e-5, 1e-6), "noise_multiplier": (8.0, 3.0, 30.0),
    "steps": (1, 30, 200), "adjacency": ADJACENCIES, "advantage": (0.1, 0.3, 0.6),
    "belief": (0.7, 0.9, 0.95), "prior": (0.1, 0.5, 0.3), "exceeded": (0.02, 0.01, 1e-5),
    "false_positive_rate": (0.01, 0.1, 0.3), "false_negative_rate": (0.1, 0.5, 0.2),
    "deniability": (0.6, 0.8, 0.9), "beyond_proof": (False, True, True),
    "orders": ((2.0, 8.0, 32.0),) * 3,
    "rdp": ((0.02, 0.1, 0.5), (0.2, 0.8, 4.0), (1.0, 5.0, 20.0)),
}  # fmt: skip
"""Three values for each parameter of that name."""


def bounds() -> Values:
    """Each function three times with all its parameters, and once with the defaults."""
    found, module = {}, import_module("dprime.bounds")
    for name, made in inspect.getmembers(module, inspect.isfunction):
        if name.startswith("_") or made.__module__ != module.__name__:
            continue
        for turn in (0, 1, 2, None):
            values = {
                each: ARGUMENTS[each][turn or 0]
                for each, given in inspect.signature(made).parameters.items()
                if turn is not None or given.default is given.empty
            }
            shown = ", ".join(f"{each}={value}" for each, value in values.items())
            found[f"{name}({shown})"] = attempt(made, **values)
    return found


def beside() -> Values:
    """What is derived from a curve, estimated beside it, and planned with it."""
    training = api.DPSGD(1.0, 0.01, 500)
    follows = api.consequences(api.PoolSampled(training, 0.05, 0.01), deniability=0.7)
    found = {f"estimate, {a}": read(api.central_limit(0.9, 0.01, 900, a)) for a in ADJACENCIES}
    found["estimate, closed form"] = read(api.cherubin(1.2, 0.01, 900))
    for by in ("curve", "advantage", "epsilon", "tpr"):
        metric = by if by == "curve" else api.Reading(by)
        made = api.plan_audit(training.curve(), criterion=metric, method="band", strength=2.0)
        found[f"plan, {by}"] = pick(made, "trials refuting least")
    return found | {"consequences": {each.name: each.value for each in follows.answers}}


# Audits -------------------------------------------------------------------------------------------

METHODS = ("band", "clopper-pearson", "gaussian", "bayesian", "steinke", "mahloujifar")
LOWER = ("advantage", "tpr", "precision", "epsilon", "d_prime")
"""What is read off a lower curve."""


def lower_bounds(inside: Any, outside: Any, others: Mapping[str, Values]) -> Values:
    """What each method makes of the scores, and others with options."""
    found = {}
    for name, options in {**{each: {"method": each} for each in METHODS}, **others}.items():
        bound = api.lower_bound(inside, outside, delta=1e-3, **options)
        found[name] = pick(bound, "epsilon counted decides")
        found[name]["objects"] = bound.objection is not None
        if bound.curve is not None:
            found[name]["curve"] = read(bound.curve, names=LOWER)
    return found


def one_run(result: Any) -> Values:
    return {"right": dict(result.counted), **pick(result, "guesses needed bound claimed verdict")}


def estimators() -> Values:
    """On fixed scores, and as canaries of one run."""
    others = {
        "for advantage": {"method": "clopper-pearson", "metric": api.Reading("advantage")},
        "accepted": {"method": "gaussian", "assume": "gaussian"},
        "coarse": {"method": api.Band(ratio=5.0)}, "40": {"method": api.Steinke(guesses=40)},
        "at 0.5": {"method": api.ClopperPearson(threshold=0.5)},
        "published": {"method": api.Steinke(delta_term="published")},
        "family": {"method": api.Mahloujifar(family="gaussian")},
    }  # fmt: skip
    rng = np.random.default_rng(2024)
    a, b = rng.normal(1.5, 1.0, 510), rng.normal(0.0, 1.0, 490)
    found = {}
    for name, (inside, outside) in {
        "normal": (a, b), "tied": (a.round(), b.round()), "certain": (a > 0.5, b > 0.5),
        "heavy": (a**3, b**3), "few": (a[:60], b[:50]), "blind": (b[:240], b[240:]),
    }.items():  # fmt: skip
        scores = {"score": np.concatenate([inside, outside])}
        coins = np.arange(len(scores["score"])) < len(inside)
        found[name] = lower_bounds(inside, outside, others)
        for mu in (0.3, 1.0):
            claim = api.GDP(mu).curve()
            found[name][f"one run, {mu}"] = one_run(api.one_run(scores, coins, claim))
            found[name][f"rejects {mu}"] = api.rejects(claim, inside, outside)
    return found


RECIPE = {"steps": 4, "learning_rate": 0.2, "clip_norm": 1.0, "noise_multiplier": 0.8}
POISON = {"shadows": 6, "outliers": 1}
AUDITS: list[tuple[str, Values, Values]] = [
    ("di", {}, {}), ("di", {}, {"adjacency": "replace"}),
    ("di", {}, {"sensitivity": "local", "steps": 3}), ("api-access", {}, {}),
    ("api-access", {}, {"model": "conv-4", "adjacency": "zero-out"}),
    ("api-access", {}, {"trainer": lambda *given: api.FunctionTrainer(blurred)}),
    ("static-poisoning", POISON, {}), ("intermediate-models", POISON, {"adjacency": "replace"}),
    ("adaptive-poisoning", {}, {"model": "dense-6"}), ("malicious-dataset", {}, {}),
    ("gradient", {}, {"sample_rate": 0.5, "adjacency": "replace"}),
    ("malicious-dataset", {}, {"sample_rate": 0.4}),
    ("opposing-dataset", {}, {"adjacency": "replace"}), ("noise-grid", {}, {}),
    ("chosen-weights", {"steps": 30, "learning_rate": 0.05}, {}),
    ("attribute", {}, {"data": "diabetes", "adjacency": "replace"}),
]  # fmt: skip
"""An adversary, its options, and what it attacks."""


def network(name: str, dataset: Any, seed: int = 4) -> Any:
    import_module("torch").manual_seed(seed)
    return api.model_named(name, dataset)


def blurred(dataset: Any, seed: int) -> Any:
    """A training function of the user's own: the mean of the records, with noise, as weights."""
    model = network("linear", dataset, seed)
    model[1].weight.data += import_module("torch").tensor(dataset.records).flatten(1).mean(0)
    return model


def attacked(
    data: str = "digits", model: str = "linear", adjacency: str = "add-remove",
    trainer: Any = None, **recipe: Any,
) -> Any:  # fmt: skip
    split = api.load(data)
    dataset = split.train.take(range(12))
    if adjacency == "add-remove":
        recipe["expected_batch_size"] = 12 * recipe.get("sample_rate", 1.0)
    recipe["loss"] = "squared-error" if dataset.classes is None else "cross-entropy"
    training = api.TrainingConfig(**{**RECIPE, **recipe})
    made = (trainer or api.EngineTrainer)(network(model, dataset), training)
    return api.AttackTarget(made, dataset, adjacency, pool=split.test.take(range(6)), seed=3)


def audits() -> Values:
    """The scores, the verdict on a claim, and what each method makes of the scores."""
    found = {}
    for number, (adversary, options, given) in enumerate(AUDITS):
        attacker, setting = api.ADVERSARIES[adversary](**options), attacked(**given)
        claim = api.GDP(2.0, adjacency=setting.adjacency)
        asked = {"claim": claim, "delta": 1e-3, "trials": 60, "block": 40}
        made = api.audit(attacker, setting, progress=False, **asked)
        scores = made.played.in_scores, made.played.out_scores
        found[f"{number} {adversary}"] = {
            **pick(made.verdict, "outcome reached allowed"), **pick(made, "proved"),
            "diverged": made.trials["diverged"],
            "in, out": [*map(summary, scores)], "bounds": lower_bounds(*scores, {}),
            "identified": made.identifiability,
        }  # fmt: skip
    return found


def card() -> Values:
    """Of a small audit by plain settings, without times and versions."""
    given = {"claim": {"epsilon": 4.0}, "max_records": 8, "trials": 100, "training": {"steps": 2}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "golden.run"
        api.begin(api.AuditConfig.from_words(**given, seed=1), path, progress=False)
        shown: Values = api.card(api.record_of(path))
    hidden = ("created", "changed", "versions")
    shown["run"] = {name: value for name, value in shown["run"].items() if name not in hidden}
    return {name: value for name, value in shown.items() if name != "dprime"}


# Membership ---------------------------------------------------------------------------------------

ATTACKS = "lira lira-offline lira-fixed lira-offline-fixed rmia rmia-offline attack-p attack-r yeom"


def clouds(count: int, seed: int) -> Any:
    """Two classes that overlap: a network can only learn them by heart."""
    rng, labels = np.random.default_rng(seed), np.arange(count) % 2
    return api.Dataset.of(rng.normal(size=(count, 12)) + 0.3 * labels[:, None], labels, name="two")


def inference() -> Values:
    pool, others = clouds(80, 1), clouds(60, 2)
    found: Values = {"drawn": np.flatnonzero(api.draw(60, 0.3, seed=1).members)}
    for name, recipe in {
        "open": api.Recipe(batch_size=20, epochs=25, learning_rate=0.5),
        "private": api.Recipe(batch_size=20, epochs=3, learning_rate=0.2, epsilon=2.0),
    }.items():

        def make(share: float, recipe: Any = recipe) -> Any:
            return api.EngineTrainer(network("dense-24", pool), recipe.training(len(pool), share))

        config = api.InferenceConfig(
            [*ATTACKS.split(), "baseline"], shadows=16, targets=2, records=60, seed=1
        )

        made = api.infer(pool, others, make, config, progress=False)
        found[name] = {"verdict": made.verdict}
        for one in made.inferences[0].attacks:
            means = {
                "held_out": one.held_out_precision, "best": one.best_precision, "auc": one.auc,
                "top": one.top_precision, "shuffled": one.shuffled_best,
            }  # fmt: skip
            values = {each: mean and mean.numbers for each, mean in means.items()}
            values["contradicted"] = one.targets_that_contradict
            found[name][one.attack] = {**values, **summary(one.scored.scores)}
    return found


def frontier() -> Values:
    plan = api.plan_pool(
        0.7, pool_size=240, batch_size=20, epochs=2, sampling_probabilities=[0.2, 0.5, 0.6]
    )
    data = api.Split(clouds(240, 1), clouds(101, 2))
    made = api.frontier(
        plan, data, network("linear", data.train), learning_rate=[0.2, 1.0], clip_norm=1.0,
        repetitions=3, seed=5, progress=False,
    )  # fmt: skip
    found = {}
    for each in made.points:
        names = "noise_multiplier epsilon precision steps by_theorem learning_rate accuracies"
        means = {"final": each.final, "best": each.best_peeks_at_test}
        ends = {name: pick(mean, "value low high") for name, mean in means.items()}
        found[str(each.probability)] = pick(each, names) | ends
    return found


# Trainings with Opacus ----------------------------------------------------------------------------

MODES = ("hooks", "functorch", "ew", "ghost")


def toy() -> Any:
    torch = import_module("torch")
    labels, generator = torch.arange(200) % 3, torch.Generator().manual_seed(5)
    return api.TensorDataset(torch.randn(200, 20, generator=generator) + labels[:, None], labels)


def watched(mode: str, data: Any, *watchers: Any, noise: float = 1.0, steps: int = 20) -> Any:
    """A seeded training of a small network, and its monitor."""
    torch, engine = import_module("torch"), api.PrivacyEngine(accountant="rdp")
    torch.manual_seed(7)
    net = torch.nn.Sequential(torch.nn.Linear(20, 24), torch.nn.ReLU(), torch.nn.Linear(24, 3))
    loss = torch.nn.CrossEntropyLoss()
    model, optimizer, *wrapped, loader = engine.make_private(
        module=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.1), criterion=loss,
        data_loader=api.DataLoader(data, batch_size=20), noise_multiplier=noise, max_grad_norm=1.0,
        grad_sample_mode=mode,
    )  # fmt: skip
    loss = wrapped[0] if wrapped else loss
    monitor = api.Monitor(
        engine, model=model, optimizer=optimizer, data_loader=loader, criterion=loss,
        watchers=watchers, steps=60, conditions={"delta": 0.01}, show=None,
    )  # fmt: skip
    while steps:
        for x, y in loader:
            if steps:
                optimizer.zero_grad()
                loss(model(x), y).backward()
                optimizer.step()
                steps -= 1
    return monitor


def monitor() -> Values:
    found: Values = {}
    for mode in MODES:
        made = watched(mode, toy())
        for name, answers in pick(made, "risk forecast").items():
            found[f"{mode}, {name}"] = {each.name: each.value for each in answers}
        found[f"{mode}, history"] = [each.value for each in made.history()]
    return found


def attributes() -> Values:
    few: Values = {"values": [-1.0, 0.0, 2.0], "prior": [0.2, 0.5, 0.3], "sensitive_value": 2.0}
    many: Values = {"values": [value / 10 for value in range(-20, 21)]}
    analysed = [api.Attribute.column(i, **each) for i, each in enumerate((few, many))]
    found = {}
    for mode in MODES:
        for how in ("full", "approximate"):
            watcher = api.AttributeInference(*analysed, analysis=how)
            watched(mode, toy(), watcher)
            for form in ("central-limit", "closed-form"):
                for risk in watcher.risks(form):
                    curves = [risk.membership.advantage(), risk.certified.advantage()]
                    found[f"{mode}, {how}, {form}, {risk.attribute.name}"] = {
                        **pick(risk, "bayes_security success"), "membership, certified": curves
                    }  # fmt: skip
    return found


def canaries() -> Values:
    found = {}
    for mode in MODES:
        for noise in (0.3, 1.5):
            gradient = api.GradientCanaries(300, seed=3)
            inputs = api.InputCanaries.crafted(toy(), 100, classes=3, scale=3.0, seed=3, every=2)
            watched(mode, toy(), gradient, noise=noise)
            watched(mode, inputs.with_canaries(toy()), inputs, noise=noise)
            for name, watcher in {"gradient": gradient, "input": inputs}.items():
                found[f"{mode}, {noise}, {name}"] = one_run(watcher.result())
    return found


# The engine, the linter ---------------------------------------------------------------------------


def engine() -> Values:
    """Final weights of all trials: their digest, and some to six digits."""
    digits, nn = api.load("digits"), import_module("torch").nn
    few = digits.train.take(range(40))
    parts = api.TrainingData.parts(few, np.arange(160).reshape(4, 40) % 3 > 0, 0.6)
    removed, replaced = (
        api.TrainingData.remove(few, 3),
        api.TrainingData.replace(few, 0, few.take([7])),
    )
    norms = nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2), nn.GroupNorm(2, 4), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(),
        nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 10),
    )  # fmt: skip
    general = nn.Sequential(  # has no fast rule: each record by itself
        nn.Flatten(2), nn.Conv1d(1, 2, 5, stride=3), nn.ReLU(), nn.Flatten(), nn.Linear(40, 10)
    )
    nesterov, half = api.SGD(0.5, nesterov=True), {"sample_rate": 0.5}
    found = {}
    for name, model, data, recipe, options in (
        ("linear", "linear", few, {}, {}),
        ("removed record", "dense-6", removed, {}, {"world": "random"}),
        ("replaced record", "dense-5", replaced, {"sample_rate": 0.6}, {}),
        ("momentum", "dense-8-6", few, {**half, "optimizer": api.SGD(0.9)}, {}),
        ("nesterov", "linear", few, {"optimizer": nesterov, "schedule": api.Cosine(2)}, {}),
        ("adam", "conv-4", few, {"optimizer": api.Adam(), "schedule": api.Decay(0.5, 2)}, {}),
        ("convolution", "conv-6", few, half, {}),
        ("local sensitivity", "linear", removed, {"sensitivity": "local"}, {}),
        ("parts", "dense-6", parts, {**half, "expected_batch_size": 12.0}, {"trials": None}),
        ("no privacy", "dense-6", few, {"clip_norm": None, "noise_multiplier": 0.0}, {}),
        ("given weights", "dense-5", few, {"block": 2}, {"initial": "given"}),
        ("norms", norms, few, {}, {}), ("general", general, few, half, {}),
    ):  # fmt: skip
        net = network(model, few) if isinstance(model, str) else model
        training = api.TrainingConfig(**{**RECIPE, "steps": 6, **recipe})
        given = {"trials": 4, "seed": 11, "progress": False, **options}
        made = api.train(net, data, training, **given)
        w = made.weights.numpy()
        picked = [*w[:, :: w.shape[1] // 5].ravel().tolist(), *np.linalg.norm(w, axis=1).tolist()]
        found[name] = {
            "digest": digest(w), "weights": [float(f"{value:.6g}") for value in picked],
            "in": made.in_world, "accuracy": made.accuracy(digits.test),
        }  # fmt: skip
    return found


def check() -> Values:
    """Codes and lines that are found in each script of the corpus."""
    paths = sorted(SCRIPTS.rglob("*.py"))
    reports = ((path.relative_to(SCRIPTS), api.check(path)) for path in paths)
    return {str(at): [f"{each.code}:{each.line}" for each in made.findings] for at, made in reports}


# The whole ----------------------------------------------------------------------------------------

SECTIONS: dict[str, Callable[[], Values]] = {
    each.__name__: each
    for each in (
        curves, choose, bounds, beside, estimators, audits, card, inference, frontier, monitor,
        attributes, canaries, engine, check,
    )
}  # fmt: skip


def plain(value: Any) -> Any:
    """Of JSON values; what is not finite becomes text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every single value with its path."""
    if isinstance(value, dict | list) and value:
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(each, f"{path}/{name}" if path else str(name))
    else:
        yield path, value


def compare(old: Values, new: Values) -> bool:
    """List the differences; whether there is one beyond digits."""
    before, after = dict(leaves(old)), dict(leaves(new))
    counted = {"digits": 0, "DIFFERS": 0}
    for path in {**before, **after}:
        a, b = (values.get(path, "(missing)") for values in (before, after))
        if a == b:
            continue
        numbers = isinstance(a, int | float) and isinstance(b, int | float)
        gap = abs(a - b) / max(abs(a), abs(b)) if numbers else math.inf
        kind = "digits" if gap <= EXACT else "DIFFERS"
        counted[kind] += 1
        print(f"{kind}  {path}: {a!r} -> {b!r}  ({gap:.2g})")
    print(f"{len(before):,} values, {counted['DIFFERS']} differ, {counted['digits']} in digits")
    return counted["DIFFERS"] > 0


def written(found: Values) -> str:
    """JSON with a line for each entry of a section."""
    sections = []
    for name, entries in found.items():
        lines = (f"{json.dumps(key)}: {json.dumps(each)}" for key, each in entries.items())
        sections.append(f'"{name}": {{\n' + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(sections) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    parser.add_argument("--compare", type=Path, help="list what differs from this JSON file")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="a section")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of Opacus' hooks, at every step
    import_module("torch").set_num_threads(1)
    found = {}
    for name in options.only or SECTIONS:
        start = time.perf_counter()
        found[name] = json.loads(json.dumps(plain(SECTIONS[name]())))
        print(f"{name}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    if options.out:
        options.out.write_text(written(found))
    if options.compare:
        kept = json.loads(options.compare.read_text())
        sys.exit(compare({name: kept.get(name, {}) for name in found}, found))


if __name__ == "__main__":
    main()
