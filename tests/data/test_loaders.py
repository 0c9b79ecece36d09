"""Loaders: every format from small files that are written here, whole and broken."""

import gzip
import struct
import subprocess
import sys
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest

from dprime import data
from dprime.data import adult, embedded, files, loaders, mnist, retail100

ADDRESSES = {
    "mnist": "yann.lecun.com/exdb/mnist",
    "adult": "archive.ics.uci.edu/dataset/2/adult",
    "location30": "github.com/privacytrustlab/datasets",
    "cifar10": "www.cs.toronto.edu/~kriz/cifar.html",
    "retail100": "fimi.uantwerpen.be/data",
    "purchase100": "github.com/privacytrustlab/datasets",
}


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    """Nothing here may read the real files that the machine may have."""
    monkeypatch.delenv(files.VARIABLE, raising=False)


def write(path, contents, packed=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(contents) if packed else contents)


def refused(name, folder, *parts, error=ValueError):
    with pytest.raises(error) as caught:
        data.load(name, folder)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert " must be " in sentence
    for part in parts:
        assert str(part) in sentence, sentence


def same(one, other):
    return all(
        np.array_equal(a.records, b.records) and np.array_equal(a.labels, b.labels)
        for a, b in ((one.train, other.train), (one.test, other.test))
    )


class TestLoad:
    def test_names(self):
        assert data.names() == [
            "digits", "diabetes", "mnist", "adult", "location30", "cifar10", "retail100",
            "purchase100",
        ]  # fmt: skip

    @pytest.mark.parametrize("name", ["nist", "", None, 3])
    def test_an_unknown_name_lists_the_names(self, name):
        refused(name, None, *data.names())

    @pytest.mark.parametrize("name", ADDRESSES)
    def test_a_missing_file(self, name, tmp_path):
        told = ("data_dir", "DPRIME_DATA", ADDRESSES[name], "/")
        refused(name, tmp_path, str(tmp_path), *told, error=FileNotFoundError)
        refused(name, tmp_path / "nowhere", "nowhere", *told, error=FileNotFoundError)
        refused(name, None, "but it is None", *told, error=FileNotFoundError)
        refused(name, None, error=ValueError)

    def test_a_missing_file_is_named(self, tmp_path):
        refused("mnist", tmp_path, "mnist/train-images-idx3-ubyte", error=FileNotFoundError)
        write(tmp_path / "mnist" / "train-images-idx3-ubyte", b"")
        refused("mnist", tmp_path, "mnist/train-labels-idx1-ubyte", error=FileNotFoundError)

    def test_the_environment_names_the_folder(self, tmp_path, monkeypatch):
        write_location(tmp_path / "location30" / "location30.npz")
        monkeypatch.setenv("DPRIME_DATA", str(tmp_path))
        assert len(data.load("location30").train) == 48
        empty = tmp_path / "empty"
        empty.mkdir()
        refused("location30", empty, error=FileNotFoundError)
        monkeypatch.setenv("DPRIME_DATA", "")
        refused("location30", None, "but it is None", error=FileNotFoundError)

    def test_files_right_in_the_folder(self, tmp_path):
        write_location(tmp_path / "location30.npz")
        assert len(data.load("location30", str(tmp_path)).test) == 12

    def test_sources(self):
        for source in ("openml", "web"):
            with pytest.raises(ValueError, match=r"^source must be .*files.*\.$"):
                data.load("digits", source=source)

    def test_nothing_heavy_is_imported(self):
        """Neither by the core nor by dprime.data itself."""
        check = (
            "import sys, dprime; assert 'dprime.data' not in sys.modules; "
            "import dprime.data; dprime.data.names(); "
            "assert not {'torch', 'sklearn'} & set(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", check], check=True)

    @pytest.mark.parametrize("name", ["digits", "diabetes"])
    def test_without_scikit_learn(self, name, monkeypatch):
        monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
        with pytest.raises(ImportError, match=r"'\.\[train\]' in a checkout of dprime\.$"):
            data.load(name)


