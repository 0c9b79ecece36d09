"""A run of four blocks."""

import pytest

from blocks import CONFIG
from dprime.runs.run import Run


@pytest.fixture
def path(tmp_path):
    return tmp_path / "first.run"


@pytest.fixture
def run(path):
    with Run.create(path, "audit", CONFIG, blocks=4) as made:
        yield made
