"""The privacy card: the facts of a run as JSON, with a schema, and as Markdown for a model card."""

from __future__ import annotations

import dataclasses
import json
from importlib.resources import files
from typing import Any

import dprime
from dprime.audit.record import AuditRecord, Group, Measured
from dprime.plain import to_json
from dprime.show import repeat, sentences, words
from dprime.show.deployment import FIELDS, Deployment
from dprime.show.sentences import say
from dprime.text import printable

SCHEMA: dict[str, Any] = json.loads(
    files("dprime.show").joinpath("card-2.schema.json").read_text(encoding="utf-8")
)
"""The JSON Schema of a card."""

MARK = f"<!-- {SCHEMA['$id']} -->"
"""The last line of a card in Markdown, by which it is known."""


def card(record: AuditRecord, about: Deployment | None = None) -> dict[str, Any]:
    """Everything that the report says, of JSON values; null stands for no limit.

    Args:
        record: from `record_of`.
        about: who decides about which model, and what they accept.
    """
    attacked, claim = record.attacked, record.claim
    shown: dict[str, Any] = to_json({
        "schema": SCHEMA["$id"],
        "dprime": dprime.__version__,
        "run": {
            "name": record.name,
            "created": record.created.isoformat(timespec="seconds"),
            "changed": record.changed.isoformat(timespec="seconds"),
            "versions": record.versions,
            "settings": record.public_settings,
            "begun_in_python": record.config.in_python,
            "commands": repeat.commands(record),
        },
        "deployment": (about or Deployment()).card(record),
        "verdict": _verdict(record),
        "claim": {
            "described": claim.described,
            "mechanism": claim.mechanism.to_dict(),
            "adjacency": record.adjacency,
            "records_per_person": 1,
            "meaning": words.meaning(record),
            "certified": words.certified(record),
            "metrics": claim.metrics,
        },
        "attack": {
            "adversary": record.adversary,
            "about": record.about,
            **{name: attacked[name] for name in ("sees", "data", "records", "training", "trainer")},
            "label": record.label,
            "trials": record.trials,
            "blocks": dataclasses.asdict(record.blocks),
        },
        "others": [_other(other) for other in record.other_runs],
        "metrics": {each.name: _measured(each) for each in record.metrics},
        "methods": {
            bound.method: {
                "epsilon": bound.epsilon, "delta": bound.delta,
                "assumption": bound.assumption, "objection": bound.objection,
                "decides": bound is record.method and bound.decides,
            }
            for bound in record.bounds
        },
        "groups": [_group(each) for each in record.groups],
        "identifiability": record.identifiability,
        "assumed": words.assumed(record),
        "law": {"gdpr": words.gdpr(record), "hipaa": words.hipaa(record)},
        "not_tested": words.not_tested(record),
    })  # fmt: skip
    return shown


def _verdict(record: AuditRecord) -> dict[str, Any]:
    found, method = record.deciding, record.method
    return {
        "outcome": record.verdict.outcome,
        "headline": words.headline(record),
        "what_happened": words.what_happened(record),
        "sentence": record.sentence,
        "notices": words.notices(record),
        "not_said": words.not_said(record),
        "metric": {
            "name": found.name, **_measured(found), "sentence": words.deciding_plainly(record),
        },
        "confidence": record.config.confidence,
        "method": method.method,
        "decides": method.decides,
        "detects": record.verdict.detects,
        "trials_needed": record.verdict.trials,
        "assumption": method.assumption,
        "objection": method.objection,
    }  # fmt: skip


def _measured(found: Measured) -> dict[str, Any]:
    kept = {name: getattr(found, name) for name in ("title", "conditions", "reached", "allowed")}
    return {**kept, "kind": "lower bound", "sentence": sentences.plainly(found)}


def _group(found: Group) -> dict[str, float]:
    names = ("size", "prior", "belief", "exceeded", "equivalent")
    return {name: getattr(found, name) for name in names}


def _other(record: AuditRecord) -> dict[str, Any]:
    return {
        "run": record.name, "adversary": record.adversary, "sees": record.attacked["sees"],
        "outcome": record.verdict.outcome, "metric": record.deciding.title,
        "reached": record.deciding.reached, "allowed": record.deciding.allowed,
    }  # fmt: skip


# Markdown -----------------------------------------------------------------------------------------


def card_markdown(record: AuditRecord, about: Deployment | None = None) -> str:
    """The card as a section of a model card.

    Args:
        record: from `record_of`.
        about: who decides about which model, and what they accept.
    """
    shown = card(record, about)
    verdict, law = shown["verdict"], shown["law"]
    certified = shown["claim"]["certified"]
    decides = "decides" if record.method.decides else "was to decide"
    commands = "\n".join(shown["run"]["commands"])
    parts = [
        "## Privacy",
        f"**{plain(verdict['headline'])}** {plain(words.how_sure(record))}",
        plain(verdict["what_happened"]),
        *(f"> {plain(notice)}" for notice in verdict["notices"]),
        "### What the claim means for one person",
        _items(shown["claim"]["meaning"]),
        "### What this does not say",
        _items(verdict["not_said"]),
        "### Who decides, and what is acceptable",
        _items([
            *(f"{field.help}: {shown['deployment'][name]}"
              for name, field in FIELDS.items() if shown["deployment"][name]),
            shown["deployment"]["answer"],
        ]),
        "### The claim and the attack",
        _items([
            f"Claim: {record.claim.described}; {say(f'compared.{record.adjacency}')}.",
            *([] if certified is None else [f"{certified}."]),
            f"Tested: {record.blocks.total_trials:,} trainings. {words.tested(record)}",
            f"Verdict: {record.sentence}",
            *(f"Beside it: {other.name}, {other.adversary}: {other.sentence}"
              for other in record.other_runs),
        ]),
        "### The numbers",
        plain(
            f"{sentences.title(record.deciding)} {decides}, by the method "
            f"{record.method.method}. {words.decided(record)}"
        ),
        "| what | reached, at least | claimed, at most |\n| :--- | ---: | ---: |\n"
        + "".join(
            f"| {plain(sentences.title(each))} | {' | '.join(sentences.ends(each))} |\n"
            for each in record.metrics
        )
        + f"\n{plain(f'Reached: {words.reached_by(record)}.')}",
        "### What was assumed",
        _items(shown["assumed"]),
        "### How it relates to the law",
        _items([*law["gdpr"], *law["hipaa"]]),
        _items([sentences.group(each) for each in record.groups]),
        "### What was not tested",
        _items(shown["not_tested"]),
        "### How to repeat it",
        _items(repeat.how(record)),
        f"```{'json' if record.config.in_python else 'toml'}\n"
        f"{repeat.settings_text(record).strip()}\n```",
        f"```sh\n{commands}\n```" if commands else "",
        plain(f"dprime {record.versions.get('dprime', '')}, run {record.name}, "
              f"{record.changed:%Y-%m-%d}."),
        MARK,
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def _items(sentences: list[str]) -> str:
    return "\n".join(f"- {plain(sentence)}" for sentence in sentences)


ESCAPED = str.maketrans({"\\": "\\\\", "|": "\\|", "[": "\\[", "<": "&lt;"})


def plain(sentence: str) -> str:
    """On one line, and nothing in it that Markdown would take for a block, a link or HTML."""
    line = " ".join(printable(sentence).split()).translate(ESCAPED)
    return f"\\{line}" if line.startswith(tuple("#>+-=~`*_")) else line
