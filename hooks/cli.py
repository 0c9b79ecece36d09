"""A hook of mkdocs: the commands in docs/api/cli.md, from the commands themselves."""

from __future__ import annotations

from typing import Any

from dprime.cli.commands import COMMANDS, imported
from dprime.option import Option

MARK = "<!-- commands -->"


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The page with a section for each command where the mark is."""
    if page.file.src_uri != "api/cli.md":
        return markdown
    return markdown.replace(MARK, "\n".join(map(_section, COMMANDS)))


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
