"""An audit in plain values: what a file may say, and one sentence for all that it may not."""

import dataclasses
import json
import re
import tomllib

import numpy as np
import pytest
from torch import nn

import dprime
from dprime.attack import ADVERSARIES, EngineTrainer, FunctionTrainer, MaliciousDataset
from dprime.audit.audits import audit
from dprime.audit.settings import AuditSettings, begin, resume, settings_of
from dprime.metrics import Reading
from dprime.runs.run import Run
from dprime.train import SGD, Adam
from planted import trained_with_batch_norm

ONE_SENTENCE = re.compile(r"[^\n]+ must be [^\n]+, but it is [^\n]+: [^\n]+[.?]")
BASE = {"records": 10, "trials": 6, "seed": 1}
CLAIM = {"epsilon": 4.0}
SHORT = {"steps": 2}

TOML = """
adversary = "gradient"
records = 20
model = "dense-8"
adjacency = "replace"
trials = 30
block = 7
metric = "tpr"
method = "band"
confidence = 0.9
delta = 1e-6
seed = 12345678901234567890

[conditions]
fpr = 0.05

[training]
steps = 3
learning_rate = 0.2
clip_norm = 2.0
sample_rate = 0.5
optimizer = "sgd"
momentum = 0.5

[claim]
epsilon = 2.0

[options]
shadows = 2
share = 0.1
"""


def refused(values, message, act=lambda settings: settings.setting()):
    """The sentence with which some values are refused, at once or when they are used."""
    with pytest.raises(ValueError, match=message) as caught:
        act(AuditSettings.of({**BASE, "claim": CLAIM, "training": SHORT, **values}))
    assert ONE_SENTENCE.fullmatch(str(caught.value)), caught.value


# Files --------------------------------------------------------------------------------------------


def test_a_file_and_back(tmp_path):
    path = tmp_path / "audit.toml"
    path.write_text(TOML)
    settings = AuditSettings.of(AuditSettings.from_file(path))
    plain = settings.plain()
    assert {name: plain[name] for name in tomllib.loads(TOML)} == tomllib.loads(TOML)
    again = AuditSettings.of(json.loads(json.dumps(plain)))
    assert again == settings
    assert again.plain() == plain
    assert settings.seed == 12345678901234567890


def test_what_a_file_stands_for():
    settings = AuditSettings.of(tomllib.loads(TOML))
    question, recipe, setting = settings.question(), settings.recipe(), settings.setting()
    assert question.metric == Reading("tpr", {"fpr": 0.05})
    assert (question.method, question.confidence, question.delta) == ("band", 0.9, 1e-6)
    assert (recipe.steps, recipe.learning_rate, recipe.clip_norm) == (3, 0.2, 2.0)
    assert recipe.sample_rate == 0.5
    assert recipe.optimizer == SGD(momentum=0.5)
    assert (setting.adjacency, setting.seed) == ("replace", settings.seed)
    assert len(setting.dataset) == 20
    assert len(setting.pool) == 359
    assert settings.attacker() == ADVERSARIES["gradient"](shadows=2, share=0.1)
    assert settings.blocks == 9
    assert isinstance(setting.trainer, EngineTrainer)
    assert setting.trainer.training == recipe


def test_what_is_not_said():
    settings = AuditSettings(claim=CLAIM)
    assert (settings.adversary, settings.data, settings.trials) == (
        "malicious-dataset", "digits", 1000,
    )  # fmt: skip
    assert settings.block == 200
    assert AuditSettings(trainer="planted:trained_with_batch_norm", claim=CLAIM).block == 10
    assert settings.attacker() == MaliciousDataset()
    assert (settings.question().metric, settings.question().method) == ("curve", "band")
    assert AuditSettings(claim=CLAIM).seed != settings.seed
    assert len(settings.setting().dataset) == 1438


