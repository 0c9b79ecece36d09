"""Section 6.2: the table of both threats for the best models.

Bayes security, how often an attacker is right, and its true-positive rate at a false-positive rate
of 0.1, against attribute inference and against membership, after 30 epochs. Membership follows from
the closed form and the paper's own settings: L = 256 of about 26,300 records and σ = 3.51 on Adult,
L = 512 of 197,324 and σ = 1.8 on Purchase. Attribute inference is measured along trainings with
Opacus, by the same closed form; retail100 stands in the place of Purchase, with the noise that
equation 4 gives for its size.

All three columns are the advantage, 1 less Bayes security, read in three ways: the attacker is
right in one half and half of the advantage, and finds the false-positive rate and the advantage.
What a column leaves to the attacker is put to the rule: what is above one half, and above the
false-positive rate.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dprime.bounds import success_from_bayes_security, tpr_from_bayes_security
from dprime.data import Split
from dprime.estimates import cherubin, cherubin_noise
from dprime.mechanisms import DPSGD, steps_from_epochs
from papers.cherubin.cases import ADULT, OTHER, RETAIL, Case
from papers.cherubin.trainings import (
    EPOCHS,
    FPR,
    SEED,
    Recipe,
    Trained,
    kept,
    public_accuracy,
    settings_of,
    trained,
    watched,
)
from papers.reproduce import Claim, Measured, Scale, computed, mean, printed, run, stated

FORM, OTHER_FORM = "closed-form", "central-limit"


@dataclass(frozen=True)
class Printed:
    """One line of the table, and the settings behind it; pairs are AI and MIA."""

    title: str
    records: int
    batch: int
    noise: str
    accuracy: float
    security: tuple[str, str]
    right: tuple[str, str]
    tpr: tuple[str, str]


TABLE = {
    "adult": Printed("Adult", 26_300, 256, "3.51", 0.83, ("0.93", "0.88"), ("0.53", "0.56"),
                     ("0.16", "0.20")),
    "retail100": Printed("Purchase", 197_324, 512, "1.8", 0.73, ("0.99", "0.87"), ("0.51", "0.57"),
                         ("0.11", "0.23")),
}  # fmt: skip

OURS = {"adult": "Adult", "retail100": "retail100 in the place of Purchase"}


def measure(scale: Scale) -> Measured:
    """Every number of the table."""
    claims: list[Claim] = []
    numbers: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for case in (ADULT, RETAIL):
        row, found = TABLE[case.data], trained(case, scale)
        claims += [*_membership(row), *_attribute(case, row, found, scale)]
        numbers[case.data] = {
            "table": [one["table"] for one in found["runs"]],
            "accuracy": [one["accuracy"] for one in found["runs"]],
            "differences": [one["differences"] for one in found["runs"]],
        }
        settings[case.data] = settings_of(found)
    rests_on = kept(scale, *(trained(case, scale) for case in (ADULT, RETAIL)))
    return Measured(claims, settings, numbers, kept=rests_on)


def _membership(row: Printed) -> list[Claim]:
    """What follows from the closed form alone."""
    rate = row.batch / row.records
    noise = cherubin_noise(0.9, rate, steps_from_epochs(20, rate))
    steps = steps_from_epochs(EPOCHS, rate)
    security = cherubin(float(row.noise), rate, steps).bayes_security()
    certified = DPSGD(float(row.noise), rate, steps).curve("replace")
    _, said = row.security
    claims = [
        computed(f"{row.title}: noise for a security of 0.9 after 20 epochs", row.noise, noise),
        computed(
            f"{row.title}: Bayes security against membership", said, security,
            why=f"{certified.bayes_security():.4f} is certified. The closed form first rounds to "
            f"the printed value after {_epochs_until(row, float(said) + 0.005)} epochs.",
        ),
        computed(
            f"{row.title}: attacker right about membership", row.right[1],
            success_from_bayes_security(security, max_prior=0.5),
            why=f"The printed security of {said} gives {1 - float(said) / 2:.3f}.",
        ),
        computed(
            f"{row.title}: TPR for membership at FPR 0.1", row.tpr[1],
            tpr_from_bayes_security(security, fpr=FPR),
            why=f"The printed security of {said} gives {1 + FPR - float(said):.2f}, that of the "
            f"closed form {security:.4f}. The certified curve allows {certified.tpr(FPR):.3f}.",
        ),
    ]  # fmt: skip
    return [one if one.verdict != "agrees" else replace(one, why="") for one in claims]


def _epochs_until(row: Printed, security: float) -> int:
    """After which the closed form is below a security."""
    rate, noise = row.batch / row.records, float(row.noise)
    return next(
        epochs
        for epochs in itertools.count(1)
        if cherubin(noise, rate, steps_from_epochs(epochs, rate)).bayes_security() < security
    )


def _attribute(case: Case, row: Printed, found: Trained, scale: Scale) -> list[Claim]:
    """What is measured along trainings."""
    title, runs = OURS[case.data], found["runs"]
    left = mean([1 - one["table"][FORM]["attribute"] for one in runs])
    gain = mean([one["table"][FORM]["attribute_success"] - 0.5 for one in runs])
    found_more = mean([one["table"][FORM]["attribute_tpr_of_security"] - FPR for one in runs])
    share = mean([
        (1 - one["table"][FORM]["attribute"]) / (1 - one["table"][FORM]["membership"])
        for one in runs
    ])  # fmt: skip
    reason = _reason(runs) + _other_item(case, found, scale)
    again = f"It is the advantage, {left.value:.4f}, read in another way."
    return [
        printed(
            f"{title}: accuracy of the best model", row.accuracy,
            mean([max(one["accuracy"]) for one in runs]), _accuracy_reason(case, found, scale),
        ),
        printed(
            f"{title}: advantage on the attribute", round(1 - float(row.security[0]), 2),
            left, f"Bayes security is printed with two digits, {row.security[0]}. {reason}",
        ),
        printed(
            f"{title}: attacker right about the attribute, above ½",
            round(float(row.right[0]) - 0.5, 2), gain, again,
        ),
        printed(
            f"{title}: TPR for the attribute at FPR 0.1, above the FPR",
            round(float(row.tpr[0]) - FPR, 2), found_more, again,
        ),
        stated(
            f"{title}: advantage on the attribute as a share of that on membership",
            "much tighter: below 1", share, most=1.0,
        ),
    ]  # fmt: skip


def _reason(runs: list[dict[str, Any]]) -> str:
    distances = [one["differences"]["full"]["mean"] for one in runs]
    other = [1 - one["table"][OTHER_FORM]["attribute"] for one in runs]
    return (
        f"The largest distance of a batch's gradients is {min(distances):.2f} to "
        f"{max(distances):.2f} C in the mean of a training, of at most 2 C. By the central-limit "
        f"form the advantage is {np.mean(other):.4f}."
    )


def _other_item(case: Case, found: Trained, scale: Scale) -> str:
    """What another item would reveal, and what records with few and with many items do."""
    if case.other is None:
        return ""
    records, runs = scale.data(case.data).train.records, found["runs"]
    first, last = (float(records[:, place].mean()) for place in (0, case.other))
    return (
        f" How frequent the item is explains little: {first:.0%} have the first; with the "
        f"last as the secret, which {last:.1%} have, the advantage is "
        f"{np.mean([one[OTHER] for one in runs]):.4f}. But a record has only "
        f"{records.sum(axis=1).mean():.1f} items in the mean. {_by_items(case, scale)}"
    )


@functools.cache
def _by_items(case: Case, scale: Scale) -> str:
    """One training on the records with the fewest items, and one on those with the most."""
    recipe = Recipe.of(case, replace(scale, size=scale.pick("smoke", "quick", "quick")))
    split = scale.data(case.data)
    order = np.argsort(split.train.records.sum(axis=1), kind="stable")
    told = []
    for kind, places in (("fewest", order[: recipe.records]), ("most", order[-recipe.records :])):
        data = Split(split.train.take(places), split.test)
        one = watched(
            case, recipe, data, case.learning_rates[0], SEED, scale.pick(2, EPOCHS, EPOCHS), scale
        )
        items = data.train.records.sum(axis=1).mean()
        told.append(
            f"the {recipe.records:,} records with the {kind}, {items:.1f}, it is "
            f"{1 - one['table'][FORM]['attribute']:.4f}"
        )
    return f"In a training on {' and in one on '.join(told)}."


def _accuracy_reason(case: Case, found: Trained, scale: Scale) -> str:
    """What the same network reaches without privacy."""
    if case == ADULT:
        return ""
    public = public_accuracy(case, found["records"], scale)
    return (
        f"retail100 is another task: without privacy the same network reaches {public:.2f} with "
        f"these {found['records']:,} records."
    )


if __name__ == "__main__":
    run(measure, __file__, __doc__)
