"""What a notebook shows, with the libraries that draw and without."""

from unittest.mock import patch

import html5lib

import dprime
from audited import run
from dprime.audit import lower_bound, record_of
from dprime.metrics import risk_profile
from dprime.show import notebook, report_html, words
from dprime.text import round_up


class Cells:
    """Texts of a table's cells, and how many drawings there are, of a part of a valid page."""

    def __init__(self, part):
        page = f"<!DOCTYPE html><html><head><title>a</title></head><body>{part}</body></html>"
        body = (
            html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page).find("body")
        )
        self.cells = [cell.text for cell in body.iter("td")]
        self.drawings = part.count("<svg")


def test_a_certified_curve_shows_every_risk():
    curve = dprime.DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=2000).curve()
    shown = Cells(curve._repr_html_())
    assert shown.drawings == 1
    for answer in risk_profile(curve):
        assert answer.title in shown.cells
        assert answer.sentence in shown.cells
    assert round_up(curve.advantage()) in shown.cells


def test_an_estimate_is_called_one():
    page = dprime.estimates.central_limit(1.0, 0.01, 2000, "replace")._repr_html_()
    assert "An estimate: the truth can be worse." in page
    assert "At most" not in page
    assert "certified" not in page


def test_a_lower_curve_says_its_confidence_and_its_assumption():
    for method, assumes in (("gaussian", True), ("band", False)):
        curve = lower_bound(range(60, 160), range(100), method=method).curve
        page = curve._repr_html_()
        assert f"95 % confidence, method {method}" in page
        assert float(Cells(page).cells[1]) <= curve.advantage()
        assert ("assumes Gaussian scores" in page) == assumes


def test_without_the_libraries_that_draw_the_numbers_remain(monkeypatch):
    monkeypatch.setattr(notebook, "find_spec", lambda _: None)
    shown = dprime.TradeOff.gaussian(1.0)._repr_html_()
    assert "'dprime[show]'" in shown
    assert Cells(shown).drawings == 0
    assert "Membership advantage" in Cells(shown).cells


def test_an_audit_shows_its_verdict():
    found = record_of(run("gradient"))
    page = found._repr_html_()
    shown = Cells(page)
    assert found.sentence in page
    assert f"Reached: {words.reached_by(found)}." in page
    assert shown.drawings == 1
    assert [row.title for row in found.rows] == shown.cells[::3]


def test_the_report_of_a_run_is_framed():
    facts = record_of(run("stands"))
    with patch("dprime.show.report.inline_svg", lambda chart: "<svg></svg>"):
        assert notebook.report_frame(facts) == notebook.framed(report_html(facts))


def test_a_page_in_a_frame_keeps_to_itself():
    page = '<!doctype html><title>"A" & B</title><script>alert(1)</script>'
    frame = notebook.framed(page)
    assert frame.count("<script") == 0
    (found,) = html5lib.parse(frame, namespaceHTMLElements=False).iter("iframe")
    assert (found.get("srcdoc"), found.get("sandbox")) == (page, "")
