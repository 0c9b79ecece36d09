"""What tests of the papers share."""

import pytest

from dprime.train import workers


@pytest.fixture(autouse=True)
def one_thread():
    """Networks this small only lose by threads."""
    with workers.one_thread():
        yield