class TestEmbedded:
    def test_digits(self):
        parts = data.load("digits")
        assert (len(parts.train), len(parts.test)) == (1438, 359)
        assert parts.train.records.shape[1:] == (1, 8, 8)
        assert (parts.train.records.min(), parts.train.records.max()) == (0, 1)
        assert (parts.train.kind, parts.train.classes) == ("image", 10)
        counts = np.bincount(np.concatenate([parts.train.labels, parts.test.labels]))
        assert counts.tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]

    def test_diabetes(self):
        parts = data.load("diabetes")
        assert (len(parts.train), len(parts.test)) == (354, 88)
        assert (parts.train.kind, parts.train.classes) == ("table", None)
        assert parts.train.columns == tuple(embedded.DIABETES_RANGES)
        targets = np.concatenate([parts.train.labels, parts.test.labels])
        assert (targets.min(), targets.max()) == (np.float32(25 / 350), np.float32(346 / 350))

    def test_no_measurement_is_cut_off(self):
        """The constants enclose the file: only sex, which is 1 or 2, reaches 0 and 1."""
        whole = embedded.diabetes(None)
        inner = np.delete(whole.records, 1, axis=1)
        assert 0 <= inner.min() < inner.max() < 1
        assert set(whole.records[:, 1]) == {0, 1}
        spread = whole.records.max(axis=0) - whole.records.min(axis=0)
        assert spread.min() > 0.75

    @pytest.mark.parametrize("name", ["digits", "diabetes"])
    def test_the_split_is_fixed(self, name):
        assert same(data.load(name), data.load(name))


def idx(array):
    header = struct.pack(f">{1 + array.ndim}I", 2048 + array.ndim, *array.shape)
    return header + array.tobytes()


class TestMnist:
    @pytest.fixture
    def images(self):
        return np.random.default_rng(1).integers(0, 256, (12, 28, 28), dtype=np.uint8)

    @pytest.fixture
    def labels(self):
        return np.random.default_rng(2).integers(0, 10, 12, dtype=np.uint8)

    def write(self, folder, images, labels, packed=False):
        for prefix, rows in (("train", slice(0, 8)), ("t10k", slice(8, 12))):
            end = ".gz" if packed else ""
            write(folder / f"{prefix}-images-idx3-ubyte{end}", idx(images[rows]), packed)
            write(folder / f"{prefix}-labels-idx1-ubyte{end}", idx(labels[rows]), packed)

    @pytest.mark.parametrize("packed", [False, True])
    def test_what_is_read(self, tmp_path, images, labels, packed):
        self.write(tmp_path / "mnist", images, labels, packed)
        parts = data.load("mnist", tmp_path)
        assert parts.train.records.shape == (8, 1, 28, 28)
        assert np.allclose(parts.train.records[:, 0] * 255, images[:8])
        assert np.array_equal(parts.test.labels, labels[8:])
        assert (parts.test.kind, parts.test.classes) == ("image", 10)

    def test_broken_files(self, tmp_path, images, labels):
        folder = tmp_path / "mnist"
        self.write(folder, images, labels)
        path = folder / "train-images-idx3-ubyte"
        whole = path.read_bytes()
        square = idx(images[:8, :14].reshape(16, 14, 14)[:8].copy())
        for contents, told in [
            (whole[:-1], "number of bytes"),
            (whole + b"0", "number of bytes"),
            (whole[:10], "idx file"),
            (b"", "idx file"),
            (idx(labels), "magic number"),
            (struct.pack(">4I", 2052, 8, 28, 28) + whole[16:], "magic number"),
            (gzip.compress(whole)[:-100], "gzip"),
            (b"\x1f\x8b nothing", "gzip"),
            (square, "height and width"),
            (idx(images[:7]), "number of labels"),
        ]:
            write(path, contents)
            refused("mnist", tmp_path, told, "mnist")
        write(path, whole)
        write(folder / "train-labels-idx1-ubyte", idx(labels[:8] + 10))
        refused("mnist", tmp_path, "label 0", "train-labels-idx1-ubyte", "between 0 and 9")

    def test_openml_gives_the_same(self, tmp_path, images, labels, monkeypatch):
        asked = []

        def fetch(name, **options):
            asked.append((name, options["version"]))
            rows = images.reshape(12, 784).astype(np.float64)
            return SimpleNamespace(data=rows, target=labels.astype(str).astype(object))

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
        with pytest.raises(ValueError, match=r"must be 70000, but it is 12: .*data_dir\.$"):
            data.load("mnist", source="openml")
        monkeypatch.setattr(mnist, "TRAIN_SIZE", 8)
        monkeypatch.setattr(mnist, "TEST_SIZE", 4)
        self.write(tmp_path / "mnist", images, labels)
        assert same(data.load("mnist", source="openml"), data.load("mnist", tmp_path))
        assert asked[-1] == ("mnist_784", 1)


