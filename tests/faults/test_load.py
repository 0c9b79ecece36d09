"""People who use the explorer while somebody abuses it."""

import pytest

from benchmarks import load


@pytest.mark.slow
def test_nobody_loses_an_answer_to_abuse(monkeypatch):
    """The short form of the measurement: every fourth move is hostile, so that each kind comes."""
    monkeypatch.setattr(load, "QUIET", 3.0)
    found = load.measured(users=10, seconds=5, abused=0.25)
    assert load.broken(found) == []
    assert found["moves"] > 20
    assert sum(sum(each.values()) for each in found["abuse"].values()) > 5


def test_a_broken_promise_is_told():
    found = {
        "lost_because": {"500 ": 1, load.BUSY: 2}, "abuse": {"dear": {"500": 1, "503": 1}},
        "server_megabytes": 300, "workers_megabytes": 200, "start_megabytes": 290,
    }  # fmt: skip
    assert load.broken(found) == ["lost: 500 ", "dear: 500", "210 MB more than at the start"]
