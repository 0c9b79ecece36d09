"""The report: a valid page that opens offline, and whose numbers are the store's."""

import dataclasses
import functools
import itertools
import json
import re
from decimal import Decimal
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
from dprime.show.report import AUTHORITIES
from dprime.text import describe
from show.examples import drawn

ROOT = Path(__file__).parents[2]
ABOUT = Deployment.of({
    "organisation": "A <clinic> & its partners", "advantage": 0.3, "bayes_security": 0.4,
    "tpr": 0.02, "fpr": 0.003, "epsilon": 8.0,
})  # fmt: skip
"""Some fields of those who decide, and limits."""

every_run = pytest.mark.parametrize("name", SIX)


def record(name, *others):
    return compared(record_of(run(name)), [record_of(run(other)) for other in others])


def told_of(chart):
    """In place of a drawing; how charts are drawn is tested with them."""
    told = f'<title id="{chart.name}-title">{chart.name}</title>'
    return f'<svg role="img" aria-labelledby="{chart.name}-title" viewBox="0 0 1 1">{told}</svg>'


def written(facts, about=ABOUT):
    with patch("dprime.show.report.inline_svg", told_of):
        return report_html(facts, about=about)


@functools.cache
def page(name, *others):
    return written(record(name, *others))


@functools.cache
def tree(name, *others):
    return html5lib.parse(page(name, *others), namespaceHTMLElements=False)


@functools.cache
def facts_of(name, *others):
    """Its numbers: the place in the card, the exact value, and what is printed."""
    numbers = tree(name, *others).iter("data")
    return [(each.get("data-fact"), json.loads(each.get("value")), each.text) for each in numbers]


def seen(name, *others):
    """The page's text as one line."""
    parts = [
        t for e in tree(name, *others).iter() if e.tag != "style" for t in (e.text, e.tail) if t
    ]
    return " ".join(" ".join(parts).split()).replace("\N{NO-BREAK SPACE}", " ")


# A page -------------------------------------------------------------------------------------------


@every_run
def test_small_valid_and_offline(name):
    text = page(name)
    html5lib.HTMLParser(strict=True).parse(text)
    assert (name == "evil") == bool(re.search(r"https?:", text))
    elements = [each for each in tree(name).iter() if isinstance(each.tag, str)]
    tags = {each.tag for each in elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    for each in elements:
        assert not any(attribute.startswith("on") for attribute in each.attrib)
        assert not {"src", "srcset", "action", "ping"} & {*each.attrib}
        assert each.get("href", "#").startswith("#")
        assert "url(" not in each.get("style", "")
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL).group(1)
    assert not re.search(r"url\(|@import", style)
    policies = [each.get("content") for each in elements if each.get("http-equiv")]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


@every_run
def test_structure(name):
    elements = [each for each in tree(name).iter() if isinstance(each.tag, str)]
    ids = [each.get("id") for each in elements if each.get("id")]
    assert len(ids) == len(set(ids))
    for each in elements:
        for attribute in ("aria-labelledby", "aria-describedby"):
            assert {*each.get(attribute, "").split()} <= {*ids}
        assert each.get("href", "#") in ("#", *(f"#{known}" for known in ids))
    tags = [each.tag for each in elements]
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    assert tree(name).attrib == {"lang": "en"}
    assert tags.count("table") == tags.count("caption")
    assert all(th.get("scope") in ("col", "row") for th in tree(name).iter("th"))
    assert {"claim", "attack", "numbers", "charts", "assumed", "law", "repeat"} <= {*ids}
    assert {each["id"] for part in AUTHORITIES for each in part["entry"]} <= {*ids}
    assert tags.index("a") < tags.index("main")  # the skip link comes first


@pytest.mark.slow
def test_a_page_with_its_drawings():
    text = report_html(record("stands"))
    html5lib.HTMLParser(strict=True).parse(text)
    assert len(text.encode()) < 3_000_000
    assert text.count("<svg") == len(ALWAYS + CLAIMED)  # each chart is drawn once
    assert not re.search(r"https?:", text)


def test_a_name_cannot_become_a_program_nor_leave_its_quotation_marks():
    assert EVIL not in page("evil")
    assert "&lt;script&gt;" in page("evil")
    assert "example.org" not in str([each.attrib for each in tree("evil").iter()])
    facts = dataclasses.replace(record("stands"), name='"; } </style><script>')
    (footer,) = re.findall(r'@bottom-left \{ content: "(.*)"; \}', written(facts))
    told = re.sub(r"\\([0-9a-f]+) ", lambda each: chr(int(each.group(1), 16)), footer)
    assert told.startswith(f"{facts.name}, ")
    assert not re.search(r'["<>{};]', footer)


# Numbers ------------------------------------------------------------------------------------------

ENDS = ("reached", "allowed")


def at(shown, place):
    for step in place.split("."):
        shown = shown[int(step)] if isinstance(shown, list) else shown[step]
    return shown


