import numpy as np
import pytest

from dprime.show.figures.figure import OUTLINE
from dprime.show.figures.histogram import Histogram

EDGES = np.array([0.0, 1.0, 2.0])


def test_what_lies_beyond_is_counted_in_the_outermost_bins():
    counted = Histogram.of(np.array([-9.0, 0.5, 1.5, 9.0]), np.array([1.5]), EDGES)
    assert counted == Histogram((0.0, 1.0, 2.0), (0.5, 0.5), (0.0, 1.0))
    assert counted.highest == 1.0


def test_the_outline_closes_at_the_last_edge():
    counted = Histogram.of(np.array([0.5]), np.array([0.5, 1.5, 1.6]), EDGES)
    outline = [(r["from"], r["share"]) for r in counted.rows() if r["layer"] == OUTLINE]
    assert outline == [
        (0.0, pytest.approx(1 / 3)), (1.0, pytest.approx(2 / 3)), (2.0, pytest.approx(2 / 3))
    ]  # fmt: skip


def test_names_stand_above_every_bar():
    counted = Histogram.of(np.array([0.5]), np.array([0.5, 1.5]), EDGES)
    heights = [row["share"] for row in counted.rows() if row["label"]]
    assert len(heights) == 2
    assert min(heights) > counted.highest
