"""The explorer as a folder of files: the same page, answered from tables by the browser itself.

Words, charts and options are made where the server makes them. What the browser fills in is marked
in them: `{x}`, `{most}`.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache
from itertools import chain, product
from pathlib import Path
from typing import Any, cast

from dprime import atomic, text, validate
from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD
from dprime.metrics import Reading
from dprime.request import MECHANISM, NAMES, risk_request
from dprime.show import charts, wording
from dprime.web import files, tables
from dprime.web.guard import POLICY
from dprime.web.options import PAGE_OPTIONS
from dprime.web.service import EMPTY, THEMES, ExplorerService
from dprime.web.tables import KEPT, RATIOS, Kept, Sliders, Track

ANSWERS, SOURCE = "tables.js", "source.js"
"""The module that answers from tables, and the name by which the page imports what answers."""

RATED = {"noise_multiplier": "1", "sample_rate": "0.01", "steps": "1"}
SIZED = {"noise_multiplier": "1", "batch_size": "1", "dataset_size": "100", "steps": "1"}
"""A training by its rate, and the same by its sizes: an adjacency that is not named differs."""

EDGES = (
    *(0.0, 2.0 ** (tables.LEAST - 1), math.nextafter(0.5, 1), 0.9999 + 1e-12),
    *(math.nextafter(1.0, 2), math.nextafter(20, 21)),
)
"""Values from which a metric may have another sentence, beside that of no limit."""

USUAL, CURVE, FPR, DELTA = DPSGD(1.25, 0.0317, 1470), TradeOff.gaussian(1.0), 0.0217, 0.00123
"""A training, a curve and conditions, of which everything with a mark is told."""


DESCRIBED = text.describe(USUAL.to_dict(), "add-remove")
"""What the browser says of each training itself."""


@cache
def _marks() -> dict[str, str]:
    precision = wording.percent_up(CURVE.precision(FPR))
    return {
        "1.25": "noise_multiplier", "0.0317": "sample_rate", "1,470": "steps",
        "add-remove": "adjacency", wording.percent(FPR): "at", wording.near(DELTA): "delta",
        wording.percent_up(CURVE.tpr(FPR)): "most", precision: "most",
        wording.percent_up(CURVE.advantage()): "most", wording.up(CURVE.advantage()): "advantage",
        wording.up(CURVE.epsilon(DELTA)): "epsilon",
    }  # fmt: skip


def marked(said: str) -> str:
    """A sentence about the usual training as one about any.

    >>> marked("With noise 1.25 the advantage is at most 38.3 %.")
    'With noise {noise_multiplier} the advantage is at most {most}.'
    """
    longest = sorted(map(re.escape, _marks()), key=len, reverse=True)
    return re.sub("|".join(longest), lambda found: f"{{{_marks()[found[0]]}}}", said)


class _X(float):
    """A value that the browser fills in, in the format that is asked for."""

    def __format__(self, form: str) -> str:
        return f"{{x:{form}}}"


def write(
    folder: Path, workers: int, *, kept: Kept = KEPT, track: Track = lambda work, total: work
) -> int:
    """Write the page into a new or empty folder, and return its size in bytes.

    `kept` are the positions of sliders that stop at fewer of them; `track` sees the work go on.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        remedy = "name another folder, or empty it"
        raise validate.invalid_value("static", str(folder), "a new or an empty folder", remedy)
    for part in ("data", "static"):
        with atomic.placing("static", folder):
            (folder / part).mkdir(parents=True)
    sliders = tables.at_positions(kept)
    size, told = 0, zlib.compress(json.dumps(book(sliders)).encode(), 9)
    made = chain([("book", told)], tables.tables(sliders, workers, track))
    data = ((f"data/{name}.bin", table) for name, table in made)
    for name, contents in chain(data, reversed([*page()])):  # the index at the end
        atomic.write("static", folder / name, contents)
        size += len(contents)
    return size


