"""The sentences of card and report: what a run says, to somebody with no mathematics.

Ceilings are rounded up and floors down, as everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dprime.audit.record import AuditRecord, Group, Measured
from dprime.audit.verdict import twice_as_strong
from dprime.mechanisms import DPSGD
from dprime.metrics import Reading
from dprime.registry import Observation
from dprime.runs.states import incident_summary
from dprime.text import (
    Ceiling,
    Floor,
    Given,
    given,
    one_in,
    percent_up,
    round_down,
    round_up,
)

NO_LIMIT = "no limit"

PEOPLE = 1000
"""Of so many people a share is told."""


# First screen -------------------------------------------------------------------------------------


def headline(facts: AuditRecord) -> str:
    """The verdict in one sentence."""
    if facts.label is not None:
        return _not_dp(facts)
    if facts.refuted:
        return "The claim is refuted: this attacker learned more than the claim allows."
    if facts.verdict.outcome == "inconclusive":
        return f"Inconclusive: {_why(facts)}."
    if facts.crosses:
        return (
            "The claim is not refuted, but by another number than the one that was to decide this "
            "attacker was seen to learn more than it allows."
        )
    return (
        f"The claim is not refuted: in {trainings(facts)} this attacker was not seen to learn more "
        "than the claim allows."
    )


def _why(facts: AuditRecord) -> str:
    """Why an audit could not tell."""
    if not facts.method.decides and facts.deciding.above:
        return "what the attacker reached could not be counted against the claim"
    if not facts.method.decides:
        return "the method that was to decide could not have refuted the claim"
    if facts.vacuous:
        return "by the number that was to decide the claim allows everything"
    if not facts.verdict.power_known:
        return "it is not known what the method that was to decide would have noticed"
    return f"{trainings(facts)} were too few to tell"


def _not_dp(facts: AuditRecord) -> str:
    if facts.refuted:
        return "Not DP, and the claim is refuted: this attacker learned more than the claim allows."
    if facts.verdict.outcome == "inconclusive":
        return f"Not DP, and inconclusive: {_why(facts)}."
    return "Not DP: the claim is not refuted for the two data sets that were tested."


def trainings(facts: AuditRecord) -> str:
    """How many trainings there were."""
    return f"{facts.blocks.total_trials:,} trainings"


def what_happened(facts: AuditRecord) -> str:
    """What was done, for somebody who has never heard of an audit."""
    data = f"{facts.attacked['data']} ({facts.attacked['records']:,} records)"
    looked = (
        f"watched {trainings(facts)}"
        if facts.attacked["sees"] == "updates"
        else f"looked at the finished models of {trainings(facts)}"
    )
    used = "or another had been used" if facts.adjacency == "replace" else "had been used"
    return (
        f"It is claimed that a model trained on {data} gives away only so much about any one "
        f"person. To test that, an attacker {looked} and judged each time whether one record "
        f"{used}."
    )


def how_sure(facts: AuditRecord) -> str:
    """What the confidence means for the verdict."""
    error = given(100 * (1 - facts.config.confidence))
    if facts.refuted:
        provided = "" if facts.method.assumption is None else ", provided its assumption holds"
        return (
            "Chance can explain it, but seldom: of trainings that keep their claim, an audit like "
            f"this one refutes at most {error} %{provided}."
        )
    if facts.verdict.outcome == "inconclusive":
        return "That is not a proof. Nothing was decided, neither for the claim nor against it."
    return (
        "That is not a proof. It says that one attacker, tried on this training, gave no evidence "
        f"against the claim by the number that was to decide. {noticed(facts)}"
    )


def noticed(facts: AuditRecord) -> str:
    """What the audit would have noticed, in points of advantage."""
    if facts.verdict.detects is None:
        return "It would have noticed no attacker with a power of 80 %."
    points = round_up(100 * math.erf(facts.verdict.detects / math.sqrt(8.0)), 3)
    return (
        f"With 80 % power it would have noticed an attacker who says “member” {points} percentage "
        "points more often of members than of others (Gaussian scores assumed)."
    )


def notices(facts: AuditRecord) -> list[str]:
    """What must be known before anything else is read."""
    found = list(facts.caveats)
    if facts.label is not None:
        found.append(f"This training is {facts.label}. Nothing here holds for other data.")
    if facts.method.objection is not None:
        found.append(
            f"The data speak against the method that was to decide ({facts.method.method}): "
            f"{facts.method.objection} Its number decides nothing."
        )
    elif not facts.method.decides:
        found.append(
            f"The method {facts.method.method} refutes nothing unless its assumption is accepted "
            "(--assume)."
            if facts.method.method == "gaussian"
            else f"The method {facts.method.method} gives no valid bound and cannot refute a claim."
        )
    if facts.method.assumption is not None:
        found.append(f"The lower bound rests on an assumption: {facts.method.assumption}")
    if facts.adversary == "attribute":
        found.append(ONE_ATTRIBUTE)
    few_trials = facts.method.decides and not facts.vacuous and facts.verdict.power_known
    if facts.verdict.outcome == "inconclusive" and few_trials:
        few = noticed(facts)
        if facts.verdict.trials is not None:
            twice = twice_as_strong(facts.claim.curve)
            few += f" To notice {twice} takes {facts.verdict.trials:,} trials in each world."
        found.append(few)
    if facts.crosses and not facts.refuted:
        found.append(
            f"What the attacker reached lies above the claimed curve elsewhere (by the method "
            f"{facts.drawn}), which was not to decide: put the claim to the test again, with "
            "another seed, by the whole curve."
        )
    return found + _losses(facts)


ONE_ATTRIBUTE = (
    "The record is there in both worlds, with one value of the attribute or the other: this is no "
    "test of membership. Of this attacker, read “member” as one of the two values."
)


def _losses(facts: AuditRecord) -> list[str]:
    found = []
    if facts.blocks.failed:
        found.append(
            f"{facts.blocks.failed:,} of {facts.blocks.blocks:,} blocks of trainings failed, the "
            f"last with {_stop(facts.blocks.last_error or 'no reason kept')} They count against "
            f"the attacker, so the attack may look weaker than it is."
        )
    if facts.trials["diverged"]:
        found.append(
            f"{facts.trials['diverged']:,} of the models diverged and had no score of their own; "
            "what they count as was settled before the trials."
        )
    if happened := incident_summary(facts.events):
        found.append(happened.strip())
    return found


def meaning(facts: AuditRecord) -> list[str]:
    """What the claim promises to one person in the data."""
    metrics = facts.claim.metrics
    found = [_people_found(facts, metrics["tpr"]), _belief_reached(metrics["belief"])]
    if facts.refuted:
        found.insert(0, "The claim is refuted, so none of this can be relied on.")
    if facts.label is not None:
        found.insert(
            0,
            "The training is not DP: this holds for the one record that was tested, in these very "
            "data, and for nobody else.",
        )
    return found


def watcher(facts: AuditRecord) -> str:
    """Whom the claim speaks of."""
    if isinstance(facts.claim.mechanism, DPSGD):
        return "Somebody who watches every step of the training and knows all other records"
    return "Somebody who sees all that the training gives away and knows all other records"


def _people_found(facts: AuditRecord, tpr: Mapping[str, float]) -> str:
    used = "was used, and not another instead" if facts.adjacency == "replace" else "was used"
    most = min(PEOPLE, math.ceil(PEOPLE * tpr["value"]))
    alarms = given(PEOPLE * tpr["fpr"])
    return (
        f"{watcher(facts)} can say of at most {most:,} in {PEOPLE:,} people that their record "
        f"{used}, if they may be wrong about {alarms} in {PEOPLE:,} people whose record was not. "
        f"Pointing blindly, they would be right about {alarms}."
    )


def _belief_reached(belief: Mapping[str, float]) -> str:
    before = given(100 * belief["belief_prior"])
    if belief["value"] >= 1:
        return f"Somebody who was {before} % sure beforehand may become certain."
    return (
        f"About a person who is in the data, somebody who was {before} % sure beforehand ends up "
        f"more than {percent_up(belief['value'])} sure at most once in "
        f"{one_in(belief['exceeded'])} trainings."
    )


def not_said(facts: AuditRecord) -> list[str]:
    """What a reader may not conclude."""
    first = (
        "It does not say that a real person was found out: the attacker was given more than most "
        "have. It says that the promise was not kept."
        if facts.refuted
        else f"It does not say that the training is safe: {_tried(facts)}, another may do better."
    )
    return [
        first,
        "It says nothing about what the model teaches about people in general, whether they are "
        "in the data or not.",
        "It says nothing about other models or statistics made from the same records.",
        "It is not a legal finding.",
    ]


def _tried(facts: AuditRecord) -> str:
    count = len({facts.adversary, *(other.adversary for other in facts.other_runs)})
    return "one attacker was tried" if count == 1 else f"{count} attackers were tried"


# Numbers ------------------------------------------------------------------------------------------


def decided(facts: AuditRecord) -> str:
    """The deciding number as an interval."""
    found = facts.deciding
    least, most = floor(found.reached), ceiling(found.allowed)
    sure = f"{given(100 * facts.config.confidence)} %"
    if facts.refuted:
        return (
            f"With {sure} confidence the attacker reaches at least {least}. The claim allows "
            f"{most}."
        )
    if not facts.method.decides:
        return f"The bound is {least}, the claim allows {most}; the bound does not count."
    if facts.deciding.allowed is None:
        return f"With {sure} confidence the attacker reaches at least {least}. No limit is claimed."
    return (
        f"With {sure} confidence the attacker reaches at least {least}. If the claim is true, "
        f"nobody reaches more than {most}, and the best attacker lies between the two."
    )


def certainty(facts: AuditRecord) -> str:
    """How sure the deciding number is; a credible bound has no confidence."""
    share = f"{100 * facts.config.confidence:g} %"
    if facts.method.method == "bayesian":
        return f"a posterior probability of {share}, which is no confidence"
    return f"{share} confidence"


def deciding_plainly(facts: AuditRecord) -> str:
    """The deciding metric in a sentence for laymen; a bound that does not count says so."""
    told = plainly(facts.deciding)
    return told if facts.method.decides else f"Were the bound to count, it would say: {told}"


def plainly(found: Measured) -> str:
    """A metric in a sentence for laymen."""
    if found.reached is None:
        return "Nothing limits what this attacker reaches."
    told = _observation(found)
    values = {name: Given(value) for name, value in found.conditions.items()}
    most = "no limit is claimed"
    if found.allowed is not None:
        most = told.allowed.format(allowed=Ceiling(found.allowed))
    return f"{told.reached.format(reached=Floor(found.reached), **values)}; {most}."


CURVE = Observation(
    "the curve",
    "Where the attacker did best against the claim, it finds at least {reached:%} of the members",
    "Members found, where the attacker did best against the claim",
    "the claim allows, at the same rate of false alarms, {allowed:%}",
)
"""How a report speaks of an audit by the whole curve."""


def _observation(found: Measured) -> Observation:
    if found.name == "curve":
        return CURVE
    return Reading(found.name, found.conditions).observation


def group(found: Group) -> str:
    """A group's row as a sentence."""
    return (
        f"For somebody who is one of a group of {found.size}, an observer's belief grows from "
        f"1/{found.size} to at most {percent_up(found.belief)} (exceeded at most once in "
        f"{one_in(found.exceeded)} trainings), as if the group had {floor(found.equivalent, 3)} "
        "members."
    )


