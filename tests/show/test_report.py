"""The report: a valid page that opens offline, and whose numbers are the store's."""

import dataclasses
import functools
import itertools
import json
import re
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import patch

import html5lib
import pytest

from audited import EVIL, SIX, run
from dprime.audit import blind_spots, record_of
from dprime.audit.limits import risks
from dprime.metrics import Reading
from dprime.runs.run import Run
from dprime.show import card, charts_of, report_html, sentences, words
from dprime.show.compared import compared
from dprime.show.deployment import FIELDS, Deployment
from dprime.show.report import AUTHORITIES, WAYS, drawings_of, way
from dprime.text import describe

ROOT = Path(__file__).parents[2]
LARGEST = 3_000_000
"""Bytes of a report."""

ABOUT = Deployment.of({
    "organisation": "A <clinic> & its partners", "advantage": 0.3, "bayes_security": 0.4,
    "tpr": 0.02, "fpr": 0.003, "epsilon": 8.0,
})  # fmt: skip
"""Some fields of those who decide, and limits."""


def record(name, *others):
    return compared(record_of(run(name)), [record_of(run(other)) for other in others])


def drawn(chart):
    """In place of a drawing; how charts are drawn is tested with them."""
    told = f'<title id="{chart.name}-title">{chart.name}</title>'
    return f'<svg role="img" aria-labelledby="{chart.name}-title" viewBox="0 0 1 1">{told}</svg>'


@functools.cache
def page(name, *others):
    with patch("dprime.show.report.inline_svg", drawn):
        return report_html(record(name, *others), about=ABOUT)


class Page(HTMLParser):
    """Elements with their attributes and texts, in order."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.facts, self.stack = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.stack.append([tag, dict(attrs), ""])

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.stack:
            self.stack[-1][2] += data

    def handle_endtag(self, tag):
        while self.stack:
            opened, attrs, text = self.stack.pop()
            if "data-fact" in attrs:
                self.facts.append((attrs["data-fact"], attrs["value"], text))
            if opened == tag:
                return

    def of(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


@functools.cache
def parsed(name, *others):
    return Page(page(name, *others))


def seen(name, *others):
    """The page's text as one line."""
    tree = html5lib.parse(page(name, *others), namespaceHTMLElements=False)
    parts = [t for e in tree.iter() if e.tag != "style" for t in (e.text, e.tail) if t]
    return " ".join(" ".join(parts).split())


# A page -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIX)
def test_a_strict_parser_has_no_objection(name):
    html5lib.HTMLParser(strict=True).parse(page(name))


@pytest.mark.slow
def test_a_page_with_its_drawings():
    text = report_html(record("stands"))
    html5lib.HTMLParser(strict=True).parse(text)
    assert len(text.encode()) < LARGEST
    assert text.count("<svg") == len(ALWAYS + CLAIMED)  # each chart is drawn once
    assert not re.search(r"https?:", text)
    found = Page(text)
    ids = [attrs["id"] for _, attrs in found.elements if "id" in attrs]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", SIX)
