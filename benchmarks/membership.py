"""What do the attacks reach against an overfitted model without privacy?

Claim: docs/membership.md. On Location-30, a network of one hidden layer learns its half of the
records by heart. LiRA with 64 shadow models is expected to reach an AUC above 0.7.
"""

from __future__ import annotations

from benchmarks.timing import Found, memory_of, say
from dprime.data import load
from dprime.membership import InferenceConfig, Recipe, Trainers, infer
from dprime.membership.attacks import ATTACKS
from dprime.plain import to_json
from dprime.train import Compute

RECIPE = Recipe(batch_size=128, epochs=60, learning_rate=0.2, momentum=0.9)
MODEL = "dense-128"
OTHERS = 700
"""Records of the published file that no model is trained on."""


def measure(quick: bool, device: str) -> Found:
    split = load("location30")
    pool, others = split.train.distinct(), split.test.take(range(min(OTHERS, len(split.test))))
    compute = Compute(device, memory_of(device))
    shadows, targets = (32, 2) if quick else (64, 5)
    config = InferenceConfig(
        tuple(ATTACKS), shadows=shadows, targets=targets, records=min(3000, len(pool)), seed=1
    )
    trainers = Trainers.named(RECIPE, pool, model=MODEL, compute=compute)
    (found,) = infer(pool, others, trainers, config).inferences
    for each in found.attacks:
        say(f"{each.title:34} AUC {each.auc.text()}")
    return {"data": "location30", "pool": len(pool), "model": MODEL, **to_json(found)}
