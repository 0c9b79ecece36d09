"""Charts of what membership inference found: the numbers are those of the results."""

from dataclasses import replace

import numpy as np
import pytest

from dprime import Gaussian
from dprime.membership import InferenceConfig, Scored
from dprime.membership.inference import Inference, conclude
from dprime.show.membership import precision_charts, roc_chart

CLAIM = Gaussian(1.0).curve()


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
    chart = roc_chart(found, "digits")
    curve, claim, _ = chart.series  # the baseline is the diagonal
    others = int((~found.attacks[0].scored.members).sum(1).min())
    assert chart.x.domain[0] == pytest.approx(1 / others, rel=0.01)
    assert curve.x[0] >= chart.x.domain[0]
    mean = np.interp(0.1, curve.x, curve.y)
    assert mean == pytest.approx(found.attacks[0].tpr[0.1].value, abs=0.05)
    assert np.interp(0.1, claim.x, claim.y) == pytest.approx(CLAIM.tpr(fpr=0.1), rel=1e-3)
    assert "π = 0.5" in chart.title
    assert CLAIM.of
    assert chart.of == f"π = 0.5: {CLAIM.of}"


def test_a_baseline_alone_is_drawn():
    chart = roc_chart(found_at(0.5, ("baseline",)), "digits")
    assert [each.name for each in chart.series] == ["Baseline", "allowed by the claim", "guessing"]


def test_precision_against_each_prior_beside_what_is_allowed():
    found = [found_at(0.7), found_at(0.3)]
    charts = precision_charts(found, "digits")
    assert list(charts) == ["lira"]
    assert charts["lira"].of == f"π = 0.7: {CLAIM.of} · π = 0.3: {CLAIM.of}"
    attack, certified, *_ = charts["lira"].series
    assert list(attack.x) == list(certified.x) == [0.3, 0.7]
    assert [*attack.y] == [each.attacks[0].top_precision.value for each in found[::-1]]
    assert [*certified.y] == [each.allowed.top_precision for each in found[::-1]]


def test_a_limit_that_is_only_stated_is_not_drawn_as_certified():
    stated = [replace(found_at(prior), certified=False) for prior in (0.3, 0.7)]
    chart = precision_charts(stated, "digits")["lira"]
    assert "certified limit" not in [each.name for each in chart.series]
