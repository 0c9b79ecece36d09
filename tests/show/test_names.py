"""Names and texts of strangers: no output obeys them, whatever they are."""

import functools
import json
import os
import re
import shutil
import sqlite3
import tomllib
from contextlib import closing
from xml.etree import ElementTree

import html5lib
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from audited import EVIL, folder, run
from dprime import text
from dprime.audit import record_of
from dprime.cli import command
from dprime.cli.tables import plain_table
from dprime.runs import run_file
from dprime.runs.run import Run
from dprime.show import (
    card,
    card_markdown,
    exports,
    model_card,
    registry_entry,
    repeat,
    report_html,
)
from dprime.show.charts import FrontierPoint, FrontierSeries, frontier
from dprime.show.deployment import Deployment
from dprime.show.notebook import audit_html

PARTS = st.sampled_from([
    "\x1b[2J", "\x1b]0;t\x07", "\x9b31m", "\r", "\n", "\t", "\x08", "\x7f", "\x85",
    "\u2028", "\u202e",
    "\u200b", "\udcff", "\ufeff", "\U000e0001", "<script>", "</pre>", "<!--", "-->", "]]>", "&lt;",
    "&amp;", '"', "'", "`", "```", "~~~", "|", "\\|", "\\", "[a](http://b)", "\\[a](http://b)",
    "![a](b)", "<http://a.b>", "[a]: http://b", "# a", "> a", "- a", "1. a", "---", "===", "***",
    "{{ 7 * 7 }}", "{% raw %}", "{x}", "%s", "[red]", "[/b]", "[/]", ": ", "!!python/object", "&a",
    "*a", exports.END, exports.BEGIN, "a", "é", "ж", " ",
])  # fmt: skip
TEXTS = st.lists(PARTS | st.characters(), max_size=6).map("".join).filter(str.strip)

FREE = (
    *("result.sentence", "result.verdict.sentence", "result.caveats", "result.about"),
    *("result.rows.title", "result.bounds.assumption", "result.bounds.objection"),
    *("result.attacked.data", "result.attacked.trainer.model", "result.blocks.last_error"),
    *("result.events.message", "result.events.worker", "versions.dprime", "versions.torch"),
)
"""Texts of a run's file that are of no fixed form."""


def forged(values, said, path):
    """The same values with another text in each place where any text may stand."""
    if isinstance(values, dict):
        return {name: forged(each, said, f"{path}.{name}") for name, each in values.items()}
    if isinstance(values, list):
        return [forged(each, said, path) for each in values]
    return said if path in FREE and isinstance(values, str) else values


def hostile(folder, said):
    """The record of a run whose texts and name were forged by somebody who forges digests too."""
    name = "".join(each for each in said if each not in "/\0")[:40]
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        name = "a"
    path = folder / f"a{name}.run"
    shutil.copy(run("failed"), path)
    with Run.open(path) as opened:
        kept = {"result": opened.result, "versions": opened.versions}
    with closing(sqlite3.connect(os.fsencode(path), isolation_level=None)) as db:
        for part, values in kept.items():
            new = json.dumps(forged(values, said, part))
            run_file.put(db, "about", part, new, changed=run_file.now())
    try:
        return record_of(path)
    finally:
        path.unlink()


def clean(shown):
    """Nothing that a terminal or a reader of the page obeys, and nothing that cannot be written."""
    shown.encode()
    assert text.printable(shown) == shown


def structure(markdown):
    """The blocks, HTML, links and pictures of a text; emphasis is harmless."""
    found = MarkdownIt("commonmark", {"html": True}).enable("table").parse(markdown)
    inner = [each for token in found for each in token.children or ()]
    loose = [each.type for each in inner if re.match("html|link|image", each.type)]
    return [each.type for each in found], loose


def elements(page):
    return [each.tag for each in html5lib.parse(page).iter() if isinstance(each.tag, str)]


def about(said):
    """The fields of a dossier, of what is left of a text that is allowed there."""
    line = " ".join(said.split())[:100]
    return Deployment.of({"purpose": f"a {line}", "organisation": f"a {line}"})


@functools.cache
def expected():
    """What the outputs of plain words look like."""
    usual, told = hostile(folder(), "plain words"), about("plain")
    return {
        "markdown": structure(card_markdown(usual, told)),
        "model card": structure(model_card(usual, "", told).split("\n---\n", 1)[1]),
        "page": elements(report_html(usual, (), told)),
        "registry": [*yaml.safe_load(registry_entry(usual))["deployment"]],
    }


SLOW = settings(
    max_examples=40, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip


@pytest.mark.slow
@SLOW
@example(said=EVIL)
@example(said="\\[a](http://b) \\| # a")
@example(said="# a\r\x1b[2J\x9b31m\u202e")
@example(said=f"{exports.END} <!-- ``` -->")
@given(said=TEXTS)
def test_documents_keep_their_structure(tmp_path, said):
    record, told = hostile(tmp_path, said), about(said)
    markdown, page = card_markdown(record, told), report_html(record, (), told)
    other, entry = model_card(record, "", told), registry_entry(record)
    for shown in (markdown, page, other, entry, audit_html(record), repeat.settings_text(record)):
        clean(shown)
    assert structure(markdown) == expected()["markdown"]
    assert structure(other.split("\n---\n", 1)[1]) == expected()["model card"]
    assert model_card(record, other, told) == other  # its section is found again
    assert elements(page) == expected()["page"]
    assert [*yaml.safe_load(entry)["deployment"]] == expected()["registry"]
    json.dumps(card(record, told)).encode()


@SLOW
@given(said=TEXTS)
def test_settings_are_the_same_when_they_are_read_again(said):
    shown = repeat.as_toml({"data": said, "claim": {"name": said}})
    if re.search("[\ud800-\udfff]", said):  # which no file can hold
        return
    clean(shown)
    assert tomllib.loads(shown) == {"data": said, "claim": {"name": said}}


@pytest.mark.slow
@SLOW
@given(said=TEXTS)
def test_drawings_are_whole_and_plain(said):
    points = tuple(FrontierPoint(share, 0.8, 0.7, 0.9, epsilon=2.0) for share in (0.2, 0.7))
    drawn = [frontier((FrontierSeries(0.6, points),), data).svg() for data in ("a", said)]
    clean(drawn[1])
    plain, other = ([each.tag for each in ElementTree.fromstring(svg).iter()] for svg in drawn)
    assert {*other} == {*plain}


@SLOW
@example(said="[/b] \x1b[2J")
@given(said=TEXTS)
def test_a_terminal_obeys_no_name(capsys, said):
    table = plain_table(said, said)
    table.add_row(said)
    table.caption = said
    command.show({}, {}, said, table)
    command.say(said)
    clean(capsys.readouterr().out)


@pytest.mark.parametrize("said", ["\x1b[2Jx", "a\nb", "[b", "\u202ex"])
def test_names_of_runs_in_a_terminal(call, tmp_path, said):
    shutil.copy(run("stands"), tmp_path / f"{said}.run")
    for words in (("runs", "."), ("report", f"{said}.run"), ("report", f"{said}.run", "--fpr", 1)):
        code, out, err = call(*words)
        clean(out + err)
        assert code in (0, 2)
        assert "Traceback" not in err
