"""What a report needs beside its record: who decides about which model, and what they accept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from dprime import options, validate
from dprime.audit.limits import LIMITS, limits_of, risks
from dprime.audit.record import AuditRecord
from dprime.audit.words import words_in
from dprime.metrics import Target
from dprime.option import check_names, configured, options_of
from dprime.parameters import Checked
from dprime.plain import to_json
from dprime.show import words
from dprime.show.sentences import risk
from dprime.text import printable

LONGEST = 120
"""Characters of a field: all of them fit on the first page."""


def _text(name: str, value: object) -> str:
    line = printable(" ".join(value.split())) if isinstance(value, str) else ""
    if 0 < len(line) <= LONGEST:
        return line
    wanted = f"a text of at most {LONGEST} characters"
    raise validate.invalid_value(name, value, wanted, "say it in a line, in quotation marks")


@dataclass(frozen=True, kw_only=True)
class Deployment(Checked):
    """The fields of a report that a person fills in, and the limits that they set.

    >>> about = Deployment.of({"purpose": "Plan beds", "epsilon": 8.0})
    >>> about.purpose, [limit.value for limit in about.limits]
    ('Plan beds', [8.0])
    """

    organisation: str | None = configured(options.ORGANISATION, check=_text)
    contact: str | None = configured(options.CONTACT, check=_text)
    released_model: str | None = configured(options.RELEASED_MODEL, check=_text)
    purpose: str | None = configured(options.PURPOSE, check=_text)
    data_subjects: str | None = configured(options.DATA_SUBJECTS, check=_text)
    personal_data: str | None = configured(options.PERSONAL_DATA, check=_text)
    recipients: str | None = configured(options.RECIPIENTS, check=_text)
    confirmed_by: str | None = configured(options.CONFIRMED_BY, check=_text)
    accuracy: str | None = configured(options.ACCURACY, check=_text)
    limits: tuple[Target, ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """From fields and limits by the names of their options."""
        limits = {each.name: given[each.name] for each in LIMITS if each.name in given}
        fields = {name: value for name, value in given.items() if name not in limits}
        check_names("about", fields, FIELDS)
        return cls(**fields, limits=limits_of(limits))

    @classmethod
    def from_options(cls, given: Mapping[str, Any]) -> Self:
        """What a file has (`about`), with limits in a table, and over it the options."""
        own = dict(given)
        values = words_in(own.pop("about")) if "about" in own else {}
        limits = values.pop("acceptable", {})
        check_names("acceptable", limits, [each.name for each in LIMITS])
        return cls.of({**values, **limits, **own})

    def card(self, record: AuditRecord) -> dict[str, Any]:
        """Its part of the card: the fields, and every risk beside what is acceptable."""
        found = risks(record, self.limits)
        fields = {name: getattr(self, name) for name in FIELDS}
        told = [
            {**to_json(each.numbers), **to_json(each), "sentence": risk(record, each)}
            for each in found
        ]
        return {**fields, "answer": words.answer(record, found), "risks": told}


FIELDS = {option.name: option for option in options_of(Deployment)}
"""The fields by their names."""

DEPLOYMENT = (options.ABOUT, *FIELDS.values(), *LIMITS)
"""The options of a report that describe one."""
