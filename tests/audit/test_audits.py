"""From the crafted attack to the verdict: what is concluded, kept, resumed and refused."""

import dataclasses
import json
import re
from contextlib import contextmanager

import numpy as np
import pytest
import scipy
import torch
from torch import nn

from dprime import DPSGD, EpsilonDelta
from dprime.attack import (
    DI,
    AttackTarget,
    EngineTrainer,
    FunctionTrainer,
    MaliciousDataset,
    StaticPoisoning,
)
from dprime.audit import Band, Steinke, lower_bound
from dprime.audit.audits import Question, audit
from dprime.audit.game import Game
from dprime.curve import TradeOff
from dprime.data import load
from dprime.data.dataset import Dataset
from dprime.metrics import Reading
from dprime.runs.run import Run
from dprime.text import round_up
from dprime.train import TrainingConfig
from dprime.train.models import model_named
from games import IMAGES, engine_setting

ADVANTAGE = Question(Reading("advantage"))
ONE_SENTENCE = re.compile(r"[^\n]+ must be [^\n]+, but it is [^\n]+: [^\n]+\.")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small(**options):
    return engine_setting(**{"noise_multiplier": 2.0, "records": 6, **options})


# The verdict --------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_a_correct_training_is_not_refuted_and_a_claim_too_strong_is(adjacency):
    setting = small(adjacency=adjacency)
    right = audit("malicious-dataset", setting, trials=200, question=ADVANTAGE)
    assert right.verdict.outcome == "not refuted"
    assert right.claim.advantage() == DPSGD(2.0, 1.0, 4).curve(adjacency).advantage()
    strong = audit(
        "malicious-dataset", setting, claim=TradeOff.gaussian(0.1), trials=200, question=ADVANTAGE
    )
    assert strong.verdict.outcome == "refuted"
    assert strong.verdict.reached == right.verdict.reached > TradeOff.gaussian(0.1).advantage()
    assert "the claim is refuted" in strong.sentence()
    np.testing.assert_array_equal(strong.in_scores, right.in_scores)


@pytest.mark.parametrize(
    "question",
    [
        Question(),
        Question(Reading("tpr", {"fpr": 0.1}), "band"),
        Question("curve", "band"),
        Question("curve", Band()),
        Question(Reading("advantage"), "gaussian", confidence=0.9, assume="gaussian"),
        Question(Reading("advantage"), "clopper-pearson"),
    ],
    ids=["usual", "tpr", "curve", "an estimator", "gaussian", "clopper-pearson"],
)
def test_questions(question):
    setting = small(noise_multiplier=0.7)
    for claim, outcome in ((None, "not refuted"), (TradeOff.gaussian(0.1), "refuted")):
        found = audit("malicious-dataset", setting, claim=claim, trials=200, question=question)
        assert found.verdict.outcome == outcome
        assert found.verdict.confidence == question.confidence
        assert found.bound.method not in found.beside
        assert set(found.beside) | {found.bound.method} == {
            "clopper-pearson", "band", "gaussian", "bayesian"
        }  # fmt: skip


@pytest.mark.parametrize(
    "question",
    [Question(), ADVANTAGE, Question(Reading("tpr", {"fpr": 0.2}), "clopper-pearson")],
    ids=["curve", "advantage", "clopper-pearson"],
)
def test_the_deciding_number_is_the_first_in_the_table_and_the_band_gives_the_others(question):
    found = audit("malicious-dataset", small(), trials=100, question=question)
    (decided, reached, allowed), *others = found.rows()
    assert (decided, reached, allowed) == (
        found.verdict.metric, found.verdict.reached, found.verdict.allowed
    )  # fmt: skip
    assert found.bound.value(decided) == reached
    if question.metric != "curve":
        assert decided == question.metric
    band = found.bound if found.bound.method == "band" else found.beside["band"]
    for metric, seen, most in others:
        assert seen == band.value(metric)
        assert most == metric.value(found.claim)
        assert seen <= most
    assert len({metric for metric, _, _ in found.rows()}) == len(found.rows())


