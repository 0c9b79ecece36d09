"""An audit in words: what they may say, what becomes of them, and what is refused."""

import dataclasses
import json

import numpy as np
import pytest
from torch import nn

import dprime
from dprime import bounds
from dprime.attack import ADVERSARIES, EngineTrainer, FunctionTrainer
from dprime.audit import AuditConfig, audit, begin, config, resume, words, words_in
from dprime.audit.audits import adversary_of, target_of
from dprime.guarantees import EpsilonDelta
from dprime.metrics import Reading
from dprime.runs.run import Run
from dprime.train import SGD, Adam
from planted import trained_with_batch_norm

BASE = {"max_records": 10, "trials": 6, "seed": 1}
CLAIM = {"epsilon": 4.0}
SHORT = {"steps": 2}
OWN = {"trainer": "planted:trained_with_batch_norm", "adversary": "api-access"}


def of(**words):
    return AuditConfig.from_words({**BASE, "claim": CLAIM, "training": SHORT, **words})


# What words stand for -----------------------------------------------------------------------------


def test_what_words_stand_for():
    recipe = {"steps": 3, "learning_rate": 0.2, "clip_norm": 2.0, "sample_rate": 0.5}
    made = AuditConfig.from_words(
        adversary="gradient",
        options={"shadows": 2, "share": 0.1},
        max_records=20,
        model="dense-8",
        adjacency="replace",
        trials=3e1,
        block=7,
        metric="tpr",
        conditions={"fpr": 0.05},
        delta=1e-6,
        seed=2**200,
        training={**recipe, "optimizer": "sgd", "momentum": 0.5},
        claim={"epsilon": 2.0},
    )
    assert made.criterion == Reading("tpr", {"fpr": 0.05})
    assert (made.trials, made.blocks) == (30, 9)
    assert made.chosen_for == {"epsilon": 2.0, "delta": 1e-6}
    assert adversary_of(made) == ADVERSARIES["gradient"](shadows=2, share=0.1)
    target = target_of(made)
    training = target.trainer.training
    assert isinstance(target.trainer, EngineTrainer)
    assert {name: getattr(training, name) for name in recipe} == recipe
    assert training.optimizer == SGD(momentum=0.5)
    assert training.noise_multiplier == made.claim.noise_multiplier
    assert (target.adjacency, target.seed) == ("replace", 2**200)
    assert (len(target.dataset), len(target.pool)) == (20, 359)


@pytest.mark.parametrize(
    "words",
    [
        {"metric": "epsilon"},
        {"training": {**SHORT, "noise_multiplier": 2.0}},
        OWN,
        {"claim": {"belief": 0.9, "delta": 0.01}},
        {"adversary": "attribute", "data": "diabetes"},
    ],
    ids=repr,
)
def test_there_and_back(words):
    made = of(**words)
    kept = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert AuditConfig.from_dict(kept) == AuditConfig.from_words(kept) == made


def test_what_words_leave_out():
    made = AuditConfig.from_words(claim=CLAIM)
    assert (made.adversary, made.data, made.trials) == ("malicious-dataset", "digits", 1000)
    assert (made.block, of(**OWN).block) == (200, 10)
    assert (made.criterion, made.method, made.adjacency) == ("curve", "band", "zero-out")
    assert AuditConfig.from_words(claim=CLAIM).seed != made.seed
    assert len(target_of(made).dataset) == 1438
    assert of(training={"expected_batch_size": 8}).adjacency == "add-remove"
    assert of(**OWN).adjacency == "add-remove"
    assert of(adversary="attribute").adjacency == "replace"
    assert of(adversary="attribute", adjacency="add-remove").adjacency == "add-remove"


def test_models_trainers_and_losses():
    for name, layers in [("linear", 2), ("dense-7", 4), ("conv-4", 6)]:
        assert len(target_of(of(model=name)).trainer.model) == layers
    own = target_of(of(model="games:network")).trainer.model
    assert [type(layer) for layer in own] == [nn.Flatten, nn.Linear]
    function = target_of(of(**OWN)).trainer
    assert isinstance(function, FunctionTrainer)
    assert (function.function, function.loss) == (trained_with_batch_norm, "cross-entropy")
    assert target_of(of(training={"optimizer": "adam"})).trainer.training.optimizer == Adam()
    assert target_of(of(data="diabetes")).trainer.training.loss == "squared-error"


def test_the_table_of_adversaries_is_that_of_the_adversaries():
    options = {
        name: tuple(field.name for field in dataclasses.fields(kind))
        for name, kind in ADVERSARIES.items()
    }
    assert options == words.ADVERSARIES