ROWS = [
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male,"
    " 2174, 0, 40, United-States, <=50K",
    "54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, Male,"
    " 0, 0, 60, South, >50K",
    "91, Private, 5, Preschool, 1, Widowed, Armed-Forces, Wife, Black, Female,"
    " 99999, 4356, 99, Trinadad&Tobago, >50K",
]


def one_record(row):
    """A row of Adult as a dictionary of columns, coded independently of the loader."""
    fields = [field.strip() for field in row.split(",")]
    named = dict(zip(adult.ATTRIBUTES, fields, strict=False))
    coded = dict.fromkeys(adult.COLUMNS, 0.0)
    for name, value in named.items():
        if name in adult.RANGES:
            low, high = adult.RANGES[name]
            coded[name] = min(max((float(value) - low) / (high - low), 0), 1)
        else:
            coded[f"{name}={value}"] = 1.0
    return coded


class TestAdult:
    def write(self, folder, rows=ROWS, test_rows=ROWS, packed=False):
        end = ".gz" if packed else ""
        test = "|1x3 Cross validator\n" + "".join(f"{row}.\n" for row in test_rows)
        write(folder / f"adult.data{end}", ("\n".join(rows) + "\n\n").encode(), packed)
        write(folder / f"adult.test{end}", (test + "\n").encode(), packed)

    def test_the_columns(self):
        assert len(adult.COLUMNS) == len(set(adult.COLUMNS)) == 104
        assert len(adult.RANGES) == 6
        assert "workclass=Private" in adult.COLUMNS
        assert {*adult.RANGES, *adult.CATEGORIES} == set(adult.ATTRIBUTES)

    @pytest.mark.parametrize("packed", [False, True])
    def test_what_is_read(self, tmp_path, packed):
        self.write(tmp_path / "adult", packed=packed)
        parts = data.load("adult", tmp_path)
        for part in (parts.train, parts.test):
            assert part.records.shape == (2, 104)
            assert part.labels.tolist() == [0, 1]
            assert (part.kind, part.classes, part.columns) == ("table", 2, adult.COLUMNS)
            for record, row in zip(part.records, (ROWS[0], ROWS[2]), strict=True):
                coded = one_record(row)
                assert set(coded) == set(adult.COLUMNS)
                assert record == pytest.approx(list(coded.values()))

    def test_a_record_does_not_move_the_others(self, tmp_path):
        """D and D′ differ in one record only, since nothing is computed from the data."""
        self.write(tmp_path / "all" / "adult")
        self.write(tmp_path / "one" / "adult", rows=ROWS[:1])
        both, one = (data.load("adult", tmp_path / name).train for name in ("all", "one"))
        assert np.array_equal(both.records[0], one.records[0])

    @pytest.mark.parametrize(
        ("rows", "told"),
        [
            ([ROWS[0][:-10]], "the number of fields in row 1"),
            ([ROWS[0], "1, 2"], "the number of fields in row 2"),
            ([ROWS[0].replace("State-gov", "Never-worked")], "Never-worked"),
            ([ROWS[0].replace("77516", "many")], "each fnlwgt"),
            ([ROWS[0].replace("<=50K", "50K")], "each class"),
            ([ROWS[1]], "the number of complete rows"),
            ([], "the number of complete rows"),
            (["39, Bäcker"], "plain text"),
        ],
    )
    def test_broken_files(self, tmp_path, rows, told):
        self.write(tmp_path / "adult", rows=rows)
        refused("adult", tmp_path, told, "adult.data")

    def fetched(self, rows, **changes):
        """What fetch_openml gives: numbers, and categories as places in a list."""
        table = [[field.strip() for field in row.split(",")] for row in rows]
        categories = {
            name: sorted({row[place] for row in table} - {"?"})
            for place, name in enumerate(adult.ATTRIBUTES)
            if name in adult.CATEGORIES
        }
        values = [
            [
                np.nan
                if field == "?"
                else categories[name].index(field)
                if name in categories
                else float(field)
                for name, field in zip(adult.ATTRIBUTES, row, strict=False)
            ]
            for row in table
        ]
        bunch = {
            "data": np.array(values),
            "target": np.array([row[-1] for row in table], dtype=object),
            "feature_names": list(adult.ATTRIBUTES),
            "categories": categories,
        }
        return lambda *_, **__: SimpleNamespace(**{**bunch, **changes})

    def test_openml_gives_the_same(self, tmp_path, monkeypatch):
        self.write(tmp_path / "adult", test_rows=ROWS[1:])
        monkeypatch.setattr("sklearn.datasets.fetch_openml", self.fetched([*ROWS[1:], *ROWS]))
        with pytest.raises(ValueError, match=r"must be 48842, but it is 5: .*data_dir\.$"):
            data.load("adult", source="openml")
        monkeypatch.setattr(adult, "TRAIN_SIZE", 3)
        monkeypatch.setattr(adult, "TEST_SIZE", 2)
        assert same(data.load("adult", source="openml"), data.load("adult", tmp_path))

    def test_openml_in_another_order_is_refused(self, monkeypatch):
        monkeypatch.setattr(adult, "TRAIN_SIZE", 3)
        monkeypatch.setattr(adult, "TEST_SIZE", 2)
        monkeypatch.setattr("sklearn.datasets.fetch_openml", self.fetched([*ROWS, *ROWS[1:]]))
        with pytest.raises(ValueError, match=r"fnlwgt of row 2 .* must be 77516, but"):
            data.load("adult", source="openml")
        renamed = self.fetched([*ROWS[1:], *ROWS], feature_names=["income"])
        monkeypatch.setattr("sklearn.datasets.fetch_openml", renamed)
        with pytest.raises(ValueError, match="attributes of adult on OpenML must be"):
            data.load("adult", source="openml")


