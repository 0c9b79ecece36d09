"""Figures 1 and 9: Bayes security along trainings, against attribute inference and membership."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

import numpy as np

from dprime.data import Split
from dprime.mechanisms import DPSGD, Adjacency
from dprime.parameters import steps_from_epochs
from dprime.show.chart import Chart
from papers.cherubin.closed_form import mu_of
from papers.cherubin.trainings import (
    ADULT,
    AT_EPOCHS,
    CASES,
    Recipe,
    Run,
    Trained,
    both,
    kept,
    settings_of,
    trained,
    watched,
)
from papers.drawing import Line, line, lines_chart
from papers.entry import Measured, Scale, Table
from papers.reproduce import Claim, Estimate, computed, half_digit, mean, printed, readable, stated

FORM = "closed-form"
WANTED = 0.95
"""A security at which the accuracies that both threats allow are compared."""

FIRST_EPOCH = 3
"""That is drawn in figure 1: before it, the model has not learned anything."""

DELTAS = {"adult": 3.8e-6, "retail100": 4e-7}
ADJACENCIES: dict[str, Adjacency] = {
    "a record added or removed": "add-remove", "a record replaced": "replace",
}  # fmt: skip
PAPER_RATE, PAPER_NOISE = 256 / 26_300, 3.51
PRINTED = {"adult": {"attribute": (0.83, 0.93), "membership": (0.83, 0.88)}}
"""Accuracy and Bayes security of the best model (section 6.2)."""

INKS = {"attribute": 0, "membership": 1}
"""By threat: ours and the published have one colour and differ in their marks."""


def security(one: Run, threat: str) -> Sequence[float]:
    found: Sequence[float] = one["security"][FORM][threat]
    return found


def figure1(scale: Scale) -> Measured:
    found = both(scale)
    pictures = {data: drawn(data, each) for data, each in found.items()}
    pictures |= {f"{data}-epsilon": drawn_epsilons(data, each) for data, each in found.items()}
    tried = {data: each for data, each in found.items() if each["accuracy_by_learning_rate"]}
    return Measured(
        [*epsilons_of_adult(), *(what_it_buys(data, each) for data, each in found.items())],
        {data: settings_of(each) for data, each in found.items()}, pictures,
        kept(scale, *found.values()), [rates_table(data, each) for data, each in tried.items()],
    )  # fmt: skip


def epsilons_of_adult() -> list[Claim]:
    """What the paper says of Adult at a Bayes security of 0.9, the aim after 20 epochs."""
    training = DPSGD(PAPER_NOISE, PAPER_RATE, steps_from_epochs(20, PAPER_RATE))
    added, replaced = (training.curve(one).epsilon(DELTAS["adult"]) for one in ADJACENCIES.values())
    where = "Adult: ε where Bayes security against membership is 0.9"
    return [
        computed(f"{where}, a record added or removed", "0.5", added),
        computed(f"{where}, a record replaced, as in the paper's game", "0.5", replaced,
                 f"It is {replaced / added:.2f} times that of a record added or removed."),
    ]  # fmt: skip


def what_it_buys(data: str, found: Trained) -> Claim:
    """That attribute inference is the weaker threat: the best accuracy among secure epochs."""

    def allowed(one: Run, threat: str) -> float:
        pairs = zip(one["accuracy"], security(one, threat), strict=False)
        return max((accuracy for accuracy, safe in pairs if safe >= WANTED), default=0.0)

    gains = [allowed(one, "full") - allowed(one, "membership") for one in found["runs"]]
    return stated(
        f"{CASES[data].title}: accuracy that a Bayes security of {WANTED:g} allows, attribute "
        "inference less membership",
        "a better trade-off: above 0", mean(gains), least=sys.float_info.min,
    )  # fmt: skip


def private(found: Trained) -> list[DPSGD]:
    """The mechanism of the training after each epoch that is drawn."""
    noise, steps = found["noise_multiplier"], -(-found["records"] // found["batch"])
    drawn = range(first(found) + 1, found["epochs"] + 1)
    return [DPSGD(noise, 1 / steps, steps * epoch) for epoch in drawn]


def first(found: Trained) -> int:
    """The place of the first epoch that is drawn."""
    return min(FIRST_EPOCH, int(found["epochs"])) - 1


def mean_accuracies(found: Trained) -> list[float]:
    """Over trainings, by epoch that is drawn."""
    columns = zip(*(one["accuracy"] for one in found["runs"]), strict=True)
    return [float(np.mean(values)) for values in columns][first(found) :]


def over_runs(found: Trained, kind: str) -> list[Estimate]:
    """By epoch: the mean over trainings and its interval."""
    lines = [security(one, kind) for one in found["runs"]]
    return [mean(list(values)) for values in zip(*lines, strict=True)]


def drawn(data: str, found: Trained) -> Chart:
    """Both threats by accuracy, with the published points."""
    accuracies, own = mean_accuracies(found), over_runs(found, "full")[first(found) :]
    certified = [one.curve("replace").bayes_security() for one in private(found)]
    names = {"attribute": found["attribute"], "membership": "membership"}
    securities = zip(*(vars(one).values() for one in own), strict=True)
    lines = [
        line(f"ours: {names['attribute']}, estimate", accuracies, *securities, kind="points",
             ink=INKS["attribute"]),
        line("ours: membership, certified", accuracies, certified, kind="points",
             ink=INKS["membership"]),
        *(Line(f"published: {names[threat]}", [point], "published", INKS[threat])
          for threat, point in PRINTED.get(data, {}).items()),
    ]  # fmt: skip
    said = (
        f"After {found['epochs']} epochs on {data} accuracy is {accuracies[-1]:.1%}, and Bayes "
        f"security about {own[-1].value:.3f} for {found['attribute']}, "
        f"{certified[-1]:.3f} for membership."
    )
    return lines_chart(said, "accuracy on test records, epoch by epoch", "Bayes security", lines)


def drawn_epsilons(data: str, found: Trained) -> Chart:
    """The dashed line of the paper's figure."""
    accuracies, delta = mean_accuracies(found), DELTAS[data]
    epsilons = {
        name: [one.curve(adjacency).epsilon(delta) for one in private(found)]
        for name, adjacency in ADJACENCIES.items()
    }
    told = ", ".join(f"{each[-1]:.2f} for {name}" for name, each in epsilons.items())
    return lines_chart(
        f"After {found['epochs']} epochs on {data} ε is {told}.",
        "accuracy on test records, epoch by epoch", f"ε for δ = {readable(delta)}",
        [line(name, accuracies, each, kind="points") for name, each in epsilons.items()],
    )  # fmt: skip


