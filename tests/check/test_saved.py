"""Saved runs: descriptions, real checkpoints of Opacus, states of the monitor."""

import json
import zipfile

import pytest
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dprime import DPSGD, Composition, Gaussian, InputError, Laplace
from dprime.check import check, check_description
from dprime.check.saved import check_saved
from dprime.monitor import Ledger, StepRecord
from dprime.monitor.state import STATE_VERSION
from dprime.monitor.tails import NoiseTails
from told import refuses

RUN = {"noise_multiplier": 1.1, "sample_rate": 0.01, "steps": 100}
LIKE_OPACUS = {"noise_multiplier": 1.1, "batch_size": 256, "dataset_size": 60_000, "epochs": 10}
NO_CHECKPOINT = "must be a checkpoint of plain values and tensors"


def codes(report):
    return [finding.code for finding in report.findings]


def risk(report):
    (found,) = report.reading.risks
    return found


def described(run=RUN, **more):
    return check_description("run.json", run | more)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, []),
        ({"delta": 1e-5, "dataset_size": 60_000, "max_grad_norm": 1.0, "sampling": "poisson"}, []),
        ({"sampling": "shuffle"}, ["DP101"]),
        ({"sampling": "fixed-size"}, ["DP101"]),
        ({"max_grad_norm": 1e3}, ["DP307"]),
        ({"max_grad_norm": float("inf")}, ["DP307"]),
        ({"noise_multiplier": 0}, ["DP408"]),
        ({"delta": 1e-4, "dataset_size": 60_000}, ["DP501"]),
        ({"delta": 1e-2}, ["DP502"]),
        ({"tuning_runs": 7}, ["DP601"]),
    ],
)
def test_a_description_is_judged(more, expected):
    report = described(**more)
    assert codes(report) == expected
    assert report.failed == bool(expected)
    assert bool(report.reading.risks) == ("DP408" not in expected)


def test_the_risk_is_that_of_the_core(tmp_path):
    path = tmp_path / "run.json"
    for more, rate, about in [
        ({}, 256 / 60_000, "The rate is batch_size/dataset_size"),
        ({"library": "opacus"}, 1 / 235, "The rate is one over the number of batches"),
    ]:
        path.write_text(json.dumps(LIKE_OPACUS | more))
        report = check(path)
        assert risk(report).mechanism == DPSGD(1.1, rate, 2350)
        assert report.unresolved[0].startswith(about)
    assert risk(check(path, dataset_size=1000)).mechanism == DPSGD(1.1, 1 / 4, 40)
    shuffled = risk(described(sampling="shuffle"))
    assert (shuffled.adjacency, shuffled.mechanism.sampling) == ("replace", "shuffle")
    one, all_runs = described(tuning_runs=7).reading.risks
    assert (one.mechanism.steps, all_runs.mechanism.steps) == (100, 700)


def test_every_run_of_shuffled_batches_begins_a_pass():
    """Three runs of a pass and a half are six passes that a record may be met in, not five."""
    shuffled = described(sampling="shuffle", steps=15, sample_rate=0.1, tuning_runs=3)
    curve = shuffled.reading.risks[1].mechanism.curve("replace")
    assert curve.d_prime() >= 2 * 6**0.5 / RUN["noise_multiplier"] * (1 - 1e-12)


def test_a_last_batch_that_is_left_out_makes_more_passes():
    """99 of 100 records in each step: every step is a pass of its own."""
    run = {"noise_multiplier": 4.0, "batch_size": 99, "dataset_size": 100, "sampling": "shuffle"}
    whole = DPSGD(4.0, 0.99, 20, sampling="shuffle").curve("replace").advantage()
    for more, passes in (({}, 20), ({"drop_last": True}, 20), ({"drop_last": False}, 10)):
        found = risk(described(run, steps=20, **more)).mechanism.curve("replace").advantage()
        assert found == pytest.approx(DPSGD(4.0, 1.0, passes).curve("replace").advantage())
        assert (found >= whole) == (passes == 20)


