"""What `dprime check` says of all scripts in a folder of repositories, to be read and judged.

`python benchmarks/check_real.py FOLDER` prints a line of JSON for each error and warning of each
file that makes an engine of Opacus or calls make_private; `check_corpus.json` has such lines with
the verdicts of a reader. Tests and the libraries' own code are left out.
"""

import json
import re
import sys
from pathlib import Path

from dprime.check import check

LEFT_OUT = re.compile(
    r"(^|/)(tests?|opacus|benchmarks|\.ipynb_checkpoints)/|test_|_test\.py|conftest"
)


def main(folder: Path) -> None:
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.ipynb")]):
        name = path.relative_to(folder).as_posix()
        text = path.read_text(encoding="utf-8", errors="ignore")
        private = re.search(r"\.make_private|PrivacyEngine\(", text) and "opacus" in text.lower()
        if not private or LEFT_OUT.search(name):
            continue
        try:
            findings = check(path).findings
        except ValueError as error:
            print(json.dumps({"file": name, "refused": str(error)}))
            continue
        for finding in findings:
            if finding.rule.severity != "note":
                said = {"code": finding.code, "place": finding.place, "sentence": finding.sentence}
                print(json.dumps({"file": name, **said}, ensure_ascii=False))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
