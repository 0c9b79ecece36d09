"""What explains a step of the ladder that does not hold."""

import dataclasses
import json

import pytest

from papers.nasr import ladder
from papers.nasr.ladder import MANY, STATIC, Reached, play
from papers.reproduce import Scale

FULL = Scale("full")


def reached(share, adversary=STATIC):
    """An interval of a tenth to both sides, where the certified d′ is 1."""
    return Reached(adversary, 1.0, share, share - 0.1, share + 0.1, 1.0, {}, 1000, "", 0)


@pytest.fixture
def raw(monkeypatch, tmp_path):
    monkeypatch.setattr(ladder, "RAW", tmp_path)
    return tmp_path


def keep(raw, share):
    content = {
        "device": "a GPU", "seconds": 1.0, "seed": 2021, "shadows": MANY,
        "reached": [reached(share).as_json()],
    }  # fmt: skip
    (raw / f"mnist-{STATIC}-epsilon-1-shadows-{MANY}.json").write_text(json.dumps(content))


def ladder_of(static, api, others=1.0):
    """The same at every ε."""
    shares = {name: others for step in ladder.ORDER for name in step[:2]}
    shares |= {STATIC: static, "api-access": api}
    return {
        (name, epsilon): dataclasses.replace(reached(share, name), epsilon=epsilon)
        for name, share in shares.items()
        for epsilon in ladder.EPSILONS
    }


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.5, "it reaches 0.50 (0.40 to 0.60): it had chosen badly."), (0.1, "is not shown.")],
)
def test_a_record_that_is_chosen_again_tells(raw, share, said):
    keep(raw, share)
    claims, again = ladder.steps_of("mnist", "MNIST", FULL, ladder_of(0.0, 0.6))
    assert [each.verdict for each in claims[:4]] == ["differs"] * 4
    assert said in claims[0].why
    assert claims[1].why.endswith("The reason is not measured.")  # no play at ε = 2 is kept
    assert len(again) == 1


@pytest.mark.parametrize(
    ("scale", "found", "verdict"),
    [
        (FULL, ladder_of(0.6, 0.6), "agrees"),
        (FULL, ladder_of(0.4, 0.6), "undecided"),
        (Scale("quick"), ladder_of(0.0, 0.6), "differs"),
    ],
)
def test_only_where_a_made_record_falls_behind_in_full(raw, scale, found, verdict):
    keep(raw, 0.5)
    claims, again = ladder.steps_of("mnist", "MNIST", scale, found)
    assert claims[0].verdict == verdict
    assert not again
    assert "chosen" not in claims[0].why


def test_another_step_that_does_not_hold_is_not_asked(raw):
    found = {
        key: dataclasses.replace(each, d_prime=0.1, low=0.0, high=0.2)
        if key[0] == "gradient"
        else each
        for key, each in ladder_of(0.6, 0.6).items()
    }
    claims, again = ladder.steps_of("mnist", "MNIST", FULL, found)
    assert "differs" in {each.verdict for each in claims}
    assert not again


def test_another_number_of_shadow_models_has_random_numbers_of_its_own(monkeypatch):
    chosen = []

    def begin(settings, *_, **__):
        chosen.append(settings)
        raise InterruptedError

    monkeypatch.setattr(ladder, "begin", begin)
    for many in (0, 7):
        with pytest.raises(InterruptedError):
            play("mnist", Scale("smoke"), STATIC, [2.0], many)
    usual, other = chosen
    assert (usual.options, other.options) == ({"shadows": 2}, {"shadows": 7})
    assert usual.chosen_for["epsilon"] == other.chosen_for["epsilon"] == 2.0
    assert usual.seed != other.seed
    assert dataclasses.replace(other, seed=usual.seed, options=usual.options) == usual
