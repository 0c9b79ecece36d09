"""Figure 6: final beliefs, and accuracy.

Panels a to c have the adversary's final belief in the data set that was trained on, for noise
scaled to local or global sensitivity, bounded and unbounded, at ρ_β = 0.9; panel d has the accuracy
on held-out records. Half of the trainings are on D and half on D′. Two distributions of beliefs are
compared by their mean distance from one half, and two settings of noise by the advantage that noise
and local sensitivities imply, which chance hardly touches. The paper chose 30 steps at a learning
rate of 0.005, "which led to converging models": a training that converges slows down, so the fall
of the loss in the first ten steps is compared with that in the last ten. retail100 and Location-30
stand for Purchase-100, which takes part itself where its file is in the data folder.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from dprime.show.chart import Chart
from dprime.train import Compute, train
from dprime.train.models import model_named
from papers.bernau.cases import (
    BELIEF,
    CLIP_NORM,
    LEARNING_RATE,
    MNIST,
    ROWS,
    Adjacency,
    Case,
    Floats,
    Sensitivity,
    cases,
    held_out,
    named,
    purchase_like,
    ranking_of,
    recipe_of,
    rounded,
    settings_of,
    worlds_of,
)
from papers.bernau.coinciding import together
from papers.bernau.trainings import FinalAnswers, Seen, seen
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
    share,
    stated,
)

REPETITIONS = 1000
SLIGHTLY = 0.1
"""Above ½: a fifth of what there is."""

FASTER = (0.05, 0.5)
"""Larger learning rates, at which 30 steps teach more."""

Found = dict[tuple[Case, Sensitivity, Adjacency], Seen]


def measure(scale: Scale) -> Measured:
    """Four settings of noise on every data set."""
    chosen, clipped = cases(), (MNIST, *purchase_like())
    found: Found = {(case, *row): seen(scale, case, *row) for case in chosen for row in ROWS}
    claims = [
        *(average(case, row, found) for case in chosen for row in ROWS),
        *(unreached(case, found) for case in chosen),
        *(alike(scale, case, found) for case in clipped),
        *(utility(scale, case, found) for case in chosen),
        *(converged(scale, case, found) for case in chosen),
    ]
    quantiles = (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)
    return Measured(
        claims,
        {**settings_of(scale, chosen), "belief": BELIEF},
        {
            f"{case.title} {named(*row)}": {
                "belief_quantiles": rounded(np.quantile(found[case, *row].beliefs, quantiles)),
                "accuracy": found[case, *row].accuracy.mean(),
                "loss_by_step": rounded(found[case, *row].losses.mean(axis=0)),
                "noise_multiplier": found[case, *row].noise_multiplier,
            }
            for case in chosen
            for row in ROWS
        },
        {
            **{f"beliefs-{case.data}": beliefs(case, found) for case in chosen},
            "accuracy": accuracies(chosen, found),
        },
    )


def average(case: Case, row: tuple[Sensitivity, Adjacency], found: Found) -> Claim:
    """Panels a to c, on average."""
    return stated(
        f"{case.label}, {named(*row)}: mean final belief", "only slightly above 0.5",
        mean(found[case, *row].beliefs), least=0.5, most=0.5 + SLIGHTLY,
    )  # fmt: skip


def unreached(case: Case, found: Found) -> Claim:
    """The bound under global noise."""
    beliefs = found[case, "global", "replace"].beliefs
    return stated(
        f"{case.label}, GS bounded: trainings whose final belief exceeds 0.9",
        f"not reached in {REPETITIONS:,}, which leaves at most 0.4 %",
        share(int((beliefs > BELIEF).sum()), len(beliefs)), most=share(0, REPETITIONS).high,
        why=f"The largest of {len(beliefs):,} beliefs is {beliefs.max():.3f}.",
    )  # fmt: skip


def ratio(case: Case, adjacency: Adjacency, found: Found) -> Estimate:
    """The implied advantage under global noise over that under local noise."""
    reached = found[case, "global", adjacency].expected()
    local = found[case, "local", adjacency].expected().value
    return Estimate(reached.value / local, reached.low / local, reached.high / local)


def alike(scale: Scale, case: Case, found: Found) -> Claim:
    """Global noise is as good as local noise where gradients have norm C."""
    claim = stated(
        f"{case.label}, unbounded: implied advantage with GS over that with LS",
        "approximately the same: within a fifth of 1", ratio(case, "add-remove", found),
        least=1 - TOLERANCE, most=1 + TOLERANCE,
    )  # fmt: skip
    return explained(claim, lambda: shorter(scale, case, found))


def shorter(scale: Scale, case: Case, found: Found) -> str:
    """How far the record's gradient is from norm C, here and from other first weights."""
    norms = found[case, "global", "add-remove"].norms
    begun = [varied(scale, case, each, "add-remove") for each in ("global", "local")]
    return (
        f"The mean local sensitivity is {norms.mean():.3f}, of C = {CLIP_NORM:g}. From the weights "
        f"that TensorFlow's layers begin with it is {begun[0].norm.value:.3f}, and the implied "
        f"advantage with GS {begun[0].advantage.value / begun[1].advantage.value:.3f} of that with "
        "LS."
    )


