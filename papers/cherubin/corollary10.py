"""Section 5.2: whether distances of gradients alone bound attribute inference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.pages import results
from dprime.estimates import attribute_inference, attribute_inference_central_limit
from dprime.mechanisms import DPSGD
from papers.drawing import Line, lines_chart
from papers.entry import Measured, Scale, Table
from papers.reproduce import Claim, normal, stated

RATE, STEPS, APART = 0.02, 400, 0.5
NOISES = (0.7, 1.0, 2.0)
NORMS = {"of norm C": 1.0, "opposite, of norm C/4": APART / 2}
LOSS_STEP, LOSSES = 1e-4, 2**19
"""The grid of losses on which a step is composed."""


def section5_2(scale: Scale) -> Measured:
    """The best attacker on noisy gradients, and those on trainings."""
    points = scale.pick(401, 1401, 1401)
    settings_of = [(noise, name) for noise in NOISES for name in NORMS]
    made = {key: composed(key[0], NORMS[key[1]], points) for key in settings_of}
    best = dict(made)
    for noise, name in settings_of:
        if NORMS[name] == APART / 2:
            # Of opposite gradients the advantage is that of one record replaced, with half their
            # distance as clipping norm, which is certified.
            best[noise, name] = DPSGD(2 * noise / APART, RATE, STEPS).curve("replace").advantage()
    first = NOISES[0], next(iter(NORMS))
    figure = lines_chart(
        f"With gradients of norm C the attacker reaches {best[first]:.3f} at σ = "
        f"{first[0]:g}, where R alone says {closed(first[0]):.3f}.",
        "noise σ", "advantage",
        [
            Line("the paper's corollary 10 without its error term",
                 [(noise, closed(noise)) for noise in NOISES], ink=len(NORMS)),
            *(Line(f"central limit, gradients {name}",
                   [(noise, central(noise, norm)) for noise in NOISES], ink=ink)
              for ink, (name, norm) in enumerate(NORMS.items())),
            *(Line(f"attacker, gradients {name}", [(noise, best[noise, name]) for noise in NOISES],
                   "points", ink)
              for ink, name in enumerate(NORMS)),
        ],
    )  # fmt: skip
    checked = Table(
        "The composition beside the certified advantage, opposite gradients",
        ("noise σ", "composed", "certified"),
        tuple((f"{key[0]:g}", f"{made[key]:.5f}", f"{found:.5f}")
              for key, found in best.items() if NORMS[key[1]] == APART / 2),
    )  # fmt: skip
    settings = {
        "rate": RATE, "steps": STEPS, "distance": APART, "points": points, "losses": LOSSES,
        "step of losses": LOSS_STEP,
    }  # fmt: skip
    claims = [of_best(*key, found) for key, found in best.items()]
    claims += map(of_attack, results("attributes")["attack"])
    return Measured(claims, settings, {"": figure}, tables=[checked])


def of_best(noise: float, name: str, found: float) -> Claim:
    """The best attacker on the gradients of a record that is in each batch with probability p."""
    said, term = closed(noise), math.sqrt(RATE * (1 - RATE) * STEPS) / noise
    return stated(
        f"advantage of the best attacker, σ = {noise:g}, gradients {name}",
        f"corollary 10 without its error term: at most {said:.4f}", found, most=said,
        why=f"It is {found / said:.4g} times what the distance alone says. "
        f"The central-limit form, which has the norms too, says {central(noise, NORMS[name]):.4f}; "
        f"the error term is {term:.2g}.",
    )  # fmt: skip


def of_attack(row: Mapping[str, Any]) -> Claim:
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
