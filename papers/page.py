"""The pages in the documents: the printed value beside ours, written from the results alone.

    python -m papers.page    # docs/papers/*.md

Nothing in them is typed by hand but the words of `PAPERS` and the scripts' own descriptions. A test
fails where a page is not what its results give.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from papers.paper import HERE, Basis, Paper, Result
from papers.reproduce import WORDS

DOCS = HERE.parent / "docs" / "papers"

KINDS: Mapping[Basis, str] = {
    "formula": "computed from a formula",
    "data": "measured on the same data",
    "stand-in": "measured on other data in their place",
    "not at hand": "of a part of the paper that is not at hand",
}
"""What rows rest on, in words."""

PAPERS: tuple[Paper, ...] = tuple(
    import_module(f"papers.{name}").PAPER
    for name in ("bernau", "mosaicrown", "nasr", "thudi", "cherubin")
    if (HERE / name / "__init__.py").exists()
)

RULE = """\
The rule was settled before anything was measured. A number that a paper measured has a range of
20 % around the printed value; one that follows from a formula has what rounds to the printed
digits; a statement has what it says, such as "above 0". Where our 95 % interval lies within the
range, it **agrees**; where it lies outside, it **differs**; everything else is **undecided**. What
a paper measured by chance has an error of its own, which the rule leaves out: where it matters, the
reason below a table says so.

Rows of four kinds are counted apart. Those **computed from a formula** show that a formula was read
as it is meant, and nothing about trainings. Those **measured on the same data** make an experiment
again, often with fewer records or other settings, which each page names. What is **measured on
other data in their place** can be **comparable** with the paper or not; it cannot agree with it.
Rows about **a part of a paper that is not at hand** say what we expected of it, and whether that
came.
Rows that could not have failed, and rows that counted a number a second time, were taken out.

How a sentence of a paper becomes a number and a range is a reading, ours, and the tables show it.
Some readings were changed after a review, with results at hand: ranges that nothing could have met
or missed, and shares of trials that have models in common.
"""

HOW = """\
What their formulas get wrong is on a page of its own: [Errata](../errata.md).

## Make them again

