"""A run whose processes are killed again and again, in short; `make faults` has Ray too."""

import pytest

from benchmarks import kills


@pytest.mark.slow
@pytest.mark.parametrize("name", ["local", "processes"])
def test_nothing_is_lost_and_nothing_hangs(name):
    found = kills.measure(quick=True, only=[name])["backends"][name]
    assert found["kills"] >= 3
    assert found["runs"] >= 1
    wrong = ("finished_blocks_lost", "runs_that_differ", "hung", "left_processes")
    assert [what for what in wrong if found[what]] == []
