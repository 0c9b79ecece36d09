"""What a verdict rests on, how it relates to the law, and what it leaves open, in sentences."""

from __future__ import annotations

from dprime import text
from dprime.audit.record import EXCEEDED, AuditRecord
from dprime.mechanisms import DPSGD

GDPR = (
    "Recital 26 of the GDPR asks whether a person can be identified by “all the means reasonably "
    "likely to be used, such as singling out”.",
    "For a training that is what it is claimed to be, the certified curve limits one such means: "
    "how well anyone, whatever they know of the other records, can tell from the training whether "
    "one record was used. That assumes that nobody can find out the random numbers of the "
    "training, with any computer, and it is not about those who hold the records themselves.",
    "It does not limit means that need no model, such as a stolen copy of the records, nor what "
    "can be learned about people in general. Whether what is left is “reasonably likely” is for "
    "people to judge; this report is not a legal finding.",
)

HIPAA = (
    "HIPAA (45 CFR § 164.514) asks that the risk of identification be very small. In practice it "
    "is counted in group sizes: where a record may belong to any of k people, a guess is right "
    "with chance 1/k. Groups of 11 are common for health data; the rule itself names no size for "
    "the expert's judgement.",
    "The table is for an observer who knows that the data hold the record of exactly one of k "
    "people, takes each to be as likely, and knows all other records. It gives the most that the "
    "belief in the right one may grow to by what the training shows, exceeded with a chance of at "
    f"most 1 in {1 / EXCEEDED:,.0f}. One divided by it is the group size that would leave as much "
    "doubt.",
)


def assumed(facts: AuditRecord) -> list[str]:
    """What must be true for the numbers to mean what they say."""
    found = [
        "The records are independent: nobody else's record gives yours away, as a relative's or a "
        "copy might.",
        _conditions(facts),
        "Somebody with several records is protected less; dprime risk computes by how much "
        "(--group-size).",
        _seen(facts),
        neighbours(facts),
        "The trials were independent of each other.",
    ]
    if facts.method.assumption is not None:
        found.append(f"For the lower bound: {facts.method.assumption}")
    return found


def certified(facts: AuditRecord) -> str | None:
    """What the numbers of the claim promise, in a line; None where they protect nobody."""
    return None if unreliable(facts) else text.certified(facts.adjacency)


def _conditions(facts: AuditRecord) -> str:
    """What must be true of the training for the claim to hold, with the promise where it stands."""
    described = facts.claim.mechanism.to_dict()
    if certified(facts):
        return text.certified_in_full(described, facts.adjacency)
    listed = text.conditions(described, adjacency=facts.adjacency)
    return f"The claim assumes: {'; '.join(listed)}."


def _seen(facts: AuditRecord) -> str:
    if facts.attacked["sees"] == "updates":
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


def neighbours(facts: AuditRecord) -> str:
    """Which two worlds are compared."""
    return f"Two worlds are compared: the data with one record, and {OTHER_WORLD[facts.adjacency]}."


OTHER_WORLD = {
    "add-remove": "the same data without it",
    "replace": "the same data with another record in its place",
    "zero-out": "the same data with this record zeroed out, which then counts for nothing. The "
    "number of records is the same and public, because the training divides its sums by a number "
    "that is computed from it",
}
"""What world `out` has, by the adjacency."""


def gdpr(facts: AuditRecord) -> list[str]:
    """How the number relates to the wording of recital 26."""
    return [*GDPR, *unreliable(facts)]


def hipaa(facts: AuditRecord) -> list[str]:
    """How the number relates to group sizes."""
    if facts.groups:
        return [*HIPAA, *_reading(facts), *unreliable(facts)]
    if facts.label is not None:
        why = "The training is not DP, so no belief is certified for a person in other data."
    else:
        why = (
            "What an observer may come to believe is read off the curve of replaced records. None "
            "follows from this claim, so there is no table."
        )
    return [HIPAA[0], why]


def _reading(facts: AuditRecord) -> list[str]:
    if facts.adjacency == "replace":
        return []
    return [
        "The claim compares data with one record and data without what it contributes. The table "
        "compares one person's record with another's in its place, against which the same training "
        "protects less."
    ]


def unreliable(facts: AuditRecord) -> list[str]:
    """Why the limits of the claim protect nobody, where that is so."""
    if facts.label is not None:
        return [
            "This training is not DP: its curve holds for the one record that was tested, in these "
            "very data, and protects nobody else."
        ]
    if facts.refuted:
        return ["The claim is refuted: none of its limits can be relied on for this training."]
    return []


def not_tested(facts: AuditRecord) -> list[str]:
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
    if all(run.attacked["sees"] == "model" for run in (facts, *facts.other_runs)):
        found.insert(1, "Attackers who see every update, as in federated learning.")
    if facts.adversary in MADE_DATA:
        found.insert(
            1,
            "The attacker made its own data set for the test, the worst case of the proof. How "
            "much would be learned from real data was not measured.",
        )
    return found


def _listed(facts: AuditRecord) -> str:
    """The attackers that were tried."""
    names = list(dict.fromkeys([facts.adversary, *(other.adversary for other in facts.other_runs)]))
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


MADE_DATA = ("malicious-dataset", "opposing-dataset")
"""Adversaries that play on data of their own making."""
