"""The notebooks run from top to bottom, show every result, and keep no output."""

import ast
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples").glob("*.ipynb"))


def cells_of(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def shown(result):
    """What a notebook displays of the last expression in a cell."""
    if hasattr(result, "_repr_mimebundle_"):
        return result._repr_mimebundle_()["image/svg+xml"]
    return getattr(result, "_repr_html_", result.__str__)()


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    names, displayed = {"__name__": path.stem}, []
    for cell in cells_of(path):
        if cell["cell_type"] != "code":
            continue
        *body, last = ast.parse("".join(cell["source"])).body
        ends = [] if isinstance(last, ast.Expr) else [last]
        exec(compile(ast.Module([*body, *ends], []), path.name, "exec"), names)
        if not ends:
            result = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
            displayed += [] if result is None else [shown(result)]
    assert len(displayed) >= 3
    assert any("<svg" in each for each in displayed)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_is_kept(path):
    cells = [cell for cell in cells_of(path) if cell["cell_type"] == "code"]
    assert cells
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
