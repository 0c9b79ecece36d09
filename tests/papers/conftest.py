"""What tests of the papers share."""

import pytest

from dprime.data import devices


@pytest.fixture(autouse=True)
def one_thread():
    """Networks this small only lose by threads."""
    with devices.one_thread():
        yield
