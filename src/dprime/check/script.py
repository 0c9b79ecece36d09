"""A script or a notebook, read and judged."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dprime import validate
from dprime.check.doubts import doubts
from dprime.check.looks import LOOKS
from dprime.check.report import Report
from dprime.check.rules import RULES, Finding
from dprime.check.source import Source
from dprime.check.trace import Trace
from dprime.check.values import Loader, Model, options
from dprime.check.walk import Walker

SAVED_ONLY = ("DP409",)
"""Codes that only a saved run can show."""

OTHERS = {
    "tensorflow_privacy": "TensorFlow Privacy",
    "jax_privacy": "JAX Privacy",
    "dp_accounting": "dp_accounting",
    "diffprivlib": "diffprivlib",
    "fastDP": "fastDP",
    "private_transformers": "private-transformers",
    "objax.privacy": "Objax",
}
"""Libraries for private training that this check does not read."""


def check_script(source: Source, *, records: int | None = None) -> Report:
    """Read a script and say which mistakes it shows."""
    tree = source.tree()
    try:
        trace = Walker().read(tree)
    except RecursionError:
        raise validate.invalid_input(
            source.path, "nested too deeply", "a script that can be followed", "make it simpler"
        ) from None
    found = list(dict.fromkeys([*_nothing_private(trace), *_looks(trace, records)]))
    placed = [
        replace(f, place=source.place(f.line), sentence=_in_cells(f.sentence, source))
        for f in _distinct(found)
    ]
    kept, aside = _sorted_out(placed, source, tree)
    return Report(
        path=source.path,
        kind="notebook" if source.cells else "script",
        findings=tuple(kept),
        set_aside=tuple(aside),
        unclear=(*_unclear(trace, source), *_unknown_codes(source)),
        looked_for=tuple(code for code in RULES if code not in SAVED_ONLY),
        monitored=any(_is_part(name, "dprime.monitor") for name in trace.names),
    )


def _in_cells(sentence: str, source: Source) -> str:
    """Lines that a sentence names, by cell where the source is a notebook."""
    if not source.cells:
        return sentence
    apart = re.sub(r"\blines (\d+) and (\d+)", r"line \1 and line \2", sentence)
    return re.sub(r"\bline (\d+)", lambda found: source.place(int(found[1])), apart)


def _looks(trace: Trace, records: int | None) -> Iterator[Finding]:
    for look in LOOKS:
        yield from look(trace, records)


def _distinct(found: Iterable[Finding]) -> list[Finding]:
    """One finding for each code and line, in the order of the lines."""
    first: dict[tuple[int, str], Finding] = {}
    for finding in found:
        first.setdefault((finding.line or 0, finding.code), finding)
    return [first[key] for key in sorted(first)]


def _nothing_private(trace: Trace) -> Iterator[Finding]:
    if trace.has("private", "by hand", "clip") and not _only_clips(trace):
        return
    engines = list(trace.of("engine"))
    given = trace.has("engine given")
    if engines and not given:
        sentence = "A PrivacyEngine is made, but make_private is not called in this file."
        yield Finding("DP002", engines[0].line, sentence)
        return
    other = [OTHERS[o] for name in sorted(trace.names) for o in OTHERS if _is_part(name, o)]
    if given:
        sentence = "No private training was found: the engine is handed to code in another file."
    elif other:
        sentence = f"No private training was found: this check reads Opacus, not {other[0]}."
    else:
        sentence = "No private training was found."
    yield Finding("DP001", 1, sentence)


def _only_clips(trace: Trace) -> bool:
    """Clipping alone is no private training; with noise by hand it is meant to be one (DP304)."""
    if trace.has("private", "by hand"):
        return False
    return not any(finding.code == "DP304" for finding in _looks(trace, None))


def _is_part(name: str, library: str) -> bool:
    return name == library or name.startswith(f"{library}.")


def _unclear(trace: Trace, source: Source) -> Iterator[str]:
    if trace.cut_short:
        yield "The script is too long to be followed to its end."
    kinds = {"module": (Model, "model"), "data_loader": (Loader, "loader")}
    for event in trace.of("private"):
        where = source.place(event.line)
        for name, (kind, word) in kinds.items():
            given = options(event.arguments.get(name))
            if not given or not all(isinstance(each, kind) for each in given):
                yield f"The {word} that make_private gets in {where} could not be followed."
        for model in options(event.arguments.get("module")):
            if isinstance(model, Model) and not model.seen:
                yield f"Layers of the model that is made private in {where} come from elsewhere."
    for doubt in dict.fromkeys(doubts(trace)):
        yield _in_cells(f"Reading could not confirm {doubt}.", source)


def _unknown_codes(source: Source) -> Iterator[str]:
    for line, codes in source.ignored().items():
        for code in sorted(codes - set(RULES)):
            yield f"The comment in {source.place(line)} names {code}, which is no code."


def _sorted_out(
    found: list[Finding], source: Source, tree: ast.Module
) -> tuple[list[Finding], list[Finding]]:
    """Those that stand, and those that a comment on the same statement sets aside."""
    ignored = source.ignored()
    kept: list[Finding] = []
    aside: list[Finding] = []
    for finding in found:
        lines = _statement_lines(tree, finding.line or 1)
        named = [ignored[line] for line in lines if line in ignored]
        is_named = any(not codes or finding.code in codes for codes in named)
        (aside if is_named else kept).append(finding)
    return kept, aside


def _statement_lines(tree: ast.Module, line: int) -> range:
    """The lines of the statement that a line belongs to, without the body of a loop or an if."""
    best = range(line, line + 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or line
            if node.lineno <= line <= end:
                best = range(node.lineno, end + 1)
    return best
