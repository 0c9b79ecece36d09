"""The package as a whole: layers, exports, changelog."""

import ast
import pickle
import re
import subprocess
import sys
import tomllib
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
    "monitor": {"torch", "opacus", "lightning", "transformers", "mlflow", "wandb"},
    "canaries": {"torch", "opacus"},
    "attributes": {"torch"},
    "check": {"torch"},
    "show": {"vl_convert", "jinja2", "huggingface_hub"},
    "web": {"anyio", "fastapi", "h11", "starlette", "uvicorn", "pydantic", "vl_convert"},
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
    ours = {"dprime", *sys.stdlib_module_names, *CORE}
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).with_suffix("").parts[0]
        assert {*imports_of(path)} <= ours | LIBRARIES.get(place, set()), path


def test_exports_are_where_the_table_says_and_type_checkers_see_them():
    assert dprime.__all__ == sorted(dprime.PLACES, key=lambda name: (not name.isupper(), name))
    imported = {
        alias.name: node.module
        for node in ast.walk(ast.parse((SOURCE / "__init__.py").read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for name, place in dprime.PLACES.items():
        found = getattr(dprime, name)
        assert found.__doc__
        assert found is getattr(import_module(f"dprime.{place}"), name)
        assert found.__module__ == imported[name] == f"dprime.{place}"
        assert pickle.loads(pickle.dumps(found)) is found
    assert not {path.stem for path in SOURCE.iterdir()} & {*dprime.__all__}
    with pytest.raises(AttributeError, match="module 'dprime' has no attribute 'chose'"):
        dprime.chose  # noqa: B018


def test_the_package_loads_no_library_until_it_is_asked():
    code = (
        "import dprime, sys\n"
        "extra = {*dir(dprime)} - {*dprime.__all__, *dprime.MODULES}\n"
        "assert extra == {'__doc__', '__version__'}, extra\n"
        "print(sorted({'numpy', 'scipy', 'torch'} & {*sys.modules}))\n"
        "dprime.TradeOff\n"
        "print(sorted({'numpy', 'scipy', 'torch'} & {*sys.modules}))\n"
        "assert [getattr(dprime, name).__name__ for name in dprime.MODULES] == [\n"
        "    f'dprime.{name}' for name in dprime.MODULES]\n"
        "from dprime import *\n"
        "assert {*dprime.__all__} <= {*dir()}"
    )
    fresh = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(fresh, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n['numpy', 'scipy']\n"


@pytest.mark.parametrize(
    "name", ["audit", "membership", "monitor", "canaries", "attributes", "show", "check"]
)
def test_a_package_lists_its_names_also_those_that_are_not_loaded_yet(name):
    package = import_module(f"dprime.{name}")
    assert {*dir(package)} == {"__doc__", *package.__all__}
    assert all(hasattr(package, each) for each in package.__all__)


LIGHT = {
    "dprime.data": "import dprime.data; dprime.data.names()",
    "dprime.monitor": "import dprime.monitor",
    "a configuration": """from dprime.audit import AuditConfig
try:
    AuditConfig.from_words(claim={"epsilon": -1})
except ValueError:
    pass""",
    "a bound": "import dprime.audit; dprime.audit.lower_bound([1, 2, 3], [0, 1, 2])",
    "charts": """from dprime.show.charts import trade_off, precision, risk
training = dprime.DPSGD(1.1, 0.01, 100)
for chart in trade_off(training.curve()), risk(training, "steps"), precision(training.curve()):
    assert chart.rows() and chart.title and chart.text""",
    "a plan": """from dprime.cli import app
sys.argv[1:] = "frontier --precision 0.6 --pool-size 200 --batch-size 20 --plan-only --json".split()
app(standalone_mode=False)
raise SystemExit("torch" in sys.modules)  # its data need scikit-learn""",
}
"""What needs none of the libraries below, in a process of its own."""


@pytest.mark.parametrize("code", LIGHT.values(), ids=LIGHT)
def test_what_is_light_loads_no_heavy_library(code):
    heavy = {"torch", "sklearn", "opacus", "lightning", "transformers", "vl_convert", "pandas"}
    check = f"assert not {heavy} & {{*sys.modules}}, {{*sys.modules}}"
    words = [sys.executable, "-W", "error", "-c", f"import sys, dprime\n{code}\n{check}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_changelog_names_the_version():
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert newest.group(1) == cited.group(1) == dprime.__version__


def named(text):
    """The versions of a list of requirements, by their names in one spelling."""
    lines = re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)(.*(?:\n    .+)*)", text, re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): (at, more) for name, at, more in lines}


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-package.lock"])
def test_what_is_locked_is_what_the_tests_ran_with(name):
    pins = named((ROOT / "constraints.txt").read_text())
    locked = named((ROOT / name).read_text())
    assert {each: at for each, (at, _) in locked.items()} == {
        each: pins[each][0] for each in locked
    }
    for each, (_, more) in locked.items():
        assert re.search(r"--hash=sha256:[0-9a-f]{64}(?!\w)", more), each
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = table["project"]["dependencies"], table["dependency-groups"]["package"]
    wanted = groups["package" in name]
    assert {re.match(r"[\w-]+", entry).group().lower() for entry in wanted} <= {*locked}


def test_no_path_of_a_machine_is_in_the_tree():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    places = re.compile(r"/(?:home|root|tmp|work|Users)/\w")
    for path in (ROOT / name for name in listed.stdout.split()):
        if path.suffix in {".py", ".md", ".toml", ".yml", ".json", ".txt", ""} and path.is_file():
            assert not places.search(path.read_text()), path
