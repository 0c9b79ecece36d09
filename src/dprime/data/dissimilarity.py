"""Dataset sensitivity: which record, removed or replaced, changes the data most.

Definition 6 of Bernau et al. (2021) compares neighbouring data sets by a dissimilarity d of their
records, and takes the neighbour D′ that lies furthest from D:

- add-remove (unbounded): D′ = D ∖ {x}, with the x in D whose sum of d(x, ·) over D is largest;
- replace (bounded): D′ = D ∖ {x} ∪ {x′}, with the pair (x in D, x′ in U ∖ D) whose d is largest.

It is a heuristic for a pair that is easy to tell apart: nothing certified follows from it.

Notation: rows are the records a, columns the records b, a tile is a block of the d(a, b). How tiles
are computed does not depend on what is kept of them: a streamed ranking equals the full one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from dprime import validate
from dprime.data import arrays
from dprime.data.devices import device_named

MEASURES = ("ssim", "euclidean", "manhattan", "hamming", "cosine")
DEFAULTS = {"image": "ssim", "binary": "hamming", "table": "manhattan"}
ADJACENCIES = ("add-remove", "replace")
CPU_MEMORY, GPU_MEMORY = 0.024, 2.0  # GB; on the CPU for each thread, about what the caches hold

_ROWS, _LEAST_COLUMNS, _WINDOW = 256, 256, 7
_THREADS = 8  # with more of them, most wait for the interpreter
_C1, _C2 = 0.01**2, 0.03**2  # (K L)² for a data range of L = 1: Wang et al. 2004, section III.B

_Floats = NDArray[np.float64]
_Indexes = NDArray[np.int64]
_Named = tuple[str, ArrayLike]
_Rule = Callable[[Tensor, Tensor], Tensor]
_Tiles = Iterator[tuple[slice, slice, Tensor]]


def default_measure(kind: str) -> str:
    """The measure to use for a kind of data: "image", "binary" or "table".

    It is the one that Bernau et al. (2021, section 6.1) found best for data of that kind.

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

    Args:
        a: Records: images (n, c, h, w), in [0, 1] for ssim, or a table (n, d).
        b: Records of the same shape, any number of them.
        measure: One of `MEASURES`. All but ssim take an image for a row of numbers.
        device: Where PyTorch computes, such as "cpu" or "cuda".
        memory: GB of work space. Default: 24 MB for each thread on the CPU, so that the work
            stays in the caches, and 2 GB elsewhere.

    >>> dissimilarity([[0, 1, 1, 0]], [[0, 1, 1, 0], [1, 1, 1, 1]], "hamming")
    array([[0. , 0.5]])

    """
    task = _task(("a", a), ("b", b), measure, device, memory)
    return _matrix(_tiles(task), task)


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
        """The k entries with the smallest keys."""
        k = _at_most("k", k, self.kept or len(self))
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
    progress: Callable[[int, int], None] | None = None,
) -> Ranking:
    """All neighbours D′ of D, ranked by how far they are from it (Bernau et al. 2021, def. 6).

    Args:
        records: D: images (n, c, h, w) or a table (n, d).
        universe: U ∖ D, the records that may come in; for replace only. One that is also in D does
            no harm: it is at 0 from itself.
        adjacency: "add-remove" scores every x in D by the sum of d(x, ·) over D, "replace" every
            pair (x in D, x′ in the universe) by d(x, x′).
        measure: One of `MEASURES`; see `dissimilarity` and `default_measure`.
        keep: Keep only so many from the top and from the bottom, so that the pairs need not fit
            in memory. They are exactly those of the full ranking.
        device: Where PyTorch computes, such as "cpu" or "cuda".
        memory: GB of work space, as for `dissimilarity`.
        progress: Called with the number of pairs compared so far, and of all pairs.

    Returns:
        The ranking; its first entry is the D′ that differs most.

    >>> inside, outside = [[0.0], [1.0]], [[0.5], [3.0]]
    >>> pairs = dataset_sensitivity(inside, outside, adjacency="replace", measure="euclidean")
    >>> pairs.scores, pairs.records, pairs.partners
    (array([3. , 2. , 0.5, 0.5]), array([0, 1, 0, 1]), array([1, 1, 0, 0]))

    """
    bounded = validate.one_of("adjacency", adjacency, ADJACENCIES) == "replace"
    if bounded == (universe is None):
        wanted, found = ("given", None) if bounded else ("None", "given")
        remedy = "give the records outside of D for replace, and none for add-remove"
        raise validate.refusal("universe", found, f"{wanted} for {adjacency}", remedy)
    others = ("records", records) if universe is None else ("universe", universe)
    task = _task(("records", records), others, measure, device, memory)
    count, columns = len(task.a), len(task.b) if bounded else 1
    keep = None if keep is None else _at_most("keep", keep, count * columns)
    tiles = _tiles(task, progress)
    if bounded and keep is not None:
        index, scores = _extremes(tiles, columns, keep)
    else:
        scores = _matrix(tiles, task).reshape(-1) if bounded else _sums(tiles, count)
        index, scores = np.arange(len(scores)), scores.astype(np.float64)
    index, scores = _ordered(index, scores, keep)
    partners = index % columns if bounded else None
    return Ranking(adjacency, measure, index // columns, partners, scores, keep)


def _matrix(tiles: _Tiles, task: _Task) -> NDArray[Any]:
    kind = np.float64 if task.a.dtype == torch.float64 else np.float32
    matrix = np.empty((len(task.a), len(task.b)), kind)
    for rows, columns, tile in tiles:
        matrix[rows, columns] = tile.cpu().numpy()
    return matrix


def _sums(tiles: _Tiles, count: int) -> _Floats:
    """The sum of each row (Bernau et al. 2021, eq. 9; a record is at 0 from itself)."""
    sums = np.zeros(count)
    for rows, _, tile in tiles:
        sums[rows] += tile.sum(dim=1, dtype=torch.float64).cpu().numpy()
    return sums


def _extremes(tiles: _Tiles, columns: int, keep: int) -> tuple[_Indexes, _Floats]:
    """The pairs, numbered row by row, with the largest and with the smallest scores."""
    largest, smallest = _Least(keep, columns), _Least(keep, columns)
    for rows, across, tile in tiles:
        largest.add(rows, across, -tile)
        smallest.add(rows, across, tile)
    index = np.concatenate([largest.index, smallest.index])
    scores = np.concatenate([-largest.keys, smallest.keys])
    index, first = np.unique(index, return_index=True)
    return index, scores[first]


class _Least:
    """The pairs with the smallest keys so far, in ascending order."""

    def __init__(self, keep: int, columns: int) -> None:
        self.keep, self.columns = keep, columns
        self.index, self.keys = np.empty(0, np.int64), np.empty(0)

    def add(self, rows: slice, across: slice, keys: Tensor) -> None:
        bound = self.keys[-1] if len(self.keys) == self.keep else np.inf
        chosen = keys <= bound  # ties too: their indexes may be lower than those that are kept
        if int(chosen.sum()) > 2 * self.keep:
            kth = keys.flatten().topk(self.keep, largest=False, sorted=False).values.max()
            chosen = keys <= min(float(kth), bound)
        row, column = torch.nonzero(chosen).cpu().numpy().T
        numbers = (rows.start + row) * self.columns + across.start + column
        index = np.concatenate([self.index, numbers])
        merged = np.concatenate([self.keys, keys[chosen].cpu().numpy()])
        best = _smallest(merged, index, self.keep)
        self.index, self.keys = index[best], merged[best]


def _ordered(index: _Indexes, scores: _Floats, keep: int | None) -> tuple[_Indexes, _Floats]:
    """By descending score, given in the order of indexes; with `keep`, the two ends only."""
    if keep is not None:
        ends = _smallest(-scores, index, keep), _smallest(scores, index, keep)
        chosen = np.unique(np.concatenate(ends))
        index, scores = index[chosen], scores[chosen]
    order = np.argsort(-scores, kind="stable")
    return index[order], scores[order]


def _smallest(keys: _Floats, index: _Indexes, k: int) -> _Indexes:
    """Where the k smallest keys are, in ascending order, ties by index."""
    among = np.arange(len(keys))
    if k < len(keys):
        among = np.flatnonzero(keys <= np.partition(keys, k - 1)[k - 1])
    return among[np.lexsort((index[among], keys[among]))[:k]]


class _Task(NamedTuple):
    """What to compare, how, and in how much work space."""

    a: Tensor  # [row, ...]
    b: Tensor  # [column, ...]
    rule: _Rule
    memory: float  # in GB


def _tiles(task: _Task, progress: Callable[[int, int], None] | None = None) -> _Tiles:
    """All tiles in turn, the columns changing first."""
    rows = min(_ROWS, len(task.a))
    numbers = 4 * (rows + task.b[0].numel())  # that SSIM, the largest user, has for each column
    columns = max(_LEAST_COLUMNS, int(1e9 * task.memory / (numbers * task.b.element_size())))
    blocks = list(product(_slices(len(task.a), rows), _slices(len(task.b), columns)))
    jobs = (partial(task.rule, task.a[row], task.b[column]) for row, column in blocks)
    on_cpu, threads = task.a.device.type == "cpu", min(torch.get_num_threads(), _THREADS)
    done, total = 0, len(task.a) * len(task.b)
    with _own_settings():
        results = _in_order(jobs, threads) if on_cpu else (job() for job in jobs)
        for (row, column), tile in zip(blocks, results, strict=True):
            yield row, column, tile
            done += tile.numel()
            if progress is not None:
                progress(done, total)


def _slices(length: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


def _in_order(jobs: Iterable[Callable[[], Tensor]], threads: int) -> Iterator[Tensor]:
    """The results in the order of the jobs, only a few of which are under way at a time.

    Each thread has a job to itself. PyTorch's own threads would share each of the thousands of
    short operations and wait for one another at its end: long, if another process is busy too.
    """
    waiting: deque[Future[Tensor]] = deque()
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for job in jobs:
            waiting.append(pool.submit(job))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def _own_settings() -> Iterator[None]:
    """One thread for each operation, and no TF32, whatever is set for training; put back later."""
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)
        torch.set_num_threads(threads)


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
    """Of the windows in a strip [y, x, image]: [window, pixel, image] centred, mean, variance."""
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


_RULES: dict[str, _Rule] = {
    "ssim": _ssim,
    "euclidean": partial(_distance, p=2),
    "manhattan": partial(_distance, p=1),
    "hamming": _hamming,
    "cosine": _cosine,
}


def _task(a: _Named, b: _Named, measure: str, device: str, memory: float | None) -> _Task:
    """The checked records on their device."""
    rule = _RULES[validate.one_of("measure", measure, MEASURES)]
    first, second = (_checked(*named, measure) for named in (a, b))
    if first.shape[1:] != second.shape[1:]:
        shapes = [f"records of shape {x.shape[1:]}" for x in (first, second)]
        raise validate.refusal(b[0], shapes[1], f"{shapes[0]} like {a[0]}", "give the same shape")
    place = device_named(device)
    usual = CPU_MEMORY if place.type == "cpu" else GPU_MEMORY
    memory = validate.positive("memory", usual if memory is None else memory, example=2.0)
    kind = np.float32 if np.result_type(first, second, np.float32) == np.float32 else np.float64
    # PyTorch warns of read-only arrays, even where it only reads
    made = [np.require(x, kind, ["C", "W"]) for x in (first, second)]
    rows, columns = (torch.from_numpy(x).to(place) for x in made)
    return _Task(rows, columns, rule, memory)


def _checked(name: str, values: ArrayLike, measure: str) -> NDArray[Any]:
    """Records that the measure can compare."""
    array = arrays.numbers(name, values)
    shape = f"of shape {array.shape}"
    if array.ndim not in (2, 4):
        remedy = "give one row for each record, or (n, 1, h, w) for grey images"
        raise validate.refusal(name, shape, "images (n, c, h, w) or a table (n, d)", remedy)
    if array.size == 0:
        raise validate.refusal(name, shape, "not empty", "give at least one record")
    low, high = float(array.min()), float(array.max())  # both are NaN if there is one
    extent = f"from {low:g} to {high:g}"
    if not np.isfinite([low, high]).all():
        raise validate.refusal(name, extent, "finite", "drop or repair records with NaN or inf")
    if measure == "ssim" and (array.ndim != 4 or min(array.shape[2:]) < 3):
        remedy = "choose another measure, such as euclidean"
        raise validate.refusal(name, shape, "images of at least 3 × 3 for ssim", remedy)
    if measure == "ssim" and not 0 <= low <= high <= 1:
        raise validate.refusal(name, extent, "within [0, 1] for ssim", "scale them, say by 1/255")
    return array


def _at_most(name: str, value: int, largest: int) -> int:
    """A whole number of things that are there."""
    value = validate.whole(name, value, example=min(3, largest))
    if value > largest:
        raise validate.refusal(name, value, f"at most {largest}", "ask for fewer")
    return value
