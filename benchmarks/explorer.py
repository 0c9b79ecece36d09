"""How long does the explorer take to answer fifty people, and is an answer lost?

Claim: docs/explorer.md. Each moves a slider once a second for a minute, and walks at random: one
slider of the page goes one to three positions up or down, or the adjacency changes. One user in
five has the page choose a parameter, and moves the target too. A move asks for what the page asks
for: all numbers and every figure. The server is a process of its own with its usual workers. Little
more than the setting that the page begins with is known when the clock starts.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import httpx

from benchmarks.timing import Found, explorer, spread_ms
from dprime.web.options import GOALS, OVER, SLIDERS

FIGURES = "trade-off,risk,precision,bayes-security"
"""What the page shows beside the numbers."""

ADJACENCIES = ("add-remove", "replace")
USERS, SECONDS, SEED = 50, 60, 1
CHOOSING = 0.2
"""Share of the users who have the page choose a parameter."""

LONGEST = 30.0
"""Seconds after which an answer is lost."""


@dataclass
class User:
    """Somebody at the page: where the sliders stand, and how long each answer took."""

    rng: random.Random
    places: dict[str, int] = field(default_factory=dict)
    adjacency: str = "add-remove"
    target: str | None = None
    free: str = OVER[0]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, slider in SLIDERS.items():
            self.places[name] = slider.positions.index(slider.default)
        if self.rng.random() < CHOOSING:
            self.target, self.free = self.rng.choice(list(GOALS)), self.rng.choice(OVER)
            goal = GOALS[self.target]
            self.places["value"] = goal.positions.index(goal.default)

    def move(self) -> str:
        """Move one slider, and say what the page asks then."""
        idle = None if self.target is None else self.free  # the slider that the page sets itself
        name = self.rng.choice([name for name in (*self.places, "adjacency") if name != idle])
        if name == "adjacency":
            self.adjacency = ADJACENCIES[1 - ADJACENCIES.index(self.adjacency)]
        else:
            step = self.rng.choice((-3, -2, -1, 1, 2, 3))
            last = len(self._positions(name)) - 1
            self.places[name] = min(max(self.places[name] + step, 0), last)
        if self.adjacency == "replace":  # groups are certified for add-remove only
            self.places["group_size"] = 0
        return self._address()

    def _positions(self, name: str) -> Sequence[float]:
        return GOALS[str(self.target)].positions if name == "value" else SLIDERS[name].positions

    def _address(self) -> str:
        query = {n: str(self._positions(n)[place]) for n, place in self.places.items()}
        query |= {"adjacency": self.adjacency, "over": OVER[0], "figures": FIGURES}
        if self.target is None:
            return f"/api/risk?{urlencode(query)}"
        del query[self.free]
        return f"/api/choose?{urlencode(query | {'target': self.target, 'free': self.free})}"

    async def play(self, client: httpx.AsyncClient, moves: int) -> None:
        """One move a second; the next one waits where an answer takes longer."""
        begin = time.perf_counter() + self.rng.random()
        for number in range(moves):
            await asyncio.sleep(max(0.0, begin + number - time.perf_counter()))
            await self._ask(client, self.move())

    async def _ask(self, client: httpx.AsyncClient, address: str) -> None:
        start = time.perf_counter()
        try:
            answer = await client.get(address)
        except httpx.HTTPError as error:
            self.lost.append(type(error).__name__)
            return
        if answer.status_code == 200 or _impossible(answer):
            kind = address.partition("?")[0].removeprefix("/api/")
            self.seconds.setdefault(kind, []).append(time.perf_counter() - start)
        else:
            self.lost.append(f"{answer.status_code} {answer.text[:200]}")


def _impossible(answer: httpx.Response) -> bool:
    """A target that no parameter keeps has a sentence for its answer."""
    told = ("cannot be met", "nothing to choose", "no mechanism goes lower")
    return answer.status_code == 422 and any(words in answer.text for words in told)


def measure(quick: bool) -> Found:
    """Start the server, let the users play, and count."""
    users, moves = (3, 5) if quick else (USERS, SECONDS)
    people = [User(random.Random(f"{SEED}/{n}")) for n in range(users)]
    with explorer() as (process, address):
        asyncio.run(_played(address, people, moves))
        used = _used(process)
    return {"users": users, "seconds": moves, "seed": SEED, **used, **_counted(people)}


async def _played(address: str, people: list[User], moves: int) -> None:
    limits = httpx.Limits(max_connections=len(people), max_keepalive_connections=len(people))
    async with httpx.AsyncClient(base_url=address, timeout=LONGEST, limits=limits) as client:
        await _awake(client)
        async with asyncio.TaskGroup() as group:
            for user in people:
                group.create_task(user.play(client, moves))


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


def _counted(people: list[User]) -> Found:
    kinds = sorted({kind for user in people for kind in user.seconds})
    times = {kind: [s for user in people for s in user.seconds.get(kind, [])] for kind in kinds}
    every = [s for listed in times.values() for s in listed]
    lost = Counter(reason for user in people for reason in user.lost)
    told = {kind: {"answers": len(each), **spread_ms(each)} for kind, each in times.items()}
    requests = {"requests": len(every) + lost.total(), "lost": lost.total()}
    return {**requests, "lost_because": dict(lost), **spread_ms(every), **told}


def _used(pid: int) -> dict[str, float]:
    """Memory and processor time of the server and of its workers, where the system says it."""
    if not Path("/proc/self/task").exists():
        return {}
    tasks = Path(f"/proc/{pid}/task")
    children = {c for task in tasks.iterdir() for c in (task / "children").read_text().split()}
    used: Counter[str] = Counter()
    for who, each in [("server", str(pid)), *(("workers", child) for child in children)]:
        status = Path(f"/proc/{each}/status").read_text().splitlines()
        line = next(each for each in status if each.startswith("VmRSS"))
        used[f"{who}_megabytes"] += int(line.split()[1]) // 1000
        ticks = Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        used[f"{who}_cpu_s"] += round(sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"))
    return dict(used)
