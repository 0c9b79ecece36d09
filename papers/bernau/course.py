"""Figures 5 and 6: the course of the trainings, their final beliefs and their accuracy."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from dprime.show.chart import Chart
from dprime.train import Compute, train
from dprime.train.models import model_named
from papers.adversary import BELIEF, CLIP_NORM, LEARNING_RATE, global_sensitivity
from papers.bernau.coinciding import together
from papers.bernau.trainings import (
    MNIST,
    ROWS,
    WORDS,
    Adjacency,
    Case,
    FinalAnswers,
    Seen,
    Sensitivity,
    cases,
    held_out,
    named,
    purchase_like,
    recipe_of,
    rounded,
    seen,
    settings_of,
    worlds_of,
)
from papers.bernau.variants import varied
from papers.drawing import Line, line, lines_chart
from papers.entry import Measured, Scale
from papers.reproduce import TOLERANCE, Claim, Floats, mean, share, stated

ADJACENCIES: tuple[Adjacency, ...] = ("replace", "add-remove")
REPETITIONS = 1000
SLIGHTLY = 0.1
"""Above ½: a fifth of what there is."""

FASTER = (0.05, 0.5)
"""Larger learning rates, at which 30 steps teach more."""

Found = dict[tuple[Case, Sensitivity, Adjacency], Seen]


def figure5(scale: Scale) -> Measured:
    """Local sensitivity at each step, with global noise, against the global one."""
    chosen = cases()
    found: Found = {
        (case, "global", adjacency): seen(scale, case, "global", adjacency)
        for case in chosen
        for adjacency in ADJACENCIES
    }
    numbers = {
        f"{case.title} {WORDS[adjacency]}": {
            "mean": rounded(one.norms.mean(axis=0)),
            "low": rounded(np.quantile(one.norms, 0.05, axis=0)),
            "high": rounded(np.quantile(one.norms, 0.95, axis=0)),
            "gradients_above_C": rounded(one.above.mean(axis=0)),
        }
        for (case, _, adjacency), one in found.items()
    }
    claims = [
        *(at_clip(scale, case, found) for case in (MNIST, *purchase_like())),
        *(long_gradients(scale, case, found) for case in chosen),
    ]
    return Measured(
        claims, settings_of(scale, chosen, belief=0.9, noise="global"), numbers,
        {WORDS[adjacency]: drawn_norms(adjacency, found) for adjacency in ADJACENCIES},
    )  # fmt: skip


def at_clip(scale: Scale, case: Case, found: Found) -> Claim:
    """A record's gradient has norm C."""

    def from_other_weights() -> str:
        other = varied(scale, case, "global", "add-remove").norm
        return f"From the weights that TensorFlow's layers begin with it is {other.told()}."

    return stated(
        f"{case.label}, unbounded: mean local sensitivity",
        "close to C = 3 or clipped to it: within a fifth",
        mean(found[case, "global", "add-remove"].norms.mean(axis=1)),
        least=(1 - TOLERANCE) * CLIP_NORM, reason=from_other_weights,
    )  # fmt: skip


def long_gradients(scale: Scale, case: Case, found: Found) -> Claim:
    """How many gradients are clipped at all."""

    def from_other_choices() -> str:
        begun = varied(scale, case, "global", "add-remove").above
        scaled = varied(scale, case, "global", "add-remove", standardised=True).above
        return (
            f"From the weights that TensorFlow's layers begin with it is {begun.told()}, and with "
            f"columns of variance 1 as well {scaled.told()}."
        )

    return stated(
        f"{case.label}: share of gradients that are longer than C = 3 before clipping",
        "usually: more than half", mean(found[case, "global", "add-remove"].above.mean(axis=1)),
        least=0.5, reason=from_other_choices,
    )  # fmt: skip


