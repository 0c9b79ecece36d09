"""How long does SSIM take for all pairs of 100 and 60,000 images, beside scikit-image?

Claim: docs/dataset-sensitivity.md. The pairs of a sample are also compared by scikit-image, one
after the other, in the same run: its time for a pair over ours, and the largest difference. The
images are MNIST's where DPRIME_DATA names a folder that has them, else random blobs.
"""

from __future__ import annotations

import importlib

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.timing import Found, seconds
from dprime.data import load
from dprime.data.dissimilarity import dissimilarity

Images = NDArray[np.float32]  # [image, channel, y, x]
ROWS, COLUMNS, SAMPLE = 100, 60_000, 500


def measure(quick: bool, device: str) -> Found:
    rows, columns, sample = (10, 2_000, 50) if quick else (ROWS, COLUMNS, SAMPLE)
    source, b = _images(columns)
    a, found = b[:rows], np.empty(0)
    dissimilarity(a, b[:1000], "ssim", device=device)  # whatever is set up on first use

    def ours() -> None:
        nonlocal found
        found = dissimilarity(a, b, "ssim", device=device)

    taken = seconds(ours)
    rng = np.random.default_rng(0)
    pairs = list(zip(rng.integers(0, rows, sample), rng.integers(0, columns, sample), strict=True))
    ssim = importlib.import_module("skimage.metrics").structural_similarity
    double = [1 - ssim(*(x[0].astype(float) for x in (a[i], b[j])), data_range=1) for i, j in pairs]
    single: list[float] = []
    theirs = seconds(
        lambda: single.extend(1 - ssim(a[i][0], b[j][0], data_range=1) for i, j in pairs)
    )
    same = np.array([found[i, j] for i, j in pairs])
    pair, skimage_pair = taken / found.size, theirs / sample
    return {
        "images": source, "threads": torch.get_num_threads(), "pairs": found.size,
        "seconds": taken, "pair_us": pair * 1e6, "skimage_sample": sample,
        "skimage_pair_us": skimage_pair * 1e6, "times_faster": skimage_pair / pair,
        "largest_difference": float(np.abs(same - double).max()),
        "skimage_float32_difference": float(np.abs(np.subtract(single, double)).max()),
        "largest_at_identical": float(np.abs(np.diag(found)).max()),
    }  # fmt: skip


def _images(count: int) -> tuple[str, Images]:
    """The first images of MNIST, or as many bright spots on a background of exactly 0."""
    try:
        return "MNIST", load("mnist").train.records[:count]
    except FileNotFoundError:
        rng = np.random.default_rng(0)
        top, left = rng.uniform(6, 22, (2, count, 1, 1))
        y, x = np.ogrid[:28, :28]
        far = ((y - top) ** 2 + (x - left) ** 2) / rng.uniform(2, 20, (count, 1, 1))
        made = np.exp(-far).astype(np.float32)
        return "random blobs", np.where(made < 0.05, np.float32(0), made)[:, None]
