"""Files of strangers are read up to a size, and nothing but files."""

import os
from pathlib import Path

import pytest

from dprime.bounded import first_bytes, read_bytes


def test_as_many_bytes_as_are_allowed(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_bytes(path, 5, "") == b"12345"
    assert first_bytes(path, 3, "") == b"123"
    with pytest.raises(ValueError, match="must be a file of at most 4 bytes, but it is larger"):
        read_bytes(path, 4, "give a shorter one")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and devices with names")
def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull), Path("/dev/zero")):
        with pytest.raises(ValueError, match="but it is a device or a pipe"):
            read_bytes(path, 10, "")
    for path, words in ((tmp_path, "a folder"), (tmp_path / "none", "missing")):
        with pytest.raises(ValueError, match=words):
            read_bytes(path, 10, "")
