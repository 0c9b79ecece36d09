"""The measured tables and charts of the documents, made from the stored results alone.

    python -m benchmarks pages

A table stands between `<!-- begin NAME -->` and `<!-- end NAME -->` of its page in `docs/`, and
`PAGES` has the results that it is made of. A table that stands in its page must be what its results
say; a place that is empty is filled in where the site is built, and so are the charts of `CHARTS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import (
    HERE,
    ROOT,
    attribute_tables,
    bound_tables,
    frontier_tables,
    membership_tables,
    peer_tables,
)
from benchmarks.tables import Column, Row, percent, short_time, table

# docs/auditing.md ---------------------------------------------------------------------------------


def power(found: Row) -> str:
    return table(found["power"]["rows"], {
        "certified ε": "{epsilon:g}", "trials a world": "{trials:,}",
        "Gaussian, median": lambda row: percent(row["median"]["gaussian"], ".0f"),
        "band, median": lambda row: percent(row["median"]["band"], ".0f"),
        "audits with 85 %": lambda row: f"{percent(row['reached_85'], '.0f')} of {row['audits']}",
    })  # fmt: skip


def crafted(found: Row) -> str:
    reached = "{{{0}[d_prime]:.3f}} ± {{{0}[standard_error]:.3f}}"
    return table(found["crafted"]["rows"], {
        "<data": "{data}", "<network": "{model}", "trials a world": "{trials:,}",
        "natural, d′": reached.format("natural"), "made, d′": reached.format("crafted"),
    }) + (
        "\n\n(100 records, 30 full-batch steps, ε = 4; d′ from the area under the ROC curve.)"
    )  # fmt: skip


def weights(found: Row) -> str:
    return (
        "MNIST, 1,000 records, ε = 10, δ = 1e-5, 100 full-batch steps, {trials:,} trials a "
        "world: ε is at least **{gaussian:.2f}** at 95 % confidence by the Gaussian bound, "
        "whose test does not object (band: {band:.2f}). The paper reports {published:g}."
    ).format(**found["weights"])


def alarms(found: Row) -> str:
    def batches(row: Row) -> str:
        rate = row["sample_rate"]
        return "full" if rate == 1 else f"Poisson, rate {rate:g}"

    names = {"curve, band": "curve", "Gaussian, ε": "gaussian", "band, ε": "band",
             "Clopper-Pearson, ε": "clopper-pearson"}  # fmt: skip
    counts = {title: f"{{refuted[{name}]}} of {{audits}}" for title, name in names.items()}
    rows = found["alarms"]["rows"]
    limit = found["alarms"]["limit"] * rows[0]["audits"]
    made = table(rows, {"<adversary": "`{adversary}`", "<batches": batches, **counts})
    return f"{made}\n\nAt a nominal 5 %, three standard errors above are {limit:.0f}."


def kills(found: Row) -> str:
    same = "yes" if found["same_scores"] else "NO"
    return (
        "{kills} kills, {before_the_run_existed} of them before the run's file existed; {blocks} "
        "blocks and {trials:,} trials in the end. Finished blocks lost: {finished_blocks_lost}; "
        "played again: {blocks_played_again}; scores the same, bit for bit, as in the run that was "
        f"left alone: {same}."
    ).format(**found)


# docs/scaling.md ----------------------------------------------------------------------------------


def backends(found: Row) -> str:
    """What each backend gains and adds, and what a large run takes."""
    speed, overhead = found["speed"], found["overhead"]
    titles = {"here": "here, one thread", "processes": "processes, two workers",
              "ray": "Ray, two cores"}  # fmt: skip
    rows = [
        {"title": title, "rate": speed["trials_per_second"][name],
         "ratio": speed["ratio"].get(name, 1.0), "added": percent(max(0.0, overhead[name]), ".1f")}
        for name, title in titles.items()
    ]  # fmt: skip
    made = table(rows, {
        "<backend": "{title}", "trials a second": "{rate:,.0f}",
        "times one process": "{ratio:.2f}", "adds to a block of a second": "{added}",
    })  # fmt: skip
    return f"{made}\n\n" + (
        "A run of {trials:,} short trials is a file of {megabytes:.1f} MB; the driver takes "
        "{peak_megabytes:,.0f} MB of memory, most of it PyTorch itself. Killed in the middle, it "
        "has its next block {until_next_block_seconds:.1f} s after `dprime resume`; a finished one "
        "has its answer again in {answer_again_seconds:.1f} s."
    ).format(**found["large"])


def sizes(here: Row, on_gpu: Row) -> str:
    """Trials a second and hours for a million, of one core and of one GPU."""

    def digits(place: str, name: str) -> Callable[[Row], str]:
        def cell(row: Row) -> str:  # two digits or more, never as a power of ten
            value = row[place][name]
            return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"

        return cell

    columns: list[tuple[str, Column]] = [
        ("<network", "`{one[network]}`"), ("weights", "{one[weights]:,}"),
        ("records", "{one[records]:,}"), ("steps", "{one[steps]}"),
    ]  # fmt: skip
    for place, title in (("one", "one core"), ("other", "H200")):
        columns.append((f"{title}, trials/s", digits(place, "trials_per_second")))
        columns.append(("hours", digits(place, "hours_per_million")))
    pairs = zip(here["sizes"], on_gpu["sizes"], strict=True)
    return table([{"one": one, "other": other} for one, other in pairs], columns)


# docs/training.md ---------------------------------------------------------------------------------

NETWORKS = {
    "retail100": "retail100, 600-128-100, n = 1,000",
    "adult": "Adult, 104-6-6-2, n = 1,000",
    "mnist": "MNIST, 16 and 32 filters, n = 100",
}


def training(found: Row) -> str:
    rows = [{"title": NETWORKS[name], **row} for name, row in found["settings"].items()]
    peak, packages = found["matrix_product_gflops"], found["machine"]["packages"]

    def peer(mode: str) -> Callable[[Row], str]:
        return lambda row: f"{short_time(row['opacus_seconds'][mode])} ({row['ratio'][mode]:.3g}×)"

    def flat(row: Row) -> str:
        return ", ".join(f"{int(n):,}: {short_time(s)}" for n, s in row["flat"].items())

    beside = table(rows, {
        "<training": "{title}",
        "engine, a trial": lambda row: short_time(row["seconds_per_trial"]),
        "Opacus `hooks`": peer("hooks"), "`ew`": peer("ew"), "`ghost`": peer("ghost"),
        "least possible": lambda row: short_time(row["gflop_per_trial"] / peak),
    })  # fmt: skip
    many = table(rows, {
        "<training": "{title}", "<time per trial, by number of trials": flat,
        "memory above the process' own": "{memory_gb:.2f} GB",
    })  # fmt: skip
    return (
        f"{beside}\n\n({found['threads']} threads, PyTorch {packages['torch']}, Opacus "
        f"{packages['opacus']}. “Least possible”: the multiplications of a trial at {peak:.0f} "
        "GFLOP/s, which is what a large matrix product reaches here, and nothing else.)\n\n"
        "The time per trial hardly depends on how many there are, once both cores have work:\n\n"
        + many
    )


def table2(found: Row) -> str:
    """Of the command's own answer; a name is the data set, LS or GS, bounded or unbounded."""
    noises = {"LS": "local, **not DP**", "GS": "global"}
    rows = [
        dict(zip(("data", "noise", "kind"), audit["name"].split(), strict=True)) | audit
        for audit in found["audits"]
    ]
    reached = "{identifiability[advantage][%s]:.3f}"
    made = table(rows, {
        "<data": "{data}", "<noise scaled to": lambda row: noises[row["noise"]], "<DP": "{kind}",
        "advantage": f"{reached % 'value'} ± {reached % 'standard_error'}",
        "time": "{seconds:.1f} s",
    })  # fmt: skip
    trainings = sum(audit["blocks"]["trials"] for audit in rows)
    return (
        f"{made}\n\n{trainings:,} trainings in **{found['seconds']:.1f} s** on one "
        f"{found['device'][0]}, with loading the data, finding the pairs and every bound; ± is one "
        "standard error. The first audit of a data set loads it, and the first of all starts the "
        "GPU."
    )