def rates_table(data: str, found: Trained) -> Table:
    """The accuracy at the end by learning rate; a quick version tries only one."""
    tried = {float(rate): each for rate, each in found["accuracy_by_learning_rate"].items()}
    best = found["learning_rate"]
    end = ", the smallest that was tried" if best == min(tried) else ""
    return Table(
        f"{CASES[data].title}, accuracy on test records by learning rate; {best:g} was taken{end}",
        ("learning rate", *(f"{rate:g}" for rate in tried)),
        (("accuracy", *(f"{each:.4f}" for each in tried.values())),),
    )


ANALYSES = {"full": "0.945", "approximate": "0.950"}
"""Bayes security after 20 epochs, as printed in figure 9."""

FASTER = 4.0
"""Times the learning rate, of one training more."""


def figure9(scale: Scale) -> Measured:
    """Full and approximate analysis of attribute inference on Adult, over the epochs."""
    found = trained(ADULT, scale)
    other = faster(found, scale)
    at = {kind: mean([1 - after(one, kind) for one in found["runs"]]) for kind in ANALYSES}
    claims = [
        *(
            printed(
                f"advantage after 20 epochs, {kind} analysis", round(1 - float(security), 4),
                at[kind], reason=partial(reason, found, other), rounding=half_digit(security),
            )
            for kind, security in ANALYSES.items()
        ),
        price(found, other),
    ]  # fmt: skip
    figure = lines_chart(
        f"After 20 epochs on Adult Bayes security is about {1 - at['full'].value:.3f} by the full "
        f"and {1 - at['approximate'].value:.3f} by the approximate analysis.",
        "epochs", "Bayes security",
        [
            over_epochs("ours: age, full analysis", found, "full", 3),
            over_epochs("ours: age, approximate analysis", found, "approximate", 3),
            over_epochs("membership, closed form", found, "membership", 1),
            *(Line(f"published as {kind}", [(AT_EPOCHS, float(security))], "published", ink)
              for ink, (kind, security) in enumerate(ANALYSES.items())),
        ],
    )  # fmt: skip
    return Measured(claims, settings_of(found), {"": figure}, kept(scale, found))


