import threading

from dprime.validate import InputError
from dprime.web.warm import Warmer


def test_newer_work_takes_the_place_of_older():
    warmer, done, first = Warmer(), [], threading.Event()

    def older():
        done.append("older")
        first.set()
        with held:
            yield
        done.append("never")
        yield

    held = threading.Lock()
    held.acquire()
    warmer.start()
    warmer.turn_to(older())
    assert first.wait(5)
    warmer.turn_to(done.append(n) for n in ("newer", "newest"))
    held.release()
    warmer.finish()
    assert done == ["older", "newer", "newest"]
    warmer.stop()


def test_a_neighbour_that_cannot_be_asked_for_ends_only_its_own_work():
    warmer, done = Warmer(), []

    def refused():
        yield
        raise InputError("sample_rate must be at most 1.")

    warmer.start()
    warmer.turn_to(refused())
    warmer.finish()
    warmer.turn_to(done.append(n) for n in (1, 2))
    warmer.finish()
    assert done == [1, 2]
    warmer.stop()


def test_nothing_is_begun_while_somebody_is_answered():
    warmer, done = Warmer(), []
    warmer.start()
    with warmer.answering(), warmer.answering():
        warmer.turn_to(done.append(n) for n in (1,))
        threading.Event().wait(0.05)
        assert done == []
    warmer.finish()
    assert done == [1]
    warmer.stop()
