"""Figure 1: the decision boundary of the adversary.

A query has the answer 0 on D and 1 on D′, and Gaussian noise is added. The adversary sees one noisy
answer, knows both densities and says the data set that has the larger one. Panel a draws the
densities, panel b the belief in each data set. Both are formulas; the belief is computed by the
term that dprime's own adversary adds up in a training.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import optimize, stats

from dprime.bounds import classical_noise_multiplier_from_epsilon
from dprime.show.chart import Chart
from dprime.train.observers import log_mixture
from papers.drawing import Line, lines_chart
from papers.reproduce import Measured, Scale, computed, run

ON_D, ON_OTHER = 0.0, 1.0
"""The answers on D and D′ (section 3.1)."""

EPSILON, DELTA = 6.0, 1e-6
"""The noise of the paper's figure 2a: figure 1 does not name its own."""


def measure(scale: Scale) -> Measured:
    """Densities, beliefs, and where they cross."""
    sigma = classical_noise_multiplier_from_epsilon(EPSILON, delta=DELTA, beyond_proof=True)
    at = np.linspace(-3, 4, 141)
    inside, outside = (stats.norm.pdf(at, middle, sigma) for middle in (ON_D, ON_OTHER))
    belief = belief_in_d(at, sigma)
    boundary = optimize.brentq(lambda x: float(belief_in_d(np.array([x]), sigma)[0]) - 0.5, -3, 4)
    direct = inside / (inside + outside)
    claims = [computed("the answer at which both data sets are believed alike", "0.5", boundary)]
    return Measured(
        claims,
        {"epsilon": EPSILON, "delta": DELTA, "sigma": sigma},
        {
            "answers": at.tolist(),
            "density": inside.tolist(),
            "belief": belief.tolist(),
            "largest_gap_to_lemma_1": float(np.max(np.abs(belief - direct))),
        },
        {"densities": densities(at, inside, outside), "beliefs": beliefs(at, belief)},
    )


def belief_in_d(answers: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """After one noisy answer, from even odds."""
    rest = torch.tensor(answers - ON_OTHER)[:, None]
    change = torch.full_like(rest, ON_D - ON_OTHER)
    odds = log_mixture(rest, change, torch.full((len(answers),), sigma), 1.0).numpy()
    return np.asarray(1 / (1 + np.exp(-odds)))


def densities(
    at: NDArray[np.float64], inside: NDArray[np.float64], outside: NDArray[np.float64]
) -> Chart:
    """Panel a."""
    return lines_chart(
        "figure1-densities",
        "The adversary says D below 0.5 and D′ above it.",
        "noisy answer",
        "density",
        (
            Line("D, answer 0", tuple(zip(at, inside, strict=True))),
            Line("D′, answer 1", tuple(zip(at, outside, strict=True))),
            Line("decision boundary", ((0.5, 0.0), (0.5, float(inside.max())))),
        ),
    )


def beliefs(at: NDArray[np.float64], belief: NDArray[np.float64]) -> Chart:
    """Panel b."""
    return lines_chart(
        "figure1-beliefs",
        "Both data sets are believed alike at an answer of 0.5.",
        "noisy answer",
        "belief",
        (
            Line("in D", tuple(zip(at, belief, strict=True))),
            Line("in D′", tuple(zip(at, 1 - belief, strict=True))),
            Line("decision boundary", ((0.5, 0.0), (0.5, 1.0))),
        ),
    )


if __name__ == "__main__":
    run(measure, __file__, __doc__)
