"""What a check found, for people and for machines."""

from __future__ import annotations

from dataclasses import dataclass, field

from dprime.check.risk import Reading
from dprime.check.rules import MEANINGS, RULES, Finding, Severity

LIMITS = (
    "That is no proof of privacy: reading a file cannot see the data, the libraries, other files, "
    "most of what forward computes, or what happens when it runs."
)
NEXT = (
    "Next: attach dprime.monitor to the training, which counts every step as it happens and can "
    "audit the training in one run."
)


@dataclass(frozen=True)
class Report:
    """The result for one file.

    Attributes:
        path: the file.
        kind: "script", "notebook" or "saved run".
        findings: what was found, in the order of the lines.
        set_aside: what was found, but named in a comment to be ignored.
        reading: the certified risk of a saved run, or what was missing for it.
        unclear: what could not be followed, in sentences.
        looked_for: the codes of the mistakes that this kind of file can show.
        monitored: whether dprime.monitor is attached already.
    """

    path: str
    kind: str
    findings: tuple[Finding, ...] = ()
    set_aside: tuple[Finding, ...] = ()
    reading: Reading = field(default_factory=Reading)
    unclear: tuple[str, ...] = ()
    looked_for: tuple[str, ...] = tuple(RULES)
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
        return " ".join([*self._counted(), *self._aside()])

    def _counted(self) -> list[str]:
        counts = [f"{n} {_plural(name, n)}" for name in MEANINGS if (n := self.count(name))]
        if self.failed:
            return [f"{', '.join(counts)}."]
        known = sum(RULES[code].severity != "note" for code in self.looked_for)
        what = f"None of the {known} mistakes that are looked for in a {self.kind} was found"
        notes = f" ({counts[0]})" if counts else ""
        return [f"{what}{notes}.", LIMITS, *(() if self.monitored else (NEXT,))]

    def _aside(self) -> list[str]:
        n = len(self.set_aside)
        if not n:
            return []
        codes = ", ".join(sorted({finding.code for finding in self.set_aside}))
        was = "was" if n == 1 else "were"
        return [f"{n} {_plural('finding', n)} {was} set aside by a comment ({codes})."]

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "path": self.path,
            "kind": self.kind,
            "failed": self.failed,
            "counts": {name: self.count(name) for name in MEANINGS},
            "findings": [finding.as_json() for finding in self.findings],
            "set_aside": [finding.as_json() for finding in self.set_aside],
            "risks": [risk.as_json() for risk in self.reading.risks],
            "missing_for_risk": list(self.reading.missing),
            "unclear": list(self.unclear),
            "looked_for": list(self.looked_for),
            "summary": self.summary(),
        }


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
