"""The measured tables and charts of the documents, made from the stored results alone.

    python -m benchmarks pages

A table stands between `<!-- begin NAME -->` and `<!-- end NAME -->` of its page in `docs/`, and its
template between the same markers below the page's name in `tables.md` (Jinja, where the end of a
line is dropped after a tag). A table that stands in its page must be what its results say; a place
that is empty is filled in where the site is built, and so are the charts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, StrictUndefined

from benchmarks import HERE, ROOT
from benchmarks.coverage import decisive, limit, share_over
from dprime.mechanisms import DPSGD
from dprime.membership.confidence import over_repetitions
from dprime.show import charts as made
from dprime.show.chart import Chart
from dprime.show.charts import FrontierPoint, FrontierSeries, SecurityLine
from dprime.show.charts.trainings import Across
from dprime.text import round_down, round_up

Row = Mapping[str, Any]
TEMPLATES = re.split(r"^<!-- page ([\w-]+\.md) -->\n", (HERE / "tables.md").read_text(), flags=re.M)
PAGES = tuple(TEMPLATES[1::2])
BLOCK = re.compile(r"(<!-- begin ([\w-]+) -->\n)(.*?)(<!-- end \2 -->)", re.DOTALL)


def page_filled(name: str, page: str, *, empty: bool) -> str:
    """The page with every table, or with those whose places are not `empty`, made anew."""
    if name not in PAGES:
        return page
    made = tables(name)
    if sorted(block[1] for block in BLOCK.findall(page)) != sorted(made):
        raise ValueError(f"{name} must have the markers of each of {', '.join(made)} once.")
    return BLOCK.sub(
        lambda block: f"{block[1]}{made[block[2]]}\n{block[4]}" if block[3] or empty else block[0],
        page,
    )


def write(docs: Path) -> None:
    for name in PAGES:
        path = docs / name
        path.write_text(page_filled(name, path.read_text(), empty=False))


@cache
def results(source: str) -> Any:
    """Of a benchmark by its name, or of a file of the checkout."""
    if "/" in source:
        return json.loads((ROOT / source).read_text())
    return results("benchmarks/results.json")[source]


@cache
def tables(name: str) -> dict[str, str]:
    """The text of each marker of a page."""
    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, autoescape=False
    )  # fmt: skip
    environment.filters |= {"f": shown, "share_over": share_over}
    environment.tests |= {"decisive": decisive}
    environment.globals |= {
        "results": results, "within": within, "below": below, "by": by, "limit": limit,
        "excess": excess, "failures": failures, "over_runs": over_runs, "claims": claims,
        "epsilon": epsilon, "adult_chart": adult,
    }  # fmt: skip
    text = environment.from_string(TEMPLATES[2 * PAGES.index(name) + 2]).render()
    return {block[1]: block[2].strip() for block in BLOCK.findall(text)}


# Words of the templates ---------------------------------------------------------------------------


def shown(value: float, how: str) -> str:
    """A number: as Python's formats say, or `%.1f` for per cent, or in one of these ways."""
    if how.startswith("%"):
        return f"{100 * value:{how[1:]}} %"
    if how == "time":
        return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"
    if how == "times":
        return f"{value:.2g}×" if value < 10 else f"{value:,.0f}×"
    if how == "two":  # two digits or more, never as a power of ten
        return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
    if how in ("up", "down"):
        return round_up(value, 3) if how == "up" else round_down(value)
    return format(value, how)


def within(row: Row, name: str) -> str:
    """A number with its standard error."""
    return f"{row[name]:.3f} ± {row['standard_error']:.3f}"


def below(found: Any, names: Sequence[str | int]) -> Any:
    """What stands below these names, one after the other."""
    for name in names:
        found = found[name]
    return found


def by(rows: Sequence[Row], *keys: str) -> dict[Any, list[Row]]:
    """The rows of each setting of these keys."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        place = tuple(row[key] for key in keys)
        found.setdefault(place if len(keys) > 1 else place[0], []).append(row)
    return found


SHORTFALL = 1e-6
"""Below the reference by less than this is the reference's own error."""


def excess(row: Row, tool: str, metric: str) -> str:
    """How far a tool's value lies above the reference; bold where it lies below."""
    outcome, truth = row.get(tool), row["reference"]["values"].get(metric)
    if outcome is None or outcome["status"] != "ok":
        return "" if outcome is None else "failed"
    value = outcome["values"].get(metric)
    if value is None or truth is None:
        return "none"
    share = value / truth - 1.0
    text = shown(share, "%+,.0f" if abs(100.0 * share) >= 10 else "%+.2g").replace("-", "−")
    return f"**{text}**" if share < -SHORTFALL else text


