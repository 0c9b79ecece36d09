"""Table 3: ε and the bound on the advantage for a belief.

For each belief ρ_β the paper gives the ε that it allows (equation 5 with δ = 0) and the advantage
ρ_α of an adversary against classical Gaussian noise for that ε (theorem 3). Both are formulas.
"""

from __future__ import annotations

from dprime.bounds import classical_advantage_from_epsilon, epsilon_from_belief
from papers.reproduce import Claim, Measured, Scale, computed, run

ROWS = {
    "MNIST": (0.01, ("0.52", "0.75", "0.9", "0.99"), ("0.08", "1.1", "2.2", "4.6"),
              ("0.01", "0.14", "0.28", "0.54")),
    "Purchase-100 and Adult": (0.001, ("0.53", "0.75", "0.9", "0.99"),
                               ("0.12", "1.1", "2.2", "4.6"), ("0.01", "0.12", "0.23", "0.46")),
}  # fmt: skip
"""δ; then ρ_β, ε and ρ_α as printed."""


def measure(scale: Scale) -> Measured:
    """Both formulas at every printed belief."""
    claims: list[Claim] = []
    for data, (delta, beliefs, epsilons, advantages) in ROWS.items():
        for belief, epsilon, advantage in zip(beliefs, epsilons, advantages, strict=True):
            found = epsilon_from_belief(float(belief))
            reached = classical_advantage_from_epsilon(found, delta=delta)
            if all(f"ε for a belief of {belief}" not in claim.what for claim in claims):
                claims.append(computed(f"{data}: ε for a belief of {belief}", epsilon, found))
            claims.append(computed(f"{data}: ρ_α for a belief of {belief}", advantage, reached))
    return Measured(claims, {"delta": {data: row[0] for data, row in ROWS.items()}})


if __name__ == "__main__":
    run(measure, __file__, __doc__)
