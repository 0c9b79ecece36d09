"""Figure 3: choosing noise and rate for a Bayes security.

Equation 4 turns the closed form around: for a wanted Bayes security and 5,000 steps the sampling
rate is in proportion to the noise. The paper says that its example, with the rate as it is printed,
guarantees the security. The closed form is an estimate, so the certified security of that rate
stands beside the wanted one.
"""

from __future__ import annotations

from dprime.mechanisms import DPSGD
from papers.cherubin.securities import rate_of
from papers.drawing import Line, lines_chart
from papers.reproduce import Claim, Measured, Scale, computed, exact, run, stated

STEPS = 5_000
WANTED = 0.98
PRINTED = "0.00035"
"""p/σ for it, as printed."""

SECURITIES = (0.8, 0.9, 0.95, 0.98, 0.99)
NOISES = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
GUARANTEED_AT = (0.5, 1.0, 2.0, 4.0)


def measure(scale: Scale) -> Measured:
    """Equation 4, and what is certified of it."""
    lines = {
        security: [
            (noise, rate_of(security, noise, STEPS)) for noise in NOISES
        ]
        for security in SECURITIES
    }  # fmt: skip
    claims = [
        computed(
            f"p/σ for a security of {WANTED:g} after {STEPS:,} steps", PRINTED,
            rate_of(WANTED, 1.0, STEPS),
        ),
        *(_guaranteed(noise) for noise in GUARANTEED_AT),
    ]  # fmt: skip
    held = certified(1.0)
    figure = lines_chart(
        "figure3",
        f"The rate for a Bayes security of {WANTED:g} has a certified one of {held:.4f} at σ = 1.",
        "noise σ", "sampling rate p",
        tuple(Line(f"β* = {security:g}", points) for security, points in lines.items()),
        log_y=True,
    )  # fmt: skip
    numbers = {
        "rate": {str(security): points for security, points in lines.items()},
        "certified": {str(noise): certified(noise) for noise in NOISES},
    }
    return Measured(claims, {"steps": STEPS, "noises": NOISES}, numbers, figure)


def _guaranteed(noise: float) -> Claim:
    held = certified(noise)
    return stated(
        f"certified security at σ = {noise:g}, p = {PRINTED} σ",
        f"{WANTED:g} is guaranteed",
        exact(held),
        least=WANTED,
        why="" if held >= WANTED else (
            f"The attacker's advantage is up to {(1 - held) / (1 - WANTED):.4g} times the wanted "
            f"one. The rate would have to be {_share(noise):.4g} times the printed one."
        ),
    )  # fmt: skip


def certified(noise: float, share: float = 1.0) -> float:
    """With a share of the printed rate."""
    rate = share * float(PRINTED) * noise
    return DPSGD(noise, rate, STEPS).curve("replace").bayes_security()


def _share(noise: float) -> float:
    """The largest of the printed rate for which the security is certified."""
    low, high = 0.0, 1.0
    for _ in range(16):
        share = (low + high) / 2
        low, high = (share, high) if certified(noise, share) >= WANTED else (low, share)
    return low


if __name__ == "__main__":
    run(measure, __file__, __doc__)
