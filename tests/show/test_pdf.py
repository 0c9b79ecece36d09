"""The report as PDF, where there is a browser that prints."""

import re
import shutil
import stat

import pytest

from audited import run
from dprime.audit import record_of
from dprime.show import pdf, report_html, write_pdf

PRINTS = any(map(shutil.which, pdf.BROWSERS))
needs_chromium = pytest.mark.skipif(not PRINTS, reason="no Chromium is installed")


@needs_chromium
def test_a_report_is_printed(tmp_path):
    page = tmp_path / "a report with spaces.html"
    page.write_text(report_html(record_of(run("di"))), encoding="utf-8")
    before = page.read_bytes()
    target = tmp_path / "a report.pdf"
    assert write_pdf(page, target) == target
    data = target.read_bytes()
    assert data.startswith(b"%PDF-")
    assert data.rstrip().endswith(b"%%EOF")
    assert 5 <= len(re.findall(rb"/Type\s*/Page\b", data)) <= 30
    assert page.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {page.name, target.name}


def test_without_a_browser_or_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr(pdf, "ELSEWHERE", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="html must be a file"):
        write_pdf(tmp_path / "a.html", tmp_path / "a.pdf")
    (tmp_path / "a.html").write_text("<!DOCTYPE html>")
    told = "Chromium must be installed for a PDF, but it is missing: "
    with pytest.raises(ValueError, match=told):
        write_pdf(tmp_path / "a.html", tmp_path / "a.pdf")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("#!/bin/sh\necho once >&2\necho out of paper >&2\nexit 3\n", "out of paper"),
        ("#!/bin/sh\nexit 0\n", "it gave no reason"),
        ("#!/bin/sh\nexec sleep 30\n", "no answer in 0.2 seconds"),
        ("not a program", "Exec format error"),
    ],
)
def test_a_browser_that_does_not_print(tmp_path, monkeypatch, program, reason):
    (tmp_path / "a.html").write_text("<!DOCTYPE html>")
    browser = tmp_path / "chromium"
    browser.write_text(program)
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(pdf, "chromium", lambda: str(browser))
    monkeypatch.setattr(pdf, "PATIENCE", 0.2)
    with pytest.raises(ValueError, match="Chromium must be able to print the report") as caught:
        write_pdf(tmp_path / "a.html", tmp_path / "a.pdf")
    assert reason in str(caught.value)
    assert not (tmp_path / "a.pdf").exists()
