"""How far a run is, in words."""

from dprime.runs.states import Event, Worker, incident_summary, worker_lines


def test_a_line_for_each_worker():
    workers = {"b": Worker(3, 6000, 4.0), "a": Worker(1, 10, 0.0)}
    assert worker_lines(workers) == [
        "a: 1 block, 10 trials, 0 trials/s", "b: 3 blocks, 6,000 trials, 1.5e+03 trials/s",
    ]  # fmt: skip


def test_what_happened_on_the_way():
    outcomes = ["out of memory", "lost with its worker", "failed", "lost with its worker"]
    events = [Event("2026-01-01", 0, outcome, "what") for outcome in outcomes]
    summary = " On the way 1 try was out of memory and 2 tries were lost with its worker; their "
    assert incident_summary(events).startswith(summary)
    assert incident_summary([]) == ""
    assert incident_summary(events[2:3]) == ""  # told with the blocks that failed
