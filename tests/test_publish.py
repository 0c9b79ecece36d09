"""What is beside the package: examples, workflows, the action, the hook, the container file."""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
SCRIPTS = "tests/check/scripts"

SAYS = {
    "audit_training.py": "the claim is refuted",
    "choose_noise.py": "ε = 2 at δ = 1e-5",
    "monitor_opacus.py": "Stopped after epoch 3",
}
"""What the scripts in examples/ print, each of which ends with what must hold."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SAYS)
def test_an_example_runs_and_says_what_it_found(name, tmp_path):
    command = [sys.executable, "-W", "error", ROOT / "examples" / name]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout
    assert not [*tmp_path.iterdir()]
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == {*SAYS}


NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


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


def read(path):
    return yaml.safe_load((ROOT / path).read_text())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_targets_that_exist_and_nothing_of_their_own(path):
    made = (ROOT / "Makefile").read_text()
    for job in read(path)["jobs"].values():
        for step in job["steps"]:
            if command := step.get("run"):
                tool, *rest = shlex.split(command)
                assert tool in ("make", ".ci/run"), command
                assert tool == ".ci/run" or re.search(rf"^{rest[0]}:", made, re.MULTILINE), command


def test_only_the_upload_may_prove_who_it_is():
    jobs = read(".github/workflows/release.yml")["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["build"]["permissions"] == {"contents": "read"}


@pytest.fixture
def act(tmp_path):
    """Run the check of the action in an empty folder, as GitHub does."""
    (step,) = (each for each in read("action.yml")["runs"]["steps"] if each.get("id") == "check")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "dprime").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dprime "$@"\n')
    (folder / "dprime").chmod(0o755)

    def run(files, options=""):
        output = tmp_path / "output"
        environment = {
            **os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "FILES": files,
            "OPTIONS": options, "RUNNER_TEMP": str(tmp_path), "GITHUB_OUTPUT": str(output),
        }  # fmt: skip
        words = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        told = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return done, told

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "code", "found"),
    [
        ("good/mnist.py", "0", []),
        ("good/mnist.py bad/dp304*.py", "1", ["DP304"]),
        ("absent.py", None, None),
    ],
)
def test_the_action_passes_on_what_the_check_says(act, tmp_path, files, code, found):
    shutil.copytree(ROOT / SCRIPTS, tmp_path, dirs_exist_ok=True)
    done, told = act(files)
    assert (done.returncode, told.get("code")) == (0 if code else 2, code), done.stderr
    if found is not None:
        (run,) = json.loads(Path(told["sarif"]).read_text())["runs"]
        assert [each["ruleId"] for each in run["results"]] == found


def test_the_hook_takes_training_scripts_alone():
    (hook,) = read(".pre-commit-hooks.yaml")
    command, *words = shlex.split(hook["entry"])
    assert (command, *words) == ("dprime", "check")
    taken = ["train.py", "a/train_mnist.ipynb", "a/b/training.py"]
    others = ["model.py", "a/trainer/model.py", "constrained.py"]
    assert [each for each in taken + others if re.search(hook["files"], each)] == taken


def test_the_container_copies_what_the_build_needs():
    told = (ROOT / "Containerfile").read_text()
    copied = {
        word for line in re.findall(r"^COPY (.*) \S+$", told, re.MULTILINE) for word in line.split()
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"pyproject.toml", "src", project["readme"], *project["license-files"]} <= copied
    assert all((ROOT / each).exists() for each in copied)
    defaults = re.search(r"^ARG EXTRAS=(\S+)$", told, re.MULTILINE)[1].split(",")
    assert {*defaults} <= {*project["optional-dependencies"]}
    target = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())["build"]["target"]
    assert f" AS {target}\n" in told
