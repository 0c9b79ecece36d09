"""Files of every kind, and those that are refused."""

import pytest

from dprime.check import check


def test_every_bad_file_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "empty.py").write_text(" \n")
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)))
    (tmp_path / "null.py").write_bytes(b"x = 1\0")
    (tmp_path / "half.json").write_text('{"steps": ')
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "list.txt").write_text("1\n")
    (tmp_path / "words.txt").write_text("import nothing from here\n")
    (tmp_path / "strange.py").write_text("# -*- coding: nothing -*-\n")
    (tmp_path / "zip.pt").write_bytes(b"PK\x03\x04 and nothing more")
    wanted = {
        "empty.py": "must be a file with something in it, but it is empty",
        "noise.bin": "must be a text, but it is a binary file of another kind",
        "null.py": "must be a text, but it is a binary file",
        "half.json": "must be JSON that can be read, but it is not (Expecting value",
        "list.json": "must be a JSON object that describes a run",
        "list.txt": "must be a script, but it is a text of another kind",
        "words.txt": "must be a script, but it is a text of another kind",
        "strange.py": "must be a text",
        "zip.pt": "must be a checkpoint of plain values and tensors",
        "missing.py": "must be a file, but it is missing",
        ".": "must be a file, but it is a folder",
    }
    for name, words in wanted.items():
        with pytest.raises(ValueError, match="must be") as refused:
            check(tmp_path / name)
        assert words in str(refused.value)
        assert str(refused.value).count("\n") == 0


def test_the_coding_line_is_kept_to(tmp_path):
    path = tmp_path / "train.py"
    path.write_bytes("# -*- coding: latin-1 -*-\n# café\nimport torch\n".encode("latin-1"))
    assert [finding.code for finding in check(path).findings] == ["DP001"]


def test_a_script_may_have_another_ending(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("import torch\n")
    assert [finding.code for finding in check(path).findings] == ["DP001"]


@pytest.mark.parametrize("options", [{"records": 0}, {"delta": 0}, {"delta": 1}, {"records": 1.5}])
def test_options_are_checked(tmp_path, options):
    path = tmp_path / "train.py"
    path.write_text("x = 1")
    with pytest.raises(ValueError, match="must be"):
        check(path, **options)