@pytest.mark.parametrize("name", ["mnist", "adult"])
@pytest.mark.parametrize("error", [URLError("no route"), ValueError("unknown"), TimeoutError()])
def test_openml_out_of_reach(name, error, monkeypatch):
    def fetch(*_, **__):
        raise error

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(ValueError, match=r"^openml.org must be .*DPRIME_DATA or data_dir\.$") as e:
        data.load(name, source="openml")
    assert ADDRESSES[name] in str(e.value)


def binary_rows(count, features, classes):
    rng = np.random.default_rng(3)
    records = rng.integers(0, 2, (count, features), dtype=np.uint8)
    return records, rng.integers(1, classes + 1, count, dtype=np.uint8)


def write_location(path, **changes):
    records, labels = binary_rows(60, 446, 30)
    arrays = {"X_packed": np.packbits(records, axis=1), "n_features": np.array(446), "y": labels}
    arrays.update(changes)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    return records, labels


def sorted_rows(records, labels):
    """Records with their labels in an order that does not depend on the split."""
    rows = np.column_stack([np.asarray(labels, np.int64), np.asarray(records, np.int64)])
    return rows[np.lexsort(rows.T)]


def whole(parts):
    return sorted_rows(
        np.concatenate([parts.train.records, parts.test.records]),
        np.concatenate([parts.train.labels, parts.test.labels]),
    )


class TestLocation30:
    def test_what_is_read(self, tmp_path):
        records, labels = write_location(tmp_path / "location30" / "location30.npz")
        parts = data.load("location30", tmp_path)
        assert (len(parts.train), len(parts.test)) == (48, 12)
        assert (parts.train.kind, parts.train.classes) == ("binary", 30)
        assert np.array_equal(whole(parts), sorted_rows(records, labels.astype(int) - 1))

    def test_the_published_file(self, tmp_path):
        records, labels = binary_rows(60, 446, 30)
        lines = [f'"{y}",' + ",".join(map(str, x)) for x, y in zip(records, labels, strict=True)]
        write(tmp_path / "location30" / "bangkok", "\n".join(lines).encode())
        parts = data.load("location30", tmp_path)
        assert np.array_equal(whole(parts), sorted_rows(records, labels.astype(int) - 1))

    @pytest.mark.parametrize(
        ("changes", "told"),
        [
            ({"y": None}, "npz file with X_packed, n_features, y"),
            ({"y": np.zeros(60, np.uint8)}, "label 0"),
            ({"y": np.ones(59, np.uint8)}, "number of labels"),
            ({"y": np.ones(60)}, "the labels"),
            ({"n_features": np.array(448)}, "number of features"),
            ({"X_packed": np.zeros((60, 57), np.uint8)}, "bytes of a record"),
            ({"X_packed": np.zeros((60, 56))}, "type of X_packed"),
        ],
    )
    def test_broken_files(self, tmp_path, changes, told):
        write_location(tmp_path / "location30.npz", **changes)
        refused("location30", tmp_path, told, "location30.npz")

    @pytest.mark.parametrize("keep", [0, 3, 300, -30])
    def test_a_cut_off_file(self, tmp_path, keep):
        path = tmp_path / "location30.npz"
        write_location(path)
        path.write_bytes(path.read_bytes()[:keep])
        refused("location30", tmp_path, "npz file", "location30.npz")


