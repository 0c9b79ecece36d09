"""Models are tiny here: one thread is faster than several, and adds up in the order of workers."""

import pytest

from dprime.data import devices


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with devices.one_thread():
        yield
