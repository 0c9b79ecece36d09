"""How often does each lower bound claim too much? Simulated audits of mechanisms with known truth.

    python benchmarks/coverage.py [--quick] [--out benchmarks/coverage.json]

Every method, at δ = 0, 1e-5 and 1e-2, with 100, 1,000 and 10,000 trials a world, on four mechanisms
with ε = 0, 1 and 4, on scores that are continuous, tied, or have at most five values: 2,000 audits
each. One-run methods get twice as many canaries as a world has trials, in or out by fair coins.
`coverage_page.py` writes the tables of `docs/lower-bounds.md` from the result.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import platform
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import version
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np

from coverage_worlds import FORMS, MECHANISMS, Worlds
from dprime import Reading, TradeOff
from dprime.audit import LowerBound, judge, lower_bound
from dprime.privacy_loss import Array

CONFIDENCE = 0.95
"""The default of `lower_bound`."""
DESIGNS = (
    (0.0, 1e-5, (0.0, 1e-5, 1e-2)),
    (1.0, 1e-5, (0.0, 1e-5)),
    (1.0, 1e-2, (1e-2,)),
    (4.0, 1e-5, (0.0, 1e-5)),
    (4.0, 1e-2, (1e-2,)),
)
"""ε, the δ at which it is meant, and the δ that are asked of these worlds."""

SIZES = (100, 1000, 10_000)
CURVES = ("band", "gaussian")
"""One call bounds the curve; every δ is read off it."""
CHOSEN = ("clopper-pearson", "bayesian")
ONE_RUN = ("steinke", "mahloujifar")

Task = tuple[str, float, float, tuple[float, ...], str, int, int]
Row = dict[str, Any]


def main() -> None:
    options = _options()
    audits = 100 if options.quick else 2000
    designs = itertools.product(MECHANISMS, DESIGNS, FORMS, SIZES)
    tasks = [(family, *design, form, n, audits) for family, design, form, n in designs]
    tasks.sort(key=lambda task: -task[5])  # long ones first
    started = time.perf_counter()
    rows: list[Row] = []
    with Pool(options.processes) as pool:
        for done, found in enumerate(pool.imap_unordered(_measure, tasks), 1):
            rows += found
            print(f"{done} of {len(tasks)} settings", end="\r", file=sys.stderr, flush=True)
    result = {
        "machine": _machine(),
        "processes": options.processes,
        "seconds": round(time.perf_counter() - started, 1),
        "confidence": CONFIDENCE,
        "audits": audits,
        "rows": sorted(rows, key=_order),
    }
    options.out.write_text(_json(result))
    _report(result)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100 audits each")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("coverage.json"))
    return parser.parse_args()


def _measure(task: Task) -> list[Row]:
    """All methods on one kind of audit; a row for each method and δ."""
    family, epsilon, at_delta, deltas, form, n, audits = task
    worlds = Worlds(family, epsilon, at_delta, form)
    truth, claim = worlds.truth, worlds.truth.curve
    epsilons = {delta: truth.epsilon(delta) for delta in deltas}
    found: dict[tuple[str, float], list[Row]] = defaultdict(list)
    for number, scores, canaries in _audits(worlds, n, audits, task):
        for method, delta, bound in _bounds(scores, canaries, deltas, number):
            found[method, delta].append(_outcome(bound, delta, epsilons[delta], claim))
    setting = {"mechanism": family, "epsilon": epsilon, "scores": form, "trials": n}
    return [
        {"method": method, "delta": delta, **setting, **_summary(outcomes, epsilons[delta])}
        for (method, delta), outcomes in found.items()
    ]


def _audits(
    worlds: Worlds, n: int, audits: int, task: Task
) -> Iterator[tuple[int, tuple[Array, Array], tuple[Array, Array]]]:
    """Scores of two worlds, and of canaries that share the draws where they can."""
    seed = [ord(letter) for letter in repr(task)]
    rng = np.random.default_rng(seed)
    spare = n + 6 * math.isqrt(n)  # six standard deviations of a fair coin's count, and more
    for number in range(audits):
        inside = worlds.draw(rng, spare, inside=True)
        outside = worlds.draw(rng, spare, inside=False)
        heads = min(max(int(rng.binomial(2 * n, 0.5)), 2 * n - spare), spare)
        yield number, (inside[:n], outside[:n]), (inside[:heads], outside[: 2 * n - heads])


def _bounds(
    scores: tuple[Array, Array],
    canaries: tuple[Array, Array],
    deltas: tuple[float, ...],
    seed: int,
) -> Iterator[tuple[str, float, LowerBound]]:
    for method in CURVES:
        bound = lower_bound(*scores, delta=deltas[-1], method=method)
        yield from ((method, delta, bound) for delta in deltas)
    for delta in deltas:
        for method in CHOSEN:
            yield method, delta, lower_bound(*scores, delta=delta, method=method, seed=seed)
        for method in ONE_RUN:
            yield method, delta, lower_bound(*canaries, delta=delta, method=method)


def _outcome(bound: LowerBound, delta: float, truth: float, claim: TradeOff) -> Row:
    same = delta == bound.delta
    epsilon = bound.epsilon if same else bound.value(Reading("epsilon", {"delta": delta}))
    over = epsilon > truth
    outcome: Row = {"bound": epsilon, "over": over}
    if bound.method == "band":
        outcome["curve_over"] = _curve_over(bound, claim)
    if bound.method == "gaussian":
        outcome["objected"] = bound.objection is not None
        outcome["over_unobjected"] = over and bound.objection is None
    return outcome


@lru_cache(2)
def _curve_over(bound: LowerBound, claim: TradeOff) -> bool:
    """Once for all δ."""
    return judge(bound, claim, "curve").refuted


def _summary(outcomes: list[Row], truth: float) -> Row:
    bounds = [outcome.pop("bound") for outcome in outcomes]
    shares = {name: float(np.mean([o[name] for o in outcomes])) for name in outcomes[0]}
    return {**shares, "truth": truth, "median": statistics.median(bounds)}


def limit(audits: int) -> float:
    """1 - confidence and three standard errors."""
    alpha = 1 - CONFIDENCE
    return alpha + 3 * math.sqrt(alpha * (1 - alpha) / audits)


def decisive(row: Row) -> bool:
    """Whether a bound must hold: a Bayesian one need not, nor a Gaussian one on other scores."""
    if row["method"] == "gaussian":
        return (row["mechanism"], row["scores"]) == ("Gaussian", "continuous")
    return str(row["method"]) != "bayesian"


def share_over(row: Row) -> float:
    """Of ε, and for the band of the curve anywhere."""
    return max(float(row["over"]), float(row.get("curve_over", 0.0)))


def _report(result: dict[str, Any]) -> None:
    most = limit(result["audits"])
    failing = [row for row in result["rows"] if decisive(row) and share_over(row) > most]
    for row in failing:
        print("above the limit:", row)
    print(f"{len(result['rows'])} settings in {result['seconds']:.0f} s, {len(failing)} above.")
    sys.exit(bool(failing))


def _order(row: Row) -> tuple[Any, ...]:
    return tuple(row[k] for k in ("method", "mechanism", "epsilon", "delta", "trials", "scores"))


def _json(result: dict[str, Any]) -> str:
    """One line a row; an infinite number is a word."""
    plain = {key: value for key, value in result.items() if key != "rows"}
    lines = [json.dumps({k: _finite(v) for k, v in row.items()}) for row in result["rows"]]
    head = json.dumps(plain, indent=1).removesuffix("\n}")
    return head + ',\n "rows": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"


def _finite(value: object) -> object:
    if isinstance(value, float):
        return "infinite" if math.isinf(value) else round(value, 6)
    return value


def _machine() -> dict[str, str]:
    packages = {name: version(name) for name in ("numpy", "scipy")}
    return {"python": platform.python_version(), "cores": str(os.cpu_count()), **packages}


if __name__ == "__main__":
    main()
