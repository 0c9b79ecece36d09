"""The tables of `docs/benchmarks.md`, made from the results alone: nothing is computed elsewhere.

A table stands between `<!-- begin NAME -->` and `<!-- end NAME -->`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

Results = Mapping[str, Any]

PEERS = ("dp_accounting", "opake", "prv_accountant", "riskcal")
NAMES = {"dp_accounting": "dp_accounting", "prv_accountant": "prv_accountant (upper end)"}
REAL_SHORTFALL = 1e-6
"""Below the reference by less than this is the reference's own error."""


def render(page: str, results: Results) -> str:
    """The page with every table replaced."""
    return fill(page, {name: make(results) for name, make in TABLES.items()})


def fill(page: str, tables: Mapping[str, str]) -> str:
    """The page with each text put between the two markers of its name."""
    for name, table in tables.items():
        block = f"<!-- begin {name} -->\n{table.strip()}\n<!-- end {name} -->"
        pattern = rf"<!-- begin {name} -->\n.*?<!-- end {name} -->"
        page, count = re.subn(pattern, block.replace("\\", r"\\"), page, flags=re.DOTALL)
        if count != 1:
            raise ValueError(f"the page must have the markers of {name} once, but has {count}.")
    return page


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[str] = ()) -> str:
    """A Markdown table; the columns named in `words` are aligned left."""
    rule = [" :--- |" if name in words else " ---: |" for name in head]
    lines = ["| " + " | ".join(head) + " |", "|" + "".join(rule)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def _training(setting: Mapping[str, Any]) -> list[str]:
    return [f"{setting['noise']:g}", f"{setting['rate']:.3g}", f"{setting['steps']:,}"]


def _time(outcome: Mapping[str, Any] | None) -> str:
    if outcome is None:
        return ""
    if outcome["status"] != "ok":
        return "failed"
    seconds = float(outcome["seconds"])
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def _ratio(peer: Mapping[str, Any] | None, ours: Mapping[str, Any]) -> str:
    if peer is None or peer["status"] != "ok" or ours["status"] != "ok":
        return ""
    return _times(peer["seconds"] / ours["seconds"])


def _times(ratio: float) -> str:
    return f"{ratio:.2g}×" if ratio < 10 else f"{ratio:,.0f}×"


def _excess(row: Mapping[str, Any], tool: str, metric: str) -> str:
    """How far a tool's value lies above the reference; bold where it lies below."""
    outcome, truth = row.get(tool), row["reference"]["values"].get(metric)
    if outcome is None:
        return ""
    if outcome["status"] != "ok":
        return "failed"
    value = outcome["values"].get(metric)
    if value is None or truth is None:
        return "none"
    share = value / truth - 1.0
    text = _percent(100.0 * share)
    return f"**{text}**" if share < -REAL_SHORTFALL else text


def _percent(percent: float) -> str:
    digits = f"{percent:+,.0f}" if abs(percent) >= 10 else f"{percent:+.2g}"
    return f"{digits} %".replace("-", "−")


def _number(row: Mapping[str, Any], tool: str, metric: str, digits: int = 5) -> str:
    outcome = row.get(tool) or {}
    value = outcome.get("values", {}).get(metric)
    return "none" if value is None else f"{value:.{digits}g}"


def _machine(results: Results) -> str:
    machine = results["machine"]
    packages = ", ".join(f"{name} {found}" for name, found in machine["packages"].items())
    run = "A **quick trial**: too few settings to judge by" if results["quick"] else "The full run"
    return (
        f"{run}, {machine['date']}, `{machine['command']}`, {machine['run_s']} s in all. "
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['system']}, Python {machine['python']}; {packages}. "
        f"Load before the run {machine['load_before']}, threads of the numerical libraries: "
        f"{_threads(machine['threads'])}."
    )


def _threads(variables: Mapping[str, str]) -> str:
    chosen = [f"{name}={value}" for name, value in variables.items() if value != "default"]
    return ", ".join(chosen) or "default"


QUESTIONS = {"riskcal": "advantage and one TPR"}


def _summary(results: Results) -> str:
    speed = results["speed"]
    rows = [
        [
            peer,
            QUESTIONS.get(peer, "one ε"),
            f"{found['answered']} of {found['asked']}",
            *(
                _times(found[key]) if found["answered"] else "none"
                for key in ("geometric_mean", "median", "smallest", "largest")
            ),
        ]
        for peer, found in speed["summary"].items()
    ]
    slowest = speed["slowest_dprime_s"]
    answered = sum(row["dprime"]["status"] == "ok" for row in speed["rows"])
    head = ["peer", "its question", "answered", "geometric mean", "median", "smallest", "largest"]
    return (
        f"dprime answered {answered} of {len(speed['rows'])} settings, the slowest in "
        f"{1000 * slowest:.3g} ms. A peer's time over dprime's, where both answered:\n\n"
        + _table(head, rows, words=("peer", "its question"))
    )


