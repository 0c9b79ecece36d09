"""Dataset sensitivity: which record, removed or replaced, changes the data most.

Definition 6 of Bernau et al. (2021) compares neighbouring data sets by a dissimilarity d of their
records, and takes the neighbour D′ that lies furthest from D:

- add-remove (unbounded): D′ = D ∖ {x}, with the x in D whose sum of d(x, ·) over D is largest;
- replace (bounded): D′ = D ∖ {x} ∪ {x′}, with the pair (x in D, x′ in U ∖ D) whose d is largest.

It is a heuristic for a pair that is easy to tell apart: nothing certified follows from it. Rows are
the records a, columns the records b, a tile is a block of the d(a, b), a pair's index its place row
by row. Whatever part of a ranking is kept, the tiles are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from dprime import validate
from dprime.data.arrays import at_most, numbers
from dprime.data.devices import device_named, one_thread, single_precision

DEFAULTS = {"image": "ssim", "binary": "hamming", "table": "manhattan"}
ADJACENCIES = ("add-remove", "replace")
CPU_MEMORY, GPU_MEMORY = 0.024, 2.0  # GB; on the CPU for each thread, about what the caches hold

_ROWS, _LEAST_COLUMNS, _WINDOW = 256, 256, 7
_THREADS = 8  # with more of them, most wait for the interpreter
_C1, _C2 = 0.01**2, 0.03**2  # (K L)² for a data range of L = 1: Wang et al. 2004, section III.B

_Floats = NDArray[np.float64]
_Indexes = NDArray[np.int64]
_Progress = Callable[[int, int], None]


def default_measure(kind: str) -> str:
    """The measure that Bernau et al. (2021, section 6.1) found best for a kind of data."""
    return DEFAULTS[validate.one_of("kind", kind, tuple(DEFAULTS))]


def dissimilarity(
    a: ArrayLike, b: ArrayLike, measure: str, *, device: str = "cpu", memory: float | None = None
) -> NDArray[Any]:
    """The dissimilarity d of every record of `a` to every record of `b`: (len(a), len(b)) numbers.

    - ssim: 1 − SSIM, from 0 for identical images to 2. The paper's "negative SSIM" ranks alike. It
    is scikit-image's `structural_similarity` with its defaults and `data_range=1`: windows of 7 ×
    7, or the largest odd ones that fit. In float32 it is within 1e-5.
    - euclidean and manhattan: the 2-norm and the 1-norm of the difference.
    - hamming: the share of the entries that differ.
    - cosine: 1 − cos. A zero record is at 1 from every other one, and at 0 from a zero record.

    Records are images (n, c, h, w), in [0, 1] for ssim, or a table (n, d); other measures take an
    image for a row of numbers. `memory` is the GB of work space: by default 24 MB for each thread
    on the CPU, so that the work stays in the caches, and 2 GB elsewhere.

    >>> dissimilarity([[0, 1, 1, 0]], [[0, 1, 1, 0], [1, 1, 1, 1]], "hamming")
    array([[0. , 0.5]])
    """
    first, second = _tensors(a, b, ("a", "b"), measure, device)
    matrix = torch.empty(len(first), len(second), dtype=first.dtype)
    for rows, columns, tile in _tiles(first, second, measure, memory):
        matrix[rows, columns] = tile.cpu()
    return matrix.numpy()


@dataclass(frozen=True, eq=False)
class Ranking:
    """Records x in D, or pairs of x and a partner x′ in the universe, by score, then by index."""

    records: _Indexes
    partners: _Indexes | None
    scores: _Floats
    kept: int | None = None

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def sensitivity(self) -> float:
        """The largest score: the dataset sensitivity (Bernau et al. 2021, definition 6)."""
        return float(self.scores.max())

    def top(self, k: int) -> Ranking:
        return self._first(k, -self.scores)

    def bottom(self, k: int) -> Ranking:
        return self._first(k, self.scores)

    def _first(self, k: int, keys: _Floats) -> Ranking:
        at = np.argsort(keys, kind="stable")[: at_most("k", k, self.kept or len(self))]
        partners = None if self.partners is None else self.partners[at]
        return Ranking(self.records[at], partners, self.scores[at])


def dataset_sensitivity(
    records: ArrayLike,
    universe: ArrayLike | None = None,
    *,
    adjacency: str = "add-remove",
    measure: str,
    keep: int | None = None,
    device: str = "cpu",
    memory: float | None = None,
    progress: _Progress | None = None,
) -> Ranking:
    """All neighbours D′ of D, the one that is furthest from D first (Bernau et al. 2021, def. 6).

    "add-remove" scores every x in D by the sum of d(x, ·) over D, "replace" every pair of x in D
    and x′ in the universe U ∖ D by d(x, x′). With `keep`, only that many from the top and from the
    bottom are kept, exactly those of the full ranking. `progress` is called with the number of
    pairs compared so far, and of all pairs.

    >>> inside, outside = [[0.0], [1.0]], [[0.5], [3.0]]
    >>> pairs = dataset_sensitivity(inside, outside, adjacency="replace", measure="euclidean")
    >>> pairs.scores, pairs.records, pairs.partners
    (array([3. , 2. , 0.5, 0.5]), array([0, 1, 0, 1]), array([1, 1, 0, 0]))
    """
    replace = validate.one_of("adjacency", adjacency, ADJACENCIES) == "replace"
    if replace == (universe is None):
        wanted, found = ("given", None) if replace else ("None", "given")
        remedy = "give the records outside of D for replace, and none for add-remove"
        raise validate.invalid_value("universe", found, f"{wanted} for {adjacency}", remedy)
    a, b = _tensors(records, universe, ("records", "universe"), measure, device)
    columns = len(b) if replace else 1
    keep = None if keep is None else at_most("keep", keep, len(a) * columns)
    tiles = _tiles(a, b, measure, memory, progress)
    parts = _pairs(tiles, columns) if replace else _sums(tiles, len(a))
    if keep is None:
        index, scores = (np.concatenate(each) for each in zip(*parts, strict=True))
    else:
        index, scores = np.empty(0, np.int64), np.empty(0)
        for places, values in parts:
            index, scores = _ends(np.append(index, places), np.append(scores, values), keep)
    order = np.lexsort((index, -scores))
    rows, partners = np.divmod(index[order], columns)
    return Ranking(rows, partners if replace else None, scores[order], keep)


_Tile = tuple[slice, slice, Tensor]


def _tiles(
    a: Tensor, b: Tensor, measure: str, memory: float | None, progress: _Progress | None = None
) -> Iterator[_Tile]:
    """All tiles in turn, the columns changing first.

    On the CPU each thread has a tile to itself: PyTorch's own threads would wait for one another at
    the end of thousands of short operations, up to fifty times as long beside busy processes.
    """
    cpu = a.device.type == "cpu"
    usual = CPU_MEMORY if cpu else GPU_MEMORY
    memory = validate.positive("memory", usual if memory is None else memory, example=2.0)
    rows = min(_ROWS, len(a))
    values = 4 * (rows + b[0].numel())  # of SSIM, the largest user, for each column
    columns = max(_LEAST_COLUMNS, int(1e9 * memory / (values * b.element_size())))
    starts = product(range(0, len(a), rows), range(0, len(b), columns))
    blocks = [(slice(y, y + rows), slice(x, x + columns)) for y, x in starts]
    threads = min(torch.get_num_threads(), _THREADS) if cpu else 1
    done = 0

    def tile_of(block: tuple[slice, slice]) -> _Tile:
        return *block, _RULES[measure](a[block[0]], b[block[1]])

    one_each = ThreadPoolExecutor(threads, "tile", torch.set_num_threads, (1,))
    with one_thread(), single_precision(), one_each as pool:
        for first in range(0, len(blocks), threads):
            for tile in pool.map(tile_of, blocks[first : first + threads]):
                yield tile
                done += tile[2].numel()
                if progress is not None:
                    progress(done, len(a) * len(b))


def _sums(tiles: Iterator[_Tile], count: int) -> Iterator[tuple[_Indexes, _Floats]]:
    """The sum of each row (Bernau et al. 2021, eq. 9; a record is at 0 from itself)."""
    sums = np.zeros(count)
    for rows, _, tile in tiles:
        sums[rows] += tile.sum(dim=1, dtype=torch.float64).cpu().numpy()
    yield np.arange(count), sums


def _pairs(tiles: Iterator[_Tile], width: int) -> Iterator[tuple[_Indexes, _Floats]]:
    for rows, columns, tile in tiles:
        row, column = (np.arange(n) for n in tile.shape)
        index = (rows.start + row[:, None]) * width + columns.start + column
        yield index.ravel(), tile.cpu().numpy().ravel().astype(float)


def _ends(index: _Indexes, scores: _Floats, keep: int) -> tuple[_Indexes, _Floats]:
    chosen = np.union1d(_smallest(-scores, index, keep), _smallest(scores, index, keep))
    return index[chosen], scores[chosen]


def _smallest(keys: _Floats, index: _Indexes, k: int) -> _Indexes:
    """Where the k smallest keys are, in ascending order, ties by index."""
    last = min(k, len(keys)) - 1
    among = np.flatnonzero(keys <= np.partition(keys, last)[last])
    return among[np.lexsort((index[among], keys[among]))[:k]]


def _ssim(a: Tensor, b: Tensor) -> Tensor:
    """1 − the mean of SSIM over windows and channels (Wang et al. 2004, eq. 13 and 17)."""
    (rows, channels, height, width), columns = a.shape, len(b)
    side = (min(_WINDOW, height, width) + 1) // 2 * 2 - 1  # the largest odd one that fits
    numerator, other, denominator, total = a.new_zeros(4, rows, columns)
    c2 = a.new_full((1, 1), _C2)
    a, b = (images.permute(1, 2, 3, 0).contiguous() for images in (a, b))
    strips = list(product(range(channels), range(height - side + 1)))
    for channel, y in strips:
        p, mean_p, var_p = _windows(a[channel, y : y + side])
        q, mean_q, var_q = _windows(b[channel, y : y + side])
        u, v, w = mean_p.square() + _C1, var_p + _C2, mean_q.square()
        one, ones = torch.ones_like(u), torch.ones_like(w)
        # 2 μp μq + C1 and (μp² + C1 + μq²)(var_p + C2 + var_q) as sums of outer products
        two = torch.stack([2 * mean_p, _C1 * one], 2), torch.stack([mean_q, ones], 1)
        four = torch.stack([u * v, u, v, one], 2), torch.stack([ones, var_q, w, w * var_q], 1)
        for x, (p_x, q_x) in enumerate(zip(p.mT, q, strict=True)):
            torch.addmm(c2, p_x, q_x, alpha=2 / (side * side - 1), out=numerator)  # 2 cov + C2
            torch.mm(two[0][x], two[1][x], out=other)
            torch.mm(four[0][x], four[1][x], out=denominator)
            # 1 − N/D as (D − N)/D: a small dissimilarity keeps its digits
            torch.addcmul(denominator, numerator, other, value=-1, out=numerator)
            total.addcdiv_(numerator, denominator)
    return torch.clamp(total / (len(strips) * (width - side + 1)), min=0)


def _windows(strip: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The windows in a strip [y, x, image]: [window, pixel, image] centred, mean, variance."""
    side = len(strip)
    pixels = strip.unfold(1, side, 1).permute(1, 0, 3, 2)  # [window, y, x, image], a view
    pixels = pixels.clone(memory_format=torch.contiguous_format).flatten(1, 2)
    mean = pixels.sum(dim=1) / side**2
    pixels -= mean[:, None]  # in float32, E[pq] − E[p]E[q] would drown next to C2
    return pixels, mean, torch.linalg.vecdot(pixels, pixels, dim=1) / (side**2 - 1)


