"""The frontier: what is trained, what is kept of it, and what is said about it."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy
import torch
from torch import nn

from dprime import InputError
from dprime.data.dataset import Dataset, Split
from dprime.membership.frontiers import FrontierRecord, MeasuredPoint, frontier
from dprime.membership.planner import plan
from dprime.plain import to_json
from dprime.runs.run import Run
from dprime.train import SGD, Compute, train
from told import one_line


def records(count, seed):
    """Two clouds that overlap a little."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    return Dataset.of(rng.normal(size=(count, 3)) + 1.5 * labels[:, None], labels, name="clouds")


def planned(*probabilities, **length):
    return plan(0.7, pool_size=240, batch_size=20, sampling_probabilities=probabilities, **length)


def net():
    torch.manual_seed(0)
    return nn.Linear(3, 2)


DATA = Split(records(240, 1), records(101, 2))
PLAN = planned(0.2, 0.5, 0.69, epochs=1.3)


def found_with(**changed):
    given = {"plan": PLAN, "data": DATA, "model": net(), "learning_rate": 0.5, "clip_norm": 1.0}
    return frontier(**{**given, "seed": 5, **changed})


@pytest.fixture
def trained(monkeypatch):
    """What is trained; the training before which `stop` stands there raises it."""
    calls = []

    def spy(model, data, training, **rest):
        calls.append((data, training, rest))
        if stop := spy.stops.pop(data.probability, None):
            raise stop
        return train(model, data, training, **rest)

    spy.stops, spy.calls = {}, calls
    monkeypatch.setattr("dprime.attack.trainer.train", spy)
    return spy


def values_of(found):
    return [each.accuracies.tolist() for each in found.points]


def finals_of(call, *tests):
    """The final accuracies on some records of a training that is done again."""
    parts, training, rest = call
    done = train(net(), parts, training, seed=rest["seed"])
    return [done.accuracy(test).tolist() for test in tests]


def test_every_point_is_trained_as_planned(trained):
    found = found_with(repetitions=40, optimizer=SGD(momentum=0.5))
    for point, each, call in zip(PLAN.points, found.points, trained.calls, strict=True):
        parts, training, _ = call
        assert each.probability == parts.probability == point.probability
        assert training.mechanism() == point.training()
        assert (training.learning_rate, training.clip_norm) == (0.5, 1.0)
        assert training.optimizer == SGD(momentum=0.5)
        assert parts.common is DATA.train
        assert parts.members.shape == (40, 240)
        assert len(np.unique(parts.members, axis=0)) == 40  # a fresh draw for each repetition
        spread = np.sqrt(point.probability * (1 - point.probability) / parts.members.size)
        assert abs(parts.members.mean() - point.probability) < 4.5 * spread
        assert [each.accuracies[:, -1].tolist()] == finals_of(call, DATA.test)
        assert each.after[-1] == point.steps
        assert each.after[0] == round(1 / point.sample_rate)  # after the first epoch


def test_points_with_other_numbers_of_measurements(trained, tmp_path):
    """The same steps make more epochs of a smaller part."""
    found = found_with(plan=planned(0.2, 0.5, steps=8), repetitions=3, file=tmp_path / "a.run")
    assert [each.after for each in found.points] == [(2, 4, 6, 8), (6, 8)]
    assert one_line(found, 600)
    assert [each.accuracies.shape for each in found.points] == [(3, 4), (3, 2)]
    assert all(np.isfinite(each.accuracies).all() for each in found.points)
    for each, call in zip(found.points, trained.calls, strict=True):
        assert [each.accuracies[:, -1].tolist()] == finals_of(call, DATA.test)


def test_finished_points_are_not_trained_again(tmp_path, trained):
    file = tmp_path / "deep" / "points.run"
    trained.stops = {0.2: ValueError("no luck"), 0.69: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        found_with(file=file)
    with Run.open(file) as run:
        assert (run.kind, run.done(), run.result) == ("frontier", [1], None)
    trained.stops = {0.2: ValueError("no luck")}
    with pytest.raises(InputError, match=r"1 of 3 blocks of points of the frontier .*no luck"):
        found_with(file=file)
    found = found_with(file=file)
    assert [data.probability for data, *_ in trained.calls] == [0.2, 0.5, 0.69, 0.69, 0.2, 0.2]
    assert values_of(found) == values_of(found_with())
    trained.calls.clear()
    assert to_json(found_with(file=file)) == to_json(found)
    assert not trained.calls
    with Run.open(file) as run:
        assert run.result == to_json(found)


def test_a_seed_is_kept_if_given_and_else_drawn_and_kept_secret(tmp_path):
    file = tmp_path / "points.run"
    assert values_of(found_with(seed=None, file=file)) != values_of(found_with())
    with Run.open(file) as run, pytest.raises(InputError, match="one whose seed is a secret"):
        _ = run.seed


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("repetitions", 3),
        ("optimizer", SGD(momentum=0.1)),
        ("model", nn.Linear(3, 2, bias=False)),
        ("data", Split(DATA.train, records(101, 3))),
        ("data", Split(records(240, 4), DATA.test)),
        ("plan", planned(0.2, epochs=2)),
    ],
)
def test_other_settings_are_refused(tmp_path, trained, name, other):
    given = {"plan": planned(0.2, epochs=1), "file": tmp_path / "points.run"}
    found_with(**given)
    with pytest.raises(InputError, match=r"points\.run must be of the same settings"):
        found_with(**{**given, name: other})
    assert len(trained.calls) == 1