class TestPurchase100:
    def lines(self, count=30):
        records, labels = binary_rows(count, 600, 100)
        labels[:3] = 1, 20, 100  # labels of every length
        lines = [f"{y}," + ",".join(map(str, x)) for x, y in zip(records, labels, strict=True)]
        return lines, sorted_rows(records, labels.astype(int) - 1)

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    @pytest.mark.parametrize("packed", [False, True])
    def test_what_is_read(self, tmp_path, end, packed, monkeypatch):
        monkeypatch.setattr("dprime.data.binary_csv.ROWS_AT_ONCE", 7)
        lines, rows = self.lines()
        path = tmp_path / "purchase100" / ("dataset_purchase.gz" if packed else "dataset_purchase")
        write(path, (end.join(lines) + end).encode(), packed)
        parts = data.load("purchase100", tmp_path)
        assert (len(parts.train), len(parts.test)) == (24, 6)
        assert (parts.train.kind, parts.train.classes) == ("binary", 100)
        assert np.array_equal(whole(parts), rows)

    def test_like_a_csv_reader(self, tmp_path):
        lines, rows = self.lines()
        write(tmp_path / "dataset_purchase", "\n".join(lines).encode())
        table = np.loadtxt(tmp_path / "dataset_purchase", delimiter=",", dtype=np.int64)
        assert np.array_equal(sorted_rows(table[:, 1:], table[:, 0] - 1), rows)
        assert np.array_equal(whole(data.load("purchase100", tmp_path)), rows)

    @pytest.mark.parametrize(
        "break_line",
        [
            lambda line: line[:-1],
            lambda line: line[:-2],
            lambda line: line + ",1",
            lambda line: line[:-1] + "2",
            lambda line: line.replace(",", ";"),
            lambda line: "x" + line,
            lambda line: "1" * 30 + line,
            lambda _: "",
        ],
    )
    def test_broken_lines(self, tmp_path, break_line):
        lines, _ = self.lines()
        lines[10] = break_line(lines[10])
        write(tmp_path / "dataset_purchase", "\n".join(lines).encode())
        refused("purchase100", tmp_path, "line 11 of", "dataset_purchase", "600 features")

    def test_other_broken_files(self, tmp_path):
        lines, _ = self.lines()
        for label in ("0", "101"):
            broken = [*lines, f"{label},{lines[0].partition(',')[2]}"]
            write(tmp_path / "dataset_purchase", "\n".join(broken).encode())
            refused("purchase100", tmp_path, "label 30", "between 1 and 100", label)
        write(tmp_path / "dataset_purchase", b"")
        refused("purchase100", tmp_path, "line 1 of")


