import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from dprime import DPSGD
from dprime.audit.identifiability import belief_bound
from dprime.show.charts import (
    Rung,
    belief,
    belief_distribution,
    ladder,
    scores,
    sensitivity,
)
from dprime.show.charts.trials import MOST_STEPS, drawn_steps
from show.examples import drawn, walks
from told import refuses

lists = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=15)


@pytest.mark.parametrize("count", [1, 2, MOST_STEPS, MOST_STEPS + 1, 10_000])
def test_drawn_steps_ascend_from_the_first_to_the_last(count):
    steps = drawn_steps(count)
    assert (steps[0], steps[-1]) == (1, count)
    assert (np.diff(steps) > 0).all()
    assert len(steps) == min(count, MOST_STEPS)


def test_medians_and_ranges_are_those_of_the_beliefs():
    logs, in_world = walks(400, 30, seed=3)
    lines = drawn(belief(logs, in_world, prior=0.2))
    for name, world in (("with the record", in_world), ("without it", ~in_world)):
        beliefs, line = expit(logs[world] + logit(0.2)), lines[name]
        for column, share in ((line.low, 0.05), (line.y, 0.5), (line.high, 0.95)):
            assert column[0] == 0.2
            assert np.allclose(column[1:], np.quantile(beliefs, share, axis=0))


def test_beliefs_beyond_the_limit_are_counted_in_world_in():
    logs = np.array([[2.0], [2.3], [9.0], [9.0], [-1.0]])  # logit 0.9 = 2.197
    chart = belief(logs, [True, True, True, False, False], belief=0.9)
    assert chart.title == "With the record, the belief ended above 90 % in 2 of 3 trials."


def test_the_bound_is_told_with_its_probability_and_drawn_on_the_safe_side():
    logs, in_world = walks(steps=10)
    limits = belief_bound(DPSGD(8.0, 1.0, 10), "add-remove", prior=0.5)
    chart = belief(logs, in_world, bound=limits)
    printed = float(chart.title.split("; above ")[1].split()[0])
    assert 100 * limits[-1] <= printed < 101 * limits[-1]
    assert chart.title.endswith("it ends at most once in 1,000 times.")
    line = drawn(chart)["certified limit"]
    assert (line.x, line.y) == ([*range(11)], [0.5, *limits])
    assert line.step == "before"  # between two steps the later one's limit, which is larger


def test_no_limit_below_certainty():
    logs, in_world = walks(steps=1)
    title = belief(logs, in_world, bound=[1.0]).title
    assert title.endswith("no limit below certainty is certified.")


def test_a_long_training_is_drawn_at_some_steps_with_its_last():
    logs, in_world = walks(trials=10, steps=3000)
    bound = np.linspace(0.5, 0.9, 3000)
    lines = drawn(belief(logs, in_world, bound=list(bound)))
    steps = lines["with the record"].x
    assert (len(steps), steps[-1]) == (MOST_STEPS + 1, 3000)
    limit = lines["certified limit"]
    assert limit.y[1:] == [bound[x - 1] for x in limit.x[1:]]


@pytest.mark.parametrize("make", [belief, belief_distribution])
def test_trials_that_diverged_are_left_out_and_said(make):
    logs, in_world = walks(trials=6, steps=2)
    logs[0, 1], logs[3, 0] = np.nan, np.inf
    text = make(logs, in_world).text
    assert "2 trials without a finite number left out." in text
    assert "of 2 trials" in text or "(2 trials)" in text
    alone = sensitivity([[0.5], [np.inf]], clip_norm=1.0, adjacency="replace").text
    assert "1 trial without a finite number left out." in alone


TWO = ([[1.0], [2.0]], [1, 0])
test_refused = refuses({
    "log_ratio be a table [trial, step]": lambda: belief([1.0, 2.0], [1, 0]),
    "log_ratio be of both worlds": lambda: belief([[1.0], [2.0]], [1, 1]),
    "in_world be [trial]": lambda: belief([[1.0], [2.0]], [1]),
    "log_ratio be finite in a trial at least": lambda: belief([[np.nan], [np.nan]], [1, 0]),
    "bound be one a step": lambda: belief(*TWO, bound=[0.5, 0.6]),
    "prior be strictly between": lambda: belief(*TWO, prior=1.0),
    "belief be strictly between": lambda: belief(*TWO, belief=1.0),
    "clip_norm be above 0": lambda: sensitivity([[0.5]], clip_norm=0.0, adjacency="replace"),
    "adjacency be one of": lambda: sensitivity([[0.5]], clip_norm=1.0, adjacency="both"),
    "sensitivity be a table": lambda: sensitivity([0.5], clip_norm=1.0, adjacency="replace"),
    "rungs be one adversary or more": lambda: ladder((), 1.0, "d′", 0.95),
    "series estimate and interval be": lambda: ladder(
        (Rung("x", 0.5, 0.4, 0.6),), 1.0, "d′", 0.95
    ),
})  # fmt: skip


