"""Bad input is refused in the name of the parameter: one case for each way to fail."""

import numpy as np
from torch import nn

from dprime.curve import TradeOff
from dprime.data import Dataset
from dprime.membership import Cohort, InferenceConfig, infer, signals_of
from dprime.membership.attacks import RMIA, AttackR, Evidence, LiRA
from dprime.membership.confidence import contradicts, over_repetitions, precision_of_share
from dprime.membership.config import Recipe
from dprime.membership.planner import plan
from dprime.membership.pool import draw
from dprime.membership.results import mean_tpr, roc, top_precision
from dprime.membership.signals import Signals
from dprime.train import TrainingConfig, train
from membership.plain_attacks import signals
from pools import OTHERS, POOL, network, trainers
from told import refuses

NAN = float("nan")
RNG = np.random.default_rng(0)
PURE = TradeOff.from_lines([(1.0, 0.0)])
LINEAR = nn.Linear(12, 2)
TRAINER = trainers()(0.5)


def inferred(**given):
    return infer(POOL, OTHERS, trainers(), InferenceConfig(**{"attacks": ["lira"], **given}))


def evidence(**change):
    shapes = {"target": 5, "shadows": (3, 5), "population": 4, "shadow_population": (3, 4)}
    parts = {name: signals(np.zeros(shape)) for name, shape in shapes.items()}
    return Evidence(**{**parts, "members": np.ones((3, 5), bool), **change})


def planned(precision=0.731, **given):
    return plan(precision, **{"pool_size": 60_000, "batch_size": 1024, "epochs": 15, **given})


def forgotten():
    recipe = TrainingConfig(steps=1, learning_rate=0.1)
    return train(network(), POOL, recipe, seed=0, keep_weights=False)


test_bad_input_is_refused_by_its_name = refuses([
    ("the number of records in the pool", lambda: draw(1, 0.5)),
    ("probability", lambda: draw(10, 0.0)),
    ("probability", lambda: draw(10, "0.5")),
    ("probability", lambda: draw(3, [0.1, 0.2])),
    ("the probability of record 1", lambda: draw(3, [0.1, 1.5, 0.2])),
    ("pool", lambda: draw(81, 0.5).take(POOL)),
    ("dataset", lambda: draw(81, 0.5).subset(POOL)),
    ("log_p", lambda: Signals(np.ones(2), np.zeros(2))),
    ("log_p", lambda: Signals(np.zeros(2), np.zeros(3))),
    ("labels", lambda: Signals.from_logits(np.zeros((3, 2)), [0, 1])),
    ("records", lambda: signals_of(LINEAR, Dataset.of(np.ones((2, 12)), [0.5, 1.5]))),
    ("model", lambda: signals_of(forgotten(), POOL)),
    ("shadows", lambda: evidence(shadows=signals(np.zeros((3, 4))))),
    ("shadows", lambda: evidence(shadows=signals(np.where(np.eye(3, 5), np.nan, 0)))),
    ("target", lambda: evidence(target=signals(np.zeros((3, 5))))),
    ("shadow_population", lambda: evidence(shadow_population=signals(np.zeros((3, 5))))),
    ("variance", lambda: LiRA(variance="none")),
    ("missing", lambda: AttackR(missing="skip")),
    ("thresholds_from", lambda: AttackR(thresholds_from="both")),
    ("gamma", lambda: RMIA(gamma=0.0)),
    ("offline_a", lambda: RMIA(offline_a=1.5)),
    ("values", lambda: over_repetitions([0.5])),
    ("correct", lambda: contradicts(PURE, 4, 3, records=10, prior=0.5)),
    ("records", lambda: contradicts(PURE, 3, 5, records=4, prior=0.5)),
    ("claim", lambda: contradicts(1.0, 3, 5, records=10, prior=0.5)),
    ("share", lambda: precision_of_share(PURE, 0.0, 0.5)),
    ("members", lambda: roc([1.0, 2.0], [True, True])),
    ("members", lambda: roc([1.0, 2.0], [True])),
    ("scores", lambda: roc(["a", "b"], [0, 1])),
    ("values", lambda: mean_tpr([roc([1.0, 2.0], [True, False])], [0.1])),
    ("share", lambda: top_precision([1.0, 2.0], [0, 1], 0.0, RNG)),
    ("batch_size", lambda: Recipe(batch_size=0)),
    ("noise_multiplier", lambda: Recipe(epsilon=1.0, noise_multiplier=2.0)),
    ("batch_size", lambda: Recipe(batch_size=50).training(80, 0.5)),
    ("probability", lambda: Recipe(batch_size=5).training(80, 1.0)),
    ("models", lambda: Cohort.of(TRAINER, 0, seed=1)),
    ("probability", lambda: Cohort.of(TRAINER, 2, 1.0, seed=1)),
    ("precision", lambda: planned(precision=1.0)),
    # the target: no noise meets it
    ("sampling_probabilities", lambda: planned(sampling_probabilities=[0.3, 0.731])),
    ("sampling_probabilities", lambda: planned(sampling_probabilities=[0.01])),  # less than a batch
    ("sampling_probabilities", lambda: planned(sampling_probabilities=[])),
    ("precision", lambda: planned(pool_size=1200)),  # below the least π that leaves a batch
    ("batch_size", lambda: planned(batch_size=0)),
    ("batch_size", lambda: planned(pool_size=1000)),
    ("Exactly one of epochs, steps", lambda: planned(steps=5)),
    ("min_tpr", lambda: planned(min_tpr=0.0)),
    ("attacks", lambda: inferred(attacks=[])),
    ("attacks", lambda: inferred(attacks=["lira", "lira"])),
    ("attack", lambda: inferred(attacks=["liar"])),
    ("targets", lambda: inferred(targets=1)),
    ("records", lambda: inferred(records=81)),
    ("shadow models", lambda: inferred(shadows=1)),
    ("sampling_probabilities", lambda: inferred(sampling_probabilities=[1.0])),
    ("the number of sampling_probabilities", lambda: inferred(sampling_probabilities=[])),
    ("min_tpr", lambda: inferred(min_tpr=0.2)),
])  # fmt: skip
