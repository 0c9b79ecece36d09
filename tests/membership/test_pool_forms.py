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
COLUMNS = {
    "id": np.arange(COUNT),
    "name": np.array([f"name {i % 7}" for i in range(COUNT)]),
    "age": np.arange(COUNT) / 8,
    "pi": np.linspace(0.1, 0.9, COUNT),
}
MARKS = {".csv": ",", ".tsv": "\t"}


def write_pool(path):
    """The same table in each form."""
    if path.suffix in MARKS:
        rows = [COLUMNS, *zip(*(column.tolist() for column in COLUMNS.values()), strict=True)]
        lines = [MARKS[path.suffix].join(map(str, row)) for row in rows]
        path.write_text("\n".join(lines) + "\n")
    elif path.suffix == ".npz":
        np.savez(path, **COLUMNS)
    elif path.suffix == ".npy":
        np.save(path, np.rec.fromarrays([*COLUMNS.values()], names=[*COLUMNS]))
    else:
        pytest.importorskip("pyarrow")
        from pyarrow import parquet, table

        parquet.write_table(table(COLUMNS), path, compression="gzip")
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


@pytest.fixture(params=[*MARKS, ".npz", ".npy", ".parquet"])
def path(request, tmp_path):
    return write_pool(tmp_path / f"pool{request.param}")


def copied(pool, members, path):
    with path.open("wb") as stream:
        pool.write(np.array(members, dtype=bool), stream)
    return path


def test_columns_and_numbers(path):
    pool = open_pool(path)
    assert pool.count == COUNT
    assert pool.columns == tuple(COLUMNS)
    assert pool.numbers("pi").tolist() == COLUMNS["pi"].tolist()
    with pytest.raises(InputError, match="name"):
        pool.numbers("name")


def test_members_are_copied_and_nobody_else(path, tmp_path):
    pool = open_pool(path)
    for share in (0.4, 1.0, 0.0):
        members = np.random.default_rng(1).random(COUNT) < share
        out = copied(pool, members, tmp_path / f"out{path.suffix}")
        for name in COLUMNS:
            whole = read_column(path, name)
            kept = [value for value, member in zip(whole, members, strict=True) if member]
            assert read_column(out, name) == kept
        if members.all() and path.suffix != ".parquet":
            assert len(out.read_bytes()) == len(path.read_bytes())


def test_records_are_compared_in_the_columns_asked_for(path):
    pool = open_pool(path)
    check_distinct(pool.rows(["id", "name"]), pool.place)
    check_distinct(pool.rows(["age"]), pool.place)
    places = ("line 9", "line 2") if path.suffix in MARKS else ("record 7", "record 0")
    with pytest.raises(InputError, match="33 repetitions, first {} .* as {}:".format(*places)):
        check_distinct(pool.rows(["name"]), pool.place)


def test_a_missing_and_a_broken_file_are_refused(path):
    path.write_bytes(b'a,b\n1,"2\n' if path.suffix == ".csv" else b"a\tb\n1\t2\0\n")
    with pytest.raises(InputError, match="pool must be"):
        open_pool(path)
    path.unlink()
    with pytest.raises(InputError, match="must be a file, but it is missing"):
        open_pool(path)


def test_an_unknown_form_and_a_form_without_its_library_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"ends in \.csv, \.tsv, \.parquet, \.npy, \.npz, but it"):
        open_pool(tmp_path / "pool.xlsx")
    monkeypatch.setattr(pool_forms, "find_spec", lambda name: None)
    (tmp_path / "pool.parquet").touch()
    with pytest.raises(InputError, match=r"pyarrow must be installed .* 'dprime\[parquet\]'"):
        open_pool(tmp_path / "pool.parquet")


HEADER = b'\xef\xbb\xbf"id",text,"a, b"\r\n'
ROWS = [
    b'1,"two\r\nlines, and ""quotes""",x\r\n',
    b'2,caf\xe9 in latin-1,"y"\n',
    b"3,,  spaces  \n",
    b'"4","last, without an end",z',
]


def opened(tmp_path, text):
    path = tmp_path / "pool.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return open_pool(path)


def test_rows_of_text_are_copied_byte_for_byte(tmp_path):
    pool = opened(tmp_path, HEADER + ROWS[0] + b"\r\n" + b"".join(ROWS[1:]))
    assert pool.columns == ("id", "text", "a, b")
    assert [pool.place(i) for i in range(4)] == ["line 2", "line 5", "line 6", "line 7"]
    for pattern in range(16):
        members = [bool(pattern >> i & 1) for i in range(4)]
        stream = io.BytesIO()
        pool.write(np.array(members), stream)
        kept = [row for row, member in zip(ROWS, members, strict=True) if member]
        assert stream.getvalue() == HEADER + b"".join(kept)


