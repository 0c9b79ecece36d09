"""What "certified" means is worded once, and every place prints the same sentence."""

import html
import io
import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import dprime
from audited import run
from dprime import text
from dprime.audit import lower_bound, plan, record_of
from dprime.cli.tables import risk_table
from dprime.consequences import consequences
from dprime.mechanisms import ADJACENCIES
from dprime.metrics import risk_profile
from dprime.monitor import Ledger, StepRecord, summary
from dprime.show import card, card_markdown, model_card, registry_entry, report_html
from dprime.show.sentences import say
from dprime.solve import solve
from dprime.web.service import ExplorerService
from test_mechanisms import EVERY
from told import one_line

TRAINING = dprime.DPSGD(noise_multiplier=1.1, sample_rate=0.004, steps=14_000)
ROOT = Path(__file__).parents[1]


def words(path):
    return " ".join(path.read_text(encoding="utf-8").split())


def terminal(adjacency):
    console = Console(width=300, file=io.StringIO(), record=True)
    console.print(risk_table("", risk_profile(TRAINING.curve(adjacency)), adjacency))
    return console.export_text()


def monitored(adjacency):
    answers = risk_profile(TRAINING.curve(adjacency))
    return summary.report("epoch 1", TRAINING, adjacency, answers, None, [], [])


def page(adjacency):
    numbers = {"noise_multiplier": "1.1", "sample_rate": "0.004", "steps": "14000"}
    found = ExplorerService().risk({**numbers, "adjacency": adjacency})
    return f"{found.certified}\n{found.certified_in_full}"


def shown_of(name):
    """The report, the card and its Markdown of a run."""
    record = record_of(run(name))
    report = html.unescape(report_html(record)).replace("\N{NO-BREAK SPACE}", " ")
    return report, json.dumps(card(record), ensure_ascii=False), card_markdown(record)


RUNS = {"replace": ["replace"], "zero-out": ["stands"], "add-remove": []}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_every_place_prints_the_same_sentence(adjacency):
    places = [place(adjacency) for place in (terminal, monitored, page)]
    for shown in places:
        assert text.certified(adjacency) in shown
    in_itself = text.certified(adjacency, where=say("certified.where"))
    for shown in (each for name in RUNS[adjacency] for each in shown_of(name)):
        assert in_itself in shown
    public = text.PUBLIC if adjacency == "add-remove" else text.PUBLIC_SIZE
    told = text.certified_in_full(TRAINING.to_dict(), adjacency)
    assert told in page(adjacency)
    assert [each for each in (text.PUBLIC, text.PUBLIC_SIZE) if each in told] == [public]


def test_a_notebook_prints_it_of_a_curve_whose_adjacency_is_not_known():
    assert text.certified() in html.unescape(TRAINING.curve()._repr_html_())


def test_the_places_with_room_name_every_condition():
    for shown in (page("replace"), *shown_of("sampled-di")):
        for condition in (text.CLIPPED, text.BATCHES["poisson"], text.SECRET, text.ALONE):
            assert condition in shown


def test_no_file_that_is_forwarded_points_into_the_documents():
    record, mechanism = record_of(run("stands")), TRAINING
    others = [
        export(each) for export in (model_card, registry_entry) for each in (record, mechanism)
    ]
    for shown in (
        *shown_of("stands"),
        *others,
        monitored("zero-out"),
        page("replace"),
        text.UNSEEN,
    ):
        assert not re.search(r"docs/|\.md\b", shown)


def test_a_refuted_claim_promises_nothing():
    assert card(record_of(run("broken")))["claim"]["certified"] is None
    assert [shown for shown in shown_of("broken") if text.PROMISE in shown] == []