def drawn_norms(adjacency: Adjacency, found: Found) -> Chart:
    """The mean by step with the middle nine tenths, and the global sensitivity."""
    norms = {case: one.norms for (case, _, each), one in found.items() if each == adjacency}
    lines, limit, steps = [], global_sensitivity(adjacency), range(0)
    for case, each in norms.items():
        steps = range(1, each.shape[1] + 1)
        ends = np.quantile(each, (0.05, 0.95), axis=0)
        lines.append(line(case.title, steps, each.mean(axis=0), *ends))
    lines.append(Line(f"global, {limit:g}", [(step, limit) for step in steps]))
    shares = ", ".join(f"{each.mean() / limit:.0%} on {c.title}" for c, each in norms.items())
    word = WORDS[adjacency].capitalize()
    said = f"{word}: the local sensitivity is {shares} of the global one."
    return lines_chart(said, "step", "local sensitivity", together(lines))


def figure6(scale: Scale) -> Measured:
    """Final beliefs and accuracy, with four settings of noise on every data set."""
    chosen = cases()
    found: Found = {(case, *row): seen(scale, case, *row) for case in chosen for row in ROWS}
    claims = [
        *(average(case, row, found) for case in chosen for row in ROWS),
        *(unreached(case, found) for case in chosen),
        *(alike(scale, case, found) for case in (MNIST, *purchase_like())),
        *(utility(scale, case, found) for case in chosen),
        *(converged(scale, case, found) for case in chosen),
    ]
    numbers = {
        f"{case.title} {named(*row)}": {
            "belief_quantiles": rounded(
                np.quantile(one.beliefs, (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1))
            ),
            "accuracy": one.accuracy.mean(),
            "loss_by_step": rounded(one.losses.mean(axis=0)),
            "noise_multiplier": one.noise_multiplier,
        }
        for (case, *row), one in found.items()
    }
    figures = {f"beliefs-{case.data}": drawn_beliefs(case, found) for case in chosen}
    figures["accuracy"] = drawn_accuracies(chosen, found)
    return Measured(claims, settings_of(scale, chosen, belief=BELIEF), numbers, figures)


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


def alike(scale: Scale, case: Case, found: Found) -> Claim:
    """Global noise is as good as local noise where gradients have norm C."""
    wide, local = (found[case, each, "add-remove"] for each in ("global", "local"))

    def shorter() -> str:
        """How far the record's gradient is from norm C, here and from other first weights."""
        begun = [varied(scale, case, each, "add-remove") for each in ("global", "local")]
        return (
            f"The mean local sensitivity is {wide.norms.mean():.3f}, of C = {CLIP_NORM:g}. From "
            "the weights that TensorFlow's layers begin with it is "
            f"{begun[0].norm.value:.3f}, and the implied advantage with GS "
            f"{begun[0].advantage.value / begun[1].advantage.value:.3f} of that with LS."
        )

    return stated(
        f"{case.label}, unbounded: implied advantage with GS over that with LS",
        "approximately the same: within a fifth of 1",
        wide.implied.map(lambda each: each / local.implied.value),
        least=1 - TOLERANCE, most=1 + TOLERANCE, reason=shorter,
    )  # fmt: skip


def utility(scale: Scale, case: Case, found: Found) -> Claim:
    """Panel d, bounded, trial by trial."""
    local, wide = (found[case, each, "replace"].accuracy for each in ("local", "global"))
    told = [
        f"At the learning rate {LEARNING_RATE:g} the accuracy after the last step is "
        f"{local.mean():.3f} with LS and {wide.mean():.3f} with GS."
    ]
    for rate in scale.pick(FASTER[:1], FASTER, FASTER):
        pair = [accuracy_at(scale, case, each, rate) for each in ("local", "global")]
        gain = mean(pair[0] - pair[1]).told(".4f")
        told.append(
            f"At {rate:g} it is {pair[0].mean():.3f} and {pair[1].mean():.3f}, and LS gains {gain}."
        )
    return stated(
        f"{case.label}, bounded: accuracy with LS less that with GS",
        "unnecessary noise costs accuracy: above 0", mean(local - wide), least=1e-9,
        why=" ".join(told),
    )  # fmt: skip


