"""The package as a whole: layers, exports, changelog, a base install without any extra."""

import ast
import pickle
import re
import subprocess
import sys
import tomllib
import venv
from importlib import import_module
from pathlib import Path

import pytest

import dprime

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dprime"

CORE = {"numpy", "scipy"}
LIBRARIES = {
    "data": {"sklearn", "torch"},
    "train": {"torch", "rich", "triton", "cryptography", "mpmath"},
    "runs": {"torch", "ray"},
    "attack": {"torch"},
    "audit": {"torch"},
    "membership": {"torch", "pyarrow"},
    "monitor": {"torch", "opacus", "lightning", "transformers"},
    "canaries": {"torch", "opacus"},
    "attributes": {"torch"},
    "check": {"torch"},
    "show": {"altair", "vl_convert", "jinja2"},
    "web": {"anyio", "fastapi", "starlette", "uvicorn", "pydantic", "vl_convert"},
    "cli": {"typer", "rich"},
}
"""What each package may import besides `CORE`; for modules of dprime, see pyproject.toml."""


def imports_of(path):
    """The top name of every import, also of those in functions and for type checkers."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_libraries_are_imported_only_where_they_may_be():
    ours = {"dprime", *sys.stdlib_module_names}
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).with_suffix("").parts[0]
        allowed = ours | CORE | LIBRARIES.get(place, set())
        wrong += [f"{path}: {name}" for name in imports_of(path) if name not in allowed]
    assert wrong == []


def test_files_hold_one_idea_each():
    for path in [*SOURCE.rglob("*.py"), *(ROOT / "tests").glob("*.py")]:
        assert len(path.read_text().splitlines()) <= 600, path


def test_exports():
    assert dprime.__all__ == sorted(dprime.__all__, key=lambda n: (not n.isupper(), n))
    for name in dprime.__all__:
        assert getattr(dprime, name).__doc__


def test_names_are_where_the_table_says():
    assert sorted(dprime.PLACES) == sorted(dprime.__all__)
    for name, place in dprime.PLACES.items():
        found = getattr(dprime, name)
        assert found is getattr(import_module(f"dprime.{place}"), name)
        assert found.__module__ == f"dprime.{place}"
        assert pickle.loads(pickle.dumps(found)) is found


def test_type_checkers_see_the_same_names():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    static = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    named = {name: f"dprime.{place}" for name, place in dprime.PLACES.items()}
    assert {name: static.get(name) for name in named} == named


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="module 'dprime' has no attribute 'chose'"):
        dprime.chose  # noqa: B018


def fresh(code):
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_package_loads_no_library_until_it_is_asked():
    out = fresh(
        "import dprime, sys\n"
        "names = dir(dprime)\n"
        "extra = {*names} - {*dprime.__all__, *dprime.MODULES}\n"
        "assert extra == {'__doc__', '__version__'}, extra\n"
        "print(sorted({'numpy', 'scipy', 'torch'} & {*sys.modules}))\n"
        "dprime.TradeOff\n"
        "print(sorted({'numpy', 'scipy', 'torch'} & {*sys.modules}))"
    )
    assert out == "[]\n['numpy', 'scipy']\n"


def test_names_and_modules_are_there_without_an_import():
    out = fresh(
        "from dprime import *\n"
        "print(*(n for n in dir() if n[0] != '_'))\n"
        "import dprime\n"
        "print(*(getattr(dprime, name).__name__ for name in dprime.MODULES))"
    )
    names, modules = map(str.split, out.splitlines())
    assert names == sorted(dprime.__all__)
    assert modules == [f"dprime.{name}" for name in dprime.MODULES]


def test_no_name_is_a_module_too():
    modules = {path.stem for path in SOURCE.iterdir()}
    assert not modules & {*dprime.__all__}


def test_changelog_names_the_version():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    newest = re.search(r"^## (\S+)", changelog, re.MULTILINE)
    assert newest is not None
    assert newest.group(1) == dprime.__version__


def test_torch_is_pinned_exactly():
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    assert "torch==2.13.0" in pins
    for line in pins:
        assert line.startswith("#") or re.fullmatch(r"[A-Za-z0-9_.-]+==\S+", line), line


def test_base_dependencies_are_few():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.match(r"[\w-]+", entry).group() for entry in project["dependencies"]}
    assert names == {"numpy", "scipy", "typer"}
    assert set(project["optional-dependencies"]) == {
        "train", "opacus", "ray", "show", "web", "parquet", "all"
    }  # fmt: skip


def test_no_path_of_a_machine_is_in_the_tree():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    places = re.compile(r"/(?:home|root|tmp|work|Users)/\w")
    for name in listed:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".yml", ".json", ".txt", ""} and path.is_file():
            assert not places.search(path.read_text()), name


@pytest.mark.slow
def test_a_base_install_works_with_no_extra(tmp_path):
    """A clean environment with nothing but the base dependencies runs the command line."""
    venv.create(tmp_path / "env", with_pip=True)
    folder = tmp_path / "env" / "bin"

    def called(*words, code=0):
        done = subprocess.run(
            [folder / words[0], *words[1:]], capture_output=True, text=True, check=False,
            cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr.strip()

    pip = ("python", "-m", "pip", "--disable-pip-version-check")
    called(*pip, "install", "--quiet", "-c", ROOT / "constraints.txt", ROOT)
    installed = called(*pip, "list", "--format", "freeze").lower()
    for extra in ("torch", "scikit-learn", "opacus", "ray", "altair", "fastapi", "dp-accounting"):
        assert f"{extra}==" not in installed
    choose = ("choose", "--advantage", "0.1", "--sample-rate", "0.01", "--steps", "2000")
    assert "Chosen: noise multiplier 1.9" in called("dprime", *choose)
    needs = "PyTorch: pip install '.[train]' in a checkout of dprime"
    assert f"needs {needs}" in called("dprime", "demo")
    assert called("dprime", "audit", "--epsilon", "4", code=2) == (
        "Error: PyTorch must be installed for an audit, but it is missing: "
        "pip install '.[train]' in a checkout of dprime."
    )
    (tmp_path / "scores.csv").write_text("score,world\n2,in\n3,in\n0,out\n1,out\n")
    called("dprime", "bound", "scores.csv")
    check = "import dprime, dprime.bounds, pathlib; p = pathlib.Path(dprime.__file__).parent; "
    check += "assert (p / 'py.typed').exists()"
    called("python", "-W", "error", "-c", check)
    told = called("python", "-c", "import dprime.data; import dprime.train", code=1)
    assert told.endswith(f"dprime.train needs {needs}")
    told = called("python", "-c", "from dprime.audit import lower_bound, audit", code=1)
    assert told.endswith(f"audit needs {needs}")
