"""What happened in an audit: what the run has kept, and nothing else."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from audited import run
from dprime.audit import AuditConfig, record_of
from dprime.audit.claim import replace_curve
from dprime.audit.record import GROUPS
from dprime.guarantees import EpsilonDelta
from dprime.metrics import risk_profile
from dprime.runs.run import Run

KEPT = (
    "stands", "few", "broken", "curve", "gaussian", "bayesian", "di", "diverged", "own", "failed",
    "python-curve", "no-limit",
)  # fmt: skip
"""Of the runs, one for each form of what is kept."""


@pytest.mark.parametrize("name", KEPT)
def test_the_record_is_what_the_run_has_kept(name):
    record = record_of(run(name))
    with Run.open(run(name)) as store:
        kept, config, arrays = store.result, AuditConfig.of(store), store.arrays()
        assert (record.created, record.changed) == (store.created, store.changed())
        assert (record.versions, record.config.seed) == (store.versions, store.seed)
        assert record_of(store).to_dict() == record.to_dict()
    shown = record.to_dict()
    assert {n: each for n, each in kept.items() if n not in ("claim", "lower")} == {
        n: each for n, each in shown.items() if n not in ("settings", "versions")
    }
    assert record.config == config
    assert record.method.method == config.method
    assert {n: [*map(list, each)] for n, each in record.lower.items()} == {
        n: [each["fpr"], each["tpr"]] for n, each in kept["lower"].items()
    }
    json.dumps(shown, allow_nan=False)
    inside = arrays["in_world"]
    np.testing.assert_array_equal(record.played.in_scores, arrays["score"][inside])
    np.testing.assert_array_equal(record.played.out_scores, arrays["score"][~inside])
    assert math.isfinite(record.verdict.allowed) == (name != "no-limit")
    assert all(isinstance(bound.epsilon, float) for bound in record.bounds)
    if "log_ratio" in arrays:
        np.testing.assert_array_equal(record.played.log_ratio, arrays["log_ratio"])
        np.testing.assert_array_equal(record.played.sensitivity, arrays["sensitivity"])


@pytest.mark.parametrize("name", KEPT)
def test_the_claimed_curve_is_that_of_the_audit(name):
    record = record_of(run(name))
    claim = record.claim
    fpr, tpr = record.config.curve.points(claim.fpr)
    assert list(claim.fpr) == fpr.tolist()
    assert claim.tpr == pytest.approx(tpr, rel=1e-9)
    assert {answer.name: answer.as_json() for answer in claim.profile()} == claim.metrics
    expected = [(a.name, a.title, a.sentence) for a in risk_profile(claim.curve)]
    assert [(a.name, a.title, a.sentence) for a in claim.profile()] == expected


def test_a_run_that_is_not_concluded_says_how_to_go_on(tmp_path):
    with pytest.raises(ValueError, match=r"concluded, but it is played in 0 of 25 blocks: dprime "):
        record_of(run("unfinished"))
    with pytest.raises(ValueError, match=r"of another version: dprime resume old\.run"):
        record_of(run("old"))
    Run.create(tmp_path / "b.run", "frontier", {}, blocks=2).close()
    with pytest.raises(ValueError, match=r"run must be that of an audit, but it is .* frontier"):
        record_of(tmp_path / "b.run")
    settings = {"trainer": {"model": "m"}, "trials": 3, "seed": 1}
    Run.create(tmp_path / "a.run", "audit", settings, blocks=2).close()
    with pytest.raises(ValueError, match=r"call dprime\.audit\.audit again with the same path"):
        record_of(tmp_path / "a.run")


def test_a_result_of_another_form_is_refused(tmp_path):
    config = AuditConfig.from_words(claim={"epsilon": 4.0}, seed=1).to_dict()
    for kept in ({"rows": []}, {"rows": 3, "verdict": "?", "lower": [], "claim": {}}):
        with Run.create(tmp_path / f"{len(kept)}.run", "audit", config, blocks=1) as store:
            store.keep(kept)
            with pytest.raises(ValueError, match="whose result has another form"):
                record_of(store)


# Groups -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stands", "replace"])
def test_groups_are_read_off_the_replace_curve(name):
    record = record_of(run(name))
    stated = name == "replace"  # (ε, δ), for replaced records
    curve = record.claim.curve if stated else record.claim.mechanism.curve("replace")
    assert [group.size for group in record.groups] == list(GROUPS)
    for group in record.groups:
        assert group.belief == pytest.approx(curve.belief(1 / group.size, 1e-3), rel=1e-9)
        assert group.prior < group.belief < 1
        assert group.equivalent * group.belief == pytest.approx(1)


def test_the_belief_in_one_of_a_group_exceeds_its_limit_as_rarely_as_said():
    """Each step shows +1 with the first person in the data and -1 with any other, and noise."""
    record = record_of(run("stands"))
    claimed = record.claim.mechanism
    assert claimed.sample_rate == 1
    rng = np.random.default_rng(0)
    for group in record.groups:
        seen = rng.normal(1.0, claimed.noise_multiplier, (claimed.steps, 400_000)).sum(0)
        for_the_first = 2.0 * seen / claimed.noise_multiplier**2
        belief = 1.0 / (1.0 + (group.size - 1) * np.exp(-for_the_first))
        assert (belief > group.belief).mean() <= group.exceeded


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 1e-5), (4.0, 0.0), (4.0, 1e-5)])
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


def test_where_there_are_groups():
    stated = record_of(run("own"))
    assert isinstance(stated.claim.mechanism, EpsilonDelta)
    assert stated.groups[0].belief > 1 / (1 + np.exp(-8.0)) - 1e-9
    for name in ("local", "python-curve", "no-limit"):  # nothing is certified, or nothing is known
        assert record_of(run(name)).groups == ()


# What is shown ------------------------------------------------------------------------------------


def test_the_curve_that_is_drawn_is_the_one_that_decides():
    for name in ("stands", "curve", "broken", "bayesian", "objected", "assumed"):
        assert record_of(run(name)).drawn == "band"
    assert record_of(run("gaussian")).drawn == "gaussian"
    assert record_of(run("broken")).crosses
    assert not record_of(run("stands")).crosses


def test_claims_are_described_and_told_apart():
    stands, gradient, broken, own, curve = (
        record_of(run(name)).claim
        for name in ("stands", "gradient", "broken", "own", "python-curve")
    )
    assert stands.described.startswith("DP-SGD with noise multiplier 1.52")
    assert stands.described.endswith("chosen to keep ε at most 4 at δ = 1e-05")
    assert broken.described == "DP-SGD with noise multiplier 4, sampling rate 1 and 2 steps"
    assert own.described == "(ε, δ)-differential privacy with ε = 4, δ = 1e-05"
    assert curve.described == "GDP with mu = 2"
    assert stands.same_as(gradient)
    assert not stands.same_as(broken)


@pytest.mark.slow
def test_a_record_needs_no_torch():
    program = (
        "import sys\n"
        "from dprime.audit import record_of\n"
        "from dprime.show import card, card_markdown, report_html\n"
        "facts = record_of(sys.argv[1]); card(facts); card_markdown(facts); report_html(facts)\n"
        "assert 'torch' not in sys.modules\n"
    )
    words = [sys.executable, "-W", "error", "-c", program, run("di")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
