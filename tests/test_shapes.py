import itertools
import math
import sys

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from dprime import privacy_loss
from dprime.shapes import GaussianShape, Polygon
from told import refuses

MUS = st.floats(0.01, 6)
SAMPLED = st.builds(
    lambda noise, rate: Polygon.from_privacy_loss(privacy_loss.subsampled_gaussian(noise, rate, 1)),
    st.floats(0.3, 10),
    st.floats(1e-4, 1),
)


def polygon_of(mu):
    return Polygon.from_privacy_loss(privacy_loss.gaussian(mu))


@given(mu=MUS, epsilon=st.floats(-5, 10))
def test_gaussian_delta_is_the_integral(mu, epsilon):
    def over(x):
        return max(0.0, norm.pdf(x, mu) - math.exp(epsilon) * norm.pdf(x))

    start = epsilon / mu + mu / 2
    middle = max(start, mu)  # the peak lies at the edge of a part: a long range hides it
    parts = ((start, middle), (middle, middle + 40))
    exact = sum(quad(over, *part, epsabs=1e-14, limit=400)[0] for part in parts)
    assert GaussianShape(mu).delta(epsilon) == pytest.approx(exact, abs=1e-11)


@given(mu=MUS, rate=st.floats(1e-9, 1 - 1e-9), epsilon=st.floats(0, 10))
def test_a_polygon_reads_like_the_gaussian_it_dominates(mu, rate, epsilon):
    exact, polygon = GaussianShape(mu), polygon_of(mu)
    assert exact.tpr(rate) - 1e-12 <= polygon.tpr(rate) <= exact.tpr(rate) + 1e-4
    assert exact.fpr(rate) + 1e-12 >= polygon.fpr(rate) >= exact.fpr(rate) - 1e-4
    assert exact.delta(epsilon) - 1e-14 <= polygon.delta(epsilon)  # the first is rounded up too
    assert polygon.delta(epsilon) <= exact.delta(epsilon) * 1.001 + 1e-13
    assert exact.delta(-epsilon) - 1e-14 <= polygon.delta(-epsilon) <= exact.delta(-epsilon) + 1e-5
    assert mu - 1e-9 <= polygon.gaussian_mu(1e-4) <= mu + 1e-3 * max(mu, 0.1)
    again = Polygon.from_privacy_loss(polygon.privacy_loss())  # the curve of its own pair
    assert again.tpr(rate) == pytest.approx(polygon.tpr(rate), abs=1e-12)


def test_index_is_infinite_where_nothing_lies_above_the_floor():
    assert polygon_of(9.0).gaussian_mu(1e-3) == math.inf


def test_index_is_that_of_the_vertex_that_sticks_out():
    found = Polygon.from_points([(0.1, 0.5)]).gaussian_mu(1e-3)
    assert found == pytest.approx(1.2815515655)  # minus the quantile of 0.1


@given(mu=MUS, log_ratio=st.floats(0.01, 20))
def test_rays_and_slopes(mu, log_ratio):
    exact, polygon = GaussianShape(mu), polygon_of(mu)
    tpr, above = exact.max_tpr_at_ratio(log_ratio), polygon.max_tpr_at_ratio(log_ratio)
    if 1e-12 < tpr < 1 - 1e-9:  # where the ray meets the curve
        assert tpr == pytest.approx(math.exp(log_ratio) * exact.fpr(tpr), rel=1e-6)
    assert tpr - 1e-11 <= above == pytest.approx(tpr, rel=3e-3, abs=1e-12)
    touched = exact.tpr_at_likelihood_ratio(log_ratio)
    assert polygon.tpr_at_likelihood_ratio(log_ratio) == pytest.approx(touched, abs=0.02)
    assert touched < tpr + 1e-12


LINES = st.lists(st.tuples(st.floats(0, 6), st.floats(0, 0.5)), min_size=1, max_size=8)


@given(points=LINES, others=LINES, fpr=st.floats(0, 1))
def test_the_envelope_of_lines_is_the_largest_tpr_under_all_of_them(points, others, fpr):
    polygon = Polygon.from_lines(points, others)
    limits = [delta + math.exp(epsilon) * fpr for epsilon, delta in points]
    # The exchanged test: (1-FPR) - e^eps (1-TPR) <= delta.
    limits += [1 - (1 - fpr - delta) * math.exp(-epsilon) for epsilon, delta in others]
    assert polygon.tpr(fpr) == pytest.approx(min(1.0, *limits), abs=2e-9)


@given(polygon=SAMPLED, epsilon=st.floats(0, 5))
def test_delta_is_the_largest_gap_and_epsilon_its_inverse(polygon, epsilon):
    fpr, tpr = polygon.vertices()
    delta = polygon.delta(epsilon)
    assert delta == pytest.approx(float((tpr - math.exp(epsilon) * fpr).max()), abs=1e-12)
    if delta > 1e-9:
        assert polygon.epsilon(delta) == pytest.approx(epsilon, abs=1e-6)
    index = polygon.gaussian_mu(1e-4)
    assert polygon.reversed().gaussian_mu(1e-4) == pytest.approx(index, rel=1e-9)


@given(polygon=SAMPLED)
def test_curves_are_concave(polygon):
    grid = np.linspace(0, 1, 301)
    tpr = np.array([polygon.tpr(f) for f in grid])
    assert (np.diff(tpr) >= -1e-15).all()
    assert (np.diff(tpr, 2) <= 1e-12).all()
    assert (tpr >= grid - 1e-15).all()