def test_the_usual_adjacency_is_the_adversarys():
    """Of an attribute the record is there in both worlds; what is said wins."""
    assert AuditSettings().adjacency == "zero-out"
    assert AuditSettings(training={"expected_batch_size": 8}).adjacency == "add-remove"
    assert AuditSettings(trainer="module:function").adjacency == "add-remove"
    usual = AuditSettings(adversary="attribute")
    assert usual.adjacency == usual.plain()["adjacency"] == "replace"
    assert AuditSettings(adversary="attribute", adjacency="add-remove").adjacency == "add-remove"
    refused({"adjacency": ""}, "must be one of add-remove, replace, zero-out, but it is ''")


def test_numbers_with_a_point_and_exponents():
    settings = AuditSettings.of(tomllib.loads("trials = 1e2\nseed = 1\n[claim]\nepsilon = 4"))
    assert settings.trials == 100
    assert settings.blocks == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"trials: 5", "settings must be TOML, but it is"),
        (b"\xff\xfe", "settings must be TOML, but it is"),
        (None, r"settings must be a file to read \(No such file or directory\)"),
    ],
)
def test_files_that_cannot_be_read(content, message, tmp_path):
    path = tmp_path / "audit.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        AuditSettings.from_file(path)
    assert ONE_SENTENCE.fullmatch(str(caught.value))
    with pytest.raises(ValueError, match=r"settings must be a file to read \(Is a directory\)"):
        AuditSettings.from_file(tmp_path)


# Names and types ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"adversery": "di"}, r"'adversery': did you mean adversary\?"),
        ({"zzz": 1}, "'zzz': known are adversary, data, records,"),
        ({"training": {"step": 3}}, r"training must be known names.*did you mean steps\?"),
        (
            {"training": {"schedule": "cosine"}},
            "training must be known names, but it is 'schedule'",
        ),
        ({"training": {"block": 3}}, "training must be known names, but it is 'block'"),
        ({"claim": {"eps": 3}}, r"claim must be known names, but it is 'eps'"),
        ({"options": {"copy": 3}}, r"options must be known names.*did you mean copies\?"),
        ({"conditions": {"fpr": 0.1}}, "fpr must be left out to judge by the curve, but it is 0.1"),
    ],
)
def test_unknown_names(values, message):
    refused(values, message, lambda settings: settings.attacker())


TEXTS = [
    "adversary",
    "data",
    "data_dir",
    "model",
    "trainer",
    "adjacency",
    "metric",
    "method",
    "device",
]
NUMBERS = [
    "records", "trials", "block", "seed", "confidence", "delta", "memory", "record", "belief",
    "belief_prior",
]  # fmt: skip
TABLES = ["training", "claim", "conditions", "options"]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("value", [3, ["x"], {"a": 1}, True, ""], ids=repr)
def test_something_else_where_a_text_is_meant(name, value):
    refused({name: value}, f"^{name} must be ")


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["3", [3], {"a": 1}, -1, float("nan"), float("inf")], ids=repr)
def test_something_else_where_a_number_is_meant(name, value):
    refused({name: value}, f"^{name} must be ")


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("value", [3, ["x"], "x"], ids=repr)
def test_something_else_where_a_table_is_meant(name, value):
    message = f"^{name} must be a table of names and values"
    refused({name: value}, message, lambda settings: settings.attacker())


@pytest.mark.parametrize("name", ["steps", "learning_rate", "clip_norm", "sample_rate", "momentum"])
@pytest.mark.parametrize("value", ["3", [3], {"a": 1}, True, -1, float("nan")], ids=repr)
def test_wrong_numbers_in_the_recipe(name, value):
    refused({"training": {**SHORT, name: value}}, f"^{name} must be ")


@pytest.mark.parametrize("name", ["loss", "optimizer", "sensitivity"])
@pytest.mark.parametrize("value", ["mine", 3, ["sgd"]], ids=repr)
def test_wrong_words_in_the_recipe(name, value):
    refused({"training": {**SHORT, name: value}}, f"^{name} must be one of ")


