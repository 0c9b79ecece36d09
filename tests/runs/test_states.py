"""How far a run is, in words."""

from dprime.runs.states import Event, Worker, incident_summary, worker_lines


def event(how, block=0):
    return Event("2026-01-01", block, how, "what")


def test_a_line_for_each_worker():
    workers = {"b": Worker(3, 6000, 4.0), "a": Worker(1, 10, 0.0)}
    assert worker_lines(workers) == [
        "a: 1 block, 10 trials, 0 trials/s", "b: 3 blocks, 6,000 trials, 1.5e+03 trials/s",
    ]  # fmt: skip


def test_what_happened_on_the_way():
    assert incident_summary([]) == ""
    assert incident_summary([event("failed")]) == ""  # told with the blocks that failed
    several = incident_summary(
        [event("out of memory"), event("over the time limit"), event("failed")]
    )
    assert "1 try was out of memory and 1 try was over the time limit; their blocks" in several
    assert "2 tries were lost" in incident_summary(
        [event("lost with its worker", n) for n in (1, 2)]
    )
