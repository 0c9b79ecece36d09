"""The papers' pages: prose from `docs/papers`, with tables and pictures of the stored results.

    docs/papers/NAME.md (prose, {{ figure1 }}) + papers/NAME/results.json ──► page and pictures

mkdocs calls this file when it builds the documents. It needs the standard library and vl-convert
only, so that documents can be built without anything that measures.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs" / "papers"
PAPERS = ("bernau", "mosaicrown", "nasr", "thudi", "cherubin")

Basis = Literal["formula", "data", "stand-in", "not at hand"]
"""What a claim rests on: a formula, the paper's own data, other data in their place; or it is about
a part of the paper that is not at hand."""

VERDICTS: Mapping[Basis, tuple[str, str, str]] = {
    "formula": ("agrees", "differs", "undecided"),
    "data": ("agrees", "differs", "undecided"),
    "stand-in": ("comparable", "not comparable", "undecided"),
    "not at hand": ("as expected", "not as expected", "undecided"),
}
"""By what a claim rests on: where the interval lies within the range, outside of it, or neither."""

KINDS: Mapping[Basis, str] = {
    "formula": "computed from a formula",
    "data": "measured on the same data",
    "stand-in": "measured on other data in their place",
    "not at hand": "of a part of the paper that is not at hand",
}

NOTHING = 1e-9
"""The end of a range that leaves out 0 and nothing else."""

MARK = re.compile(r"^(.*)\{\{ ([\w ]+) \}\}(.*)$", re.MULTILINE)
"""The place of something that is built: an entry's results, or "counts"."""

Values = Mapping[str, Any]


def on_files(files: Any, config: Any) -> Any:
    """Mkdocs asks which files there are: the pictures are added."""
    from mkdocs.structure.files import File  # noqa: PLC0415  only mkdocs calls this

    for paper in PAPERS:
        for name in pictures_of(paper):
            place = f"papers/figures/{paper}-{name}.svg"
            files.append(File.generated(config, place, content=svg(paper, name)))
    return files


def on_page_markdown(markdown: str, page: Any, **others: Any) -> str:
    """Mkdocs has read a page: the papers' ones are filled."""
    folder, _, name = str(page.file.src_uri).partition("/")
    return filled(markdown, name.removesuffix(".md")) if folder == "papers" else markdown


def pages() -> dict[str, str]:
    return {name: filled((DOCS / f"{name}.md").read_text(), name) for name in ("index", *PAPERS)}


@cache
def stored(paper: str) -> dict[str, Any]:
    """A paper's results by entry, and how its pictures look."""
    found: dict[str, Any] = json.loads((HERE / paper / "results.json").read_text())
    return found


def pictures_of(paper: str) -> dict[str, Values]:
    """All of a paper's pictures by name, as they are stored."""
    return {
        name: picture
        for result in stored(paper)["results"].values()
        for name, picture in result["figures"].items()
    }


@cache
def svg(paper: str, name: str) -> str:
    """A stored picture, drawn; one image with a title and a description."""
    import vl_convert  # noqa: PLC0415  takes long

    picture = pictures_of(paper)[name]
    drawn = str(vl_convert.vegalite_to_svg({**picture["spec"], **stored(paper)["look"]}))
    words = (("title", picture["title"]), ("desc", picture["spec"]["description"]))
    told = "".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in words)
    head, _, rest = drawn.partition(">")
    return f'{head} role="img">{told}{rest}'


def filled(markdown: str, page: str) -> str:
    """A page with what is built in its places: "counts", a "row" of counts, or an entry."""

    def built(found: re.Match[str]) -> str:
        before, name, after = found.groups()
        kind, _, paper = name.partition(" ")
        text = counts(page) if kind == "counts" else row(paper) if paper else section(page, name)
        return f"{before}{text}{after}"

    return MARK.sub(built, markdown)