def test_records_are_told_apart_by_their_fields_not_by_quotes(tmp_path):
    pool = opened(tmp_path, 'a,b\n1,x\n2,y\n"1","x"\n')
    with pytest.raises(InputError, match="line 4 that is the same as line 2"):
        check_distinct(pool.rows(pool.columns), pool.place)
    pool = opened(tmp_path, 'a,b\n1,23\n12,3\n"1,2",3\n1,"2,3"\n')
    check_distinct(pool.rows(pool.columns), pool.place)


def test_a_long_field_is_read(tmp_path):
    limit = csv.field_size_limit()
    pool = opened(tmp_path, f"text\n{'long ' * limit}\nshort\n")
    assert pool.count == 2
    first, second = pool.rows(["text"]), pool.rows(["text"])
    for rows in (first, second, first, second):  # one ends while the other is under way
        next(rows)
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        ("", "the first line"),
        ("5,0,0\n1,2,3\n", "the first line"),  # whoever stands there would be drawn for certain
        ("39,State-gov,77516\n1,2,3\n", "the first line"),
        ("a,b\n1,2\n1,2,3\n", "the number of fields in line 3"),
        ('a,b\n1,"2"x\n', "pool"),
        ("a,b\r1,2\r", "pool"),
    ],
)
def test_bad_text_is_refused(tmp_path, text, parameter):
    with pytest.raises(InputError) as refused:
        opened(tmp_path, text)
    assert refused.value.parameter == parameter
    assert opened(tmp_path, "0,1,2\n1,2,3\n4,5,6\n").columns == ("0", "1", "2")  # is a header


def test_a_number_is_missing_in_a_line(tmp_path):
    pool = opened(tmp_path, 'a,pi\n"1\n",0.5\n2,\n')
    with pytest.raises(InputError, match="pi in line 4 must be a number, but it is ''"):
        pool.numbers("pi")


def test_one_plain_array(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, size=(9, 4, 4), dtype=np.uint8)
    np.save(tmp_path / "images.npy", images)
    pool = open_pool(tmp_path / "images.npy")
    check_distinct(pool.rows(pool.columns))
    out = np.load(copied(pool, np.arange(9) % 2 == 0, tmp_path / "out.npy"))
    assert (out.dtype, out.tolist()) == (np.uint8, images[::2].tolist())
    with pytest.raises(InputError, match="one number for each record"):
        pool.numbers("")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_archive_keeps_its_packing_and_its_single_numbers(tmp_path, save):
    save(tmp_path / "pool.npz", x=np.eye(6), y=np.arange(6), classes=np.int64(3))
    out = copied(open_pool(tmp_path / "pool.npz"), [0, 1, 1, 0, 0, 1], tmp_path / "out.npz")
    found = {name: array.tolist() for name, array in np.load(out).items()}
    assert found == {"x": np.eye(6)[[1, 2, 5]].tolist(), "y": [1, 2, 5], "classes": 3}
    given, made = (zipfile.ZipFile(p).infolist()[0] for p in (tmp_path / "pool.npz", out))
    assert given.compress_type == made.compress_type


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"x": np.eye(6), "y": np.eye(4)}, "of one length, .* but it is of 4 and 6 records"),
        ({"x": np.zeros(4, dtype=np.longdouble)}, "x must be of numbers or text"),
        ({"x": np.zeros(4, dtype=[("a", "i1"), ("b", "f8")])}, "x must be of numbers or text"),
        ({"x": np.array([{"a": 1}, None])}, "a .npz file that can be read .it declares object"),
        ({"classes": np.int64(3)}, "but it is of no records"),
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
    with pytest.raises(InputError, match=r"1 repetition, first record 3 .* as record 1:"):
        check_distinct(pool.rows(pool.columns))
    assert np.isnan(pool.numbers("part")[4])
    made = parquet.ParquetFile(copied(pool, [1, 0, 1, 0, 1], tmp_path / "out.parquet"))
    given = parquet.ParquetFile(tmp_path / "pool.parquet")
    assert made.schema_arrow.equals(given.schema_arrow, check_metadata=True)
    assert made.schema_arrow.metadata == {b"origin": b"a survey"}
    assert made.read().to_pylist() == table.take([0, 2, 4]).to_pylist()
    assert made.metadata.row_group(0).column(0).compression == "ZSTD"