def large(found: Row) -> str:
    own, peer = found["engine"], found["opacus"]
    fastest = f"Opacus, mode `{peer['mode']}`, its fastest here"
    rows = [
        {"": "dprime", "seconds": own["seconds"], "accuracy": own["accuracy"][0]},
        {"": fastest, "seconds": peer["seconds"], "accuracy": peer["accuracy"]},
    ]
    made = table(rows, {
        "<": lambda row: row[""], "time on 2 cores": "{seconds:.0f} s",
        "test accuracy": lambda row: percent(row["accuracy"], ".1f"),
    })  # fmt: skip
    return made.replace("|  |", "| |", 1) + (
        "\n\n({steps} steps, noise multiplier {noise_multiplier:.4f}, ε = {epsilon:.3f} certified.)"
    ).format(**found)


# The pages ----------------------------------------------------------------------------------------

Made = tuple[Callable[..., str], str] | tuple[Callable[..., str], str, str]
ADULT = "papers/cherubin/raw/adult.json"

PAGES: Mapping[str, Mapping[str, Made]] = {
    "attributes.md": {
        "attack": (attribute_tables.attack, "attributes"),
        "adult": (attribute_tables.adult, ADULT),
        "pictures": (attribute_tables.pictures, ADULT),
        "times": (attribute_tables.times, "attributes"),
    },
    "auditing.md": {
        "power": (power, "audits"), "crafted": (crafted, "audits"), "weights": (weights, "audits"),
        "alarms": (alarms, "audits"), "kills": (kills, "kills"),
    },
    "benchmarks.md": {
        name: (make, "peers") for name, make in peer_tables.TABLES.items()
    },
    "frontier.md": {"frontier": (frontier_tables.frontier, "frontier")},
    "lower-bounds.md": {
        "verdicts": (bound_tables.verdicts, "verdicts"),
        **{f"coverage-{make.__name__}": (make, "coverage") for make in bound_tables.COVERAGE},
    },
    "membership.md": {
        "overfitted": (membership_tables.overfitted, "membership"),
        "thudi": (membership_tables.thudi, "papers/thudi/results"),
        "speed": (membership_tables.speed, "shadows", "shadows-gpu"),
    },
    "scaling.md": {
        "backends": (backends, "backends"), "sizes": (sizes, "backends", "backends-gpu"),
    },
    "training.md": {
        "training": (training, "training"), "large": (large, "large"),
        "table2": (table2, "papers/bernau/results/table2-runs.json"),
    },
}  # fmt: skip
"""Of each page the markers, and what is made of which results: of a benchmark, or of a paper."""


