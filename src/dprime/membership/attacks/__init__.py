"""Membership attacks.

Evidence (target, shadow models, population) ──► Attack.scores ──► a score for each record
"""

from dprime import validate
from dprime.membership.attacks.attack import Evidence, MembershipAttack, Missing, Part
from dprime.membership.attacks.ratios import RMIA, LiRA
from dprime.membership.attacks.thresholds import AttackP, AttackR, Baseline, YeomLoss

ATTACKS: dict[str, MembershipAttack] = {
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
"""The attacks by name, with their usual options."""


def attack_named(name: str) -> MembershipAttack:
    """The attack of a name, with its usual options."""
    return ATTACKS[validate.one_of("attack", name, tuple(ATTACKS))]


__all__ = ["ATTACKS", "RMIA", "AttackP", "AttackR", "Baseline", "Evidence", "LiRA"]
__all__ += ["MembershipAttack", "Missing", "Part", "YeomLoss", "attack_named"]
