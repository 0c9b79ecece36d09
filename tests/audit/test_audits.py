"""From the crafted attack to the record: what is concluded, kept, resumed and refused."""

import dataclasses
import re
from contextlib import contextmanager

import numpy as np
import pytest
import scipy
import torch
from torch import nn

from dprime import DPSGD, GDP, EpsilonDelta, InputError
from dprime.attack import AttackTarget, FunctionTrainer, MaliciousDataset, StaticPoisoning
from dprime.attack.trainer import Game
from dprime.audit import Band, Steinke, audit, lower_bound, record_of
from dprime.curve import TradeOff
from dprime.data.dataset import Dataset
from dprime.metrics import Reading
from dprime.runs.run import Run
from dprime.text import round_up
from games import IMAGES, Constant, engine_setting

ADVANTAGE = Reading("advantage")
CLAIM = GDP(1.0)


def small(**options):
    return engine_setting(**{"noise_multiplier": 2.0, "records": 6, **options})


def own(function, **options):
    return AttackTarget(FunctionTrainer(function), IMAGES.train.take(range(4)), **options)


def raises(kind, at=None):
    """A function that raises, whatever it is given or where its first argument is this one."""

    def function(first, *_):
        if at in (None, first):
            raise kind("no memory")

    return function


def play(patch, change):
    """Blocks are changed after they are played."""
    real = Game.play

    def changed(game, block):
        found = real(game, block)
        change(block, found)
        return found

    patch.setattr(Game, "play", changed)


# The verdict --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("adjacency", "noise"), [("add-remove", 0.7), ("replace", 1.4)])
@pytest.mark.parametrize(
    "asked",
    [
        {"criterion": Reading("tpr", {"fpr": 0.1}), "method": Band()},
        {"criterion": ADVANTAGE, "method": "gaussian", "confidence": 0.9, "assume": "gaussian"},
        {},
    ],
    ids=["an estimator", "gaussian", "usual"],
)
def test_a_correct_training_is_not_refuted_and_a_claim_too_strong_is(asked, adjacency, noise):
    target = small(noise_multiplier=noise, adjacency=adjacency)
    weak = GDP(0.1, adjacency=adjacency)
    for claim, outcome in ((None, "not refuted"), (weak, "refuted")):
        found = audit("malicious-dataset", target, claim=claim, trials=200, **asked)
        assert found.verdict.outcome == outcome
        assert found.claim.mechanism == (claim or DPSGD(noise, 1.0, 4))
        assert found.claim.curve.advantage() == found.claim.mechanism.curve(adjacency).advantage()
        assert found.verdict.confidence == asked.get("confidence", 0.95)
        methods = [bound.method for bound in found.bounds]
        assert sorted(methods) == ["band", "bayesian", "clopper-pearson", "gaussian"]
        first, *others = found.rows
        assert (first.reached, first.allowed) == (found.verdict.reached, found.verdict.allowed)
        assert Reading(first.name, first.conditions) == found.verdict.metric
        assert found.verdict.metric == asked.get("criterion", found.verdict.metric)
        scores = found.played.in_scores, found.played.out_scores
        band = lower_bound(*scores, confidence=found.config.confidence)
        for row in others:
            reading = Reading(row.name, row.conditions)
            assert row.reached == reading.value(band.curve)
            assert row.allowed == reading.value(found.claim.curve)
        assert len({(row.name, *row.conditions.items()) for row in found.rows}) == len(found.rows)


