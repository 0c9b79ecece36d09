"""Which sentences of `sentences.toml` a record calls for, filled with its numbers.

Ceilings are rounded up and floors down, as everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from textwrap import shorten
from typing import Any

from dprime import text
from dprime.audit.limits import JudgedMetric
from dprime.audit.record import EXCEEDED, AuditRecord, Measured
from dprime.audit.verdict import twice_as_strong
from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD
from dprime.metrics import Reading
from dprime.runs.states import incident_summary
from dprime.show.sentences import SENTENCES, both, ends, limited_by, plainly, say, title
from dprime.show.wording import listed
from dprime.text import Ceiling, given, one_in, percent_up, round_up

PEOPLE = 1000
"""A share is worded as people out of this number."""

MADE_DATA = ("malicious-dataset", "opposing-dataset")
"""Adversaries that play on data of their own making."""


def tell(record: AuditRecord, place: str, **more: object) -> str:
    """A sentence with what the record says, and with more."""
    method = record.method
    return say(
        place,
        **{
            "trainings": f"{record.blocks.total_trials:,} trainings",
            "outcome": record.verdict.outcome,
            "share": f"{100 * record.config.confidence:g} %",
            "method": method.method,
            "assumption": method.assumption,
            "objection": method.objection,
            "adversary": record.adversary,
            "about": record.about,
            "label": record.label,
            "name": record.name,
            **more,
        },
    )


# First screen -------------------------------------------------------------------------------------


def headline(record: AuditRecord) -> str:
    """The verdict in one sentence."""
    outcome = record.verdict.outcome.replace(" ", "_")
    if record.understated and not record.refuted:
        return tell(record, "headline.understated", why=say("unreliable.understated"))
    if record.label is not None:
        outcome += "_not_dp"
    elif record.crosses and outcome == "not_refuted":
        outcome = "crosses"
    return tell(record, f"headline.{outcome}", why=tell(record, f"why.{_why(record)}"))


def _why(record: AuditRecord) -> str:
    if not record.method.decides:
        return "not_counted" if record.deciding.above else "never_decides"
    if record.vacuous:
        return "vacuous"
    return "too_few" if record.verdict.power_known else "power_unknown"


def what_happened(record: AuditRecord) -> str:
    """What was done, for somebody who has never heard of an audit."""
    looked = tell(record, f"what_happened.{record.attacked['sees']}")
    pair = say(f"pair.{record.adjacency}")
    return say("what_happened.told", data=data(record), looked=looked, pair=pair)


def tested(record: AuditRecord) -> str:
    """How often which data were trained on, the pair of worlds, and the attacker of the test."""
    worlds, seen = say(f"compared.{record.adjacency}"), say(f"seen.{record.attacked['sees']}")
    return tell(record, "data.tested", data=data(record), worlds=worlds, seen=seen)


def data(record: AuditRecord) -> str:
    """What the tested trainings were given; some attackers make it themselves."""
    kind = "made" if record.adversary in MADE_DATA else "natural"
    return say(f"data.{kind}", **record.attacked)


def how_sure(record: AuditRecord) -> str:
    """What the confidence means for the verdict."""
    error = given(100 * (1 - record.config.confidence))
    provided = "" if record.method.assumption is None else say("how_sure.provided")
    outcome = record.verdict.outcome.replace(" ", "_")
    return say(f"how_sure.{outcome}", error=error, provided=provided, noticed=noticed(record))


def noticed(record: AuditRecord) -> str:
    """What a test like this one notices, beside what the claim allows at the same conditions."""
    if record.verdict.detects is None:
        return say("how_sure.noticed_none")
    found = at_the_edge(record, TradeOff.gaussian(record.verdict.detects))
    assert found.reached is not None
    assert found.allowed is not None
    reached, allowed = both(found, say("how_sure.another"), "", Ceiling(found.reached))
    scale = 100 if found.share else 1
    seen, most = (Decimal(round_up(scale * each)) for each in (found.reached, found.allowed))
    gap = given(float(seen - most))
    gap = say("how_sure.points", gap=gap) if found.share else gap
    return say("how_sure.noticed", reached=reached, allowed=allowed, gap=gap)


def at_the_edge(record: AuditRecord, attacker: TradeOff) -> Measured:
    """What an attacker reaches by the deciding number, and what the claim allows there.

    One who is noticed by the whole curve may keep the claim at the point that decided. Then it is
    the point where they exceed the claim by most.
    """
    found, asked = record.deciding, record.verdict.metric
    value = asked.value(attacker)
    if found.allowed is not None and found.allowed < value < math.inf:
        return replace(found, reached=value)
    curve = record.claim.curve
    fpr = max(record.claim.fpr, key=lambda each: attacker.tpr(each) - curve.tpr(each))
    reading = Reading("tpr", {"fpr": fpr})
    return Measured.of(reading, reading.value(attacker), reading.value(curve))


def notices(record: AuditRecord) -> list[str]:
    """What must be known before anything else is read."""
    found, method, blocks = list(record.caveats), record.method, record.blocks
    if record.label is not None:
        found.append(tell(record, "notices.not_dp"))
    if method.objection is not None:
        found.append(tell(record, "notices.objection"))
    elif not method.decides:
        kind = "not_assumed" if method.method == "gaussian" else "no_bound"
        found.append(tell(record, f"notices.{kind}"))
    if method.assumption is not None:
        found.append(tell(record, "notices.assumption"))
    if record.adversary == "attribute":
        found.append(say("notices.attribute"))
    decidable = method.decides and not record.vacuous and record.verdict.power_known
    if record.verdict.outcome == "inconclusive" and decidable:
        trials, twice = record.verdict.trials, twice_as_strong(record.claim.curve)
        more = trials and say("how_sure.trials_needed", twice=twice, trials=trials)
        found.append(noticed(record) + (more or ""))
    if record.crosses and not record.refuted:
        found.append(say("notices.crosses", drawn=record.drawn))
    if blocks.failed:
        error = shorten(blocks.last_error or "no reason kept", 150, placeholder=" …")
        error = error if error.endswith(".") else f"{error}."
        found.append(say("notices.failed", **{**vars(blocks), "error": error}))
    if record.trials["diverged"]:
        found.append(say("notices.diverged", **record.trials))
    return [*found, *filter(None, [incident_summary(record.events).strip()])]


def meaning(record: AuditRecord) -> list[str]:
    """What the claim promises to one person in the data, or what is certified if that is more."""
    tpr, belief = (Reading(name).of(record.ceiling) for name in ("tpr", "belief"))
    steps = isinstance(record.claim.mechanism, DPSGD)
    people = say(
        "meaning.people",
        watcher=say("meaning.every_step" if steps else "meaning.everything"),
        most=min(PEOPLE, math.ceil(PEOPLE * tpr.value)),
        people=PEOPLE,
        used=say("meaning.used_replace" if record.adjacency == "replace" else "meaning.used"),
        alarms=given(PEOPLE * tpr.conditions["fpr"]),
    )
    believed = say(
        "meaning.certain" if belief.value >= 1 else "meaning.belief",
        before=given(100 * belief.conditions["belief_prior"]),
        after=percent_up(belief.value),
        times=one_in(belief.conditions["exceeded"]),
    )
    void = {"not_dp": record.label is not None, "refuted": record.refuted}
    return [*(say(f"meaning.{why}") for why, holds in void.items() if holds), people, believed]


def not_said(record: AuditRecord) -> list[str]:
    """What a reader may not conclude."""
    count = len(_adversaries(record))
    tried = say("not_said.one" if count == 1 else "not_said.several", count=count)
    first = say("not_said.refuted") if record.refuted else say("not_said.safe", tried=tried)
    return [first, *SENTENCES["not_said"]["always"]]


def answer(record: AuditRecord, found: Sequence[JudgedMetric]) -> str:
    """Whether what those who decide accept is kept, or what they have to state first."""
    void = record.refuted or record.label is not None
    why = say(f"acceptable.open_{'void' if void else 'above' if record.crosses else 'more'}")
    what = say(f"kept_if.{limited_by(record)}")
    parts = []
    for outcome in ("exceeded", "open", "kept"):
        if titles := "; ".join(title(each.numbers) for each in found if each.outcome == outcome):
            parts.append(tell(record, f"acceptable.{outcome}", listed=titles, why=why, what=what))
    first = [say("unreliable.understated")] if record.understated and not record.refuted else []
    return " ".join([*first, *(parts or [say("acceptable.none")])])


# Numbers ------------------------------------------------------------------------------------------


def decided(record: AuditRecord) -> str:
    """The deciding number as an interval."""
    if record.refuted:
        outcome = "refuted"
    elif not record.method.decides:
        outcome = "not_counted"
    else:
        outcome = "no_limit" if record.deciding.allowed is None else "not_refuted"
    least, most = ends(record.deciding)
    sure = f"{given(100 * record.config.confidence)} %"
    return say(f"decided.{outcome}", sure=sure, least=least, most=most)


def certainty(record: AuditRecord) -> str:
    """How sure the deciding number is; a credible bound has no confidence."""
    kind = "credible" if record.method.method == "bayesian" else "confidence"
    return tell(record, f"how_sure.{kind}")


def reached_by(record: AuditRecord) -> str:
    """Where the numbers of the table come from."""
    band = record.method.method == "band" or record.deciding.name == "curve"
    place = f"reached_by.{'band' if band else 'named'}"
    return tell(record, place, certainty=certainty(record))


def deciding_plainly(record: AuditRecord) -> str:
    """The deciding metric in a sentence for laymen; a bound that does not count says so."""
    told = plainly(record.deciding)
    return told if record.method.decides else say("plainly.not_counted", told=told)


def identified(found: Mapping[str, Any] | None) -> list[tuple[str, str, float, str]]:
    """Bernau et al.'s numbers: what, its place among them, the value, and how sure it is."""
    if found is None:
        return []
    rows = [
        (say(f"identified.{name}"), name, f"± {found[name]['standard_error']:.2g} (standard error)")
        for name in ("advantage", "predicted")
        if found[name] is not None
    ]
    share = found["exceedance"]
    sure = "{low:.4g} to {high:.4g} at {percent:g} % confidence, {trials:,} trainings"
    sure = sure.format(**share, percent=100 * share["confidence"])
    rows.append((say("identified.exceedance", **share), "exceedance", sure))
    rows += [
        (f"ε′ {estimate['source']}", f"epsilons.{name}", say("identified.estimate"))
        for name, estimate in found["epsilons"].items()
        if estimate is not None
    ]
    every = {**found, **{f"epsilons.{name}": each for name, each in found["epsilons"].items()}}
    return [(what, place, every[place]["value"], sure) for what, place, sure in rows]


