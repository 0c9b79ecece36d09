"""Dissimilarities against scikit-image and SciPy, rankings against a naive copy, bad input."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

torch = pytest.importorskip("torch")

from dprime.data import dissimilarity as module  # noqa: E402
from dprime.data.dissimilarity import (  # noqa: E402
    MEASURES,
    dataset_sensitivity,
    default_measure,
    dissimilarity,
)
from told import refuses  # noqa: E402

SCIPY = {"manhattan": "cityblock", **{name: name for name in ("euclidean", "hamming", "cosine")}}
ADJACENCIES = ("add-remove", "replace")


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles of a few records, so that small inputs are cut in both directions."""
    monkeypatch.setattr(module, "_ROWS", 3)
    monkeypatch.setattr(module, "_LEAST_COLUMNS", 4)
    return 1e-9


def images(count, shape=(1, 12, 10), seed=0):
    return np.random.default_rng(seed).random((count, *shape))


def blobs(count, seed=0):
    """Bright spots on a background of exactly 0, as in MNIST."""
    return np.maximum(images(count, (1, 28, 28), seed) - 0.7, 0).astype(np.float32)


def coarse(count, seed):
    """Images with many ties, some of them the same."""
    made = (images(count, (1, 7, 7), seed) * 2).round() / 2
    made[-1] = made[0]
    return made.astype(np.float32)


def skimage_ssim(a, b, side=7):
    """1 − SSIM of every a to every b by scikit-image, in float64."""
    metrics = pytest.importorskip("skimage.metrics")
    options = {"win_size": side, "data_range": 1.0, "channel_axis": 0}
    ssim = lambda x, y: metrics.structural_similarity(x, y, **options)  # noqa: E731
    a, b = a.astype(np.float64), b.astype(np.float64)
    return 1 - np.array([[ssim(x, y) for y in b] for x in a])


# --- measures -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "side"), [((2, 9, 8), 7), ((1, 28, 28), 7), ((1, 6, 9), 5), ((2, 4, 3), 3)]
)
def test_ssim_is_that_of_scikit_image_with_the_largest_window_that_fits(shape, side):
    a, b = images(3, shape), images(4, shape, seed=1)
    expected = skimage_ssim(a, b, side)
    for kind, error in ((np.float64, 1e-11), (np.float32, 2e-6 if side == 7 else 1e-5)):
        found = dissimilarity(a.astype(kind), b.astype(kind), "ssim")
        assert found.dtype == kind
        assert found == pytest.approx(expected, abs=error)


def test_ssim_of_images_that_are_empty_or_nearly_constant():
    levels = np.array([0.0, 1e-4, 0.01, 0.5, 0.9, 1.0])[:, None, None, None]
    noise = np.random.default_rng(0).uniform(-1e-3, 1e-3, (6, 1, 14, 14))
    flat = np.concatenate([np.broadcast_to(levels, noise.shape), np.clip(levels + noise, 0, 1)])
    for a in (flat, flat.astype(np.float32), blobs(8)):
        error = np.abs(dissimilarity(a, a, "ssim") - skimage_ssim(a, a)).max()
        assert error < (1e-11 if a.dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("measure", SCIPY)
def test_tables_are_compared_as_scipy_compares_them(measure):
    rng = np.random.default_rng(2)
    real = [rng.normal(size=(n, 31)) for n in (7, 9)]
    whole = [rng.integers(0, 4, (n, 31)) for n in (7, 9)]
    bits = [rng.integers(0, 2, (n, 31)).astype(bool) for n in (7, 9)]
    for a, b in (real, whole, bits):
        expected = cdist(a.astype(float), b.astype(float), SCIPY[measure])
        for kind, error in ((np.float64, 1e-12), (np.float32, 1e-5)):
            found = dissimilarity(a.astype(kind), b.astype(kind), measure)
            assert found.dtype == kind
            assert found == pytest.approx(expected, rel=error, abs=1e-14)
        assert dissimilarity(a, b, measure) == pytest.approx(expected, rel=1e-5)
    flat, pictures = (dissimilarity(x, x, measure) for x in (images(4).reshape(4, -1), images(4)))
    assert np.array_equal(flat, pictures)


def test_distances_keep_their_digits():
    far = np.full((1, 50), 1000, np.float32)
    apart = dissimilarity(far, np.stack([far[0], far[0] + np.float32(0.25)]), "euclidean")
    assert apart[0] == pytest.approx([0, 0.25 * 50**0.5], rel=1e-6)
    a = np.array([[0.0, 0.0], [3.0, 4.0], [-6.0, -8.0]])
    expected = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 2.0], [1.0, 2.0, 0.0]])
    for scale in (1.0, 1e-30, 1e30):
        found = dissimilarity(a.astype(np.float32), (a * scale).astype(np.float32), "cosine")
        assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("measure", MEASURES)
