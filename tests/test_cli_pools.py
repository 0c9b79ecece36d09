"""`dprime frontier`, `infer` and `plan`: what they compute, keep, show and go on with."""

import numpy as np
import pytest

from commands import interrupted_at, refused
from dprime import DPSGD, TradeOff
from dprime.attack import trainer
from dprime.audit import epsilon_limit, largest_epsilon, plan_request
from dprime.audit import plan as audit_plan
from dprime.bounds import mu_from_epsilon
from dprime.data import Dataset, Split, load
from dprime.membership import InferenceConfig, Recipe, Trainers, infer, shadows
from dprime.membership.planner import plan
from dprime.membership.pool import outside
from dprime.metrics import Reading
from dprime.plain import to_json
from dprime.runs.run import Run

# frontier ----------------------------------------------------------------------------------------

SMALL = (
    "frontier --precision 0.6 --pool-size 200 --batch-size 20 --epochs 1 "
    "--sampling-probabilities 0.2,0.59 --seed 1"
)
TRAINED = f"{SMALL} --repetitions 2"


def test_a_plan_of_the_usual_shares_with_steps(call):
    words = "frontier --precision 1/2 --batch-size 100 --steps 40 --min-tpr 0.05 --delta 1e-6"
    size = len(load("digits").train)
    made = plan(0.5, pool_size=size, batch_size=100, steps=40, min_tpr=0.05, delta=1e-6)
    assert call(f"{words} --plan-only --json").json == to_json(made)


def test_a_frontier_is_trained_and_kept(call, monkeypatch):
    again = f"{TRAINED} --run points.run"
    found = call(again, "--json").json
    assert [point["probability"] for point in found["points"]] == [0.2, 0.59]
    assert all(point["precision"] <= 0.6 for point in found["points"])
    assert len(found["points"][0]["accuracies"]) == 2
    with Run.open("points.run") as run:
        assert (run.kind, run.state().done) == ("frontier", 2)
        assert {"run": "points.run", **run.result} == found
    monkeypatch.setattr(trainer, "train", lambda *_, **__: pytest.fail("again"))
    shown = call(again).words
    for words in ("peeking at the test records", "Kept in points.run",
                  "choosing π by trainings on the pool is not part of it"):  # fmt: skip
        assert words in shown
    assert call(again, "--json").json == call("resume points.run --json").json == found
    for command in (again, "resume points.run", "report points.run"):
        assert found["sentence"] in call(command).words
    assert "frontier on digits" in call("runs .").out


@pytest.mark.parametrize(
    ("line", "name"),
    [(TRAINED, "frontier.svg"), ("infer --epsilon 3", "membership-roc-0.3.svg")],
)
def test_a_chart_of_somebody_else_is_not_overwritten(call, tmp_path, line, name):
    (tmp_path / name).write_text("<svg>by hand</svg>")
    refused(call(line, "--charts", tmp_path), "must be a new file or one that dprime has written")
    assert (tmp_path / name).read_text() == "<svg>by hand</svg>"


@pytest.mark.slow
def test_several_learning_rates_and_a_chart(call, tmp_path):
    line = f"{TRAINED} --learning-rates 1e-6,1 --charts pictures"
    told = "Rate: the learning rate that did best on every other test record"
    assert told in call(line).words
    found = call(line, "--json").json  # over its own chart
    assert found["learning_rates"] == [1e-6, 1.0]
    assert found["points"][0]["learning_rate"] == 1.0
    assert (tmp_path / "pictures" / "frontier.svg").read_text().startswith("<svg")


def test_an_interrupted_frontier_is_gone_on_with(call, monkeypatch):
    train, calls = interrupted_at(2, trainer.train)
    monkeypatch.setattr(trainer, "train", train)
    code, _, err = call(TRAINED, "--run", "points.run")
    assert (code, err) == (130, "Stopped. Go on with: dprime resume points.run\n")
    refused(call("report points.run"), "must be concluded, but it is not concluded yet")
    found = call("resume points.run --json").json
    assert [data.probability for _, data, _ in calls] == [0.2, 0.59, 0.59]
    assert found["points"] == call(TRAINED, "--json").json["points"]


