"""The forms of file that a pool can have: CSV and TSV, Parquet, and NumPy's .npy and .npz."""

from __future__ import annotations

import csv
import io
import itertools
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dprime import bounded, text, validate
from dprime.data.arrays import ROWS_AT_ONCE, array_rows
from dprime.membership.pool import Bools, Floats
from dprime.npz import archived, array_of

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LARGEST, LONGEST_ROW = 4_000_000_000, 16_000_000  # bytes of a pool, unpacked, and of a line in it
MOST_RECORDS = 20_000_000

PLAIN, PADDED = "biufcmMSU", "gG"
"""Kinds of arrays whose equal entries have equal bytes; long doubles have idle bytes."""


class PoolFile(ABC):
    """The records of a pool, in one of the forms of file: the names of their columns, and more."""

    columns: tuple[str, ...]
    count: int

    @abstractmethod
    def rows(self, compared: Sequence[str]) -> Iterator[bytes]:
        """The values of each record in these columns, as bytes that differ where the records do."""

    @abstractmethod
    def numbers(self, column: str) -> Floats:
        """A column of numbers [record]; NaN where there is none."""

    @abstractmethod
    def write(self, members: Bools, stream: BinaryIO) -> None:
        """Write a file of the same form with the records that were drawn, in their order."""

    def place(self, index: int) -> str:
        """What a sentence calls a record."""
        return f"record {index}"


class TextPool(PoolFile):
    """CSV with a header, copied byte for byte.

    Quoted fields may hold line breaks; blank lines are no records. Records are compared by their
    fields as read. One is named by its first line, counted from 1 with the header.
    """

    def __init__(self, content: bytes, delimiter: str) -> None:
        self._bytes, self._delimiter, self.count = content, delimiter, 0
        if b"\0" in content:
            requirement = "text in UTF-8 or another encoding with one byte for a comma"
            raise validate.invalid_input("pool", "something else", requirement, "save it as UTF-8")
        header, _, self._header_end, _ = next(self._parsed(), ([], 0, 0, 1))
        self.columns = tuple(header)
        numbered = header == [str(place) for place in range(len(header))]
        if not header or (not numbered and any(map(_is_number, header))):
            remedy = "add a line with the columns' names, for the first line is always kept"
            shown = "with numbers for names" if header else "missing"
            raise validate.invalid_input("the first line", shown, "the header", remedy)
        for fields, *_, line in self._records():
            if len(fields) != len(header):
                name = f"the number of fields in line {line}"
                raise validate.invalid_value(name, len(fields), f"{len(header)}", "mend the line")
            self.count += 1
            _check_count(self.count)

    def _parsed(self) -> Iterator[tuple[list[str], int, int, int]]:
        """The fields of each row, the bytes from where to where it goes, and its first line."""
        begin = len(BYTE_ORDER_MARK) if self._bytes.startswith(BYTE_ORDER_MARK) else 0
        stream, start, first = io.BytesIO(self._bytes), begin, 0
        stream.seek(begin)

        def texts() -> Iterator[str]:
            while line := stream.readline(LONGEST_ROW + 1):
                if stream.tell() - start > LONGEST_ROW:
                    raise ValueError(f"line {first + 1}: more than {LONGEST_ROW:,} bytes")
                yield line.decode("utf-8", "surrogateescape")

        reader = csv.reader(texts(), delimiter=self._delimiter, strict=True)
        while (fields := _next_row(reader)) is not None:
            if fields:
                yield fields, start, stream.tell(), first + 1
            start, first = stream.tell(), reader.line_num

    def _records(self) -> Iterator[tuple[list[str], int, int, int]]:
        return itertools.islice(self._parsed(), 1, None)

    def rows(self, compared: Sequence[str]) -> Iterator[bytes]:
        places = [i for i, name in enumerate(self.columns) if name in compared]
        for fields, *_ in self._records():
            yield "\0".join([fields[i] for i in places]).encode("utf-8", "surrogateescape")

    def numbers(self, column: str) -> Floats:
        place = self.columns.index(column)
        values = [
            validate.parse(f"{column} in line {line}", fields[place])
            for fields, *_, line in self._records()
        ]
        return np.array(values, dtype=np.float64)

    def write(self, members: Bools, stream: BinaryIO) -> None:
        stream.write(self._bytes[: self._header_end])
        for member, (_, start, stop, _) in zip(members.tolist(), self._records(), strict=True):
            if member:
                stream.write(self._bytes[start:stop])

    def place(self, index: int) -> str:
        *_, line = next(itertools.islice(self._records(), index, None))
        return f"line {line}"


