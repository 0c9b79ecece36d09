"""The page's own files, and nothing else of the disk."""

import re

import pytest

from dprime.web import files

PLACES = [
    "..%2findex.html", "%2e%2e/app.py", "..", ".", "%2e%2e%2f%2e%2e%2fapp.py", "....//app.py",
    "..%5capp.py", "%2fetc%2fpasswd", "/etc/passwd", "page/../../app.py", "index.html",
    "page.js%00", "page.js/", "PAGE.JS", "app.py", "__init__.py", "vega", "%c0%ae%c0%ae/app.py",
    "a" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_no_other_file_of_the_disk_is_reached(caller, place):
    reply = caller.get(f"/static/{place}")
    assert reply.status == 404
    assert "must be one of the page's" in reply.detail or "nothing at this address" in reply.detail


def test_the_page_and_everything_it_names_is_there(caller):
    page = caller.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    named = re.findall(r'(?:src|href)="/static/([^"]+)"', page.body.decode())
    assert {"vega.js", "page.css"} <= {*named}
    modules = {path.name for path in files.PAGE.glob("*.js")}
    for name in {*named, *modules}:
        reply = caller.get(f"/static/{name}")
        kind = "." + name.rpartition(".")[2]
        assert (reply.status, reply.headers["content-type"]) == (200, files.KINDS[kind]), name
        known = [("if-none-match", reply.headers["etag"])]
        again = caller.get(f"/static/{name}", headers=known)
        assert (again.status, again.body) == (304, b"")
    other = caller.get("/static/vega.js", headers=[("if-none-match", '"another"')])
    assert other.status == 200


def test_the_drawing_program_is_whole_and_its_licences_go_with_it(caller):
    assert b"window.vegaEmbed" in files.vega()
    told = caller.get("/static/vega-licences.txt").body.decode()
    for part in ("vega", "vega-lite", "vega-embed", "d3-array", "fast-json-patch"):
        assert re.search(rf"(^|[ ,]){part}([,) ]|$)", told, re.MULTILINE), part
    assert told.count("University of Washington Interactive Data Lab") >= 3


def test_nothing_inline_and_nothing_from_outside(caller):
    """The policy forbids it; the page must not ask for it."""
    page = caller.get("/").body.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=", page)
    for path in files.PAGE.glob("*[!t]"):  # licences are text, which asks for nothing
        outside = set(re.findall(r"https?://[\w.-]+", path.read_text()))
        assert outside <= {"http://www.w3.org"}, path.name