# infer -------------------------------------------------------------------------------------------

INFER = (
    "infer --pool-size 120 --shadows 12 --targets 2 --epochs 3 --batch-size 20 "
    "--attacks lira,attack-p --epsilon 3"
)
PRIVATE = f"{INFER} --sampling-probabilities 0.3,0.7 --run"


def kept_out(ended):
    """Without the line that names the run."""
    return ended.words.split("Kept in")[0].strip()


def test_shadow_models_are_kept_and_are_no_result(call):
    line = f"{INFER} --shadow-file shadows.run"
    assert kept_out(call(line)) == kept_out(call(line))
    refused(call(line, "--epsilon", 4), "shadows.run must be of the same settings")
    for command in ("resume", "report"):
        told = "must be one with a result, but it is that of shadow models"
        refused(call(command, "shadows.run"), told)


def test_an_interrupted_inference_is_gone_on_with(call, monkeypatch):
    """Targets and shadow models are trained once, whatever happens; a finished run trains none."""
    train, calls = interrupted_at(3, shadows._trained)
    monkeypatch.setattr(shadows, "_trained", train)
    code, _, err = call(PRIVATE, "a.run")
    assert (code, err) == (130, "Stopped. Go on with: dprime resume a.run\n")
    with Run.open("a.run") as begun:
        assert (begun.kind, begun.done(), begun.pending()) == ("inference", [0, 1], [2])
    found = call("resume a.run --json").json
    # two cohorts of targets, and the shadow models
    assert [part.probability for _, part, *_ in calls] == [0.3, 0.7, 0.5, 0.5]
    low, high = found["inferences"]
    assert (low["probability"], high["probability"]) == (0.3, 0.7)
    assert low["allowed"]["precision"] < high["allowed"]["precision"]
    alone = call(PRIVATE, "b.run", "--json").json
    assert {**found, "run": ""} == {**alone, "run": ""}
    monkeypatch.setattr(shadows, "_trained", lambda *_: pytest.fail("trained again"))
    assert call(PRIVATE, "a.run", "--json").json == found
    assert kept_out(call("resume a.run")) == kept_out(call("report a.run"))
    assert call("report a.run --json").json["inferences"] == found["inferences"]
    assert "membership inference on digits" in call("runs .").out
    assert (
        "a.run must be of the same settings"
        in call(PRIVATE, "a.run", "--sampling-probabilities", "0.3,0.6").err
    )


OPEN = INFER.removesuffix(" --epsilon 3")


def test_a_run_that_was_begun_in_python(call):
    """It is listed and reported; the command that describes it goes on with it."""
    digits = load("digits")
    pool, recipe = digits.train.distinct().take(range(120)), Recipe(batch_size=20, epochs=3)
    trainers = Trainers.named(recipe, pool, model="dense-64")
    config = InferenceConfig(["lira", "attack-p"], shadows=12, targets=2)
    found = infer(pool, outside(digits.test, pool), trainers, config, file="a.run")
    assert found.sentence in call("report a.run").words
    told = "leave it out for tables; for a page, report an audit of the same training"
    refused(call("report a.run --pdf a.pdf"), told)
    code, _, err = call("resume a.run")
    assert (code, "dprime infer with the options that describe it and --run a.run" in err) == (2, 1)
    assert call(OPEN, "--run", "a.run", "--json").json["inferences"] == to_json(found)["inferences"]
    assert call("resume a.run").code == 0


def test_a_run_of_an_earlier_version_is_refused(call):
    with Run.create("old.run", "inference", {"seed": 1}, 1, {"device": "cpu", "pi": [0.5]}) as old:
        old.keep({"runs": []})
    for command in ("resume", "report"):
        told = "RUN must be of this version of dprime, but it is of an earlier one"
        assert told in call(command, "old.run").err


