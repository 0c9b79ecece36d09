import pytest

import dprime
from audited import run
from dprime.audit import record_of
from dprime.monitor import AtEpoch
from dprime.table import Table

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
