"""The words of audits in a TOML file: of one, or of several and what they have in common.

trials = 500            # of all of them
[claim]
epsilon = 4.0
[[audits]]
name = "one"            # of the run's file, too
adversary = "gradient"
[[audits]]
name = "other"
adversary = "di"
claim.epsilon = 2.0     # instead of 4
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dprime import validate
from dprime.runs.run import Run

SEVERAL = "audits"
"""The list of a file that describes several audits."""

RUN_NAME = re.compile(r"[^\W_][\w ,.=-]*")


def words_in(path: str | Path) -> dict[str, Any]:
    """The words in a TOML file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        wanted = f"a file to read ({error.strerror})"
        remedy = "give the path of a TOML file"
        raise validate.invalid_value("settings", str(path), wanted, remedy) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise validate.invalid_value("settings", str(path), "TOML", str(error)) from None


def audits_in(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The words of each audit by its name, from those of a file of several.

    What stands above the audits is common to them; in its own table each says what it has instead.

    >>> audits_in({"trials": 9, "audits": [{"name": "a"}, {"name": "b", "trials": 2}]})
    {'a': {'trials': 9}, 'b': {'trials': 2}}
    """
    listed = values[SEVERAL]
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise validate.invalid_value(
            SEVERAL, listed, "a list of tables", f"begin each with [[{SEVERAL}]]"
        )
    common = {name: value for name, value in values.items() if name != SEVERAL}
    found: dict[str, dict[str, Any]] = {}
    for each in listed:
        own = dict(each)
        name = own.pop("name", "")
        if not isinstance(name, str) or not RUN_NAME.fullmatch(name):
            wanted = "letters, digits, spaces and , . = -, the first a letter or a digit"
            raise validate.invalid_value("name", name, wanted, f"give one in each of [[{SEVERAL}]]")
        if name in found:
            raise validate.invalid_value(
                "name", name, f"of one of [[{SEVERAL}]] only", "give another"
            )
        found[name] = _over(common, own)
    return found


def _over(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of one audit override the common ones, in tables name by name."""
    merged = dict(common)
    for name, value in own.items():
        before = merged.get(name)
        both = isinstance(before, Mapping) and isinstance(value, Mapping)
        merged[name] = {**before, **value} if both else value  # type: ignore[dict-item]
    return merged


def path_of(folder: Path, name: str) -> Path:
    """The run file of an audit in the folder."""
    return folder / f"{name}.run"


def seed_of(folder: Path, name: str) -> dict[str, int]:
    """The seed that a run was begun with, for settings that name none; nothing where it is new."""
    path = path_of(folder, name)
    if not path.exists():
        return {}
    with Run.open(path, verify=False) as run:
        return {"seed": run.seed}


def check_names(name: str, given: Any, known: Iterable[str] | None = None) -> None:
    """Refuse what is no table, and what is not known, with the name that was likely meant."""
    names_known = None if known is None else tuple(known)
    if not isinstance(given, Mapping):  # a file may hold anything
        remedy = (
            f"give some of {', '.join(names_known)}" if names_known else "give names and values"
        )
        raise validate.invalid_value(name, given, "a table of names and values", remedy)
    for one in given:
        if names_known is not None and one not in names_known:
            near = difflib.get_close_matches(one, names_known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names_known)}."
            raise validate.InputError(f"{name} must be known names, but it is {one!r}: {hint}")
