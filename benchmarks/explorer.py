"""Fifty people who each move a slider once a second, and how long the explorer takes to answer.

    python benchmarks/explorer.py [--users 50] [--seconds 60] [--start default] [--out FILE]

The server is a process of its own with its usual workers. Each user walks at random: one slider of
the page goes one to three positions up or down, or the adjacency changes. One user in five has the
page choose a parameter, and moves the target too. A move asks for what the page asks for: all
numbers and every chart (after a choice, charts of what was chosen). Times are from the move until
both are there, and `numbers` until the numbers are; charts that no move changes are not asked for
again, as by the page. Little more than the setting that the page begins with is known when the
clock starts; with `--start anywhere` every user begins somewhere else.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

from dprime.request import MECHANISM
from dprime.web.options import SLIDERS, TARGET_SLIDERS

SERVER = "import typer; from dprime.cli.explore import explore; typer.run(explore)"

CHARTS = "trade-off,risk,precision,bayes-security"
"""What the page shows beside the numbers."""

SHOWN = ("noise_multiplier", "sample_rate", "steps", "group_size", "prior", "fpr", "delta")
"""What charts are asked for at, beside the adjacency."""

ADJACENCIES = ("add-remove", "replace")

CHOOSING = 0.2
"""Share of the users who have the page choose a parameter."""

LONGEST = 30.0
"""Seconds after which an answer is lost."""


@dataclass
class User:
    """Somebody at the page: where the sliders stand, and how long each answer took."""

    rng: random.Random
    anywhere: bool
    places: dict[str, int] = field(default_factory=dict)
    adjacency: str = "add-remove"
    target: str | None = None
    free: str = MECHANISM[0]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    drawn: str = ""

    def __post_init__(self) -> None:
        for name, slider in SLIDERS.items():
            start = slider.positions.index(slider.default)
            moves = self.anywhere and name != "group_size"
            self.places[name] = self.rng.randrange(len(slider.positions)) if moves else start
        if self.rng.random() < CHOOSING:
            self.target, self.free = (
                self.rng.choice(list(TARGET_SLIDERS)),
                self.rng.choice(MECHANISM),
            )
            goal = TARGET_SLIDERS[self.target]
            self.places["value"] = goal.positions.index(goal.default)

    def move(self) -> str:
        """Move one slider, and say what the page asks then."""
        name = self.rng.choice([name for name in (*self.places, "adjacency") if name != self.idle])
        if name == "adjacency":
            self.adjacency = ADJACENCIES[1 - ADJACENCIES.index(self.adjacency)]
        else:
            self._shift(name)
        if self.adjacency == "replace":  # groups are certified for add-remove only
            self.places["group_size"] = 0
        return self._address()

    @property
    def idle(self) -> str | None:
        """The slider that the page sets itself."""
        return None if self.target is None else self.free

    def _positions(self, name: str) -> Sequence[float]:
        return (
            TARGET_SLIDERS[str(self.target)].positions
            if name == "value"
            else SLIDERS[name].positions
        )

    def _shift(self, name: str) -> None:
        step = self.rng.choice((-3, -2, -1, 1, 2, 3))
        last = len(self._positions(name)) - 1
        self.places[name] = min(max(self.places[name] + step, 0), last)

    def _address(self) -> str:
        query = {n: str(self._positions(n)[place]) for n, place in self.places.items()}
        query |= {"adjacency": self.adjacency}
        if self.target is None:
            return f"/api/risk?{urlencode(query)}"
        del query[self.free]
        return f"/api/choose?{urlencode(query | {'target': self.target, 'free': self.free})}"

    async def play(self, client: httpx.AsyncClient, seconds: float) -> None:
        """One move a second; the next one waits where an answer takes longer."""
        begin = time.perf_counter() + self.rng.random()
        for number in range(round(seconds)):
            await asyncio.sleep(max(0.0, begin + number - time.perf_counter()))
            await self._ask(client, self.move())

    async def _ask(self, client: httpx.AsyncClient, address: str) -> None:
        start = time.perf_counter()
        try:
            coming = None if self.target else asyncio.ensure_future(self._charts(client, None))
            answer = await client.get(address)
            numbers = time.perf_counter() - start
            if coming is not None:
                answer = await coming or answer
            elif answer.status_code == 200:
                answer = await self._charts(client, answer.json()["chosen"]) or answer
        except httpx.HTTPError as error:
            self.lost.append(type(error).__name__)
            return
        if answer.status_code == 200 or _impossible(answer):
            kind = address.partition("?")[0].removeprefix("/api/")
            self.seconds.setdefault(kind, []).append(time.perf_counter() - start)
            self.seconds.setdefault("numbers", []).append(numbers)
        else:
            self.lost.append(f"{answer.status_code} {answer.text[:200]}")

    async def _charts(
        self, client: httpx.AsyncClient, chosen: dict[str, Any] | None
    ) -> httpx.Response | None:
        """The charts of the setting; None where they are on the page already."""
        query = {name: str(self._positions(name)[self.places[name]]) for name in SHOWN}
        query |= {"adjacency": self.adjacency, "charts": CHARTS}
        if chosen is not None:
            query[chosen["name"]] = str(chosen["value"])
        if (address := f"/api/charts?{urlencode(query)}") == self.drawn:
            return None
        self.drawn = address
        return await client.get(address)


def _impossible(answer: httpx.Response) -> bool:
    """A target that no parameter keeps has a sentence for its answer."""
    told = ("cannot be met", "nothing to choose", "no mechanism goes lower")
    return answer.status_code == 422 and any(words in answer.text for words in told)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--start", choices=("default", "anywhere"), default="default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    options = parser.parse_args()
    found = measure(options.users, options.seconds, options.start, options.seed)
    print(json.dumps(found, indent=1))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


def measure(users: int, seconds: float, start: str, seed: int) -> dict[str, Any]:
    """Start the server, let the users play, and count."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, folder, "--port", "0", "--no-browser", "--json"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["address"]
            people = [User(random.Random(f"{seed}/{n}"), start == "anywhere") for n in range(users)]
            asyncio.run(_played(address, people, seconds))
            used = _used(process.pid)
        finally:
            process.terminate()
            process.wait()
    return {
        "users": users, "seconds": seconds, "start": start, "seed": seed,
        "cores": len(os.sched_getaffinity(0)), "python": platform.python_version(),
        "load_before": round(LOAD[0], 2), **used, **_counted(people),
    }  # fmt: skip


