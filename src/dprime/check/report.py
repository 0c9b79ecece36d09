"""Rules, findings and their wording."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dprime.text import told

if TYPE_CHECKING:
    from dprime.mechanisms import Mechanism
    from dprime.metrics import MetricValue

Severity = Literal["error", "warning", "note"]

MEANINGS: dict[Severity, str] = {
    "error": "the guarantee does not hold",
    "warning": "the guarantee may not hold, or not for what it seems to",
    "note": "good to know; what the guarantee rests on, or what has no effect on it",
}

LIMITS = (
    "That is no proof of privacy: reading a file cannot see the data, the libraries, most of what "
    "other files do, or what happens when it runs."
)
NEXT = (
    "Next: attach dprime.monitor to the training, which counts every step as it happens and can "
    "audit the training in one run."
)


@dataclass(frozen=True)
class Rule:
    """One kind of mistake: what it is, why it matters, and what to do."""

    code: str
    severity: Severity
    title: str
    why: str
    remedy: str


_LISTED = tomllib.loads(Path(__file__).with_name("rules.toml").read_text("utf-8"))
RULES: dict[str, Rule] = {code: Rule(code, **texts) for code, texts in _LISTED.items()}
"""All rules by code."""


@dataclass(frozen=True)
class Finding:
    """A mistake at a place.

    Attributes:
        line: in the file, from 1; None where a whole run or another file is meant.
        place: where it is, in words ("line 12", "cell 3, line 4", "model.py, line 7").
    """

    code: str
    sentence: str
    line: int | None = None
    place: str = ""

    @property
    def rule(self) -> Rule:
        """The kind of mistake."""
        return RULES[self.code]

    def as_json(self) -> dict[str, object]:
        """Values for JSON."""
        return {
            "code": self.code,
            "severity": self.rule.severity,
            "line": self.line,
            "place": self.place,
            "sentence": self.sentence,
            "why": self.rule.why,
            "remedy": self.rule.remedy,
        }


@dataclass(frozen=True)
class Risk:
    """What an attacker can do at most, by the mechanism of a saved run."""

    about: str
    mechanism: Mechanism
    adjacency: str
    answers: tuple[MetricValue, ...]

    def as_json(self) -> dict[str, object]:
        """Values for JSON."""
        return {
            "about": self.about,
            "mechanism": self.mechanism.to_dict(),
            "adjacency": self.adjacency,
            "metrics": {answer.name: answer.as_json() for answer in self.answers},
        }


@dataclass(frozen=True)
class RunRisks:
    """Risks that could be computed, and what was missing for the others."""

    risks: tuple[Risk, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """The result for one file.

    Attributes:
        kind: "script", "notebook" or "saved run".
        suppressed: what was found, but named in a comment to be ignored.
        reading: the certified risk of a saved run, or what was missing for it.
        unresolved: what could not be followed, in sentences.
        rules_run: the codes of the mistakes that this kind of file can show.
        monitored: whether dprime.monitor is attached already.
    """

    __repr__ = told("path", "findings")

    path: str
    kind: str
    findings: tuple[Finding, ...] = ()
    suppressed: tuple[Finding, ...] = ()
    reading: RunRisks = field(default_factory=RunRisks)
    unresolved: tuple[str, ...] = ()
    rules_run: tuple[str, ...] = ()
    monitored: bool = False

    def count(self, severity: Severity) -> int:
        """How many findings of this severity there are."""
        return sum(finding.rule.severity == severity for finding in self.findings)

    @property
    def failed(self) -> bool:
        """Whether there is an error or a warning."""
        return self.count("error") + self.count("warning") > 0

    def summary(self) -> str:
        """The outcome in a few sentences. It never says that a training is private."""
        counts = [f"{n} {_plural(name, n)}" for name in MEANINGS if (n := self.count(name))]
        if self.failed:
            said = [f"{', '.join(counts)}."]
        else:
            known = sum(RULES[code].severity != "note" for code in self.rules_run)
            notes = f" ({counts[0]})" if counts else ""
            none = f"None of the {known} mistakes that are looked for in a {self.kind} was found"
            said = [f"{none}{notes}.", LIMITS, *(() if self.monitored else (NEXT,))]
        if n := len(self.suppressed):
            codes = ", ".join(sorted({finding.code for finding in self.suppressed}))
            was = "was" if n == 1 else "were"
            said.append(f"{n} {_plural('finding', n)} {was} set aside by a comment ({codes}).")
        return " ".join(said)

    def as_json(self) -> dict[str, object]:
        """Values for JSON."""
        return {
            "path": self.path,
            "kind": self.kind,
            "failed": self.failed,
            "counts": {name: self.count(name) for name in MEANINGS},
            "findings": [finding.as_json() for finding in self.findings],
            "suppressed": [finding.as_json() for finding in self.suppressed],
            "risks": [risk.as_json() for risk in self.reading.risks],
            "missing_for_risk": list(self.reading.missing),
            "unresolved": list(self.unresolved),
            "rules_run": list(self.rules_run),
            "summary": self.summary(),
        }


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
