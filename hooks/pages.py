"""What the build adds to the documents: reference pages, commands, measured tables and charts."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "dprime"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from benchmarks import pages  # noqa: E402
from dprime.cli.commands import COMMANDS, imported  # noqa: E402
from dprime.option import Option  # noqa: E402

LOG = logging.getLogger("mkdocs.hooks.pages")

REFERENCE: Mapping[str, tuple[str, str]] = {
    "mechanisms": ("Mechanisms", "mechanisms.md"),
    "guarantees": ("Guarantees", "mechanisms.md"),
    "solve": ("Choosing", "choosing.md"),
    "metrics": ("Metrics", "meaning.md"),
    "comparison": ("Comparisons", "curve.md"),
    "consequences": ("Consequences", "consequences.md"),
    "estimates": ("Estimates", "meaning.md"),
    "bounds": ("Bounds", "errata.md"),
    "interop": ("Other libraries", "mechanisms.md"),
    "train": ("Training", "training.md"),
    "attack": ("Adversaries", "auditing.md"),
    "audit": ("Audit", "auditing.md lower-bounds.md planning.md"),
    "runs": ("Runs", "scaling.md"),
    "membership": ("Membership", "sampling.md frontier.md membership.md"),
    "monitor": ("Monitor", "monitor.md elsewhere.md"),
    "canaries": ("Canaries", "one-run.md"),
    "attributes": ("Attributes", "attributes.md"),
    "check": ("Check", "check.md"),
    "show": ("Figures, report, card", "charts.md report.md elsewhere.md"),
    "web": ("Explorer", "explorer.md"),
    "data": ("Data", "data.md dataset-sensitivity.md"),
    "accountant": ("Accountant", "accountant.md"),
    "privacy_loss": ("Privacy loss", "accountant.md"),
    "shapes": ("Shapes", "curve.md"),
}
"""A page for each module, or for a package: its title, and where it is explained."""

BESIDE = {
    "mechanisms": ("parameters",), "metrics": ("registry",), "comparison": ("table",),
    "shapes": ("halves",),
}  # fmt: skip
"""Modules on another one's page."""

WHOLE = ("attributes", "canaries", "web")
"""Packages of which every module is shown, for the derivations in them or for its addresses."""


PAGES = sorted((ROOT / "docs").glob("*.md"))
INCLUDED = re.compile(r"^# include (\S+)$", re.MULTILINE)
IMPORTED = re.compile(r"from dprime\.([\w.]+) import")
COMMANDS_HERE = "<!-- commands -->"
"""The place of the commands in docs/api/cli.md, which say themselves what they do."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The pages of the reference in the navigation, below those that stand there."""
    added = [{title: f"api/{name}.md"} for name, (title, _) in REFERENCE.items()]
    for part in config.nav or ():
        part.get("Reference", []).extend(added)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """All that a script draws or a rule writes."""
    made = {f"api/{name}.md": reference(name) for name in REFERENCE}
    made["schema/privacy-card-2.json"] = (SOURCE / "show" / "card-2.schema.json").read_text()
    for path, content in {**made, **pages.charts()}.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with all its tables and what it includes; a table that is stale is an error."""
    name = page.file.src_uri
    if name == "api/cli.md":
        return markdown.replace(COMMANDS_HERE, "\n".join(map(_section, COMMANDS)))
    if pages.page_filled(name, markdown, empty=False) != markdown:
        LOG.warning(f"{name} is not what its results say: run python -m benchmarks pages.")
    whole = pages.page_filled(name, markdown, empty=True)
    return INCLUDED.sub(lambda line: (ROOT / line[1]).read_text().rstrip(), whole)


def reference(name: str) -> str:
    """A page of the reference: what its modules' docstrings say."""
    title, explained = REFERENCE[name]
    links = [f"[{page.removesuffix('.md')}](../{page})" for page in explained.split()]
    text = f"# {title}\n\nExplained in {', '.join(links)}."
    if (SOURCE / name).is_dir():
        text += f" Import from `dprime.{name}`."
    return "\n\n".join([text, *(f"::: dprime.{module}" for module in modules(name))]) + "\n"


def modules(name: str) -> list[str]:
    """A module and those beside it; of a package what it exports or the documents import."""
    folder = SOURCE / name
    if not folder.is_dir():
        return [name, *BESIDE.get(name, ())]
    texts = [path.read_text() for path in (*folder.rglob("__init__.py"), *PAGES)]
    named = {each for text in texts for each in IMPORTED.findall(text)}
    paths = [path for path in sorted(folder.rglob("*.py")) if path.stem != "__init__"]
    dotted = [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in paths]
    return [each for each in dotted if each in named or name in WHOLE]


def _section(name: str) -> str:
    entry, command = COMMANDS[name], imported(name)
    examples = [f"dprime {name} {each}".strip() for each in entry.examples]
    lines = [f"## `dprime {name}`", "", f"{entry.help} [More](../{entry.page}).", ""]
    lines += ["```text", *examples, "```", ""]
    rows = [_argument(each) for each in command.params if each.param_type_name == "argument"]
    rows += [_row(option) for option in getattr(command.callback, "options", ())]
    if rows:
        lines += ["| | | |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def _argument(argument: Any) -> str:
    return f"| `{argument.display_name_raw}` | | {argument.help} |"


def _row(option: Option) -> str:
    metavar = f"`{option.kind.metavar}`" if option.kind.metavar else ""
    required = " Required." if option.required else ""
    return f"| `{option.flag}` | {metavar} | {option.line()}{required} |"
