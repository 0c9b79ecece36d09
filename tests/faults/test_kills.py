"""A run whose processes are killed again and again, in short: all of it is `make faults`."""

import pytest

from benchmarks import kills

WRONG = ("finished_blocks_lost", "runs_that_differ", "hung")  # Ray ends its processes at leisure


@pytest.mark.slow
@pytest.mark.parametrize("name", ["local", "processes", pytest.param("ray", marks=pytest.mark.ray)])
def test_nothing_is_lost_and_nothing_hangs(name):
    if name == "ray":
        pytest.importorskip("ray")
    found = kills.measure(quick=True, only=[name])["backends"][name]
    assert found["kills"] >= 3
    assert found["runs"] >= 1
    assert [what for what in WRONG if found[what]] == []
