"""How much noise does a training need, if one person may be found in it only so often?

    python examples/choose_noise.py

Needs dprime alone.
"""

import dprime

RECORDS, BATCH, EPOCHS = 60_000, 256, 10

plan = dprime.DPSGD(sample_rate=BATCH / RECORDS, steps=EPOCHS * RECORDS // BATCH)

plans = {
    "advantage of at most 0.05": dprime.choose(plan, advantage=0.05),
    "2 % of members found at 1 % false alarms": dprime.choose(plan, tpr=0.02, fpr=0.01),
    "precision of at most 0.2 at a prior of 0.1": dprime.choose(plan, precision=0.2, prior=0.1),
    "ε = 2 at δ = 1e-5": dprime.choose(plan, epsilon=2.0, delta=1e-5),
}
print(f"{'acceptable':42}  noise  ε at δ = 1e-5")
for words, safe in plans.items():
    print(f"{words:42}  {safe.noise_multiplier:.3f}  {safe.curve().epsilon(delta=1e-5):.3f}")

# The answer is on the safe side: what was asked for holds for the noise that was chosen.
assert plans["advantage of at most 0.05"].curve().advantage() <= 0.05
