"""The commands that are listed are those that are called, and the light ones start light."""

import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command

from dprime.cli import app
from dprime.cli.commands import COMMANDS, imported

SCRIPTS = Path(__file__).parent / "check" / "scripts"
BAD = str(SCRIPTS / "bad" / "dp001_plain.py")
GOOD = str(SCRIPTS / "good" / "gan.py")

HEAVY = ("numpy", "scipy", "torch")

CALL = f"""
import sys
from dprime.cli import main
try:
    main()
finally:
    print(*(name for name in {HEAVY} if name in sys.modules), sep=",", file=sys.stderr)
"""


def loaded_by(*words):
    """Which heavy libraries a call loads in a fresh interpreter; (exit code, output, names)."""
    done = subprocess.run(
        [sys.executable, "-c", CALL, *words], capture_output=True, text=True, check=False
    )
    *errors, names = done.stderr.splitlines()
    assert not errors
    return done.returncode, done.stdout, {name for name in names.split(",") if name}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_and_the_command_say_the_same(name):
    module, sentence = COMMANDS[name]
    function = getattr(import_module(f"dprime.cli.{module}"), name)
    assert inspect.getdoc(function) == sentence
    command, line = imported(name), get_command(app).commands[name]
    assert (command.name, command.help) == (line.name, line.help) == (name, sentence)
    assert [*inspect.signature(function).parameters] == [each.name for each in command.params]


def test_only_what_is_in_the_table_is_listed():
    assert [*get_command(app).commands] == [*COMMANDS]


@pytest.mark.parametrize(
    ("words", "code", "start"),
    [
        (["--version"], 0, "dprime "),
        (["--help"], 0, "Usage: "),
        (["check", "--help"], 0, "Usage: "),
        (["check", BAD], 1, "DP001 warning line 1"),
        (["check", BAD, "--json"], 1, '"failed": true'),
    ],
    ids=lambda value: " ".join(Path(word).name for word in value) if type(value) is list else None,
)
def test_what_computes_nothing_loads_nothing_heavy(words, code, start):
    ended, out, heavy = loaded_by(*words)
    assert ended == code
    assert start in out
    assert heavy == set()


def test_a_list_of_runs_needs_no_scipy(tmp_path):
    ended, out, heavy = loaded_by("runs", str(tmp_path))
    assert ended == 0
    assert out
    assert "scipy" not in heavy


def test_a_check_loads_scipy_for_a_certified_number_only(tmp_path):
    ended, out, heavy = loaded_by("check", GOOD)
    assert ended == 0
    assert "no proof of privacy" in " ".join(out.split())
    assert heavy == set()
    path = tmp_path / "run.json"
    path.write_text('{"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 100}')
    ended, out, heavy = loaded_by("check", str(path))
    assert ended == 0
    assert "Certified for the run" in out
    assert {"numpy", "scipy"} <= heavy