@pytest.mark.parametrize("value", ["4", [4], True, -1, 0, float("nan")], ids=repr)
@pytest.mark.parametrize("noise", [{}, {"noise_multiplier": 2.0}], ids=["chosen", "given"])
def test_wrong_claims(value, noise):
    values = {"claim": {"epsilon": value}, "training": {**SHORT, **noise}}
    refused(values, "^epsilon must be ", lambda settings: settings.claimed())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"trials": 1}, "trials must be at least 2 in each world, but it is 1"),
        ({"seed": 2**256}, r"seed must be a whole number from 0 to 2\^256 - 1"),
        ({"records": 1}, "records must be from 2 to 1,438, but it is 1: digits has 1,438"),
        ({"records": 1439}, "records must be from 2 to 1,438, but it is 1439"),
        ({"record": 10}, "record must be an index from 0 to 9, but it is 10"),
        ({"record": 10, "adversary": "di"}, "record must be an index from 0 to 9, but it is 10"),
        ({"data": "imagenet"}, "data must be one of digits, diabetes,.* but it is 'imagenet'"),
        ({"data": "mnist", "data_dir": "nowhere"}, "data_dir must be a folder with mnist/"),
        ({"device": "abacus"}, "device must be available, but it is 'abacus'"),
        ({"metric": "tpr", "conditions": {"fpr": "x"}}, "fpr must be a number, but it is 'x'"),
        ({"method": "clopper-pearson"}, "method must be band to judge by the curve"),
        ({"method": "steinke"}, "method must be one of clopper-pearson, band, gaussian, bayesian"),
        ({"model": "resnet"}, "model must be a network that dprime knows, but it is 'resnet'"),
        ({"model": "conv-4-4-4"}, "model must be few enough for images"),
        ({"model": "conv-4", "data": "diabetes"}, "model must be dense or linear for a table"),
        ({"model": "no_such_module:net"}, r"network \(ModuleNotFoundError: No module named"),
        ({"model": "os.path:sep"}, "model must be a function that returns a network"),
        ({"model": "os.path:join"}, r"a function that returns a network \(TypeError: "),
        ({"model": "os:getcwd"}, "model must be a function that returns a network, but it is"),
        ({"model": ":"}, "model must be a function that returns a network"),
        ({"model": "torch.nn:Flatten"}, "model must be trainable, but it is without any weight"),
        (
            {"training": {**SHORT, "loss": "squared-error"}},
            "the model's output must be of shape .records, 1. for squared-error",
        ),
        ({"claim": {}}, "noise_multiplier must be given in the training, but it is missing"),
        ({"claim": {"noise_multiplier": 2.0}}, "noise_multiplier must be given in the training"),
    ],
)  # fmt: skip
def test_values_out_of_range(values, message):
    refused(values, message)


# Claims -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("rate", [1.0, 0.2])
def test_the_noise_is_chosen_for_the_claim(adjacency, rate):
    settings = AuditSettings(
        adjacency=adjacency, claim={"epsilon": 3.0, "delta": 1e-4},
        training={"steps": 8, "sample_rate": rate},
    )  # fmt: skip
    chosen = dprime.choose(
        dprime.DPSGD(sample_rate=rate, steps=8), epsilon=3.0, delta=1e-4, adjacency=adjacency
    )
    recipe = settings.recipe()
    assert recipe.noise_multiplier == chosen.noise_multiplier
    assert settings.setting().trainer.training.noise_multiplier == chosen.noise_multiplier
    assert 2.99 < settings.claimed().epsilon(1e-4) <= 3.0


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_a_belief_may_be_claimed(adjacency):
    values = {"adjacency": adjacency, "training": {"steps": 8}}
    tight = AuditSettings(**values, claim={"belief": 0.9, "delta": 0.01})
    assert 0.899 < tight.claimed().belief(exceeded=0.01) <= 0.9
    by_rdp = AuditSettings(**values, claim={"belief": 0.9, "delta": 0.01, "composition": "rdp"})
    noise = by_rdp.recipe().noise_multiplier
    assert noise == dprime.bounds.rdp_noise_multiplier_from_epsilon(
        dprime.bounds.epsilon_from_belief(0.9), delta=0.01, steps=8, adjacency=adjacency
    )
    assert noise > tight.recipe().noise_multiplier
    assert by_rdp.claimed().belief(exceeded=0.01) < 0.9
    by_epsilon = {"epsilon": dprime.bounds.epsilon_from_belief(0.9), "delta": 0.01}
    same = AuditSettings(**values, claim={**by_epsilon, "composition": "rdp"})
    assert same.recipe().noise_multiplier == noise