def test_the_sentence_counts_the_trials():
    found = audit("api-access", small(), trials=30)
    assert found.sentence().endswith(" It rests on 60 trials.")
    assert (len(found.in_scores), len(found.out_scores)) == (30, 30)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "steinke"}, "method must be one of clopper-pearson, band, gaussian, bayesian"),
        ({"method": Steinke()}, "method must be one of clopper-pearson, band, gaussian, bayesian"),
        ({"method": "mine"}, "but it is 'mine'"),
        ({"confidence": 1.0}, "confidence must be strictly between 0 and 1, but it is 1.0"),
        ({"method": "clopper-pearson"}, "method must be band to judge by the curve"),
        ({"assume": "laplace"}, "assume must be one of gaussian, but it is 'laplace'"),
        ({"metric": "curve", "method": "bayesian"}, "method must be band to judge by the curve"),
        (
            {"metric": Reading("advantage"), "method": "bayesian"},
            "method must be one that bounds more than ε at δ = 1e-05, but it is 'bayesian'",
        ),
        (
            {"metric": Reading("epsilon", {"delta": 1e-3}), "method": "bayesian"},
            "method must be one that bounds more than ε at δ = 1e-05",
        ),
    ],
)
def test_questions_that_no_trial_could_answer_are_refused_before_any(options, message):
    with pytest.raises(ValueError, match=message) as caught:
        Question(**options)
    assert ONE_SENTENCE.fullmatch(str(caught.value))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials must be at least 1, but it is 0"),
        ({"block": -1}, "block must be at least 1, but it is -1"),
        ({"claim": 4.0}, "claim must be a TradeOff, but it is of type float"),
    ],
)
def test_bad_input_is_one_sentence(options, message):
    with pytest.raises(ValueError, match=message) as caught:
        audit("di", small(), **{"trials": 3, **options})
    assert ONE_SENTENCE.fullmatch(str(caught.value))


def test_a_training_without_noise_claims_nothing():
    with pytest.raises(ValueError, match="no certified curve, it is not private"):
        audit("api-access", small(noise_multiplier=0.0), trials=3)


def test_a_function_of_ones_own_needs_a_claim():
    with pytest.raises(ValueError, match="claim must be given for a training function of your own"):
        audit(
            "api-access", AttackTarget(FunctionTrainer(len), IMAGES.train.take(range(4))), trials=3
        )


# What is kept -------------------------------------------------------------------------------------


class Stopped(Game):
    """Ctrl-C in the middle of a block."""

    at = 2

    def play(self, block):
        if block == self.at:
            raise KeyboardInterrupt
        return super().play(block)


@pytest.mark.parametrize("name", ["di", "malicious-dataset", "static-poisoning"])
def test_interrupted_and_resumed_gives_the_same(name, tmp_path, monkeypatch):
    adversary = StaticPoisoning(shadows=5, outliers=1) if name == "static-poisoning" else name
    options = {"trials": 20, "block": 10}
    whole = audit(adversary, small(), **options)
    path = tmp_path / "a.run"
    with monkeypatch.context() as patched:
        patched.setattr("dprime.audit.audits.Game", Stopped)
        with pytest.raises(KeyboardInterrupt):
            audit(adversary, small(), path=path, **options)
    with Run.open(path) as store:
        assert store.done() == [0, 1]
        assert store.state().failed == 0
        assert store.result is None
        first = store.arrays()["score"]
    resumed = audit(adversary, small(), path=path, **options)
    np.testing.assert_array_equal(resumed.in_scores, whole.in_scores)
    np.testing.assert_array_equal(resumed.out_scores, whole.out_scores)
    assert resumed.as_json() == whole.as_json()
    with Run.open(path) as store:
        assert store.state().complete
        assert store.result == resumed.record()
        np.testing.assert_array_equal(store.arrays()["score"][:20], first)


