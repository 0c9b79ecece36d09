"""The scripts in examples/, as users run them; each ends with what must hold."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SAYS = {
    "audit_training.py": "the claim is refuted",
    "choose_noise.py": "ε = 2 at δ = 1e-5",
    "monitor_opacus.py": "Stopped after epoch 3",
}


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs_and_says_what_it_found(path, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", path], cwd=tmp_path, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert SAYS[path.name] in done.stdout
    assert not [*tmp_path.iterdir()]
