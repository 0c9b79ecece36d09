"""Facts: what a run's file says, and nothing else."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from audited import CONCLUDED, FAILED_BLOCK, run
from dprime.guarantees import EpsilonDelta
from dprime.runs.run import Run
from dprime.show import facts_of
from dprime.show.claims import replace_curve
from dprime.show.facts import GROUPS


def kept(name):
    with Run.open(run(name)) as store:
        return store.result


@pytest.mark.parametrize("name", CONCLUDED)
def test_facts_are_the_answer(name):
    facts, answer = facts_of(run(name)), kept(name)
    assert facts.outcome == answer["verdict"]
    assert facts.sentence == answer["sentence"]
    assert facts.deciding.reached == answer["reached"]
    assert facts.deciding.allowed == answer["allowed"]
    assert {"name": facts.deciding.name, **facts.deciding.conditions} == answer["metric"]
    assert facts.confidence == answer["confidence"]
    assert facts.method.name == answer["method"]
    for each in facts.metrics:
        given = answer["metrics"][each.name]
        assert (each.reached, each.allowed) == (given["reached"], given["allowed"])
        assert dict(each.conditions).items() <= given.items()
    assert [each.name for each in facts.metrics] == list(answer["metrics"])
    for method in facts.methods:
        given = answer["bounds"][method.name]
        assert vars(method) == {"name": method.name, **given}
    assert facts.trials == answer["trials"]
    assert vars(facts.blocks) == answer["blocks"]
    assert facts.label == answer.get("label")
    assert facts.identifiability == answer.get("identifiability")
    assert list(facts.claim.tpr) == answer["claim"]["curve"]["tpr"]


def test_an_open_store_stays_open():
    with Run.open(run("stands")) as store:
        facts = facts_of(store)
        assert facts.seed == store.seed == 1
        assert (facts.created, facts.changed) == (store.created, store.changed())
        assert facts.settings == store.config
        assert facts.versions == store.versions


@pytest.mark.parametrize("name", ["stands", "di", "failed", "python"])
def test_trials_are_those_of_the_store(name):
    facts = facts_of(run(name))
    with Run.open(run(name)) as store:
        arrays = store.arrays()
    inside = arrays["in_world"]
    np.testing.assert_array_equal(facts.played.in_scores, arrays["score"][inside])
    np.testing.assert_array_equal(facts.played.out_scores, arrays["score"][~inside])
    if name == "di":
        np.testing.assert_array_equal(facts.played.log_ratio, arrays["log_ratio"])
        np.testing.assert_array_equal(facts.played.sensitivity, arrays["sensitivity"])


def test_a_run_that_is_not_concluded_says_how_to_go_on():
    with pytest.raises(ValueError, match=r"concluded, but it is played in 0 of 25 blocks: dprime "):
        facts_of(run("unfinished"))
    with pytest.raises(ValueError, match=r"its curves kept, but .*: dprime resume old\.run"):
        facts_of(run("old"))


def test_a_run_of_python_is_gone_on_with_in_python(tmp_path):
    settings = {"trainer": {"model": "m"}, "trials": 3, "seed": 1}
    Run.create(tmp_path / "a.run", "audit", settings, blocks=2).close()
    with pytest.raises(ValueError, match=r"call dprime\.audit\.audit again with the same path"):
        facts_of(tmp_path / "a.run")


def test_what_is_no_run(tmp_path):
    (tmp_path / "a.run").write_text("Try a stronger adversary.")
    with pytest.raises(ValueError, match="must be"):
        facts_of(tmp_path / "a.run")


def test_a_failed_block_is_a_fact():
    facts = facts_of(run("failed"))
    assert facts.blocks.failed == 1
    assert "no <memory> left" in facts.blocks.last_error
    with Run.open(run("failed")) as store:
        assert store.pending() == [FAILED_BLOCK]


def test_models_that_diverged_are_a_fact():
    assert facts_of(run("diverged")).trials["diverged"] > 0


# Groups -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stands", "replace"])
def test_groups_are_read_off_the_replace_curve(name):
    facts = facts_of(run(name))
    stated = name == "replace"  # (ε, δ), for replaced records
    curve = facts.claim.curve if stated else facts.claim.mechanism.curve("replace")
    assert [group.size for group in facts.groups] == list(GROUPS)
    for group in facts.groups:
        assert group.belief == pytest.approx(curve.belief(1 / group.size, 1e-3), rel=1e-9)
        assert group.prior < group.belief < 1
        assert group.equivalent * group.belief == pytest.approx(1)


def test_the_belief_in_one_of_a_group_exceeds_its_limit_as_rarely_as_said():
    """Each step shows +1 with the first person in the data and -1 with any other, and noise."""
    facts = facts_of(run("stands"))
    claimed = facts.claim.mechanism
    assert claimed.sample_rate == 1
    rng = np.random.default_rng(0)
    for group in facts.groups:
        seen = rng.normal(1.0, claimed.noise_multiplier, (claimed.steps, 400_000)).sum(0)
        for_the_first = 2.0 * seen / claimed.noise_multiplier**2
        belief = 1.0 / (1.0 + (group.size - 1) * np.exp(-for_the_first))
        assert (belief > group.belief).mean() <= group.exceeded


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_stated_guarantee_of_add_remove_is_composed_with_itself(epsilon, delta):
    """The data with x, without it, and with x' in its place: two steps, each of them tight."""
    claimed = EpsilonDelta(epsilon, delta)
    replaced = replace_curve(claimed, "add-remove")
    assert replace_curve(claimed, "replace").epsilon(1e-6) == claimed.curve().epsilon(1e-6)
    step = claimed.curve()
    for fpr in (0.0, 1e-6, 1e-4, 0.01, 0.1, 0.5, 0.9, 1.0):
        assert replaced.tpr(fpr) == pytest.approx(step.tpr(step.tpr(fpr)), rel=1e-9)
    # An output with this chance without x, exp(ε) times that with x, and exp(-ε) times with x'
    shown = 0.01 * np.exp(-epsilon)
    ratio = np.exp(epsilon) * shown / (np.exp(-epsilon) * shown)
    belief = ratio / (ratio + 1)
    assert np.exp(epsilon) * shown > 1e-3
    assert replaced.belief(0.5, 1e-3) >= belief * (1 - 1e-12)


