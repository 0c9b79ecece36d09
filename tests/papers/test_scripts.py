"""Every script runs, on random records."""

import json
from importlib import import_module

import pytest

from dprime.show.chart import Chart
from papers.page import PAPERS, described
from papers.paper import HERE
from papers.reproduce import Scale, title_of

SCRIPTS = [(paper.name, script) for paper in PAPERS for script in paper.scripts]


@pytest.mark.slow
@pytest.mark.parametrize(("paper", "script"), SCRIPTS, ids=["-".join(each) for each in SCRIPTS])
def test_it_runs(paper, script, monkeypatch):
    monkeypatch.delenv("DPRIME_DATA", raising=False)
    module = import_module(f"papers.{paper}.{script}")
    found = module.measure(Scale("smoke"))
    assert found.claims or found.figures
    named = [claim.what for claim in found.claims]
    assert len(named) == len(set(named))
    json.dumps([claim.as_json() for claim in found.claims], allow_nan=False)
    json.dumps(dict(found.settings) | dict(found.numbers), allow_nan=False)
    figures = found.figure or {}
    for figure in [figures] if isinstance(figures, Chart) else figures.values():
        assert figure.spec()["title"]


@pytest.mark.parametrize(("paper", "script"), SCRIPTS, ids=["-".join(each) for each in SCRIPTS])
def test_it_describes_itself(paper, script):
    module = import_module(f"papers.{paper}.{script}")
    assert 10 < len(title_of(module.__doc__)) < 100
    assert len(described(HERE / paper / f"{script}.py")) > 40