def test_what_no_noise_is_chosen_for():
    belief = {"belief": 0.9, "delta": 0.01}
    given = {"noise_multiplier": 2.0, **SHORT}
    refused({"claim": belief, "training": given}, "belief must be one that the noise is chosen for",
            AuditSettings.claimed)  # fmt: skip
    sampled = {"sample_rate": 0.5, **SHORT}
    refused({"claim": {**belief, "composition": "rdp"}, "training": sampled},
            "sample_rate must be 1 for Rényi composition", AuditSettings.claimed)  # fmt: skip


def test_delta_is_that_of_the_audit_where_the_claim_has_none():
    settings = AuditSettings(claim={"epsilon": 3.0}, delta=1e-3, training=SHORT)
    assert settings.claimed().epsilon(1e-3) == pytest.approx(3.0, abs=0.01)


def test_noise_that_is_given_is_judged_by_the_claim():
    settings = AuditSettings(claim={"epsilon": 0.5}, training={"noise_multiplier": 1.0, **SHORT})
    assert settings.recipe().noise_multiplier == 1.0
    assert settings.claimed().epsilon(1e-5) == pytest.approx(0.5)


def test_without_a_claim_the_recipes_own():
    settings = AuditSettings(training={"noise_multiplier": 2.0, "sample_rate": 0.5, "steps": 9})
    assert settings.claimed().advantage() == dprime.DPSGD(2.0, 0.5, 9).curve().advantage()


def test_other_numbers_of_a_training_may_be_claimed():
    """For a mistake in the accounting: the claim says a tenth of the rate that was used."""
    settings = AuditSettings(
        training={"noise_multiplier": 2.0, "sample_rate": 0.5, "steps": 9},
        claim={"sample_rate": 0.05},
    )
    assert settings.claimed().advantage() == dprime.DPSGD(2.0, 0.05, 9).curve().advantage()


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"epsilon": 3.0, "steps": 4}, "claim must be an epsilon, a belief, or the numbers of"),
        ({"epsilon": 3.0, "noise_multiplier": 4}, "but it is epsilon and noise_multiplier"),
        ({"epsilon": 3.0, "belief": 0.9}, "but it is epsilon and belief"),
        ({"delta": 1e-5}, "claim must be an epsilon or a belief with it, but it is a delta alone"),
        ({"composition": "rdp"}, "but it is a composition alone"),
        ({"epsilon": 3.0, "composition": "basic"}, "composition must be one of tight, rdp"),
    ],
)
def test_two_claims_at_once(claim, message):
    refused({"claim": claim}, message)


OWN = {"trainer": "planted:trained_with_batch_norm", "adversary": "api-access"}


def test_claims_of_ones_own_trainer():
    by_epsilon = AuditSettings(**OWN, claim={"epsilon": 2.0, "delta": 1e-6})
    assert by_epsilon.claimed().epsilon(1e-6) == pytest.approx(2.0)
    numbers = {"noise_multiplier": 1.5, "sample_rate": 0.1, "steps": 20}
    by_numbers = AuditSettings(**OWN, adjacency="replace", claim=numbers)
    expected = dprime.DPSGD(**numbers).curve("replace")
    assert by_numbers.claimed().advantage() == expected.advantage()
    refused({**OWN, "claim": {}}, "claim must be given for a training", AuditSettings.claimed)
    half = {"noise_multiplier": 1.5, "steps": 20}
    refused({**OWN, "claim": half}, "sample_rate must be given", AuditSettings.claimed)


def test_ones_own_trainer():
    trainer = AuditSettings(**OWN, claim=CLAIM).setting().trainer
    assert isinstance(trainer, FunctionTrainer)
    assert trainer.function is trained_with_batch_norm
    assert trainer.loss == "cross-entropy"
    refused({**OWN, "trainer": "planted"}, "trainer must be of the form module:function")
    refused({**OWN, "trainer": "planted:nothing"}, "trainer must be a function in planted")
    refused({**OWN, "trainer": "no_such_module:train"}, "trainer must be importable")