def test_a_stated_guarantee_has_groups():
    facts = facts_of(run("own"))
    assert isinstance(facts.claim.mechanism, EpsilonDelta)
    assert facts.groups[0].belief > 1 / (1 + np.exp(-8.0)) - 1e-9


@pytest.mark.parametrize("name", ["local", "python-curve", "evil", "no-limit"])
def test_no_groups_where_nothing_is_certified_or_known(name):
    assert facts_of(run(name)).groups == ()


# What would have been noticed ---------------------------------------------------------------------


def test_what_an_audit_would_have_noticed_is_the_runs():
    few, stands = facts_of(run("few")), facts_of(run("stands"))
    assert few.outcome == "inconclusive"
    assert few.trials_needed > few.settings["trials"]
    assert stands.outcome == "not refuted"
    assert stands.trials_needed is None
    assert stands.detects <= 2 * stands.claim.curve.d_prime()
    with Run.open(run("stands")) as store:
        assert stands.detects == store.result["detects"]


def test_the_curve_that_is_drawn_is_the_one_that_decides():
    for name in ("stands", "curve", "broken", "bayesian", "objected", "assumed"):
        assert facts_of(run(name)).drawn == "band"
    assert facts_of(run("gaussian")).drawn == "gaussian"
    assert facts_of(run("broken")).crosses
    assert not facts_of(run("stands")).crosses


@pytest.mark.slow
def test_facts_need_no_torch():
    program = (
        "import sys\n"
        "from dprime.show import card, card_markdown, facts_of, report_html\n"
        "facts = facts_of(sys.argv[1]); card(facts); card_markdown(facts); report_html(facts)\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, run("di")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "answer",
    [
        {"attacked": {}, "claim": {}, "lower": {}, "power_known": True},
        {"attacked": [], "claim": 3, "lower": "x", "power_known": 1, "bounds": {}, "verdict": "?"},
    ],
)
def test_an_answer_of_another_form_is_refused(tmp_path, answer):
    with Run.create(tmp_path / "odd.run", "audit", {"seed": 1, "trials": 2}, blocks=1) as store:
        store.keep(answer)
        with pytest.raises(ValueError, match="whose answer has another form"):
            facts_of(store)


def test_an_engine_without_a_public_divisor_played_zero_out_whatever_its_run_says():
    """Runs of dprime 0.10 and before say add-remove."""
    facts = facts_of(run("stands"))
    for told, divisor, means in (
        ("add-remove", None, "zero-out"),
        ("add-remove", 8, "add-remove"),
        ("replace", None, "replace"),
    ):
        recipe = {"expected_batch_size": divisor} if divisor else {}
        attacked = {**facts.attacked, "adjacency": told, "training": recipe}
        assert dataclasses.replace(facts, attacked=attacked).adjacency == means
    assert facts_of(run("own")).adjacency == "add-remove"