def page() -> Iterator[tuple[str, bytes]]:
    """The page's files with their places, which any address may hold: links are relative."""
    policy = POLICY.replace("frame-ancestors 'none'; ", "")  # of headers only
    head = f'<head>\n  <meta http-equiv="Content-Security-Policy" content="{policy}">'
    index = files.index().contents.decode().replace("<head>", head, 1)
    yield files.INDEX, re.sub(r'(src|href)="/', r'\1="./', index).encode()
    for name in {path.name for path in files.PAGE.iterdir()} - {ANSWERS} | {files.VEGA}:
        if file := files.static(ANSWERS if name == SOURCE else name):
            yield f"static/{name}", file.contents


def book(sliders: Sliders) -> dict[str, Any]:
    """Everything that the browser needs beside the tables."""
    sizes, specification = sliders["group_size"].positions, ExplorerService().specification
    return {
        "options": asdict(replace(PAGE_OPTIONS, parameters=dict(sliders))),
        "names": NAMES,
        "adjacency": {
            "": risk_request(RATED).adjacency,
            "sizes": risk_request(SIZED).adjacency,
        },
        "code": {"parts": tables.PARTS, "least": tables.LEAST, "none": tables.NONE},
        "columns": len(tables.columns(sliders)),
        "metrics": _metrics(sliders),
        "words": {
            each: {int(k): _words(each, int(k)) for k in sizes} for each in PAGE_OPTIONS.adjacency
        },
        "specifications": {
            f"{name}?theme={theme}&compared={str(two).lower()}": specification(name, theme, two)
            for name, theme, two in product(EMPTY, THEMES, (False, True))
        },
        "charts": _charts(),
        "drawn": tables.DRAWN,
    }


def _metrics(sliders: Sliders) -> dict[str, Any]:
    """The metrics by name, with their readings by the places of the conditions' sliders."""
    numbers, found = [*tables.columns(sliders)], dict[str, Any]()
    for each in tables.readings(sliders):
        moved = {name: value for name, value in each.conditions.items() if name in sliders}
        empty = {"rises": each.metric.rises, "conditions": [*moved], "readings": {}}
        key = ",".join(str(sliders[name].positions.index(value)) for name, value in moved.items())
        found.setdefault(each.name, empty)["readings"][key] = {
            "column": numbers.index(tables.number_of(each)),
            "prior": next(iter(moved.values())) if each.name in RATIOS else None,
            "title": each.title,
            "at": {**each.conditions, **each.metric.stated},
            "say": [[edge, _sentence(each, edge)] for edge in (*EDGES, None)],
        }
    return found


def _sentence(reading: Reading, edge: float | None) -> str:
    """What a reading says of this value and those up to the next edge."""
    template = reading.template(math.inf if edge is None else edge)
    return reading._filled(template, x=_X(), blind=text.Given(reading.blind))


def _words(adjacency: str, size: int) -> dict[str, Any]:
    """What was run and what is certified, the latter for sampled batches and for all the data."""
    sampled, full = USUAL.to_dict(), replace(USUAL, sample_rate=1.0).to_dict()
    return {
        "described": marked(text.describe(sampled, adjacency, size)),
        "certified": text.certified(adjacency, size),
        "in_full": [text.certified_in_full(each, adjacency, size) for each in (sampled, full)],
    }


def _charts() -> dict[str, Any]:
    """Words, axes and series of the charts that the browser fills in."""
    made = [
        charts.trade_off(CURVE, fpr=FPR),
        charts.trade_off(CURVE, fpr=FPR, corner=True),
        charts.trade_off(CURVE, fpr=FPR, log=True),
        charts.precision(CURVE, prior=FPR, delta=DELTA),
        *(charts.risk(USUAL, cast("Any", over), values=[], read=lambda _: CURVE.advantage())
          for over in MECHANISM),
    ]  # fmt: skip
    return {
        chart.name: {
            "name": chart.name, "title": marked(chart.title), "text": marked(chart.about),
            "of": marked(chart.of.removeprefix(DESCRIBED)),
            "x": chart.x.field, "y": chart.y.field, "series": {
                each.name: [marked(word) for word in each.words or ()] for each in chart.series
            },
        }
        for chart in made
    }  # fmt: skip