# Claims -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("adjacency", "rate"), [("zero-out", 0.2), ("replace", 1.0)])
def test_the_noise_is_chosen_for_the_claim(adjacency, rate):
    claim, training = {"epsilon": 3.0, "delta": 1e-4}, {"steps": 8, "sample_rate": rate}
    made = of(adjacency=adjacency, claim=claim, training=training)
    chosen = dprime.choose(dprime.DPSGD(**training), **claim, adjacency=adjacency)
    assert made.claim == chosen
    assert made.training["noise_multiplier"] == chosen.noise_multiplier
    assert 2.99 < made.curve.epsilon(1e-4) <= 3.0


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_a_belief_may_be_claimed(adjacency):
    words = {"adjacency": adjacency, "training": {"steps": 8}}
    claim = {"belief": 0.9, "delta": 0.01}
    tight = of(**words, claim=claim)
    assert 0.899 < tight.curve.belief(exceeded=0.01) <= 0.9
    by_rdp = of(**words, claim={**claim, "composition": "rdp"})
    epsilon = bounds.epsilon_from_belief(0.9)
    noise = by_rdp.training["noise_multiplier"]
    assert noise == bounds.rdp_noise_multiplier_from_epsilon(
        epsilon, delta=0.01, steps=8, adjacency=adjacency
    )
    assert noise > tight.training["noise_multiplier"]
    same = of(**words, claim={"epsilon": epsilon, "delta": 0.01, "composition": "rdp"})
    assert same.training == by_rdp.training


def test_what_is_claimed_of_noise_that_is_given():
    given = {"noise_multiplier": 2.0, "sample_rate": 0.5, "steps": 9}
    assert of(claim={}, training=given).claim == dprime.DPSGD(2.0, 0.5, 9)
    assert of(claim={"sample_rate": 0.05}, training=given).claim == dprime.DPSGD(2.0, 0.05, 9)
    stated = EpsilonDelta(0.5, 1e-3, adjacency="zero-out")
    assert of(claim={"epsilon": 0.5}, delta=1e-3, training=given).claim == stated
    named = of(claim=dprime.GDP(1.5, adjacency="zero-out").to_dict(), training=given)
    assert named.curve.d_prime() == pytest.approx(1.5)
    assert of(claim={}, training=given).certified() is None
    told = of(claim={"epsilon": 0.5}, training=given).certified()
    assert told.startswith("The accountant certifies ε = ")
    numbers = {"noise_multiplier": 1.5, "sample_rate": 0.1, "steps": 20}
    assert of(**OWN, adjacency="replace", claim=numbers).claim == dprime.DPSGD(**numbers)


# What is refused ----------------------------------------------------------------------------------

