import threading
import time

import pytest

from dprime.web.cache import Cache


def test_what_is_known_is_not_computed_again():
    cache, calls = Cache[str, int](10), []
    for _ in range(3):
        assert cache.get("a", lambda: calls.append(1) or 7) == 7
    assert calls == [1]


def test_the_entry_not_asked_for_longest_goes_first():
    cache = Cache[int, int](3)
    for key in (1, 2, 3):
        cache.get(key, lambda: 0)
    cache.get(1, lambda: pytest.fail("it is known"))
    cache.get(4, lambda: 0)
    assert [key in cache for key in (1, 2, 3, 4)] == [True, False, True, True]


def test_the_weight_stays_within_the_budget():
    cache = Cache[int, bytes](100, len)
    for key in range(50):
        cache.get(key, lambda: b"x" * 30)
    assert len(cache) == 3
    assert cache.weight == 90


def test_an_entry_above_the_budget_is_kept_alone():
    cache = Cache[int, bytes](100, len)
    cache.get(1, lambda: b"x")
    cache.get(2, lambda: b"x" * 1000)
    assert (1 in cache, 2 in cache) == (False, True)


def asked_at_once(cache, compute, threads=8):
    """What each of several threads got or was told."""
    got, together = [], threading.Barrier(threads)

    def ask():
        together.wait()
        try:
            got.append(cache.get("key", compute))
        except ValueError as error:
            got.append(str(error))

    running = [threading.Thread(target=ask) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(10)
    return got


def test_threads_that_ask_at_once_share_one_computation():
    calls = []

    def compute():
        calls.append(1)
        time.sleep(0.05)
        return 7

    assert asked_at_once(Cache(10), compute) == [7] * 8
    assert calls == [1]


def test_an_error_reaches_everybody_and_is_not_kept():
    cache = Cache(10)

    def compute():
        time.sleep(0.05)
        raise ValueError("no")

    assert asked_at_once(cache, compute) == ["no"] * 8
    assert cache.get("key", lambda: 3) == 3


def test_what_was_claimed_is_waited_for():
    cache = Cache[int, int](10)
    assert cache.claim([1, 2, 2]) == [1, 2]
    assert cache.claim([2, 3]) == [3]
    threading.Timer(0.05, cache.fulfil, (1, 10)).start()
    assert cache.get(1, lambda: pytest.fail("somebody brings it")) == 10
    cache.fail(2, ValueError("lost"))
    assert cache.get(2, lambda: 20) == 20
    cache.fulfil(3, 30)
    assert cache.claim([1, 2, 3]) == []
