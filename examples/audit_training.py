"""Is a training as private as it claims? Attack it a thousand times and see.

    python examples/audit_training.py

Needs `pip install 'dprime[train]'`. The same claim is tested twice: once with the noise that it
takes, and once with half of it.
"""

from torch import nn

import dprime
from dprime.attack import AttackTarget, EngineTrainer
from dprime.audit import audit
from dprime.data import load
from dprime.train import TrainingConfig

STEPS = 30
claim = dprime.choose(dprime.DPSGD(sample_rate=1.0, steps=STEPS), epsilon=4.0, delta=1e-5)
assert claim.noise_multiplier is not None
digits = load("digits").train.take(range(100))
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

outcomes = []
for noise in (claim.noise_multiplier, claim.noise_multiplier / 2):
    recipe = TrainingConfig(steps=STEPS, learning_rate=0.1, clip_norm=1.0, noise_multiplier=noise)
    target = AttackTarget(EngineTrainer(model, recipe), digits, seed=2)
    found = audit("malicious-dataset", target, claim=claim, trials=500)
    print(f"noise {noise:.3f}: {found.sentence}\n")
    outcomes.append(found.verdict.outcome)

assert outcomes == ["not refuted", "refuted"]