def _speed(results: Results) -> str:
    peers = [peer for peer in PEERS if any(peer in row for row in results["speed"]["rows"])]
    head = ["noise", "rate", "steps", "dprime, everything"]
    for peer in peers:
        head += [peer, "ratio"]
    rows = []
    for row in results["speed"]["rows"]:
        cells = [*_training(row["setting"]), _time(row["dprime"])]
        for peer in peers:
            cells += [_time(row.get(peer)), _ratio(row.get(peer), row["dprime"])]
        rows.append(cells)
    return _table(head, rows)


def _excess_table(metric: str, tools: Sequence[str]) -> Callable[[Results], str]:
    """How far above the reference each tool lies, on the settings that the last tool was asked."""

    def make(results: Results) -> str:
        head = ["noise", "rate", "steps", "reference", *(NAMES.get(tool, tool) for tool in tools)]
        rows = [
            [
                *_training(row["setting"]),
                _number(row, "reference", metric),
                *(_excess(row, tool, metric) for tool in tools),
            ]
            for row in results["speed"]["rows"]
            if tools[-1] in row
        ]
        return _table(head, rows)

    return make


WAYS = ("dprime", "riskcal", "riskcal, narrow range", "opake")


def _choosing(target: str) -> Callable[[Results], str]:
    """One line for each goal and tool."""

    def make(results: Results) -> str:
        head = ["rate", "steps", "ceiling", "tool", "time", "ratio", "noise found", "certified"]
        rows = []
        for row in results["choosing"][target]:
            goal = row["goal"]
            cells = [f"{goal['rate']:.3g}", f"{goal['steps']:,}", f"{goal['ceiling']:g}"]
            rows += [[*cells, way, *_choice(row, way)] for way in WAYS if way in row]
        return _table(head, rows, words=("tool",))

    return make


def _choice(row: Mapping[str, Any], way: str) -> list[str]:
    """Time, ratio, noise, and its certified risk: bold where the exact risk breaks the ceiling."""
    outcome = row[way]
    certified = _number(row, way, "certified")
    if outcome["values"].get("exact", 0.0) > row["goal"]["ceiling"]:
        certified = f"**{certified}**"
    ratio = "" if way == "dprime" else _ratio(outcome, row["dprime"])
    return [_time(outcome), ratio, _number(row, way, "noise"), certified]


def _memory(results: Results) -> str:
    rows = []
    tools = ("dprime", "dp_accounting", "opake")
    for row in results["memory"]["peak"]:
        cells = _training(row["setting"])
        for tool in tools:
            found = row[tool]
            ok = found["status"] == "ok"
            cells.append(
                f"{found['peak_mib']:.0f} ({found['peak_mib'] - found['loaded_mib']:+.0f})"
                if ok
                else "failed"
            )
        rows.append(cells)
    return _table(["noise", "rate", "steps", *tools], rows)


def _imports(results: Results) -> str:
    rows = [
        [row["module"], f"{1000 * row['seconds']:.0f} ms" if row["status"] == "ok" else "failed"]
        for row in results["memory"]["imports"]
    ]
    return _table(["module", "import"], rows, words=("module",))


def _failures(results: Results) -> str:
    counted = Counter(_all_failures(results))
    if not counted:
        return "No call failed."
    return "\n".join(
        f"- {tool}, {where}: {reason}" + (f" ({count} times)" if count > 1 else "")
        for (tool, where, reason), count in sorted(counted.items())
    )


def _all_failures(results: Results) -> Iterator[tuple[str, str, str]]:
    places = {
        "speed": results["speed"]["rows"],
        "choosing for an advantage": results["choosing"]["advantage"],
        "choosing for a TPR": results["choosing"]["tpr"],
        "memory": results["memory"]["peak"],
        "import": [{row["module"]: row} for row in results["memory"]["imports"]],
    }
    for where, rows in places.items():
        for row in rows:
            for tool, outcome in row.items():
                status = outcome.get("status", "ok")
                if status != "ok":
                    yield tool, where, _general(status.removeprefix("failed: "))


def _general(reason: str) -> str:
    """The reason without its numbers, so that the same failure counts as one."""
    return re.sub(r"\d[\d.e+\-]*", "…", reason)


TABLES: Mapping[str, Callable[[Results], str]] = {
    "machine": _machine,
    "summary": _summary,
    "speed": _speed,
    "advantage": _excess_table("advantage", ("dprime", "dp_accounting", "opake")),
    "epsilon": _excess_table("epsilon", ("dprime", "dp_accounting", "opake", "prv_accountant")),
    "tpr": _excess_table("tpr", ("dprime", "opake", "riskcal")),
    "choosing-advantage": _choosing("advantage"),
    "choosing-tpr": _choosing("tpr"),
    "memory": _memory,
    "imports": _imports,
    "failures": _failures,
}
