"""A guarantee where others look: a model card of Hugging Face, OpenDP's registry of deployments.

AuditRecord, Mechanism, Monitor ──► _Told ──┬──► model_card ──► metadata and a section
                                            └──► registry_entry ──► a draft in YAML
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

import dprime
from dprime import text, validate
from dprime.audit.claim import Claim
from dprime.audit.record import AuditRecord
from dprime.mechanisms import DPSGD, Mechanism
from dprime.metrics import MetricValue, profile, risk_profile
from dprime.show import words
from dprime.show.card import card_markdown, plain
from dprime.show.deployment import Deployment

BEGIN, END = "<!-- begin dprime -->", "<!-- end dprime -->"
"""What the section of a model card stands between."""

TAG = "differential-privacy"

BASIC = ("name", "intended_use", "data_product_region", "description", "publication_date")
"""What the registry asks of every entry, and nothing here knows."""


class Watched(Protocol):
    """What a `Monitor` says of its training."""

    adjacency: str

    def risk(self) -> list[MetricValue]: ...
    def notes(self) -> list[str]: ...


Subject = AuditRecord | Mechanism | Watched


class _Told(NamedTuple):
    """The facts that an export states; `void` is why its numbers protect nobody."""

    described: str
    adjacency: str
    answers: Sequence[MetricValue]
    notes: Sequence[str]
    void: str

    def numbers(self) -> dict[str, float]:
        """ε with its δ, where it has a limit, and the advantage; rounded up."""
        shown: dict[str, float] = {}
        for each in () if self.void else self.answers:
            if each.name in ("advantage", "epsilon") and math.isfinite(each.value):
                shown |= {each.name: float(text.round_up(each.value)), **each.conditions}
        return shown


def _told(subject: Subject, how: dict[str, Any]) -> _Told:
    if how and not isinstance(subject, Mechanism):
        remedy = "leave it out: the record or the monitor has its own"
        raise validate.invalid_input(next(iter(how)), "given", "given for a mechanism", remedy)
    void = ""
    if isinstance(subject, Mechanism):
        adjacency = how.pop("adjacency", None) or subject.default_adjacency
        answers = risk_profile(subject.curve(adjacency), profile(**how))
        described = Claim(subject, adjacency, {}, {}, (), ()).described
        notes = [text.certified_in_full(subject.to_dict(), adjacency)]
    elif isinstance(subject, AuditRecord):
        adjacency, answers = subject.adjacency, subject.claim.profile()
        described, void = subject.claim.described, " ".join(words.unreliable(subject))
        notes = [*words.assumed(subject), *words.notices(subject)]
    else:
        adjacency, answers, (described, *notes) = subject.adjacency, subject.risk(), subject.notes()
    if any(each.name == "advantage" and not 0 < each.value < 1 for each in answers):
        void = void or "Nothing is certified that limits what an attacker learns from the model."
    return _Told(described, adjacency, answers, notes, void)


# Hugging Face -------------------------------------------------------------------------------------


def model_card(
    subject: Subject, card: str = "", about: Deployment | None = None, **how: Any
) -> str:
    """A model card with metadata and a section about the model's privacy.

    The section of an earlier call is replaced; all other text stays, but comments in the metadata.
    The tag `differential-privacy` is taken away where the claim is refuted, or nothing certified.

    Args:
        subject: what `record_of` returned, a mechanism, or a monitor.
        card: the text of the card so far.
        about: who decides about which model, for the section of an audit.
        how: for a mechanism, the adjacency and the conditions of metrics, such as `delta=1e-6`.

    """
    if find_spec("huggingface_hub") is None:
        remedy = "pip install huggingface_hub"
        raise validate.invalid_input("huggingface_hub", "missing", "installed", remedy)
    from huggingface_hub import ModelCard  # noqa: PLC0415  it is no dependency

    try:
        made = ModelCard(card if card.lstrip().startswith("---") else f"---\n{{}}\n---\n{card}")
    except Exception as error:  # of its YAML parser, too
        shown, remedy = f"unreadable ({type(error).__name__})", "mend its metadata"
        raise validate.invalid_input("the model card", shown, "readable", remedy) from error
    told = _told(subject, how)
    facts = {"mechanism": told.described, "adjacency": told.adjacency, **told.numbers()}
    if told.void:
        facts["void"] = told.void
    if isinstance(subject, AuditRecord):
        facts |= {"audit": subject.verdict.outcome, "adversary": subject.adversary}
    section = card_markdown(subject, about) if isinstance(subject, AuditRecord) else _section(told)
    for mark in (BEGIN, END):  # the name of a run may be one
        section = section.replace(mark, mark.replace("--", "- -"))
    made.text = _replaced(made.text, section.strip())
    others = [tag for tag in made.data.get("tags") or [] if tag != TAG]
    made.data["tags"] = (others if told.void else [*others, TAG]) or None
    made.data["differential_privacy"] = facts
    return str(made)


def _replaced(body: str, section: str) -> str:
    """The text of a card with the section between its marks, at the end if there are none."""
    before, _, rest = body.partition(BEGIN)
    _, end, after = rest.partition(END)
    if BEGIN not in body and END not in body:
        before, after = f"{body.rstrip()}\n\n" if body.strip() else "", "\n"
    elif not end or BEGIN in rest or END in before + after:
        wanted, remedy = f"one with one {BEGIN} before one {END}, or neither", "mend them"
        raise validate.invalid_input("the model card", "one with others", wanted, remedy)
    return f"{before}{BEGIN}\n{section}\n{END}{after}"


def _section(told: _Told) -> str:
    rows = [("what", "certified", "in plain words"), (":---", "---:", ":---")]
    rows += [(each.title, each.shown(), each.sentence) for each in told.answers]
    parts = [
        "## Privacy",
        f"{plain(told.described)}.",
        f"**{told.void}**" if told.void else "",
        "\n".join(f"| {' | '.join(map(plain, row))} |" for row in rows),
        "\n".join(f"- {plain(note)}" for note in told.notes),
        f"Computed by dprime {dprime.__version__}.",
    ]
    return "\n\n".join(part for part in parts if part)


# OpenDP -------------------------------------------------------------------------------------------


def registry_entry(subject: Subject, **how: Any) -> str:
    """A draft for OpenDP's registry of deployments: YAML with places to fill in.

    Arguments are those of `model_card`. A claim that was refuted is refused, and so is a training
    of which nothing is certified.
    """
    told = _told(subject, how)
    if told.void:
        raise validate.InputError.of("the claim", "hold", "it does not", told.void.rstrip("."))
    trained = isinstance(subject, DPSGD) or not isinstance(subject, Mechanism)
    product = {"data_product_type": "Machine learning model" if trained else ""}
    size = {"unprotected_quantities": "The number of records."}
    public = {} if told.adjacency == "add-remove" else size
    shown = "; ".join(f"{each.title}: {each.shown()}" for each in told.answers)
    numbers = {name: each for name, each in told.numbers().items() if name != "advantage"}
    tested = {"justification": subject.sentence} if isinstance(subject, AuditRecord) else {}
    parts = {
        "basic": {**dict.fromkeys(BASIC, ""), "data_curators": [""], **product},
        "dp_variant": {"variant_name": "Approximate DP", **public},
        "privacy_loss": {
            "privacy_unit": "One record",
            "privacy_unit_details": f"One record is {text.CHANGES[told.adjacency]}.",
            **({"privacy_parameters": numbers} if numbers else {}),
            "privacy_parameters_details": f"By dprime {dprime.__version__}: {shown}",
        },
        "implementation": {"mechanisms": " ".join([f"{told.described}.", *told.notes]), **tested},
        "administrative": {"registry_authors": [""]},
    }
    entry = {"url_slug": "", "status": "Draft", "tier": 2, "deployment": parts}
    return "\n".join(_yaml(entry)) + "\n"


def _yaml(values: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Names and values as YAML, where JSON stands for texts and lists; empty ones are marked."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield f"{indent}{name}:"
            yield from _yaml(value, indent + "  ")
            continue
        written = json.dumps(value, ensure_ascii=False)
        written = re.sub(r"^(\d+)e", r"\1.0e", written)  # YAML takes 1e-05 for a text
        mark = "  # to fill in" if value in ("", [""]) else ""
        yield f"{indent}{name}: {written}{mark}"
