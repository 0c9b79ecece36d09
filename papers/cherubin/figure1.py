"""Figure 1: Bayes security against the accuracy of the model.

While a model is trained its accuracy rises and its Bayes security falls, slower against attribute
inference (age on Adult, the first item on retail100) than against membership. Who has to fear only
the first may train for longer. The paper draws both over the accuracy, with the ε of an accountant
for δ = 3.8e-6 on Adult and 4e-7 on Purchase beside them.

Attribute inference is the paper's closed form along trainings with Opacus; membership has the
closed form in the claims and the certified value in the picture. ε is that of a record added or
removed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from dprime.bounds import success_from_bayes_security, tpr_from_bayes_security
from dprime.mechanisms import DPSGD, steps_from_epochs
from papers.cherubin.cases import ADULT, RETAIL
from papers.cherubin.trainings import FPR, Trained, kept, settings_of, trained
from papers.drawing import Line, LinesFigure
from papers.reproduce import Claim, Measured, Scale, computed, exact, mean, run, stated

FORM = "closed-form"
WANTED = 0.95
"""A security at which the accuracies that both threats allow are compared."""

ABOVE_ZERO = sys.float_info.min
FIRST_EPOCH = 3
"""That is drawn: before it, the model has not learned anything."""

TITLES = {"adult": "Adult", "retail100": "retail100 in the place of Purchase"}
DELTAS = {"adult": 3.8e-6, "retail100": 4e-7}
PAPER_RATE, PAPER_NOISE = 256 / 26_300, 3.51
PRINTED = {"adult": {"attribute": (0.83, 0.93), "membership": (0.83, 0.88)}}
"""Accuracy and Bayes security of the best model (section 6.2)."""


def measure(scale: Scale) -> Measured:
    """Both data sets."""
    all_found = {case.data: trained(case, scale) for case in (ADULT, RETAIL)}
    claims = _formulas()
    for data, found in all_found.items():
        claims += _threats(TITLES[data], found)
    numbers = {data: _numbers(found, DELTAS[data]) for data, found in all_found.items()}
    figures = {data: _figure(data, found, numbers[data]) for data, found in all_found.items()}
    settings = {data: settings_of(found) for data, found in all_found.items()}
    return Measured(claims, settings, numbers, figures, kept(scale, *all_found.values()))


def _formulas() -> list[Claim]:
    """What the paper says of Adult at a Bayes security of 0.9, the aim after 20 epochs."""
    training = DPSGD(PAPER_NOISE, PAPER_RATE, steps_from_epochs(20, PAPER_RATE))
    delta = DELTAS["adult"]
    replaced = training.curve("replace").epsilon(delta)
    return [
        computed(
            "Adult: ε where Bayes security against membership is 0.9", "0.5",
            training.curve().epsilon(delta),
            why=f"With a record added or removed. For one replaced, which is the paper's own "
            f"membership game, ε is {replaced:.2f}.",
        ),
        computed(
            "attacker right at a Bayes security of 0.9", "0.55",
            success_from_bayes_security(0.9, max_prior=0.5),
        ),
        computed(
            "TPR at FPR 0.1 for a Bayes security of 0.9", "0.20",
            tpr_from_bayes_security(0.9, fpr=FPR),
        ),
    ]  # fmt: skip


def _threats(title: str, found: Trained) -> list[Claim]:
    """That attribute inference is the weaker threat, and what that buys."""
    runs = found["runs"]
    apart = [_last(one, "full") - _last(one, "membership") for one in runs]
    gains = [_allowed(one, "full") - _allowed(one, "membership") for one in runs]
    least = min(
        one - other
        for each in runs
        for one, other in zip(_security(each, "full"), _security(each, "membership"), strict=True)
    )
    return [
        stated(
            f"{title}: Bayes security at the end, attribute inference less membership",
            "above 0", mean(apart), least=ABOVE_ZERO,
        ),
        stated(
            f"{title}: the same, smallest over all epochs and trainings", "above 0", exact(least),
            least=ABOVE_ZERO,
        ),
        stated(
            f"{title}: accuracy that a Bayes security of {WANTED:g} allows, attribute inference "
            "less membership",
            "a better trade-off: above 0", mean(gains), least=ABOVE_ZERO,
        ),
    ]  # fmt: skip


def _security(one: dict[str, Any], threat: str) -> Sequence[float]:
    found: Sequence[float] = one["security"][FORM][threat]
    return found


def _last(one: dict[str, Any], threat: str) -> float:
    return _security(one, threat)[-1]


def _allowed(one: dict[str, Any], threat: str) -> float:
    """The best accuracy among epochs that are secure enough."""
    pairs = zip(one["accuracy"], _security(one, threat), strict=False)
    return max((accuracy for accuracy, security in pairs if security >= WANTED), default=0.0)


def _numbers(found: Trained, delta: float) -> dict[str, Any]:
    """By epoch: means over trainings, and what is certified."""
    runs, epochs = found["runs"], found["epochs"]
    per_epoch = -(-found["records"] // found["batch"])
    trainings = [
        DPSGD(found["noise_multiplier"], 1 / per_epoch, per_epoch * epoch)
        for epoch in range(1, epochs + 1)
    ]
    securities = [
        mean([_security(one, "full")[epoch] for one in runs]) for epoch in range(epochs)
    ]  # fmt: skip
    return {
        "accuracy": [
            float(np.mean([one["accuracy"][epoch] for one in runs])) for epoch in range(epochs)
        ],
        "attribute": [[each.value, each.low, each.high] for each in securities],
        "membership, certified": [one.curve("replace").bayes_security() for one in trainings],
        "epsilon": [one.curve().epsilon(delta) for one in trainings],
        "delta": delta,
    }


def _figure(data: str, found: Trained, numbers: dict[str, Any]) -> LinesFigure:
    accuracies, end = numbers["accuracy"], numbers["attribute"][-1][0]
    order = range(min(FIRST_EPOCH, found["epochs"]) - 1, found["epochs"])
    certified = numbers["membership, certified"]
    lines = [
        Line(
            f"{found['attribute']}, estimate",
            [(accuracies[epoch], *numbers["attribute"][epoch]) for epoch in order],
            joined=False,
        ),
        Line(
            "membership, certified", [(accuracies[epoch], certified[epoch]) for epoch in order],
            joined=False,
        ),
        *(
            Line(f"published, {threat}", [point], published=True)
            for threat, point in PRINTED.get(data, {}).items()
        ),
    ]  # fmt: skip
    return LinesFigure(
        f"figure1-{data}",
        f"After {found['epochs']} epochs on {data} accuracy is {accuracies[-1]:.1%}, and Bayes "
        f"security about {end:.3f} for {found['attribute']}, {certified[-1]:.3f} for membership.",
        "accuracy on test records, epoch by epoch", "Bayes security", tuple(lines),
    )  # fmt: skip


if __name__ == "__main__":
    run(measure, __file__, __doc__)
