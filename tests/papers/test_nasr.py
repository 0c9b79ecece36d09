"""What explains a step of the ladder that does not hold."""

import dataclasses
import json

import pytest

from papers.nasr import ladder
from papers.nasr.ladder import MANY, STATIC, Reached, play
from papers.reproduce import Estimate, Scale, stated

FULL = Scale("full")


def reached(share, adversary=STATIC):
    """An interval of a tenth to both sides, where the certified d′ is 1."""
    return Reached(adversary, 1.0, share, share - 0.1, share + 0.1, 1.0, {}, 1000, "", 0)


def step(low, high):
    """A row of the ladder: it differs where all of the interval is below -0.2."""
    return stated(
        "static less api", "at most 0.2 less", Estimate((low + high) / 2, low, high), least=-0.2
    )


@pytest.fixture
def raw(monkeypatch, tmp_path):
    monkeypatch.setattr(ladder, "RAW", tmp_path)
    return tmp_path


def keep(raw, share):
    content = {
        "device": "a GPU",
        "seconds": 1.0,
        "seed": 2021,
        "reached": [reached(share).as_json()],
    }
    (raw / f"mnist-{STATIC}-epsilon-1-shadows-{MANY}.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.5, "it reaches 0.50 (0.40 to 0.60): with fewer, luck had"), (0.1, "is not shown")],
)
def test_a_play_with_more_shadow_models_tells(raw, share, said):
    keep(raw, share)
    told = ladder.with_reason(step(-0.6, -0.3), "mnist", FULL, reached(0.0))
    assert said in told.why
    assert told.verdict == "differs"


def test_without_such_a_play_nothing_is_claimed(raw):
    told = ladder.with_reason(step(-0.6, -0.3), "mnist", FULL, reached(0.0))
    assert told.why.endswith("The reason is not measured.")


@pytest.mark.parametrize(
    ("claim", "scale", "stronger"),
    [
        (step(-0.1, 0.1), FULL, reached(0.0)),
        (step(-0.6, 0.1), FULL, reached(0.0)),
        (step(-0.6, -0.3), Scale("quick"), reached(0.0)),
        (step(-0.6, -0.3), FULL, reached(0.0, "gradient")),
    ],
    ids=["agrees", "undecided", "quick", "another adversary"],
)
def test_only_where_a_made_record_falls_behind(raw, claim, scale, stronger):
    keep(raw, 0.5)
    assert ladder.with_reason(claim, "mnist", scale, stronger) is claim


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
    assert usual.claim["epsilon"] == other.claim["epsilon"] == 2.0
    assert usual.seed != other.seed
    assert dataclasses.replace(other, seed=usual.seed, options=usual.options) == usual