def counted(paper: str) -> Counter[tuple[str, str]]:
    """How many of a paper's claims rest on what, with each verdict."""
    results = stored(paper)["results"].values()
    return Counter(
        (claim["basis"], claim["verdict"]) for result in results for claim in result["claims"]
    )


def row(paper: str) -> str:
    """A paper's counts in the table of all."""
    found = counted(paper)
    cells = []
    for basis, words in VERDICTS.items():
        numbers = [found[basis, word] for word in (words[:2] if basis == "formula" else words)]
        cells.append(", ".join(map(str, numbers)) if any(numbers) else "")
    return " | ".join([str(len(stored(paper)["results"])), *cells])


def counts(paper: str) -> str:
    """A paper's counts in words."""

    def verb(word: str, count: int) -> str:
        if word in ("agrees", "differs"):
            return word if count == 1 else word.removesuffix("s")
        return f"is {word}" if count == 1 else f"are {word}"

    found = counted(paper)
    lines = []
    for basis, words in VERDICTS.items():
        numbers = {word: found[basis, word] for word in words if found[basis, word]}
        if numbers:
            told = ", ".join(f"{count} {verb(word, count)}" for word, count in numbers.items())
            lines.append(f"- {sum(numbers.values())} {KINDS[basis]}: {told}.")
    return "\n".join([f"{found.total()} rows, by [the rule](index.md) for all papers:", "", *lines])


def section(paper: str, entry: str) -> str:
    """One table or figure: every claim, reasons, tables, pictures, and how they were made."""
    result = stored(paper)["results"][entry]
    claims = result["claims"]
    head = ("what", "published", "range", "ours", "verdict")
    blocks = [_table(head, map(_claim, claims), [":---", ":---", "---:", "---:", ":---"])]
    blocks.append([f"- **{claim['what']}:** {claim['why']}" for claim in claims if claim["why"]])
    for table in result["tables"]:
        sides = [":---", *["---:"] * (len(table["head"]) - 1)]
        blocks += [[f"{table['title']}:"], _table(table["head"], table["rows"], sides)]
    for name, picture in result["figures"].items():
        blocks.append([f"![{picture['title']}](figures/{paper}-{name}.svg)"])
    blocks.append([f"{_made(paper, result)}: `python -m papers {paper}/{entry}`."])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], sides: Sequence[str]) -> list[str]:
    lines = [_cells(row) for row in rows]
    return [_cells(head), _cells(sides), *lines] if lines else []


def _cells(values: Sequence[str]) -> str:
    return "| " + " | ".join(value.replace("|", "\\|") for value in values) + " |"


def _claim(claim: Values) -> tuple[str, ...]:
    ours = _number(claim["ours"])
    if claim["low"] != claim["high"]:
        ours += f" ({_number(claim['low'])} to {_number(claim['high'])})"
    return claim["what"], claim["published"], _range(claim), ours, f"**{claim['verdict']}**"


def _range(claim: Values) -> str:
    """In which a claim agrees."""
    least, most = claim["least"], claim["most"]
    if least is None:
        return "below 0" if -NOTHING <= most < 0 else f"at most {_number(most)}"
    if most is None:
        return "above 0" if 0 < least <= NOTHING else f"at least {_number(least)}"
    return f"{_number(least)} to {_number(most)}"


def _number(value: float | None) -> str:
    return "open" if value is None else f"{value:.4g}"


def _made(paper: str, result: Values) -> str:
    """How much was done, where, and in what time."""
    kept, size = result["kept"], {"full": "Full repetitions", "quick": "Quick version"}
    done = kept or result
    seconds = done["seconds"]
    taken = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    taken = "less than a second" if seconds < 1 else taken
    if all(claim["low"] == claim["high"] for claim in result["claims"]):
        return f"Computed in {taken} ({done['device']})"
    of = f", from trainings in `papers/{paper}/raw.json`" if kept else ""
    return f"{size[result['size']]}{of}, {taken} ({done['device']}; seed {done['seed']})"
