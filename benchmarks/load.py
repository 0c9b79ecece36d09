"""How long does the explorer take to answer fifty people, and what does abuse beside them change?

Claim: docs/explorer.md. Each moves a slider once a second for a minute, and walks at random: one
slider of the page goes one to three positions up or down, or the adjacency changes. One user in
five has the page choose a parameter, and moves the target too. A move asks for what the page asks
for: all numbers with the charts of their curve, and the chart of the risk if it changed; where the
server asks to come again, it does, as the page. The server is a process of its own with its usual
workers. Little more than the setting that the page begins with is known when the clock starts.

`alone` are these people by themselves. In `abused` every tenth move is one of `HOSTILE`: the
dearest questions that an address can hold, what is no HTTP, another site's page, bodies and headers
above the limits, names that are paths, a byte a second, a question whose asker has gone.
`broken` says which promises did not hold.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx

from benchmarks.timing import Found, explorer, spread_ms
from dprime.request import MECHANISM
from dprime.web.options import SLIDERS, TARGET_SLIDERS

psutil: Any = import_module("psutil")

CHARTS = "trade-off,trade-off-corner,precision"
"""The charts that come with the numbers."""

SHOWN = ("noise_multiplier", "sample_rate", "steps", "group_size", "adjacency")
"""What the chart of the risk is asked for at."""

USERS, SECONDS, SEED = 50, 60, 1
CHOOSING = 0.2
"""Share of the users who have the page choose a parameter."""

LONGEST = 30.0
"""Seconds after which an answer is lost."""

TRIES = 3
"""How often the page asks where the server has too much to do."""

ABUSED, BUSY = 0.1, "503 with Retry-After"
MOST_GROWN, QUIET = 200, 10.0
"""Megabytes that may be left of the abuse, so many seconds after its end."""

Query = dict[str, str]


def walk(rng: random.Random) -> Iterator[Query]:
    sliders, choosing, adjacency = dict(SLIDERS), {}, "add-remove"
    if rng.random() < CHOOSING:
        target, free = rng.choice(list(TARGET_SLIDERS)), rng.choice(MECHANISM)
        choosing = {"target": target, "free": free}  # the page sets the free slider itself
        sliders["value"] = TARGET_SLIDERS[target]
    places = {name: each.positions.index(each.default) for name, each in sliders.items()}
    movable = [name for name in (*places, "adjacency") if name != choosing.get("free")]
    while True:
        name = rng.choice(movable)
        if name == "adjacency":
            adjacency = "add-remove" if adjacency == "replace" else "replace"
        else:
            moved = places[name] + rng.choice((-3, -2, -1, 1, 2, 3))
            places[name] = min(max(moved, 0), len(sliders[name].positions) - 1)
        if adjacency == "replace":  # groups are certified for add-remove only
            places["group_size"] = 0
        query = {each: str(sliders[each].positions[place]) for each, place in places.items()}
        query.pop(choosing.get("free", ""), None)
        yield query | {"adjacency": adjacency, **choosing}


def charts_of(query: Query, chosen: Mapping[str, Any] | None = None) -> str:
    """The address of the chart of a setting's risk."""
    shown = {name: query[name] for name in SHOWN if name in query} | {"charts": "risk"}
    if chosen is not None:
        shown[chosen["name"]] = str(chosen["value"])
    return f"/api/charts?{urlencode(shown)}"