@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([np.float32, np.float64]))
def test_symmetric_never_below_zero_and_zero_for_identical_records(measure, seed, rows, dtype):
    rng = np.random.default_rng(seed)
    records = rng.random((rows + 3, *((2, 8, 7) if measure == "ssim" else (5,))))
    records = (records.round() if measure == "hamming" else records).astype(dtype)
    records[rng.integers(rows)] = 0
    records[-1] = records[rng.integers(rows)]
    a, b = records[:rows], records[rows:]
    there, back = dissimilarity(a, b, measure), dissimilarity(b, a, measure)
    eps = float(np.finfo(dtype).eps)
    assert there.shape == (rows, 3)
    assert (there >= 0).all()
    assert there == pytest.approx(back.T, abs=20 * eps)
    own = np.diag(dissimilarity(a, a, measure))
    assert (own <= (10 * eps if measure == "ssim" else 0)).all()


# --- rankings -----------------------------------------------------------------------------------


def naive(scores):
    """(index, score) of every entry, the largest first and then the lowest index."""
    return sorted(np.ndenumerate(scores), key=lambda entry: (-entry[1], entry[0]))


def entries(ranking):
    """The same of a ranking."""
    columns = [ranking.records] if ranking.partners is None else [ranking.records, ranking.partners]
    index = zip(*(column.tolist() for column in columns), strict=True)
    return list(zip(index, ranking.scores.tolist(), strict=True))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@settings(max_examples=60)
@given(data=st.data())
def test_rankings_are_those_of_a_naive_copy_under_ties(adjacency, data):
    few = st.lists(st.integers(0, 3), min_size=1, max_size=9)
    records, others = data.draw(few), data.draw(few)
    universe = None if adjacency == "add-remove" else np.reshape(others, (-1, 1))
    scores = np.abs(np.subtract.outer(records, records if universe is None else others))
    scores = (scores.sum(axis=1) if universe is None else scores).astype(float)
    keep = data.draw(st.integers(1, scores.size))
    options = {"adjacency": adjacency, "measure": "manhattan"}
    falling = naive(scores)
    rising = sorted(falling, key=lambda entry: (entry[1], entry[0]))
    for kept in (None, keep):
        ranking = dataset_sensitivity(np.reshape(records, (-1, 1)), universe, keep=kept, **options)
        assert entries(ranking) == falling if kept is None else kept == ranking.kept
        assert entries(ranking.top(keep)) == falling[:keep]
        assert entries(ranking.bottom(keep)) == rising[:keep]
        assert ranking.sensitivity == falling[0][1]


def test_defaults_are_those_of_the_paper():
    found = [default_measure(kind) for kind in ("image", "binary", "table")]
    assert found == ["ssim", "hamming", "manhattan"]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_ends_are_those_of_the_full_ranking_and_little_else_is_kept(
    measure, adjacency, small_tiles, monkeypatch
):
    sizes, ends = [], module._ends
    monkeypatch.setattr(module, "_ends", lambda i, *rest: sizes.append(len(i)) or ends(i, *rest))
    records = coarse(23, 0)
    others = np.concatenate([records[:5], coarse(19, 1)]) if adjacency == "replace" else None
    options = {"adjacency": adjacency, "measure": measure, "memory": small_tiles}
    full = dataset_sensitivity(records, others, **options)
    for keep in (1, 11, 23):
        sizes.clear()
        kept = dataset_sensitivity(records, others, keep=keep, **options)
        assert max(sizes) <= (23 if others is None else 2 * keep + 3 * 4)
        assert keep <= len(kept) <= 2 * keep
        assert entries(kept.top(keep)) == entries(full.top(keep))
        assert entries(kept.bottom(keep)) == entries(full.bottom(keep))


