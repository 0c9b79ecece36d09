"""A file of any kind that can be checked: a script, a notebook, or a saved run."""

from __future__ import annotations

import ast
import io
import math
import tokenize
from collections.abc import Iterator
from pathlib import Path

from dprime import bounded, validate
from dprime.check import rules
from dprime.check.reading import Reader
from dprime.check.report import RULES, Finding, Report
from dprime.check.rules.layers import from_elsewhere
from dprime.check.script import Script
from dprime.check.source import LONGEST_NOTEBOOK, LONGEST_SCRIPT, ZIP, Source, read_source

SCRIPTS = (".py", ".pyw", ".ipynb")

REMEDY = "give a training script, a notebook, a JSON description or a checkpoint"
DATABASE = b"SQLite format 3\0"


def check(
    path: str | Path, *, dataset_size: int | None = None, delta: float | None = None
) -> Report:
    """Look for mistakes in a training script, a notebook or a saved run. Nothing is executed.

    Args:
        path: a Python script, a notebook, a description of a run in JSON, a checkpoint that Opacus
            saved, or the saved state of a monitor.
        dataset_size: the number of training records, where the file does not tell it.
        delta: at which ε of a saved run is read, where the file does not tell it.

    """
    path = Path(path)
    if dataset_size is not None:
        dataset_size = validate.whole("dataset_size", dataset_size, example=60_000)
    if delta is not None:
        delta = validate.inner_probability("delta", delta, example="1e-5")
    start = bounded.first_bytes(path, len(DATABASE), REMEDY)
    if not start.strip():
        raise validate.invalid_input(str(path), "empty", "a file with something in it", REMEDY)
    if path.suffix not in SCRIPTS and (start.startswith(ZIP) or path.suffix == ".json"):
        from dprime.check.saved import check_saved, read_saved  # noqa: PLC0415  it needs SciPy

        values = read_saved(path, start)
        return check_saved(str(path), values, dataset_size=dataset_size, delta=delta)
    if start.startswith(DATABASE):
        shown, remedy = "a run of dprime", f"see dprime report {path}"
        raise validate.invalid_input(str(path), shown, REMEDY.removeprefix("give "), remedy)
    longest = LONGEST_NOTEBOOK if path.suffix == ".ipynb" else LONGEST_SCRIPT
    source = read_source(path, _text(path, bounded.read_bytes(path, longest, REMEDY)))
    if path.suffix not in SCRIPTS and not _is_script(source):
        raise validate.invalid_input(str(path), "a text of another kind", "a script", REMEDY)
    return check_script(source, dataset_size=dataset_size)


def check_script(source: Source, *, dataset_size: int | None = None) -> Report:
    """Read a script and say which mistakes it shows."""
    try:
        script = Reader(source).read()
        script.records = dataset_size
        found = {code: list(find(script)) for code, find in rules.FINDS.items()}
    except RecursionError:
        raise validate.invalid_input(
            source.path, "nested too deeply", "a script that can be followed", "make it simpler"
        ) from None
    told: dict[tuple[float, str, str], tuple[Finding, bool]] = {}
    for code, at, sentence in ((code, *each) for code, places in found.items() for each in places):
        if at.place is not None:
            where, line = at.place
            shown, place = line if where is source else None, str(at.place)
            finding = Finding(code, sentence, shown, place)
            key = (shown or math.inf, code, place)  # those in other files at the end
            told.setdefault(key, (finding, where.sets_aside(code, line)))
    ordered = [told[key] for key in sorted(told)]
    return Report(
        path=source.path,
        kind="notebook" if source.cells else "script",
        findings=tuple(finding for finding, aside in ordered if not aside),
        suppressed=tuple(finding for finding, aside in ordered if aside),
        unresolved=tuple(dict.fromkeys(_unclear(script))),
        rules_run=tuple(found),
        monitored=any(f"{name}.".startswith("dprime.monitor.") for name in script.libraries),
    )


def _unclear(script: Script) -> Iterator[str]:
    """What could not be followed, in sentences."""
    source = script.source
    if script.cut_short:
        yield "The script is too long to be followed to its end."
    for cell in source.skipped:
        yield f"Cell {cell} is no Python and was left out."
    for event in script.trainings:
        for name, word in (("module", "model"), ("data_loader", "loader")):
            given = event.get(name).each
            if not given or any(each.assumed for each in given):
                yield f"The {word} that make_private gets in {event.place} could not be followed."
        if any(from_elsewhere(part) for m in event.get("module").each for part in m.parts()):
            yield f"Layers of the model that is made private in {event.place} come from elsewhere."
    for what in rules.unconfirmed(script):
        yield f"Reading the script could not confirm {what}."
    for line, codes in source.ignored.items():
        for code in sorted(codes - set(RULES)):
            yield f"The comment in {source.place(line)} names {code}, which is no code."


def _is_script(source: Source) -> bool:
    """Whether a text with another ending can be read as Python and uses some library."""
    try:
        tree = source.tree
    except ValueError:
        return False
    return any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree))


def _text(path: Path, content: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode("utf-8-sig" if path.suffix == ".ipynb" else encoding)
    except (UnicodeDecodeError, SyntaxError):
        text = "\0"
    if "\0" in text:
        raise validate.invalid_input(str(path), "a binary file of another kind", "a text", REMEDY)
    return text
