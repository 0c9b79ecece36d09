"""The forms of a pool's file: one contract for all, and what is special in each."""

import csv
import io
import zipfile

import numpy as np
import pytest

from dprime import InputError
from dprime.membership import pool_forms
from dprime.membership.pool import check_distinct
from dprime.membership.pool_forms import open_pool

COUNT = 40
AGES = np.arange(COUNT) / 8
CHANCES = np.linspace(0.1, 0.9, COUNT)
NAMES = [f"name {i % 7}" for i in range(COUNT)]
MARKS = {".csv": ",", ".tsv": "\t"}
ENDINGS = [*MARKS, ".npz", ".npy", ".parquet"]


def write_pool(path):
    """The same table in each form."""
    columns = {"id": np.arange(COUNT), "name": np.array(NAMES), "age": AGES, "pi": CHANCES}
    if path.suffix in MARKS:
        rows = [columns, *zip(*(column.tolist() for column in columns.values()), strict=True)]
        lines = [MARKS[path.suffix].join(map(str, row)) for row in rows]
        path.write_text("\n".join(lines) + "\n")
    elif path.suffix == ".npz":
        np.savez(path, **columns)
    elif path.suffix == ".npy":
        np.save(path, np.rec.fromarrays([*columns.values()], names=[*columns]))
    else:
        pytest.importorskip("pyarrow")
        from pyarrow import parquet, table

        parquet.write_table(table({**columns, "name": NAMES}), path, compression="gzip")
    return path


def read_column(path, name):
    """A column as anyone would read it, without the package."""
    if path.suffix in MARKS:
        with path.open(newline="") as stream:
            found = [row[name] for row in csv.DictReader(stream, delimiter=MARKS[path.suffix])]
        return found if name == "name" else [float(value) for value in found]
    if path.suffix in (".npz", ".npy"):
        return np.load(path)[name].tolist()
    from pyarrow import parquet

    return parquet.read_table(path)[name].to_pylist()


@pytest.fixture(params=ENDINGS)
def path(request, tmp_path):
    return write_pool(tmp_path / f"pool{request.param}")


def copied(pool, members, path):
    with path.open("wb") as stream:
        pool.write(np.array(members, dtype=bool), stream)
    return path


def test_columns_and_numbers(path):
    pool = open_pool(path)
    assert len(pool) == COUNT
    assert pool.columns == ("id", "name", "age", "pi")
    assert pool.numbers("pi").tolist() == CHANCES.tolist()
    with pytest.raises(InputError, match="name"):
        pool.numbers("name")


def test_members_are_copied_and_nobody_else(path, tmp_path):
    pool = open_pool(path)
    for share in (0.4, 1.0, 0.0):
        members = np.random.default_rng(1).random(COUNT) < share
        out = copied(pool, members, tmp_path / f"out{path.suffix}")
        for name in ("id", "name", "age", "pi"):
            whole = read_column(path, name)
            kept = [value for value, member in zip(whole, members, strict=True) if member]
            assert read_column(out, name) == kept
        if members.all() and path.suffix != ".parquet":
            assert len(out.read_bytes()) == len(path.read_bytes())


def test_records_are_compared_in_the_columns_asked_for(path):
    pool = open_pool(path)
    check_distinct(pool.rows(["id", "name"]), pool.place)
    check_distinct(pool.rows(["age"]), pool.place)
    first, second = ("line 9", "line 2") if path.suffix in (".csv", ".tsv") else (
        "record 7", "record 0",
    )  # fmt: skip
    with pytest.raises(ValueError, match=f"33 repetitions, first {first} .* same as {second}:"):
        check_distinct(pool.rows(["name"]), pool.place)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_missing_and_a_broken_file_are_refused(ending, tmp_path):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"pool{ending}"
    with pytest.raises(InputError, match=r"file that can be read \(No such file"):
        open_pool(path)
    path.write_bytes(b'a,b\n1,"2\n' if ending == ".csv" else b"a\tb\n1\t2\0\n")
    with pytest.raises(InputError, match="pool must be"):
        open_pool(path)


def test_an_unknown_form_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"ends in \.csv, \.tsv, \.parquet, \.npy, \.npz, but it"):
        open_pool(tmp_path / "pool.xlsx")


AWKWARD = (
    b"\xef\xbb\xbf"
    b'"id",text,"a, b"\r\n'
    b'1,"two\r\nlines, and ""quotes""",x\r\n'
    b"\r\n"
    b'2,caf\xe9 in latin-1,"y"\n'
    b"3,,  spaces  \n"
    b'"4","last, without an end",z'
)
ROWS = [
    b'1,"two\r\nlines, and ""quotes""",x\r\n',
    b'2,caf\xe9 in latin-1,"y"\n',
    b"3,,  spaces  \n",
    b'"4","last, without an end",z',
]


def test_rows_of_text_are_copied_byte_for_byte(tmp_path):
    path = tmp_path / "awkward.csv"
    path.write_bytes(AWKWARD)
    pool = open_pool(path)
    assert pool.columns == ("id", "text", "a, b")
    assert [pool.place(i) for i in range(4)] == ["line 2", "line 5", "line 6", "line 7"]
    header = AWKWARD[: AWKWARD.index(b"1,")]
    for pattern in range(16):
        members = [bool(pattern >> i & 1) for i in range(4)]
        stream = io.BytesIO()
        pool.write(np.array(members), stream)
        kept = [row for row, member in zip(ROWS, members, strict=True) if member]
        assert stream.getvalue() == header + b"".join(kept)


def opened(tmp_path, text):
    path = tmp_path / "pool.csv"
    path.write_bytes(text.encode())
    return open_pool(path)


