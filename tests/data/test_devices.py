"""Where PyTorch computes."""

import pytest

from dprime.data.devices import device_named


def test_a_device_that_is_there():
    assert device_named("cpu").type == "cpu"


@pytest.mark.parametrize("name", ["abacus", "cuda:99", "meta"])
def test_one_that_is_not(name):
    with pytest.raises(ValueError, match=f"device must be available, but it is '{name}': give cpu"):
        device_named(name)
