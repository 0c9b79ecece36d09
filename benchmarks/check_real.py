"""What does `dprime check` say of public training scripts, to be read and judged?

    python -m benchmarks check_real --folder FOLDER

Claim: docs/check.md. Finds the errors and warnings of each file below a folder of repositories
that makes an engine of Opacus or calls make_private; `check_corpus` in results.json has such
lines with the verdicts of a reader. Tests and the libraries' own code are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks import ROOT
from benchmarks.timing import Found
from dprime.check import check

LEFT_OUT = re.compile(
    r"(^|/)(tests?|opacus|benchmarks|\.ipynb_checkpoints)/|test_|_test\.py|conftest"
)


def measure(quick: bool, folder: Path | None) -> Found:
    folder = folder or ROOT / "tests" / "check" / "scripts"
    paths = sorted([*folder.rglob("*.py"), *folder.rglob("*.ipynb")])
    return {
        "alarms": [row for path in paths[: 20 if quick else None] for row in _alarms(path, folder)]
    }


def _alarms(path: Path, folder: Path) -> Iterator[Found]:
    name = path.relative_to(folder).as_posix()
    text = path.read_text(encoding="utf-8", errors="ignore")
    private = re.search(r"\.make_private|PrivacyEngine\(", text) and "opacus" in text.lower()
    if not private or LEFT_OUT.search(name):
        return
    try:
        findings = check(path).findings
    except ValueError as error:
        yield {"file": name, "refused": str(error)}
        return
    for each in findings:
        if each.rule.severity != "note":
            said = {"code": each.code, "place": each.place, "sentence": each.sentence}
            yield {"file": name, **said}