REFUSED = {
    "method must be one of": {"method": Steinke()},
    "options must be known names, but it is 'metric'": {"metric": "advantage"},
    "confidence must": {"confidence": 1.0},
    "trials must": {"trials": 0},
    "claim must be a mechanism": {"claim": TradeOff.gaussian(1.0)},
    "adjacency must be 'replace'": {"claim": GDP(1.0, adjacency="replace")},
    "mu must be given": {"claim": GDP()},
    "noise_multiplier must be above 0": {"target": small(noise_multiplier=0.0)},
    "claim must be a mechanism, but it is missing": {"target": own(len)},
    "claim must be given for local sensitivity": {
        "target": small(sensitivity="local", adjacency="replace", sample_rate=0.3)
    },
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused_before_any_trial(message, tmp_path):
    given = {"target": small(), "trials": 3, "path": tmp_path / "a.run", **REFUSED[message]}
    with pytest.raises(InputError, match=message):
        audit("api-access", **given)
    assert list(tmp_path.iterdir()) == []


# What is kept -------------------------------------------------------------------------------------


@pytest.mark.parametrize("adversary", ["di", StaticPoisoning(shadows=5, outliers=1)])
def test_interrupted_and_resumed_gives_the_same(adversary, tmp_path, monkeypatch):
    options = {"trials": 20, "block": 10}
    whole = audit(adversary, small(), **options)
    path = tmp_path / "a.run"
    with monkeypatch.context() as patched:
        play(patched, raises(KeyboardInterrupt, at=2))
        with pytest.raises(KeyboardInterrupt):
            audit(adversary, small(), path=path, **options)
    with Run.open(path) as run:
        assert (run.done(), run.state().failed, run.result) == ([0, 1], 0, None)
        first = run.arrays()["score"]
    resumed = audit(adversary, small(), path=path, **options)
    np.testing.assert_array_equal(resumed.played.in_scores, whole.played.in_scores)
    np.testing.assert_array_equal(resumed.played.out_scores, whole.played.out_scores)
    assert resumed.to_dict() == whole.to_dict()
    with Run.open(path) as run:
        assert run.state().complete
        np.testing.assert_array_equal(run.arrays()["score"][:20], first)


@pytest.mark.parametrize("concluded", [True, False])
def test_a_finished_run_is_neither_played_nor_crafted_again(concluded, tmp_path, monkeypatch):
    path, adversary = tmp_path / "a.run", StaticPoisoning(shadows=5, outliers=1)
    first = audit(adversary, small(), trials=10, path=path if concluded else None)
    if not concluded:
        with monkeypatch.context() as patched:
            patched.setattr("dprime.audit.audits.conclude", raises(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                audit(adversary, small(), trials=10, path=path)
    counted = []
    monkeypatch.setattr(Game, "play", lambda *_: counted.append("played"))
    monkeypatch.setattr(StaticPoisoning, "craft", lambda *_: counted.append("crafted"))
    monkeypatch.setattr("dprime.attack.trainer.train", lambda *_, **__: counted.append("trained"))
    assert audit(adversary, small(), trials=10, path=path).to_dict() == first.to_dict()
    assert counted == []


def test_a_bar_counts_the_trials_and_says_what_they_show_so_far(tmp_path, monkeypatch):
    real, read, told = Run.arrays, [], []

    @contextmanager
    def bar(title, trials, show, *, before):
        told.append((title, trials, before))
        yield lambda trials, note=None: told.append((note and note(), trials))

    def arrays(run, since=0):
        read.append(since)
        return real(run, since)

    monkeypatch.setattr("dprime.audit.audits.bar", bar)
    monkeypatch.setattr(Run, "arrays", arrays)
    options = {"trials": 40, "block": 20, "path": tmp_path / "a.run"}
    audit("malicious-dataset", small(), **options)
    assert read == [0, 1, 2, 3, 0, 0]  # each block as it ends, then all to conclude and to record
    assert told[:2] == [("malicious data set", 80, 0), ("", 20)]
    assert [trials for _, trials in told[1:]] == [20] * 4
    words = r"Membership advantage ≥ [\d.e-]+ so far, [\d.]+ allowed"
    assert all(re.fullmatch(words, note) for note, _ in told[2:])
    told.clear()
    audit("malicious-dataset", small(), **options)
    assert told == []  # nothing is left to be played
    play(monkeypatch, raises(RuntimeError, at=0))
    audit("malicious-dataset", small(), trials=20, block=20)
    assert ("", 0) in told


def test_another_configuration_on_the_same_path_is_refused(tmp_path):
    path, target = tmp_path / "a.run", small()
    asked = {"adversary": "malicious-dataset", "target": target, "trials": 4, "block": 4}
    audit(**asked, path=path)
    before, data = path.read_bytes(), target.dataset
    swapped = Dataset(data.name, data.records[::-1], data.labels[::-1], data.kind, data.classes)
    for different, change in {
        "options": {"adversary": MaliciousDataset(copies=2)},
        "seed": {"target": dataclasses.replace(target, seed=4)},
        "trainer": {"target": small(learning_rate=0.3)},
        "claim": {"claim": CLAIM},
        "method": {"method": Band(ratio=2.0)},
        "contents": {"target": dataclasses.replace(target, dataset=swapped)},
    }.items():
        message = f"a.run must be of the same settings .* but it is of .*{different}"
        with pytest.raises(InputError, match=message):
            audit(**asked | change, path=path)
        assert path.read_bytes() == before


# What goes wrong ----------------------------------------------------------------------------------


class Sometimes:
    def __init__(self, broken):
        self.broken, self.calls = broken, 0

    def __call__(self, dataset, seed):
        self.calls += 1
        if self.calls in self.broken:
            raise RuntimeError(f"no memory at\ncall {self.calls}")
        return Constant(np.random.default_rng(seed).normal())


def test_blocks_that_fail_are_told_and_mended_by_the_same_version_only(tmp_path, monkeypatch):
    """Of 6 blocks of 10 trials the second one fails twice: 50 trials are left."""
    path = tmp_path / "a.run"
    found = audit("api-access", own(Sometimes({13, 54})), claim=CLAIM, trials=30, path=path)
    assert (found.blocks.blocks, found.blocks.failed) == (6, 1)
    assert (found.trials["in"], found.trials["out"]) == (25, 25)
    assert {(bound.trials, bound.lost) for bound in found.bounds} == {((30, 30), 5)}
    assert "It rests on 50 trials; 1 of 6 blocks failed and count against" in found.sentence
    assert "RuntimeError: no memory at call 54 (test_audits.py, line" in found.sentence
    with Run.open(path) as run:
        assert run.pending() == [1]
    with monkeypatch.context() as patched:
        patched.setattr("dprime.__version__", "99.0")
        with pytest.raises(InputError, match=r"run must be of dprime 99\.0, but it is begun by"):
            audit("api-access", own(Sometimes(())), claim=CLAIM, trials=30, path=path)
    mended = audit("api-access", own(Sometimes(())), claim=CLAIM, trials=30, path=path)
    assert mended.blocks.complete
    assert mended.sentence.endswith("It rests on 60 trials.")


def test_a_function_that_always_fails_says_why():
    for adversary, trials, message in (
        ("api-access", 30, "blocks all failed with RuntimeError: no memory.*then begin again"),
        ("api-access", 3, "played at least in part.*failed with RuntimeError: no memory"),
        (StaticPoisoning(shadows=2), 3, "able to train the adversary's own.*RuntimeError: no mem"),
    ):
        with pytest.raises(InputError, match=message):
            audit(adversary, own(raises(RuntimeError)), claim=CLAIM, trials=trials)


def exploding(dataset, seed):
    """Without clipping, a loud record takes every model to NaN."""
    loud = np.abs(dataset.records).max() > 50
    return Constant(np.nan if loud else np.random.default_rng(seed).normal())


def test_models_that_diverge_in_one_world_give_it_away():
    """The adversary has settled from its shadow models what a model without a loss speaks for."""
    adversary = StaticPoisoning(shadows=4, outliers=1)
    found = audit(adversary, own(exploding), claim=CLAIM, trials=100, criterion=ADVANTAGE)
    assert found.trials["diverged"] == 100
    assert (found.played.in_scores == np.inf).all()
    assert np.isfinite(found.played.out_scores).all()
    assert found.verdict.outcome == "refuted"


@pytest.mark.slow
def test_what_failed_counts_against_the_attacker():
    """Half of the blocks fail whatever the world: the survivors alone would refute a true claim."""

    def one_trial(dataset, seed):
        rng = np.random.default_rng(seed)
        if rng.random() < 0.5:
            raise RuntimeError("no luck")
        told = rng.random() < 0.6  # of an advantage of 0.6 among survivors, 0.3 in all
        network = nn.Linear(2, 2, bias=False)
        sign = (1.0 if len(dataset) == 20 else -1.0) if told else rng.choice([-1.0, 1.0])
        with torch.no_grad():
            network.weight.copy_(sign * torch.tensor([[1.0, 1.0], [-1.0, -1.0]]))
        return network

    records = Dataset.of(np.ones((20, 2)) + 0.01 * np.arange(20)[:, None], [0] * 20, classes=2)
    target = AttackTarget(FunctionTrainer(one_trial), records, record=3, seed=1)
    claim = GDP(2 * scipy.special.ndtri((1 + 0.32) / 2))
    asked = {"criterion": ADVANTAGE, "method": "clopper-pearson"}
    found = audit("api-access", target, claim=claim, trials=300, block=1, **asked)
    assert found.blocks.failed > 100
    assert not found.refuted
    alone = lower_bound(
        found.played.in_scores, found.played.out_scores, metric=ADVANTAGE, method="clopper-pearson"
    )
    assert alone.value(ADVANTAGE) > claim.curve().advantage()  # what the survivors would claim


def ignores_its_seed(dataset, seed):
    """A correct training, but for the seed: all of its models are one."""
    return Constant(np.random.default_rng(5).normal() + 0.01 * len(dataset))


def answers(dataset, seed):
    """Randomised response with its seed: a world may well give the same answer five times."""
    right = np.random.default_rng(seed).random() < 0.8
    return Constant(float((len(dataset) == 4) == right))


def test_a_training_function_that_ignores_its_seed_is_refused(tmp_path, monkeypatch):
    for trials in (4, 60):
        with pytest.raises(InputError, match="it ignores the seed"):
            audit("api-access", own(ignores_its_seed), claim=CLAIM, trials=trials)
    monkeypatch.chdir(tmp_path)
    for seed in range(4):
        assert audit("api-access", own(answers, seed=seed), claim=CLAIM, trials=60).blocks.complete
    assert list(tmp_path.iterdir()) == []  # without a path nothing is kept


# What is shown ------------------------------------------------------------------------------------


def test_local_sensitivity_is_no_dp():
    found = audit("malicious-dataset", small(sensitivity="local"), trials=20)
    assert "The training is not DP: " in found.sentence


def test_the_numbers_of_bernau_et_al():
    found = audit("di", small(noise_multiplier=1.0), trials=60)
    shown = found.identifiability
    rates = [(scores > 0).mean() for scores in (found.played.in_scores, found.played.out_scores)]
    assert shown["advantage"]["value"] == pytest.approx(rates[0] - rates[1])
    assert all(each["kind"] == "point estimate" for each in shown["epsilons"].values())
    other = audit("di", small(noise_multiplier=1.0), trials=30, belief_prior=0.9).identifiability
    assert other["epsilons"]["advantage"] is None  # at another prior it gives no ε
    assert other["epsilons"]["belief"] is not None
    sampled = audit("di", small(sample_rate=0.4), trials=20).identifiability
    assert sampled["predicted"] is None  # the formulas have every record in every batch
    assert sampled["epsilons"]["sensitivities"] is None


def losing(block, found):
    if block == 0:
        found["log_ratio"][0, -1] = np.nan
        found["score"][0], found["diverged"][0] = -np.inf, True


def test_models_that_diverged_are_not_among_them(monkeypatch):
    clean = audit("di", small(), trials=20, block=10).identifiability
    play(monkeypatch, losing)
    found = audit("di", small(), trials=20, block=10)
    assert found.trials["diverged"] == 1
    counted = found.identifiability["exceedance"]["trials"]
    assert counted == clean["exceedance"]["trials"] - 1 == 19


@pytest.mark.parametrize("noise", [2.0, 1e-4])
def test_what_the_accountant_certifies_nothing_for_is_judged_all_the_same(noise, tmp_path):
    asked = {"claim": EpsilonDelta(1.0, 0.0), "trials": 200, "delta": 0.0}
    path = tmp_path / "a.run"
    found = audit("malicious-dataset", small(noise_multiplier=noise), **asked, path=path)
    assert found.proved is None
    assert found.refuted == (noise < 1)
    assert any(bound.epsilon == np.inf for bound in found.bounds)
    assert [b.epsilon for b in record_of(path).bounds] == [b.epsilon for b in found.bounds]


def turned(block, found):
    """The record pushes every score down."""
    found["score"] -= 100.0 * found["in_world"]


def test_scores_that_point_the_wrong_way_round_are_told_and_refute(monkeypatch):
    play(monkeypatch, turned)
    found = audit("malicious-dataset", small(), trials=60)
    assert found.verdict.outcome == "refuted"
    (told,) = found.caveats
    assert told.startswith("The scores point the wrong way round (area under the ROC curve 0)")
    assert told in found.sentence


def test_a_training_that_the_accountant_does_not_certify_for_the_claim_is_told():
    found = audit("malicious-dataset", small(), claim=GDP(0.1), trials=20)
    (told,) = found.caveats
    proved = DPSGD(2.0, 1.0, 4).curve().epsilon(1e-5)
    assert told.startswith(f"The accountant certifies ε = {round_up(proved)} at δ = 1e-05 for this")
    assert told in found.sentence
