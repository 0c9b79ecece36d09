"""The tables of docs/benchmarks.md: dprime beside its peers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from benchmarks.tables import Column, Row, percent, short_time, table

SHORTFALL = 1e-6
"""Below the reference by less than this is the reference's own error."""

PEERS = ("dp_accounting", "opake", "prv_accountant", "riskcal")
SETTING: dict[str, Column] = {
    "noise": "{setting[noise]:g}", "rate": "{setting[rate]:.3g}", "steps": "{setting[steps]:,}",
}  # fmt: skip


def machine(found: Row) -> str:
    machine = found["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    run = "A **quick trial**: too few settings to judge by" if found["quick"] else "The full run"
    chosen = [f"{name}={each}" for name, each in machine["threads"].items() if each != "default"]
    return (
        f"{run}, {machine['date']}, `{machine['command']}`, {machine['run_s']} s in all. "
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['system']}, Python {machine['python']}; {packages}. "
        f"Load before the run {machine['load_before']}, threads of the numerical libraries: "
        f"{', '.join(chosen) or 'default'}."
    )


def _took(tool: str) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        if tool not in row:
            return ""
        return short_time(row[tool]["seconds"]) if row[tool]["status"] == "ok" else "failed"

    return cell


def _times(ratio: float) -> str:
    return f"{ratio:.2g}×" if ratio < 10 else f"{ratio:,.0f}×"


def _ratio(tool: str) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        both = [row.get(name, {"status": ""}) for name in (tool, "dprime")]
        if tool == "dprime" or any(each["status"] != "ok" for each in both):
            return ""
        return _times(both[0]["seconds"] / both[1]["seconds"])

    return cell


def _excess(tool: str, metric: str) -> Callable[[Row], str]:
    """How far a tool's value lies above the reference; bold where it lies below."""

    def cell(row: Row) -> str:
        outcome, truth = row.get(tool), row["reference"]["values"].get(metric)
        if outcome is None or outcome["status"] != "ok":
            return "" if outcome is None else "failed"
        value = outcome["values"].get(metric)
        if value is None or truth is None:
            return "none"
        share = value / truth - 1.0
        digits = "+,.0f" if abs(100.0 * share) >= 10 else "+.2g"
        text = percent(share, digits).replace("-", "−")
        return f"**{text}**" if share < -SHORTFALL else text

    return cell


def _value(tool: str, name: str) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        value = row.get(tool, {}).get("values", {}).get(name)
        return "none" if value is None else f"{value:.5g}"

    return cell


def summary(found: Row) -> str:
    speed = found["speed"]
    question = {"riskcal": "advantage and one TPR"}
    keys = ("geometric_mean", "median", "smallest", "largest")
    rows = [
        {"peer": peer, **each, **{k: _times(each[k]) if each["answered"] else "none" for k in keys}}
        for peer, each in speed["summary"].items()
    ]
    columns: dict[str, Column] = {
        "<peer": "{peer}",
        "<its question": lambda row: question.get(row["peer"], "one ε"),
        "answered": "{answered} of {asked}",
        **{key.replace("_", " "): f"{{{key}}}" for key in keys},
    }
    answered = sum(row["dprime"]["status"] == "ok" for row in speed["rows"])
    return (
        f"dprime answered {answered} of {len(speed['rows'])} settings, the slowest in "
        f"{1000 * speed['slowest_dprime_s']:.3g} ms. A peer's time over dprime's, where both "
        "answered:\n\n" + table(rows, columns)
    )


def speed(found: Row) -> str:
    rows = found["speed"]["rows"]
    columns = [*SETTING.items(), ("dprime, everything", _took("dprime"))]
    for peer in PEERS:
        if any(peer in row for row in rows):
            columns += [(peer, _took(peer)), ("ratio", _ratio(peer))]
    return table(rows, columns)


def excess(metric: str, *tools: str) -> Callable[[Row], str]:
    """How far above the reference each tool lies, on the settings that the last tool was asked."""
    names = {"prv_accountant": "prv_accountant (upper end)"}
    columns = SETTING | {"reference": _value("reference", metric)}
    columns |= {names.get(tool, tool): _excess(tool, metric) for tool in tools}
    return lambda found: table([row for row in found["speed"]["rows"] if tools[-1] in row], columns)


def choosing(target: str) -> Callable[[Row], str]:
    """One line for each goal and tool; bold where the exact risk breaks the ceiling."""

    def certified(row: Row) -> str:
        text, broken = (
            _value(row["way"], "certified")(row),
            row[row["way"]]["values"].get("exact", 0),
        )
        return f"**{text}**" if broken > row["goal"]["ceiling"] else text

    columns: dict[str, Column] = {
        "rate": "{goal[rate]:.3g}", "steps": "{goal[steps]:,}", "ceiling": "{goal[ceiling]:g}",
        "<tool": "{way}", "time": lambda row: _took(row["way"])(row),
        "ratio": lambda row: _ratio(row["way"])(row),
        "noise found": lambda row: _value(row["way"], "noise")(row), "certified": certified,
    }  # fmt: skip
    ways = ("dprime", "riskcal", "riskcal, narrow range", "opake")
    return lambda found: table(
        [row | {"way": way} for row in found["choosing"][target] for way in ways if way in row],
        columns,
    )


def memory(found: Row) -> str:
    def cell(row: Row, tool: str) -> str:
        if row[tool]["status"] != "ok":
            return "failed"
        peak, loaded = row[tool]["peak_mib"], row[tool]["loaded_mib"]
        return f"{peak:.0f} ({peak - loaded:+.0f})"

    tools = ("dprime", "dp_accounting", "opake")
    columns = SETTING | {tool: lambda row, tool=tool: cell(row, tool) for tool in tools}
    return table(found["memory"]["peak"], columns)


def imports(found: Row) -> str:
    def cell(row: Row) -> str:
        return f"{1000 * row['seconds']:.0f} ms" if row["status"] == "ok" else "failed"

    return table(found["memory"]["imports"], {"<module": "{module}", "import": cell})


def failures(found: Row) -> str:
    """Reasons without their numbers, so that the same failure counts as one."""
    memory, choosing = found["memory"], found["choosing"]
    places = {
        "speed": found["speed"]["rows"], "choosing for an advantage": choosing["advantage"],
        "choosing for a TPR": choosing["tpr"], "memory": memory["peak"],
        "import": [{row["module"]: row} for row in memory["imports"]],
    }  # fmt: skip
    counted = Counter(
        (tool, where, re.sub(r"\d[\d.e+\-]*", "…", outcome["status"].removeprefix("failed: ")))
        for where, rows in places.items()
        for row in rows
        for tool, outcome in row.items()
        if isinstance(outcome, dict) and outcome.get("status", "ok") != "ok"
    )
    return (
        "\n".join(
            f"- {tool}, {where}: {reason}" + (f" ({count} times)" if count > 1 else "")
            for (tool, where, reason), count in sorted(counted.items())
        )
        or "No call failed."
    )


TABLES: dict[str, Callable[[Row], str]] = {
    "machine": machine, "summary": summary, "speed": speed,
    "advantage": excess("advantage", "dprime", "dp_accounting", "opake"),
    "epsilon": excess("epsilon", "dprime", "dp_accounting", "opake", "prv_accountant"),
    "tpr": excess("tpr", "dprime", "opake", "riskcal"),
    "choosing-advantage": choosing("advantage"), "choosing-tpr": choosing("tpr"),
    "memory": memory, "imports": imports, "failures": failures,
}  # fmt: skip
