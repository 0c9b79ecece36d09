"""Section 5.2: whether distances of gradients alone bound attribute inference."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from dprime.estimates import attribute_inference, attribute_inference_central_limit
from dprime.mechanisms import DPSGD
from papers.drawing import Line, lines_chart
from papers.entry import Measured, Scale, Table
from papers.page import HERE
from papers.reproduce import Claim, normal, stated

RATE, STEPS, APART = 0.02, 400, 0.5
NOISES = (0.7, 1.0, 2.0)
NORMS = {"of norm C": 1.0, "opposite, of norm C/4": APART / 2}
LOSS_STEP, LOSSES = 1e-4, 2**19
"""The grid of losses on which a step is composed."""

ATTACKS = HERE.parent / "benchmarks" / "attributes.json"

Row = dict[str, Any]


def section5_2(scale: Scale) -> Measured:
    """The best attacker on noisy gradients, and those on trainings."""
    points = scale.pick(401, 1401, 1401)
    best = [best_attacker(noise, name, points) for noise in NOISES for name in NORMS]
    attacks = json.loads(ATTACKS.read_text())["attack"]
    figure = lines_chart(
        f"With gradients of norm C the attacker reaches {best[0]['found']:.3f} at σ = "
        f"{best[0]['noise']:g}, where R alone says {best[0]['closed form']:.3f}.",
        "noise σ", "advantage",
        [
            Line("the paper's corollary 10 without its error term",
                 [(noise, closed(noise)) for noise in NOISES], ink=len(NORMS)),
            *(Line(f"central limit, gradients {name}",
                   [(noise, central(noise, norm)) for noise in NOISES], ink=ink)
              for ink, (name, norm) in enumerate(NORMS.items())),
            *(Line(f"attacker, gradients {name}",
                   [(row["noise"], row["found"]) for row in best if row["gradients"] == name],
                   "points", ink)
              for ink, name in enumerate(NORMS)),
        ],
    )  # fmt: skip
    checked = Table(
        "The composition beside the certified advantage, opposite gradients",
        ("noise σ", "composed", "certified"),
        tuple((f"{row['noise']:g}", f"{row['composed']:.5f}", f"{row['found']:.5f}")
              for row in best if NORMS[row["gradients"]] == APART / 2),
    )  # fmt: skip
    settings = {
        "rate": RATE, "steps": STEPS, "distance": APART, "points": points, "losses": LOSSES,
        "step of losses": LOSS_STEP,
    }  # fmt: skip
    return Measured(
        [*map(of_best, best), *map(of_attack, attacks)], settings,
        {"best attacker": best, "attacks": attacks}, {"": figure}, tables=[checked],
    )  # fmt: skip


def best_attacker(noise: float, name: str, points: int) -> Row:
    """On the gradients of a record that is in each batch with probability p.

    Of opposite gradients the advantage is that of one record replaced, with half their distance as
    clipping norm, which is certified; else it is composed numerically, without chance.
    """
    norm = NORMS[name]
    found = made = composed(noise, norm, points)
    if norm == APART / 2:
        found = DPSGD(2 * noise / APART, RATE, STEPS).curve("replace").advantage()
    return {
        "noise": noise, "gradients": name, "closed form": closed(noise),
        "error term": math.sqrt(RATE * (1 - RATE) * STEPS) / noise,
        "central limit": central(noise, norm), "composed": made, "found": found,
    }  # fmt: skip


def of_best(row: Row) -> Claim:
    return stated(
        f"advantage of the best attacker, σ = {row['noise']:g}, gradients {row['gradients']}",
        f"corollary 10 without its error term: at most {row['closed form']:.4f}", row["found"],
        most=row["closed form"],
        why=f"It is {row['found'] / row['closed form']:.4g} times what the distance alone says. "
        f"The central-limit form, which has the norms too, says {row['central limit']:.4f}; the "
        f"error term is {row['error term']:.2g}.",
    )  # fmt: skip


def of_attack(row: Row) -> Claim:
    estimates = row["estimated"]
    return stated(
        f"advantage reached on trainings, σ = {row['noise_multiplier']:g}, p = "
        f"{row['sample_rate']:g}, {row['steps']:,} steps",
        "corollary 10 without its error term, along the trainings: at most "
        f"{estimates['closed-form']:.3f}",
        normal(row["advantage"], row["standard_error"]), most=estimates["closed-form"],
        why=f"{row['trials']:,} trials in each world. By the central-limit form it is "
        f"{estimates['central-limit']:.3f}.",
    )  # fmt: skip


def closed(noise: float) -> float:
    """The advantage by corollary 10, without its error term."""
    return attribute_inference(APART * math.sqrt(STEPS), noise, RATE).advantage()


def central(noise: float, norm: float) -> float:
    """By the form that has the norms."""
    steps = [(norm, norm, norm**2 - APART**2 / 2)] * STEPS
    return attribute_inference_central_limit(steps, noise, RATE).advantage()


def composed(noise: float, norm: float, points: int) -> float:
    """The advantage of the best attacker: the loss of a step on a grid, composed by Fourier.

    A loss between two points of the grid is shared by them so that its mean stays.
    """
    half, height = APART / 2, math.sqrt(max(0.0, norm**2 - APART**2 / 4))
    axis = np.linspace(-9 * noise - 1, 9 * noise + 1, points)
    across, up = np.meshgrid(axis, axis, indexing="ij")
    first, second = (
        1 + RATE * np.expm1((side * half * across + height * up - norm**2 / 2) / noise**2)
        for side in (1, -1)
    )  # over the density of noise alone
    seen = np.exp(-(across**2 + up**2) / (2 * noise**2)) * first
    places = np.log(first / second) / LOSS_STEP
    below = np.floor(places)
    masses = np.zeros(LOSSES)
    for place, share in ((below, below + 1 - places), (below + 1, places - below)):
        index = place.astype(int).ravel() % LOSSES
        masses += np.bincount(index, weights=(seen * share).ravel(), minlength=LOSSES)
    whole = np.fft.irfft(np.fft.rfft(masses / masses.sum()) ** STEPS, LOSSES)
    losses = LOSS_STEP * np.fft.fftfreq(LOSSES, 1 / LOSSES)
    return float(np.maximum(0.0, -np.expm1(-losses)) @ whole)
