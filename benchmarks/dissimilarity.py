"""How long SSIM takes for all pairs of 100 and 60,000 images of MNIST's shape.

    python benchmarks/dissimilarity.py [--device cuda] [--out FILE]

The pairs of a sample are also compared by scikit-image, one after the other, in the same run: its
time for a pair over ours, and the largest difference. The images are MNIST's if DPRIME_DATA names
a folder that has them, else random blobs; the table says which.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dprime.data import load
from dprime.data.dissimilarity import dissimilarity

Images = NDArray[np.float32]  # [image, channel, y, x]
SHAPE = (1, 28, 28)


def main() -> None:
    options = _options()
    source, images = _images(options.columns)
    result = {"images": source, **_machine(options.device)}
    result |= _measure(images[: options.rows], images, options.device, options.sample)
    _show(result)
    if options.out is not None:
        options.out.write_text(json.dumps(result, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=100, help="records of D")
    parser.add_argument("--columns", type=int, default=60_000, help="records of the universe")
    parser.add_argument("--sample", type=int, default=500, help="pairs for scikit-image")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    return parser.parse_args()


def _images(count: int) -> tuple[str, Images]:
    """The first images of MNIST, or as many blobs."""
    try:
        return "MNIST", load("mnist").train.records[:count]
    except FileNotFoundError:
        return "random blobs", _blobs(count)


def _blobs(count: int) -> Images:
    """A bright spot each on a background of exactly 0."""
    rng = np.random.default_rng(0)
    y, x = np.ogrid[: SHAPE[1], : SHAPE[2]]
    made = np.empty((count, *SHAPE), np.float32)
    for image in made:
        top, left, width = rng.uniform([6, 6, 2], [22, 22, 20])
        image[:] = np.exp(-((y - top) ** 2 + (x - left) ** 2) / width)
    made[made < 0.05] = 0
    return made


def _machine(device: str) -> dict[str, Any]:
    gpu = torch.cuda.get_device_name(device) if device.startswith("cuda") else None
    return {
        "device": gpu or device,
        "threads": torch.get_num_threads(),
        "load_before": os.getloadavg()[0],
        "torch": torch.__version__,
    }


def _measure(a: Images, b: Images, device: str, sample: int) -> dict[str, Any]:
    dissimilarity(a, b[:1000], "ssim", device=device)  # whatever is set up on first use
    seconds, found = _timed(lambda: dissimilarity(a, b, "ssim", device=device))
    rng = np.random.default_rng(0)
    pairs = list(zip(rng.integers(0, len(a), sample), rng.integers(0, len(b), sample), strict=True))
    ssim = importlib.import_module("skimage.metrics").structural_similarity
    double = [1 - ssim(*(x[0].astype(float) for x in (a[i], b[j])), data_range=1) for i, j in pairs]
    taken, single = _timed(lambda: [1 - ssim(a[i][0], b[j][0], data_range=1) for i, j in pairs])
    ours = np.array([found[i, j] for i, j in pairs])
    pair, skimage_pair = seconds / found.size, taken / sample
    return {
        "pairs": found.size,
        "seconds": seconds,
        "pair_us": pair * 1e6,
        "skimage_sample": sample,
        "skimage_pair_us": skimage_pair * 1e6,
        "times_faster": skimage_pair / pair,
        "largest_difference": float(np.abs(ours - double).max()),
        "skimage_float32_difference": float(np.abs(np.subtract(single, double)).max()),
        "largest_at_identical": float(np.abs(np.diag(found)).max()),
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _show(result: dict[str, Any]) -> None:
    rows = {
        "images": result["images"],
        "device": f"{result['device']}, load before {result['load_before']:.2f}",
        "pairs": f"{result['pairs']:,}",
        "time": f"{result['seconds']:.2f} s, {result['pair_us']:.3g} µs a pair",
        "scikit-image": f"{result['skimage_pair_us']:.0f} µs a pair, "
        f"{result['times_faster']:.0f} times as long (sample of {result['skimage_sample']})",
        "largest difference": f"{result['largest_difference']:.1e} from scikit-image in float64",
        "scikit-image's own": f"{result['skimage_float32_difference']:.1e} in float32",
        "identical images": f"{result['largest_at_identical']:.1e} at most",
    }
    for name, value in rows.items():
        print(f"{name:<20}{value}")


if __name__ == "__main__":
    main()
