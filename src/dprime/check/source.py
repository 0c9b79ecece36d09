"""A script or a notebook as text: its code, places in it, comments that set findings aside."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dprime import validate

IGNORE = re.compile(r"#\s*dprime:\s*ignore(?:\[([^\]]*)\])?")
"""`# dprime: ignore[DP101, DP703]` at the end of a line, or `# dprime: ignore` for all codes."""

MAGIC = re.compile(r"^\s*[%!?]|\?\s*$")
"""Lines of a notebook that are not Python."""


@dataclass(frozen=True)
class Source:
    """Python code with the name of its file.

    Attributes:
        path: as it was given.
        code: one text; the cells of a notebook follow each other.
        cells: for a notebook, (first line, number of the cell), in order.
    """

    path: str
    code: str
    cells: tuple[tuple[int, int], ...] = field(default=())

    def tree(self) -> ast.Module:
        """The code, parsed."""
        try:
            return ast.parse(self.code)
        except SyntaxError as error:
            place = self.place(error.lineno or 1)
            raise validate.invalid_input(
                self.path, f"not ({error.msg}, {place})", "a Python script that can be read",
                "mend that line",
            ) from None  # fmt: skip
        except (ValueError, RecursionError, MemoryError) as error:
            raise validate.invalid_input(
                self.path, f"not ({error})", "a Python script that can be read", "give a script"
            ) from None

    def place(self, line: int | None) -> str:
        """Where a line is, in words."""
        if line is None:
            return ""
        found = [(first, cell) for first, cell in self.cells if first <= line]
        if not found:
            return f"line {line}"
        first, cell = found[-1]
        return f"cell {cell}, line {line - first + 1}"

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


def read_source(path: Path, text: str) -> Source:
    """The code of a script, or of the code cells of a notebook."""
    if path.suffix != ".ipynb":
        return Source(str(path), text)
    try:
        cells = json.loads(text)["cells"]
        codes = [
            (n, _text(c["source"])) for n, c in enumerate(cells, 1) if c["cell_type"] == "code"
        ]
    except (ValueError, KeyError, TypeError):
        raise validate.invalid_input(
            str(path), "not one", "a notebook with cells", "save it again with Jupyter"
        ) from None
    lines: list[str] = []
    starts = []
    for cell, code in codes:
        starts.append((len(lines) + 1, cell))
        magic = code.lstrip().startswith("%%")
        lines += ["pass" if magic or MAGIC.search(line) else line for line in code.split("\n")]
    return Source(str(path), "\n".join(lines) + "\n", tuple(starts))


def _text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)
