import numpy as np
import pytest
from scipy.special import expit, logit

from dprime import DPSGD
from dprime.show.figures import BeliefFigure, belief_bound
from dprime.show.figures.trials import MOST_STEPS


def walks(trials=400, steps=30, mu=0.125, seed=3):
    rng = np.random.default_rng(seed)
    in_world = np.arange(trials) % 2 == 0
    drift = np.where(in_world, mu**2 / 2, -(mu**2) / 2)[:, None]
    return (drift + mu * rng.normal(size=(trials, steps))).cumsum(axis=1), in_world


def test_medians_and_ranges_are_those_of_the_beliefs():
    logs, in_world = walks()
    figure = BeliefFigure.of(logs, in_world, prior=0.2)
    for spread, world in ((figure.inside, in_world), (figure.outside, ~in_world)):
        beliefs = expit(logs[world] + logit(0.2))
        assert np.allclose(spread.median, np.median(beliefs, axis=0))
        assert np.allclose(spread.low, np.quantile(beliefs, 0.05, axis=0))
        assert np.allclose(spread.high, np.quantile(beliefs, 0.95, axis=0))
    starts = [row for row in figure.rows() if row["step"] == 0 and row["layer"] == "with"]
    assert [row["belief"] for row in starts] == [0.2]


def test_beliefs_beyond_the_limit_are_counted_in_world_in():
    logs = np.array([[2.0], [2.3], [9.0], [9.0], [-1.0]])
    figure = BeliefFigure.of(logs, [True, True, True, False, False], belief=0.9)
    assert (figure.above, figure.trials) == (2, (3, 2))  # logit 0.9 = 2.197
    assert figure.title == "With the record, the belief ended above 90 % in 2 of 3 trials."


def test_trials_without_a_finite_number_are_left_out_and_said():
    logs, in_world = walks(trials=6, steps=2)
    logs[0, 1] = np.nan
    logs[3, 0] = np.inf
    figure = BeliefFigure.of(logs, in_world)
    assert (figure.trials, figure.left_out) == ((2, 2), 2)
    assert figure.text.endswith("2 trials without a finite number left out.")


def test_the_certified_belief_is_exact_for_full_batches():
    """N(mu, 1) against N(0, 1), mu = sqrt(k) / z: the belief at TPR t has odds t / FPR(t)."""
    limits = belief_bound(DPSGD(8.0, 1.0, 20), "add-remove", prior=0.3, exceeded=0.01)
    for step, limit in enumerate(limits, start=1):
        assert limit == pytest.approx(DPSGD(8.0, 1.0, step).curve().belief(0.3, 0.01), rel=1e-12)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_between_computed_steps_the_certified_belief_is_rounded_up(adjacency):
    training = DPSGD(2.0, 0.05, 500)
    limits = belief_bound(training, adjacency, prior=0.5)
    assert len(limits) == 500
    assert limits == sorted(limits)
    assert len(set(limits)) <= 30
    for step in (1, 2, 37, 101, 250, 499, 500):
        assert limits[step - 1] >= DPSGD(2.0, 0.05, step).curve(adjacency).belief(0.5, 1e-3)


def test_the_certified_belief_is_exceeded_as_rarely_as_it_says():
    logs, in_world = walks(trials=20_000, steps=10, mu=0.5)
    limits = belief_bound(DPSGD(2.0, 1.0, 10), "add-remove", prior=0.5, exceeded=0.02)
    beliefs = expit(logs[in_world])
    allowed = 0.02 * 10_000
    assert ((beliefs > np.array(limits)).sum(axis=0) <= allowed + 3 * np.sqrt(allowed)).all()


def test_the_bound_is_told_with_its_probability():
    logs, in_world = walks(steps=10)
    limits = belief_bound(DPSGD(8.0, 1.0, 10), "add-remove", prior=0.5)
    figure = BeliefFigure.of(logs, in_world, bound=limits)
    printed = float(figure.title.split("; above ")[1].split()[0])
    assert 100 * limits[-1] <= printed < 101 * limits[-1]
    assert figure.title.endswith("it ends at most once in 1,000 times.")
    rows = [(r["step"], r["belief"]) for r in figure.rows() if r["layer"] == "certified"]
    assert rows == list(enumerate(limits, start=1))


def test_no_limit_below_certainty():
    logs, in_world = walks(steps=1)
    assert BeliefFigure.of(logs, in_world, bound=[1.0]).title.endswith(
        "no limit below certainty is certified."
    )


def test_a_long_training_is_drawn_at_some_steps_with_its_last():
    logs, in_world = walks(trials=10, steps=3000)
    bound = np.linspace(0.5, 0.9, 3000)
    figure = BeliefFigure.of(logs, in_world, bound=list(bound))
    assert len(figure.inside.steps) == MOST_STEPS
    assert figure.inside.steps[-1] == 3000
    assert all(limit == bound[step - 1] for step, limit in figure.bound)


@pytest.mark.parametrize(
    ("logs", "in_world", "options", "sentence"),
    [
        ([1.0, 2.0], [1, 0], {}, r"log_ratio must be a table \[trial, step\], but it is of shape"),
        ([[1.0], [2.0]], [1, 1], {}, "log_ratio must be of both worlds"),
        ([[1.0], [2.0]], [1], {}, r"in_world must be \[trial\]"),
        ([[np.nan], [np.nan]], [1, 0], {}, "log_ratio must be finite in a trial at least"),
        ([[1.0], [2.0]], [1, 0], {"bound": [0.5, 0.6]}, "bound must be one a step"),
        ([[1.0], [2.0]], [1, 0], {"prior": 1.0}, "prior must be strictly between"),
    ],
)
def test_refused(logs, in_world, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        BeliefFigure.of(logs, in_world, **options)