ONE = {"noise_multiplier": 1, "steps": 3}
BAD = {
    "run.json be a JSON object": {},
    "key in run.json be one of": {"noise": 1},
    "noise_multiplier be given": {"steps": 3},
    "Exactly one of sample_rate, batch_size": ONE,
    "dataset_size be given": ONE | {"batch_size": 3},
    "Exactly one of steps, epochs": {"noise_multiplier": 1, "sample_rate": 0.1},
    "batch_size be at most the 60 records": ONE | {"batch_size": 70, "dataset_size": 60},
    "drop_last be true or": LIKE_OPACUS | {"library": "opacus", "drop_last": "yes"},
    "library be one of": RUN | {"library": "keras"},
    "sampling be one of": RUN | {"sampling": "magic"},
    "noise_multiplier be 0 or more": RUN | {"noise_multiplier": -1},
    "noise_multiplier be a number": RUN | {"noise_multiplier": "1"},
    "delta be a finite number": RUN | {"delta": float("nan")},
    "tuning_runs be at least 1": RUN | {"tuning_runs": 0},
    "history hold triples": {"history": [[1, 2]], "mechanism": "prv"},
}
test_a_bad_description_is_refused = refuses(
    {words: lambda values=values: described({}, **values) for words, values in BAD.items()}
)


@pytest.fixture(scope="module")
def trained():
    """An engine, a model and an optimizer after 4 private steps."""
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 3), torch.randint(0, 2, (32,)))
    model = nn.Linear(3, 2)
    with pytest.warns(UserWarning, match="Secure RNG"):
        engine = PrivacyEngine()
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(data, batch_size=8)
    made = {"module": model, "optimizer": optimizer, "data_loader": loader}
    model, optimizer, loader = engine.make_private(**made, noise_multiplier=1.0, max_grad_norm=1.0)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return engine, model, optimizer


@pytest.mark.filterwarnings("ignore:Full backward hook:UserWarning")
def test_a_checkpoint_of_opacus_is_read(tmp_path, trained):
    engine, model, optimizer = trained
    spent = engine.accountant.state_dict()
    engine.save_checkpoint(path=tmp_path / "all.pt", module=model, optimizer=optimizer)
    torch.save(spent, tmp_path / "accountant.pt")
    torch.save({"epoch": 1, "net": model.state_dict(), "spent": spent}, tmp_path / "own.pt")
    for name in ("all.pt", "accountant.pt", "own.pt"):
        report = check(tmp_path / name)
        assert codes(report) == []
        assert risk(report).mechanism == DPSGD(1.0, 0.25, 4, public_size=True)
    torch.save(model, tmp_path / "object.pt")
    with pytest.raises(InputError, match=NO_CHECKPOINT):
        check(tmp_path / "object.pt")


def accountant(*history, mechanism="prv"):
    return {"history": list(history), "mechanism": mechanism}


def adam(steps):
    return {"state": {0: {"step": steps}}, "param_groups": []}


THREE = accountant((1.0, 0.25, 3))


class Large:
    """Takes ten gigabytes where it is unpickled."""

    def __reduce__(self):
        return bytearray, (10**10,)


@pytest.mark.parametrize("how", ["plain", "large", "packed"])
def test_a_checkpoint_that_takes_more_memory_than_it_has_bytes(tmp_path, how, monkeypatch):
    path = tmp_path / "run.pt"
    saved = {"spent": THREE, "net": {"weight": torch.zeros(10_000)}}
    torch.save(Large() if how == "large" else saved, path)
    if how == "plain":
        assert check(path).reading.risks
        return
    if how == "packed":
        with zipfile.ZipFile(path) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for member in members:
                archive.writestr(*member)
        assert [*torch.load(path, weights_only=True)] == [*saved], "PyTorch itself reads it"
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(InputError, match=NO_CHECKPOINT):
        check(path)


