"""States of the monitor: the steps, and what else read the data."""

import pytest
import torch

from dprime import DPSGD, Composition, Gaussian, Laplace
from dprime.check import check
from dprime.check.saved import check_saved
from dprime.check.states import TAILS_UNKNOWN
from dprime.monitor import Ledger, StepRecord
from dprime.monitor.tails import NoiseTails


def codes(report):
    return [finding.code for finding in report.findings]


def risk(report):
    (found,) = report.reading.risks
    return found


def ledger_state(*entries, adjacency="add-remove"):
    return {"ledger": Ledger(entries).state_dict(), "adjacency": adjacency, "warnings": []}


def test_a_monitor_s_state_is_read(tmp_path):
    path = tmp_path / "monitor.pt"
    torch.save(ledger_state((StepRecord(1.0, 0.01), 50)), path)
    assert codes(check(path)) == []
    assert risk(check(path)).mechanism == DPSGD(1.0, 0.01, 50)
    assert codes(check(path, records=10, delta=0.5)) == ["DP501"]
    torch.save(
        ledger_state((StepRecord(1.0, 0.5, "shuffle", pass_index=1), 2), adjacency="replace"), path
    )
    assert codes(check(path)) == ["DP101"]
    torch.save(ledger_state((StepRecord(0.0, 0.01), 50)), path)
    report = check(path)
    assert (codes(report), report.reading.risks) == (["DP408"], ())
    torch.save(ledger_state(), path)
    assert codes(check(path)) == ["DP409"]
    torch.save({"ledger": 3, "adjacency": "add-remove"}, path)
    with pytest.raises(ValueError, match="must be a monitor's state"):
        check(path)
    torch.save(ledger_state((StepRecord(1.0, 0.01), 50)) | {"warnings": ["Look here."]}, path)
    assert check(path).unclear == ("The monitor warned: Look here.", TAILS_UNKNOWN)


def test_the_tails_of_the_noise_are_composed():
    state, steps = ledger_state((StepRecord(1.0, 0.01), 50)), DPSGD(1.0, 0.01, 50)
    plain = check_saved("run.pt", state | {"noise": {"at": 5.768, "weights": 1000}})
    tails = NoiseTails(5.768, 1000, ((1.0, 0.01, 50, 1),))
    assert risk(plain).mechanism == Composition(steps, tails)
    assert plain.unclear == ()
    secure = check_saved("run.pt", state | {"noise": {"at": None, "weights": 1000}})
    assert risk(secure).mechanism == steps
    for damaged in (3, {"at": 5.768}, {"at": -1.0, "weights": 1000}):
        with pytest.raises(ValueError, match=r"damaged \(its noise\)"):
            check_saved("run.pt", state | {"noise": damaged})


def besides(*mechanisms):
    described = [mechanism.to_dict() for mechanism in mechanisms]
    return ledger_state((StepRecord(1.0, 0.01), 50)) | {"besides": described}


def test_what_read_the_data_besides_is_composed_and_named():
    steps, norm, before = DPSGD(1.0, 0.01, 50), Gaussian(20.0), DPSGD(2.0, 0.02, 10)
    found = risk(check_saved("run.pt", besides(norm)))
    assert found.about == (
        "the steps that the monitor saw and what read the data besides them (Gaussian)"
    )
    assert found.mechanism.curve().epsilon(1e-5) == Composition(norm, steps).curve().epsilon(1e-5)
    assert found.answers[0].value > steps.curve().advantage()
    both = risk(check_saved("run.pt", besides(norm, before)))
    assert "(1. Gaussian, 2. DPSGD)" in both.about
    assert both.answers[0].value > found.answers[0].value
    assert risk(check_saved("run.pt", besides())).mechanism == steps


@pytest.mark.parametrize(
    "described",
    [
        Laplace(3.0).to_dict(),
        Gaussian().to_dict(),
        {"name": "Gaussian", "noise_multiplier": 20.0},
        {"name": "Gaussian", "noise_multiplier": "20", "steps": 1},
        {},
    ],
)
def test_what_cannot_be_read_takes_the_number_away(described):
    state = ledger_state((StepRecord(1.0, 0.01), 50)) | {"besides": [described]}
    reading = check_saved("run.pt", state).reading
    assert reading.risks == ()
    assert described.get("name", "unnamed") in reading.missing[0]


GOOD_ROW = Ledger([(StepRecord(1.0, 0.01), 50)]).state_dict()[0]


@pytest.mark.parametrize(
    ("place", "value"), [(0, -1.0), (1, 2.0), (2, "magic"), (3, 0), (-1, -5), (-1, 0)]
)
def test_a_damaged_ledger_is_refused_and_not_read_as_less(place, value):
    row = list(GOOD_ROW)
    row[place] = value
    state = {"ledger": [GOOD_ROW, row], "adjacency": "add-remove"}
    with pytest.raises(ValueError, match=r"run.pt must be a monitor's state, but it is damaged \("):
        check_saved("run.pt", state)


def test_damaged_besides_are_refused():
    state = ledger_state((StepRecord(1.0, 0.01), 50)) | {"besides": "Gaussian"}
    with pytest.raises(ValueError, match="damaged"):
        check_saved("run.pt", state)


def test_in_a_file_with_both_the_monitor_s_state_is_read():
    monitor = ledger_state((StepRecord(1.0, 0.01), 50))
    both = {"acc": {"history": [(1.0, 0.01, 50)], "mechanism": "rdp"}, "monitor": monitor}
    report = check_saved("run.pt", both)
    assert codes(report) == []
    assert risk(report).about == "the steps that the monitor saw"
    assert risk(report).mechanism == DPSGD(1.0, 0.01, 50)


def test_steps_that_the_monitor_did_not_see_take_the_number_away():
    monitor = ledger_state((StepRecord(1.0, 0.01), 50))
    more = {"acc": {"history": [(1.0, 0.01, 51)], "mechanism": "rdp"}, "monitor": monitor}
    report = check_saved("run.pt", more)
    assert [each.sentence for each in report.findings] == [
        "The accountant counted 51 steps, the monitor saw 50."
    ]
    assert report.reading.risks == ()
    optimizer = {"state": {0: {"step": 60.0}}, "param_groups": []}
    report = check_saved("run.pt", {"optimizer": optimizer, "monitor": monitor})
    assert "the monitor counted 50" in report.findings[0].sentence
    mixing = {"net": {"norm.num_batches_tracked": 3}, "monitor": monitor}
    report = check_saved("run.pt", mixing)
    assert (codes(report), report.reading.risks) == (["DP201"], ())


def test_the_monitor_is_not_advised_where_it_is_attached():
    state = ledger_state((StepRecord(1.0, 0.01), 50))
    assert "attach dprime.monitor" not in check_saved("run.pt", state).summary()
    accountant = {"history": [(1.0, 0.01, 50)], "mechanism": "rdp"}
    assert "attach dprime.monitor" in check_saved("run.pt", accountant).summary()
