"""Files of strangers are read up to a size; of NumPy's, every array and nothing else."""

import contextlib
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime.bounded import first_bytes, read_bytes
from dprime.npz import archived, array_of


def saved(array):
    np.save(buffer := io.BytesIO(), array, allow_pickle=True)
    return buffer.getvalue()


def declared(header, data=bytes(32)):
    """A file with a header of any text."""
    text = header if isinstance(header, bytes) else header.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def zipped(**members):
    with zipfile.ZipFile(buffer := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


ROWS = np.arange(12.0).reshape(3, 4)


@pytest.mark.filterwarnings("ignore:Stored array in format")
@pytest.mark.parametrize(
    "array",
    [
        ROWS, np.asfortranarray(ROWS), ROWS[:, ::2], np.float64(3), np.array(["é", "жук"]),
        np.array([(1, 2.0)], dtype=[("a", "i4"), ("é", "f8")]),
        np.array([(1, 2.0)], dtype=[("a", "i4"), ("ж\\", "f8")]), np.empty((0, 3)),
        ROWS.astype(">f4"), np.array(["2026-11-19"], dtype="M8[D]"),
    ],
)  # fmt: skip
def test_what_numpy_saves_is_read(array):
    found = array_of(saved(array))
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert np.array_equal(found, array)
    read, packed = archived(zipped(x=saved(array), y=saved(ROWS)), 10_000)
    assert packed
    assert [*read] == ["x", "y"]
    assert np.array_equal(read["x"], array)


SHAPE = "{{'descr': '{}', 'fortran_order': False, 'shape': {}}}"


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x93NUMPY", saved(ROWS)[:-1], saved(ROWS) + b"x", saved(np.array([None, 1])),
        *(declared(SHAPE.format("<f8", shape)) for shape in (
            "(2000000000,)", "(-4,)", "(-2, -2)", "(10**9,)", f"(1{'0' * 400},)", "(True, 4)",
            "(0, 1" + "0" * 30 + ")", "4", "(4.0,)", "None")),
        *(declared(SHAPE.format(kind, "(4,)")) for kind in ("|O", "<q9", "|V0", "<U0", "?x", "")),
        declared("("), declared("-" * 9000 + "1"), declared("[" * 9000), declared("{'a'"),
        declared("'''"), declared(SHAPE.format("<f8", "(4L,)")), declared("  {\n 1L"),
        declared(SHAPE.replace("'{}'", "()").format("(4,)")),
        declared(SHAPE.replace("'{}'", "[((), 'f8')]").format("(4,)")),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Reading `.npy`", "ignore:invalid decimal literal")
def test_what_is_forged_or_damaged_is_refused(content):
    if b"4L" in content:  # as Python 2 wrote it, and read by NumPy too
        assert array_of(content).shape == (4,)
        return
    with pytest.raises(ValueError, match=r"."):
        array_of(content)
    with pytest.raises(ValueError, match=r"."):
        archived(zipped(x=content), 10_000)


@pytest.mark.filterwarnings("ignore")
@given(at=st.integers(0, 130), put=st.binary(min_size=1, max_size=6), version=st.integers(1, 4))
def test_no_change_of_a_header_ends_in_anything_but_a_refusal(at, put, version):
    content = bytearray(saved(ROWS))
    content[at : at + len(put)] = put
    content[6] = version
    with contextlib.suppress(ValueError):
        array_of(bytes(content))


@given(at=st.integers(0, 400), put=st.binary(min_size=1, max_size=4))
def test_no_change_of_an_archive_ends_in_anything_but_a_refusal(at, put):
    content = bytearray(zipped(x=saved(ROWS), y=saved(ROWS)))
    content[at : at + len(put)] = put
    with contextlib.suppress(ValueError):
        archived(bytes(content), 10_000)


def test_an_archive_that_unpacks_to_more_than_is_allowed():
    with pytest.raises(ValueError, match="unpacks to more than 999 bytes"):
        archived(zipped(x=saved(np.zeros(200))), 999)
    with zipfile.ZipFile(buffer := io.BytesIO(), "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", saved(ROWS))
    with pytest.raises(ValueError, match="packed"):
        archived(buffer.getvalue(), 10_000)


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
