"""Data files made to harm whoever reads them: refused in a sentence, within bounded memory."""

import gzip
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dprime import InputError
from dprime.audit.scores import read_scores
from dprime.data import files
from dprime.membership import pool_forms
from dprime.membership.pool_forms import FORMS, open_pool

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs pipes and limits of POSIX")

READERS = {
    **dict.fromkeys(FORMS, open_pool),
    "scores.csv": read_scores,
    "data": files.read,
    "data.npz": lambda path: files.read_arrays(path, "x"),
}

ODD = {
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path),
    "huge": lambda path: (path.touch(), os.truncate(path, 10**12)),
    "missing": lambda path: None,
}


@pytest.mark.parametrize("made", ODD.values(), ids=ODD)
@pytest.mark.parametrize("ending", READERS)
def test_what_is_no_file_that_can_be_read(tmp_path, ending, made):
    path = tmp_path / f"a{ending}"
    made(path)
    with pytest.raises(InputError) as refused:
        READERS[ending](path)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    "content", [b"\xff\xfe" * 50, b"", b"score,world\n\xe9,in\n", b"PK\x03\x04x"]
)
@pytest.mark.parametrize("ending", [".npy", ".npz", ".parquet", "scores.csv", "data.npz"])
def test_what_has_another_form(tmp_path, ending, content):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"a{ending}"
    path.write_bytes(content)
    with pytest.raises(InputError):
        READERS[ending](path)


def test_rows_and_records_without_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(pool_forms, "LONGEST_ROW", 100)
    monkeypatch.setattr(pool_forms, "MOST_RECORDS", 5)
    (tmp_path / "a.csv").write_text("text\n" + "a" * 99 + '\n"' + "b\n" * 48 + '"\n')
    assert open_pool(tmp_path / "a.csv").count == 2
    for content in ("a" * 101, "text\n" + '"' + "b\n" * 51, "n\n" + "1\n" * 6, '"b\n",' * 30):
        (tmp_path / "a.csv").write_text(content)
        with pytest.raises(InputError, match=r"more than (100 bytes|5 records)"):
            open_pool(tmp_path / "a.csv")
    np.save(tmp_path / "a.npy", np.empty((6, 0)))
    with pytest.raises(InputError, match="more than 5 records"):
        open_pool(tmp_path / "a.npy")


# Memory -------------------------------------------------------------------------------------------


def packed_array(path, length=1 << 30):
    """An archive of few bytes that unpacks to as many zeros."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w", force_zip64=True) as member,
    ):
        header = {"descr": "|u1", "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(member, header)
        for _ in range(length >> 20):
            member.write(bytes(1 << 20))


def packed_text(path, length=1 << 30):
    with gzip.open(path, "wb") as file:
        for _ in range(length >> 20):
            file.write(bytes(1 << 20))
    assert path.stat().st_size < length / 900


def declares_more(path, length=15_000_000_000):
    """An array of 4 MB whose header says 15 GB."""
    with path.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(4_000_000))


def archive_declares_more(path):
    declares_more(part := path.with_suffix(".part"))
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(part, "x.npy")


def one_value_many_times(path):
    """A text of one megabyte that is stored once and stands in 100,000 rows."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    value = pyarrow.array(["a" * 1_000_000])
    column = pyarrow.DictionaryArray.from_arrays(np.zeros(100_000, np.int32), value)
    parquet.write_table(pyarrow.table({"x": column}), path, store_schema=False)
    assert parquet.read_schema(path) == pyarrow.schema([("x", pyarrow.string())])
    assert path.stat().st_size < 1_000_000


HARMFUL = {
    "a.csv": lambda path: path.write_bytes(b"x\n" + b"a" * 200_000_000),
    "quoted.csv": lambda path: path.write_bytes(b'x\n"' + b"a\n" * 100_000_000),
    "many.csv": lambda path: path.write_bytes(b"x\n" + b"1\n" * 100_000_000),
    "packed.npz": packed_array,
    "declared.npz": archive_declares_more,
    "declared.npy": declares_more,
    "repeated.parquet": one_value_many_times,
    "line-scores.csv": lambda path: path.write_bytes(b"score,world\n" + b"1" * 200_000_000),
    "packed-text-data.gz": packed_text,
    "packed-data.npz": packed_array,
    "declared-data.npz": archive_declares_more,
}

CHILD = """
import resource, sys, pathlib
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
from dprime import InputError
from dprime.audit.scores import read_scores
from dprime.data import files
from dprime.membership import pool_forms
pool_forms.LARGEST = files.LARGEST = 500_000_000
pool_forms.MOST_RECORDS = 2_000_000
path = pathlib.Path(sys.argv[1])
read = read_scores if "scores" in path.name else pool_forms.open_pool
if path.stem.endswith("data"):
    read = (lambda path: files.read_arrays(path, "x")) if path.suffix == ".npz" else files.read
try:
    read(path)
except InputError as error:
    print(error)
"""
"""Reads a file with little memory; limits are smaller than usual, so that the files may be."""

MEMORY = 2_000_000_000  # bytes of address space, of which the libraries take a part


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMFUL)
def test_memory_is_bounded(tmp_path, name):
    path = tmp_path / name
    HARMFUL[name](path)
    words = [sys.executable, "-c", CHILD, path, str(MEMORY)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
    assert name in done.stdout
