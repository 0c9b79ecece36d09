"""Figures 5 and 6: the course of the trainings, their final beliefs and their accuracy."""

from __future__ import annotations

import dataclasses

import numpy as np

from dprime.show.chart import Chart
from papers.adversary import (
    BELIEF,
    CLIP_NORM,
    GLOBAL_BOUNDED,
    GLOBAL_UNBOUNDED,
    LEARNING_RATE,
    LOCAL_BOUNDED,
    LOCAL_UNBOUNDED,
    NOISES,
    Noise,
)
from papers.bernau.trainings import Case, FinalAnswers, cases, named, seen, settings_of, varied
from papers.drawing import Line, line, lines_chart, together
from papers.entry import Measured, Scale
from papers.reproduce import TOLERANCE, Claim, Floats, mean, share, stated

REPETITIONS = 1000
SLIGHTLY = 0.1
"""Above ½: a fifth of what there is."""

FASTER = (0.05, 0.5)
"""Larger learning rates, at which 30 steps teach more."""


def figure5(scale: Scale) -> Measured:
    """Local sensitivity at each step, with global noise, against the global one."""
    chosen = cases(scale)
    claims = [
        *(at_clip(case) for case in chosen if case.data != "adult"),
        *(long_gradients(case) for case in chosen),
    ]
    pictures = {n.word: drawn_norms(chosen, n) for n in (GLOBAL_BOUNDED, GLOBAL_UNBOUNDED)}
    return Measured(claims, settings_of(chosen, belief=0.9, noise="global"), pictures)


def at_clip(case: Case) -> Claim:
    """A record's gradient has norm C."""

    def from_other_weights() -> str:
        other = varied(case, GLOBAL_UNBOUNDED).norm
        return f"From the weights that TensorFlow's layers begin with it is {other.told()}."

    return stated(
        f"{case.label}, unbounded: mean local sensitivity",
        "close to C = 3 or clipped to it: within a fifth", seen(case, GLOBAL_UNBOUNDED).norm,
        least=(1 - TOLERANCE) * CLIP_NORM, reason=from_other_weights,
    )  # fmt: skip


def long_gradients(case: Case) -> Claim:
    """How many gradients are clipped at all."""

    def from_other_choices() -> str:
        begun, scaled = (
            varied(case, GLOBAL_UNBOUNDED, standardised=each).above.told() for each in (False, True)
        )
        return (
            f"From the weights that TensorFlow's layers begin with it is {begun}, and with "
            f"columns of variance 1 as well {scaled}."
        )

    return stated(
        f"{case.label}: share of gradients that are longer than C = 3 before clipping",
        "usually: more than half", seen(case, GLOBAL_UNBOUNDED).above, least=0.5,
        reason=from_other_choices,
    )  # fmt: skip


def drawn_norms(chosen: list[Case], noise: Noise) -> Chart:
    """The mean by step with the middle nine tenths, and the global sensitivity."""
    norms = {case.title: seen(case, noise).norms for case in chosen}
    steps = range(1, 1 + next(iter(norms.values())).shape[1])
    lines = [
        line(title, steps, each.mean(axis=0), *np.quantile(each, (0.05, 0.95), axis=0))
        for title, each in norms.items()
    ]
    lines.append(Line(f"global, {noise.limit:g}", [(step, noise.limit) for step in steps]))
    shares = ", ".join(f"{e.mean() / noise.limit:.0%} on {title}" for title, e in norms.items())
    said = f"{noise.word.capitalize()}: the local sensitivity is {shares} of the global one."
    return lines_chart(said, "step", "local sensitivity", together(lines))


def figure6(scale: Scale) -> Measured:
    chosen = cases(scale)
    claims = [
        *(average(case, noise) for case in chosen for noise in NOISES),
        *map(unreached, chosen),
        *(alike(case) for case in chosen if case.data != "adult"),
        *map(utility, chosen),
        *map(converged, chosen),
    ]
    figures = {f"beliefs-{case.data}": drawn_beliefs(case) for case in chosen}
    figures["accuracy"] = drawn_accuracies(chosen)
    return Measured(claims, settings_of(chosen, belief=BELIEF), figures)


def average(case: Case, noise: Noise) -> Claim:
    """Panels a to c, on average."""
    return stated(
        f"{case.label}, {named(noise)}: mean final belief", "only slightly above 0.5",
        mean(seen(case, noise).beliefs), least=0.5, most=0.5 + SLIGHTLY,
    )  # fmt: skip


def unreached(case: Case) -> Claim:
    """The bound under global noise."""
    beliefs = seen(case, GLOBAL_BOUNDED).beliefs
    return stated(
        f"{case.label}, GS bounded: trainings whose final belief exceeds 0.9",
        f"not reached in {REPETITIONS:,}, which leaves at most 0.4 %",
        share(int((beliefs > BELIEF).sum()), len(beliefs)), most=share(0, REPETITIONS).high,
        why=f"The largest of {len(beliefs):,} beliefs is {beliefs.max():.3f}.",
    )  # fmt: skip


