"""Dataset sensitivity: which record, removed or replaced, changes the data most.

Definition 6 of Bernau et al. (2021) compares neighbouring data sets by a dissimilarity d of their
records, and takes the neighbour D′ that lies furthest from D:

- add-remove (unbounded): D′ = D ∖ {x}, with the x in D whose sum of d(x, ·) over D is largest;
- replace (bounded): D′ = D ∖ {x} ∪ {x′}, with the pair (x in D, x′ in U ∖ D) whose d is largest.

It is a heuristic for a pair that is easy to tell apart: nothing certified follows from it.

Notation: rows are the records a, columns the records b, a tile is a block of the d(a, b). A pair's
index is its place row by row. The tiles are the same whatever part of a ranking is kept, so a
ranking with `keep` equals the two ends of the full one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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

MEASURES = ("ssim", "euclidean", "manhattan", "hamming", "cosine")
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
    """The measure that Bernau et al. (2021, section 6.1) found best for a kind of data.

    >>> default_measure("image")
    'ssim'
    """
    return DEFAULTS[validate.one_of("kind", kind, tuple(DEFAULTS))]


def dissimilarity(
    a: ArrayLike, b: ArrayLike, measure: str, *, device: str = "cpu", memory: float | None = None
) -> NDArray[Any]:
    """The dissimilarity d of every record of `a` to every record of `b`: (len(a), len(b)) numbers.

    - ssim: 1 − SSIM, from 0 for identical images to 2. The paper's "negative SSIM" ranks alike.
    - euclidean and manhattan: the 2-norm and the 1-norm of the difference.
    - hamming: the share of the entries that differ.
    - cosine: 1 − cos. A zero record is at 1 from every other one, and at 0 from a zero record.

    SSIM is scikit-image's `structural_similarity` with its defaults and `data_range=1`: windows of
    7 × 7 with equal weights, sample covariance, the mean over windows and channels. Where an image
    is lower or narrower than 7, the window is the largest odd one that fits, at least 3 × 3.

    float64 records are compared in float64, float32 ones in float32; there, SSIM is within 1e-5.

    Records are images (n, c, h, w), in [0, 1] for ssim, or a table (n, d). All measures but ssim
    take an image for a row of numbers. `memory` is the GB of work space, by default 24 MB for each
    thread on the CPU, so that the work stays in the caches, and 2 GB elsewhere.

    >>> dissimilarity([[0, 1, 1, 0]], [[0, 1, 1, 0], [1, 1, 1, 1]], "hamming")
    array([[0. , 0.5]])
    """
    return _Comparison.of({"a": a, "b": b}, measure, device, memory).matrix(None)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Records or pairs by their score, the largest first; equal scores in the order of indexes.

    Attributes:
        adjacency: "add-remove" (records are ranked) or "replace" (pairs are).
        measure: The dissimilarity d.
        records: Index of x in D.
        partners: Index of x′ in the universe; None for add-remove.
        scores: The sum of d(x, ·) over D for add-remove, d(x, x′) for replace.
        kept: None if every record or pair is here, else how many were kept from each end.

    >>> ranking = dataset_sensitivity([[0.0], [1.0], [5.0]], measure="manhattan")
    >>> ranking.records, ranking.scores
    (array([2, 0, 1]), array([9., 6., 5.]))
    >>> ranking.sensitivity, ranking.top(2).records, ranking.bottom(2).records
    (9.0, array([2, 0]), array([1, 0]))
    """

    adjacency: str
    measure: str
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
        """The k largest scores, the largest first."""
        return self._first(k, -self.scores)

    def bottom(self, k: int) -> Ranking:
        """The k smallest scores, the smallest first."""
        return self._first(k, self.scores)

    def _first(self, k: int, keys: _Floats) -> Ranking:
        k = at_most("k", k, self.kept or len(self))
        index, partners = self.records, self.partners
        if partners is not None:
            index = index * (partners.max() + 1) + partners
        at = _smallest(keys, index, k)
        partners = None if partners is None else partners[at]
        return Ranking(self.adjacency, self.measure, self.records[at], partners, self.scores[at])


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
    """All neighbours D′ of D, ranked by how far they are from it (Bernau et al. 2021, def. 6).

    The first entry is the D′ that differs most. "add-remove" scores every x in D by the sum of
    d(x, ·) over D, "replace" every pair (x in D, x′ in the universe) by d(x, x′).

    Args:
        records: D, as for `dissimilarity`.
        universe: U ∖ D, the records that may come in; for replace only. One that is also in D does
            no harm: it is at 0 from itself.
        adjacency: "add-remove" or "replace".
        measure: one of `MEASURES`; see `dissimilarity` and `default_measure`.
        keep: keep this many from the top and from the bottom only, so that the pairs need not fit
            in memory. They are exactly those of the full ranking.
        device: where PyTorch computes.
        memory: GB of work space, as for `dissimilarity`.
        progress: called with the number of pairs compared so far, and of all pairs.

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
    given = {"records": records} | ({} if universe is None else {"universe": universe})
    compared = _Comparison.of(given, measure, device, memory)
    columns = len(compared.b) if replace else 1
    keep = None if keep is None else at_most("keep", keep, len(compared.a) * columns)
    if replace and keep is not None:
        index, scores = compared.extremes(keep, progress)
    else:
        scores = compared.matrix(progress).ravel() if replace else compared.sums(progress)
        index, scores = np.arange(len(scores)), scores.astype(np.float64)
        if keep is not None:
            index, scores = _ends(index, scores, keep)
    order = np.argsort(-scores, kind="stable")
    index, scores = index[order], scores[order]
    partners = index % columns if replace else None
    return Ranking(adjacency, measure, index // columns, partners, scores, keep)


@dataclass(frozen=True, eq=False)
class _Comparison:
    """What is compared, how, and in how much work space."""

    a: Tensor  # [row, ...]
    b: Tensor  # [column, ...]
    rule: Callable[[Tensor, Tensor], Tensor]
    memory: float  # in GB

    @classmethod
    def of(
        cls, given: Mapping[str, ArrayLike], measure: str, device: str, memory: float | None
    ) -> _Comparison:
        """The records by their name in the call, checked; a single array is compared to itself."""
        rule = _RULES[validate.one_of("measure", measure, MEASURES)]
        names, arrays = list(given), [_checked(name, given[name], measure) for name in given]
        first, second = arrays[0], arrays[-1]
        if first.shape[1:] != second.shape[1:]:
            shapes = [f"records of shape {x.shape[1:]}" for x in arrays]
            requirement = f"{shapes[0]} like {names[0]}"
            raise validate.invalid_value(names[1], shapes[1], requirement, "give the same shape")
        place = device_named(device)
        usual = CPU_MEMORY if place.type == "cpu" else GPU_MEMORY
        memory = validate.positive("memory", usual if memory is None else memory, example=2.0)
        kind = np.float32 if np.result_type(first, second, np.float32) == np.float32 else np.float64
        # PyTorch warns of read-only arrays, even where it only reads
        made = [np.require(x, kind, ["C", "W"]) for x in (first, second)]
        rows, columns = (torch.from_numpy(x).to(place) for x in made)
        return cls(rows, columns, rule, memory)

    def matrix(self, progress: _Progress | None) -> NDArray[Any]:
        matrix = torch.empty(len(self.a), len(self.b), dtype=self.a.dtype)
        for rows, columns, tile in self._tiles(progress):
            matrix[rows, columns] = tile.cpu()
        return matrix.numpy()

    def sums(self, progress: _Progress | None) -> _Floats:
        """The sum of each row (Bernau et al. 2021, eq. 9; a record is at 0 from itself)."""
        sums = np.zeros(len(self.a))
        for rows, _, tile in self._tiles(progress):
            sums[rows] += tile.sum(dim=1, dtype=torch.float64).cpu().numpy()
        return sums

    def extremes(self, keep: int, progress: _Progress | None) -> tuple[_Indexes, _Floats]:
        """The pairs with the largest and with the smallest scores, as `_ends` of all of them."""
        index, scores = np.empty(0, np.int64), np.empty(0)
        for rows, columns, tile in self._tiles(progress):
            row, column = (np.arange(n) for n in tile.shape)
            places = (rows.start + row[:, None]) * len(self.b) + columns.start + column
            index = np.append(index, places)
            scores = np.append(scores, tile.cpu().numpy())
            index, scores = _ends(index, scores, keep)
        return index, scores

    def _tiles(self, progress: _Progress | None) -> Iterator[tuple[slice, slice, Tensor]]:
        """All tiles in turn, the columns changing first.

        On the CPU each thread has a tile to itself. PyTorch's own threads would share each of the
        thousands of short operations and wait for one another at its end: thirty times as long, if
        other processes are busy too.
        """
        rows = min(_ROWS, len(self.a))
        values = 4 * (rows + self.b[0].numel())  # of SSIM, the largest user, for each column
        columns = max(_LEAST_COLUMNS, int(1e9 * self.memory / (values * self.b.element_size())))
        done, total = 0, len(self.a) * len(self.b)
        starts = product(range(0, len(self.a), rows), range(0, len(self.b), columns))
        blocks = [(slice(y, y + rows), slice(x, x + columns)) for y, x in starts]
        threads = min(torch.get_num_threads(), _THREADS) if self.a.device.type == "cpu" else 1
        tile_of = lambda block: self.rule(self.a[block[0]], self.b[block[1]])  # noqa: E731
        one_each = ThreadPoolExecutor(threads, "tile", torch.set_num_threads, (1,))
        with one_thread(), single_precision(), one_each as pool:
            for first in range(0, len(blocks), threads):
                part = blocks[first : first + threads]
                for (row, column), tile in zip(part, pool.map(tile_of, part), strict=True):
                    yield row, column, tile
                    done += tile.numel()
                    if progress is not None:
                        progress(done, total)


def _ends(index: _Indexes, scores: _Floats, keep: int) -> tuple[_Indexes, _Floats]:
    """The `keep` largest and the `keep` smallest scores, in the order of their indexes."""
    ends = _smallest(-scores, index, keep), _smallest(scores, index, keep)
    chosen = np.unique(np.concatenate(ends))
    chosen = chosen[np.argsort(index[chosen])]
    return index[chosen], scores[chosen]


def _smallest(keys: _Floats, index: _Indexes, k: int) -> _Indexes:
    """Where the k smallest keys are, in ascending order, ties by index."""
    among = np.arange(len(keys))
    if k < len(keys):
        among = np.flatnonzero(keys <= np.partition(keys, k - 1)[k - 1])
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


def _checked(name: str, values: ArrayLike, measure: str) -> NDArray[Any]:
    array = numbers(name, values)
    shape = f"of shape {array.shape}"
    if array.ndim not in (2, 4):
        remedy = "give one row for each record, or (n, 1, h, w) for grey images"
        raise validate.invalid_value(name, shape, "images (n, c, h, w) or a table (n, d)", remedy)
    if array.size == 0:
        raise validate.invalid_value(name, shape, "not empty", "give at least one record")
    low, high = float(array.min()), float(array.max())  # both are NaN if there is one
    extent = f"from {low:g} to {high:g}"
    if not np.isfinite([low, high]).all():
        raise validate.invalid_value(
            name, extent, "finite", "drop or repair records with NaN or inf"
        )
    if measure == "ssim" and (array.ndim != 4 or min(array.shape[2:]) < 3):
        remedy = "choose another measure, such as euclidean"
        raise validate.invalid_value(name, shape, "images of at least 3 × 3 for ssim", remedy)
    if measure == "ssim" and not 0 <= low <= high <= 1:
        raise validate.invalid_value(
            name, extent, "within [0, 1] for ssim", "scale them, say by 1/255"
        )
    return array
