"""The command line as a whole: its commands, streams, what it loads and what it prints."""

import inspect
import math
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.main import get_command

import dprime
from commands import refused
from dprime import cli
from dprime.attack import ADVERSARIES
from dprime.cli import app
from dprime.cli.commands import COMMANDS, imported
from dprime.runs.run import Run
from dprime.text import round_up

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "tests" / "check" / "scripts"
RISK = "risk --noise-multiplier 1.1 --sample-rate 0.00427 --steps 14062"

# The commands ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_and_the_command_say_the_same(name):
    entry = COMMANDS[name]
    function = getattr(import_module(f"dprime.cli.{entry.module}"), name)
    assert inspect.getdoc(function) == entry.help
    assert [*get_command(app).commands] == [*COMMANDS]
    command, line = imported(name), get_command(app).commands[name]
    assert (command.name, command.help) == (line.name, line.help) == (name, entry.help)
    assert (ROOT / "docs" / entry.page).exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_help_text_can_be_typed(call, name):
    first, second, *_ = COMMANDS[name].examples
    out = call(name, "--help").words
    for example in (first, second):
        assert f"dprime {name} {example}".strip() in out
        words = shlex.split(example.removeprefix("| less"))
        imported(name).make_context(name, words)  # refuses what is no option


def test_a_help_text_names_types_as_people_write_them(call):
    assert "Usage: dprime report [OPTIONS] RUN [OTHER]... " in call("report --help").words
    assert "--steps WHOLE NUMBER" in call("risk --help").words
    for words in ("report", "audit", "risk", ""):
        out = call(words, "--help").out
        assert not re.search("<|[Pp]ath>|list\\[|bool", out)
        assert re.search(r"--help +Show", out)


COMPLETED = {
    "dprime ris": ["risk"],
    "dprime audit --trials 3 --max": ["--max-records"],
    "dprime choose --sampling ": ["poisson", "fixed-size", "shuffle"],
}


def test_the_shell_completes_commands_options_and_choices(call, monkeypatch):
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    assert "complete_bash" in call("--show-completion").out
    monkeypatch.setenv("_DPRIME_COMPLETE", "complete_bash")
    for line, found in COMPLETED.items():
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        assert call("").out.split() == found


BAD = str(SCRIPTS / "bad" / "dp001_plain.py")
CALL = """
import sys
from dprime.cli import main
try:
    main()
finally:
    print(*({"numpy", "scipy", "torch"} & {*sys.modules}), file=sys.stderr)
"""


def fresh(*words):
    """Exit code, output, and the heavy libraries that were loaded, of a fresh interpreter."""
    run = [sys.executable, "-c", CALL, *words]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    (names,) = done.stderr.splitlines()
    return done.returncode, done.stdout, {*names.split()}


def test_ctrl_c_while_it_loads_leaves_no_traceback():
    stopping = (
        "import signal, sys, runpy\n"
        "class Stop:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Stop())\n"
        "runpy.run_module('dprime', run_name='__main__')\n"
    )
    run = [sys.executable, "-c", stopping]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


CALLED = [sys.executable, "-m", "dprime", *RISK.split()]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_that_lacks_characters(encoding):
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    for words in (CALLED, [*CALLED, "--help"]):
        done = subprocess.run(words, capture_output=True, env=env, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        assert "Membership advantage" in done.stdout.decode(encoding) or "--help" in words


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    ("typed", "code", "out", "err"),
    [
        ("--help >/dev/full", 2, False, f"Error: {cli.FULL}\n"),
        ("risk --epsilon 3 >/dev/full", 2, False, f"Error: {cli.FULL}\n"),
        ("report --help >&-", 0, False, ""),
        ("audit --unknown 2>&-", 2, False, ""),
        ("runs . 2>/dev/full", 0, True, ""),
        ("--help >/dev/full 2>/dev/full", 2, False, ""),
        ("--unknown 2>/dev/full", 2, False, ""),
        ("--help <&- 2>&-", 0, True, ""),
        ("--help <&- >&- 2>&-", 0, False, ""),
    ],
)
def test_streams_of_a_shell_that_are_closed_or_full(typed, code, out, err):
    line = f"{shlex.quote(sys.executable)} -m dprime {typed}"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, bool(done.stdout), done.stderr) == (code, out, err)