# What it rests on, and what it leaves open --------------------------------------------------------


def certified(record: AuditRecord) -> str | None:
    """What the numbers of the claim promise, in a line; None where they protect nobody."""
    where = say("certified.where")
    return None if unreliable(record) else text.certified(record.adjacency, where=where)


def unreliable(record: AuditRecord) -> list[str]:
    """Why the limits of the claim protect nobody, where that is so."""
    if record.label is not None:
        return [say("unreliable.not_dp")]
    why = {"refuted": record.refuted, "understated": record.understated}
    return [say(f"unreliable.{name}") for name, holds in why.items() if holds]


def neighbours(record: AuditRecord) -> str:
    """Which two worlds are compared."""
    return say("neighbours.told", other=say(f"neighbours.{record.adjacency}"))


def assumed(record: AuditRecord) -> list[str]:
    """What must be true for the numbers to mean what they say."""
    described, adjacency = record.claim.mechanism.to_dict(), record.adjacency
    if certified(record):
        conditions = text.certified_in_full(described, adjacency)
    else:
        listed = "; ".join(text.conditions(described, adjacency=adjacency))
        conditions = say("assumed.conditions", listed=listed)
    sees = f"sees_{record.attacked['sees']}"
    if sees == "sees_model" and not isinstance(record.claim.mechanism, DPSGD):
        sees = "sees_model_other"
    return [
        say("assumed.independent"), conditions, say("assumed.several"), say(f"assumed.{sees}"),
        neighbours(record), say("assumed.trials"),
        *([] if record.method.assumption is None else [tell(record, "assumed.bound")]),
    ]  # fmt: skip


