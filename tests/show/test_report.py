"""The report: a valid page that opens offline, and whose numbers are the store's."""

import functools
import itertools
import json
import re
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import html5lib
import pytest

from audited import CONCLUDED, EVIL, run
from dprime.audit import blind_spots, record_of
from dprime.runs.run import Run
from dprime.show import card, figures_of, report_html, words
from dprime.show.report import SECTIONS, WAYS

ROOT = Path(__file__).parents[2]
LARGEST = 3_000_000
"""Bytes of a report."""


@functools.cache
def page(name, *others):
    return report_html(record_of(run(name)), [record_of(run(other)) for other in others])


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


@pytest.mark.slow
@pytest.mark.parametrize("name", CONCLUDED)
def test_a_strict_parser_has_no_objection(name):
    """Of the charts, which are most of a page and alike, one page's are enough."""
    text = page(name)
    if name != "stands":
        text = re.sub(r"(<svg[^>]*>).*?</svg>", r"\1</svg>", text, flags=re.DOTALL)
    html5lib.HTMLParser(strict=True).parse(text)


@pytest.mark.parametrize("name", CONCLUDED)
def test_small_and_offline(name):
    text = page(name)
    assert len(text.encode()) < LARGEST
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


@pytest.mark.parametrize("name", CONCLUDED)
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
    assert {section for section, _ in SECTIONS} <= set(ids)
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


@pytest.mark.parametrize("name", CONCLUDED)
def test_every_number_is_the_cards(name):
    shown, facts = card(record_of(run(name))), parsed(name).facts
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
    if shown["identifiability"]:
        expected |= {"identifiability.advantage.value", "identifiability.exceedance.value"}
        expected |= {
            f"identifiability.epsilons.{way}.value"
            for way, estimate in shown["identifiability"]["epsilons"].items()
            if estimate
        }
    assert expected <= places


ENDS = ("reached", "allowed")


@pytest.mark.parametrize("name", CONCLUDED)
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
        if down or re.fullmatch(r"methods\..*\.epsilon", place):
            assert number <= Decimal(exact) + slack, place
        elif place.endswith(("allowed", "belief")) or place.startswith("claim."):
            assert number >= Decimal(exact) - slack, place
        digits = 1e-2 if place.endswith("equivalent") else 2e-3  # three of them, or four
        assert float(number) == pytest.approx(exact, rel=digits)


@pytest.mark.parametrize("name", ["stands", "di", "own"])
def test_tables_print_no_number_of_their_own(name):
    """What is in a table's numeric cell is a fact of the card, and nothing else."""
    tree = html5lib.parse(page(name), namespaceHTMLElements=False)
    cells = [td for td in tree.iter("td") if td.get("class") == "n"]
    assert len(cells) > 20
    for cell in cells:
        bare = (cell.text or "") + "".join(child.tail or "" for child in cell)
        assert [child.tag for child in cell] == ["data"]
        assert not re.search(r"\d", bare)


@pytest.mark.parametrize("name", ["stands", "broken", "di"])
def test_the_numbers_are_the_stores(name):
    with Run.open(run(name)) as store:
        answer = store.result
    facts = {place: json.loads(value) for place, value, _ in parsed(name).facts}
    for end in ENDS:
        assert facts[f"verdict.metric.{end}"] == answer["verdict"][end]
        for kept in answer["rows"]:
            assert facts[f"metrics.{kept['name']}.{end}"] == kept[end]
    for metric, kept in answer["claim"]["metrics"].items():
        assert facts[f"claim.metrics.{metric}.value"] == kept["value"]
    for world in ("in", "out"):
        assert facts[f"attack.trials.{world}"] == answer["trials"][world]


def test_every_way_of_printing_is_used_rightly():
    assert WAYS["floor"](0.12349) == "0.1234"
    assert WAYS["ceiling"](0.12341) == "0.1235"
    assert WAYS["percent"](0.12341) == "12.35 %"
    assert WAYS["members"](1.2399) == "1.23"
    assert WAYS["estimate"](None) == "any number"


