"""How far a run is, in words."""

from dprime.audit.states import Event, Worker, on_the_way, worker_lines


def event(how, block=0):
    return Event("2026-01-01", block, how, "what")


def test_a_line_for_each_worker():
    workers = {"b": Worker(3, 6000, 4.0), "a": Worker(1, 10, 0.0)}
    assert worker_lines(workers) == [
        "a: 1 block, 10 trials, 0 trials/s", "b: 3 blocks, 6,000 trials, 1.5e+03 trials/s",
    ]  # fmt: skip


def test_what_happened_on_the_way():
    assert on_the_way([]) == ""
    assert on_the_way([event("failed")]) == ""  # told with the blocks that failed
    several = on_the_way([event("out of memory"), event("over the time limit"), event("failed")])
    assert "1 try was out of memory and 1 try was over the time limit; their blocks" in several
    assert "2 tries were lost" in on_the_way([event("lost with its worker", n) for n in (1, 2)])
