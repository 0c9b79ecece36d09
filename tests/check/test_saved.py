"""Saved runs: descriptions, real checkpoints of Opacus, states of the monitor."""

import json

import pytest
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dprime import DPSGD
from dprime.check import check, check_description
from dprime.check.saved import check_saved

RUN = {"noise_multiplier": 1.1, "sample_rate": 0.01, "steps": 100}


def codes(report):
    return [finding.code for finding in report.findings]


def risk(report):
    (found,) = report.reading.risks
    return found


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, []),
        ({"delta": 1e-5, "records": 60_000, "max_grad_norm": 1.0, "sampling": "poisson"}, []),
        ({"sampling": "shuffle"}, ["DP101"]),
        ({"sampling": "fixed-size"}, ["DP101"]),
        ({"max_grad_norm": 1e3}, ["DP307"]),
        ({"max_grad_norm": float("inf")}, ["DP307"]),
        ({"noise_multiplier": 0}, ["DP408"]),
        ({"delta": 1e-4, "records": 60_000}, ["DP501"]),
        ({"delta": 1e-2}, ["DP502"]),
        ({"tuning_runs": 7}, ["DP601"]),
    ],
)
def test_a_description_is_judged(more, expected):
    report = check_description("run.json", RUN | more)
    assert codes(report) == expected
    assert report.failed == bool(expected)


def test_the_risk_is_that_of_the_core(tmp_path):
    path = tmp_path / "run.json"
    run = {"noise_multiplier": 1.1, "batch_size": 256, "records": 60_000, "epochs": 10}
    path.write_text(json.dumps(run))
    report = check(path)
    assert risk(report).mechanism == DPSGD(1.1, 256 / 60_000, 2350)
    assert report.unclear[0].startswith("The rate is batch_size/records")
    path.write_text(json.dumps(run | {"library": "opacus"}))
    report = check(path)
    assert risk(report).mechanism == DPSGD(1.1, 1 / 235, 2350)
    assert report.unclear[0].startswith("The rate is one over the number of batches")
    assert risk(check(path, records=1000)).mechanism == DPSGD(1.1, 1 / 4, 40)
    shuffled = risk(check_description("run.json", RUN | {"sampling": "shuffle"}))
    assert (shuffled.adjacency, shuffled.mechanism.sampling) == ("replace", "shuffle")
    one, all_runs = check_description("run.json", RUN | {"tuning_runs": 7}).reading.risks
    assert (one.mechanism.steps, all_runs.mechanism.steps) == (100, 700)
    assert check_description("run.json", RUN | {"noise_multiplier": 0}).reading.risks == ()


def test_every_run_of_shuffled_batches_begins_a_pass():
    """Three runs of a pass and a half are six passes that a record may be met in, not five."""
    shuffled = RUN | {"sampling": "shuffle", "steps": 15, "sample_rate": 0.1, "tuning_runs": 3}
    _, all_runs = check_description("run.json", shuffled).reading.risks
    noise = RUN["noise_multiplier"]
    curve = all_runs.mechanism.curve("replace")
    assert curve.d_prime() >= 2 * 6**0.5 / noise * (1 - 1e-12)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "must be a JSON object"),
        ({"noise": 1}, "key in run.json must be one of"),
        ({"steps": 3}, "noise_multiplier must be given"),
        ({"noise_multiplier": 1, "steps": 3}, "Exactly one of sample_rate, batch_size"),
        ({"noise_multiplier": 1, "batch_size": 3, "steps": 3}, "records must be given"),
        ({"noise_multiplier": 1, "sample_rate": 0.1}, "Exactly one of steps, epochs"),
        (
            {"noise_multiplier": 1, "batch_size": 70, "records": 60, "steps": 3},
            "batch_size must be at most the number of records, but it is 70 for 60",
        ),
        (RUN | {"library": "keras"}, "library must be one of"),
        (RUN | {"sampling": "magic"}, "sampling must be one of"),
        (RUN | {"noise_multiplier": -1}, "noise_multiplier must be 0 or more"),
        (RUN | {"noise_multiplier": "1"}, "noise_multiplier must be a number"),
        (RUN | {"delta": float("nan")}, "delta must be a finite number"),
        (RUN | {"tuning_runs": 0}, "tuning_runs must be at least 1"),
        ({"history": [[1, 2]], "mechanism": "prv"}, "history must hold triples"),
    ],
)
def test_a_bad_description_is_refused(values, words):
    with pytest.raises(ValueError, match=r"must be|Exactly|must hold") as refused:
        check_description("run.json", values)
    assert words in str(refused.value)


@pytest.fixture(scope="module")
def trained():
    """An engine, a model and an optimizer after 4 private steps."""
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 3), torch.randint(0, 2, (32,)))
    model = nn.Linear(3, 2)
    with pytest.warns(UserWarning, match="Secure RNG"):
        engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=torch.optim.Adam(model.parameters()),
        data_loader=DataLoader(data, batch_size=8), noise_multiplier=1.0, max_grad_norm=1.0,
    )  # fmt: skip
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return engine, model, optimizer


pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook:UserWarning")


