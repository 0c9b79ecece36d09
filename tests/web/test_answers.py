"""What is computed, and what is known already."""

import pytest

from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD
from dprime.web.answers import Answers, weight
from dprime.web.options import FIGURES, GOALS, OVER, SLIDERS
from dprime.web.sweeps import Point, both, neighbours

TEXTS = {name: str(slider.default) for name, slider in SLIDERS.items()}
POINT = Point(DPSGD(1.1, 0.004, 14_000), "add-remove", 1)


@pytest.fixture
def curves(monkeypatch):
    """The settings whose curves were computed."""
    computed, original = [], DPSGD.curve

    def counted(self, adjacency=None, *, group_size=1):
        computed.append((self, adjacency, group_size))
        return original(self, adjacency, group_size=group_size)

    monkeypatch.setattr(DPSGD, "curve", counted)
    return computed


def test_only_what_is_asked_for_is_computed(curves):
    Answers().risk(TEXTS)
    assert len(curves) == 1
    Answers().risk(TEXTS, figures=["trade-off", "trade-off-log", "precision"])
    assert len(curves) == 2


@pytest.mark.parametrize("name", ["prior", "belief_prior", "belief_level", "fpr", "delta"])
def test_the_attackers_sliders_need_no_new_curve(curves, name):
    answers = Answers()
    answers.risk(TEXTS, figures=FIGURES)
    curves.clear()
    for position in SLIDERS[name].positions:
        answers.risk({**TEXTS, name: str(position)}, figures=FIGURES)
    assert curves == []


def test_a_move_along_a_range_needs_little(curves):
    answers = Answers()
    answers.risk(TEXTS, figures=["risk"])
    curves.clear()
    answers.risk({**TEXTS, "noise_multiplier": "1.2"}, figures=["risk"])
    assert {mechanism.noise_multiplier for mechanism, _, _ in curves} == {1.2}
    curves.clear()
    answers.risk({**TEXTS, "noise_multiplier": "2"}, figures=["risk"])
    assert len(curves) <= 2


def test_a_choice_is_made_once(curves):
    answers = Answers()
    first = answers.choose(TEXTS, "advantage", "0.1", "noise_multiplier")
    curves.clear()
    moved = {**TEXTS, "fpr": "0.001"}
    assert (
        answers.choose(moved, "advantage", "0.1", "noise_multiplier")["chosen"] == first["chosen"]
    )
    assert curves == []


def test_figures_move_with_what_they_show():
    answers = Answers()
    before = answers.risk(TEXTS, figures=FIGURES)["figures"]
    for name, position, changed in [
        ("fpr", "0.1", {"trade-off", "trade-off-log"}),
        ("prior", "0.5", {"precision"}),
        ("delta", "1e-3", {"precision"}),
        ("belief_level", "0.6", set()),
        ("steps", "100", set(FIGURES)),
        ("group_size", "2", set(FIGURES)),
    ]:
        after = answers.risk({**TEXTS, name: position}, figures=FIGURES)["figures"]
        assert {each for each in FIGURES if after[each] != before[each]} == changed, name
    after = answers.risk({**TEXTS, "adjacency": "replace"}, figures=FIGURES)["figures"]
    assert {each for each in FIGURES if after[each] != before[each]} >= set(FIGURES) - {
        "bayes-security"
    }


def test_kept_curves_stay_within_their_budget(monkeypatch):
    monkeypatch.setattr("dprime.web.answers.CURVES_BYTES", 3_000_000)
    answers = Answers()
    for step in range(60):
        answers.risk({**TEXTS, "noise_multiplier": str(1 + step / 100)})
    assert answers._curves.weight <= 3_000_000
    assert len(answers._curves) < 60


def test_a_weight_is_no_less_than_the_arrays():
    curve = POINT.curve()
    from dprime.metrics import risk_profile

    risk_profile(curve)
    curve.points()
    held = sum(
        getattr(part, "nbytes", 0)
        for half in (curve.shape.left, curve.shape.right)
        for part in vars(half).values()
    )
    assert held <= weight(curve) <= 4 * held
    assert weight(TradeOff.gaussian(1.0)) == 1_000


@pytest.fixture(scope="module")
def started():
    answers = Answers(workers=1)
    answers.start()
    answers.workers.wait(60)
    yield answers
    answers.stop()


def test_the_neighbourhood_of_the_first_page_is_made_ready(started):
    started._warmer.finish()
    for point in (POINT, *neighbours(POINT)):
        ranges = started.sweeps.ranges(point, OVER[0])
        assert started.sweeps._known.claim([*ranges.risk, *ranges.course]) == []


def test_the_neighbourhood_of_the_last_question_is_made_ready(started):
    texts = {**TEXTS, "noise_multiplier": "4.0", "steps": "100", "adjacency": "replace"}
    started.risk(texts, figures=["risk"])
    started._warmer.finish()
    point = Point(DPSGD(4.0, 0.004, 100), "replace", 1)
    beside = Point(DPSGD(3.6, 0.004, 100), "replace", 1)
    for each in (point, beside):
        assert all(twin in started.sweeps._known for twin in both(each))


def test_the_next_targets_are_made_ready(started, curves):
    started.choose(TEXTS, "advantage", "0.1", "noise_multiplier")
    started._warmer.finish()
    positions = GOALS["advantage"].positions
    place = list(positions).index(0.1)
    for value in (positions[place - 1], positions[place + 1]):
        curves.clear()
        started.choose(TEXTS, "advantage", str(value), "noise_multiplier", figures=["risk"])
        assert len(curves) <= 1