# Models and data ----------------------------------------------------------------------------------


def test_models_by_name_and_by_function():
    for name, layers in [("linear", 2), ("dense-7", 4), ("conv-4", 6)]:
        model = AuditSettings(**BASE, claim=CLAIM, model=name).setting().trainer.model
        assert len(model) == layers
    own = AuditSettings(**BASE, claim=CLAIM, model="games:network").setting()
    assert [type(layer) for layer in own.trainer.model] == [nn.Flatten, nn.Linear]


def test_optimizers():
    adam = AuditSettings(claim=CLAIM, training={"optimizer": "adam"}).recipe()
    assert adam.optimizer == Adam()
    assert AuditSettings(claim=CLAIM).recipe().optimizer == SGD(momentum=0.0)


def test_a_regression_is_judged_by_its_squared_error():
    values = {**BASE, "data": "diabetes", "claim": CLAIM, "training": SHORT}
    assert AuditSettings.of(values).setting().trainer.training.loss == "squared-error"
    own = AuditSettings.of({**values, **OWN}).setting()
    assert own.trainer.loss == "squared-error"
    refused(
        {"data": "diabetes", "training": {**SHORT, "loss": "cross-entropy"}},
        "labels must be class indexes, but it is real numbers",
    )


# Runs ---------------------------------------------------------------------------------------------


def test_begun_resumed_and_the_same(tmp_path):
    settings = AuditSettings(**BASE, block=4, claim=CLAIM, training=SHORT)
    path = tmp_path / "a.run"
    found = begin(settings, path)
    with Run.open(path) as store:
        assert settings_of(store) == settings
        assert store.result == found.record()
        assert store.seed == 1
    again = resume(path)
    assert again.as_json() == found.as_json()
    direct = audit("malicious-dataset", settings.setting(), trials=6, block=4)
    np.testing.assert_array_equal(direct.in_scores, found.in_scores)


def test_a_drawn_seed_is_kept(tmp_path):
    settings = AuditSettings(records=6, trials=3, claim=CLAIM, training=SHORT)
    begin(settings, tmp_path / "a.run")
    with Run.open(tmp_path / "a.run") as store:
        assert settings_of(store).seed == settings.seed == store.seed


@pytest.mark.parametrize(
    "values",
    [
        {"claim": {}},
        {"options": {"copies": 0}},
        {"records": 1},
        {"model": "resnet"},
        {"device": "abacus"},
        {"training": {"steps": 2, "loss": "squared-error"}},
    ],
)
def test_what_is_wrong_is_said_before_there_is_a_file(values, tmp_path):
    settings = AuditSettings.of({**BASE, "claim": CLAIM, "training": SHORT, **values})
    with pytest.raises(ValueError, match="must be"):
        begin(settings, tmp_path / "a.run")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_begun_in_python(tmp_path):
    """It is resumed there; or by names, once they have been given and describe the same objects."""
    path, settings = tmp_path / "a.run", AuditSettings.of(
        {**BASE, "adversary": "di", "claim": {"noise_multiplier": 3.0}, "metric": "advantage",
         "training": {**SHORT, "noise_multiplier": 3.0}}
    )  # fmt: skip
    setting = settings.setting()
    found = audit(
        "di", setting, trials=settings.trials, block=settings.block, path=path,
        question=settings.question(),
    )  # fmt: skip
    with pytest.raises(ValueError, match="run must be begun by dprime audit") as caught:
        resume(path)
    assert ONE_SENTENCE.fullmatch(str(caught.value))
    other = dataclasses.replace(settings, trials=settings.trials + 1)
    with pytest.raises(ValueError, match=r"a\.run must be of the same settings \(trials"):
        begin(other, path)
    for again in (begin(settings, path), resume(path)):
        assert again.as_json() == found.as_json()


def test_a_run_of_another_kind_is_no_audit(tmp_path):
    Run.create(tmp_path / "a.run", "frontier", {}, blocks=1).close()
    with pytest.raises(ValueError, match=r"that of an audit, but it is .* frontier"):
        resume(tmp_path / "a.run")
