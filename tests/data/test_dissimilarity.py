"""Dissimilarities against scikit-image and SciPy, rankings against a naive copy, bad input."""

import itertools
import re
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

torch = pytest.importorskip("torch")

from dprime.data import dissimilarity as module  # noqa: E402
from dprime.data.dissimilarity import (  # noqa: E402
    MEASURES,
    Ranking,
    dataset_sensitivity,
    default_measure,
    dissimilarity,
)

SENTENCE = re.compile(r"^[^\n]+ must be [^\n]+, but it is [^\n]+: [^\n]+[^.]\.$")
SCIPY = {"euclidean": "euclidean", "manhattan": "cityblock", "cosine": "cosine"}
TABLES = [name for name in MEASURES if name != "ssim"]


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles of a few records, so that small inputs are cut in both directions."""
    monkeypatch.setattr(module, "_ROWS", 3)
    monkeypatch.setattr(module, "_LEAST_COLUMNS", 4)
    return 1e-9


@pytest.fixture(scope="module")
def digits():
    """The first digits of scikit-learn, 8 × 8, in float64."""
    datasets = pytest.importorskip("sklearn.datasets")
    return datasets.load_digits().images[:60, None] / 16


def images(count, shape=(1, 12, 10), seed=0, dtype=np.float64):
    return np.random.default_rng(seed).random((count, *shape)).astype(dtype)


def blobs(count, shape=(1, 28, 28), seed=0):
    """A bright spot on a background of exactly 0, as in MNIST."""
    rng = np.random.default_rng(seed)
    y, x = np.ogrid[: shape[1], : shape[2]]
    made = np.zeros((count, *shape), np.float32)
    for image in made:
        top, left = rng.uniform(6, 22, 2)
        image[:] = np.exp(-((y - top) ** 2 + (x - left) ** 2) / rng.uniform(2, 20))
    made[made < 0.05] = 0
    return made


def skimage_ssim(a, b, window=7):
    """1 − SSIM by scikit-image, in float64, one pair after the other."""
    metrics = pytest.importorskip("skimage.metrics")
    a, b = a.astype(np.float64), b.astype(np.float64)
    values = [
        metrics.structural_similarity(x, y, win_size=window, data_range=1.0, channel_axis=0)
        for x, y in itertools.product(a, b)
    ]
    return 1 - np.reshape(values, (len(a), len(b)))


def naive_ranking(scores):
    """(score, index) of every entry, by descending score and then by index."""
    return sorted(np.ndenumerate(scores), key=lambda entry: (-entry[1], entry[0]))


def entries(ranking):
    """What a ranking holds, as lists that can be compared."""
    partners = None if ranking.partners is None else ranking.partners.tolist()
    return ranking.records.tolist(), partners, ranking.scores.tolist()


# --- SSIM -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 28, 28), (1, 7, 7), (1, 9, 16), (3, 12, 10), (2, 7, 8)])
def test_ssim_is_that_of_scikit_image(shape):
    a, b = images(5, shape), images(6, shape, seed=1)
    expected = skimage_ssim(a, b)
    assert np.abs(dissimilarity(a, b, "ssim") - expected).max() < 1e-12
    single = dissimilarity(a.astype(np.float32), b.astype(np.float32), "ssim")
    assert single.dtype == np.float32
    assert np.abs(single - expected).max() < 2e-6


def test_ssim_of_real_digits(digits):
    expected = skimage_ssim(digits[:20], digits[20:])
    assert np.abs(dissimilarity(digits[:20], digits[20:], "ssim") - expected).max() < 1e-12


def test_ssim_of_images_with_an_empty_background():
    a, b = blobs(8), blobs(9, seed=1)
    assert np.abs(dissimilarity(a, b, "ssim") - skimage_ssim(a, b)).max() < 2e-6


def test_ssim_of_nearly_constant_images():
    rng = np.random.default_rng(0)
    levels = np.array([0.0, 1e-4, 0.01, 0.5, 0.9, 1.0])[:, None, None, None]
    noise = rng.uniform(-1e-3, 1e-3, (6, 1, 14, 14))
    a = np.concatenate([np.broadcast_to(levels, noise.shape), np.clip(levels + noise, 0, 1)])
    expected = skimage_ssim(a, a)
    assert np.abs(dissimilarity(a, a, "ssim") - expected).max() < 1e-11
    single = a.astype(np.float32)
    assert np.abs(dissimilarity(single, single, "ssim") - skimage_ssim(single, single)).max() < 1e-5


@pytest.mark.parametrize(("shape", "window"), [((1, 6, 9), 5), ((1, 5, 5), 5), ((2, 4, 3), 3)])
def test_small_images_have_the_largest_odd_window_that_fits(shape, window):
    a, b = images(3, shape), images(4, shape, seed=1)
    expected = skimage_ssim(a, b, window)
    assert np.abs(dissimilarity(a, b, "ssim") - expected).max() < 1e-12


def test_ssim_of_black_and_white_is_known_in_closed_form():
    black, white = np.zeros((1, 1, 8, 8)), np.ones((1, 1, 8, 8))
    expected = 1 - 0.01**2 / (1 + 0.01**2)  # every window: no variance, means 0 and 1
    assert dissimilarity(black, white, "ssim")[0, 0] == pytest.approx(expected, rel=1e-12)


def test_ssim_ignores_a_coarser_precision_that_was_set_for_training():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        found = dissimilarity(blobs(8), blobs(9, seed=1), "ssim")
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    assert np.array_equal(found, dissimilarity(blobs(8), blobs(9, seed=1), "ssim"))


# --- the other measures -------------------------------------------------------------------------


@pytest.mark.parametrize("measure", SCIPY)
def test_distances_are_those_of_scipy(measure):
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(7, 31)), rng.normal(size=(9, 31))
    expected = cdist(a, b, SCIPY[measure])
    assert dissimilarity(a, b, measure) == pytest.approx(expected, rel=1e-12, abs=1e-14)
    single = dissimilarity(a.astype(np.float32), b.astype(np.float32), measure)
    assert single == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("values", [2, 4])
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float32, np.int64])
def test_hamming_is_that_of_scipy(values, dtype):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, values, (n, 600)).astype(dtype) for n in (7, 9))
    found = dissimilarity(a, b, "hamming")
    assert found.dtype == (np.float64 if dtype is np.int64 else np.float32)
    assert found == pytest.approx(cdist(a, b, "hamming"), rel=1e-6)


def test_cosine_of_zero_records():
    a = np.array([[0.0, 0.0], [3.0, 4.0], [-6.0, -8.0]])
    expected = [[0.0, 1.0, 1.0], [1.0, 0.0, 2.0], [1.0, 2.0, 0.0]]
    assert dissimilarity(a, a, "cosine") == pytest.approx(np.array(expected), abs=1e-15)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_cosine_does_not_depend_on_scale(scale):
    a = np.random.default_rng(4).normal(size=(5, 3)).astype(np.float32)
    found = dissimilarity(a, a * np.float32(scale), "cosine")
    assert found == pytest.approx(dissimilarity(a, a, "cosine"), abs=1e-6)


def test_close_records_far_from_the_origin_keep_their_distance():
    a = np.full((1, 50), 1000, np.float32)
    b = a + np.float32(0.25)
    assert dissimilarity(a, b, "euclidean")[0, 0] == pytest.approx(0.25 * 50**0.5, rel=1e-6)
    assert dissimilarity(a, a, "euclidean")[0, 0] == 0


@pytest.mark.parametrize("measure", TABLES)
def test_images_are_rows_of_numbers_for_all_measures_but_ssim(measure):
    a = images(4)
    flat = a.reshape(4, -1)
    assert np.array_equal(dissimilarity(a, a, measure), dissimilarity(flat, flat, measure))


def test_defaults_are_those_of_the_paper():
    found = [default_measure(kind) for kind in ("image", "binary", "table")]
    assert found == ["ssim", "hamming", "manhattan"]


# --- properties ---------------------------------------------------------------------------------

SEEDS = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=15)


def drawn(measure, seed, count, dtype):
    """Records for a measure, some of them identical, some zero."""
    rng = np.random.default_rng(seed)
    shape = (2, 8, 7) if measure == "ssim" else (5,)
    records = rng.random((count, *shape))
    if measure == "hamming":
        records = records.round()
    records[rng.integers(0, count)] = 0
    records[rng.integers(0, count)] = records[rng.integers(0, count)]
    return records.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("measure", MEASURES)
@FEW
@given(seed=SEEDS, rows=st.integers(1, 6), columns=st.integers(1, 6))
def test_dissimilarities_are_symmetric_and_at_least_zero(measure, dtype, seed, rows, columns):
    a, b = drawn(measure, seed, rows, dtype), drawn(measure, seed + 1, columns, dtype)
    there, back = dissimilarity(a, b, measure), dissimilarity(b, a, measure)
    assert there.shape == (rows, columns)
    assert (there >= 0).all()
    assert there == pytest.approx(back.T, abs=20 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("measure", MEASURES)
@FEW
@given(seed=SEEDS, count=st.integers(1, 6))
def test_identical_records_are_at_zero(measure, dtype, seed, count):
    a = drawn(measure, seed, count, dtype)
    own = np.diag(dissimilarity(a, a, measure))
    assert (own <= 10 * np.finfo(dtype).eps).all()
    if measure != "ssim":
        assert (own == 0).all()


@pytest.mark.parametrize("measure", MEASURES)
@FEW
@given(seed=SEEDS, count=st.integers(2, 8))
def test_the_order_of_records_does_not_matter(measure, seed, count):
    records = drawn(measure, seed, count, np.float64)
    order = np.random.default_rng(seed).permutation(count)
    first = dataset_sensitivity(records, measure=measure)
    second = dataset_sensitivity(records[order], measure=measure)
    assert first.scores == pytest.approx(second.scores, abs=1e-12)
    by_record = np.empty((2, count))
    by_record[0, first.records] = first.scores
    by_record[1, order[second.records]] = second.scores
    assert by_record[0] == pytest.approx(by_record[1], abs=1e-12)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@settings(max_examples=60)
@given(data=st.data())
def test_top_and_bottom_agree_with_a_naive_copy_under_ties(adjacency, data):
    few = st.integers(0, 3)
    records = data.draw(st.lists(few, min_size=1, max_size=9))
    others = data.draw(st.lists(few, min_size=1, max_size=9)) if adjacency == "replace" else None
    scores = np.abs(np.subtract.outer(records, records if others is None else others))
    scores = scores.sum(axis=1) if others is None else scores
    keep = data.draw(st.integers(1, scores.size))
    universe = None if others is None else np.reshape(others, (-1, 1))
    rows = np.reshape(records, (-1, 1))
    options = {"adjacency": adjacency, "measure": "manhattan"}
    falling = naive_ranking(scores)
    rising = sorted(falling, key=lambda entry: (entry[1], entry[0]))
    for ranking in (
        dataset_sensitivity(rows, universe, **options),
        dataset_sensitivity(rows, universe, keep=keep, **options),
    ):
        for part, expected in ((ranking.top(keep), falling), (ranking.bottom(keep), rising)):
            index = part.records if others is None else np.stack([part.records, part.partners], 1)
            assert np.reshape(index, (keep, -1)).tolist() == [list(at) for at, _ in expected[:keep]]
            assert part.scores.tolist() == [score for _, score in expected[:keep]]


# --- rankings -----------------------------------------------------------------------------------


def test_add_remove_ranks_records_by_their_sums(digits, small_tiles):
    ranking = dataset_sensitivity(digits, measure="ssim", memory=small_tiles)
    sums = skimage_ssim(digits, digits).sum(axis=1)
    assert ranking.partners is None
    assert len(ranking) == len(digits)
    assert ranking.records.tolist() == [at[0] for at, _ in naive_ranking(sums)]
    assert ranking.scores == pytest.approx(np.sort(sums)[::-1], rel=1e-12)
    assert ranking.sensitivity == ranking.scores[0]


def test_replace_ranks_all_pairs(digits, small_tiles):
    inside, outside = digits[:7], digits[7:20]
    options = {"adjacency": "replace", "measure": "ssim", "memory": small_tiles}
    ranking = dataset_sensitivity(inside, outside, **options)
    expected = naive_ranking(skimage_ssim(inside, outside))
    assert len(ranking) == 7 * 13
    assert list(zip(ranking.records, ranking.partners, strict=True)) == [at for at, _ in expected]
    assert ranking.scores == pytest.approx(np.array([score for _, score in expected]), rel=1e-10)
    assert ranking.sensitivity == pytest.approx(expected[0][1])


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("keep", [1, 5, 11])
def test_streaming_equals_the_full_ranking(measure, adjacency, keep, small_tiles):
    dtype = np.float32  # many ties: coarse records, and a few of them twice
    records = (images(23, (1, 7, 7), dtype=dtype) * 2).round() / 2
    others = np.concatenate([records[:5], (images(24, (1, 7, 7), seed=1, dtype=dtype)).round()])
    universe = others if adjacency == "replace" else None
    options = {"adjacency": adjacency, "measure": measure, "memory": small_tiles}
    full = dataset_sensitivity(records, universe, **options)
    kept = dataset_sensitivity(records, universe, keep=keep, **options)
    assert kept.kept == keep
    assert keep <= len(kept) <= 2 * keep
    assert kept.sensitivity == full.sensitivity
    for k in range(1, keep + 1):
        assert entries(kept.top(k)) == entries(full.top(k))
        assert entries(kept.bottom(k)) == entries(full.bottom(k))
    assert (np.diff(kept.scores) <= 0).all()


def test_streaming_of_nothing_but_ties(small_tiles):
    records = np.zeros((11, 2))
    options = {"adjacency": "replace", "measure": "hamming", "memory": small_tiles}
    kept = dataset_sensitivity(records, records, keep=13, **options)
    expected = [(at // 11, at % 11) for at in range(13)]
    for part in (kept, kept.top(13), kept.bottom(13)):
        assert list(zip(part.records, part.partners, strict=True)) == expected


def test_many_ties_are_in_the_order_of_their_indexes():
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 4, (40, 1)), rng.integers(0, 4, (50, 1))
    ranking = dataset_sensitivity(a, b, adjacency="replace", measure="manhattan")
    expected = [at for at, _ in naive_ranking(np.abs(a - b.T))]
    assert list(zip(ranking.records, ranking.partners, strict=True)) == expected


def test_parts_of_parts():
    ranking = dataset_sensitivity([[0.0], [1.0], [5.0], [6.0]], measure="manhattan")
    assert ranking.scores.tolist() == [12, 12, 10, 10]
    assert ranking.records.tolist() == [0, 3, 1, 2]
    low = ranking.bottom(3)
    assert (low.records.tolist(), low.scores.tolist()) == ([1, 2, 0], [10, 10, 12])
    assert low.top(1).records.tolist() == [0]
    assert low.sensitivity == 12
    assert isinstance(low, Ranking)


def test_tiles_change_nothing(small_tiles):
    a, b = images(10), images(11, seed=1)
    for measure in MEASURES:
        cut = dissimilarity(a, b, measure, memory=small_tiles)
        whole = np.concatenate([dissimilarity(a[i : i + 1], b, measure) for i in range(10)])
        assert cut == pytest.approx(whole, abs=1e-14)


def test_threads_are_left_as_they_were(small_tiles):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    found = []
    try:
        dissimilarity(images(10), images(11), "ssim", memory=small_tiles)
        found.append(torch.get_num_threads())
        later = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        later.start()
        later.join()
    finally:
        torch.set_num_threads(before)
    assert found == [2, 2]


@pytest.mark.parametrize("keep", [None, 2])
def test_progress_counts_pairs(keep, small_tiles):
    seen = []
    dataset_sensitivity(
        images(5),
        images(9),
        adjacency="replace",
        measure="ssim",
        keep=keep,
        memory=small_tiles,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(12, 45), (24, 45), (27, 45), (35, 45), (43, 45), (45, 45)]


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("read_only", [True, False])
def test_inputs_are_not_changed_and_may_be_read_only(count, read_only):
    records = images(count, (1, 7, 7), dtype=np.float32)
    before = records.copy()
    records.setflags(write=not read_only)
    for measure in MEASURES:
        dissimilarity(records, records, measure)
    assert np.array_equal(records, before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("measure", MEASURES)
def test_the_gpu_finds_the_same(measure):
    a, b = blobs(300), blobs(700, seed=1)
    found = dissimilarity(a, b, measure, device="cuda")
    assert found == pytest.approx(dissimilarity(a, b, measure), rel=1e-5, abs=1e-5)
    options = {"adjacency": "replace", "measure": measure, "device": "cuda", "memory": 0.001}
    full, kept = (dataset_sensitivity(a, b, keep=keep, **options) for keep in (None, 9))
    assert entries(kept.top(9)) == entries(full.top(9))
    assert entries(kept.bottom(9)) == entries(full.bottom(9))


# --- refusals -----------------------------------------------------------------------------------

GOOD = np.ones((3, 1, 8, 8))
TABLE = np.ones((3, 4))


@pytest.mark.parametrize(
    ("a", "b", "measure", "part"),
    [
        (TABLE, TABLE, "l2", "measure must be one of ssim, euclidean"),
        (TABLE, TABLE, "ssim", "a must be images"),
        (GOOD, GOOD[:, :, :2], "ssim", "b must be images of at least 3 × 3"),
        (GOOD, GOOD[:, :, :7], "ssim", "b must be records of shape (1, 8, 8) like a"),
        (TABLE, TABLE[:, :3], "cosine", "records of shape (3,)"),
        (GOOD, TABLE, "euclidean", "records of shape (4,)"),
        (TABLE[:0], TABLE, "hamming", "a must be not empty"),
        (TABLE, TABLE[:, :0], "hamming", "b must be not empty"),
        (TABLE[0], TABLE, "hamming", "(4,)"),
        (GOOD[:, 0], GOOD, "ssim", "(3, 8, 8)"),
        (TABLE * np.nan, TABLE, "manhattan", "a must be finite"),
        (TABLE, TABLE * np.inf, "manhattan", "b must be finite"),
        (GOOD * 255, GOOD, "ssim", "within [0, 1]"),
        (GOOD, -GOOD, "ssim", "b must be within [0, 1]"),
        ([["x"]], TABLE, "manhattan", "a must be an array of numbers"),
    ],
)
def test_records_that_cannot_be_compared(a, b, measure, part):
    with pytest.raises(ValueError, match=re.escape(part)) as caught:
        dissimilarity(a, b, measure)
    assert SENTENCE.match(str(caught.value)), caught.value


@pytest.mark.parametrize(
    ("universe", "options", "part"),
    [
        (None, {"adjacency": "zero-out"}, "adjacency must be one of add-remove, replace"),
        (None, {"adjacency": "replace"}, "universe must be given for replace"),
        (TABLE, {}, "universe must be None for add-remove"),
        (TABLE[:, :2], {"adjacency": "replace"}, "like records"),
        (None, {"keep": 4}, "keep must be at most 3"),
        (TABLE, {"adjacency": "replace", "keep": 10}, "keep must be at most 9"),
        (None, {"keep": 0}, "keep must be at least 1"),
        (None, {"memory": 0}, "memory must be above 0"),
        (None, {"device": "abacus"}, "device must be available"),
        (None, {"device": "cuda:77"}, "device must be available"),
        (None, {"device": "meta"}, "device must be available"),
        (None, {"measure": "ssim"}, "records must be images"),
    ],
)
def test_rankings_that_cannot_be_made(universe, options, part):
    with pytest.raises(ValueError, match=re.escape(part)) as caught:
        dataset_sensitivity(TABLE, universe, **{"measure": "manhattan", **options})
    assert SENTENCE.match(str(caught.value)), caught.value


@pytest.mark.parametrize(("keep", "k"), [(None, 4), (2, 3), (None, 0), (None, 1.5)])
def test_more_entries_than_there_are(keep, k):
    ranking = dataset_sensitivity([[0.0], [1.0], [5.0]], measure="manhattan", keep=keep)
    assert len(ranking) == 3  # of which a ranking with keep=2 vouches for two at each end
    for part in (ranking.top, ranking.bottom):
        with pytest.raises(ValueError, match="k must be") as caught:
            part(k)
        assert SENTENCE.match(str(caught.value)), caught.value


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind must be one of image, binary, table"):
        default_measure("sound")