def bins(series):
    """The share between each two edges."""
    assert series.step == "after"
    assert series.y[-1] == 0.0
    return list(zip(series.x, series.x[1:], series.y, strict=False))


def test_shares_are_those_of_the_final_beliefs():
    rng = np.random.default_rng(5)
    logs, in_world = rng.normal(size=(300, 4)), rng.random(300) < 0.4
    chart = belief_distribution(logs, in_world, belief=0.7)
    beliefs = expit(logs[:, -1])
    for name, world in (("with the record", in_world), ("without it", ~in_world)):
        for low, high, share in bins(drawn(chart)[name]):
            inside = (beliefs[world] >= low) & (beliefs[world] < high)
            assert share == pytest.approx(inside.mean())
    above = [100 * (beliefs[world] > 0.7).mean() for world in (in_world, ~in_world)]
    told = [float(part.split(" %")[0]) for part in chart.title.split(" in ")[1:]]
    assert told == pytest.approx(above, rel=1e-2)
    assert drawn(chart)["limit: 70 %"].x == (0.7,)


def test_what_lies_far_out_is_counted_in_the_outermost_bins():
    worlds = drawn(belief_distribution([[800.0], [-800.0]], [1, 0]))
    assert bins(worlds["with the record"])[-1][2] == bins(worlds["without it"])[0][2] == 1.0
    rng = np.random.default_rng(4)
    chart = scores(np.append(rng.normal(size=2000), 1e9), rng.normal(size=2000))
    _, high, share = bins(drawn(chart)["with the record"])[-1]
    assert high < 10
    assert share > 0


@given(lists, lists)
def test_every_trial_is_in_one_bin(inside, outside):
    for series in scores(inside, outside).series:
        assert sum(share for _, _, share in bins(series)) == pytest.approx(1.0)


def test_the_title_is_the_share_of_pairs_and_what_is_not_finite_is_said():
    title = scores([1.0, 2.0], [0.0, 1.5]).title
    assert title.startswith("In 75 % of all pairs of trials the one with the record")
    text = scores([1.0, np.nan], [0.0, -np.inf]).text
    assert text.endswith("2 trials without a finite score left out.")


def test_the_spread_is_that_of_the_trials():
    values = np.random.default_rng(2).uniform(0.2, 1.0, size=(50, 7))
    chart = sensitivity(values, clip_norm=1.0, adjacency="add-remove")
    local = drawn(chart)["this record"]
    assert local.x == [*range(1, 8)]
    assert np.allclose(local.y, np.median(values, axis=0))
    assert np.allclose(local.high, np.quantile(values, 0.95, axis=0))
    assert f"The largest was {values.max():.3g}" in chart.text


@pytest.mark.parametrize(
    ("adjacency", "factor", "words"), [("add-remove", 1, "C"), ("replace", 2, "2 C")]
)
def test_the_global_sensitivity_depends_on_the_adjacency(adjacency, factor, words):
    chart = sensitivity([[0.3, 0.3]], clip_norm=1.5, adjacency=adjacency)
    limit = drawn(chart)[f"global: {words} = {1.5 * factor:g}"]
    assert set(limit.y) == {1.5 * factor}
    assert f"by {30 / 1.5 / factor:g} % of the most" in chart.title
    assert sensitivity([[0.3]], clip_norm=1.5, adjacency=adjacency).svg()


def test_the_ladder_names_the_strongest():
    rungs = (Rung("weak", -0.1, 0.0, 0.1), Rung("strong", 0.4, 0.5, 0.6))
    chart = ladder(rungs, 0.7001, "d′", 0.95)
    assert chart.title == (
        "The strongest adversary, strong, is estimated at d′ 0.5 (95 % interval 0.4 to 0.6); "
        "the claim allows 0.7001."
    )
    found = [(r["adversary"], r["low"], r["value"], r["high"]) for r in chart.table()]
    assert found[:2] == [("weak", -0.1, 0.0, 0.1), ("strong", 0.4, 0.5, 0.6)]
    assert drawn(chart)["allowed: 0.7001"].y == (0.7001,)


LIMITS = {
    0.45: "the claim allows 0.45, which lies in that interval.",
    0.3: "the claim allows 0.3.",
    0.55: "the claim allows 0.55.",
    math.inf: "the claim sets no limit.",
}


@pytest.mark.parametrize("allowed", LIMITS)
def test_an_estimate_above_what_is_allowed_may_be_luck(allowed):
    chart = ladder((Rung("x", 0.4, 0.5, 0.6),), allowed, "d′", 0.95)
    assert chart.title.endswith(LIMITS[allowed])
    assert len(chart.series) == 1 + math.isfinite(allowed)
    opened = ladder((Rung("x", 1.0, 2.0, math.inf),), allowed, "d′", 0.95)
    assert "or more" in opened.title
    assert 2.0 < opened.series[0].high[0] < math.inf
