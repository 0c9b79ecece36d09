"""Small trainings run side by side in tests, as large ones do in use."""

import pytest


@pytest.fixture(autouse=True)
def several_workers(request, monkeypatch):
    if not request.module.__name__.endswith("test_slices"):
        monkeypatch.setattr("dprime.train.slices.WORTH_A_WORKER", 1)
