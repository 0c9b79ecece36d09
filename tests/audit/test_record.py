"""What happened in an audit: what the run has kept, and nothing else."""

import json
import subprocess
import sys

import numpy as np
import pytest

from audited import CONCLUDED, run
from dprime.audit import AuditConfig, record_of
from dprime.audit.audits import config_of
from dprime.audit.claim import replace_curve
from dprime.audit.record import GROUPS
from dprime.guarantees import EpsilonDelta
from dprime.metrics import risk_profile
from dprime.runs.run import Run


@pytest.mark.parametrize("name", CONCLUDED)
def test_the_record_is_what_the_run_has_kept(name):
    record = record_of(run(name))
    with Run.open(run(name)) as store:
        kept, config = store.result, config_of(store)
    shown = record.to_dict()
    assert {n: each for n, each in kept.items() if n not in ("claim", "lower")} == {
        n: each for n, each in shown.items() if n not in ("settings", "versions")
    }
    assert record.config == config
    assert list(record.claim.tpr) == kept["claim"]["tpr"]
    assert {n: [*map(list, each)] for n, each in record.lower.items()} == {
        n: [each["fpr"], each["tpr"]] for n, each in kept["lower"].items()
    }
    assert record.method.method == config.method
    json.dumps(shown, allow_nan=False)


def test_an_open_store_stays_open():
    with Run.open(run("stands")) as store:
        facts = record_of(store)
        assert facts.config.seed == store.seed == 1
        assert (facts.created, facts.changed) == (store.created, store.changed())
        assert facts.config.to_dict() == store.config
        assert facts.versions == store.versions


@pytest.mark.parametrize("name", ["stands", "di", "failed", "python"])
def test_trials_are_those_of_the_store(name):
    facts = record_of(run(name))
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
        record_of(run("unfinished"))
    with pytest.raises(ValueError, match=r"of another version: dprime resume old\.run"):
        record_of(run("old"))


def test_a_run_of_python_is_gone_on_with_in_python(tmp_path):
    settings = {"trainer": {"model": "m"}, "trials": 3, "seed": 1}
    Run.create(tmp_path / "a.run", "audit", settings, blocks=2).close()
    with pytest.raises(ValueError, match=r"call dprime\.audit\.audit again with the same path"):
        record_of(tmp_path / "a.run")


def test_what_is_no_run(tmp_path):
    (tmp_path / "a.run").write_text("Try a stronger adversary.")
    with pytest.raises(ValueError, match="must be"):
        record_of(tmp_path / "a.run")


# Groups -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stands", "replace"])
def test_groups_are_read_off_the_replace_curve(name):
    facts = record_of(run(name))
    stated = name == "replace"  # (ε, δ), for replaced records
    curve = facts.claim.curve if stated else facts.claim.mechanism.curve("replace")
    assert [group.size for group in facts.groups] == list(GROUPS)
    for group in facts.groups:
        assert group.belief == pytest.approx(curve.belief(1 / group.size, 1e-3), rel=1e-9)
        assert group.prior < group.belief < 1
        assert group.equivalent * group.belief == pytest.approx(1)


def test_the_belief_in_one_of_a_group_exceeds_its_limit_as_rarely_as_said():
    """Each step shows +1 with the first person in the data and -1 with any other, and noise."""
    facts = record_of(run("stands"))
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
    stated = EpsilonDelta(epsilon, delta, adjacency="replace")
    assert replace_curve(stated, "replace").epsilon(1e-6) == claimed.curve().epsilon(1e-6)
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
    facts = record_of(run("own"))
    assert isinstance(facts.claim.mechanism, EpsilonDelta)
    assert facts.groups[0].belief > 1 / (1 + np.exp(-8.0)) - 1e-9


@pytest.mark.parametrize("name", ["local", "python-curve", "no-limit"])
def test_no_groups_where_nothing_is_certified_or_known(name):
    assert record_of(run(name)).groups == ()


# What would have been noticed ---------------------------------------------------------------------


def test_what_an_audit_would_have_noticed_is_the_runs():
    few, stands = record_of(run("few")), record_of(run("stands"))
    assert few.verdict.outcome == "inconclusive"
    assert few.verdict.trials > few.config.trials
    assert stands.verdict.outcome == "not refuted"
    assert stands.verdict.trials is None
    assert stands.verdict.detects <= 2 * stands.claim.curve.d_prime()
    with Run.open(run("stands")) as store:
        assert stands.verdict.detects == store.result["verdict"]["detects"]


def test_the_curve_that_is_drawn_is_the_one_that_decides():
    for name in ("stands", "curve", "broken", "bayesian", "objected", "assumed"):
        assert record_of(run(name)).drawn == "band"
    assert record_of(run("gaussian")).drawn == "gaussian"
    assert record_of(run("broken")).crosses
    assert not record_of(run("stands")).crosses


@pytest.mark.slow
def test_a_record_needs_no_torch():
    program = (
        "import sys\n"
        "from dprime.audit import record_of\n"
        "from dprime.show import card, card_markdown, report_html\n"
        "facts = record_of(sys.argv[1]); card(facts); card_markdown(facts); report_html(facts)\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, run("di")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_result_of_another_form_is_refused(tmp_path):
    config = AuditConfig.from_words(claim={"epsilon": 4.0}, seed=1).to_dict()
    for kept in ({"rows": []}, {"rows": 3, "verdict": "?", "lower": [], "claim": {}}):
        with Run.create(tmp_path / f"{len(kept)}.run", "audit", config, blocks=1) as store:
            store.keep(kept)
            with pytest.raises(ValueError, match="whose result has another form"):
                record_of(store)


# The claim ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONCLUDED)
def test_the_claimed_curve_is_that_of_the_audit(name):
    record = record_of(run(name))
    claim = record.claim
    fpr, tpr = record.config.curve.points(claim.fpr)
    assert list(claim.fpr) == fpr.tolist()
    assert claim.tpr == pytest.approx(tpr, rel=1e-9)
    shown = {answer.name: answer for answer in claim.profile()}
    assert {name: answer.as_json() for name, answer in shown.items()} == claim.metrics
    expected = [(a.name, a.title, a.sentence) for a in risk_profile(claim.curve)]
    assert [(a.name, a.title, a.sentence) for a in shown.values()] == expected


def test_claims_are_described():
    described = {
        name: record_of(run(name)).claim.described
        for name in ("stands", "broken", "own", "python-curve")
    }
    assert described["stands"].startswith("DP-SGD with noise multiplier 1.52")
    assert described["stands"].endswith("chosen to keep ε at most 4 at δ = 1e-05")
    assert described["broken"] == "DP-SGD with noise multiplier 4, sampling rate 1 and 2 steps"
    assert described["own"] == "(ε, δ)-differential privacy with ε = 4, δ = 1e-05"
    assert described["python-curve"] == "GDP with mu = 2"


def test_the_same_claim_or_another():
    stands, gradient, broken = (record_of(run(n)).claim for n in ("stands", "gradient", "broken"))
    assert stands.same_as(gradient)
    assert not stands.same_as(broken)