def picture_title(found: Measured) -> str:
    """What the small picture on the first screen shows."""
    values = {name: Given(value) for name, value in found.conditions.items()}
    return _observation(found).picture.format(**values)


ATTACKS: Mapping[str, str] = {
    "di": "It knows all records, the weights and the noise level, sees every noisy update, and "
    "weighs which of the two worlds explains it better.",
    "api-access": "It asks the finished model about a record and looks how well the model knows "
    "it.",
    "static-poisoning": "It puts a record of its own making into the data and asks the finished "
    "model about it.",
    "intermediate-models": "It puts a record of its own making into the data and looks at the "
    "model after every step.",
    "adaptive-poisoning": "It puts in a record that it makes anew at every step, against the "
    "model, and looks at the model after every step.",
    "gradient": "It sets the record's push on the model itself, in a direction in which the other "
    "records hardly push, and sees every update.",
    "malicious-dataset": "It makes all the data and the record's push on the model, so that "
    "nothing else pushes the same way, and sees every update: the worst case of the proof.",
    "opposing-dataset": "It makes all the data, and a push against all of theirs, and sees every "
    "update.",
    "chosen-weights": "It chooses the weights that the training starts from and a blank record, "
    "and asks the finished model about it.",
    "attribute": "It knows all but one attribute of one record, sees every noisy update, and "
    "weighs which of two values explains it better.",
    "noise-grid": "It knows all records, the weights and the noise level, sees every noisy update, "
    "and looks whether the noise takes only values that a generator of few bits can make.",
}
"""What each adversary does, by name."""


# Digits -------------------------------------------------------------------------------------------


def floor(value: float | None, digits: int = 4) -> str:
    """A lower bound as printed."""
    return "any number" if value is None else round_down(value, digits)


def ceiling(value: float | None, digits: int = 4) -> str:
    """A limit as printed."""
    return NO_LIMIT if value is None else round_up(value, digits)


def _stop(words: str) -> str:
    return words if words.endswith(".") else f"{words}."