LOAD = os.getloadavg()
"""Of the machine, before anything was asked: above 0.5, others are at work."""


async def _played(address: str, people: list[User], seconds: float) -> None:
    limits = httpx.Limits(max_connections=len(people), max_keepalive_connections=len(people))
    async with httpx.AsyncClient(base_url=address, timeout=LONGEST, limits=limits) as client:
        await _awake(client)
        async with asyncio.TaskGroup() as group:
            for user in people:
                group.create_task(user.play(client, seconds))


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


def _counted(people: list[User]) -> dict[str, Any]:
    kinds = {kind for user in people for kind in user.seconds}
    times = {kind: [s for user in people for s in user.seconds.get(kind, [])] for kind in kinds}
    every = [s for kind, listed in times.items() for s in listed if kind != "numbers"]
    lost = Counter(reason for user in people for reason in user.lost)
    return {
        "requests": len(every) + lost.total(), "lost": lost.total(), "lost_because": dict(lost),
        **_spread(every), **{kind: _spread(times[kind]) for kind in sorted(kinds)},
    }  # fmt: skip


def _spread(times: list[float]) -> dict[str, Any]:
    ordered = sorted(times)
    return {
        "answers": len(ordered),
        "median_ms": round(1e3 * statistics.median(ordered), 1),
        "percentile_95_ms": round(1e3 * ordered[int(0.95 * (len(ordered) - 1))], 1),
        "worst_ms": round(1e3 * ordered[-1], 1),
    }


def _used(pid: int) -> dict[str, float]:
    """Memory and processor time of the server and of its workers, where the system says it."""
    if not Path("/proc/self/task").exists():
        return {}
    tasks = Path(f"/proc/{pid}/task")
    children = {c for task in tasks.iterdir() for c in (task / "children").read_text().split()}
    used: dict[str, float] = {"server_megabytes": 0, "workers_megabytes": 0, "server_cpu_s": 0,
                              "workers_cpu_s": 0}  # fmt: skip
    for who, each in [("server", str(pid)), *(("workers", child) for child in children)]:
        status = Path(f"/proc/{each}/status").read_text().splitlines()
        line = next(each for each in status if each.startswith("VmRSS"))
        used[f"{who}_megabytes"] += int(line.split()[1]) // 1000
        ticks = Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        used[f"{who}_cpu_s"] += round(sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), 1)
    return used


if __name__ == "__main__":
    main()