def failures(found: Row) -> list[str]:
    """Calls of the peers that failed; without its numbers, the same reason counts as one."""
    places = {
        "speed": found["speed"]["rows"], "memory": found["memory"]["peak"],
        "choosing for an advantage": found["choosing"]["advantage"],
        "choosing for a TPR": found["choosing"]["tpr"],
        "import": [{row["module"]: row} for row in found["memory"]["imports"]],
    }  # fmt: skip
    counted: dict[str, int] = {}
    for where, rows in places.items():
        for tool, outcome in (each for row in rows for each in row.items()):
            if (status := outcome.get("status", "ok")) != "ok":
                reason = re.sub(r"\d[\d.e+\-]*", "…", status.removeprefix("failed: "))
                line = f"{tool}, {where}: {reason}"
                counted[line] = counted.get(line, 0) + 1
    return [line + (f" ({n} times)" if n > 1 else "") for line, n in sorted(counted.items())]


def over_runs(found: Row, names: Sequence[str | int], digits: int) -> str:
    """The ends of a number over all trainings; shares have one digit, in per cent."""
    scale, unit = (100, " %") if digits == 1 else (1, "")
    values = sorted(scale * below(run, names) for run in found["runs"])
    return " to ".join(dict.fromkeys(f"{v:.{digits}f}" for v in (values[0], values[-1]))) + unit


def claims(found: Row) -> str:
    """Whether what must hold held, in every epoch of every training and in both forms."""
    rows = [
        row
        for run in found["runs"]
        for one in run["security"].values()
        for row in zip(one["full"], one["approximate"], one["membership"], strict=True)
    ]
    held = [all(full >= member for full, _, member in rows), all(r <= full for full, r, _ in rows)]
    if all(held):
        return (
            "In no epoch of any training was attribute inference said to be easier than "
            "membership, or the approximate analysis above the full one."
        )
    return f"**It did not hold that attribute is above membership, approximate below full: {held}**"


# Charts -------------------------------------------------------------------------------------------

LINES = {"full": "age, full analysis", "approximate": "age, approximate analysis"}
TITLES = {"mnist": "MNIST", "adult": "Adult"}
FIRST_EPOCH = 3
"""From which accuracy is drawn: before it, the model has not learned anything."""


def charts() -> dict[str, str]:
    """All drawings, by their path in the documents."""
    attributes, runs = results("papers/cherubin/raw.json")["adult"], results("frontier")["runs"]
    both: tuple[Across, ...] = ("epochs", "accuracy")
    drawn = {f"attributes-adult-{each}": adult(attributes, each) for each in both}
    drawn |= {f"frontier-{data}": frontier(each, TITLES[data]) for data, each in runs.items()}
    return {f"assets/{name}.svg": chart.svg() for name, chart in drawn.items()}


def adult(found: Row, across: Across) -> Chart:
    """Figure 9 or 1 of Cherubin et al. (2024), of the first training."""
    run, epochs = found["runs"][0], found["epochs"]
    order, at = list(range(epochs)), [float(epoch) for epoch in range(1, epochs + 1)]
    if across == "accuracy":
        at, order = run["accuracy"], []
        for epoch in range(FIRST_EPOCH - 1, epochs):  # whose accuracy no earlier one reached
            if not order or at[epoch] > at[order[-1]]:
                order.append(epoch)

    def line(
        name: str, kind: Literal["certified", "estimate"], security: Sequence[float]
    ) -> SecurityLine:
        return SecurityLine(name, kind, tuple((at[each], security[each]) for each in order))

    certified = [mechanism(found, epoch).curve("replace") for epoch in range(1, epochs + 1)]
    lines = [line("membership", "certified", [curve.bayes_security() for curve in certified])]
    estimates = run["security"]["central-limit"]
    lines += [line(name, "estimate", estimates[kind]) for kind, name in LINES.items()]
    return made.security(tuple(lines), "Adult", across)


def mechanism(found: Row, epochs: int) -> DPSGD:
    """Of a training after these epochs, whose steps are counted as Opacus does."""
    steps = -(-found["records"] // found["batch"])
    return DPSGD(found["noise_multiplier"], 1 / steps, steps * epochs)


def epsilon(found: Row) -> float:
    return mechanism(found, found["epochs"]).curve().epsilon(1e-5)


def frontier(runs: Sequence[Row], title: str) -> Chart:
    """In the form of figure 6 of Thudi et al. (2024); intervals hold for all points together."""

    def point(one: Row, points: int) -> FrontierPoint:
        finals = [each[-1] for each in one["accuracies"]]
        return FrontierPoint(
            one["probability"], *over_repetitions(finals, cells=points).within().numbers,
            float("inf") if one["epsilon"] is None else one["epsilon"],
        )  # fmt: skip

    series = (
        FrontierSeries(run["target"], tuple(point(p, len(run["points"])) for p in run["points"]))
        for run in runs
    )
    return made.frontier(tuple(series), title)
