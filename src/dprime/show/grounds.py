"""What a verdict rests on, how it relates to the law, and what it leaves open, in sentences."""

from __future__ import annotations

from dprime.mechanisms import DPSGD
from dprime.show.facts import EXCEEDED, Facts

GDPR = (
    "Recital 26 of the GDPR asks whether a person can be identified by “all the means reasonably "
    "likely to be used, such as singling out”.",
    "For a training that is what it is claimed to be, the certified curve limits one such means, "
    "and limits it for everybody: how well anyone, whatever they know and however long they "
    "compute, can tell from the training whether one record was used. Who has fewer means does no "
    "better.",
    "It does not limit means that need no model, such as a stolen copy of the records, nor what "
    "can be learned about people in general. Whether what is left is “reasonably likely” is for "
    "people to judge; this report is not a legal finding.",
)

HIPAA = (
    "HIPAA (45 CFR § 164.514) asks that the risk of identification be very small. In practice it "
    "is counted in group sizes: where a record may belong to any of k people, a guess is right "
    "with chance 1/k. Groups of 11 are common for health data; the rule itself names no size for "
    "the expert's judgement.",
    "The table starts an observer at a belief of 1/k and says what it may grow to, whatever they "
    "see of the training and know beside it. The belief is exceeded with a chance of at most 1 in "
    f"{1 / EXCEEDED:,.0f}. One divided by it is the group size that would leave as much doubt.",
)


def assumed(facts: Facts) -> list[str]:
    """What must be true for the numbers to mean what they say."""
    found = [
        "The records are independent: nobody else's record gives yours away, as a relative's or a "
        "copy might.",
        "One record belongs to one person. Somebody with several records is protected less; "
        "dprime risk computes by how much (--group-size).",
        _seen(facts),
        neighbours(facts),
        "The random numbers of the training (noise, and who is drawn into which batch) stay "
        "secret, and the trials were independent of each other.",
    ]
    if isinstance(facts.claim.mechanism, DPSGD) and facts.claim.mechanism.sample_rate != 1:
        found.append(
            "Batches are drawn as claimed: every record is in each with the same chance, "
            "independently of all others (Poisson sampling)."
        )
    if facts.method.assumption is not None:
        found.append(f"For the lower bound: {facts.method.assumption}")
    return found


def _seen(facts: Facts) -> str:
    if facts.sees == "updates":
        return (
            "Who sees what: the claim and the attack are about somebody who sees every update, as "
            "a participant or the server of federated learning does. Who sees the final model only "
            "can do no more than that, if the model is computed from the updates alone."
        )
    if isinstance(facts.claim.mechanism, DPSGD):
        return (
            "Who sees what: the claim is about somebody who sees every update, as in federated "
            "learning. The attacker of this audit saw the final model only."
        )
    return (
        "Who sees what: the claim is about all that the training gives away. The attacker of this "
        "audit saw the final model only, and no update as in federated learning."
    )


def neighbours(facts: Facts) -> str:
    """Which two worlds are compared."""
    if facts.adjacency == "add-remove":
        return "Two worlds are compared: the data with one record, and the same data without it."
    return (
        "Two worlds are compared: the data with one record, and the same data with another record "
        "in its place."
    )


def gdpr(facts: Facts) -> list[str]:
    """How the number relates to the wording of recital 26."""
    return [*GDPR, *unreliable(facts)]


def hipaa(facts: Facts) -> list[str]:
    """How the number relates to group sizes."""
    if facts.groups:
        return [*HIPAA, _reading(facts), *unreliable(facts)]
    if facts.label is not None:
        why = "The training is not DP, so no belief is certified for a person in other data."
    else:
        why = (
            "What an observer may come to believe is read off the claimed curve. This run does not "
            "name the mechanism whose curve was claimed, so there is no table."
        )
    return [HIPAA[0], why]


def _reading(facts: Facts) -> str:
    if facts.adjacency == "replace":
        return (
            "For replaced records, as here, the group may be taken literally: k people of whom one "
            "is in the data, each as likely as the others."
        )
    return (
        "For records that are there or not, as here, the belief is that this person's record was "
        "used; 1/k is where an observer starts who takes it for that of any one of k people."
    )


def unreliable(facts: Facts) -> list[str]:
    """Why the limits of the claim protect nobody, where that is so."""
    if facts.label is not None:
        return ["This training is not DP, so its curve protects nobody but in these very data."]
    if facts.broken:
        return ["The claim is broken: none of its limits can be relied on for this training."]
    return []


def not_tested(facts: Facts) -> list[str]:
    """What the audit leaves open."""
    data, records = facts.attacked["data"], facts.attacked["records"]
    found = [
        f"Other attackers than {_listed(facts)}. A stronger one may reach more.",
        f"Other records than the one in question, other data than {data} ({records:,} records), "
        "other models and settings.",
        "Anything before and after the training: how the data were prepared, how settings were "
        "chosen on them, what else was published.",
        f"Rare events: {facts.trials['in']:,} trainings with the record and "
        f"{facts.trials['out']:,} without cannot show what happens more rarely.",
    ]
    if all(run.sees == "model" for run in (facts, *facts.beside)):
        found.insert(1, "Attackers who see every update, as in federated learning.")
    if facts.adversary in MADE_DATA:
        found.insert(
            1,
            "The attacker made its own data set for the test, the worst case of the proof. How "
            "much would be learned from real data was not measured.",
        )
    return found


def _listed(facts: Facts) -> str:
    """The attackers that were tried."""
    names = list(dict.fromkeys([facts.adversary, *(other.adversary for other in facts.beside)]))
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


MADE_DATA = ("malicious-dataset", "opposing-dataset")
"""Adversaries that play on data of their own making."""
