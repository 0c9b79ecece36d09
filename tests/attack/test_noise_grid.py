"""The adversary that looks at the noise: what it computes, and what it needs to be given.

That it sees noise of few bits, and nothing in smooth noise: tests/attacks_on_us/test_noise_grid.py.
"""

import math
from functools import partial

import numpy as np
import pytest
import scipy.special
import torch

from dprime.attack import NoiseGrid, grid_scores
from dprime.attack.noise_grid import BLURS, layouts, worlds_logs
from dprime.train import Observer
from games import engine_setting, played
from told import refuses


def levels(values, first, second):
    """The mean cosine of the pairs' places between two levels: 1 on a grid, 0 without one."""
    a, b = values[:, first].double(), values[:, second].double()
    squared = a**2 + b**2
    places = torch.exp(-squared / 2) * 2**24
    return float(torch.cos(2 * math.pi * places[squared < 0.03]).mean())


@pytest.mark.parametrize("size", [16, 37, 45])
def test_pytorchs_pairs(size):
    generator = torch.Generator().manual_seed(1)
    draws = [torch.normal(0.0, 1.0, (size,), generator=generator) for _ in range(9000)]
    values = torch.stack(draws)
    first, second = layouts([size])[2]
    assert levels(values, first, second) > 0.98
    paired = [*first.tolist(), *second.tolist()]
    assert len(paired) == len(set(paired))  # numbers that are drawn again have one partner
    assert abs(levels(values, *layouts([size])[1])) < 0.3  # neighbours are no pairs


def test_every_tensor_has_pairs_of_its_own():
    assert len(layouts([15])) == 2  # PyTorch draws few numbers in double precision
    together, apart = layouts([5, 4])[0], layouts([5, 4])[2]
    assert [each.tolist() for each in together] == [[0, 1, 2, 3], [5, 6, 7, 8]]
    assert [each.tolist() for each in apart] == [[0, 1, 5, 6], [3, 4, 7, 8]]


def naive(noisy, common, gradient, sigma, layout, blur):
    """The law of a grid over that of ordinary noise, pair by pair, in Python's numbers."""
    total = 0.0
    clipped = [float(c + g) for c, g in zip(common, gradient, strict=True)]
    root = math.sqrt(sum(each**2 for each in clipped) / len(clipped))
    noise = [(float(n) - c) / sigma for n, c in zip(noisy, clipped, strict=True)]
    blurs = [
        2**-24 * (abs(float(n)) / 2 + 2 * abs(c) + root) / sigma + blur
        for n, c in zip(noisy, clipped, strict=True)
    ]
    for i, j in zip(*(each.tolist() for each in layout), strict=True):
        squared = noise[i] ** 2 + noise[j] ** 2
        if squared >= 0.2:
            continue
        place = math.exp(-squared / 2) * 2**24
        moved = (noise[i] * blurs[i]) ** 2 + (noise[j] * blurs[j]) ** 2
        kappa = 1 / (4 * math.pi**2 * (squared**2 + 4**24 * moved))
        density = math.exp(kappa * (math.cos(2 * math.pi * place) - 1)) / scipy.special.i0e(kappa)
        total += math.log(0.99 * density + 0.01)
    return total


def test_against_a_slow_computation():
    rng = np.random.default_rng(3)
    size, sigma = 40, 2.0
    common, gradient = (torch.tensor(rng.normal(size=size) / 8) for _ in range(2))
    noisy = common + gradient + sigma * torch.tensor(rng.normal(size=size) / 4)
    pairs = layouts([24, 16])
    given = noisy[None], common[None], [gradient[None]], torch.tensor([sigma])
    inside, outside = worlds_logs(*given, 1.0, pairs)
    rest = noisy - common
    ordinary = float(gradient @ rest - gradient @ gradient / 2) / sigma**2
    assert inside[0, 0] == pytest.approx(ordinary)
    assert outside[0, 0] == 0
    laws = [(layout, blur) for layout in pairs for blur in BLURS]
    for place, (layout, blur) in enumerate(laws, 1):
        within = ordinary + naive(noisy, common, gradient, sigma, layout, blur)
        without = naive(noisy, common, torch.zeros(size), sigma, layout, blur)
        assert inside[0, place] == pytest.approx(within, rel=1e-6)
        assert outside[0, place] == pytest.approx(without, rel=1e-6)


class Recording(Observer):
    """Keeps what an attacker is shown: the noisy sum, the others', and the gradients."""

    def __init__(self):
        self.shown = []

    def see(self, step):
        shown = step.noisy_sum, step.common_sum, *step.differing
        self.shown.append([each.clone() for each in shown])


@pytest.mark.parametrize(("adjacency", "rate"), [("add-remove", 1.0), ("replace", 0.4)])
def test_recorded_updates_have_the_scores_of_the_engines(adjacency, rate):
    setting = engine_setting(adjacency=adjacency, sample_rate=rate)
    attack, seen, trainer = NoiseGrid().craft(setting), Recording(), setting.trainer
    scores = played(setting, attack)["score"]
    trainer.watch(seen, attack.worlds, trainer.training, trials=20, seed=setting.seed)
    sums, common, *gradients = (torch.stack(each, 1) for each in zip(*seen.shown, strict=True))
    options = {"sample_rate": rate, "sizes": [640, 10]}
    found = grid_scores(sums, common, gradients, trainer.training.sigma, **options)
    np.testing.assert_allclose(found, scores, rtol=1e-4, atol=1e-4)


ZEROS = np.zeros((3, 2, 10), dtype=np.float32)
GIVEN = {"noisy_sums": ZEROS, "common_sums": ZEROS, "gradients": [ZEROS], "noise": 1.0}
WRONG = [
    ("noisy_sums", ZEROS[0]),
    ("noisy_sums", ZEROS.astype(int)),
    ("gradients", [ZEROS[:2]]),
    ("gradients", []),
    ("noise", 0),
    ("sample_rate", 2),
    ("sizes", [5, 4]),
]
test_what_cannot_be_scored = refuses(
    [(name, partial(grid_scores, **{**GIVEN, name: value})) for name, value in WRONG]
)
