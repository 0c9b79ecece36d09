"""The privacy card: the facts of a run as JSON, with a schema, and as Markdown for a model card."""

from __future__ import annotations

import dataclasses
import json
from importlib.resources import files
from typing import Any

import dprime
from dprime.audit.record import AuditRecord, Measured
from dprime.plain import to_json
from dprime.show import grounds, repeat, words

SCHEMA: dict[str, Any] = json.loads(
    files("dprime.show").joinpath("card-1.schema.json").read_text(encoding="utf-8")
)
"""The JSON Schema of a card, version 1."""

MARK = f"<!-- {SCHEMA['$id']} -->"
"""The last line of a card in Markdown, by which it is known."""


def card(facts: AuditRecord) -> dict[str, Any]:
    """Everything that the report says, of JSON values; null stands for no limit.

    Args:
        facts: from `record_of`.
    """
    shown: dict[str, Any] = to_json({
        "schema": SCHEMA["$id"],
        "dprime": dprime.__version__,
        "run": _run(facts),
        "verdict": _verdict(facts),
        "claim": _claim(facts),
        "attack": _attack(facts),
        "others": [_other(other) for other in facts.other_runs],
        "metrics": {each.name: _measured(each) for each in facts.metrics},
        "methods": {
            bound.method: {
                "epsilon": bound.epsilon, "delta": bound.delta,
                "assumption": bound.assumption, "objection": bound.objection,
                "decides": bound is facts.method and bound.decides,
            }
            for bound in facts.bounds
        },
        "groups": [
            {
                "size": each.size, "prior": each.prior, "belief": each.belief,
                "exceeded": each.exceeded, "equivalent": each.equivalent,
            }
            for each in facts.groups
        ],
        "identifiability": facts.identifiability,
        "assumed": grounds.assumed(facts),
        "law": {"gdpr": grounds.gdpr(facts), "hipaa": grounds.hipaa(facts)},
        "not_tested": grounds.not_tested(facts),
    })  # fmt: skip
    return shown


def _other(facts: AuditRecord) -> dict[str, Any]:
    """Another run against the same claim, in short."""
    return {
        "run": facts.name, "adversary": facts.adversary, "sees": facts.attacked["sees"],
        "outcome": facts.verdict.outcome, "metric": facts.deciding.title,
        "reached": facts.deciding.reached, "allowed": facts.deciding.allowed,
    }  # fmt: skip


def _run(facts: AuditRecord) -> dict[str, Any]:
    return {
        "name": facts.name,
        "created": facts.created.isoformat(timespec="seconds"),
        "changed": facts.changed.isoformat(timespec="seconds"),
        "versions": dict(facts.versions),
        "settings": facts.public_settings,
        "begun_in_python": facts.config.in_python,
        "commands": repeat.commands(facts),
    }


def _verdict(facts: AuditRecord) -> dict[str, Any]:
    return {
        "outcome": facts.verdict.outcome,
        "headline": words.headline(facts),
        "what_happened": words.what_happened(facts),
        "sentence": facts.sentence,
        "notices": words.notices(facts),
        "not_said": words.not_said(facts),
        "metric": {
            "name": facts.deciding.name,
            **_measured(facts.deciding),
            "sentence": words.deciding_plainly(facts),
        },
        "confidence": facts.config.confidence,
        "method": facts.method.method,
        "decides": facts.method.decides,
        "detects": facts.verdict.detects,
        "trials_needed": facts.verdict.trials,
        "assumption": facts.method.assumption,
        "objection": facts.method.objection,
    }


def _measured(found: Measured) -> dict[str, Any]:
    return {
        "title": found.title,
        "conditions": dict(found.conditions),
        "reached": found.reached,
        "allowed": found.allowed,
        "kind": "lower bound",
        "sentence": words.plainly(found),
    }


def _claim(facts: AuditRecord) -> dict[str, Any]:
    return {
        "described": facts.claim.described,
        "mechanism": facts.claim.mechanism.to_dict(),
        "adjacency": facts.adjacency,
        "records_per_person": 1,
        "meaning": words.meaning(facts),
        "certified": grounds.certified(facts),
        "metrics": {name: dict(each) for name, each in facts.claim.metrics.items()},
    }


def _attack(facts: AuditRecord) -> dict[str, Any]:
    return {
        "adversary": facts.adversary,
        "about": facts.about,
        "sees": facts.attacked["sees"],
        "data": facts.attacked["data"],
        "records": facts.attacked["records"],
        "training": facts.attacked["training"],
        "trainer": facts.attacked["trainer"],
        "label": facts.label,
        "trials": dict(facts.trials),
        "blocks": dataclasses.asdict(facts.blocks),
    }