@cache
def results(source: str) -> Any:
    """Of a benchmark by its name, or of a file or folder of the checkout."""
    path = ROOT / source if "/" in source else HERE / f"{source}.json"
    if path.is_dir():
        return {each.stem: json.loads(each.read_text()) for each in sorted(path.glob("*.json"))}
    return json.loads(path.read_text())


def charts() -> dict[str, str]:
    """All drawings, by their path in the documents."""
    return attribute_tables.charts(results(ADULT)) | frontier_tables.charts(results("frontier"))


def filled(name: str, page: str, *, empty: bool) -> str:
    """The page with every table, or with those whose places are not `empty`, made anew."""
    for marker, (make, *sources) in PAGES.get(name, {}).items():
        pattern = rf"(<!-- begin {marker} -->\n)(.*?)(<!-- end {marker} -->)"
        found = re.findall(pattern, page, flags=re.DOTALL)
        if len(found) != 1:
            raise ValueError(
                f"{name} must have the markers of {marker} once, but has {len(found)}."
            )
        if empty or found[0][1]:
            text = make(*map(results, sources)).strip()
            block = f"\\g<1>{text.replace(chr(92), chr(92) * 2)}\n\\g<3>"
            page = re.sub(pattern, block, page, flags=re.DOTALL)
    return page


def write(docs: Path) -> None:
    """All tables that stand in the pages."""
    for name in PAGES:
        path = docs / name
        path.write_text(filled(name, path.read_text(), empty=False))