def test_too_little_memory_ends_in_a_sentence(call, monkeypatch):
    def fails(words):
        raise errors[-1]

    monkeypatch.setattr("dprime.cli.risks.risk_request", fails)
    errors = [
        MemoryError(),
        ImportError("lib.so: failed to map segment from shared object"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        OSError(12, "Cannot allocate memory"),
    ]
    while errors:
        refused(call(RISK), cli.NO_MEMORY)
        errors.pop()
    errors = [ImportError("no lib.so")]
    with pytest.raises(ImportError, match=r"no lib\.so"):
        call(RISK)


@pytest.mark.parametrize(
    ("words", "code", "start"),
    [
        (["--version"], 0, f"dprime {dprime.__version__}\n"),
        (["--help"], 0, "Usage: "),
        (["check", "--help"], 0, "Usage: "),
        (["check", BAD], 1, "DP001 warning line 1"),
        (["check", BAD, "--json"], 1, '"failed": true'),
        (["check", str(SCRIPTS / "good" / "gan.py")], 0, "None of the "),
    ],
    ids=lambda value: " ".join(Path(word).name for word in value) if type(value) is list else None,
)
def test_what_computes_nothing_loads_nothing_heavy(words, code, start):
    ended, out, heavy = fresh(*words)
    assert (ended, heavy) == (code, set())
    assert start in out


def test_what_is_light_loads_as_little_as_it_needs(tmp_path):
    ended, out, heavy = fresh("runs", str(tmp_path))
    assert (ended, bool(out), "scipy" in heavy) == (0, True, False)
    (tmp_path / "run.json").write_text('{"noise_multiplier": 1, "sample_rate": 0.01, "steps": 100}')
    ended, out, heavy = fresh("check", str(tmp_path / "run.json"))
    assert ended == 0
    assert "Certified for the run" in out
    assert {"numpy", "scipy"} <= heavy


AT_FIRST = """
import os, sys
from dprime.cli import main

class First:
    def write(self, words):
        heavy = {"torch", "opacus", "sklearn", "jinja2", "vl_convert", "fastapi"} & {*sys.modules}
        sys.stdout.write(f"{words}{[*heavy]}")
        sys.stdout.flush()
        os._exit(0)

sys.stderr = First()
main()
"""
BEGINNINGS = {
    "audit --epsilon 4 --max-records 8": "Starting malicious-dataset on digits …",
    "audit two.toml": "Starting one …",
    "infer --epsilon 3": "Starting membership inference on digits …",
    "frontier --precision 0.7": "Starting a frontier on digits …",
    "frontier --precision 0.7 --plan-only": "Planning for digits …",
    "resume a.run": "a.run: 0 of 1 blocks are done, going on …",
    "resume done.run": "done.run: 1 of 1 blocks are done, nothing is left to play …",
    "report a.run": "Drawing the report of a.run …",
    "risk training.pt": "Reading training.pt …",
    "check training.pt": "Reading training.pt …",
    "explore": "Starting the explorer …",
}


@pytest.mark.parametrize("line", BEGINNINGS)
def test_a_command_says_what_it_begins_before_it_loads_much(tmp_path, line):
    """A mistake in the settings is seen before that, so that nobody waits for it."""
    for name in ("a.run", "done.run"):
        with Run.create(tmp_path / name, "audit", {"seed": 1}, 1, {"device": "cpu"}) as run:
            if name == "done.run":
                run.finish(0, {"score": np.zeros(2)}, seconds=1.0)
    (tmp_path / "two.toml").write_text("[[audits]]\nname = 'one'\nclaim.epsilon = 4.0\n")
    torch.save({}, tmp_path / "training.pt")
    words = [sys.executable, "-c", AT_FIRST, *shlex.split(line)]
    said = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path).stdout
    assert said == f"{BEGINNINGS[line]}\n[]"


# What is shown -----------------------------------------------------------------------------------