TAKEN_AWAY = [
    ({"net": {"weight": 1.0}}, "DP409", "has no accountant"),
    (accountant(), "DP409", "has counted no step"),
    (accountant((0.0, 0.1, 5)), "DP408", "with noise 0"),
    ({"acc": THREE, "opt": adam(4.0)}, "DP409", "took 4 steps, the accountant counted 3."),
    ({"acc": THREE, "net": {"1.num_batches_tracked": 3}}, "DP201", "statistics of batches (1)"),
]


@pytest.mark.parametrize(("saved", "code", "words"), TAKEN_AWAY)
def test_what_a_checkpoint_shows_takes_the_number_away(tmp_path, saved, code, words):
    torch.save(saved, tmp_path / "run.pt")
    report = check(tmp_path / "run.pt")
    assert codes(report) == [code]
    assert words in report.findings[0].sentence
    assert report.reading.risks == ()


def test_a_history_of_other_batches_than_poisson_has_no_number():
    report = described({"history": [[1.0, 0.01, 100]]}, sampling="shuffle")
    assert (codes(report), report.reading.risks) == (["DP101"], ())


def damaged(history):
    """Alone, and in a checkpoint."""
    state = {"history": history, "mechanism": "prv"}

    def read():
        with pytest.raises(InputError):
            check_saved("run.pt", state)
        check_saved("run.pt", {"spent": state})

    return read


TWO = {"first": accountant(), "second": accountant()}
test_a_damaged_accountant_is_refused = refuses(
    {
        "run.pt be a checkpoint with one accountant": lambda: check_saved("run.pt", TWO),
        "history be a list of": damaged(5),
        "history be a list": damaged(None),
        "history hold triples": damaged([(1.0, 0.1)]),
        "steps be at least 1": damaged([(1.0, 0.1, -5)]),
        "steps be a number": damaged([(1.0, 0.1, "x")]),
        "sample_rate be": damaged([(1.0, 1.5, 5)]),
        "noise_multiplier be 0 or more": damaged([(-1.0, 0.1, 5)]),
    }
)


def test_both_epsilons_are_named_where_the_accountant_s_is_too_low():
    state = accountant((0.7421875, 0.01, 1000), mechanism="gdp")
    report = check_saved("run.pt", {"accountant": state})
    (finding,) = report.findings
    assert finding.code == "DP413"
    assert "says ε = 2.991" in finding.sentence
    assert "ε = 3.886 is proved" in finding.sentence
    assert report.reading.risks
    assert described(state).findings == (finding,)
    assert not described(state, mechanism="prv").findings


# States of the monitor.

STEPS, SECURE = (StepRecord(1.0, 0.01), 50), {"at": None, "weights": 1000}


def state(*entries, adjacency="add-remove", **more):
    usual = {"version": STATE_VERSION, "warnings": [], "other_mechanisms": [], "noise": SECURE}
    return {"ledger": Ledger(entries).state_dict(), "adjacency": adjacency, **usual, **more}


def read(**more):
    return check_saved("run.pt", state(STEPS) | more)


@pytest.mark.parametrize(
    ("saved", "code"),
    [
        (state((StepRecord(1.0, 0.5, "shuffle", pass_index=1), 2), adjacency="replace"), "DP101"),
        (state((StepRecord(0.0, 0.01), 50)), "DP408"),
        (state(), "DP409"),
    ],
)
def test_a_monitor_s_state_is_judged(saved, code):
    report = check_saved("run.pt", saved)
    assert codes(report) == [code]
    assert bool(report.reading.risks) == (code == "DP101")


def test_a_monitor_s_state_is_read(tmp_path):
    path = tmp_path / "monitor.pt"
    torch.save(state(STEPS), path)
    assert codes(check(path)) == []
    assert risk(check(path)).mechanism == DPSGD(1.0, 0.01, 50)
    assert codes(check(path, dataset_size=10, delta=0.5)) == ["DP501"]
    warned = read(warnings=["Look here."])
    assert warned.unresolved == ("The monitor warned: Look here.",)
    assert "attach dprime.monitor" not in warned.summary()
    advised = check_saved("run.pt", accountant((1.0, 0.01, 50))).summary()
    assert "attach dprime.monitor" in advised