@every_run
def test_every_number_is_the_cards(name):
    shown = card(record(name), ABOUT)
    for place, value, _ in facts_of(name):
        assert value == at(shown, place), place
    expected = {f"metrics.{metric}.{end}" for metric in shown["metrics"] for end in ENDS}
    expected |= {f"verdict.metric.{end}" for end in ENDS}
    expected |= {f"claim.metrics.{metric}.value" for metric in shown["claim"]["metrics"]}
    expected |= {f"methods.{method}.epsilon" for method in shown["methods"]}
    parts = ("size", "prior", "belief", "equivalent")
    expected |= {f"groups.{i}.{part}" for i in range(len(shown["groups"])) for part in parts}
    for i, risk in enumerate(shown["deployment"]["risks"]):
        ends = ["allowed", *["reached"] * risk["measured"], *["acceptable"] * bool(risk["outcome"])]
        expected |= {f"deployment.risks.{i}.{end}" for end in ends}
    if found := shown["identifiability"]:
        known = [f"epsilons.{way}" for way, each in found["epsilons"].items() if each]
        known += ["advantage", "exceedance"]
        expected |= {f"identifiability.{part}.value" for part in known}
    assert expected <= {place for place, *_ in facts_of(name)}


FALLS = f"risks.{[each.reading.name for each in ABOUT.limits].index('bayes_security')}"
"""Bayes security, which falls with the attacker's success: its floor is the claim's."""


@every_run
def test_printed_digits_are_on_the_safe_side(name):
    for place, exact, text in facts_of(name):
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
    cells = [td for td in tree(name).iter("td") if td.get("class") == "n"]
    assert len(cells) > 20
    for cell in cells:
        bare = (cell.text or "") + "".join(child.tail or "" for child in cell)
        assert [child.tag for child in cell] == ["data"]
        assert not re.search(r"\d", bare)


# What it says -------------------------------------------------------------------------------------


@every_run
def test_the_verdict_is_at_the_top(name):
    facts = record(name)
    first, _, rest = seen(name).partition("Appendix for experts")
    for sentence in (
        words.headline(facts), words.how_sure(facts), words.what_happened(facts),
        *words.notices(facts), *words.meaning(facts), *words.not_said(facts),
    ):  # fmt: skip
        assert " ".join(sentence.split()) in first
    for part in (facts.claim.described, facts.about):
        assert " ".join(part.split()) in rest
    assert f"Verdict: {facts.verdict.outcome}" in first
    void = bool(words.unreliable(facts))
    for risk in risks(facts, ABOUT.limits):
        assert f"{sentences.title(risk.numbers)} {sentences.explained(facts, risk)}" in first
        claimed = Reading(risk.numbers.name, risk.numbers.conditions).of(facts.claim.curve).sentence
        assert (claimed in first) == (risk.numbers.name == "bayes_security" and not void)


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
    "sampled-di": [],
}  # fmt: skip
NEVER = {
    "broken": ["no attacker does better", "The training is ("],
    "objected-above": ["This attacker, at least"],
    "understated": ["certified limit", "Certified for", "in the data, what an observer"],
    "local": ["The training is ("],
    "stands": [
        "clopper-pearson (named)", "the others served to choose the threshold",
        "What the noise costs",
    ],
    "sampled-di": ["the local sensitivities predict"],
    "evil": ["dprime audit"],
}  # fmt: skip
COLOURS = {"broken": "refuted", "stands": "not-refuted", "objected-above": "undecided"}


@pytest.mark.parametrize("name", SAYS)
def test_what_is_said_and_what_is_not(name):
    told = seen(name)
    assert [sentence for sentence in SAYS[name] if sentence not in told] == []
    assert [sentence for sentence in NEVER.get(name, ()) if sentence in told] == []
    colour = tree(name).find("body").get("class")
    assert COLOURS.get(name, colour) == colour


def test_fields_are_shown_or_left_to_be_filled_in():
    shown = {each.find("dt").text: each.find("dd") for each in tree("stands").findall(".//dl/div")}
    assert shown[FIELDS["organisation"].help].text == ABOUT.organisation
    blank = [each.help for each in FIELDS.values() if each.name not in ("organisation", "accuracy")]
    assert all(shown[label].get("class") == "blank" for label in blank)
    told = written(record("stands"), Deployment(accuracy="91 %, and 94 % without the noise"))
    assert "no part of this test: 91" in told  # which no audit measures
    assert told.count("without the noise") == 1


@every_run
def test_it_says_what_an_audit_cannot_see(name):
    engine = record(name).attacked["training"] is not None
    section = tree(name).find(".//h3[@id='cannot-see']/../..")
    shown = [" ".join("".join(item.itertext()).split()) for item in section.iter("li")]
    assert shown == list(blind_spots.cannot_see(engine=engine))
    assert blind_spots.WHY in section.find("p").text


