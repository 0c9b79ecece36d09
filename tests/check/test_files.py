"""Files of every kind, notebooks, and files that are refused."""

import json
import os
import tracemalloc

import pytest

from check.usual import LOOP, PRIVATE, SCRIPTS, START
from dprime.check import check
from told import refuses

LONG = json.dumps({"cells": [{"cell_type": "code", "source": "x = 1\n" * 200_000}]}).encode()

REFUSED = {
    "empty.py": (b" \n", "must be a file with something in it, but it is empty"),
    "noise.bin": (bytes(range(256)), "must be a text, but it is a binary file of another kind"),
    "null.py": (b"x = 1\0", "must be a text, but it is a binary file"),
    "half.json": (b'{"steps": ', "must be JSON that can be read, but it is not (Expecting value"),
    "list.json": (b"[1, 2]", "must be a JSON object that describes a run"),
    "list.txt": (b"1\n", "must be a script, but it is a text of another kind"),
    "words.txt": (b"import nothing from here\n", "must be a script, but it is a text of another"),
    "strange.py": (b"# -*- coding: nothing -*-\n", "must be a text"),
    "half.py": (b"x = 1\ny = (\n", "must be a Python script that can be read, but it is not ("),
    "zip.pt": (b"PK\x03\x04 and nothing more", "must be a checkpoint of plain values and tensors"),
    "list.ipynb": (b"[1]", "must be a notebook with cells"),
    "cell.ipynb": (b'{"cells": [{}]}', "must be a notebook with cells"),
    "words.ipynb": (b"not json", "must be a notebook with cells"),
    "long.py": (b"x = 1\n" * 200_000, "must be a file of at most 1,000,000 bytes"),
    "long.ipynb": (LONG, "code in"),
    "deep.py": (b"(" * 100_000 + b")" * 100_000, "must be a Python script that can be read"),
    "deep.json": (b"[" * 100_000, "must be JSON that can be read"),
    "deep.ipynb": (b'{"cells": ' * 100_000, "must be a notebook with cells"),
    "missing.py": (None, "must be a file, but it is missing"),
    ".": (None, "must be a file, but it is a folder"),
    **{
        f"pipe.{ending}": (os.mkfifo, "must be a file, but it is a device or a pipe")
        for ending in ("py", "json", "ipynb", "pt")
        if hasattr(os, "mkfifo")
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path, name):
    content, words = REFUSED[name]
    if callable(content):
        content(tmp_path / name)
    elif content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match="must be") as refused:
        check(tmp_path / name)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


HOSTILE = {
    "list": "x = [0] * 10**12\ny = 'a' * 10**12\nz = (1,) * 10**11",
    "power": "x = 9 ** 9 ** 9 ** 9",
    "shift": "x = 1 << 10**11",
    "doubling": "x = [0, 1]\n" + "x = x + x\n" * 60 + "x = [x] * 10**9",
    "range": "for i in range(10**12):\n    x = i\n",
    "format": "x = f'{1:>{10**11}}'\ny = '%1000000000000d' % 1",
    "long name": f"from {'x' * 300} import a\na()\nx = a",
    **{each: f"for i in range({each}):\n    x = i\n" for each in ("1e999", "10**30", "1, 9, 0")},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_script_would_compute_is_not_computed(examine, name):
    tracemalloc.start()
    try:
        text = f"import torch\n{HOSTILE[name]}\nloader = torch.utils.data.DataLoader(x)\n"
        assert examine(text).kind == "script"
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["train.py", "train.txt"])
def test_a_script_may_have_another_ending_and_coding(tmp_path, name):
    path = tmp_path / name
    path.write_bytes("# -*- coding: latin-1 -*-\n# café\nimport torch\n".encode("latin-1"))
    assert [finding.code for finding in check(path).findings] == ["DP001"]


def asked(**options):
    return lambda: check(SCRIPTS / "bad" / "dp001_plain.py", **options)


test_options_are_checked = refuses(
    {
        "dataset_size be at least 1": asked(dataset_size=0),
        "dataset_size be a whole number": asked(dataset_size=1.5),
        "delta be strictly between": asked(delta=1),
    }
)


@pytest.fixture
def notebook(tmp_path):
    """Check a notebook with these cells of code."""

    def run(*cells):
        path = tmp_path / "train.ipynb"
        listed = [{"cell_type": "code", "source": [f"{each}\n"]} for each in cells]
        path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "#"}, *listed]}))
        return check(path)

    return run


def test_a_notebook_is_read_cell_by_cell(notebook):
    magic = "%pip install opacus\n!ls\nfiles = !ls\nhelp?\nif files:\n    %matplotlib inline"
    report = notebook(
        magic, "%%bash\nfor x in *; do echo $x; done", "%%time\n" + START,
        PRIVATE.replace("loader = engine", "other = engine"), "y = (", LOOP,
    )  # fmt: skip
    (finding,) = report.findings
    assert (report.kind, finding.code, finding.place) == ("notebook", "DP102", "cell 7, line 3")
    assert "(cell 7, line 7) runs over" in finding.sentence
    assert report.unresolved == ("Cell 6 is no Python and was left out.",)
    with pytest.raises(ValueError, match="a notebook with Python in its cells"):
        notebook("y = (", "1 +")


@pytest.mark.parametrize(("comment", "codes"), [("", ["DP408"]), ("  # dprime: ignore", [])])
def test_a_mistake_in_another_file_is_named_with_the_file(tmp_path, examine, comment, codes):
    (tmp_path / "parts").mkdir()
    text = f"def private(model, optimizer, loader, engine):{PRIVATE}    return model\n"
    other = text.replace("\nmodel", "\n    model").replace("=1.1", "=0")
    (tmp_path / "parts" / "made.py").write_text(other.replace("=1.0\n", f"=1.0{comment}\n"))
    call = "private(model, optimizer, loader, engine)"
    found = examine(f"from parts.made import private\n{START}{call}").findings
    assert [finding.code for finding in found] == codes
    assert {(each.line, each.place) for each in found} <= {(None, "made.py, line 2")}