# Markdown -----------------------------------------------------------------------------------------


def card_markdown(facts: AuditRecord) -> str:
    """The card as a section of a model card.

    Args:
        facts: from `record_of`.
    """
    parts = [
        "## Privacy",
        f"**{words.headline(facts)}** {words.how_sure(facts)}",
        _plain(words.what_happened(facts)),
        *(f"> {_plain(notice)}" for notice in words.notices(facts)),
        "### What the claim means for one person",
        _items(words.meaning(facts)),
        "### What this does not say",
        _items(words.not_said(facts)),
        "### The claim and the attack",
        _items([
            f"Claim: {facts.claim.described}; {_compared(facts)}.",
            *_certified(facts),
            f"Attack: {facts.adversary} ({facts.about}), which saw {SEEN[facts.attacked['sees']]}.",
            f"Played: {words.trainings(facts)} on {facts.attacked['data']} "
            f"({facts.attacked['records']:,} records).",
            f"Verdict: {facts.sentence}",
            *(f"Beside it: {other.name}, {other.adversary}: {other.sentence}"
              for other in facts.other_runs),
        ]),
        "### The numbers",
        f"{_decider(facts)}, by the method {facts.method.method}. "
        f"{words.decided(facts)}",
        _numbers(facts),
        "### What was assumed",
        _items(grounds.assumed(facts)),
        "### How it relates to the law",
        _items([*grounds.gdpr(facts), *grounds.hipaa(facts)]),
        *_group_part(facts),
        "### What was not tested",
        _items(grounds.not_tested(facts)),
        "### How to repeat it",
        _items(repeat.how(facts)),
        f"```{_kind(facts)}\n{repeat.settings_text(facts).strip()}\n```",
        *_command_part(facts),
        f"dprime {facts.versions.get('dprime', '')}, run {_plain(facts.name)}, "
        f"{facts.changed:%Y-%m-%d}.",
        MARK,
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


SEEN = {"updates": "every update of the training", "model": "the final model only"}


def _kind(facts: AuditRecord) -> str:
    return "json" if facts.config.in_python else "toml"


def _decider(facts: AuditRecord) -> str:
    word = "decides" if facts.method.decides else "was to decide"
    return f"{facts.deciding.title} {word}"


COMPARED = {
    "add-remove": "with or without one record",
    "replace": "a record replaced",
    "zero-out": "one record zeroed out",
}
"""What the claim compares, by the adjacency."""


def _compared(facts: AuditRecord) -> str:
    return COMPARED[facts.adjacency]


def _certified(facts: AuditRecord) -> list[str]:
    sentence = grounds.certified(facts)
    return [] if sentence is None else [f"{sentence}."]


def _items(sentences: list[str]) -> str:
    return "\n".join(f"- {_plain(sentence)}" for sentence in sentences)


def _numbers(facts: AuditRecord) -> str:
    lines = ["| what | reached, at least | allowed, at most |", "| :--- | ---: | ---: |"]
    lines += [
        f"| {each.title} | {words.floor(each.reached)} | {words.ceiling(each.allowed)} |"
        for each in facts.metrics
    ]
    return "\n".join([*lines, "", f"Reached: {reached_by(facts)}."])


def reached_by(facts: AuditRecord) -> str:
    """Where the numbers of the table come from."""
    name, sure = facts.method.method, f"at {100 * facts.config.confidence:g} % confidence"
    if name == "band" or facts.deciding.name == "curve":
        return f"by the distribution-free band {sure}, for all rows together"
    own = f"by {name}, with {words.certainty(facts)}"
    return f"the deciding number {own}; the others by the distribution-free band {sure}, together"


def _group_part(facts: AuditRecord) -> list[str]:
    return [_items([words.group(each) for each in facts.groups])] if facts.groups else []


def _command_part(facts: AuditRecord) -> list[str]:
    found = repeat.commands(facts)
    return ["```sh\n" + "\n".join(found) + "\n```"] if found else []


ESCAPED = str.maketrans({"|": "\\|", "[": "\\[", "<": "&lt;"})


def _plain(sentence: str) -> str:
    """On one line, and nothing in it that Markdown would take for a table, a link or HTML."""
    return " ".join(sentence.split()).translate(ESCAPED)