def _distance(a: Tensor, b: Tensor, *, p: float) -> Tensor:
    """The p-norm, from the differences themselves: exactly 0 for identical records."""
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(a.flatten(1), b.flatten(1), p=p, compute_mode=mode)


def _hamming(a: Tensor, b: Tensor) -> Tensor:
    """The share of entries that differ; of 0 and 1, |p| + |q| − 2 p·q do (exact: whole numbers)."""
    a, b = a.flatten(1), b.flatten(1)
    if all(bool(((x == 0) | (x == 1)).all()) for x in (a, b)):
        count = a.sum(dim=1)[:, None] + b.sum(dim=1)
        return count.addmm_(a, b.T, alpha=-2).div_(a.shape[1])
    return _distance(a, b, p=0).div_(a.shape[1])


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    """1 − cos, as half the squared distance of the records scaled to length 1."""
    return _distance(_unit(a), _unit(b), p=2).square_().div_(2)


def _unit(x: Tensor) -> Tensor:
    """Records of length 1; zero records all point along an axis of their own."""
    x = x.flatten(1)
    largest = x.abs().amax(dim=1, keepdim=True)  # first, so that no square is out of range
    x = torch.cat([x / largest.where(largest > 0, 1), (largest == 0).to(x.dtype)], dim=1)
    return torch.nn.functional.normalize(x)


