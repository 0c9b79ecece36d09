"""Scripts and notebooks as text."""

import json

import pytest

from check.parts import LOOP, PRIVATE, START
from dprime.check import check

CODE = {"cell_type": "code"}
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": "# A training\nmake_private is below"},
        {**CODE, "source": ["%pip install opacus\n", "!ls\n", "from opacus import PrivacyEngine"]},
        {**CODE, "source": "%%bash\nfor x in *; do echo $x; done"},
        {
            **CODE,
            "source": "engine = PrivacyEngine(secure_mode=True)\n"
            "m, o, d = engine.make_private(module=m, optimizer=o, data_loader=d,\n"
            "    noise_multiplier=0, max_grad_norm=1.0)",
        },
    ]
}


def test_a_notebook_is_read_cell_by_cell(tmp_path):
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps(NOTEBOOK))
    report = check(path)
    (finding,) = report.findings
    assert (report.kind, finding.code, finding.place) == ("notebook", "DP408", "cell 4, line 2")


@pytest.mark.parametrize("text", ["{}", "[1]", '{"cells": [{}]}', "not json"])
def test_a_notebook_without_cells_is_refused(tmp_path, text):
    path = tmp_path / "train.ipynb"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"train.ipynb must be a notebook with cells"):
        check(path)


def test_a_syntax_error_is_named_with_its_line(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("x = 1\ny = (\n")
    with pytest.raises(ValueError, match=r"must be a Python script that can be read.*line 2"):
        check(path)
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps({"cells": [{**CODE, "source": "x = 1"}, {**CODE, "source": "y ="}]}))
    with pytest.raises(ValueError, match=r"cell 2, line 1"):
        check(path)


def test_lines_inside_sentences_of_a_notebook_are_counted_by_cell(tmp_path):
    cells = [START, PRIVATE.replace("loader = engine", "other = engine"), LOOP]
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps({"cells": [{**CODE, "source": each} for each in cells]}))
    (finding,) = check(path).findings
    assert finding.place == "cell 3, line 3"
    assert "(cell 3, line 7) runs over" in finding.sentence
    cells = [START, PRIVATE + "optimizer.expected_batch_size = 1", LOOP]
    path.write_text(json.dumps({"cells": [{**CODE, "source": each} for each in cells]}))
    assert "(cell 2, line 5 sets expected_batch_size)" in check(path).unclear[0]