def killed(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("concluded", [True, False])
def test_a_finished_run_is_neither_played_nor_crafted_again(concluded, tmp_path, monkeypatch):
    """Static poisoning trains shadow models to craft with; a kill may come before the result."""
    path, adversary = tmp_path / "a.run", StaticPoisoning(shadows=5, outliers=1)
    first = audit(adversary, small(), trials=10, path=path if concluded else None)
    if not concluded:
        with monkeypatch.context() as patched:
            patched.setattr("dprime.audit.audits.conclude", killed)
            with pytest.raises(KeyboardInterrupt):
                audit(adversary, small(), trials=10, path=path)
    counted = []
    monkeypatch.setattr("dprime.audit.audits.Game.play", lambda *_: counted.append("played"))
    monkeypatch.setattr(StaticPoisoning, "craft", lambda *_: counted.append("crafted"))
    monkeypatch.setattr("dprime.attack.trainer.train", lambda *_, **__: counted.append("trained"))
    assert audit(adversary, small(), trials=10, path=path).as_json() == first.as_json()
    assert counted == []


def test_the_bar_reads_every_block_once(tmp_path, monkeypatch):
    """A bar that is visible shows the bound so far, and does not read all of it at each block."""
    real, read = Run.arrays, []

    def arrays(run, since=0):
        found = real(run, since)
        read.append((since, len(found.get("score", ()))))
        return found

    monkeypatch.setattr(Run, "arrays", arrays)
    audit("malicious-dataset", small(), trials=40, block=10, progress=True)
    *shown, (_, concluded) = read
    assert [since for since, _ in shown] == list(range(8))
    assert (sum(trials for _, trials in shown), concluded) == (80, 80)


def test_without_a_path_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    audit("di", small(), trials=3)
    assert list(tmp_path.iterdir()) == []


DIFFERENT = {
    "adversary": ("api-access", {}, {}),
    "options": (MaliciousDataset(copies=2), {}, {}),
    "records": ("malicious-dataset", {"records": 5}, {}),
    "adjacency": ("malicious-dataset", {"adjacency": "replace"}, {}),
    "trials": ("malicious-dataset", {}, {"trials": 5}),
    "block": ("malicious-dataset", {}, {"block": 3}),
    "seed": ("malicious-dataset", {"seed": 4}, {}),
    "record": ("malicious-dataset", {"record": 1}, {}),
    "trainer": ("malicious-dataset", {"noise_multiplier": 2.5}, {}),
    "contents": ("malicious-dataset", {"pool": IMAGES.test.take([7])}, {}),
}


@pytest.mark.parametrize("different", DIFFERENT)
def test_another_setting_on_the_same_path_is_refused(different, tmp_path):
    path = tmp_path / "a.run"
    audit("malicious-dataset", small(), trials=4, block=4, path=path)
    before = path.read_bytes()
    adversary, changed, options = DIFFERENT[different]
    message = f"a.run must be of the same settings .* but it is of .*{different}"
    with pytest.raises(ValueError, match=message) as caught:
        audit(adversary, small(**changed), path=path, **{"trials": 4, "block": 4, **options})
    assert ONE_SENTENCE.fullmatch(str(caught.value))
    assert path.read_bytes() == before


def test_other_records_under_the_same_name_are_refused(tmp_path):
    """Blocks of two data sets must not end up in one answer."""
    path, setting = tmp_path / "a.run", small()
    audit("di", setting, trials=4, path=path)
    data = setting.dataset
    swapped = Dataset(data.name, data.records[::-1], data.labels[::-1], data.kind, data.classes)
    with pytest.raises(ValueError, match="another contents"):
        audit("di", dataclasses.replace(setting, dataset=swapped), trials=4, path=path)


# What goes wrong ----------------------------------------------------------------------------------


class Constant(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = float(value)

    def forward(self, x):
        logits = torch.zeros(len(x), 10)
        logits[:, 0] = self.value
        return logits


class Sometimes:
    """A training function that fails at some calls."""

    def __init__(self, broken):
        self.broken, self.calls = broken, 0

    def __call__(self, dataset, seed):
        self.calls += 1
        if self.calls in self.broken:
            raise RuntimeError(f"no memory at\ncall {self.calls}")
        return Constant(np.random.default_rng(seed).normal())


CLAIM = TradeOff.gaussian(1.0)


def own(function, **options):
    return AttackTarget(FunctionTrainer(function), IMAGES.train.take(range(4)), **options)


def test_blocks_that_fail_are_told(tmp_path):
    """Of 6 blocks of 10 trials the second one fails twice: 50 trials are left."""
    path = tmp_path / "a.run"
    function = Sometimes({13, 54})
    found = audit("api-access", own(function), claim=CLAIM, trials=30, path=path)
    assert found.state.failed == 1
    assert (len(found.in_scores), len(found.out_scores)) == (25, 25)
    words = "It rests on 50 trials; 1 of 6 blocks failed and count against the attacker, the last "
    assert words in found.sentence()
    assert "RuntimeError: no memory at call 54 (test_audits.py, line" in found.sentence()
    assert "raise RuntimeError(f" in found.state.last_error
    assert found.as_json()["blocks"]["failed"] == 1
    with Run.open(path) as store:
        assert store.pending() == [1]
    mended = audit("api-access", own(Sometimes(())), claim=CLAIM, trials=30, path=path)
    assert mended.state.complete
    assert mended.sentence().endswith("It rests on 60 trials.")


def test_a_function_that_always_fails_says_why():
    with pytest.raises(
        ValueError, match="blocks all failed with RuntimeError: no memory"
    ) as caught:
        audit("api-access", own(same_error), claim=CLAIM, trials=30)
    assert "Fix this, then resume" in str(caught.value)


def same_error(dataset, seed):
    raise RuntimeError("no memory")


def test_so_it_does_where_there_is_one_block_only():
    with pytest.raises(ValueError, match="run must be played at least in part") as caught:
        audit("api-access", own(same_error), claim=CLAIM, trials=3)
    assert "failed with RuntimeError: no memory (test_audits.py, line" in str(caught.value)
    assert ONE_SENTENCE.fullmatch(str(caught.value))


def test_a_function_that_fails_while_the_adversary_prepares():
    with pytest.raises(ValueError, match="trainer must be able to train the adversary's") as caught:
        audit(StaticPoisoning(shadows=2), own(same_error), claim=CLAIM, trials=3)
    assert "RuntimeError: no memory (test_audits.py, line" in str(caught.value)


def exploding(dataset, seed):
    """Without clipping, a loud record takes every model to NaN."""
    loud = np.abs(dataset.records).max() > 50
    return Constant(np.nan if loud else np.random.default_rng(seed).normal())


def test_models_that_diverge_in_one_world_give_it_away():
    """The adversary has settled from its shadow models what a model without a loss speaks for."""
    adversary = StaticPoisoning(shadows=4, outliers=1)
    found = audit(adversary, own(exploding), claim=CLAIM, trials=100, question=ADVANTAGE)
    assert found.diverged == 100
    assert (found.in_scores == np.inf).all()
    assert np.isfinite(found.out_scores).all()
    assert found.verdict.outcome == "refuted"


@pytest.mark.parametrize("name", ["api-access", "static-poisoning"])
def test_models_that_diverge_are_told(name):
    """They have a score, which says nothing."""
    setting = small(learning_rate=3e38, model="dense-4", clip_norm=100.0)
    found = audit(name, setting, trials=10)
    assert found.diverged == 20
    assert found.verdict.outcome == "inconclusive"
    assert "20 of the models had diverged; what that speaks for was settled" in found.sentence()
    assert found.identified is None
    json.dumps(found.as_json(), allow_nan=False)


# What is shown ------------------------------------------------------------------------------------


def numbers_in(value):
    if isinstance(value, dict):
        return [number for each in value.values() for number in numbers_in(each)]
    if isinstance(value, list):
        return [number for each in value for number in numbers_in(each)]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize("name", ["di", "malicious-dataset"])
@pytest.mark.parametrize("noise", [2.0, 0.05], ids=["some noise", "hardly any"])
def test_json_without_nan(name, noise):
    found = audit(name, small(noise_multiplier=noise), trials=40)
    shown = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert np.isfinite(numbers_in(shown)).all()
    assert shown["verdict"] == found.verdict.outcome
    assert shown["trials"]["in"] == shown["trials"]["out"] == 40
    assert shown["metrics"]["epsilon"]["delta"] == 1e-5
    assert all(metric["kind"] == "lower bound" for metric in shown["metrics"].values())
    assert [name for name, bound in shown["bounds"].items() if bound["decides"]] == ["band"]
    assert shown["decided_by"]["name"] == "tpr"
    assert ("identifiability" in shown) == (name == "di")
    assert "label" not in shown


def test_what_is_infinite_is_null():
    found = audit("malicious-dataset", small(), trials=10)
    worse = dataclasses.replace(
        found, verdict=dataclasses.replace(found.verdict, allowed=float("inf"), reached=1.0)
    )
    assert worse.as_json()["allowed"] is None
    json.dumps(worse.as_json(), allow_nan=False)


@pytest.mark.parametrize("name", ["di", "malicious-dataset"])
def test_local_sensitivity_is_labelled(name):
    found = audit(name, small(sensitivity="local"), trials=20)
    assert "The training is not DP: " in found.sentence()
    assert found.as_json()["label"].startswith("not DP")
    assert "not DP" in found.as_json()["sentence"]
    assert audit(name, small(), trials=20).label is None


def test_the_numbers_of_bernau_et_al():
    found = audit(DI(), small(noise_multiplier=1.0), trials=60)
    with_di = found.identified
    says = np.concatenate([found.in_scores > 0, found.out_scores > 0])
    assert with_di.advantage.value == pytest.approx(says[:60].mean() - says[60:].mean())
    shown = found.as_json()["identifiability"]
    assert shown["advantage"]["value"] == with_di.advantage.value
    assert all(each["kind"] == "point estimate" for each in shown["epsilons"].values())


def test_with_sampling_the_sensitivities_predict_nothing():
    """Their formulas have every record in every batch; with sampling they would say too much."""
    found = audit("di", small(sample_rate=0.4), trials=20)
    assert found.identified.predicted is None
    assert found.identified.epsilons.sensitivities is None
    assert found.identified.advantage.value <= 1
    json.dumps(found.as_json(), allow_nan=False)


def test_models_that_diverged_are_not_among_them(monkeypatch):
    class Losing(Game):
        def play(self, block):
            found = super().play(block)
            if block == 0:
                found["log_ratio"][0, -1] = np.nan
                found["score"][0], found["diverged"][0] = -np.inf, True
            return found

    clean = audit("di", small(), trials=20, block=10)
    monkeypatch.setattr("dprime.audit.audits.Game", Losing)
    found = audit("di", small(), trials=20, block=10)
    assert found.diverged == 1
    assert found.identified.exceedance.trials == clean.identified.exceedance.trials - 1 == 19


def test_a_bar_counts_the_trials_and_says_what_they_show_so_far(tmp_path, monkeypatch):
    told = []

    @contextmanager
    def bar(title, trials, show):
        told.append((title, trials))
        yield lambda trials, title=None: told.append((title and title(), trials))

    monkeypatch.setattr("dprime.audit.audits.bar", bar)
    options = {"trials": 40, "block": 20, "path": tmp_path / "a.run"}
    audit("malicious-dataset", small(), **options)
    assert told[:3] == [("malicious data set", 80), (None, 0), ("malicious data set", 20)]
    assert [trials for _, trials in told[2:]] == [20] * 4
    words = r"malicious data set: Membership advantage ≥ [\d.e-]+ so far, [\d.]+ allowed"
    assert all(re.fullmatch(words, title) for title, _ in told[3:])
    told.clear()
    audit("malicious-dataset", small(), **options)
    assert told == []  # nothing is left to be played


def test_the_usual_block():
    assert audit("api-access", small(), trials=11).state.blocks == 1
    assert audit("api-access", own(Sometimes(())), claim=CLAIM, trials=11).state.blocks == 3


def test_what_failed_counts_against_the_attacker(tmp_path):
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
    setting = AttackTarget(FunctionTrainer(one_trial), records, record=3, seed=1)
    claim = TradeOff.gaussian(2 * scipy.special.ndtri((1 + 0.32) / 2))
    found = audit(
        "api-access", setting, claim=claim, trials=300, block=1,
        question=Question(Reading("advantage"), "clopper-pearson"),
    )  # fmt: skip
    assert found.state.failed > 100
    assert not found.verdict.refuted
    assert "count against the attacker" in found.sentence()
    alone = lower_bound(
        found.in_scores, found.out_scores, metric=Reading("advantage"), method="clopper-pearson"
    )
    assert alone.value(Reading("advantage")) > claim.advantage()  # what the survivors would claim


def test_no_claim_for_local_noise_with_replaced_records_and_sampled_batches():
    recipe = TrainingConfig(
        steps=3, learning_rate=0.1, clip_norm=1.0, noise_multiplier=1.0, sample_rate=0.3,
        sensitivity="local",
    )  # fmt: skip
    digits = load("digits")
    engine = EngineTrainer(model_named("linear", digits.train), recipe)
    setting = AttackTarget(engine, digits.train.take(range(20)), "replace", digits.test, seed=1)
    with pytest.raises(ValueError, match="claim must be given for local sensitivity"):
        audit("di", setting, trials=10)


def ignores_its_seed(dataset, seed):
    """A correct training, but for the seed: all of its models are one."""
    return Constant(np.random.default_rng(5).normal() + 0.01 * len(dataset))


@pytest.mark.parametrize("trials", [4, 60])
def test_a_training_function_that_ignores_its_seed_is_refused(trials):
    with pytest.raises(
        ValueError, match="trainer must be a training function that draws"
    ) as caught:
        audit("api-access", own(ignores_its_seed), claim=CLAIM, trials=trials)
    assert "it ignores the seed or adds hardly any noise" in str(caught.value)


def answers(dataset, seed):
    """Randomised response with its seed: a world may well give the same answer five times."""
    right = np.random.default_rng(seed).random() < 0.8
    return Constant(float((len(dataset) == 4) == right))


def test_few_different_scores_are_no_reason_to_refuse():
    for seed in range(4):
        assert audit("api-access", own(answers, seed=seed), claim=CLAIM, trials=60).state.complete


@pytest.mark.parametrize("noise", [2.0, 1e-4])
def test_what_the_accountant_certifies_nothing_for_is_judged_all_the_same(noise):
    claim = EpsilonDelta(1.0, 0.0).curve()
    setting = small(noise_multiplier=noise)
    found = audit("malicious-dataset", setting, claim=claim, trials=200, question=Question(delta=0))
    assert found.proved is None
    assert found.verdict.refuted == (noise < 1)


def test_another_versions_trials_are_not_gone_on_with(tmp_path, monkeypatch):
    path = tmp_path / "a.run"
    audit("api-access", own(Sometimes({13, 54})), claim=CLAIM, trials=30, path=path)
    with Run.open(path) as store:
        assert store.pending()
    monkeypatch.setattr("dprime.__version__", "99.0")
    with pytest.raises(ValueError, match=r"run must be of dprime 99\.0, but it is begun by"):
        audit("api-access", own(Sometimes(())), claim=CLAIM, trials=30, path=path)


class Turned(Game):
    """The record pushes every score down."""

    def play(self, block):
        found = super().play(block)
        found["score"] = found["score"] - 100.0 * found["in_world"]
        return found


def test_scores_that_point_the_wrong_way_round_are_told_and_refute(monkeypatch):
    monkeypatch.setattr("dprime.audit.audits.Game", Turned)
    found = audit("malicious-dataset", small(), trials=60)
    assert found.verdict.outcome == "refuted"
    assert "The scores point the wrong way round (area under the ROC curve 0)" in found.sentence()
    assert found.as_json()["caveats"] == found.caveats()


def test_a_training_that_the_accountant_does_not_certify_for_the_claim_is_told():
    """The run keeps it, so that no report is without it."""
    found = audit("malicious-dataset", small(), claim=TradeOff.gaussian(0.1), trials=20)
    (told,) = found.as_json()["caveats"]
    proved = DPSGD(2.0, 1.0, 4).curve().epsilon(1e-5)
    assert told.startswith(f"The accountant certifies ε = {round_up(proved)} at δ = 1e-05 for this")
    assert told in found.sentence()
    assert audit("malicious-dataset", small(), trials=20).caveats() == []
    assert audit("malicious-dataset", small(sensitivity="local"), trials=20).caveats() == []


def test_the_advantage_gives_no_epsilon_at_another_prior():
    question = Question(prior=0.9)
    found = audit("di", small(noise_multiplier=1.0), trials=30, question=question).identified
    assert found.epsilons.advantage is None
    assert found.epsilons.advantage_classical is None
    assert found.epsilons.belief is not None