NOISE, LOCAL = {"noise_multiplier": 2.0}, {"sensitivity": "local", "sample_rate": 0.5}
REFUSED = [
    # names and tables
    ({"adversery": "di"}, r"'adversery': did you mean adversary\?"),
    ({"zzz": 1}, "'zzz': known are adversary, options, data,"),
    ({"training": {"schedule": "cosine"}}, "training must be known names, but it is 'schedule'"),
    ({"claim": {"eps": 3}}, "claim must be known names, but it is 'eps'"),
    ({"options": {"copy": 3}}, r"options must be known names.*did you mean copies\?"),
    *[({name: 3}, f"^{name} must be a table") for name in ("training", "claim", "conditions")],
    # a wrong value for each kind of check
    *[({name: 3}, f"^{name} must be ") for name in ("adversary", "data", "trainer", "method")],
    *[({name: ""}, f"^{name} must be ") for name in ("model", "metric", "adjacency", "assume")],
    *[
        ({name: "3"}, f"^{name} must be ")
        for name in ("max_records", "seed", "delta", "belief_level")
    ],
    ({"trials": 1}, "trials must be at least 2, but it is 1"),
    ({"training": {**SHORT, "clip_norm": -1}}, "^clip_norm must be "),
    # what does not fit together
    ({"conditions": {"fpr": 0.1}}, "fpr must be left out to judge by the curve, but it is 0.1"),
    ({"metric": "tpr", "conditions": {"fpr": "x"}}, "fpr must be a number, but it is 'x'"),
    ({"method": "clopper-pearson"}, "method must be band to judge by the curve"),
    ({"method": "steinke"}, "method must be one of clopper-pearson, band, gaussian, bayesian"),
    ({"method": "bayesian", "metric": "advantage"}, "method must be one that bounds more than ε"),
    # claims
    ({"claim": {}}, "noise_multiplier must be given in the training, but it is missing"),
    ({"claim": {"name": "GDP", "mu": 1.0}}, "noise_multiplier must be given in the training"),
    ({"training": NOISE, "chosen_for": {"epsilon": 0.1, "delta": 1e-5}}, "chosen_for must be what"),
    ({"claim": {"epsilon": 3.0, "steps": 4}}, "claim must be an epsilon or a belief, with its"),
    ({"claim": {"delta": 1e-5}}, "claim must be an epsilon or a belief, .*, but it is delta"),
    ({"claim": {**CLAIM, "composition": "basic"}}, "composition must be one of tight, rdp"),
    ({"claim": {"belief": 0.9}, "training": NOISE}, "belief must be one that the noise is chosen"),
    ({"claim": {**CLAIM, "composition": "rdp"}, "training": {"sample_rate": 0.5}}, "1 for Rényi"),
    ({"claim": {}, "adjacency": "replace", "training": NOISE | LOCAL}, "for local sensitivity"),
    ({**OWN, "claim": {}}, "claim must be given for a training function of your own"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED, ids=lambda v: str(v)[:60])
def test_words_that_are_refused(words, message):
    with pytest.raises(dprime.InputError, match=message):
        of(**words)


REFUSED_BY_THE_DATA = [
    ({"max_records": 1439}, "max_records must be at most 1438, but it is 1439"),
    ({"record": 10}, "record must be an index from 0 to 9, but it is 10"),
    ({"model": "conv-4", "data": "diabetes"}, "model must be dense or linear for a table"),
    ({"training": {**SHORT, "loss": "squared-error"}}, "the model's output must be of shape"),
    ({"options": {"copies": 0}}, "copies must be at least 1"),
    ({**OWN, "trainer": "planted:nothing"}, "trainer must be a function to import"),
    ({**OWN, "claim": {"noise_multiplier": 1.5, "steps": 20}}, "sample_rate must be given"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED_BY_THE_DATA, ids=lambda v: str(v)[:60])
def test_what_the_data_and_the_network_refuse_is_said_before_there_is_a_file(
    words, message, tmp_path
):
    made = of(**words)
    with pytest.raises(dprime.InputError, match=message):
        begin(made, tmp_path / "a.run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"trials: 5", b"\xff\xfe", b"seed = " + b"9" * 5000, None])
def test_files_that_cannot_be_read(content, tmp_path):
    path = tmp_path / "audit.toml"
    if content is not None:
        path.write_bytes(content)
    wanted = "settings must be TOML" if content else "must be a file"
    with pytest.raises(dprime.InputError, match=f"{wanted}, but it is"):
        words_in(path)


# Runs ---------------------------------------------------------------------------------------------


def test_the_noise_is_solved_once_and_a_finished_run_trains_nothing(tmp_path, monkeypatch):
    called = []

    def counted(place, name):
        real = getattr(place, name)

        def call(*given, **named):
            called.append(name)
            return real(*given, **named)

        monkeypatch.setattr(place, name, call)

    counted(config, "choose")
    counted(dprime.attack.trainer, "train")
    counted(ADVERSARIES["malicious-dataset"], "craft")
    made, path = of(block=4), tmp_path / "a.run"
    begun = begin(made, path)
    assert called == ["choose", "craft", *["train"] * made.blocks]
    called.clear()
    again = resume(path)
    assert called == []
    assert again.to_dict() == begun.to_dict()
    with Run.open(path) as run:
        assert AuditConfig.of(run) == again.config == made
        assert run.seed == made.seed


def test_a_run_that_was_begun_in_python(tmp_path):
    """It is resumed there; or by names, once they have been given and describe the same objects."""
    path, given = tmp_path / "a.run", {**SHORT, "noise_multiplier": 3.0}
    made = of(adversary="di", claim={}, metric="advantage", training=given)
    options = {"trials": made.trials, "block": made.block, "path": path}
    found = audit("di", target_of(made), criterion=made.criterion, **options)
    with pytest.raises(dprime.InputError, match="run must be begun by dprime audit"):
        resume(path)
    other = dataclasses.replace(made, trials=made.trials + 1)
    with pytest.raises(dprime.InputError, match=r"a\.run must be of the same settings \(trials"):
        begin(other, path)
    for again in (begin(made, path), resume(path)):
        assert again.config == made
        assert again.verdict == found.verdict
        assert again.rows == found.rows
    alone = begin(made, tmp_path / "b.run")  # names and objects give the same trials
    np.testing.assert_array_equal(alone.played.in_scores, found.played.in_scores)


def test_a_run_of_another_kind_is_no_audit(tmp_path):
    Run.create(tmp_path / "a.run", "frontier", {}, blocks=1).close()
    with pytest.raises(dprime.InputError, match=r"that of an audit, but it is .* frontier"):
        resume(tmp_path / "a.run")
