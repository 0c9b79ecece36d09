"""Build wheel and sdist into dist/, and use them as a stranger would.

    python .ci/package.py            # build, check, install for every Python that is found
    python .ci/package.py v1.2.3     # first fail unless that is the tag of this version
    python .ci/package.py --version  # print the version of the source, and do nothing else

It needs the dependency group `package`; `make package` installs that. PyTorch is not needed.
"""

from __future__ import annotations

import ast
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST, CONSTRAINTS, LOCK = ROOT / "dist", ROOT / "constraints.txt", ROOT / "requirements.lock"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")

PROBE = """\
import numpy

import dprime

mechanism = dprime.DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=2000)
reveal_type(mechanism.curve().advantage())
mechanism.curve().tpr([0.01, 0.1]).mean()
mechanism.curve().tpr(fpr=numpy.linspace(0, 1)).mean()
mechanism.curve().epsilon(delta="small")
"""
"""What a type checker must see, the mistake of the last line too."""


def main() -> None:
    """Build, and check all that can be checked without uploading."""
    if sys.argv[1:] == ["--version"]:
        print(version())
    else:
        expect(sys.argv[1:] in ([], [f"v{version()}"]), f"the tag must be v{version()}")
        wheel = built()
        check_contents(wheel)
        run(sys.executable, "-m", "twine", "check", "--strict", *sorted(DIST.iterdir()))
        check_configuration()
        found = pythons()
        for name, python in found.items():
            check_install(name, python, wheel)
        print(f"package: {wheel.name} works on {', '.join(found)}")
        if missing := [name for name in PYTHONS if name not in found]:
            print(f"package: SKIPPED, not installed here: Python {', '.join(missing)}")


