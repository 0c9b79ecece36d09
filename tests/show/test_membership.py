"""Charts of what membership inference found: the numbers are those of the results."""

from dataclasses import replace

import numpy as np
import pytest

from dprime import TradeOff
from dprime.membership import InferenceConfig, Scored
from dprime.membership.inference import Inference, conclude
from dprime.show.membership import precision_figures, roc_figure

CLAIM = TradeOff.gaussian(1.0)


def found_at(prior, attacks=("lira", "baseline")):
    rng = np.random.default_rng([1, round(100 * prior)])
    members = rng.random((3, 400)) < prior
    scored = tuple(
        Scored(name, rng.normal(size=members.shape) + (name == "lira") * members, members)
        for name in attacks
    )
    config = InferenceConfig(seed=1)
    results = tuple(conclude(each, each.attack.title(), CLAIM, prior, config) for each in scored)
    return Inference(prior, 400, 3, 64, 0.95, 0.01, 0.1, results, True, True, CLAIM)


def test_the_curve_is_the_mean_over_targets_and_begins_where_it_can_be_counted():
    found = found_at(0.5)
    figure = roc_figure(found, "digits")
    (curve,) = figure.curves  # the baseline is the diagonal
    others = int((~found.attacks[0].scored.members).sum(1).min())
    assert figure.least_fpr == pytest.approx(1 / others, rel=0.01)
    assert curve.at(0.1)[0] == pytest.approx(found.attacks[0].tpr[0.1].value, abs=0.05)
    assert figure.claim.ceiling(0.1) >= CLAIM.tpr(fpr=0.1)
    assert "π = 0.5" in figure.title


def test_a_baseline_alone_is_drawn():
    assert len(roc_figure(found_at(0.5, ("baseline",)), "digits").curves) == 1


def test_precision_against_each_prior_beside_what_is_allowed():
    found = [found_at(0.7), found_at(0.3)]
    figures = precision_figures(found, "digits")
    assert list(figures) == ["lira"]
    points = figures["lira"].lines[0].points
    assert [point.prior for point in points] == [0.3, 0.7]
    for point, each in zip(points, found[::-1], strict=True):
        assert point.precision == each.attacks[0].top_precision.value
        assert point.certified == each.allowed.top_precision


def test_a_limit_that_is_only_stated_is_not_drawn_as_certified():
    stated = [replace(found_at(prior), certified=False) for prior in (0.3, 0.7)]
    (line,) = precision_figures(stated, "digits")["lira"].lines
    assert [point.certified for point in line.points] == [None, None]