def test_a_checkpoint_of_opacus_is_read(tmp_path, trained):
    engine, model, optimizer = trained
    engine.save_checkpoint(path=tmp_path / "all.pt", module=model, optimizer=optimizer)
    torch.save(engine.accountant.state_dict(), tmp_path / "accountant.pt")
    torch.save(
        {"epoch": 1, "net": model.state_dict(), "spent": engine.accountant.state_dict()},
        tmp_path / "own.pt",
    )
    for name in ("all.pt", "accountant.pt", "own.pt"):
        report = check(tmp_path / name)
        assert codes(report) == []
        assert risk(report).mechanism == DPSGD(1.0, 0.25, 4, public_size=True)


def test_a_last_batch_that_is_left_out_makes_more_passes():
    """99 of 100 records in each step: every step is a pass of its own."""
    run = {"noise_multiplier": 4.0, "batch_size": 99, "records": 100, "sampling": "shuffle"}
    whole = DPSGD(4.0, 0.99, 20, sampling="shuffle").curve("replace").advantage()
    for more, passes in (({}, 20), ({"drop_last": True}, 20), ({"drop_last": False}, 10)):
        report = check_description("run.json", run | {"steps": 20} | more)
        found = risk(report).mechanism.curve("replace").advantage()
        counted = DPSGD(4.0, 1.0, passes).curve("replace").advantage()
        assert found == pytest.approx(counted)
        assert (found >= whole) == (passes == 20)
    with pytest.raises(ValueError, match="drop_last must be true or false"):
        check_description("run.json", run | {"steps": 20, "drop_last": "yes"})


def test_two_accountants_are_not_taken_for_one(tmp_path):
    history = {"history": [(2.0, 0.01, 100)], "mechanism": "prv"}
    torch.save({"first": history, "second": history}, tmp_path / "two.pt")
    with pytest.raises(ValueError, match="a checkpoint with one accountant"):
        check(tmp_path / "two.pt")


def test_steps_that_were_not_counted_are_found(tmp_path, trained):
    _, model, optimizer = trained
    saved = {
        "optimizer": optimizer.state_dict(),
        "accountant": {"history": [(1.0, 0.25, 3)], "mechanism": "prv"},
    }
    torch.save(saved, tmp_path / "lost.pt")
    report = check(tmp_path / "lost.pt")
    assert codes(report) == ["DP409"]
    assert report.findings[0].sentence == "The optimizer took 4 steps, the accountant counted 3."
    assert report.reading.risks == ()
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    assert codes(check(tmp_path / "weights.pt")) == ["DP409"]
    torch.save({"history": [], "mechanism": "prv"}, tmp_path / "nothing.pt")
    assert codes(check(tmp_path / "nothing.pt")) == ["DP409"]


def test_running_statistics_and_missing_noise_are_found(tmp_path, trained):
    engine, _, _ = trained
    mixing = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    saved = {"model": mixing.state_dict(), "accountant": engine.accountant.state_dict()}
    torch.save(saved, tmp_path / "mixed.pt")
    report = check(tmp_path / "mixed.pt")
    assert codes(report) == ["DP201"]
    assert report.reading.risks == ()
    torch.save({"history": [(0.0, 0.1, 5)], "mechanism": "rdp"}, tmp_path / "bare.pt")
    assert codes(check(tmp_path / "bare.pt")) == ["DP408"]


def test_a_history_of_other_batches_than_poisson_has_no_number():
    run = {"history": [[1.0, 0.01, 100]], "sampling": "shuffle"}
    report = check_description("run.json", run)
    assert codes(report) == ["DP101"]
    assert report.reading.risks == ()


def test_objects_are_not_loaded(tmp_path, trained):
    torch.save(trained[1], tmp_path / "object.pt")
    with pytest.raises(ValueError, match="must be a checkpoint of plain values and tensors"):
        check(tmp_path / "object.pt")


@pytest.mark.parametrize(
    ("history", "words"),
    [
        (5, "history must be a list"),
        (None, "history must be a list"),
        ([(1.0, 0.1)], "history must hold triples"),
        ([(1.0, 0.1, -5)], "steps must be at least 1"),
        ([(1.0, 0.1, "x")], "steps must be a number"),
        ([(1.0, 1.5, 5)], "sample_rate must be"),
        ([(-1.0, 0.1, 5)], "noise_multiplier must be 0 or more"),
    ],
)
def test_a_damaged_accountant_is_refused_in_one_sentence(history, words):
    accountant = {"history": history, "mechanism": "prv"}
    for saved in (accountant, {"spent": accountant}):
        with pytest.raises(ValueError, match="must") as refused:
            check_saved("run.pt", saved)
        assert words in str(refused.value)


def test_both_epsilons_are_named_where_the_accountant_s_is_too_low(tmp_path):
    accountant = {"history": [(0.7421875, 0.01, 1000)], "mechanism": "gdp"}
    torch.save({"accountant": accountant}, tmp_path / "run.pt")
    (finding,) = check(tmp_path / "run.pt").findings
    assert finding.code == "DP413"
    assert "says ε = 2.991" in finding.sentence
    assert "ε = 3.886 is proved" in finding.sentence
    assert check(tmp_path / "run.pt").reading.risks
    run = {"history": [[0.7421875, 0.01, 1000]], "mechanism": "gdp"}
    (again,) = check_description("run.json", run).findings
    assert again == finding
    assert not check_description("run.json", run | {"mechanism": "prv"}).findings