def test_records_are_told_apart_by_their_fields_not_by_quotes(tmp_path):
    pool = opened(tmp_path, 'a,b\n1,x\n2,y\n"1","x"\n')
    with pytest.raises(InputError, match="line 4 that is the same as line 2"):
        check_distinct(pool.rows(pool.columns), pool.place)
    pool = opened(tmp_path, 'a,b\n1,23\n12,3\n"1,2",3\n1,"2,3"\n')
    check_distinct(pool.rows(pool.columns), pool.place)


def test_a_long_field_is_read(tmp_path):
    limit = csv.field_size_limit()
    assert len(opened(tmp_path, f"text\n{'long ' * limit}\nshort\n")) == 2
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize("first", ["5,0,0", "1e-3,2,7", "1,2,3", "39,State-gov,77516"])
def test_a_file_without_a_header_is_refused(tmp_path, first):
    with pytest.raises(InputError) as refused:
        opened(tmp_path, f"{first}\n1,2,3\n4,5,6\n")
    assert refused.value.parameter == "the first line"
    assert opened(tmp_path, "0,1,2\n1,2,3\n4,5,6\n").columns == ("0", "1", "2")  # is a header


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        ("", "pool"),
        ("a,b\n1,2\n1,2,3\n", "the number of fields in line 3"),
        ('a,b\n1,"2"x\n', "pool"),
        ("a,b\r1,2\r", "pool"),
    ],
)
def test_bad_text_is_refused(tmp_path, text, parameter):
    with pytest.raises(InputError) as refused:
        opened(tmp_path, text)
    assert refused.value.parameter == parameter


def test_a_number_is_missing_in_a_line(tmp_path):
    pool = opened(tmp_path, 'a,pi\n"1\n",0.5\n2,\n')
    with pytest.raises(ValueError, match="pi in line 4 must be a number, but it is ''"):
        pool.numbers("pi")


def test_one_plain_array(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, size=(9, 4, 4), dtype=np.uint8)
    np.save(tmp_path / "images.npy", images)
    pool = open_pool(tmp_path / "images.npy")
    check_distinct(pool.rows(pool.columns))
    members = np.arange(9) % 2 == 0
    out = np.load(copied(pool, members, tmp_path / "out.npy"))
    assert out.dtype == np.uint8
    assert (out == images[members]).all()
    with pytest.raises(InputError, match="one number for each record"):
        pool.numbers("")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_archive_keeps_its_packing_and_its_single_numbers(tmp_path, save):
    records = np.eye(6)
    save(tmp_path / "pool.npz", x=records, y=np.arange(6), classes=np.int64(3))
    out = copied(open_pool(tmp_path / "pool.npz"), [0, 1, 1, 0, 0, 1], tmp_path / "out.npz")
    found = np.load(out)
    assert sorted(found.files) == ["classes", "x", "y"]
    assert found["classes"] == 3
    assert found["y"].tolist() == [1, 2, 5]
    assert (found["x"] == records[[1, 2, 5]]).all()
    given, made = (zipfile.ZipFile(p).infolist()[0] for p in (tmp_path / "pool.npz", out))
    assert given.compress_type == made.compress_type


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"x": np.eye(6), "y": np.eye(4)}, "of one length, .* but it is of x of 6, y of 4"),
        ({"x": np.zeros(4, dtype=np.longdouble)}, "x must be of numbers or text"),
        ({"x": np.zeros(4, dtype=[("a", "i1"), ("b", "f8")])}, "x must be of numbers or text"),
        ({"x": np.array([{"a": 1}, None])}, "a .npz file that can be read .Object arrays"),
        ({"classes": np.int64(3)}, "but it is of a single number"),
    ],
    ids=["lengths", "idle bytes", "parts", "objects", "no record"],
)
def test_other_arrays_are_refused(tmp_path, arrays, sentence):
    np.savez(tmp_path / "pool.npz", **arrays)
    with pytest.raises(InputError, match=sentence):
        open_pool(tmp_path / "pool.npz")


def test_parquet_keeps_schema_packing_nulls_and_nested_values(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table(
        {
            "word": pa.array(["a", None, "a", None, "b"]).dictionary_encode(),
            "list": [[1], [2], [1, 2], [2], None],
            "part": pa.array([1, 2, 1, 2, None], pa.int8()),
            "nothing": pa.nulls(5),
            "zero": [1.0, 0.0, 1.0, -0.0, None],
        }
    ).replace_schema_metadata({"origin": "a survey"})
    parquet.write_table(table, tmp_path / "pool.parquet", compression="zstd", row_group_size=2)
    pool = open_pool(tmp_path / "pool.parquet")
    with pytest.raises(ValueError, match=r"1 repetition, first record 3 .* as record 1:"):
        check_distinct(pool.rows(pool.columns))
    assert np.isnan(pool.numbers("part")[4])
    out = copied(pool, [1, 0, 1, 0, 1], tmp_path / "out.parquet")
    made = parquet.ParquetFile(out)
    given = parquet.ParquetFile(tmp_path / "pool.parquet").schema_arrow
    assert made.schema_arrow.equals(given, check_metadata=True)
    assert made.schema_arrow.metadata == {b"origin": b"a survey"}
    assert made.read().to_pylist() == table.take([0, 2, 4]).to_pylist()
    assert made.metadata.row_group(0).column(0).compression == "ZSTD"


def test_parquet_without_pyarrow_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(pool_forms, "find_spec", lambda name: None)
    (tmp_path / "pool.parquet").touch()
    with pytest.raises(ValueError, match=r"pyarrow must be installed .* '\.\[parquet\]'"):
        open_pool(tmp_path / "pool.parquet")
