"""What MOSAICrOWN's scripts add of their own: order, counts, and trainings to compare with."""

import numpy as np
import pytest

from dprime import TradeOff
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.train import SGD, FinalAccuracy, TrainingConfig, train
from papers.mosaicrown import figure4_2, figure5_2, figure5_3
from papers.mosaicrown.experiment import Data, network
from papers.reproduce import Scale

SMOKE = Scale("smoke")


def test_neighbours_go_from_the_most_to_the_least_different():
    data = Data.drawn(SMOKE, 20, 1)
    scores = []
    for worlds in data.neighbours("replace", "cpu", keep=3):
        ours, theirs = worlds.differing.records[:1], worlds.differing.records[1:]
        one = dataset_sensitivity(
            ours, theirs, adjacency="replace", measure=default_measure(data.inside.kind)
        )
        scores.append(float(one.scores[0]))
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1]


@pytest.mark.parametrize(("mu", "delta"), [(0.3, 0.05), (1.2, 1e-4)])
def test_a_belief_is_exceeded_with_the_probability_it_is_named_for(mu, delta):
    belief = figure4_2.exceeded(mu, delta)
    assert TradeOff.gaussian(mu).belief_exceeds_in_worst_pair(belief) == pytest.approx(
        delta, rel=1e-6
    )


def test_random_replacements_that_move_further():
    first = np.array([1.0, 1.1, 0.9, 1.0])
    found = figure5_3.Replacements(
        np.stack([first + 0.1, first - 0.1, first + np.array([0.5, -0.4, 0.3, -0.3])], 1),
        np.array([False, True, False]),
    )
    assert (found.further(first), found.surely_further(first)) == (2, 1)
    claim = figure5_3.most_moving(first, found)
    assert claim.ours == pytest.approx(1 / 3)
    assert "2 of 3 move it further than the 1.00" in claim.why
    assert "not the most moving one" in claim.why
    assert "the same class moves it by 0.90 to 0.90 (1 of 3)" in claim.why
    assert "not the most moving" not in figure5_3.most_moving(first + 9, found).why


def test_accuracy_before_training_is_that_of_the_weights_that_all_cases_start_from():
    worlds = figure5_2.neighbours(SMOKE, 40)["replace"]
    others = figure5_2.beside(SMOKE, worlds, SGD())
    still = FinalAccuracy(figure5_2.held_out(SMOKE))
    train(
        network(SMOKE, worlds.common), worlds, TrainingConfig(steps=1, learning_rate=1e-12),
        trials=2, seed=SMOKE.seed, world="in", observers=[still], keep_weights=False,
        progress=False,
    )  # fmt: skip
    assert np.array_equal(others.before, still.values)
    assert not np.array_equal(others.before, others.free)
