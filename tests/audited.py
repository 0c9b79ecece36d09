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
from dprime.audit import AuditConfig, audit, begin
from dprime.audit.game import Game
from dprime.guarantees import GDP, EpsilonDeltaProfile
from dprime.metrics import Reading
from dprime.runs.run import Run
from games import IMAGES, engine_setting

BASE = {"records": 8, "trials": 40, "block": 16, "seed": 1, "metric": "advantage"}
SHORT = {"steps": 2}
CLAIM = {"epsilon": 4.0}
WEAK = {"noise_multiplier": 0.4, **SHORT}

NAMED = {
    "stands": {"claim": CLAIM, "training": SHORT, "trials": 200},
    "public": {"claim": CLAIM, "training": {**SHORT, "expected_batch_size": 8}},
    "few": {"claim": CLAIM, "training": SHORT, "metric": "epsilon", "trials": 10},
    "gradient": {"claim": CLAIM, "training": SHORT, "adversary": "gradient"},
    "api": {"claim": CLAIM, "training": SHORT, "adversary": "api-access"},
    "broken": {"claim": {"noise_multiplier": 4.0}, "training": WEAK, "trials": 60},
    "curve": {"claim": CLAIM, "training": SHORT, "metric": "curve", "method": "band"},
    "success": {"claim": CLAIM, "training": SHORT, "metric": "success"},
    "replace": {
        "claim": {"epsilon": 2.0, "delta": 1e-6}, "adjacency": "replace",
        "training": {"steps": 3, "sample_rate": 0.5, "noise_multiplier": 3.0, "momentum": 0.5},
        "metric": "tpr", "conditions": {"fpr": 0.05},
    },
    "gaussian": {"claim": CLAIM, "training": SHORT, "method": "gaussian", "assume": "gaussian"},
    "assumed": {"claim": CLAIM, "training": SHORT, "method": "gaussian"},
    "bayesian": {"claim": CLAIM, "training": SHORT, "method": "bayesian", "metric": "epsilon"},
    "di": {
        "adversary": "di", "training": {"noise_multiplier": 3.0, "steps": 4}, "metric": "tpr",
        "belief": 0.8, "belief_prior": 0.4, "trials": 100,
    },
    "sampled-di": {
        "adversary": "di", "training": {"noise_multiplier": 3.0, "steps": 4, "sample_rate": 0.5},
    },
    "local": {
        "adversary": "di",
        "training": {"noise_multiplier": 3.0, "steps": 4, "sensitivity": "local"},
    },
    "diverged": {
        "adversary": "api-access", "claim": {"noise_multiplier": 2.0},
        "training": {"steps": 6, "learning_rate": 1e38, "noise_multiplier": 2.0},
    },
    "own": {
        "adversary": "api-access", "trainer": "audited:trained", "claim": CLAIM,
        "metric": "epsilon", "trials": 20,
    },
    "objected-above": {
        "adversary": "api-access", "trainer": "audited:told_apart", "method": "gaussian",
        "assume": "gaussian",
        "claim": {"epsilon": 0.1}, "trials": 20,
    },
    "objected": {
        "adversary": "api-access", "trainer": "audited:three_models", "claim": CLAIM,
        "method": "gaussian", "assume": "gaussian", "trials": 20,
    },
}  # fmt: skip
"""Runs of plain settings."""

FAILED_BLOCK = 2


def trained(dataset, seed):
    """A training function of one's own."""
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    x, y = torch.tensor(dataset.records), torch.tensor(dataset.labels)
    nn.functional.cross_entropy(network(x), y).backward()
    with torch.no_grad():
        for weight in network.parameters():
            weight.sub_(0.1 * weight.grad)
    return network


def three_models(dataset, seed):
    """A training function whose scores take three values, the same in both worlds."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    nn.init.zeros_(network[1].weight)
    nn.init.zeros_(network[1].bias)
    with torch.no_grad():
        network[1].bias += torch.arange(10.0) * (seed % 3)
    return network


def told_apart(dataset, seed):
    """A training function whose scores tell the worlds apart, and take three values in each."""
    network = three_models(dataset, 1)
    if len(dataset) == BASE["records"]:  # with the record it learns them all, else nothing
        x, y = torch.tensor(dataset.records), torch.tensor(dataset.labels)
        for _ in range(50):
            network.zero_grad()
            nn.functional.cross_entropy(network(x), y).backward()
            with torch.no_grad():
                for weight in network.parameters():
                    weight.sub_(0.5 * weight.grad)
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(1 + 0.1 * (seed % 3))
    return network


@functools.cache
def folder():
    place = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


@functools.cache
def run(name):
    """The path of a run; do not change the file."""
    path = folder() / f"{name}.run"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if name in NAMED:
            begin(AuditConfig.from_words({**BASE, **NAMED[name]}), path, progress=False)
        else:
            OTHERS[name](path)
    finally:
        torch.set_num_threads(threads)
    return path


def _failed(path):
    """One block fails as often as it is tried."""
    play = Game.play

    def sometimes(game, block):
        if block == FAILED_BLOCK:
            raise RuntimeError("no <memory> left & none to come")
        return play(game, block)

    with patch.object(Game, "play", sometimes):
        begin(AuditConfig.from_words({**BASE, **NAMED["stands"]}), path, progress=False)


def _in_python(path, **options):
    given = {"criterion": Reading("advantage"), "trials": 40, **options}
    audit("malicious-dataset", engine_setting(seed=5), path=path, **given)


def _own_object(path):
    """A data set whose name would be a program, and a training function without a name."""
    dataset = dataclasses.replace(IMAGES.train.take(range(6)), name=EVIL)
    setting = AttackTarget(FunctionTrainer(trained), dataset, seed=1)
    claim = dprime.DPSGD(2.0, 1.0, 3)
    audit("api-access", setting, claim=claim, trials=10, path=path)


EVIL = "<script>alert('x')</script> https://example.org/ ](x) & \"quoted\""


def _unfinished(path):
    settings = AuditConfig.from_words({**BASE, **NAMED["stands"]})
    Run.create(path, "audit", settings.to_dict(), settings.blocks).close()


def _old(path):
    """An answer as earlier versions kept it, without curves."""
    _unfinished(path)
    with Run.open(run("stands")) as finished, Run.open(path) as store:
        kept = {"verdict", "sentence"}
        store.keep({name: finished.result[name] for name in kept})


OTHERS = {
    "failed": _failed,
    "python": _in_python,
    "python-curve": functools.partial(_in_python, claim=GDP(2.0)),
    "no-limit": functools.partial(
        _in_python, claim=EpsilonDeltaProfile(((0.5, 0.3),)), criterion=Reading("epsilon")
    ),
    "evil": _own_object,
    "unfinished": _unfinished,
    "old": _old,
}

CONCLUDED = (*NAMED, "failed", "python", "python-curve", "no-limit", "evil")
"""Every run that has an answer."""
