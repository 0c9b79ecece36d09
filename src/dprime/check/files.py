"""A file of any kind that can be checked."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

from dprime import validate
from dprime.check.report import Report
from dprime.check.script import check_script
from dprime.check.source import Source, read_source

SCRIPTS = (".py", ".pyw", ".ipynb")

ZIP = b"PK\x03\x04"
"""How a file of torch.save begins."""

REMEDY = "give a training script, a notebook, a JSON description or a checkpoint"


def check(path: str | Path, *, records: int | None = None, delta: float | None = None) -> Report:
    """Look for mistakes in a training script, a notebook or a saved run. Nothing is executed.

    Args:
        path: a Python script, a notebook, a description of a run in JSON, a checkpoint that Opacus
            saved, or the saved state of a monitor.
        records: the number of training records, where the file does not tell it.
        delta: at which ε of a saved run is read, where the file does not tell it.

    """
    path = Path(path)
    if records is not None:
        records = validate.whole("records", records, example=60_000)
    if delta is not None:
        delta = validate.inner_probability("delta", delta, example="1e-5")
    content = _content(path)
    if path.suffix not in SCRIPTS and (content.startswith(ZIP) or path.suffix == ".json"):
        from dprime.check.saved import check_saved, read_saved  # noqa: PLC0415  it needs SciPy

        values = read_saved(path, content[:4])
        return check_saved(str(path), values, records=records, delta=delta)
    source = read_source(path, _text(path, content))
    if path.suffix not in SCRIPTS and not _is_script(source):
        raise validate.invalid_input(str(path), "a text of another kind", "a script", REMEDY)
    return check_script(source, records=records)


def _is_script(source: Source) -> bool:
    """Whether a text with another ending can be read as Python and uses some library."""
    try:
        tree = source.tree()
    except ValueError:
        return False
    return any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree))


def _content(path: Path) -> bytes:
    if path.is_dir():
        raise validate.invalid_input(
            str(path), "a folder", "a file", "name the training script in it"
        )
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise validate.invalid_input(str(path), "missing", "a file", REMEDY) from None
    except OSError as error:
        raise validate.invalid_input(
            str(path), f"not ({error})", "a file to read", REMEDY
        ) from None
    if not content.strip():
        raise validate.invalid_input(str(path), "empty", "a file with something in it", REMEDY)
    return content


def _text(path: Path, content: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode("utf-8-sig" if path.suffix == ".ipynb" else encoding)
    except (UnicodeDecodeError, SyntaxError):
        text = "\0"
    if "\0" in text:
        raise validate.invalid_input(str(path), "a binary file of another kind", "a text", REMEDY)
    return text