def test_records_of_the_pool_are_left_out_of_the_population(call, monkeypatch):
    digits = load("digits")
    both = Dataset.of(
        np.concatenate([digits.train.records[:7], digits.test.records]),
        np.concatenate([digits.train.labels[:7], digits.test.labels]),
    )
    monkeypatch.setattr("dprime.membership.requests.load", lambda *_: Split(digits.train, both))
    shown = call(OPEN, "--run", "a.run", "--json").json
    assert shown["population"] == {"records": 359, "left_out": 7}
    (only,) = shown["inferences"]  # of a training that is not private
    assert (only["allowed"], only["verdict"], shown["verdict"]) == (None, "no claim", "no claim")
    told = "7 records of the test part are in the pool too, and left out of the population"
    assert told in call(OPEN, "--run", "a.run").words


@pytest.mark.slow
def test_several_priors_are_drawn(call, tmp_path):
    assert call(PRIVATE, "a.run", "--charts", "c").code == 0
    assert {path.name for path in (tmp_path / "c").iterdir()} == {
        "membership-roc-0.3.svg", "membership-roc-0.7.svg", "precision-over-prior-lira.svg",
        "precision-over-prior-attack-p.svg",
    }  # fmt: skip


# plan --------------------------------------------------------------------------------------------


def test_an_audit_is_planned_as_in_python(call):
    line = "plan --epsilon 2 --strength 1.5 --delta 1e-6 --metric epsilon --json"
    claim = TradeOff.gaussian(mu_from_epsilon(2.0, delta=1e-6))
    assert plan_request.OF_EPSILON in call(line.removesuffix(" --json")).words
    made = audit_plan(claim, strength=1.5, criterion=Reading("epsilon", {"delta": 1e-6}))
    found = call(line).json
    for name in ("trials", "refuting", "least"):
        assert found[name] == getattr(made, name)
    assert found["sentence"] == made.sentence()
    assert found["criterion"] == {"name": "epsilon", "delta": 1e-6}
    line = "plan --noise-multiplier 1.1 --sample-rate 1/100 --steps 1000 --adjacency replace"
    found = call(f"{line} --metric advantage --method gaussian --json").json
    claim = DPSGD(noise_multiplier=1.1, sample_rate=0.01, steps=1000).curve("replace")
    assert plan_request.OF_EPSILON not in call(f"{line} --metric advantage --method gaussian").words
    made = audit_plan(claim, criterion=Reading("advantage"), method="gaussian")
    assert (found["trials"], found["claimed"]) == (made.trials, claim.advantage())


@pytest.mark.parametrize(
    "words",
    [
        "--epsilon 4",
        "--noise-multiplier 5.92 --steps 30 --adjacency replace",
        "--epsilon 4 --metric tpr --fpr 0.1 --strength 2",
        "--epsilon 4 --metric advantage --method gaussian --strength 2",
        "--epsilon 4 --metric precision --prior 0.3 --min-tpr 0.1",
    ],
)
def test_a_plan_ends_with_the_command_that_was_planned(call, words, monkeypatch):
    """The settings of that command have the planned number of trials, method and metric."""
    found, seen = call(f"plan {words} --json").json, []

    def begin(settings, path, **_):
        seen.append(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr("dprime.audit.audits.begin", begin)
    call(found["command"].removeprefix("dprime "))
    (settings,) = seen
    assert settings.trials in (found["trials"], found["refuting"])
    assert settings.method == found["method"]
    criterion = settings.criterion
    conditions = {} if criterion == "curve" else criterion.conditions
    assert found["criterion"] == {"name": getattr(criterion, "name", criterion), **conditions}
    assert (settings.assume == "gaussian") == (found["method"] == "gaussian")


def test_what_a_number_of_trials_can_show(call):
    found = call("plan --epsilon 4 --trials 1000 --json").json
    assert found["largest_epsilon"] == largest_epsilon(1000)
    assert found["epsilon_limit"] == epsilon_limit(1000)