def test_small_and_offline(name):
    text = page(name)
    if name != "evil":
        assert not re.search(r"https?:", text)
    found = parsed(name)
    tags = {tag for tag, _ in found.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    for _, attrs in found.elements:
        assert not any(attribute.startswith("on") for attribute in attrs)
        assert not {"src", "srcset", "action", "ping"} & set(attrs)
        assert attrs.get("href", "#").startswith("#")
        assert "url(" not in attrs.get("style", "")
    assert "url(" not in re.search(r"<style>(.*?)</style>", text, re.DOTALL).group(1)
    assert "@import" not in text


def test_the_policy_forbids_everything_but_its_own_style():
    policies = [m for m in parsed("stands").of("meta") if m.get("http-equiv")]
    assert [p["content"] for p in policies] == ["default-src 'none'; style-src 'unsafe-inline'"]


@pytest.mark.parametrize("name", SIX)
def test_structure(name):
    found = parsed(name)
    ids = [attrs["id"] for _, attrs in found.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in found.elements:
        for attribute in ("aria-labelledby", "aria-describedby"):
            assert set(attrs.get(attribute, "").split()) <= set(ids)
        if attrs.get("href", "#") != "#":
            assert attrs["href"][1:] in ids
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    assert found.of("html") == [{"lang": "en"}]
    tags = [tag for tag, _ in found.elements]
    assert tags.count("table") == tags.count("caption")
    assert all(th.get("scope") in ("col", "row") for th in found.of("th"))
    for drawing in found.of("svg"):
        assert drawing["role"] == "img"
        assert drawing["aria-labelledby"]
    assert {"claim", "attack", "numbers", "charts", "assumed", "law", "repeat"} <= set(ids)
    assert {each["id"] for part in AUTHORITIES for each in part["entry"]} <= set(ids)
    assert tags.index("a") < tags.index("main")  # the skip link comes first


def test_a_name_cannot_become_a_program():
    text = page("evil")
    assert EVIL not in text
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "example.org" not in str([attrs for _, attrs in parsed("evil").elements])


# Numbers ------------------------------------------------------------------------------------------


def at(shown, place):
    for step in place.split("."):
        shown = shown[int(step)] if isinstance(shown, list) else shown[step]
    return shown


@pytest.mark.parametrize("name", SIX)
def test_every_number_is_the_cards(name):
    shown, facts = card(record(name), ABOUT), parsed(name).facts
    for place, value, _ in facts:
        assert json.loads(value) == at(shown, place), place
    places = {place for place, _, _ in facts}
    expected = {f"metrics.{metric}.{end}" for metric in shown["metrics"] for end in ENDS}
    expected |= {f"verdict.metric.{end}" for end in ENDS}
    expected |= {f"claim.metrics.{metric}.value" for metric in shown["claim"]["metrics"]}
    expected |= {f"methods.{method}.epsilon" for method in shown["methods"]}
    expected |= {
        f"groups.{i}.{part}"
        for i in range(len(shown["groups"]))
        for part in ("size", "prior", "belief", "equivalent")
    }
    for i, risk in enumerate(shown["deployment"]["risks"]):
        ends = ["allowed", *["reached"] * risk["measured"], *["acceptable"] * bool(risk["outcome"])]
        expected |= {f"deployment.risks.{i}.{end}" for end in ends}
    if shown["identifiability"]:
        expected |= {"identifiability.advantage.value", "identifiability.exceedance.value"}
        expected |= {
            f"identifiability.epsilons.{way}.value"
            for way, estimate in shown["identifiability"]["epsilons"].items()
            if estimate
        }
    assert expected <= places


ENDS = ("reached", "allowed")


FALLS = f"risks.{[each.reading.name for each in ABOUT.limits].index('bayes_security')}"
"""Bayes security, which falls with the attacker's success: its floor is the claim's."""


@pytest.mark.parametrize("name", SIX)
def test_printed_digits_are_on_the_safe_side(name):
    for place, value, text in parsed(name).facts:
        exact = json.loads(value)
        if exact is None:
            assert text in ("no limit", "any number")
            continue
        number = Decimal(text.replace("\N{NO-BREAK SPACE}%", "").replace(",", ""))
        number /= 100 if "%" in text else 1
        slack = Decimal("1e-12") * abs(Decimal(exact))
        down = place.endswith(("reached", "equivalent", "bayes_security.value"))
        down ^= f"{FALLS}.reached" in place or f"{FALLS}.allowed" in place
        if down or re.fullmatch(r"methods\..*\.epsilon", place):
            assert number <= Decimal(exact) + slack, place
        elif place.endswith(("allowed", "belief", f"{FALLS}.reached")) or place.startswith(
            "claim."
        ):
            assert number >= Decimal(exact) - slack, place
        digits = 1e-2 if place.endswith("equivalent") else 2e-3  # three of them, or four
        assert float(number) == pytest.approx(exact, rel=digits)


@pytest.mark.parametrize("name", ["stands", "di", "evil"])
def test_tables_print_no_number_of_their_own(name):
    """What is in a table's numeric cell is a fact of the card, and nothing else."""
    tree = html5lib.parse(page(name), namespaceHTMLElements=False)
    cells = [td for td in tree.iter("td") if td.get("class") == "n"]
    assert len(cells) > 20
    for cell in cells:
        bare = (cell.text or "") + "".join(child.tail or "" for child in cell)
        assert [child.tag for child in cell] == ["data"]
        assert not re.search(r"\d", bare)


def test_every_way_of_printing_is_used_rightly():
    assert WAYS["floor"](0.12349) == "0.1234"
    assert WAYS["ceiling"](0.12341) == "0.1235"
    assert WAYS["floor-share"](0.12349) == "12.34 %"
    assert WAYS["ceiling-share"](0.12341) == "12.35 %"
    assert way("tpr", "floor") == way("curve", "floor") == "floor-share"
    assert (way("epsilon", "floor"), way("bayes_security", "floor")) == ("floor", "ceiling")
    assert WAYS["members"](1.2399) == "1.23"
    assert WAYS["estimate"](None) == "any number"


# What it says -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIX)
def test_the_verdict_is_at_the_top(name):
    facts = record(name)
    told = seen(name).replace("\N{NO-BREAK SPACE}", " ")
    first, _, rest = told.partition("Appendix for experts")
    assert rest
    for sentence in (
        words.headline(facts), words.how_sure(facts), words.what_happened(facts),
        *words.notices(facts), *words.meaning(facts), *words.not_said(facts),
    ):  # fmt: skip
        assert " ".join(sentence.split()) in first
    for part in (facts.claim.described, facts.about):
        assert " ".join(part.split()) in rest
    assert f"Verdict: {facts.verdict.outcome}" in first
    for risk in risks(facts, ABOUT.limits):
        assert f"{sentences.title(risk.numbers)} {sentences.explained(facts, risk)}" in first
        claimed = Reading(risk.numbers.name, risk.numbers.conditions).of(facts.claim.curve).sentence
        assert (claimed in first) == (risk.numbers.name == "bayes_security" and not void(facts))


def void(facts):
    return bool(words.unreliable(facts))


SAYS = {
    "broken": [
        "What had been promised to one person", "none of its limits can be relied on",
    ],
    "understated": [
        "The claim is not kept, as far as can be certified",
        "What is certified for one person in the data", "Claimed, at most", "claimed limit",
        "certified for the tested settings, which allow more than the claim",
    ],
    "objected-above": ["A bound that does not count", "What was to decide"],
    "stands": [
        "The number that decides", "The training is (", "It was named before the trials",
        "Reached: a lower bound with 95 % confidence.", "only band was named before the trials",
        "band (named)", 'adversary = "malicious-dataset"',
        "dprime audit audit.toml --seed-from stands.run --run again.run",
    ],
    "bayesian": [
        "Reached: a lower bound with a posterior probability of 95 %",
        "the others served to choose the threshold",
    ],
    "curve": ["The whole curve was named before the trials"],
    "di": ["a point estimate with no confidence", "the local sensitivities predict"],
    "evil": ["begun in Python"],
    "local": ["holds for the two data sets that were tested"],
}  # fmt: skip
NEVER = {
    "broken": ["no attacker does better", "The training is ("],
    "objected-above": ["This attacker, at least"],
    "understated": ["certified limit", "Certified for", "in the data, what an observer"],
    "local": ["The training is ("],
    "stands": ["clopper-pearson (named)", "the others served to choose the threshold"],
    "sampled-di": ["the local sensitivities predict"],
    "evil": ["dprime audit"],
}


@pytest.mark.parametrize("name", [*SAYS, "sampled-di"])
def test_what_is_said_and_what_is_not(name):
    told = seen(name).replace("\N{NO-BREAK SPACE}", " ")
    assert [sentence for sentence in SAYS.get(name, ()) if sentence not in told] == []
    assert [sentence for sentence in NEVER.get(name, ()) if sentence in told] == []


def test_fields_are_shown_or_left_to_be_filled_in():
    tree = html5lib.parse(page("stands"), namespaceHTMLElements=False)
    shown = {each.find("dt").text: each.find("dd") for each in tree.findall(".//dl/div")}
    assert shown[FIELDS["organisation"].help].text == ABOUT.organisation
    blank = [each.help for each in FIELDS.values() if each.name not in ("organisation", "accuracy")]
    assert FIELDS["confirmed_by"].help in blank
    assert all(shown[label].get("class") == "blank" for label in blank)


def test_what_the_noise_costs_is_told_only_by_those_who_decide():
    """No audit measures it."""
    stands = record("stands")
    with patch("dprime.show.report.inline_svg", drawn):
        told = report_html(stands, about=Deployment(accuracy="91 %, and 94 % without the noise"))
    assert "What the noise costs" not in page("stands")
    assert "no part of this test: 91" in told
    assert told.count("without the noise") == 1


def test_the_footer_of_a_printed_page_cannot_leave_its_quotation_marks():
    facts = dataclasses.replace(record("stands"), name='"; } </style><script>')
    with patch("dprime.show.report.inline_svg", drawn):
        text = report_html(facts)
    (footer,) = re.findall(r'@bottom-left \{ content: "(.*)"; \}', text)
    told = re.sub(r"\\([0-9a-f]+) ", lambda each: chr(int(each.group(1), 16)), footer)
    assert told.startswith(f"{facts.name}, ")
    assert not re.search(r'["<>{};]', footer)


def test_the_colour_of_a_verdict():
    kinds = {"broken": "refuted", "stands": "not-refuted", "objected-above": "undecided"}
    for name, kind in kinds.items():
        assert parsed(name).of("body") == [{"class": kind}]


# Charts -------------------------------------------------------------------------------------------

ALWAYS = ["trade-off", "trade-off-log", "scores"]
CLAIMED = ["risk-noise-multiplier", "risk-steps", "bayes-security", "precision"]
"""Where the claim is that of a DP-SGD and stands."""


@pytest.mark.parametrize(
    ("name", "others", "more"),
    [
        ("stands", (), CLAIMED),
        ("stands", ("gradient", "api"), ["ladder", *CLAIMED]),
        ("di", (), ["belief", "belief-distribution", "sensitivity", *CLAIMED]),
        ("local", (), ["belief", "belief-distribution", "sensitivity"]),
        ("broken", (), []),
        ("evil", (), CLAIMED),
    ],
)
def test_charts(name, others, more):
    facts = record(name, *others)
    charts = charts_of(facts)
    assert [chart.name for chart in charts] == [*ALWAYS, *more]
    claim = describe(facts.claim.mechanism.to_dict(), facts.adjacency)
    assert all(claim in chart.of for chart in charts)
    text = page(name, *others)
    for chart in charts:
        assert text.count(f'id="chart-{chart.name}"') == 1


def test_charts_are_made_and_drawn_once():
    stands = record("stands")
    with (
        patch("dprime.show.report.inline_svg", side_effect=drawn) as draws,
        patch("dprime.show.report.charts_of", side_effect=charts_of) as makes,
    ):
        drawings = drawings_of(stands)
        assert report_html(stands, drawings, ABOUT) == page("stands")
    assert makes.call_count == 1
    assert draws.call_count == len(drawings)


def test_a_chart_has_its_numbers_below_it():
    chart = charts_of(record("stands"))[0]
    tree = html5lib.parse(page("stands"), namespaceHTMLElements=False)
    tables = tree.findall(".//section[@class='chart']/details//table")
    assert len(tables) == len(ALWAYS + CLAIMED)
    columns = [th.text for th in tables[0].iter("th")]
    rows = [[td.text for td in tr.iter("td")] for tr in tables[0].iter("tr")][1:]
    for shown, row in zip(rows, chart.table(), strict=True):
        for name, cell in zip(columns, shown, strict=True):
            value = row[name.replace(" ", "_")]
            assert (cell or "").replace("\N{NO-BREAK SPACE}", " ") == (
                "" if value is None else str(value)
            )


def by_name(chart):
    return {each.name: each for each in chart.series}


def test_the_drawn_curves_are_the_stores():
    with Run.open(run("stands")) as store:
        answer = store.result
    drawn = by_name(charts_of(record("stands"))[0])
    assert drawn["certified limit"].y == answer["claim"]["tpr"]
    assert drawn["reached (95 % sure)"].y == answer["lower"]["band"]["tpr"]
    assert answer["verdict"]["outcome"] != "refuted"
    assert "claimed limit" in by_name(charts_of(record("broken"))[0])


def test_no_finding_is_told_twice():
    headings = re.findall(r'<h4 id="chart-[^"]+">(.*?)</h4>', page("stands"))
    assert len(headings) == len(set(headings)) == len(ALWAYS + CLAIMED)


def test_the_certified_belief_is_drawn_where_there_is_one():
    facts = record("di")
    made = {chart.name: chart for chart in charts_of(facts)}
    last = facts.claim.curve.belief(prior=0.4, exceeded=1e-3)
    drawn = by_name(made["belief"])
    limit = drawn["certified limit"]
    assert (limit.x[-1], limit.y[-1]) == (4, pytest.approx(last, rel=1e-9))
    assert drawn["with the record"].y[0] == 0.4
    assert "ended above 80 %" in made["belief"].title
    local = {chart.name: chart for chart in charts_of(record("local"))}
    assert "certified limit" not in by_name(local["belief"])


def test_a_ladder_of_the_same_claim_only():
    with pytest.raises(ValueError, match=r"run must be a run against the claim of stands\.run"):
        record("stands", "broken")


def test_the_ladder_names_every_run():
    stands = record("stands", "success", "api")
    made = charts_of(stands)
    ladder = next(chart for chart in made if chart.name == "ladder")
    reached, allowed = ladder.series
    assert {*reached.x} == {
        "malicious-dataset (stands.run)", "malicious-dataset (success.run)", "api-access",
    }  # fmt: skip
    assert allowed.y == (stands.claim.metrics["d_prime"]["value"],)
    assert reached.y == sorted(reached.y)
    told = seen("stands", "gradient", "api")
    assert "Other attackers against the same claim" in told
    facts = {place: value for place, value, _ in parsed("stands", "gradient", "api").facts}
    other = record("gradient")
    assert json.loads(facts["beside.0.verdict.metric.reached"]) == other.deciding.reached


# What an audit cannot see -------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIX)
def test_it_says_what_an_audit_cannot_see(name):
    engine = record(name).attacked["training"] is not None
    text = html5lib.parse(page(name), namespaceHTMLElements=False)
    section = text.find(".//h3[@id='cannot-see']/../..")
    shown = [" ".join("".join(item.itertext()).split()) for item in section.iter("li")]
    assert shown == list(blind_spots.cannot_see(engine=engine))
    assert blind_spots.WHY in section.find("p").text


def test_the_documents_list_what_an_audit_cannot_see():
    text = (ROOT / "docs" / "auditing.md").read_text(encoding="utf-8")
    section = re.search(r"## What an audit cannot see\n(.*?)\n## ", text, re.DOTALL).group(1)
    items = [" ".join(each.split()) for each in re.findall(r"- (.*?)(?=\n- |\n\n)", section, re.S)]
    assert items == [*blind_spots.ALWAYS, *blind_spots.ENGINE]
    assert blind_spots.WHY in " ".join(section.split())


def test_the_deciding_number_is_the_same_in_table_sentence_and_chart():
    """Of a verdict by the whole curve: the point where the curves were compared is drawn."""
    facts = record("curve")
    reading = by_name(charts_of(facts)[0])["this rate"]
    assert set(reading.x) == {facts.decided_at}
    assert reading.y == [facts.deciding.allowed, facts.deciding.reached]
    assert f"at least {sentences.floor(facts.deciding.reached)}" in facts.sentence


def test_runs_that_were_decided_at_other_points_have_the_same_claim():
    one, other = record("curve"), record("stands")
    assert (one.decided_at is None, other.decided_at is None) == (False, True)
    assert one.claim.same_as(other.claim)
    assert other.claim.same_as(one.claim)
