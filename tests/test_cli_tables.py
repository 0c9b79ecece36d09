"""Tables of the command line, on terminals of every width."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from dprime.cli.tables import plain_table
from specimens.make import copy_of

INTERVAL = "0.634 (0.000 to 1.000)"
ROWS = [
    ("malicious-dataset-digits-20261119-201243.run", "20/20", INTERVAL, "complete"),
    ("a.run", "1,000,000/2,000,000", "0.5000 ± 0.0003", "failed"),
]


@pytest.mark.parametrize("width", [24, 40, 60, 64, 72, 80, 120])
def test_no_width_cuts_a_number(width):
    table = plain_table("Runs", "Run", "Blocks", "AUC", "State")
    table.caption = "Means over the targets."
    for name, *cells in ROWS:
        table.add_row(Text(name), *cells)
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    out = console.file.getvalue()
    assert max(map(len, out.splitlines())) <= width
    found = out.replace("│", " ").split()
    for _, *cells in ROWS:
        assert {word for cell in cells for word in cell.split()} <= {*found}
    assert {"Runs", "Means", "Blocks", "AUC"} <= {word.strip(":┃") for word in found}


@pytest.mark.parametrize("width", [40, 80])
def test_runs_have_whole_numbers_and_times_with_a_zone(call, tmp_path, monkeypatch, width):
    (tmp_path / "runs").mkdir()
    copy_of("finished", tmp_path / "runs")
    monkeypatch.setenv("COLUMNS", str(width))
    found = call("runs").words.split()
    assert {"1/1", "200", "complete", "UTC"} <= {*found}
