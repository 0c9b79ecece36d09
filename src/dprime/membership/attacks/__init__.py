"""Membership attacks, one a file.

Evidence (target, shadow models, population) ──► Attack.scores ──► a score for each record
"""

from dprime import validate
from dprime.membership.attacks.attack import Attack, Evidence, Missing, Part, options_of
from dprime.membership.attacks.baseline import Baseline
from dprime.membership.attacks.lira import LiRA
from dprime.membership.attacks.loss import YeomLoss, yeom_threshold
from dprime.membership.attacks.population import AttackP
from dprime.membership.attacks.reference import AttackR
from dprime.membership.attacks.rmia import RMIA

ATTACKS: dict[str, Attack] = {
    attack.name: attack
    for attack in (
        LiRA(),
        LiRA(online=False),
        LiRA(variance="fixed"),
        LiRA(online=False, variance="fixed"),
        RMIA(),
        RMIA(online=False),
        AttackP(),
        AttackR(),
        YeomLoss(),
        Baseline(),
    )
}
"""By name, with their usual options."""


def attack_named(name: str) -> Attack:
    """The attack of a name, with its usual options.

    >>> attack_named("lira-offline").title
    'LiRA (offline)'
    """
    return ATTACKS[validate.one_of("attack", name, tuple(ATTACKS))]


__all__ = [
    "ATTACKS",
    "RMIA",
    "Attack",
    "AttackP",
    "AttackR",
    "Baseline",
    "Evidence",
    "LiRA",
    "Missing",
    "Part",
    "YeomLoss",
    "attack_named",
    "options_of",
    "yeom_threshold",
]