def _next_row(reader: Any) -> list[str] | None:
    """The next row, of any length; the limit is the whole process's, so it is put back."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        return next(reader, None)
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from None
    finally:
        csv.field_size_limit(limit)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


class ArrayPool(PoolFile):
    """NumPy's .npy, one array, or .npz, several of one length; the first axis counts records.

    The fields of a structured array are its columns. A single number in an archive is copied.
    """

    def __init__(self, content: bytes) -> None:
        alone = content.startswith(npy.MAGIC_PREFIX)
        found, packed = ({"": array_of(content)}, False) if alone else archived(content, LARGEST)
        self._arrays: dict[str, NDArray[Any]] = found
        self._save: Any = np.save if alone else np.savez_compressed if packed else np.savez
        self._columns = {name: array for name, array in self._arrays.items() if array.ndim}
        lengths = {len(array) for array in self._columns.values()}
        if len(lengths) != 1:
            shown = f"of {' and '.join(map(str, sorted(lengths))) or 'no'} records"
            wanted = "of arrays of one length, the number of records"
            remedy = "keep what does not belong to the records in another file"
            raise validate.invalid_input("pool", shown, wanted, remedy)
        (self.count,) = lengths
        _check_count(self.count)
        if alone and (names := found[""].dtype.names):
            self._columns = {name: found[""][name] for name in names}
        self.columns = tuple(self._columns)
        for name, column in self._columns.items():
            if column.dtype.kind not in PLAIN or column.dtype.char in PADDED:
                shown, wanted = f"of {column.dtype}", "of numbers or text"
                remedy = "save each of its parts as an array"
                raise validate.invalid_input(name or "the array", shown, wanted, remedy)

    def rows(self, compared: Sequence[str]) -> Iterator[bytes]:
        return array_rows([self._columns[name] for name in compared])

    def numbers(self, column: str) -> Floats:
        values = self._columns[column]
        if values.ndim != 1 or values.dtype.kind not in "fiu":
            raise _no_numbers(column, f"{values.dtype} of shape {values.shape}")
        return values.astype(np.float64)

    def write(self, members: Bools, stream: BinaryIO) -> None:
        every = self._arrays.items()
        kept = {name: array[members] if array.ndim else array for name, array in every}
        if self._save is np.save:
            np.save(stream, kept[""])
        else:
            self._save(stream, **kept)


class ParquetPool(PoolFile):
    """Parquet, read with pyarrow; a copy has the pool's schema and compression."""

    def __init__(self, content: bytes) -> None:
        if find_spec("pyarrow") is None:
            lacking = "installed for a Parquet file"
            raise validate.invalid_input("pyarrow", "missing", lacking, text.install("parquet"))
        import pyarrow.compute  # noqa: PLC0415  only this form needs it
        import pyarrow.parquet  # noqa: PLC0415

        self._pyarrow = pyarrow
        source = pyarrow.BufferReader(content)
        with pyarrow.parquet.ParquetFile(source) as file:  # its ArrowInvalid is a ValueError
            _check_count(file.metadata.num_rows)
            self._table = pyarrow.Table.from_batches(_batches(file), file.schema_arrow)
            groups = file.metadata.num_row_groups and file.metadata.num_columns
            packing = file.metadata.row_group(0).column(0).compression if groups else "SNAPPY"
        self._packing = "NONE" if packing == "UNCOMPRESSED" else packing
        self.columns, self.count = tuple(self._table.column_names), self._table.num_rows

    def rows(self, compared: Sequence[str]) -> Iterator[bytes]:
        """A number for each distinct value of a column."""
        chosen = [i for i, name in enumerate(self.columns) if name in compared]
        return array_rows([self._codes(i) for i in chosen])

    def _codes(self, index: int) -> NDArray[np.int64]:
        types, column = self._pyarrow.types, self._table.column(index)
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if types.is_floating(column.type):  # -0 counts as 0
            column = self._pyarrow.compute.add(column.cast(self._pyarrow.float64()), 0.0)
        if types.is_nested(column.type):
            texts = self._pyarrow.array(list(map(repr, column.to_pylist())))
            column = self._pyarrow.chunked_array([texts])
        codes = column.dictionary_encode().combine_chunks().indices.fill_null(-1)
        return np.asarray(codes, dtype=np.int64)

    def numbers(self, column: str) -> Floats:
        types, values = self._pyarrow.types, self._table.column(column)
        if not (types.is_floating(values.type) or types.is_integer(values.type)):
            raise _no_numbers(column, f"of {values.type}")
        numbers: Floats = values.cast(self._pyarrow.float64()).to_numpy()
        return numbers

    def write(self, members: Bools, stream: BinaryIO) -> None:
        kept = self._table.filter(self._pyarrow.array(members))
        self._pyarrow.parquet.write_table(kept, stream, compression=self._packing)


def _batches(file: Any) -> Iterator[Any]:
    """The batches of a Parquet file: a value that is stored once may be there in every row."""
    about = file.metadata
    groups = (about.row_group(number) for number in range(about.num_row_groups))
    chunks = (group.column(place) for group in groups for place in range(group.num_columns))
    longest = max((chunk.total_uncompressed_size for chunk in chunks), default=0)
    left = LARGEST
    rows = LARGEST // max(8 * longest, 1)  # a batch is much less than all that is allowed
    for batch in file.iter_batches(max(1, min(rows, ROWS_AT_ONCE))):
        left -= batch.nbytes
        if left < 0:
            raise ValueError(f"it unpacks to more than {LARGEST:,} bytes")
        yield batch


def _check_count(count: int) -> None:
    if count > MOST_RECORDS:
        raise ValueError(f"it has more than {MOST_RECORDS:,} records")


def _no_numbers(column: str, shown: str) -> validate.InputError:
    wanted = "one number for each record"
    return validate.invalid_input(column, shown, wanted, "name another column")


FORMS: dict[str, Callable[[bytes], PoolFile]] = {
    ".csv": lambda content: TextPool(content, ","),
    ".tsv": lambda content: TextPool(content, "\t"),
    ".parquet": ParquetPool,
    ".npy": ArrayPool,
    ".npz": ArrayPool,
}
"""The forms of file, by the ending of the name."""


def open_pool(path: str | Path) -> PoolFile:
    """The pool in a file, whose form its name's ending tells."""
    place = Path(path)
    form = FORMS.get(place.suffix.lower())
    if form is None:
        endings = f"a file that ends in {', '.join(FORMS)}"
        raise validate.invalid_value("pool", str(path), endings, "convert it")
    remedy = "give the path of a whole file, without objects of Python"
    content = bounded.read_bytes(place, LARGEST, remedy)
    try:
        return form(content)
    except validate.InputError:
        raise
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        wanted = f"a {place.suffix.lower()} file that can be read ({reason})"
        raise validate.invalid_value("pool", str(path), wanted, remedy) from None