class Heard:
    """How long answers took, by their kind, and why others were lost."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.lost: Counter[str] = Counter()
        self.abuse: dict[str, Counter[str]] = defaultdict(Counter)
        self.again = 0

    async def get(self, client: httpx.AsyncClient, address: str) -> httpx.Response:
        """An answer; as the page, it comes again twice when it is asked to."""
        for _ in range(TRIES - 1):
            answer = await client.get(address)
            if answer.status_code != 503 or "retry-after" not in answer.headers:
                return answer
            self.again += 1
            await asyncio.sleep(float(answer.headers["retry-after"]))
        return await client.get(address)

    async def ask(self, client: httpx.AsyncClient, query: Query, drawn: str) -> str:
        """A move, to its numbers and its charts; those that no move changes stay as drawn.

        Both are asked for at once; after a choice, charts of what was chosen.
        """
        start, kind = time.perf_counter(), "choose" if "target" in query else "risk"
        address = f"/api/{kind}?{urlencode(query | {'charts': CHARTS})}"
        asked, charts = self.get(client, address), drawn
        try:
            if kind == "risk" and (charts := charts_of(query)) != drawn:
                coming = asyncio.ensure_future(self.get(client, charts))
                answer, numbers = await asked, time.perf_counter() - start
                answer = await coming if answer.status_code == 200 else answer
                await asyncio.gather(coming, return_exceptions=True)
            else:
                answer, numbers = await asked, time.perf_counter() - start
                if kind == "choose" and answer.status_code == 200:
                    charts = charts_of(query, answer.json()["chosen"])
                    answer = await self.get(client, charts) if charts != drawn else answer
        except httpx.HTTPError as error:
            self.lost[type(error).__name__] += 1
            return drawn
        if answer.status_code == 200 or _impossible(answer):
            self.seconds[kind].append(time.perf_counter() - start)
            self.seconds["numbers"].append(numbers)
        elif answer.status_code == 503 and "retry-after" in answer.headers:
            self.lost[BUSY] += 1
        else:
            self.lost[f"{answer.status_code} {answer.text[:200]}"] += 1
        return charts

    def told(self) -> Found:
        every = [s for kind, times in self.seconds.items() if kind != "numbers" for s in times]
        kinds = {
            kind: {"answers": len(times), **spread_ms(times)}
            for kind, times in sorted(self.seconds.items())
        }
        abuse = {kind: dict(found) for kind, found in sorted(self.abuse.items())}
        return {
            "moves": len(every) + self.lost.total(), "lost": self.lost.total(),
            "lost_because": dict(self.lost), "again": self.again, **spread_ms(every), **kinds,
            **({"abuse": abuse} if abuse else {}),
        }  # fmt: skip


def _impossible(answer: httpx.Response) -> bool:
    """A target that no parameter keeps has a sentence for its answer."""
    told = ("cannot be met", "nothing to choose", "no mechanism goes lower")
    return answer.status_code == 422 and any(words in answer.text for words in told)


# Abuse --------------------------------------------------------------------------------------------


def dear(rng: random.Random) -> str:
    """An address whose answer costs as much as one can."""
    setting: dict[str, Any] = {
        "noise_multiplier": rng.choice((0.001, 0.004, 0.05, rng.uniform(0.3, 4), 1e5)),
        "sample_rate": rng.choice((1e-9, 1e-4, 0.5, rng.uniform(0.1, 1), 1 - 1e-6)),
        "steps": rng.choice((1, rng.randrange(1, 10_000_000), 9_999_991)),
        "group_size": rng.choice((1, 10, 100, 10_000, 1_000_000)),
    }
    what = rng.choice(("risk", "charts", "choose"))
    if what == "charts":
        setting |= {"charts": "risk", "over": rng.choice(MECHANISM), "fine": "true"}
    if what == "choose":
        target = rng.choice(list(TARGET_SLIDERS))
        value = rng.choice(TARGET_SLIDERS[target].positions)
        setting |= {"target": target, "value": value, "free": rng.choice(MECHANISM)}
    return f"/api/{what}?{urlencode(setting)}"


def crafted(rng: random.Random, kind: str) -> bytes:
    """A request as bytes that no browser would send for the page."""
    host = "Host: 127.0.0.1\r\n"
    forms = {
        "malformed": (
            "\x16\x03\x01 \r\n\r\n", "GET /\r\n\r\n", f"GET / HTTP/1.1\r\n{host}{host}\r\n",
            f"POST /api/read HTTP/1.1\r\n{host}Content-Length: -1\r\n\r\n",
            f"POST /api/read HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\nZ\r\n",
            f"GET /api/risk?steps=%00%ff&steps=1e999 HTTP/1.1\r\n{host}Connection: close\r\n\r\n",
        ),
        "cross-site": (
            f"GET /api/risk?steps=9 HTTP/1.1\r\n{host}Sec-Fetch-Site: cross-site\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        ),
        "oversized": (
            f"POST /api/read HTTP/1.1\r\n{host}Content-Length: 99999999\r\n\r\n{'x' * 70_000}",
            f"GET / HTTP/1.1\r\n{host}X: {'x' * 1_000_000}\r\n\r\n",
        ),
        "paths": (
            f"GET /runs/..%2f..%2fetc%2fpasswd/report HTTP/1.1\r\n{host}\r\n",
            f"GET /static/../app.py HTTP/1.1\r\n{host}\r\n",
        ),
        "slow": (f"GET /api/options HTTP/1.1\r\n{host}X: {'x' * 100}\r\n\r\n",),
        "gone": (f"GET {dear(rng)} HTTP/1.1\r\n{host}\r\n",),
    }  # fmt: skip
    return rng.choice(forms[kind]).encode("latin-1")


HOSTILE = ("dear", "dear", "dear", "malformed", "cross-site", "oversized", "paths", "slow", "gone")


async def abuse(heard: Heard, address: str, rng: random.Random) -> None:
    """One hostile request; what becomes of it is noted."""
    kind, end = rng.choice(HOSTILE), urlsplit(address)
    text = f"GET {dear(rng)} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    request = text.encode() if kind == "dear" else crafted(rng, kind)
    try:
        async with asyncio.timeout(LONGEST):
            reader, writer = await asyncio.open_connection(end.hostname, end.port)
            try:
                for part in [request] if kind != "slow" else [bytes([each]) for each in request]:
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(1.0 if kind == "slow" else 0.0)
                head = b"gone" if kind == "gone" else await reader.readline()
            finally:
                writer.close()
        heard.abuse[kind][head[9:12].decode() or head.decode() or "closed"] += 1
    except OSError as error:
        heard.abuse[kind][type(error).__name__] += 1


# The measurement ----------------------------------------------------------------------------------


def measure(quick: bool, only: list[str] | None = None) -> Found:
    users, seconds = (3, 5) if quick else (USERS, SECONDS)
    shares = {"alone": 0.0, "abused": ABUSED}
    return {name: measured(users, seconds, shares[name]) for name in only or shares}


def measured(users: int, seconds: int, abused: float) -> Found:
    """What so many people and their abuse meet; memory is taken before, and once it is quiet."""
    heard, load = Heard(), round(os.getloadavg()[0], 2)
    with explorer() as (process, address):
        start, used = asyncio.run(_played(process, address, heard, users, seconds, abused))
    told = {"users": users, "seconds": seconds, "seed": SEED, "load_before": load}
    return {**told, "start_megabytes": start, **used, **heard.told()}


def broken(found: Found) -> list[str]:
    """The promises that did not hold, but that of speed, which depends on the machine."""
    said = [f"lost: {why}" for why in found["lost_because"] if why != BUSY]
    said += [
        f"{kind}: {status}"
        for kind, statuses in found.get("abuse", {}).items()
        for status in statuses
        if status.startswith("5") and status != "503"
    ]
    grown = found["server_megabytes"] + found["workers_megabytes"] - found["start_megabytes"]
    return [*said, *([f"{grown} MB more than at the start"] if grown > MOST_GROWN else [])]


async def _played(
    process: int, address: str, heard: Heard, users: int, moves: int, abused: float
) -> tuple[int, dict[str, float]]:
    limits = httpx.Limits(max_connections=2 * users, max_keepalive_connections=2 * users)
    async with httpx.AsyncClient(base_url=address, timeout=LONGEST, limits=limits) as client:
        transport = httpx.AsyncHTTPTransport(retries=10)
        async with httpx.AsyncClient(transport=transport, timeout=LONGEST) as first:
            await first.get(f"{address}/static/vega.js")  # it may not be listening yet
        await asyncio.sleep(3.0)  # as somebody who opens the page
        used = _used(process)
        start = int(used["server_megabytes"] + used["workers_megabytes"])

        async def play(number: int) -> None:
            """One move a second; the next one waits where an answer takes longer."""
            rng = random.Random(f"{SEED}/{number}")
            queries, drawn = walk(rng), ""
            begin = time.perf_counter() + rng.random()
            for turn in range(moves):
                await asyncio.sleep(max(0.0, begin + turn - time.perf_counter()))
                if abused and rng.random() < abused:
                    group.create_task(abuse(heard, address, rng))
                else:
                    drawn = await heard.ask(client, next(queries), drawn)

        async with asyncio.TaskGroup() as group:
            for number in range(users):
                group.create_task(play(number))
        await asyncio.sleep(QUIET)
        await client.get("/api/options")  # it still answers
        return start, _used(process)


def _used(pid: int) -> dict[str, float]:
    """Memory and processor time of the server and of its processes; what they share counts once."""
    server, used = psutil.Process(pid), Counter[str]()
    for process in [server, *server.children(recursive=True)]:
        who = "server" if process.pid == pid else "workers"
        used[f"{who}_megabytes"] += process.memory_full_info().pss // 10**6
        used[f"{who}_cpu_s"] += round(sum(process.cpu_times()[:2]), 1)
    return dict(used)
