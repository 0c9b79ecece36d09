import pytest

import dprime
from audited import run
from dprime import DPSGD, EpsilonDelta, LowerCurve, TradeOff, compare, risk_profile, text
from dprime.audit import record_of
from dprime.comparison import AS_GIVEN
from dprime.metrics import profile
from dprime.monitor import AtEpoch
from dprime.shapes import GaussianShape
from dprime.table import Table
from dprime.text import COMPARABLE, describe
from told import refuses

LITTLE, MUCH = DPSGD(1.0, 0.01, 200), DPSGD(1.5, 0.01, 200)
SIZED = DPSGD(1.0, 0.01, 200, public_size=True)
ESTIMATE = dprime.estimates.central_limit(1.0, 0.01, 200)
LOWER = LowerCurve(GaussianShape(0.3), confidence=0.9, method="gaussian")


def test_a_summary_is_the_profile_of_the_curve():
    curve, asked = LITTLE.curve(), {"fpr": 0.001, "delta": 1e-6}
    table = curve.summary(**asked)
    answers = risk_profile(curve, profile(**asked))
    assert [row["value"] for row in table] == [answer.value for answer in answers]
    for answer, cells in zip(answers, table.cells, strict=True):
        assert cells == (answer.title, answer.shown(), answer.sentence)
    assert table.head[1] == "At most"
    assert table.note == text.certified()


def test_estimates_and_lower_bounds_promise_nothing():
    assert (ESTIMATE.summary().head[1], ESTIMATE.summary().note) == ("About", text.ESTIMATE)
    found = LOWER.summary()
    assert found.head[1] == "At least"
    assert all(row["kind"] == "lower bound" for row in found)
    for cells, row in zip(found.cells, found, strict=True):
        assert float(cells[1]) <= row["value"]
    assert "90 % confidence" in found.note
    assert "assumes Gaussian scores" in found.note


def test_mechanisms_are_compared_for_one_adjacency():
    table = compare({"little": LITTLE, "much": MUCH})
    for name, mechanism in (("little", LITTLE), ("much", MUCH)):
        values = [answer.value for answer in risk_profile(mechanism.curve())]
        assert [row[name] for row in table] == values
    assert table.note == text.certified("add-remove")
    mixed = compare({"little": LITTLE, "sized": SIZED})
    assert mixed[0]["little"] == LITTLE.curve("zero-out").advantage()
    assert mixed.note == text.certified("zero-out")
    for replaced in (
        compare({"little": LITTLE}, adjacency="replace"),
        compare({"little": LITTLE}, max_prior=0.1),  # no other adjacency has an answer
    ):
        assert replaced[0]["little"] == LITTLE.curve("replace").advantage()


def test_each_column_says_what_it_is():
    table = compare({"a": LITTLE, "b": ESTIMATE, "c": LOWER}, fpr=0.05)
    assert table.head == ("What", "a, at most", "b, about", "c, at least")
    (tpr,) = (row for row in table if row["name"] == "tpr")
    assert tpr["c"] == LOWER.tpr(0.05)
    assert "belief" not in {row["name"] for row in table}
    assert table.note.splitlines()[:2] == [text.certified(), text.ESTIMATE]


def test_both_draw_themselves_and_say_what_is_drawn(monkeypatch):
    own = [describe(LITTLE.to_dict(), relation) for relation in ("add-remove", "replace")]
    one = LITTLE.curve().plot(log=True)
    assert (one.name, one.of) == ("trade-off-log", own[0])
    assert LITTLE.curve().summary().plot(fpr=0.1).name == "trade-off"
    assert [each.plot().name for each in (ESTIMATE, LOWER)] == ["trade-offs"] * 2
    two = compare({"a": LITTLE, "b": LITTLE.curve("replace")}).plot()
    assert two.of == f"a: {own[0]} · b: {own[1]}"
    drawn = compare({"a": LITTLE, "b": ESTIMATE}).plot()
    assert [series.name for series in drawn.series] == ["a, at most", "b, about", "guessing"]
    many = compare({f"mu {mu}": TradeOff.gaussian(mu) for mu in range(9)})
    assert "<td" in many._repr_html_()  # more than a chart can tell apart
    monkeypatch.setattr("dprime.show.needs.find_spec", lambda _: None)
    for refused in (LITTLE.curve().plot, compare({"a": LITTLE}).plot):
        with pytest.raises(dprime.InputError, match=r"'dprime\[show\]'"):
            refused()


test_what_cannot_be_compared_is_refused = refuses(
    {
        "curves name": lambda: compare({}),
        "curves name curves or mech": lambda: compare({"a": 1.0}),
        "curves name curves": lambda: compare({"title": LITTLE}),
        "curves name curves or": lambda: compare([LITTLE]),
        "adjacency be given": lambda: compare(
            {"a": LITTLE, "b": EpsilonDelta(1.0, adjacency="replace")}
        ),
        "adjacency be left out": lambda: compare({"a": LITTLE.curve()}, adjacency="replace"),
        "adjacency be 'replace' for secret": lambda: compare(
            {"a": LITTLE}, adjacency="zero-out", max_prior=0.1
        ),
        "fqr be left out": lambda: compare({"a": TradeOff.gaussian(1.0)}, fqr=0.1),
    }
)


def test_curves_of_which_the_adjacency_is_not_known_say_so():
    training = dprime.DPSGD(1.0, 0.01, 100)
    mixed = dprime.compare({"a": training, "b": training.curve("replace")}).note
    assert f"{AS_GIVEN} The mechanisms are read for add-remove." in mixed
    assert COMPARABLE in mixed
    assert COMPARABLE not in dprime.compare({"a": training, "b": training}).note
    assert COMPARABLE not in dprime.compare({"a": training.curve()}).note


CURVE = dprime.DPSGD(1.0, 0.01, 200).curve()
RISKS = dprime.risk_profile(CURVE)
RESULTS = {
    "summary": CURVE.summary(),
    "comparison": dprime.compare({"A": CURVE, "B": dprime.TradeOff.gaussian(1.0)}),
    "profile": RISKS,
    "audit": record_of(run("stands")).rows,
    "history": [AtEpoch(**vars(each), epoch=1, step=10) for each in RISKS],
    "chart": CURVE.plot().table(),
}


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", RESULTS)
def test_data_frames_take_rows_as_they_are(library, name):
    frame = pytest.importorskip(library).DataFrame(RESULTS[name])
    first = RESULTS[name][0]
    columns = first if isinstance(first, dict) else vars(first)
    assert list(frame.columns) == [*columns]
    assert len(frame) == len(RESULTS[name])
    for column, value in columns.items():
        if isinstance(value, (str, float)):
            assert frame[column][0] == value


def test_people_read_aligned_lines_no_wider_than_they_must_be():
    sentence = "A long sentence. " * 8
    table = Table(({"a": 1.0},), ("What", "At most"), (("first", sentence),), "A note.", print)
    lines = repr(table).splitlines()
    assert lines[0].split() == ["What", "At", "most"]
    begins = lines[0].index("At most")
    words = " ".join(line[begins:] for line in lines[1:-1])
    assert words.split() == sentence.split()
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "A note."