AUDIT = "audit --max-records 8 --steps 2 --seed 1 --trials 12"
DI = f"{AUDIT} --epsilon 4 --adversary di"
BELIEFS = f"{DI} --belief-level 0.8 --belief-prior 0.4"
OF_AGE = (
    f"{AUDIT} --adversary attribute --data diabetes --noise-multiplier 2 --columns age "
    "--values 0.2,0.8 --record 3"
)
SHOWN = {
    RISK: (
        "DP-SGD, noise 1.1, rate 0.00427, 14,062 steps, poisson sampling; with or without one",
        "Membership advantage", "In plain words", "an attacker finds at most", "≥ 0.77",
    ),
    f"{AUDIT} --epsilon 4": (
        "malicious-dataset: 8 copies of one record", "Reached, at least", "Allowed, at most",
        "(decides)", "Membership advantage", "inconclusive, because the trials are too few.",
        "12 + 12 trials", "Kept in runs/malicious-dataset-digits-",
    ),
    BELIEFS: (
        "Differential identifiability",
        "Trainings with the record whose belief exceeds 0.8, from 0.4",
    ),
    OF_AGE: (
        "attribute: age of record 3: 0.2 or 0.8", "Advantage between the two values",
        "no test of membership. What it reaches is compared with the claim of one record",
    ),
    "audit --help": (f"{', '.join([*ADVERSARIES][:-1])} or {[*ADVERSARIES][-1]} [malic",),
    "frontier --precision 0.6 --pool-size 200 --batch-size 20 --epochs 1 "
    "--sampling-probabilities 0.2,0.59 --plan-only": (
        "Precision at most 0.6, for attackers with a TPR of 0.01 or more", "Noise by theorem",
    ),
    "infer --pool-size 120 --shadows 12 --targets 2 --epochs 3 --batch-size 20 --epsilon 3 "
    "--attacks lira,attack-p": (
        "Attack P", "At most (certified)", "Surest 10 %", "the claim is not refuted",
    ),
    "plan --epsilon 4 --trials 1000": (
        "1,000 trials a world can show an ε of at most 5.604 by Clopper-Pearson",
    ),
    "demo": (
        "dprime choose --tpr 0.02",
        f"at most {round_up(100 * dprime.DPSGD(0.8, 256 / 60_000, 14_062).curve().tpr(0.01), 3)} %",
    ),
}  # fmt: skip


@pytest.mark.parametrize("line", SHOWN)
def test_what_is_shown(call, line):
    ended = call(line)
    assert ended.code == 0
    assert [words for words in SHOWN[line] if words not in ended.words] == []


def test_what_is_not_shown(call):
    attribute = call(OF_AGE).words
    assert "Membership advantage" not in attribute
    assert "Differential identifiability" not in attribute
    lines = (BELIEFS, DI, f"{DI} --sample-rate 0.5")
    points = [call(line).words.count("a point estimate with no confidence") for line in lines]
    assert points == [3, 5, 3]  # none from the advantage at another prior or with sampled batches


# What is typed -----------------------------------------------------------------------------------

WORDS = st.one_of(
    st.floats().map(str),
    st.integers(-10, 10**9).map(str),
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=6),
    st.sampled_from(["1/0", "256/60000", "1e400", "-0", "½", "NaN", "0x1", "replace", ""]),
)
NAMES = [
    "--noise-multiplier", "--sample-rate", "--steps", "--epochs", "--adjacency", "--sampling",
    "--group-size", "--delta", "--fpr", "--prior", "--min-tpr", "--belief-level", "--exceeded",
    "--epsilon-level", "--max-prior", "--advantage", "--tpr", "--precision", "--round-to",
]  # fmt: skip


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    command=st.sampled_from(
        ["risk", "choose", f"{RISK} --steps 100", RISK.replace("risk", "choose")]
    ),
    options=st.dictionaries(st.sampled_from(NAMES), WORDS, max_size=4),
)
def test_nothing_that_is_typed_ends_in_a_traceback(call, command, options):
    """Either one valid JSON object without NaN, or exit code 2 and one sentence."""
    ended = call(command, *(word for pair in options.items() for word in pair), "--json")
    if ended.code == 0:
        values = [metric["value"] for metric in ended.json["metrics"].values()]
        assert all(value is None or math.isfinite(value) for value in values)
    else:
        refused(ended, "")