class TestFarOut:
    """Risks next to certainty, where one rate is too small for the other's complement to hold."""

    @pytest.mark.parametrize("epsilon", [20.0, 25.0, 36.0, 60.0, 80.0, 200.0, 500.0])
    def test_a_single_line_keeps_its_epsilon_and_both_directions(self, epsilon):
        polygon = Polygon.from_lines([(epsilon, 0.0)], [(epsilon, 0.0)])
        assert polygon.delta(0.0) >= math.tanh(epsilon / 2) - 1e-15
        assert polygon.reversed().delta(0.0) >= math.tanh(epsilon / 2) - 1e-15
        assert epsilon - 2e-5 <= polygon.epsilon(1e-5) <= epsilon
        steep = min(1.0, math.exp(epsilon) * 1e-40)
        assert polygon.tpr(1e-40) == pytest.approx(steep, rel=1e-9, abs=1e-300)

    def test_lines_beyond_the_number_range_say_nothing(self):
        assert Polygon.from_lines([(800.0, 0.0)], [(800.0, 0.0)]).epsilon(1e-5) == math.inf

    @pytest.mark.parametrize("mu", [12.0, 20.0, 37.0])
    def test_envelopes_of_a_gaussian_that_is_almost_certain(self, mu):
        shape = GaussianShape(mu)
        envelope = Polygon.from_lines(*shape.lines())
        for epsilon in (-2.0, 0.0, 1.0):
            assert envelope.delta(epsilon) >= shape.delta(epsilon) - 1e-15
            assert envelope.reversed().delta(epsilon) >= shape.delta(epsilon) - 1e-15

    @given(log_mu=st.floats(-8, 9), a=st.floats(-38, 39.9), negative=st.booleans())
    def test_gaussian_delta_is_never_below_the_truth(self, log_mu, a, negative):
        mu = 10.0**log_mu
        epsilon = max(0.0, (a + mu / 2) * mu) * (-1 if negative else 1)
        with mpmath.workdps(120):
            m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
            missed = mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
            truth = mpmath.ncdf(m / 2 - e / m) - missed
            error = mpmath.mpf("1e-11") + mpmath.mpf("1e-14") * missed / truth
            least = sys.float_info.min
            assert truth <= GaussianShape(mu).delta(epsilon) <= truth * (1 + error) + least

    def test_gaussian_delta_at_extreme_mu(self):
        huge, tiny = GaussianShape(1e9), GaussianShape(1e-12)
        assert huge.delta(5e17) == pytest.approx(0.5, abs=1e-8)
        exact = 5e17 - float(norm.ppf(1e-5)) * 1e9
        assert exact <= huge.epsilon(1e-5) <= exact * (1 + 1e-9)
        assert tiny.delta(0.0) == pytest.approx(1e-12 / math.sqrt(2 * math.pi), rel=1e-12)
        assert GaussianShape(1.0).epsilon(1e-322) == math.inf
        assert GaussianShape(1e-200).delta(1.0) == 0.0
        assert GaussianShape(1e-200).max_tpr_at_ratio(1.0) == 0.0

    def test_a_flat_stretch_is_entered_at_its_start(self):
        certain = Polygon.from_privacy_loss(privacy_loss.two_points(3.0, 0.999999999999999999))
        fpr, tpr = certain.left.end
        assert (certain.fpr(tpr) <= fpr, certain.fpr(0.5)) == (True, 0.0)


RATES = st.tuples(st.floats(0, 1), st.floats(0, 1))


def highest_chord(points, fpr):
    """The concave hull at an FPR from its definition: the highest chord between two points."""
    chords = [tpr for x, tpr in points if x == fpr]
    for (x0, y0), (x1, y1) in itertools.product(points, points):
        if x0 <= fpr <= x1 and x0 < x1:
            share = (fpr - x0) / (x1 - x0)
            chords.append((1 - share) * y0 + share * y1)
    return max(chords)


@given(points=st.lists(RATES, max_size=6), fpr=st.floats(0, 1))
def test_a_polygon_from_points_is_their_hull(points, fpr):
    polygon, known = Polygon.from_points(points), [(0.0, 0.0), (1.0, 1.0), *points]
    assert polygon.tpr(fpr) == pytest.approx(highest_chord(known, fpr), abs=1e-12)
    gap = max(y - math.exp(4 * fpr) * x for x, y in known)
    assert polygon.delta(4 * fpr) == pytest.approx(gap, abs=1e-12)
    mirrored = Polygon.from_points([(1 - y, 1 - x) for x, y in points])
    assert mirrored.tpr(fpr) == pytest.approx(polygon.reversed().tpr(fpr), abs=1e-9)


@given(mu=MUS, count=st.integers(1, 40), rate=st.floats(1e-9, 1 - 1e-9))
def test_a_polygon_of_points_on_a_curve_is_never_above_it(mu, count, rate):
    exact = GaussianShape(mu)
    points = [(fpr, exact.tpr(fpr)) for fpr in np.geomspace(1e-8, 0.9, count).tolist()]
    polygon = Polygon.from_points(points)
    assert polygon.tpr(rate) <= exact.tpr(rate) * (1 + 1e-14) + 1e-15
    assert polygon.fpr(rate) >= exact.fpr(rate) - 1e-15
    assert all(polygon.tpr(fpr) >= tpr - 1e-15 for fpr, tpr in points)


def test_points_at_the_ends_are_starts():
    polygon = Polygon.from_points([(0.0, 0.2), (0.7, 1.0)])
    assert (polygon.tpr(0.0), polygon.reversed().tpr(0.0)) == (0.2, pytest.approx(0.3))
    assert polygon.epsilon(0.1) == math.inf
    fpr, tpr = polygon.vertices()
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)


test_points_must_be_rates = refuses(
    {
        "fpr be between 0 and 1": lambda: Polygon.from_points([(1.5, 0.5)]),
        "tpr be a finite number": lambda: Polygon.from_points([(0.5, math.nan)]),
    }
)
