"""README and documentation: every Python block runs, every link inside the tree leads somewhere.

Links between documents are checked by the strict build, which makes some of the pages.
"""

import doctest
import re
import runpy
import shlex
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
INCLUDED = re.compile(r"^# include (\S+)$", re.MULTILINE)
NEEDING = re.compile(r"^<!-- needs (\w+) -->\n```.*?^```\n", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def text_of(path):
    """Of a page, with the files that it includes, without blocks whose library is missing."""
    text = NEEDING.sub(lambda found: found[0] if find_spec(found[1]) else "", path.read_text())
    return INCLUDED.sub(lambda found: (ROOT / found[1]).read_text(), text)


def page_name(path):
    return str(path.relative_to(ROOT))


SLOW = [pytest.param(path, marks=pytest.mark.slow) for path in PAGES[1:]]
"""The pages whose blocks are run by `make test-all` alone; the README's always are."""
run_pages = pytest.mark.parametrize("path", [PAGES[0], *SLOW], ids=page_name)


@run_pages
@pytest.mark.filterwarnings("ignore::DeprecationWarning:(sqlalchemy|alembic|mlflow|wandb)")
def test_python_blocks_run_in_order(path):
    shared, printed = {"__name__": "document"}, None
    for language, body in BLOCK.findall(text_of(path)):
        if language == "python" and ">>>" in body:
            case = doctest.DocTestParser().get_doctest(body, shared, page_name(path), None, 0)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            runner.run(case, clear_globs=False)
            assert runner.summarize(verbose=False).failed == 0
            shared, printed = case.globs, None
        elif language == "python":
            with redirect_stdout(StringIO()) as out:
                exec(compile(body, page_name(path), "exec"), shared)
            printed = out.getvalue()
        elif language == "text" and printed:
            assert body.strip() == printed.strip()
            printed = None


@run_pages
def test_commands_in_blocks_run(path, call):
    for language, body in BLOCK.findall(path.read_text()):
        if language not in ("console", "bash", "sh"):
            continue
        for line in body.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words[:1] == ["dprime"] and words[1:2] != ["explore"]:
                code, _, err = call("", *words[1:])
                assert code in (0, 2 if "Error:" in body else 0), f"{line}: {err}"


@pytest.mark.parametrize("path", [PAGES[0], ROOT / "CONTRIBUTING.md"], ids=page_name)
def test_links_lead_somewhere(path):
    text, nav = path.read_text(), (ROOT / "mkdocs.yml").read_text()
    for target in re.findall(r"\]\(([^)#\s]+)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if not target.startswith(("http:", "https:", "mailto:")):
            built = re.search(rf"[ -]{target.removeprefix('docs/')}$", nav, re.MULTILINE)
            assert built or (path.parent / target).exists(), target


def test_the_picture_of_the_curve_is_what_its_script_draws():
    script = runpy.run_path(str(ROOT / "docs" / "make_curve_svg.py"))
    assert script["drawing"]() == (ROOT / "docs" / "assets" / "curve.svg").read_text()
