"""Where PyTorch computes."""

import re

import pytest

from dprime.data.devices import device_named, device_title
from dprime.validate import InputError


def test_devices_that_are_there_and_that_are_not():
    assert device_named("cpu").type == "cpu"
    assert re.fullmatch(r"\S+ processor, [1-9]\d* cores", device_title("cpu"))
    for name in ("abacus", "cuda:99", "meta"):
        with pytest.raises(InputError) as refused:
            device_named(name)
        assert (refused.value.parameter, refused.value.value) == ("device", name)