def test_the_documents_list_what_an_audit_cannot_see():
    text = (ROOT / "docs" / "auditing.md").read_text(encoding="utf-8")
    section = re.search(r"## What an audit cannot see\n(.*?)\n## ", text, re.DOTALL).group(1)
    items = [" ".join(each.split()) for each in re.findall(r"- (.*?)(?=\n- |\n\n)", section, re.S)]
    assert items == [*blind_spots.ALWAYS, *blind_spots.ENGINE]
    assert blind_spots.WHY in " ".join(section.split())


# Charts -------------------------------------------------------------------------------------------

ALWAYS = ["trade-off", "trade-off-log", "scores"]
BELIEFS = ["belief", "belief-distribution", "sensitivity"]
CLAIMED = ["risk-noise-multiplier", "risk-steps", "bayes-security", "precision"]
"""Where the claim is that of a DP-SGD and stands."""


@pytest.mark.parametrize(
    ("names", "more"),
    [
        (("stands",), CLAIMED),
        (("stands", "gradient", "api"), ["ladder", *CLAIMED]),
        (("di",), [*BELIEFS, *CLAIMED]),
        (("local",), BELIEFS),
        (("broken",), []),
        (("evil",), CLAIMED),
    ],
)
def test_each_chart_is_told_once_with_its_numbers_below_it(names, more):
    facts = record(*names)
    charts, claim = charts_of(facts), describe(facts.claim.mechanism.to_dict(), facts.adjacency)
    assert [chart.name for chart in charts] == [*ALWAYS, *more]
    assert all(claim in chart.of for chart in charts)
    sections = tree(*names).findall(".//section[@class='chart']")
    headings = [each.find("h4").text for each in sections]
    assert len(headings) == len({*headings})
    for chart, section in zip(charts, sections, strict=True):
        assert section.find("h4").get("id") == f"chart-{chart.name}"
        columns = [th.text.replace(" ", "_") for th in section.iter("th")]
        rows = [[td.text or "" for td in tr.iter("td")] for tr in section.iter("tr")][1:]
        table = chart.table()
        expected = [
            ["" if row[name] is None else str(row[name]) for name in columns] for row in table
        ]
        assert [
            [cell.replace("\N{NO-BREAK SPACE}", " ") for cell in row] for row in rows
        ] == expected
        left_out = {*table[0]} - {*columns}
        assert not any(row[name] for row in table for name in left_out)


def test_charts_that_are_at_hand_are_not_made_again():
    with patch("dprime.show.report.charts_of", side_effect=AssertionError):
        assert "chart-scores" not in report_html(record("stands"), ())


def test_the_drawn_curves_are_the_stores():
    with Run.open(run("stands")) as store:
        answer = store.result
    lines = drawn(charts_of(record("stands"))[0])
    assert lines["certified limit"].y == answer["claim"]["tpr"]
    assert lines["reached (95 % sure)"].y == answer["lower"]["band"]["tpr"]
    assert "claimed limit" in drawn(charts_of(record("broken"))[0])


def test_the_certified_belief_is_drawn_where_there_is_one():
    facts = record("di")
    made, local = (
        {chart.name: chart for chart in charts_of(each)} for each in (facts, record("local"))
    )
    lines = drawn(made["belief"])
    limit, last = lines["certified limit"], facts.claim.curve.belief(prior=0.4, exceeded=1e-3)
    assert (limit.x[-1], limit.y[-1]) == (4, pytest.approx(last, rel=1e-9))
    assert lines["with the record"].y[0] == 0.4
    assert "ended above 80 %" in made["belief"].title
    assert "certified limit" not in drawn(local["belief"])


def test_the_ladder_names_every_run():
    stands = record("stands", "success", "api")
    ladder = next(chart for chart in charts_of(stands) if chart.name == "ladder")
    reached, allowed = ladder.series
    assert {*reached.x} == {
        "malicious-dataset (stands.run)", "malicious-dataset (success.run)", "api-access",
    }  # fmt: skip
    assert allowed.y == (stands.claim.metrics["d_prime"]["value"],)
    assert [*reached.y] == sorted(reached.y)
    assert "Other attackers against the same claim" in seen("stands", "gradient", "api")
    facts = {place: value for place, value, _ in facts_of("stands", "gradient", "api")}
    assert facts["beside.0.verdict.metric.reached"] == record("gradient").deciding.reached


def test_the_deciding_number_is_the_same_in_table_sentence_and_chart():
    """Of a verdict by the whole curve: the point where the curves were compared is drawn."""
    facts, other = record("curve"), record("stands")
    reading = drawn(charts_of(facts)[0])["this rate"]
    assert {*reading.x} == {facts.decided_at}
    assert reading.y == [facts.deciding.allowed, facts.deciding.reached]
    assert f"at least {sentences.floor(facts.deciding.reached)}" in facts.sentence
    assert other.decided_at is None
    assert facts.claim.same_as(other.claim)
    assert other.claim.same_as(facts.claim)