def gdpr(record: AuditRecord) -> list[str]:
    """How the number relates to the wording of recital 26."""
    return [*SENTENCES["law"]["gdpr"], *unreliable(record)]


def hipaa(record: AuditRecord) -> list[str]:
    """How the number relates to group sizes."""
    told = [say("law.hipaa")]
    if not record.groups:
        told.append(say("law.hipaa_none" if record.label is None else "law.hipaa_not_dp"))
    else:
        told.append(say("law.hipaa_table", times=f"{1 / EXCEEDED:,.0f}"))
        told += [] if record.adjacency == "replace" else [say("law.hipaa_other")]
    return [*told, *unreliable(record)]


def not_tested(record: AuditRecord) -> list[str]:
    """What the audit leaves open."""
    made = record.adversary in MADE_DATA
    models = all(run.attacked["sees"] == "model" for run in (record, *record.other_runs))
    rare = {"with": record.trials["in"], "without": record.trials["out"]}
    return [
        say("not_tested.attackers", listed=listed(_adversaries(record))),
        *([say("not_tested.made_data")] if made else []),
        *([say("not_tested.updates")] if models else []),
        say("not_tested.records", data=data(record)),
        say("not_tested.around"),
        say("not_tested.accuracy"),
        say("not_tested.rare", **rare),
    ]


def _adversaries(record: AuditRecord) -> list[str]:
    return [*dict.fromkeys(each.adversary for each in (record, *record.other_runs))]


def trained(record: AuditRecord) -> str:
    """The recipe of the attacked training in a line."""
    recipe = record.attacked["training"]
    if recipe is None:
        return say("trained.own")
    clip = "no_clipping" if recipe["clip_norm"] is None else "clipping"
    given_size = recipe.get("expected_batch_size")
    divisor = say("trained.divisor") if given_size is None else f"{given_size:g}"
    return say("trained.engine", **recipe, clip=say(f"trained.{clip}", **recipe), divisor=divisor)