`make paper-NAME` makes the quick versions of one publication, `python -m papers NAME --full
--device cuda` those with the paper's repetitions, `python -m papers` all of them. `--only figure3`
makes one, `--seed 5` draws other random numbers. The data are found in the folder that
`DPRIME_DATA` names, as [everywhere](../data.md). Results are JSON files with settings, seed,
versions and time in `papers/NAME/results`; trainings that take long on a GPU are kept in
`papers/NAME/raw`, where full versions find them again. These pages are written from the results.
To cite a number, name the release, the file of results and the claim.
"""


def main() -> None:
    DOCS.mkdir(exist_ok=True)
    for name, text in pages().items():
        (DOCS / name).write_text(text)


def pages() -> dict[str, str]:
    """The text of every page by its name."""
    return {"index.md": index(PAPERS), **{f"{each.name}.md": page(each) for each in PAPERS}}


def pictures_of(paper: Paper) -> list[str]:
    """Names of its pictures."""
    return [name for result in paper.results().values() for name in result["figures"]]


def index(papers: Sequence[Paper]) -> str:
    """All papers in one table."""
    lines = [
        "# The papers, reproduced", "",
        "dprime comes from five publications. Tables and figures of theirs are made again with "
        "dprime itself, each by one script in `papers/`, and what was printed stands beside what "
        "was found. Much of it is made with other data, or with parts of the data, and of one "
        "paper most is not at hand: the last column says so.", "",
        RULE,
        "| publication | scripts | formula: agrees, differs "
        "| same data: agrees, differs, undecided "
        "| other data: comparable, not, undecided | not at hand: as expected, not, undecided "
        "| quick | left out or replaced |",
        "| :--- | ---: | ---: | ---: | ---: | ---: | ---: | :--- |",
    ]  # fmt: skip
    for paper in papers:
        results = paper.results()
        counts = counted(results.values())
        numbers = " | ".join(_tally(counts, basis) for basis in KINDS)
        quick = _seconds(sum(each["seconds"] for each in paper.results("-quick").values()))
        link = f"[{paper.short}]({paper.name}.md)"
        lines.append(f"| {link} | {len(results)} | {numbers} | {quick} | {paper.left_out} |")
    lines += ["", HOW]
    return "\n".join(lines)


def counted(results: Any) -> Counter[tuple[str, str]]:
    """How many claims rest on what, with each verdict."""
    claims = (claim for result in results for claim in result["claims"])
    return Counter((claim["basis"], claim["verdict"]) for claim in claims)


def _tally(counts: Counter[tuple[str, str]], basis: Basis) -> str:
    """The counts of one kind of rows, in the order of their verdicts."""
    words = WORDS[basis][:2] if basis == "formula" else WORDS[basis]
    numbers = [counts[basis, word] for word in words]
    return ", ".join(map(str, numbers)) if any(numbers) else ""


def page(paper: Paper) -> str:
    """One publication."""
    results = paper.results()
    counts = counted(results.values())
    lines = [f"# {paper.short}", "", paper.citation, "", paper.words.strip(), ""]
    lines += [f"{counts.total()} rows, by [the rule](index.md) for all papers:", ""]
    lines += [f"- {_told(counts, basis)}" for basis in KINDS if _tally(counts, basis)]
    lines.append("")
    for script, result in results.items():
        lines += [*section(paper, script, result), ""]
    return "\n".join(lines).rstrip() + "\n"


def _told(counts: Counter[tuple[str, str]], basis: Basis) -> str:
    """The counts of one kind of rows, in words."""
    numbers = {word: counts[basis, word] for word in WORDS[basis]}
    listed = ", ".join(f"{count} {_verb(word, count)}" for word, count in numbers.items() if count)
    return f"{sum(numbers.values())} {KINDS[basis]}: {listed}."


def _verb(verdict: str, count: int) -> str:
    if verdict not in ("agrees", "differs"):
        return f"is {verdict}" if count == 1 else f"are {verdict}"
    return verdict if count == 1 else verdict.removesuffix("s")


def section(paper: Paper, script: str, result: Result) -> list[str]:
    """One table or figure: what was done, every claim, reasons, pictures."""
    lines = [f"## {result['title']}", "", described(paper.folder / f"{script}.py"), ""]
    if result["claims"]:
        lines += [
            "| what | published | range | ours | verdict |",
            "| :--- | :--- | ---: | ---: | :--- |",
            *(_line(claim) for claim in result["claims"]),
        ]
    reasons = [
        f"- **{claim['what']}:** {claim['why']}" for claim in result["claims"] if claim["why"]
    ]
    if reasons:
        lines += ["", *reasons]
    for table in result.get("tables", []):
        lines += ["", f"{table['title']}:", "", *_table(table)]
    for name, title in result["figures"].items():
        lines += [*([""] if lines[-1] else []), f"![{title}](figures/{paper.name}-{name}.svg)"]
    lines += ["", f"{_made(paper, result)}: `papers/{paper.name}/{script}.py`."]
    return lines


def _table(table: Mapping[str, Any]) -> list[str]:
    """Its first column has words, the others numbers."""
    head = table["head"]
    lines = [_cells(head), _cells([":---", *["---:"] * (len(head) - 1)])]
    return lines + [_cells(row) for row in table["rows"]]


def _cells(values: Sequence[Any]) -> str:
    return "| " + " | ".join(str(value).replace("|", "\\|") for value in values) + " |"


def _made(paper: Paper, result: Result) -> str:
    """How much was done, where, and in what time."""
    if all(claim["low"] == claim["high"] for claim in result["claims"]):
        return f"Computed in {_seconds(result['seconds'])} ({result['device']})"
    size = {"full": "Full repetitions", "quick": "Quick version"}[result["size"]]
    kept = result.get("kept")
    if kept:
        size += f", from trainings in `papers/{paper.name}/raw`"
    done = kept or result
    return f"{size}, {_seconds(done['seconds'])} ({done['device']}; seed {done['seed']})"


def described(script: Path) -> str:
    """A script's own words, without its title."""
    doc = ast.get_docstring(ast.parse(script.read_text())) or ""
    return doc.partition("\n")[2].strip()


def _line(claim: Mapping[str, Any]) -> str:
    interval = ""
    if claim["low"] != claim["high"]:
        low, high = (_number(claim[end]) for end in ("low", "high"))
        interval = f" ({low} to {high})"
    ours = _number(claim["ours"]) + interval
    return _cells(
        (claim["what"], claim["published"], _range(claim), ours, f"**{claim['verdict']}**")
    )


NOTHING = 1e-9
"""The end of a range that leaves out 0 and nothing else."""


def _range(claim: Mapping[str, Any]) -> str:
    """Of the published number or statement."""
    least, most = (claim[end] for end in ("least", "most"))
    if least is None:
        return "below 0" if -NOTHING <= most < 0 else f"at most {_number(most)}"
    if most is None:
        return "above 0" if 0 < least <= NOTHING else f"at least {_number(least)}"
    return f"{_number(least)} to {_number(most)}"


def _number(value: float | None) -> str:
    return "open" if value is None else f"{value:.4g}"


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return "less than a second"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


if __name__ == "__main__":
    main()