def over_epochs(name: str, found: Trained, kind: str, columns: int) -> Line:
    """The mean over trainings; three columns have its interval too."""
    rows = enumerate(over_runs(found, kind), 1)
    return Line(name, [(float(epoch), *[*vars(row).values()][:columns]) for epoch, row in rows])


def faster(found: Trained, scale: Scale) -> Run:
    """One training with a larger learning rate."""
    recipe, split, seed = Recipe.of(ADULT, scale), scale.data(ADULT.data), found["seed"]
    data = Split(split.train.draw(recipe.records, seed), split.test)
    epochs = min(AT_EPOCHS, found["epochs"])
    return watched(ADULT, recipe, data, FASTER * found["learning_rate"], seed + 1, epochs, scale)


def after(one: Run, kind: str) -> float:
    """After 20 epochs, or at the end of a shorter training."""
    securities = security(one, kind)
    return float(securities[min(AT_EPOCHS, len(securities)) - 1])


def needed(found: Trained) -> list[float]:
    """The distances of gradients, over C, from which the printed securities follow."""
    member = mu_of(1 - after(found["runs"][0], "membership"))
    return sorted(2 * mu_of(1 - float(printed)) / member for printed in ANALYSES.values())


def reason(found: Trained, other: Run) -> str:
    """What distances of gradients the printed numbers need, and what was found."""
    least, most = needed(found)
    means = [one["differences"]["full"]["mean"] for one in found["runs"]]
    return (
        f"The printed securities need gradients {least:.2f} to {most:.2f} C apart in "
        f"root mean square; the full analysis found {min(means):.2f} to {max(means):.2f} C in the "
        f"mean of a training. It depends on how one trains: with {FASTER:g} times the learning "
        f"rate the advantage is {1 - after(other, 'full'):.3f} by the full and "
        f"{1 - after(other, 'approximate'):.3f} by the approximate analysis."
    )


def price(found: Trained, other: Run) -> Claim:
    """What the approximation costs."""

    def lost(one: Run, kind: str = "approximate") -> float:
        return after(one, "full") - after(one, kind)

    runs, (full, rough) = found["runs"], ANALYSES.values()
    least, most = needed(found)
    shares = [lost(one) / lost(one, "membership") for one in runs]
    distances = [one["differences"] for one in runs]
    times = np.mean([one["approximate"]["mean"] / one["full"]["mean"] for one in distances])
    return printed(
        "difference of the two Bayes securities after 20 epochs, without its sign",
        round(abs(float(full) - float(rough)), 3), mean([lost(one) for one in runs]),
        f"Twice the largest distance to the mean is {times:.2f} times the largest distance of "
        f"two gradients in the mean of a training; the printed securities need "
        f"{most / least:.2f} times. With {FASTER:g} times the learning rate the difference is "
        f"{lost(other):.3f}. It is {np.mean(shares):.0%} of what attribute inference gains over "
        "membership.",
        rounding=half_digit(full) + half_digit(rough),
    )  # fmt: skip