def alike(case: Case) -> Claim:
    """Global noise is as good as local noise where gradients have norm C."""
    wide, local = (seen(case, each) for each in (GLOBAL_UNBOUNDED, LOCAL_UNBOUNDED))

    def shorter() -> str:
        """How far the record's gradient is from norm C, here and from other first weights."""
        begun, other = (varied(case, each) for each in (GLOBAL_UNBOUNDED, LOCAL_UNBOUNDED))
        return (
            f"The mean local sensitivity is {wide.norms.mean():.3f}, of C = {CLIP_NORM:g}. From "
            "the weights that TensorFlow's layers begin with it is "
            f"{begun.norm.value:.3f}, and the implied advantage with GS "
            f"{begun.implied.value / other.implied.value:.3f} of that with LS."
        )

    return stated(
        f"{case.label}, unbounded: implied advantage with GS over that with LS",
        "approximately the same: within a fifth of 1",
        wide.implied.map(lambda each: each / local.implied.value),
        least=1 - TOLERANCE, most=1 + TOLERANCE, reason=shorter,
    )  # fmt: skip


def utility(case: Case) -> Claim:
    """Panel d, bounded, trial by trial."""
    pair = LOCAL_BOUNDED, GLOBAL_BOUNDED
    local, wide = (seen(case, each).accuracy for each in pair)
    told = [
        f"At the learning rate {LEARNING_RATE:g} the accuracy after the last step is "
        f"{local.mean():.3f} with LS and {wide.mean():.3f} with GS."
    ]
    for rate in case.scale.pick(FASTER[:1], FASTER, FASTER):
        one, other = (accuracy_at(case, each, rate) for each in pair)
        told.append(
            f"At {rate:g} it is {one.mean():.3f} and {other.mean():.3f}, and LS gains "
            f"{mean(one - other).told('.4f')}."
        )
    return stated(
        f"{case.label}, bounded: accuracy with LS less that with GS",
        "unnecessary noise costs accuracy: above 0", mean(local - wide), least=1e-9,
        why=" ".join(told),
    )  # fmt: skip


def accuracy_at(case: Case, noise: Noise, rate: float) -> Floats:
    """On held-out records, after as many steps at a larger learning rate [trial]."""
    final = FinalAnswers(case.held_out)
    trials = case.scale.pick(2, min(40, case.quick // 2), 200)
    case.train(case.worlds(noise), case.recipe(noise, learning_rate=rate), trials, final)
    return final.accuracy


def converged(case: Case) -> Claim:
    """How much slower the training loss falls at the end than at the beginning."""
    one, others = seen(case, LOCAL_BOUNDED), case.held_out
    losses = one.gradients.losses
    third = losses.shape[1] // 3
    begun = losses[:, 0] - losses[:, third]
    ended = losses[:, -1 - third] - losses[:, -1]
    ratio = ended.mean() / begun.mean()
    linear = mean(ratio + (ended - ratio * begun) / begun.mean())  # its interval is the ratio's
    assert others.classes is not None
    frequent = float(np.bincount(others.labels.astype(int)).max() / len(others))
    return stated(
        f"{case.label}, LS bounded: fall of the training loss in the last third of the steps over "
        "that in the first third",
        "converging models: at most half (our reading)",
        dataclasses.replace(linear, value=float(ratio)), most=0.5,
        why=f"The mean loss goes from {losses[:, 0].mean():.3f} to {losses[:, -1].mean():.3f}; "
        f"{others.classes} classes of equal odds have {np.log(others.classes):.3f}. The accuracy "
        f"on held-out records is {one.accuracy.mean():.3f}; whoever always says their most "
        f"frequent class has {frequent:.3f}.",
    )  # fmt: skip


def drawn_beliefs(case: Case) -> Chart:
    """The share of trainings whose belief is at most a value."""
    beliefs = {noise: np.sort(seen(case, noise).beliefs) for noise in NOISES}
    lines = []
    for noise, each in beliefs.items():
        shares, step = (np.arange(len(each)) + 1) / len(each), max(1, len(each) // 100)
        lines.append(line(named(noise), each[::step], shares[::step]))
    most = max(float(each.max()) for each in beliefs.values())
    middle = float(np.mean([each.mean() for each in beliefs.values()]))
    return lines_chart(
        f"{case.title}: the largest of all final beliefs is {most:.2f}, their mean {middle:.2f}.",
        "final belief in the data set that was used", "share of trainings at or below",
        [*together(lines), Line("ρ_β = 0.9", ((BELIEF, 0.0), (BELIEF, 1.0)))],
    )  # fmt: skip


def drawn_accuracies(chosen: list[Case]) -> Chart:
    lines, spreads = [], []
    for number, case in enumerate(chosen):
        aside = 0.08 * (number - (len(chosen) - 1) / 2)
        each = [mean(seen(case, noise).accuracy) for noise in NOISES]
        points = [(i + 1 + aside, one.value, one.low, one.high) for i, one in enumerate(each)]
        lines.append(Line(case.title, points, "points"))
        spreads.append(np.ptp([one.value for one in each]))
    return lines_chart(
        "Between the four settings of noise, the mean accuracy on held-out records differs by at "
        f"most {max(spreads):.3f}.",
        "noise (LS or GS for local or global sensitivity)", "accuracy", lines,
        places=[named(noise) for noise in NOISES],
    )  # fmt: skip