# What it says -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONCLUDED)
def test_the_verdict_is_at_the_top(name):
    facts = record_of(run(name))
    told = seen(name).replace("\N{NO-BREAK SPACE}", " ")
    first, _, rest = told.partition("The claim What was claimed")
    assert rest
    for sentence in (
        words.headline(facts), words.how_sure(facts), words.what_happened(facts),
        *words.notices(facts), *words.meaning(facts), *words.not_said(facts),
    ):  # fmt: skip
        assert " ".join(sentence.split()) in first
    for part in (facts.sentence, facts.claim.described, facts.about):
        assert " ".join(part.split()) in rest


def test_the_promise_of_a_refuted_claim_is_past():
    told = seen("broken")
    assert "What had been promised to one person" in told
    assert "no attacker does better" not in told
    assert "none of its limits can be relied on" in told
    assert parsed("broken").of("body") == [{"class": "refuted"}]


def test_a_bound_that_does_not_count_is_not_drawn_as_if_it_did():
    told = seen("objected-above")
    assert "A bound that does not count" in told
    assert "This attacker, at least" not in told
    assert "What was to decide" in told
    assert "The number that decides" in seen("stands")


@pytest.mark.parametrize("name", ["broken", "local"])
def test_no_sentence_calls_private_what_is_refuted_or_not_dp(name):
    assert "The training is (" not in seen(name)
    assert "The training is (" in seen("stands")


def test_a_credible_bound_is_not_given_a_confidence():
    assert "Reached: a lower bound with 95 % confidence." in seen("stands")
    assert "Reached: a lower bound with a posterior probability of 95 %" in seen("bayesian")


def test_the_place_on_the_curve_was_not_named_before_the_trials():
    assert "The whole curve was named before the trials" in seen("curve")
    assert "It was named before the trials" in seen("stands")


def test_other_methods_are_for_comparison():
    told = seen("stands")
    assert "only band was named before the trials" in told
    assert "band (named)" in told
    assert "clopper-pearson (named)" not in told


def test_point_estimates_are_called_so():
    told = seen("di")
    assert told.count("a point estimate with no confidence") >= 4
    assert "predict" not in seen("sampled-di").partition("Differential identifiability")[2][:600]


def test_how_to_repeat_it():
    told = seen("stands")
    assert "dprime audit audit.toml --seed-from stands.run --run again.run" in told
    assert 'adversary = "malicious-dataset"' in told
    assert "dprime audit" not in seen("python")
    assert "begun in Python" in seen("python")


# Charts -------------------------------------------------------------------------------------------

