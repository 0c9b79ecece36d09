"""What is computed for a question, and what is known already."""

import pytest

from dprime.mechanisms import DPSGD
from dprime.web.options import CHARTS, SLIDERS
from dprime.web.ranges import SHARED, Setting
from dprime.web.service import EMPTY, FIRST, ExplorerService
from dprime.web.workers import Workers

TEXTS = {name: str(slider.default) for name, slider in SLIDERS.items()}


@pytest.fixture
def curves(monkeypatch):
    """The settings whose curves were computed."""
    computed, original = [], DPSGD.curve

    def counted(self, adjacency=None, *, group_size=1):
        computed.append((self, adjacency, group_size))
        return original(self, adjacency, group_size=group_size)

    monkeypatch.setattr(DPSGD, "curve", counted)
    return computed


@pytest.fixture
def service():
    return ExplorerService()


def test_only_what_is_asked_for_is_computed_and_once(curves, service):
    service.risk(TEXTS, ["trade-off", "trade-off-log", "precision"])
    assert len(curves) == 1
    service.charts(TEXTS, CHARTS)
    points = curves[1:]
    others = {*SHARED["noise_multiplier"]} - {SLIDERS["noise_multiplier"].default}
    assert len(points) == len(set(points)) == len(others)
    for name in ("prior", "belief_prior", "belief_level", "fpr", "delta"):
        for position in SLIDERS[name].positions:
            moved = {**TEXTS, name: str(position)}
            service.risk(moved)
            service.charts(moved, CHARTS)
    assert curves[1:] == points
    curves.clear()
    service.charts({**TEXTS, "noise_multiplier": "1.2"}, ["risk"])
    assert {mechanism.noise_multiplier for mechanism, _, _ in curves} == {1.2}


def test_sizes_are_answered_for_the_adjacency_that_the_command_takes(service):
    sized = {"noise_multiplier": "1.1", "batch_size": "256", "dataset_size": "60000", "steps": "9"}
    found = service.risk(sized, ["trade-off"])
    assert (found.adjacency, found.mechanism["public_size"]) == ("zero-out", True)
    assert "--batch-size 256 --dataset-size 60000" in found.command
    again = service.risk({**sized, "adjacency": "add-remove"})
    assert (again.adjacency, "public_size" in again.mechanism) == ("add-remove", False)


def test_charts_say_what_they_are_of(service):
    grouped = {**TEXTS, "group_size": "3"}
    found = service.risk(grouped, ["trade-off", "precision"])
    assert "the 3 records of one person" in found.described
    for chart in (*found.charts.values(), service.charts(grouped, ["risk"])["risk"]):
        assert chart.of.startswith(found.described), chart.name
    assert "δ = 0.00001" in found.charts["precision"].of


def test_a_choice_is_made_once(curves, service):
    first = service.choose(TEXTS, "advantage", "0.1", "noise_multiplier")
    curves.clear()
    again = service.choose({**TEXTS, "fpr": "0.001"}, "advantage", "0.1", "noise_multiplier")
    assert (again.chosen, curves) == (first.chosen, [])


def test_charts_move_with_what_they_show(service):
    before, every = service.charts(TEXTS, CHARTS), {*CHARTS}
    for name, position, changed in [
        ("fpr", "0.1", {"trade-off", "trade-off-corner", "trade-off-log"}),
        ("prior", "0.5", {"precision"}), ("delta", "1e-3", {"precision"}), ("belief", "0.6", set()),
        ("steps", "100", every), ("group_size", "2", every), ("adjacency", "replace", every),
    ]:  # fmt: skip
        after = service.charts({**TEXTS, name: position}, CHARTS)
        assert {each for each in CHARTS if after[each] != before[each]} == changed, name


def test_the_next_move_is_computed_ahead():
    pool = Workers(1)
    service = ExplorerService(pool)
    service.charts(TEXTS, ["risk"])
    for future in service._answers._ahead:
        future.result(60)
    known = set(service._answers._known)
    usual = Setting(DPSGD(1.1, 0.004, 14_000), "add-remove", 1)
    for near in (usual.moved("noise_multiplier", 1.2), usual.moved("steps", 7_000)):
        assert {(Setting.advantage, each) for each in near.over("noise_multiplier")} <= known
    pool.stop()


def test_what_the_page_begins_with_is_prepared(curves, service):
    service.prepare()
    curves.clear()
    service.charts(TEXTS, CHARTS)
    service.risk(TEXTS)
    assert curves == []
    assert set(FIRST) <= set(EMPTY)
