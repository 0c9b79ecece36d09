"""Where PyTorch computes."""

import re

import pytest

from dprime.data.devices import device_named, device_title


def test_a_device_that_is_there():
    assert device_named("cpu").type == "cpu"


@pytest.mark.parametrize("name", ["abacus", "cuda:99", "meta"])
def test_one_that_is_not(name):
    with pytest.raises(ValueError, match=f"device must be available, but it is '{name}': give cpu"):
        device_named(name)


def test_what_a_processor_is_called():
    assert re.fullmatch(r"\S+ processor, [1-9]\d* cores", device_title("cpu"))