class TestCifar10:
    def arrays(self):
        images = np.random.default_rng(4).integers(0, 256, (9, 32, 32, 3), dtype=np.uint8)
        return {
            "x_train": images[:6],
            "y_train": np.arange(6, dtype=np.uint8),
            "x_test": images[6:],
            "y_test": np.array([[7], [8], [9]]),  # Keras' own shape
        }

    def test_what_is_read(self, tmp_path):
        arrays = self.arrays()
        np.savez(tmp_path / "cifar10_subset.npz", **arrays)
        parts = data.load("cifar10", tmp_path)
        assert parts.train.records.shape == (6, 3, 32, 32)
        assert parts.train.records.flags.c_contiguous
        assert np.allclose(parts.train.records[2, 1, 30, 4] * 255, arrays["x_train"][2, 30, 4, 1])
        assert parts.train.labels.tolist() == list(range(6))
        assert parts.test.labels.tolist() == [7, 8, 9]
        assert (parts.test.kind, parts.test.classes) == ("image", 10)

    def test_the_published_batches(self, tmp_path):
        arrays = self.arrays()
        np.savez(tmp_path / "cifar10_subset.npz", **arrays)
        expected = data.load("cifar10", tmp_path)
        folder = tmp_path / "other" / "cifar10" / "cifar-10-batches-bin"
        rows = np.concatenate([arrays["x_train"], arrays["x_test"]])
        channels_first = rows.transpose(0, 3, 1, 2).reshape(9, -1)
        labels = [*range(6), 7, 8, 9]
        packed = [bytes([y]) + x.tobytes() for x, y in zip(channels_first, labels, strict=True)]
        for number in range(1, 5):
            write(folder / f"data_batch_{number}.bin", packed[number - 1])
        write(folder / "data_batch_5.bin", packed[4] + packed[5])
        write(folder / "test_batch.bin", b"".join(packed[6:]))
        assert same(data.load("cifar10", tmp_path / "other"), expected)
        write(folder / "data_batch_5.bin", packed[4][:-1])
        refused("cifar10", tmp_path / "other", "bytes left", "data_batch_5.bin")
        (folder / "data_batch_3.bin").unlink()
        refused("cifar10", tmp_path / "other", "data_batch_3.bin", error=FileNotFoundError)

    @pytest.mark.parametrize(
        ("changes", "told"),
        [
            ({"x_train": np.zeros((6, 3, 32, 32), np.uint8)}, "shape of an image"),
            ({"x_train": np.zeros((6, 32, 32, 3))}, "type of the images"),
            ({"y_train": np.arange(5)}, "number of labels"),
            ({"y_test": np.array([0, 1, 10])}, "label 2"),
        ],
    )
    def test_broken_files(self, tmp_path, changes, told):
        np.savez(tmp_path / "cifar10_subset.npz", **{**self.arrays(), **changes})
        refused("cifar10", tmp_path, told, "cifar10_subset.npz")

    def test_no_archive(self, tmp_path):
        write(tmp_path / "cifar10_subset.npz", b"nothing")
        refused("cifar10", tmp_path, "npz file with x_train, y_train, x_test, y_test")


@pytest.fixture(scope="module")
def baskets():
    """3,000 baskets of items 0 to 699; item i is bought the more often the smaller i is."""
    rng = np.random.default_rng(3)
    chances = np.linspace(0.05, 0.004, 700)
    return [np.flatnonzero(rng.random(700) < chances).tolist() for _ in range(3000)]


@pytest.fixture(scope="module")
def retail_folder(baskets, tmp_path_factory):
    folder = tmp_path_factory.mktemp("retail")
    rare = [[699], [698, 698, 698], []]  # dropped, or counted once
    lines = [" ".join(map(str, basket)) + " " for basket in [*baskets, *rare]]
    write(folder / "retail" / "retail.dat.gz", "\n".join(lines).encode(), packed=True)
    return folder


class TestRetail100:
    def test_features(self, baskets, retail_folder):
        """Against a slow copy of the definition."""
        made = retail100.load(retail_folder)
        sets = [set(basket) for basket in [*baskets, [699], [698], []]]
        counts = {item: sum(item in basket for basket in sets) for item in range(700)}
        top = sorted(counts, key=lambda item: (-counts[item], item))[:600]
        expected = [[float(item in basket) for item in top] for basket in sets]
        expected = [row for row in expected if any(row)]
        assert np.array_equal(made.records, expected)
        assert made.columns == tuple(f"item {item}" for item in top)
        assert (made.kind, made.classes, made.name) == ("binary", 100, "retail100")

    def test_it_is_repeatable(self, retail_folder):
        one, other = data.load("retail100", retail_folder), data.load("retail100", retail_folder)
        assert same(one, other)
        assert len(np.unique(one.train.labels)) > 50

    @pytest.mark.parametrize(
        ("contents", "told"),
        [
            (b"1 2 3\n4 five\n", "each item"),
            (b"1 2 -3\n", "each item"),
            (b"1 99999999999999999999\n", "each item"),
            (b"1 2 3\n", "number of items"),
            (b"", "number of items"),
            (b"\xff\xfe", "plain text"),
        ],
    )
    def test_broken_files(self, tmp_path, contents, told):
        write(tmp_path / "retail.dat", contents)
        refused("retail100", tmp_path, told, "retail.dat")

    def test_without_scikit_learn(self, retail_folder, monkeypatch):
        monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
        with pytest.raises(ImportError, match=r"pip install '\.\[train\]'"):
            data.load("retail100", retail_folder)

    def test_it_says_what_it_is_not(self):
        assert "is not Purchase-100" in " ".join(retail100.load.__doc__.split())
        assert "is not Purchase-100" in " ".join(loaders.load.__doc__.split())