_RULES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "ssim": _ssim,
    "euclidean": partial(_distance, p=2),
    "manhattan": partial(_distance, p=1),
    "hamming": _hamming,
    "cosine": _cosine,
}
MEASURES = tuple(_RULES)


def _tensors(
    a: ArrayLike, b: ArrayLike | None, names: tuple[str, str], measure: str, device: str
) -> tuple[Tensor, Tensor]:
    validate.one_of("measure", measure, MEASURES)
    first = _checked(names[0], a, measure)
    second = first if b is None else _checked(names[1], b, measure)
    if first.shape[1:] != second.shape[1:]:
        shown, wanted = (f"records of shape {x.shape[1:]}" for x in (second, first))
        raise validate.invalid_input(names[1], shown, f"{wanted} like {names[0]}", "reshape it")
    kind, place = np.result_type(first, second, np.float32), device_named(device)
    # PyTorch warns of read-only arrays, even where it only reads
    first, second = (np.require(x, kind, ["C", "W"]) for x in (first, second))
    return torch.from_numpy(first).to(place), torch.from_numpy(second).to(place)


def _checked(name: str, values: ArrayLike, measure: str) -> NDArray[Any]:
    array = numbers(name, values)
    shape, images = f"of shape {array.shape}", measure == "ssim"
    if array.ndim not in (2, 4) or array.size == 0:
        remedy = "give one row for each record, or (n, 1, h, w) for grey images"
        wanted = "images (n, c, h, w) or a table (n, d), and not empty"
        raise validate.invalid_input(name, shape, wanted, remedy)
    if images and (array.ndim != 4 or min(array.shape[2:]) < 3):
        remedy = "choose another measure, such as euclidean"
        raise validate.invalid_input(name, shape, "images of at least 3 × 3 for ssim", remedy)
    low, high = float(array.min()), float(array.max())  # both are NaN if there is one
    if not (0 <= low <= high <= 1 if images else np.isfinite([low, high]).all()):
        wanted = "within [0, 1] for ssim" if images else "finite"
        remedy = "drop or repair records with NaN or inf, and scale the others, say by 1/255"
        raise validate.invalid_input(name, f"from {low:g} to {high:g}", wanted, remedy)
    return array
