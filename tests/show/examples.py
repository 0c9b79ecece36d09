"""An example of every chart, with all that it can show."""

import math

import numpy as np

import dprime
from dprime.audit.identifiability import belief_bound
from dprime.curve import LowerCurve
from dprime.shapes import GaussianShape
from dprime.show import charts
from dprime.show.charts import (
    FrontierPoint,
    FrontierSeries,
    ImprovementPoint,
    Points,
    PrecisionLine,
    PrecisionPoint,
    RocCurve,
    Rung,
    SecurityLine,
)

TRAINING = dprime.DPSGD(noise_multiplier=1.1, sample_rate=0.01, steps=500)
FULL_BATCH = dprime.DPSGD(noise_multiplier=8.0, sample_rate=1.0, steps=12)


def drawn(chart):
    """The series by their names."""
    return {each.name: each for each in chart.series}


def walks(trials=60, steps=12, mu=0.125, seed=1):
    """Log ratios [trial, step] of Gaussian steps, and the worlds."""
    rng = np.random.default_rng(seed)
    in_world = np.arange(trials) % 2 == 0
    drift = np.where(in_world, mu**2 / 2, -(mu**2) / 2)[:, None]
    return (drift + mu * rng.normal(size=(trials, steps))).cumsum(axis=1), in_world


def membership(claim):
    """Charts of membership inference."""
    rates = (0.001, 0.01, 0.1, 1.0)
    found = ((0.0, 0.02, 0.15, 1.0), (0.0, 0.01, 0.12, 1.0), (0.1, 0.1, 1.0, 1.0))
    point = PrecisionPoint(0.5, 0.6, 0.55, 0.65, certified=0.73, shuffled=0.55)
    panels = [PrecisionLine(f"ε = {place}", (point,)) for place in range(1, 6)]
    gain = ImprovementPoint(0.5, 0.05, 0.03, 0.07, 0.04, 0.03, 0.05)
    first, last = (
        FrontierPoint(0.1, 0.9, 0.88, 0.92, 3.0),
        FrontierPoint(0.9, 0.6, None, None, math.inf),
    )
    return [
        charts.membership_roc((RocCurve("LiRA", rates, *found),), Points.of(claim), "Digits"),
        charts.precision_over_prior(panels, "LiRA", "digits"),
        charts.improvement((gain,), "LiRA", "digits"),
        charts.frontier((FrontierSeries(0.9, (first, last)),), "digits"),
    ]


def examples():
    """By the function that made them."""
    logs, in_world = walks()
    claim = TRAINING.curve()
    lower = LowerCurve(GaussianShape(0.1), confidence=0.95, method="band")
    estimate = dprime.Estimate(GaussianShape(0.2), source="central limit theorem")
    bound = belief_bound(FULL_BATCH, "add-remove", 0.5)
    lines = (
        SecurityLine("membership", "certified", ((1.0, 0.95), (2.0, 0.9))),
        SecurityLine("age", "estimate", ((1.0, 0.99), (2.0, 0.98))),
    )
    made = [
        charts.trade_off(claim, lower),
        charts.trade_off(claim, lower, log=True),
        charts.trade_offs({"planned": claim, "seen": lower, "limit": estimate}),
        charts.trade_off(claim, corner=True),
        *(charts.risk(TRAINING, over) for over in ("noise_multiplier", "sample_rate", "steps")),
        charts.precision(claim),
        charts.bayes_security(TRAINING, attribute=[(2.0, 0.97)]),
        charts.belief(logs, in_world, bound=bound),
        charts.belief_distribution(logs, in_world),
        charts.sensitivity(np.full((5, 12), 0.5), clip_norm=1.0, adjacency="replace"),
        charts.scores(logs[in_world, -1], logs[~in_world, -1]),
        charts.ladder((Rung("api-access", 0.0, 0.1, 0.2),), 0.7, "d′", 0.95),
        *membership(claim),
        charts.security(lines, "Adult"),
    ]
    return {chart.name: chart for chart in made}


EXAMPLES = examples()
