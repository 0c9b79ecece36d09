"""Scripts that are checked, and never run."""

import pytest

from dprime.check import check

collect_ignore_glob = ["scripts/*"]


@pytest.fixture
def examine(tmp_path):
    """Check the text of a script."""

    def run(text, **options):
        path = tmp_path / "train.py"
        path.write_text(text)
        return check(path, **options)

    return run