def accuracy_at(scale: Scale, case: Case, noise: Sensitivity, rate: float) -> Floats:
    """On held-out records, after as many steps at a larger learning rate [trial]."""
    worlds = worlds_of(scale, case, "replace")
    recipe = dataclasses.replace(recipe_of(scale, case, noise, "replace"), learning_rate=rate)
    final = FinalAnswers(held_out(scale, case))
    train(
        model_named(case.model, worlds.common), worlds, recipe,
        trials=scale.pick(2, min(40, case.quick // 2), 200), seed=scale.seed, observers=[final],
        keep_weights=False, compute=Compute(scale.device, scale.memory),
    )  # fmt: skip
    return final.accuracy


def converged(scale: Scale, case: Case, found: Found) -> Claim:
    """How much slower the training loss falls at the end than at the beginning."""
    one = found[case, "local", "replace"]
    third = one.losses.shape[1] // 3
    begun = one.losses[:, 0] - one.losses[:, third]
    ended = one.losses[:, -1 - third] - one.losses[:, -1]
    ratio = ended.mean() / begun.mean()
    linear = mean(ratio + (ended - ratio * begun) / begun.mean())  # its interval is the ratio's
    first, last = one.losses[:, 0].mean(), one.losses[:, -1].mean()
    others = held_out(scale, case)
    assert others.classes is not None
    frequent = float(np.bincount(others.labels.astype(int)).max() / len(others))
    return stated(
        f"{case.label}, LS bounded: fall of the training loss in the last third of the steps over "
        "that in the first third",
        "converging models: at most half (our reading)",
        dataclasses.replace(linear, value=float(ratio)), most=0.5,
        why=f"The mean loss goes from {first:.3f} to {last:.3f}; {others.classes} classes of equal "
        f"odds have {np.log(others.classes):.3f}. The accuracy on held-out records is "
        f"{one.accuracy.mean():.3f}; whoever always says their most frequent class has "
        f"{frequent:.3f}.",
    )  # fmt: skip


def drawn_beliefs(case: Case, found: Found) -> Chart:
    """The share of trainings whose belief is at most a value."""
    beliefs = {row: found[case, *row].beliefs for row in ROWS}
    lines = []
    for row, each in beliefs.items():
        shares = (np.arange(len(each)) + 1) / len(each)
        step = max(1, len(each) // 100)
        lines.append(line(named(*row), np.sort(each)[::step], shares[::step]))
    most = max(float(each.max()) for each in beliefs.values())
    middle = float(np.mean([each.mean() for each in beliefs.values()]))
    return lines_chart(
        f"{case.title}: the largest of all final beliefs is {most:.2f}, their mean {middle:.2f}.",
        "final belief in the data set that was used", "share of trainings at or below",
        [*together(lines), Line("ρ_β = 0.9", ((BELIEF, 0.0), (BELIEF, 1.0)))],
    )  # fmt: skip


def drawn_accuracies(chosen: Sequence[Case], found: Found) -> Chart:
    """Panel d: accuracy by setting."""
    lines, spreads = [], []
    for number, case in enumerate(chosen):
        aside = 0.08 * (number - (len(chosen) - 1) / 2)
        each = [mean(found[case, *row].accuracy) for row in ROWS]
        points = [(i + 1 + aside, one.value, one.low, one.high) for i, one in enumerate(each)]
        lines.append(Line(case.title, points, "points"))
        spreads.append(np.ptp([one.value for one in each]))
    return lines_chart(
        "Between the four settings of noise, the mean accuracy on held-out records differs by at "
        f"most {max(spreads):.3f}.",
        "noise (LS or GS for local or global sensitivity)", "accuracy", lines,
        places=[named(*row) for row in ROWS],
    )  # fmt: skip