def test_the_tails_of_the_noise_are_composed():
    plain = read(noise={"at": 5.768, "weights": 1000})
    tails = NoiseTails(5.768, 1000, ((1.0, 0.01, 50, 1),))
    assert risk(plain).mechanism == Composition(DPSGD(1.0, 0.01, 50), tails)
    assert plain.unresolved == ()


def test_what_else_read_the_data_is_composed_and_named():
    steps, norm, before = DPSGD(1.0, 0.01, 50), Gaussian(20.0), DPSGD(2.0, 0.02, 10)
    one, both = (
        risk(read(other_mechanisms=[each.to_dict() for each in listed]))
        for listed in ([norm], [norm, before])
    )
    named = "the steps that the monitor saw and other mechanisms on the same data (Gaussian)"
    assert one.about == named
    assert one.mechanism.curve().epsilon(1e-5) == Composition(norm, steps).curve().epsilon(1e-5)
    assert one.answers[0].value > steps.curve().advantage()
    assert "(1. Gaussian, 2. DPSGD)" in both.about
    assert both.answers[0].value > one.answers[0].value


@pytest.mark.parametrize(
    "other",
    [
        Laplace(3.0).to_dict(),
        Gaussian().to_dict(),
        {"name": "Gaussian", "noise_multiplier": 20.0},
        {"name": "Gaussian", "noise_multiplier": "20", "steps": 1},
        {},
    ],
)
def test_what_cannot_be_read_takes_the_number_away(other):
    reading = read(other_mechanisms=[other]).reading
    assert reading.risks == ()
    assert other.get("name", "unnamed") in reading.missing[0]


GOOD_ROW = Ledger([STEPS]).state_dict()[0]


def row(place, value):
    changed = list(GOOD_ROW)
    changed[place] = value
    return {"ledger": [GOOD_ROW, changed]}


ROWS = [(0, -1.0), (1, 2.0), (2, "magic"), (3, 0), (-1, -5), (-1, 0)]
DAMAGED = [
    *((row(*each), r"damaged \(") for each in ROWS),
    ({"other_mechanisms": "Gaussian"}, r"damaged \(its other_mechanisms"),
    ({"other_mechanisms": None}, r"damaged \(its other_mechanisms"),
    ({"noise": 3}, r"damaged \(its noise"),
    ({"noise": {"at": 5.768}}, r"damaged \(its noise"),
    ({"noise": {"at": -1.0, "weights": 1000}}, r"damaged \(its noise"),
    ({"ledger": 3}, r"damaged \(its ledger"),
    ({"version": 1}, "of version 1: read it"),  # a cost by another name would be missing
]


@pytest.mark.parametrize(("more", "what"), DAMAGED)
def test_a_damaged_state_is_refused_and_not_read_as_less(more, what):
    with pytest.raises(InputError, match=f"^run.pt must be .* state.*, but it is {what}"):
        read(**more)


BESIDE = [
    ({"acc": accountant((1.0, 0.01, 50))}, "", ""),
    ({"acc": accountant((1.0, 0.01, 51))}, "DP409", "counted 51 steps, the monitor saw 50."),
    ({"optimizer": adam(60.0)}, "DP409", "the monitor counted 50"),
    ({"net": {"norm.num_batches_tracked": 3}}, "DP201", "(norm)"),
]


@pytest.mark.parametrize(("beside", "code", "words"), BESIDE)
def test_in_a_file_with_both_the_monitor_s_state_is_read(beside, code, words):
    report = check_saved("run.pt", beside | {"monitor": state(STEPS)})
    assert codes(report) == [code] * bool(code)
    assert all(words in finding.sentence for finding in report.findings)
    if code:
        assert report.reading.risks == ()
    else:
        assert risk(report).about == "the steps that the monitor saw"
        assert risk(report).mechanism == DPSGD(1.0, 0.01, 50)