ALWAYS = ["trade-off", "trade-off-log", "scores"]
CLAIMED = ["risk-noise-multiplier", "risk-steps", "bayes-security", "precision"]
"""Where the claim is that of a DP-SGD and stands."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "others", "more"),
    [
        ("stands", (), CLAIMED),
        ("stands", ("gradient", "api"), ["ladder", *CLAIMED]),
        ("di", (), ["belief", "belief-distribution", "sensitivity", *CLAIMED]),
        ("local", (), ["belief", "belief-distribution", "sensitivity"]),
        ("broken", (), []),
        ("own", (), []),
    ],
)
def test_figures(name, others, more):
    figures = figures_of(record_of(run(name)), [record_of(run(other)) for other in others])
    assert [figure.name for figure in figures] == [*ALWAYS, *more]
    text = page(name, *others)
    for figure in figures:
        assert f'id="chart-{figure.name}"' in text
    assert text.count("<svg") == 2 * len(figures)


def test_a_chart_has_its_numbers_below_it():
    figure = figures_of(record_of(run("stands")))[0]
    tree = html5lib.parse(page("stands"), namespaceHTMLElements=False)
    tables = [table for details in tree.iter("details") for table in details.iter("table")]
    assert len(tables) == len(ALWAYS + CLAIMED)
    columns = [th.text for th in tables[0].iter("th")]
    rows = [[td.text for td in tr.iter("td")] for tr in tables[0].iter("tr")][1:]
    assert len(rows) == len(figure.table())
    for shown, row in zip(rows, figure.table(), strict=True):
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
    drawn = by_name(figures_of(record_of(run("stands")))[0])
    assert drawn["certified limit"].y == answer["claim"]["tpr"]
    assert drawn["reached (95 % sure)"].y == answer["lower"]["band"]["tpr"]
    assert answer["verdict"]["outcome"] != "refuted"
    assert "claimed limit" in by_name(figures_of(record_of(run("broken")))[0])


def test_no_finding_is_told_twice():
    headings = re.findall(r'<h3 id="chart-[^"]+">(.*?)</h3>', page("stands"))
    assert len(headings) == len(set(headings)) == len(ALWAYS + CLAIMED)


def test_the_certified_belief_is_drawn_where_there_is_one():
    made = {figure.name: figure for figure in figures_of(record_of(run("di")))}
    facts = record_of(run("di"))
    last = facts.claim.curve.belief(prior=0.4, exceeded=1e-3)
    drawn = by_name(made["belief"])
    limit = drawn["certified limit"]
    assert (limit.x[-1], limit.y[-1]) == (4, pytest.approx(last, rel=1e-9))
    assert drawn["with the record"].y[0] == 0.4
    assert "ended above 80 %" in made["belief"].title
    local = {figure.name: figure for figure in figures_of(record_of(run("local")))}
    assert "certified limit" not in by_name(local["belief"])
    assert "holds for the two data sets that were tested" in seen("local")


def test_a_ladder_of_the_same_claim_only():
    stands, broken = record_of(run("stands")), record_of(run("broken"))
    with pytest.raises(ValueError, match=r"run must be a run against the claim of stands\.run"):
        figures_of(stands, [broken])
    with pytest.raises(ValueError, match="run must be"):
        report_html(stands, [broken])


def test_the_ladder_names_every_run():
    stands, again = record_of(run("stands")), record_of(run("success"))
    made = figures_of(stands, [again, record_of(run("api"))])
    ladder = next(figure for figure in made if figure.name == "ladder")
    reached, allowed = ladder.series
    assert {*reached.x} == {
        "malicious-dataset (stands.run)", "malicious-dataset (success.run)", "api-access",
    }  # fmt: skip
    assert allowed.y == (stands.claim.metrics["d_prime"]["value"],)
    assert reached.y == sorted(reached.y)
    told = seen("stands", "gradient", "api")
    assert "Other attackers against the same claim" in told
    facts = {place: value for place, value, _ in parsed("stands", "gradient", "api").facts}
    other = record_of(run("gradient"))
    assert json.loads(facts["beside.0.verdict.metric.reached"]) == other.deciding.reached


# What an audit cannot see -------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONCLUDED)
def test_it_says_what_an_audit_cannot_see(name):
    engine = record_of(run(name)).attacked["training"] is not None
    text = html5lib.parse(page(name), namespaceHTMLElements=False)
    section = text.find(".//section[@aria-labelledby='cannot-see']")
    shown = [" ".join("".join(item.itertext()).split()) for item in section.iter("li")]
    assert shown == list(blind_spots.cannot_see(engine=engine))
    assert blind_spots.WHY in section.find("p").text


def test_both_kinds_of_trainer_are_reported_on():
    trainings = [record_of(run(name)).attacked["training"] for name in CONCLUDED]
    assert any(each is None for each in trainings)
    assert any(each is not None for each in trainings)


def test_the_documents_list_what_an_audit_cannot_see():
    text = (ROOT / "docs" / "auditing.md").read_text(encoding="utf-8")
    section = re.search(r"## What an audit cannot see\n(.*?)\n## ", text, re.DOTALL).group(1)
    items = [" ".join(each.split()) for each in re.findall(r"- (.*?)(?=\n- |\n\n)", section, re.S)]
    assert items == [*blind_spots.ALWAYS, *blind_spots.ENGINE]
    assert blind_spots.WHY in " ".join(section.split())


def test_the_deciding_number_is_the_same_in_table_sentence_and_chart():
    """Of a verdict by the whole curve: the point where the curves were compared is drawn."""
    facts = record_of(run("curve"))
    reading = by_name(figures_of(facts)[0])["this rate"]
    assert set(reading.x) == {facts.decided_at}
    assert reading.y == [facts.deciding.allowed, facts.deciding.reached]
    assert f"at least {words.floor(facts.deciding.reached)}" in facts.sentence


def test_runs_that_were_decided_at_other_points_have_the_same_claim():
    one = record_of(run("curve"))
    other = record_of(run("stands"))
    assert one.decided_at is not None
    assert other.decided_at is None
    assert one.claim.same_as(other.claim)
    assert other.claim.same_as(one.claim)
