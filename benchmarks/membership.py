"""What the attacks reach against an overfitted model without privacy: Location-30.

    DPRIME_DATA=… python benchmarks/membership.py [--device cuda] [--shadows 64] [--out FILE]

A network of one hidden layer learns its half of the records by heart. LiRA with 64 shadow models is
expected to reach an AUC above 0.7.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from dprime.data import load
from dprime.membership import InferenceConfig, Recipe, Trainers, infer
from dprime.membership.attacks import ATTACKS
from dprime.plain import to_json
from dprime.train import Compute

RECIPE = Recipe(batch=128, epochs=60, learning_rate=0.2, momentum=0.9)
MODEL = "dense-128"
OTHERS = 700
"""Records of the published file that no model is trained on."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--memory", type=float, default=2.0)
    parser.add_argument("--shadows", type=int, default=64)
    parser.add_argument("--targets", type=int, default=5)
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    options = parser.parse_args()
    split = load("location30")
    pool, others = split.train.distinct(), split.test.take(range(min(OTHERS, len(split.test))))
    trainers = Trainers.named(
        RECIPE, pool, model=MODEL, compute=Compute(options.device, options.memory)
    )
    start = time.perf_counter()
    config = InferenceConfig(
        tuple(ATTACKS), shadows=options.shadows, targets=options.targets,
        records=min(3000, len(pool)), seed=1,
    )  # fmt: skip
    (found,) = infer(pool, others, trainers, config).inferences
    result = {
        "data": "location30", "pool": len(pool), "model": MODEL,
        "seconds": time.perf_counter() - start, **to_json(found),
    }  # fmt: skip
    for each in found.attacks:
        print(f"{each.title:34} AUC {each.auc.text()}")
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
