"""A script or a notebook as text: its code, places in it, comments that set findings aside."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dprime import validate

ZIP = b"PK\x03\x04"  # how a file of torch.save begins

LONGEST_SCRIPT, LONGEST_NOTEBOOK = 1_000_000, 50_000_000
"""Bytes; the tree of a script takes some 400 times as many. A notebook may have pictures."""

IGNORE = re.compile(r"#\s*dprime:\s*ignore(?:\[([^\]]*)\])?")
"""`# dprime: ignore[DP101, DP703]` at the end of a line, or `# dprime: ignore` for all codes."""

MAGIC = re.compile(r"^(\s*)(?:[%!?].*|.*\?\s*)$")
ASSIGNED = re.compile(r"^(\s*[\w, ]+=\s*)[%!].*$")
"""Lines of a notebook that are not Python: `%time`, `!ls`, `help?`, `files = !ls`."""

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # what `ast.parse` raises


@dataclass(frozen=True, eq=False)
class Source:
    """Python code with the name of its file; the cells of a notebook follow each other."""

    path: str
    code: str
    cells: tuple[tuple[int, int], ...] = ()  # of a notebook: (first line, number of the cell)
    skipped: tuple[int, ...] = ()  # cells that are no Python
    within: str = ""  # the name by which a script that imports it knows the file

    @cached_property
    def tree(self) -> ast.Module:
        try:
            return ast.parse(self.code)
        except UNREADABLE as error:
            at = f", line {error.lineno or 1}" if isinstance(error, SyntaxError) else ""
            why = f"not ({getattr(error, 'msg', error)}{at})"
            raise validate.invalid_input(
                self.path, why, "a Python script that can be read", "mend it"
            ) from None

    def place(self, line: int) -> str:
        for first, cell in reversed(self.cells):
            if first <= line:
                return f"cell {cell}, line {line - first + 1}"
        return f"{self.within}, line {line}" if self.within else f"line {line}"

    @cached_property
    def ignored(self) -> dict[int, set[str]]:
        """Codes that a comment sets aside, by line; an empty set stands for all."""
        return {
            line: {code.strip() for code in (listed or "").split(",") if code.strip()}
            for line, listed in self._comments()
        }

    def _comments(self) -> Iterator[tuple[int, str | None]]:
        try:
            for token in tokenize.generate_tokens(io.StringIO(self.code).readline):
                if token.type == tokenize.COMMENT and (found := IGNORE.search(token.string)):
                    yield token.start[0], found.group(1)
        except (tokenize.TokenError, IndentationError):
            return

    def sets_aside(self, code: str, line: int) -> bool:
        """Whether a comment on the statement of this line names the code, or all codes."""
        lines = range(line, line + 1)
        for node in ast.walk(self.tree) if self.ignored else ():
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
                body = getattr(node, "body", None)
                end = body[0].lineno - 1 if body else node.end_lineno or line
                if line <= end:
                    lines = range(node.lineno, end + 1)
        named = [self.ignored[line] for line in lines if line in self.ignored]
        return any(not codes or code in codes for codes in named)


def read_source(path: Path, text: str, within: str = "") -> Source:
    """The code of a script, or of the code cells of a notebook."""
    if path.suffix != ".ipynb":
        return Source(str(path), text, within=within)
    try:
        cells = json.loads(text)["cells"]
        codes = [
            (number, "".join(cell["source"]))
            for number, cell in enumerate(cells, 1)
            if cell["cell_type"] == "code"
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise validate.invalid_input(
            str(path), "not one", "a notebook with cells", "save it again with Jupyter"
        ) from None
    if sum(len(code) for _, code in codes) > LONGEST_SCRIPT:
        wanted = f"of at most {LONGEST_SCRIPT:,} characters in all"
        raise validate.invalid_input(f"code in {path}", "longer", wanted, "give a shorter one")
    lines: list[str] = []
    starts, skipped = [], []
    for number, code in codes:
        starts.append((len(lines) + 1, number))
        readable = _without_magic(code)
        if readable is None:
            skipped.append(number)
        lines += (readable or "").split("\n")
    if codes and len(skipped) == len(codes):
        raise validate.invalid_input(
            str(path), "not one", "a notebook with Python in its cells", "give a script"
        )
    return Source(str(path), "\n".join(lines) + "\n", tuple(starts), tuple(skipped))


def _without_magic(code: str) -> str | None:
    """A cell as Python, as many lines as it has; None where it is no Python."""
    if code.lstrip().startswith("%%"):
        first, _, rest = code.lstrip().partition("\n")
        if not first.startswith(("%%time", "%%capture", "%%writefile")):
            return "\n" * code.count("\n")
        code = "\n" * code[: len(code) - len(code.lstrip())].count("\n") + "pass\n" + rest
    if not _parses(code):
        lines = [ASSIGNED.sub(r"\1None", line) for line in code.split("\n")]
        code = "\n".join(MAGIC.sub(r"\1pass", line) for line in lines)
    return code if _parses(code) else None


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except UNREADABLE:
        return False
    return True