CURVE = TRAINING.curve()
RESULTS = [
    *EVERY, CURVE, CURVE.plot(), *risk_profile(CURVE),
    dprime.estimates.central_limit(1.0, 0.01, 200), dprime.metrics.profile()[2],
    solve(dprime.Gaussian(), {"advantage": 0.1}),
    dprime.EpsilonDeltaProfile([(each / 10, 1e-5) for each in range(100)]),
    dprime.Composition(*map(dprime.Gaussian, range(1, 100))), lower_bound(range(50), range(50)),
    lower_bound(range(50), range(50), method="band").curve, plan(CURVE),
    Ledger([(StepRecord(1, 0.1), 9)]), consequences(TRAINING, sampling_probability=0.1),
]  # fmt: skip


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
def test_a_result_is_told_in_one_line(result):
    assert one_line(result)
    if isinstance(result, dprime.Mechanism) and "..." not in repr(result):
        assert eval(repr(result), {name: getattr(dprime, name) for name in dir(dprime)}) == result


def test_an_audit_is_told_in_one_line():
    record = record_of(run("stands"))
    for part in (record, record.verdict, record.claim, *record.bounds, *record.rows):
        assert one_line(part)


def test_the_explanation_is_where_the_pointer_leads():
    assert "“What the numbers mean”" in text.POINTER
    told = words(ROOT / "docs" / "meaning.md")
    assert told.startswith("# What the numbers mean")
    assert "## What a certificate of the monitor rests on" in words(ROOT / "docs" / "monitor.md")
    assert "“What a certificate of the monitor rests on”" in text.UNSEEN
    kinds = [each for kind in text.KINDS.values() for each in kind]
    for sentence in (text.PROMISE, text.PUBLIC_SIZE, text.POOL, *text.BATCHES.values(), *kinds):
        assert sentence in told
    for sentence in text.conditions(TRAINING.to_dict()):
        assert sentence in told


@given(value=st.floats(1e-12, 1e6), digits=st.integers(2, 6))
def test_printed_ceilings_never_shrink_and_floors_never_rise(value, digits):
    up, down = float(text.round_up(value, digits)), float(text.round_down(value, digits))
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    assert value - 2e-9 * unit <= up <= value + 1.01 * unit
    assert value - 1.01 * unit <= down <= value + 2e-9 * unit


def test_words_for_numbers_are_short_and_err_to_the_safe_side():
    for value, digits in ((0.0, 4), (math.inf, 4), (0.1, 4), (0.8, 6), (1.1, 6)):
        assert text.round_up(value, digits) == text.round_down(value, digits) == f"{value:g}"
    assert text.percent_up(1.2) == "100 %"
    assert text.percent_down(0.98765) == "98.76 %"
    assert text.one_in(0.015) == "66"  # not 67, which would be less often than the truth
    assert text.round_down(-0.1234, 2) == "-0.13"
    assert text.safe_digits("noise_multiplier", 1.2345641) == "1.23457"
    assert text.safe_digits("sample_rate", 0.012345678) == "0.0123456"


def test_conditions_are_those_of_the_mechanism_and_of_its_parts_each_once():
    own = [text.CLIPPED, text.BATCHES["poisson"], text.PUBLIC, text.SECRET]
    assert text.conditions(TRAINING.to_dict())[:4] == own
    assert text.BATCHES["full"] in text.conditions(dprime.DPSGD(1.1, 1, 30).to_dict())
    for mechanism in EVERY:
        listed = text.conditions(mechanism.to_dict())
        assert listed[-1] == text.ALONE
        assert len(listed) == len(set(listed))
    pool = dprime.PoolSampled(dprime.Composition(TRAINING, dprime.Gaussian(8.0)), 0.1)
    listed = text.conditions(pool.to_dict(), group_size=3)
    assert {text.POOL, text.SENSITIVITY, "each person has at most 3 records"} < {*listed}
    assert {*own} < {*listed}


def test_a_description_leaves_nothing_out():
    steps, xi = dprime.EpsilonDelta(1.0, 1e-5, steps=3), dprime.ZCDP(0.1, 0.5)
    for mechanism, told in ((steps, "steps 3"), (xi, "xi 0.5"), (dprime.GDP(0.4), "is 0.4-GDP")):
        assert told in text.describe(mechanism.to_dict(), "add-remove")