@pytest.mark.parametrize("measure", MEASURES)
def test_tiles_change_nothing_and_inputs_are_left_alone(measure, small_tiles):
    a, b = images(10), images(11, seed=1)
    for array in (a, b):
        array.setflags(write=False)
    cut = dissimilarity(a, b, measure, memory=small_tiles)
    whole = np.concatenate([dissimilarity(a[i : i + 1], b, measure) for i in range(10)])
    assert cut == pytest.approx(whole, abs=1e-14)
    assert np.array_equal(a, images(10))


def test_settings_that_were_made_for_training_are_ignored_and_left(small_tiles):
    expected = dissimilarity(blobs(8), blobs(9, seed=1), "ssim")
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    torch.set_num_threads(2)
    torch.set_float32_matmul_precision("medium")
    try:
        assert np.array_equal(dissimilarity(blobs(8), blobs(9, seed=1), "ssim"), expected)
        dissimilarity(images(10), images(11), "ssim", memory=small_tiles)
        with ThreadPoolExecutor(1) as later:
            threads = torch.get_num_threads(), later.submit(torch.get_num_threads).result()
        assert (*threads, torch.get_float32_matmul_precision()) == (2, 2, "medium")
    finally:
        torch.set_num_threads(before[0])
        torch.set_float32_matmul_precision(before[1])


def test_progress_counts_pairs(small_tiles):
    seen = []
    options = {"adjacency": "replace", "measure": "ssim", "memory": small_tiles}
    note = lambda done, total: seen.append((done, total))  # noqa: E731
    dataset_sensitivity(images(5), images(9), progress=note, **options)
    assert seen == [(12, 45), (24, 45), (27, 45), (35, 45), (43, 45), (45, 45)]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("measure", MEASURES)
def test_the_gpu_finds_the_same(measure):
    a, b = blobs(300), blobs(700, seed=1)
    found = dissimilarity(a, b, measure, device="cuda")
    assert found == pytest.approx(dissimilarity(a, b, measure), rel=1e-5, abs=1e-5)


# --- refusals -----------------------------------------------------------------------------------

PICTURES, TABLE = np.ones((3, 1, 8, 8)), np.ones((3, 4))


def ranked(universe=None, **options):
    return lambda: dataset_sensitivity(TABLE, universe, **{"measure": "manhattan", **options})


def compared(a, b, measure):
    return lambda: dissimilarity(a, b, measure)


test_what_cannot_be_compared_or_ranked = refuses([
    ("measure", compared(TABLE, TABLE, "l2")),
    ("a", compared(TABLE, TABLE, "ssim")),
    ("b", compared(PICTURES, PICTURES[:, :, :7], "ssim")),
    ("b", compared(TABLE, TABLE[0], "hamming")),
    ("b", compared(TABLE, TABLE * np.inf, "manhattan")),
    ("a", compared(PICTURES * np.nan, PICTURES, "ssim")),
    ("b", compared(PICTURES, -PICTURES, "ssim")),
    ("kind", lambda: default_measure("sound")),
    ("adjacency", ranked(adjacency="zero-out")),
    ("universe", ranked(adjacency="replace")),
    ("universe", ranked(TABLE)),
    ("keep", ranked(TABLE, adjacency="replace", keep=10)),
    ("memory", ranked(memory=0)),
    ("k", lambda: ranked()().top(4)),
    ("k", lambda: ranked(keep=1)().bottom(2)),  # it vouches for one at each end
])  # fmt: skip
