"""Certified values against the truth of 260 random settings, log-uniform over the whole range.

The truth was computed once by `benchmarks/tightness.py` with methods that share nothing with the
accountant, and is kept in `evidence/truth.json`; the certified values are computed here and now.
"""

import json
from pathlib import Path

import pytest

from dprime import DPSGD

EVIDENCE = json.loads((Path(__file__).parent / "evidence" / "truth.json").read_text())["tightness"]
CASES = [
    (row["noise"], row["rate"], row["steps"], adjacency, row[adjacency])
    for row in EVIDENCE["rows"]
    for adjacency in ("add-remove", "replace")
    if row[adjacency]["method"] != "none"
]
SLACK = 2e-3


def certified(curve, metric):
    return {
        "advantage": curve.advantage,
        "tpr": lambda: curve.tpr(0.01),
        "precision": lambda: curve.precision(0.1, 0.01),
        "epsilon": lambda: curve.epsilon(1e-5),
    }[metric]()


def accuracy_of(truth, metric):
    """How far off the truth itself may be, relative."""
    if truth["method"] == "simulation":
        return 4 * truth["standard_error"] / truth[metric]
    if metric in ("tpr", "precision"):
        return 1e-5  # a search for the least of many lines ends a little above it
    exactness = {"contour": 2e-6, "lattice": 2e-5, "closed form": 1e-12, "affinity": 1e-8}
    return exactness[truth["method"]]


def test_there_is_enough_evidence():
    kept = [row for row in EVIDENCE["rows"] if row["add-remove"]["method"] != "none"]
    assert len(kept) >= 200
    assert len(CASES) >= 400


@pytest.mark.parametrize("block", range(10))
def test_never_below_the_truth_and_close_above_it(block):
    for noise, rate, steps, adjacency, truth in CASES[block::10]:
        curve = DPSGD(noise, rate, steps).curve(adjacency)
        for metric in ("advantage", "tpr", "precision", "epsilon"):
            if metric not in truth:
                continue
            exact, value = truth[metric], certified(curve, metric)
            error = accuracy_of(truth, metric)
            where = f"{metric} of {noise}, {rate}, {steps}, {adjacency}: {value}, truth {exact}"
            assert value >= exact * (1 - error) - 1e-9, where
            absolute = 1e-4 if metric == "epsilon" else 1e-9
            assert value <= exact * (1 + SLACK + error) + absolute, where
