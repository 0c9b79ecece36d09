"""Small runs, each made once when it is first asked for: what cards and reports are made of."""

import atexit
import dataclasses
import functools
import shutil
import tempfile
from pathlib import Path
from unittest.mock import patch

import torch
from torch import nn

import dprime
from dprime.attack import AttackTarget, FunctionTrainer
from dprime.attack.trainer import Game
from dprime.audit import AuditConfig, audit, begin
from dprime.data import devices
from dprime.guarantees import GDP, EpsilonDeltaProfile
from dprime.metrics import Reading
from dprime.runs.run import Run
from games import IMAGES, engine_setting, network

BASE = {"max_records": 8, "trials": 40, "block": 16, "seed": 1, "metric": "advantage"}
SHORT, WEAK = {"steps": 2}, {"steps": 2, "noise_multiplier": 0.4}
FOUR = {"steps": 4, "noise_multiplier": 3.0}
DIVERGING = {"steps": 6, "noise_multiplier": 2.0, "learning_rate": 1e38}
MIXED = {"steps": 3, "noise_multiplier": 3.0, "sample_rate": 0.5, "momentum": 0.5}
CLAIM, ASSUMED = {"epsilon": 4.0}, {"method": "gaussian", "assume": "gaussian"}
MODELS = {"adversary": "api-access", "trials": 20}
BELIEF = {"belief_level": 0.8, "belief_prior": 0.4}


def short(**given):
    """An audit of a short training against ε = 4."""
    return {"claim": CLAIM, "training": SHORT, **given}


NAMED = {
    "stands": short(trials=200),
    "public": short(training={**SHORT, "expected_batch_size": 8}),
    "few": short(metric="epsilon", trials=10),
    "gradient": short(adversary="gradient"),
    "api": short(adversary="api-access"),
    "broken": short(claim={"noise_multiplier": 4.0}, training=WEAK, trials=60),
    "understated": short(claim={"epsilon": 2.0}, training={**SHORT, "noise_multiplier": 1.8}),
    "no-noise": short(**MODELS, training={**SHORT, "noise_multiplier": 0.0}),
    "curve": short(metric="curve", method="band"),
    "success": short(metric="success"),
    "replace": short(
        claim={"epsilon": 3.0, "delta": 1e-6},
        training=MIXED,
        adjacency="replace",
        metric="tpr",
        conditions={"fpr": 0.05},
    ),
    "gaussian": short(**ASSUMED),
    "assumed": short(method="gaussian"),
    "bayesian": short(method="bayesian", metric="epsilon"),
    "di": {"adversary": "di", "training": FOUR, "metric": "tpr", "trials": 100, **BELIEF},
    "sampled-di": {"adversary": "di", "training": {**FOUR, "sample_rate": 0.5}},
    "local": {"adversary": "di", "training": {**FOUR, "sensitivity": "local"}},
    "diverged": short(adversary="api-access", claim={"noise_multiplier": 2.0}, training=DIVERGING),
    "own": {**MODELS, "trainer": "audited:trained", "claim": CLAIM, "metric": "epsilon"},
    "objected-above": {
        **MODELS,
        **ASSUMED,
        "trainer": "audited:told_apart",
        "claim": {"epsilon": 0.1},
    },
    "objected": {**MODELS, **ASSUMED, "trainer": "audited:three_models", "claim": CLAIM},
}
"""Runs of plain settings."""

FAILED_BLOCK = 2


def learned(model, dataset, steps, rate):
    """The model after plain steps on all records."""
    x, y = torch.tensor(dataset.records), torch.tensor(dataset.labels)
    optimizer = torch.optim.SGD(model.parameters(), rate)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model


def trained(dataset, seed):
    """A training function of one's own."""
    torch.manual_seed(seed)
    return learned(network(), dataset, 1, 0.1)


def three_models(dataset, seed):
    """A training function whose scores take three values, the same in both worlds."""
    model = network()
    nn.init.zeros_(model[1].weight)
    model[1].bias.data = torch.arange(10.0) * (seed % 3)
    return model


def told_apart(dataset, seed):
    """A training function whose scores tell the worlds apart, and take three values in each."""
    model = three_models(dataset, 1)
    if len(dataset) == BASE["max_records"]:  # with the record it learns them all, else nothing
        learned(model, dataset, 50, 0.5)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1 + 0.1 * (seed % 3))
    return model


@functools.cache
def folder():
    place = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


@functools.cache
def run(name):
    """The path of a run; do not change the file."""
    path = folder() / f"{name}.run"
    with devices.one_thread():
        OTHERS.get(name, functools.partial(_begun, name))(path)
    return path


def _begun(name, path):
    begin(AuditConfig.from_words({**BASE, **NAMED[name]}), path, progress=False)


def _failed(path):
    """One block fails as often as it is tried."""
    play = Game.play

    def sometimes(game, block):
        if block == FAILED_BLOCK:
            raise RuntimeError("no <memory> left & none to come")
        return play(game, block)

    with patch.object(Game, "play", sometimes):
        _begun("stands", path)


def _in_python(path, **options):
    given = {"criterion": Reading("advantage"), "trials": 40, **options}
    audit("malicious-dataset", engine_setting(seed=5), path=path, **given)


EVIL = "<script>alert('x')</script> https://example.org/ ](x) & \"quoted\""


def _own_object(path):
    """A data set whose name would be a program, and a training function without a name."""
    dataset = dataclasses.replace(IMAGES.train.take(range(6)), name=EVIL)
    setting = AttackTarget(FunctionTrainer(trained), dataset, seed=1)
    audit("api-access", setting, claim=dprime.DPSGD(2.0, 1.0, 3), trials=10, path=path)


def _unfinished(path):
    settings = AuditConfig.from_words({**BASE, **NAMED["stands"]})
    Run.create(path, "audit", settings.to_dict(), settings.blocks).close()


def _old(path):
    """An answer as earlier versions kept it, without curves."""
    _unfinished(path)
    with Run.open(run("stands")) as finished, Run.open(path) as store:
        store.keep({name: finished.result[name] for name in ("verdict", "sentence")})


LIMITLESS = {"claim": EpsilonDeltaProfile(((0.5, 0.3),)), "criterion": Reading("epsilon")}
OTHERS = {
    "failed": _failed,
    "python": _in_python,
    "python-curve": functools.partial(_in_python, claim=GDP(2.0)),
    "no-limit": functools.partial(_in_python, **LIMITLESS),
    "evil": _own_object,
    "unfinished": _unfinished,
    "old": _old,
}

SIX = ("stands", "broken", "di", "local", "evil", "objected-above")
"""Not refuted, refuted, with beliefs, not DP, of Python and with hostile names, not counted."""