def test_a_rate_is_chosen_on_records_that_are_not_shown(trained):
    """The hopeless rate is chosen nowhere; what is shown is measured on the other records."""
    rates = (1e-6, 0.5)
    found = found_with(learning_rate=rates, repetitions=3)
    assert found.learning_rates == rates
    halves = [DATA.test.take(range(first, 101, 2)) for first in (0, 1)]
    pairs = zip(trained.calls[::2], trained.calls[1::2], strict=True)
    for each, tried in zip(found.points, pairs, strict=True):
        assert [training.learning_rate for _, training, _ in tried] == list(rates)
        assert (tried[0][0].members == tried[1][0].members).all()  # on the same draws
        finals = [finals_of(call, *halves) for call in tried]
        chosen = int(np.argmax([np.mean(choosing) for choosing, _ in finals]))
        assert each.learning_rate == rates[chosen]
        assert each.choosing == pytest.approx(np.mean(finals[chosen][0]))
        assert each.accuracies[:, -1].tolist() == finals[chosen][1]
    assert found.points[0].learning_rate == 0.5


def made_up(*rows, diverged=0):
    """A frontier with these final accuracies at the points of the plan."""
    course = {"learning_rate": 1.0, "after": (5, 9), "diverged": diverged}
    points = []
    for point, row in zip(PLAN.points, rows, strict=False):
        accuracies = np.array([[0.99, value] for value in row])
        points.append(MeasuredPoint(**vars(point), **course, accuracies=accuracies))
    fields = (getattr(PLAN, name) for name in FrontierRecord.__match_args__[:7])
    return FrontierRecord(*fields, tuple(points), "clouds", 2, (1.0,))


def test_best_is_by_final_accuracy_and_rivals_are_named():
    found = made_up([0.80, 0.801], [0.82, 0.821], [0.5, 0.501])
    assert (found.best, found.tied) == (0.5, (0.2,))
    shown = json.loads(json.dumps(to_json(found), allow_nan=False))
    assert (shown["best"], shown["points"][0]["final"]["value"]) == (0.5, pytest.approx(0.8005))
    assert shown["points"][0]["best_peeks_at_test"]["value"] == pytest.approx(0.99)
    reach = 100 * scipy.stats.t.isf(0.05 / 2 / 3, 1) * 0.0005  # three intervals hold together
    for value, words in ((82.05, "accuracy is "), (50.05, ", give ")):
        told = f"{words}{value:.2f} % ({value - reach:.2f} to {value + reach:.2f})"
        assert told in found.sentence
    assert "It cannot be told from π = 0.2: the intervals" in found.sentence
    assert "More records with more noise, π = 0.69 with ε at most" in found.sentence


@pytest.mark.parametrize(
    ("rows", "tied", "words"),
    [
        ([[0.800, 0.801], [0.900, 0.901]], (), "No other π has an interval"),
        ([[0.80, 0.81], [0.80, 0.82], [0.81, 0.80]], (0.2, 0.69), "from π = 0.2 and 0.69: the"),
        ([[0.8, 0.81]], (), "accuracy is 80.50 %"),
    ],
)
def test_a_clear_winner_is_called_one_and_equals_are_not(rows, tied, words):
    found = made_up(*rows)
    assert found.tied == tied
    assert words in found.sentence
    assert ("overlap" in found.sentence) == (len(rows) > 1)
    lost = made_up(*rows, diverged=2).sentence
    assert f"{2 * len(rows)} trainings diverged: a lower learning rate" in lost


@pytest.mark.parametrize(
    ("parameter", "changed"),
    [
        ("repetitions", {"repetitions": 1}),
        ("learning_rate", {"learning_rate": 0.0}),
        ("learning_rate", {"learning_rate": []}),
        ("clip_norm", {"clip_norm": 0.0}),
        ("device", {"compute": Compute("abacus")}),
        ("seed", {"seed": -1}),
        ("plan", {"data": Split(records(200, 1), DATA.test)}),
        ("pool", {"data": Split(DATA.train.take([*range(239), 0]), DATA.test)}),
        ("test part", {"data": Split(DATA.train, DATA.test.take([0])), "learning_rate": [1, 2]}),
        ("data", {"data": Split(replace(DATA.train, classes=None), DATA.test)}),
    ],
)
def test_refusals(trained, parameter, changed):
    with pytest.raises(InputError) as refused:
        found_with(**changed)
    assert refused.value.parameter == parameter
    assert not trained.calls
