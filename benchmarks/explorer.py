"""How long does the explorer take to answer fifty people, and is an answer lost?

Claim: docs/explorer.md. Each moves a slider once a second for a minute, and walks at random: one
slider of the page goes one to three positions up or down, or the adjacency changes. One user in
five has the page choose a parameter, and moves the target too. A move asks for what the page asks
for: all numbers with the charts of their curve, and the chart of the risk if it changed. The server
is a process of its own with its usual workers. Little more than the setting that the page begins
with is known when the clock starts.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

from benchmarks.timing import Found, explorer, spread_ms
from dprime.request import MECHANISM
from dprime.web.options import SLIDERS, TARGET_SLIDERS

CHARTS = "trade-off,trade-off-corner,precision"
"""The charts that come with the numbers."""

SHOWN = ("noise_multiplier", "sample_rate", "steps", "group_size")
"""What the chart of the risk is asked for at, beside the adjacency."""

ADJACENCIES = ("add-remove", "replace")
USERS, SECONDS, SEED = 50, 60, 1
CHOOSING = 0.2
"""Share of the users who have the page choose a parameter."""

LONGEST = 30.0
"""Seconds after which an answer is lost."""


Query = dict[str, str]


def walk(rng: random.Random) -> Iterator[Query]:
    """What the page of somebody asks, move after move."""
    positions = {name: slider.positions for name, slider in SLIDERS.items()}
    places = {name: slider.positions.index(slider.default) for name, slider in SLIDERS.items()}
    choosing, adjacency = {}, "add-remove"
    if rng.random() < CHOOSING:
        target, free = rng.choice(list(TARGET_SLIDERS)), rng.choice(MECHANISM)
        choosing = {"target": target, "free": free}  # the page sets the free slider itself
        positions["value"] = TARGET_SLIDERS[target].positions
        places["value"] = positions["value"].index(TARGET_SLIDERS[target].default)
    movable = [name for name in (*places, "adjacency") if name != choosing.get("free")]
    while True:
        name = rng.choice(movable)
        if name == "adjacency":
            adjacency = ADJACENCIES[1 - ADJACENCIES.index(adjacency)]
        else:
            step = rng.choice((-3, -2, -1, 1, 2, 3))
            places[name] = min(max(places[name] + step, 0), len(positions[name]) - 1)
        if adjacency == "replace":  # groups are certified for add-remove only
            places["group_size"] = 0
        query = {each: str(positions[each][place]) for each, place in places.items()}
        query.pop(choosing.get("free", ""), None)
        yield query | {"adjacency": adjacency, **choosing}


def charts_of(query: Query, chosen: Mapping[str, Any] | None = None) -> str:
    """The address of the chart of a setting's risk."""
    shown = {name: query[name] for name in SHOWN if name in query}
    shown |= {"adjacency": query["adjacency"], "charts": "risk"}
    if chosen is not None:
        shown[chosen["name"]] = str(chosen["value"])
    return f"/api/charts?{urlencode(shown)}"


@dataclass
class Heard:
    """How long answers took, by their kind, and why others were lost."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    lost: Counter[str] = field(default_factory=Counter)

    async def ask(self, client: httpx.AsyncClient, query: Query, drawn: str) -> str:
        """A move, to its numbers and its charts; those that no move changes stay as drawn.

        Both are asked for at once; after a choice, charts of what was chosen.
        """
        start, kind = time.perf_counter(), "choose" if "target" in query else "risk"
        address = f"/api/{kind}?{urlencode(query | {'charts': CHARTS})}"
        asked, charts = client.get(address), drawn
        try:
            if kind == "risk" and (charts := charts_of(query)) != drawn:
                coming = asyncio.ensure_future(client.get(charts))
                answer, numbers = await asked, time.perf_counter() - start
                answer = await coming
            else:
                answer, numbers = await asked, time.perf_counter() - start
                if kind == "choose" and answer.status_code == 200:
                    charts = charts_of(query, answer.json()["chosen"])
                    answer = await client.get(charts) if charts != drawn else answer
        except httpx.HTTPError as error:
            self.lost[type(error).__name__] += 1
            return drawn
        if answer.status_code == 200 or _impossible(answer):
            self.seconds.setdefault(kind, []).append(time.perf_counter() - start)
            self.seconds.setdefault("numbers", []).append(numbers)
        else:
            self.lost[f"{answer.status_code} {answer.text[:200]}"] += 1
        return charts

    def told(self) -> Found:
        """The times of all, and of each kind."""
        every = [s for kind, times in self.seconds.items() if kind != "numbers" for s in times]
        lost = {"lost": self.lost.total(), "lost_because": dict(self.lost)}
        kinds = {
            kind: {"answers": len(times), **spread_ms(times)}
            for kind, times in sorted(self.seconds.items())
        }
        return {"requests": len(every) + self.lost.total(), **lost, **spread_ms(every), **kinds}


def _impossible(answer: httpx.Response) -> bool:
    """A target that no parameter keeps has a sentence for its answer."""
    told = ("cannot be met", "nothing to choose", "no mechanism goes lower")
    return answer.status_code == 422 and any(words in answer.text for words in told)


def measure(quick: bool) -> Found:
    """Start the server, let the users play, and count."""
    users, moves = (3, 5) if quick else (USERS, SECONDS)
    heard = Heard()
    with explorer() as (process, address):
        asyncio.run(_played(address, heard, users, moves))
        used = _used(process)
    return {"users": users, "seconds": moves, "seed": SEED, **used, **heard.told()}


async def _played(address: str, heard: Heard, users: int, moves: int) -> None:
    limits = httpx.Limits(max_connections=users, max_keepalive_connections=users)
    async with httpx.AsyncClient(base_url=address, timeout=LONGEST, limits=limits) as client:
        await _awake(client)
        async with asyncio.TaskGroup() as group:
            for n in range(users):
                group.create_task(_play(client, heard, random.Random(f"{SEED}/{n}"), moves))


async def _play(client: httpx.AsyncClient, heard: Heard, rng: random.Random, moves: int) -> None:
    """One move a second; the next one waits where an answer takes longer."""
    queries, drawn = walk(rng), ""
    begin = time.perf_counter() + rng.random()
    for number in range(moves):
        await asyncio.sleep(max(0.0, begin + number - time.perf_counter()))
        drawn = await heard.ask(client, next(queries), drawn)


async def _awake(client: httpx.AsyncClient) -> None:
    """Wait until the server answers, as somebody does who opens the page."""
    for _ in range(300):
        try:
            await client.get("/api/options")
        except httpx.ConnectError:
            await asyncio.sleep(0.1)
        else:
            await asyncio.sleep(3.0)
            return
    raise RuntimeError("the server did not start")


def _used(pid: int) -> dict[str, float]:
    """Memory and processor time of the server and of its workers, where the system says it."""
    if not Path("/proc/self/task").exists():
        return {}
    tasks = Path(f"/proc/{pid}/task")
    children = {c for task in tasks.iterdir() for c in (task / "children").read_text().split()}
    used: dict[str, float] = defaultdict(float)
    for who, each in [("server", str(pid)), *(("workers", child) for child in children)]:
        status = Path(f"/proc/{each}/status").read_text().splitlines()
        line = next(each for each in status if each.startswith("VmRSS"))
        used[f"{who}_megabytes"] += int(line.split()[1]) // 1000
        ticks = Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        used[f"{who}_cpu_s"] += round(sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), 1)
    return dict(used)