def paired_ratio(above: Floats, below: Floats) -> Estimate:
    """The ratio of two means over the same trials, with the interval of its linear form."""
    value = above.mean() / below.mean()
    linear = mean(value + (above - value * below) / below.mean())
    return Estimate(float(value), linear.low, linear.high)


def utility(scale: Scale, case: Case, found: Found) -> Claim:
    """Panel d, bounded, trial by trial."""
    local, wide = (found[case, each, "replace"].accuracy for each in ("local", "global"))
    told = [
        f"At the learning rate {LEARNING_RATE:g} the accuracy after the last step is "
        f"{local.mean():.3f} with LS and {wide.mean():.3f} with GS."
    ]
    for rate in scale.pick(FASTER[:1], FASTER, FASTER):
        pair = [accuracy_at(scale, case, each, rate) for each in ("local", "global")]
        gain = mean(pair[0] - pair[1])
        told.append(
            f"At {rate:g} it is {pair[0].mean():.3f} and {pair[1].mean():.3f}, and LS gains "
            f"{gain.value:.4f} ({gain.low:.4f} to {gain.high:.4f})."
        )
    return stated(
        f"{case.label}, bounded: accuracy with LS less that with GS",
        "unnecessary noise costs accuracy: above 0", mean(local - wide), least=1e-9,
        why=" ".join(told),
    )  # fmt: skip


def converged(scale: Scale, case: Case, found: Found) -> Claim:
    """How much slower the training loss falls at the end than at the beginning."""
    one = found[case, "local", "replace"]
    third = one.losses.shape[1] // 3
    begun = one.losses[:, 0] - one.losses[:, third]
    ended = one.losses[:, -1 - third] - one.losses[:, -1]
    first, last = one.losses[:, 0].mean(), one.losses[:, -1].mean()
    labels = held_out(scale, case).labels
    frequent = float(np.bincount(labels.astype(int)).max() / len(labels))
    return stated(
        f"{case.label}, LS bounded: fall of the training loss in the last third of the steps over "
        "that in the first third",
        "converging models: at most half (our reading)", paired_ratio(ended, begun), most=0.5,
        why=f"The mean loss goes from {first:.3f} to {last:.3f}; {data_classes(scale, case)} "
        f"classes of equal odds have {np.log(data_classes(scale, case)):.3f}. The accuracy on "
        f"held-out records is {one.accuracy.mean():.3f}; whoever always says their most frequent "
        f"class has {frequent:.3f}.",
    )  # fmt: skip


def data_classes(scale: Scale, case: Case) -> int:
    """How many there are."""
    count = held_out(scale, case).classes
    assert count is not None
    return count


def accuracy_at(scale: Scale, case: Case, noise: Sensitivity, rate: float) -> Floats:
    """On held-out records, after as many steps at a larger learning rate [trial]."""
    worlds = worlds_of(scale, case, ranking_of(scale, case, "replace"))
    recipe = dataclasses.replace(recipe_of(scale, case, noise, "replace"), learning_rate=rate)
    seen_at_end = FinalAnswers(held_out(scale, case))
    train(
        model_named(case.model, worlds.common), worlds, recipe,
        trials=scale.pick(2, min(40, case.quick // 2), 200), seed=scale.seed,
        observers=[seen_at_end], keep_weights=False, compute=Compute(scale.device, scale.memory),
    )  # fmt: skip
    return seen_at_end.accuracy


def beliefs(case: Case, found: Found) -> Chart:
    """The share of trainings whose belief is at most a value."""
    lines = []
    for row in ROWS:
        ordered = np.sort(found[case, *row].beliefs)
        shares = (np.arange(len(ordered)) + 1) / len(ordered)
        step = max(1, len(ordered) // 100)
        points = tuple(zip(ordered[::step], shares[::step], strict=True))
        lines.append(Line(named(*row), points))
    most = max(float(found[case, *row].beliefs.max()) for row in ROWS)
    middle = float(np.mean([found[case, *row].beliefs.mean() for row in ROWS]))
    return lines_chart(
        f"figure6-{case.data}",
        f"{case.title}: the largest of all final beliefs is {most:.2f}, their mean {middle:.2f}.",
        "final belief in the data set that was used",
        "share of trainings at or below",
        (*together(lines), Line("ρ_β = 0.9", ((BELIEF, 0.0), (BELIEF, 1.0)))),
    )


def accuracies(chosen: Sequence[Case], found: Found) -> Chart:
    """Panel d: accuracy by setting."""
    lines = []
    for number, case in enumerate(chosen):
        aside = 0.08 * (number - (len(chosen) - 1) / 2)
        points = []
        for place, row in enumerate(ROWS):
            each = mean(found[case, *row].accuracy)
            points.append((place + 1 + aside, each.value, each.low, each.high))
        lines.append(Line(case.title, tuple(points), joined=False))
    apart = max(np.ptp([point[1] for point in line.points]) for line in lines)
    return lines_chart(
        "figure6-accuracy",
        "Between the four settings of noise, the mean accuracy on held-out records differs by at "
        f"most {apart:.3f}.",
        "noise (LS or GS for local or global sensitivity)",
        "accuracy",
        tuple(lines),
        places=tuple(named(*row) for row in ROWS),
    )


if __name__ == "__main__":
    run(measure, __file__, __doc__)
