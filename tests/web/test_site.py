"""The page as files: what is in them, and that codes round outward. The browser tests read them."""

import json
import re

import numpy as np
import pytest

from dprime import InputError
from dprime.cli.explore import explore
from dprime.web import site, tables
from dprime.web.site import book, page
from dprime.web.tables import KEPT, LEAST, NONE, PARTS, at_positions, coded

FEW = {
    "noise_multiplier": (0.7, 1.1), "sample_rate": (0.004,), "steps": (14_000,), "group_size": (1,),
}  # fmt: skip


def read(codes):
    """The numbers of codes, one by one and by the definition."""
    return np.array([
        0.0 if code == 0 else np.inf if code == NONE
        else (1 + ((int(code) - 1) % PARTS) / PARTS) * 2.0 ** ((int(code) - 1) // PARTS + LEAST)
        for code in codes
    ])  # fmt: skip


def test_codes_round_outward_and_by_little():
    rng = np.random.default_rng(1)
    exact = np.concatenate([2.0 ** rng.uniform(LEAST, 40, 5000), 2.0 ** np.arange(LEAST, 20)])
    up, down = read(coded(exact, up=True)), read(coded(exact, up=False))
    assert np.all((exact <= up) & (up <= exact * (1 + 1 / PARTS)))
    assert np.all((down <= exact) & (exact <= down * (1 + 1 / PARTS)))
    odd = np.array([0.0, 1e-300, np.inf, np.nan])
    assert read(coded(odd, up=True)).tolist() == [0.0, 2.0**LEAST, np.inf, np.inf]
    assert read(coded(odd[:2], up=False)).tolist() == [0.0, 0.0]


def test_every_file_of_the_page_is_there_with_relative_links():
    found = dict(page())
    index = found["index.html"].decode()
    named = re.findall(r'(?:src|href)="([^"#]+)"', index)
    assert {f"./{name}" for name in found if name.startswith("static/vega")} <= {*named}
    for link in named:
        assert link.startswith("./?") or link == "./" or link in {f"./{name}" for name in found}
    assert "static/tables.js" not in found
    imported = re.findall(r'from "\./([^"]+)"', b"".join(found.values()).decode(errors="ignore"))
    assert {f"static/{name}" for name in imported} <= {*found}
    assert "frame-ancestors" not in index
    assert "default-src 'none'" in index


def test_the_words_have_marks_where_numbers_belong():
    told = book(at_positions(KEPT))
    assert json.loads(json.dumps(told, allow_nan=False))
    marks = {
        name: {*re.findall(r"\{(\w+)", f"{chart['title']} {chart['text']} {chart['series']}")}
        for name, chart in told["charts"].items()
    }
    assert marks == {
        "trade-off": {"at", "most", "advantage"},
        "trade-off-log": {"at", "most"}, "trade-off-corner": {"at", "most"},
        "precision": {"at", "most", "epsilon", "delta"},
        "risk-noise-multiplier": {"noise_multiplier", "most", "adjacency"},
        "risk-sample-rate": {"sample_rate", "most", "adjacency"},
        "risk-steps": {"steps", "most", "adjacency"},
    }  # fmt: skip
    for words in told["words"]["replace"].values():
        assert {*re.findall(r"\{(\w+)", words["described"])} == {*FEW} - {"group_size"}


def test_a_folder_that_is_in_use_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(InputError) as refused:
        site.write(tmp_path, 1)
    assert refused.value.parameter == "static"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_command_says_where_the_page_is(tmp_path, monkeypatch, capsys):
    kept, place = tables.at_positions, tmp_path / "site"
    monkeypatch.setattr(tables, "at_positions", lambda _: kept({**KEPT, **FEW}))
    explore(static=str(place), workers="1", json=True)
    said = json.loads(capsys.readouterr().out)
    written = [path for path in place.rglob("*") if path.is_file()]
    assert said["folder"] == str(place)
    assert said["bytes"] == sum(path.stat().st_size for path in written)
    assert {path.name for path in place.glob("data/*")} == {
        "book.bin", "add-remove-1.bin", "replace-1.bin",
    }  # fmt: skip
