"""Figure 5: sensitivities over the course of a training.

Local sensitivity at each of 30 steps against the global one, which is C = 3 where a record is left
out (unbounded) and 2C where it is replaced (bounded), for ρ_β = 0.9. The pair D, D′ is the one with
the largest dataset sensitivity. retail100 and Location-30 stand for Purchase-100, which takes part
itself where its file is in the data folder. Where the paper's sentences do not hold, the same
trainings begin with the weights that TensorFlow's layers have, and with columns of variance 1, both
of which the paper leaves open.
"""

from __future__ import annotations

import numpy as np

from dprime.show.chart import Chart
from papers.bernau.cases import (
    CLIP_NORM,
    MNIST,
    WORDS,
    Adjacency,
    Case,
    cases,
    purchase_like,
    rounded,
    settings_of,
)
from papers.bernau.coinciding import together
from papers.bernau.trainings import Seen, seen
from papers.bernau.variants import varied
from papers.drawing import Line, lines_chart
from papers.reproduce import (
    TOLERANCE,
    Claim,
    Estimate,
    Measured,
    Scale,
    explained,
    mean,
    run,
    stated,
)

GLOBAL: dict[Adjacency, float] = {"replace": 2 * CLIP_NORM, "add-remove": CLIP_NORM}
Found = dict[tuple[Case, Adjacency], Seen]


def measure(scale: Scale) -> Measured:
    """Global noise, as the figure compares with the global sensitivity."""
    chosen = cases()
    found: Found = {
        (case, adjacency): seen(scale, case, "global", adjacency)
        for case in chosen
        for adjacency in GLOBAL
    }
    claims = [
        *(at_clip(scale, case, found) for case in (MNIST, *purchase_like())),
        *(long_gradients(scale, case, found) for case in chosen),
    ]
    return Measured(
        claims,
        {**settings_of(scale, chosen), "belief": 0.9, "noise": "global"},
        {
            f"{case.title} {WORDS[adjacency]}": {
                "mean": rounded(one.norms.mean(axis=0)),
                "low": rounded(np.quantile(one.norms, 0.05, axis=0)),
                "high": rounded(np.quantile(one.norms, 0.95, axis=0)),
                "gradients_above_C": rounded(one.above.mean(axis=0)),
            }
            for (case, adjacency), one in found.items()
        },
        {WORDS[adjacency]: drawn(adjacency, found) for adjacency in GLOBAL},
    )


def mean_norm(one: Seen) -> Estimate:
    """Over steps and trials."""
    return mean(one.norms.mean(axis=1))


def at_clip(scale: Scale, case: Case, found: Found) -> Claim:
    """A record's gradient has norm C."""

    def from_other_weights() -> str:
        other = varied(scale, case, "global", "add-remove").norm
        return (
            f"From the weights that TensorFlow's layers begin with it is {other.value:.3f} "
            f"({other.low:.3f} to {other.high:.3f})."
        )

    claim = stated(
        f"{case.label}, unbounded: mean local sensitivity",
        "close to C = 3 or clipped to it: within a fifth",
        mean_norm(found[case, "add-remove"]), least=(1 - TOLERANCE) * CLIP_NORM,
    )  # fmt: skip
    return explained(claim, from_other_weights)


def long_gradients(scale: Scale, case: Case, found: Found) -> Claim:
    """How many gradients are clipped at all."""

    def from_other_choices() -> str:
        begun = varied(scale, case, "global", "add-remove").above
        scaled = varied(scale, case, "global", "add-remove", standardised=True).above
        return (
            f"From the weights that TensorFlow's layers begin with it is {begun.value:.3f} "
            f"({begun.low:.3f} to {begun.high:.3f}), and with columns of variance 1 as well "
            f"{scaled.value:.3f} ({scaled.low:.3f} to {scaled.high:.3f})."
        )

    claim = stated(
        f"{case.label}: share of gradients that are longer than C = 3 before clipping",
        "usually: more than half", mean(found[case, "add-remove"].above.mean(axis=1)), least=0.5,
    )  # fmt: skip
    return explained(claim, from_other_choices)


def drawn(adjacency: Adjacency, found: Found) -> Chart:
    """The mean by step with the middle nine tenths, and the global sensitivity."""
    chosen = [case for case, each in found if each == adjacency]
    lines = []
    for case in chosen:
        norms = found[case, adjacency].norms
        steps = range(1, norms.shape[1] + 1)
        low, high = np.quantile(norms, (0.05, 0.95), axis=0)
        points = tuple(zip(steps, norms.mean(axis=0), low, high, strict=True))
        lines.append(Line(case.title, points))
    limit = GLOBAL[adjacency]
    lines.append(Line(f"global, {limit:g}", tuple((step, limit) for step in steps)))
    shares = ", ".join(
        f"{found[case, adjacency].norms.mean() / limit:.0%} on {case.title}" for case in chosen
    )
    return lines_chart(
        f"figure5-{WORDS[adjacency]}",
        f"{WORDS[adjacency].capitalize()}: the local sensitivity is {shares} of the global one.",
        "step",
        "local sensitivity",
        together(lines),
    )


if __name__ == "__main__":
    run(measure, __file__, __doc__)