def version() -> str:
    """`__version__` of the source, which is not imported."""
    for node in ast.parse((ROOT / "src/dprime/__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__":
            return str(ast.literal_eval(node.value))
    raise SystemExit("src/dprime/__init__.py has no __version__")


# Build --------------------------------------------------------------------------------------------


def built() -> Path:
    """The wheel, made from the sdist; the checkout must give the same one."""
    shutil.rmtree(DIST, ignore_errors=True)
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir")  # with what is locked
    run(*build, DIST, ROOT)
    (wheel,) = DIST.glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        run(*build, folder, "--wheel", ROOT)
        (direct,) = Path(folder).iterdir()
        expect(contents(wheel) == contents(direct), "sdist and checkout give different wheels")
    return wheel


def contents(wheel: Path) -> dict[str, bytes]:
    """Every file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def check_contents(wheel: Path) -> None:
    """The wheel has the tracked files of the package, licence and metadata, and nothing else."""
    inside = contents(wheel)
    about = f"dprime-{version()}.dist-info"
    ours = {name for name in inside if not name.startswith(about)}
    listed = run("git", "-C", ROOT / "src", "ls-files", "dprime").split()
    expect(ours == set(listed), f"in wheel or checkout alone: {sorted(ours ^ set(listed))}")
    metadata = inside[f"{about}/METADATA"].decode()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    told = re.findall(r"^Provides-Extra: (.+)$", metadata, re.MULTILINE)
    expect(set(told) == set(project["optional-dependencies"]), f"extras: {told}")
    expect("License-Expression: Apache-2.0\n" in metadata, "the metadata name no licence")
    licence = inside.get(f"{about}/licenses/LICENSE")
    expect(licence == (ROOT / "LICENSE").read_bytes(), "the licence is not in the wheel")


def check_configuration() -> None:
    """Files that GitHub and citation managers read are what their schemas allow."""
    check = (sys.executable, "-m", "check_jsonschema", "--builtin-schema")
    github = ROOT / ".github"
    run(*check, "vendor.github-workflows", *sorted(github.glob("workflows/*.yml")))
    forms = set(github.glob("ISSUE_TEMPLATE/*.yml")) - {github / "ISSUE_TEMPLATE/config.yml"}
    run(*check, "vendor.github-issue-forms", *sorted(forms))
    run(*check, "vendor.github-issue-config", github / "ISSUE_TEMPLATE/config.yml")
    run(*check, "vendor.github-actions", ROOT / "action.yml")
    run(*check, "vendor.citation-file-format", ROOT / "CITATION.cff")


# Install ------------------------------------------------------------------------------------------


def pythons() -> dict[str, str]:
    """The interpreters that are installed and start, by their version; this one is among them."""
    found = {}
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for name in PYTHONS:
        places = sorted(map(str, root.glob(f"versions/{name}.*/bin/python")))
        for python in (sys.executable, f"python{name}", *places):
            if name not in found and starts(python, name):
                found[name] = python
    expect(bool(found), f"none of Python {', '.join(PYTHONS)} starts")
    return found


def starts(python: str, name: str) -> bool:
    """Whether there is such an interpreter of this version: a shim may lead nowhere."""
    asked = (python, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])")
    if not shutil.which(python):
        return False
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == name


def check_install(name: str, python: str, wheel: Path) -> None:
    """A new environment with the wheel and what is locked does what is promised."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "venv", f"{folder}/env")
        own = f"{folder}/env/bin/python"
        install = (own, "-m", "pip", "install", "--quiet")
        run(*install, "--require-hashes", "-r", LOCK, cwd=folder)
        run(*install, "--no-deps", wheel, cwd=folder)
        run(own, "-m", "pip", "check", cwd=folder)
        check_commands(Path(folder))
        check_missing_extras(Path(folder))
        if python == sys.executable:
            check_types(own, Path(folder))
    print(f"package: Python {name} took {time.perf_counter() - start:.0f} s", flush=True)


def check_commands(folder: Path) -> None:
    """The command line answers, and its number is the one that is known in closed form."""

    def dprime(*words: str) -> str:
        return run(folder / "env/bin/dprime", *words, cwd=folder)

    expect(dprime("--version").split()[-1] == version(), "dprime --version")
    full_batch = ("risk", "--noise-multiplier", "10", "--sample-rate", "1", "--steps", "100")
    answer = json.loads(dprime(*full_batch, "--json"))["metrics"]["advantage"]
    exact = math.erf(1 / math.sqrt(8))  # two normal laws, one standard deviation apart
    expect(exact <= answer["value"] <= exact * (1 + 1e-9), f"dprime risk says {answer}")
    expect(answer["kind"] == "certified", f"dprime risk says {answer}")
    choose = ("choose", "--advantage", "0.1", "--sample-rate", "0.01", "--steps", "2000")
    expect("Chosen: noise multiplier 1.9" in dprime(*choose), "dprime choose")
    (folder / "scores.csv").write_text("score,world\n2,in\n3,in\n0,out\n1,out\n")
    dprime("bound", "scores.csv")
    (folder / "train.py").write_text("import opacus\n")
    expect("DP001" in run(folder / "env/bin/dprime", "check", "train.py", cwd=folder, code=1),
           "dprime check")  # fmt: skip


def check_missing_extras(folder: Path) -> None:
    """No extra came along, and what needs one says which, in a sentence."""
    env = folder / "env/bin"
    for words, code in (
        (("dprime", "demo"), 0),
        (("dprime", "audit", "--epsilon", "4"), 2),
        (("python", "-c", "import dprime.data; import dprime.train"), 1),
        (("python", "-c", "from dprime.audit import lower_bound, audit"), 1),
    ):
        told = run(env / words[0], *words[1:], cwd=folder, code=code)
        expect("PyTorch" in told and "pip install 'dprime[train]'" in told, told)
    listed = json.loads(run(env / "python", "-m", "pip", "list", "--format", "json", cwd=folder))
    extra = {"torch", "scikit-learn", "opacus", "ray", "jinja2", "fastapi", "pyarrow"}
    came = extra & {each["name"].lower() for each in listed}
    expect(not came, f"the base install brought {came}")


def check_types(python: str, folder: Path) -> None:
    """A type checker reads the installed package's annotations."""
    (folder / "probe.py").write_text(PROBE)
    mypy = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder / "cache")
    told = run(*mypy, "--python-executable", python, "probe.py", cwd=folder, code=1)
    expect('Revealed type is "float"' in told.replace("builtins.", ""), told)
    expect('Argument "delta" to' in told and 'incompatible type "str"' in told, told)
    expect("Found 1 error " in told, told)


# Helpers ------------------------------------------------------------------------------------------


def run(*words: object, cwd: object = ROOT, code: int = 0) -> str:
    """What a command prints, which must end with this exit code; nothing of ours is importable."""
    cleared = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [*map(str, words)], cwd=str(cwd), check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**cleared, "PIP_CONSTRAINT": str(CONSTRAINTS), "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )  # fmt: skip
    expect(
        done.returncode == code,
        f"{' '.join(map(str, words))} gave {done.returncode}:\n{done.stdout}",
    )
    return done.stdout


def expect(holds: bool, otherwise: str) -> None:
    """End with a sentence unless that holds."""
    if not holds:
        sys.exit(f"package: {otherwise}")


if __name__ == "__main__":
    main()
