"""Cherubin's trainings come from the seed that is asked for, and say from which they are."""

import json

import pytest

from papers.cherubin import figure1, figure9, trainings
from papers.cherubin.cases import ADULT, RETAIL
from papers.drawing import INKS
from papers.reproduce import SEED, Scale


@pytest.fixture
def raw(tmp_path, monkeypatch):
    """A folder with trainings of seed 2024 for the usual one."""
    monkeypatch.setattr(trainings, "RAW", tmp_path)
    (tmp_path / "adult.json").write_text(json.dumps({"data": "adult", "seed": 2024}))
    trainings.trained.cache_clear()
    yield tmp_path
    trainings.trained.cache_clear()


@pytest.fixture
def made(monkeypatch):
    """The seeds of trainings that were asked for, which are not made."""
    seeds = []

    def train(case, scale):
        seeds.append(scale.seed)
        return {"data": case.data, "seed": scale.seed}

    monkeypatch.setattr(trainings, "train", train)
    return seeds


@pytest.mark.parametrize("seed", [SEED, 2024])
def test_kept_trainings_stand_for_the_usual_seed_and_for_their_own(seed, raw, made):
    assert trainings.trained(ADULT, Scale("full", seed=seed))["seed"] == 2024
    assert made == []


def test_another_seed_makes_new_trainings_and_keeps_them(raw, made):
    assert trainings.trained(ADULT, Scale("full", seed=5))["seed"] == 5
    trainings.trained.cache_clear()
    assert trainings.trained(ADULT, Scale("full", seed=5))["seed"] == 5
    assert made == [5]
    assert {path.name for path in raw.iterdir()} == {"adult.json", "adult-seed5.json"}


def test_quick_ones_take_the_seed_as_it_is(raw, made):
    assert trainings.trained(ADULT, Scale("quick"))["seed"] == SEED


def test_trainings_of_two_seeds_are_refused_in_a_sentence():
    found = [{"data": "adult", "seed": 2024}, {"data": "retail100", "seed": 5}]
    with pytest.raises(ValueError, match=r"from one seed, these are from 2024 \(adult\), 5"):
        trainings.kept(Scale("full"), *found)


def test_the_seed_reaches_the_trainings():
    one, same, other = (trainings.train(RETAIL, Scale("smoke", seed=seed)) for seed in (5, 5, 6))
    assert one["runs"] == same["runs"]
    assert one["runs"] != other["runs"]
    assert (one["seed"], other["seed"]) == (5, 6)


def test_the_published_have_the_colours_of_ours():
    found = json.loads((trainings.RAW / "adult.json").read_text())
    epochs = found["epochs"]
    numbers = {
        "accuracy": [0.8] * epochs,
        "attribute": [[0.95, 0.94, 0.96]] * epochs,
        "membership, certified": [0.9] * epochs,
    }
    lines = figure1._figure("adult", found, numbers).lines
    inks = {line.name: INKS[line.ink] for line in lines}
    assert inks["ours: age, estimate"] == inks["published: age"]
    assert inks["ours: membership, certified"] == inks["published: membership"]
    assert len(set(inks.values())) == 2


def test_what_the_triangle_inequality_forces_is_no_claim():
    found = json.loads((trainings.RAW / "adult.json").read_text())
    for one in found["runs"]:
        pairs = zip(
            one["security"][figure9.FORM]["approximate"],
            one["security"][figure9.FORM]["full"],
            strict=True,
        )
        assert all(rough <= full for rough, full in pairs)
