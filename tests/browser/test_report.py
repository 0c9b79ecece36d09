"""The report as a file: valid, small, and whole with the network off."""

import re
import subprocess
import sys
import unicodedata
import urllib.request
from unittest.mock import patch

import html5lib
import pytest

from audited import run
from dprime.audit import record_of
from dprime.audit.limits import LIMITS
from dprime.metrics import TARGETS
from dprime.runs.run import Run
from dprime.show import report_html
from dprime.show.compared import compared
from dprime.show.deployment import FIELDS, LONGEST, Deployment

NEWER = 'Property "(color-scheme|text-wrap|print-color-adjust)"|"::details-content"'
"""What CSS has that is younger than the checker's own lists."""


@pytest.fixture(scope="module")
def written(folder, tmp_path_factory):
    """The report of a run as HTML and as PDF, as the command writes them."""
    place = tmp_path_factory.mktemp("report")
    files = ["--pdf", place / "report.pdf", "--out", place / "report.html"]
    command = [sys.executable, "-m", "dprime", "report", folder / "finished.run", *files]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return place


@pytest.fixture(scope="module")
def report(written):
    return written / "report.html"


def test_the_checker_has_nothing_to_say(report, address, checker, tmp_path):
    """The Nu checker, on the report and on the explorer's page."""
    page = tmp_path / "explorer.html"
    page.write_bytes(urllib.request.urlopen(f"{address}/").read())
    done = subprocess.run(
        [checker, report, page, "--also-check-css", "--ignore-re", NEWER],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.stdout + done.stderr, done.returncode) == ("", 0)


def test_it_is_small_and_whole_with_the_network_off(report, browser):
    assert report.stat().st_size < 3_000_000
    context = browser.new_context(offline=True)
    page = context.new_page()
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(report.as_uri())
    assert page.locator("h1").inner_text().startswith("The claim is not refuted")
    folded = page.locator("#numbers").locator("xpath=../..").locator("table").first
    assert not folded.is_visible()
    page.locator("#numbers").click()
    assert folded.is_visible()
    page.locator("#charts").click()
    drawings = page.locator("figure svg:visible")
    assert drawings.count() >= 5
    for place in range(drawings.count()):
        assert drawings.nth(place).bounding_box()["height"] > 100
    assert asked == [report.as_uri()]
    assert complaints == []
    context.close()


def test_its_numbers_are_the_stores(report, folder):
    text = report.read_text(encoding="utf-8")
    with Run.open(folder / "finished.run") as store:
        verdict = store.result["verdict"]
    for part in ("reached", "allowed"):
        (fact,) = {*re.findall(rf'<data [^>]*data-fact="verdict\.metric\.{part}"[^>]*>', text)}
        assert float(re.search(r'\bvalue="([^"]+)"', fact)[1]) == verdict[part]


def squeezed(text):
    return "".join(unicodedata.normalize("NFKC", text).split())  # a ligature is two letters


def test_the_pages_of_the_pdf(written, report, folder, pypdf):
    """Each has its number and the verdict, and is marked; no page break divides a table."""
    pdf, text = pypdf.PdfReader(written / "report.pdf"), report.read_text(encoding="utf-8")
    body = html5lib.parse(text, namespaceHTMLElements=False)
    pages = [squeezed(page.extract_text()) for page in pdf.pages]
    record = record_of(folder / "finished.run")
    footer = f"{record.name}, {record.changed:%Y-%m-%d}: {record.verdict.outcome}"
    assert len(pages) > 5
    for number, told in enumerate(pages, 1):
        assert f"{number}/{len(pages)}" in told
        assert squeezed(footer) in told

    def marks(outline):
        for each in outline:
            yield from marks(each) if isinstance(each, list) else [each]

    found = [(each.title, pdf.get_destination_page_number(each)) for each in marks(pdf.outline)]
    headings = (each for each in body.iter() if each.tag in ("h1", "h2", "h3", "h4"))
    shown = [" ".join("".join(each.itertext()).split()) for each in headings]
    assert [" ".join(title.split()) for title, _ in found] == shown
    assert all(squeezed(title) in pages[number] for title, number in found)

    folded = {id(each) for each in body.findall(".//section[@class='chart']//table")}
    tables = [
        each for each in body.iter("table") if id(each) not in folded
    ]  # those are not printed
    assert len(tables) >= 7
    for table in tables:
        cells = (each for each in table.iter() if each.tag in ("caption", "th", "td"))
        parts = [squeezed("".join(cell.itertext())) for cell in cells]
        assert any(all(part in page for part in parts) for page in pages), parts[0]


FULL = {each.name: 0.95 for each in LIMITS if each.name in TARGETS} | {"epsilon": 3.0}
FULL |= {"delta": 1e-6, "fpr": 0.02, "prior": 0.2, "min_tpr": 0.02}
FULL |= {"belief_prior": 0.6, "exceeded": 1e-4}
FULL |= dict.fromkeys(FIELDS, ("Somebody who is named here; " * LONGEST)[:LONGEST])
"""Every field as long as it may be, and every limit at conditions of its own."""


@pytest.fixture(scope="module")
def printed_pages(browser):
    """How many pages a report has, and how many of them are the dossier."""
    page = browser.new_page()

    def pages():
        return len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True)))

    def count(text):
        page.set_content(text)
        whole = pages()
        page.evaluate("""() => {
          const dossier = document.querySelector(".dossier");
          while (dossier.nextSibling) dossier.nextSibling.remove();
          document.querySelector("footer").remove();
        }""")
        return whole, pages()

    yield count
    page.close()


RUNS = ["stands", "broken", "understated", "few", "local", "failed", "objected-above"]


@pytest.mark.parametrize("about", [Deployment(), Deployment.of(FULL)], ids=["blank", "full"])
@pytest.mark.parametrize("name", RUNS)
def test_the_dossier_fits_on_two_pages(printed_pages, name, about):
    others = ("gradient", "api") if name == "stands" else ()
    record = compared(record_of(run(name)), [record_of(run(other)) for other in others])
    with patch("dprime.show.report.inline_svg", lambda chart: f"<svg><title>{chart.name}</title>"):
        whole, dossier = printed_pages(report_html(record, about=about))
    assert dossier == 2
    assert whole > 5, "the appendix is open on paper"


SHEET = {"width": 680, "height": 990}
"""What the margins leave of A4, in pixels of CSS: 180 mm by 262 mm."""


@pytest.mark.parametrize("name", ["stands", "di", "objected-above"])
def test_every_table_fits_on_one_sheet(browser, name):
    page = browser.new_page(viewport=SHEET)
    page.emulate_media(media="print")
    with patch("dprime.show.report.inline_svg", lambda chart: f"<svg><title>{chart.name}</title>"):
        page.set_content(report_html(record_of(run(name)), about=Deployment.of(FULL)))
    kept = page.eval_on_selector_all(
        ".scroll",
        """all => all.filter((each) => each.querySelector("table") && each.offsetHeight).map(
          (each) => [each.offsetHeight, getComputedStyle(each).breakInside])""",
    )
    assert len(kept) >= 7
    assert max(height for height, _ in kept) < SHEET["height"]
    assert {way for _, way in kept} == {"avoid"}
    page.close()


def test_no_part_of_the_page_is_wider_than_a_phone(report, browser):
    context = browser.new_context(viewport={"width": 320, "height": 640}, color_scheme="dark")
    page = context.new_page()
    page.goto(report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
    context.close()
