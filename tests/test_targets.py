import pytest

from dprime import TradeOff
from dprime.targets import TARGETS, parse_target

EXAMPLES = {
    "advantage": {"advantage": 0.1},
    "bayes_security": {"bayes_security": 0.9},
    "tpr": {"tpr": 0.03, "fpr": 0.01},
    "epsilon": {"epsilon": 3.0, "delta": 1e-5},
    "precision": {"precision": 0.2, "prior": 0.1, "min_tpr": 0.01},
    "belief": {"belief": 0.9, "prior": 0.5, "exceeded": 1e-3},
    "success": {"success": 0.55, "prior": 0.5},
    "secret_success": {"secret_success": 0.2, "max_prior": 0.1},
}


def test_every_target_has_an_example_here():
    assert set(EXAMPLES) == set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_is_safe_on_one_side_only(name):
    target = parse_target(EXAMPLES[name])
    assert target.name == name
    assert target.excess(TradeOff.gaussian(1e-6)) < 0 < target.excess(TradeOff.gaussian(6.0))


@pytest.mark.parametrize("name", TARGETS)
def test_a_blind_attacker_has_the_baseline(name):
    target = parse_target(EXAMPLES[name])
    assert target.risk(TradeOff.gaussian(0.0)) == pytest.approx(target.baseline, abs=1e-12)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "Exactly one of advantage, .* must be given, but got none of them"),
        ({"advantage": 0.1, "success": 0.6}, "but got advantage=0.1 and success=0.6"),
        ({"advantage": 0.1, "fpr": 0.1}, "fpr must not be given for the target advantage"),
        ({"epsilon": 1.0}, "delta must be given with epsilon, but it is missing: add"),
        ({"precision": 0.2}, "prior must be given with precision"),
        ({"advantage": 0.0}, "advantage must be strictly between 0 and 1"),
        ({"tpr": 0.01, "fpr": 0.05}, r"tpr must be above 0.05 \(the fpr"),
        ({"precision": 0.1, "prior": 0.2}, r"precision must be above 0.2 \(the prior"),
        ({"success": 0.5, "prior": 0.3}, r"success must be above 0.7"),
        ({"secret_success": 0.1, "max_prior": 0.1}, r"secret_success must be above 0.1"),
        ({"epsilon": -1.0, "delta": 1e-5}, "epsilon must be above 0, but it is -1"),
        ({"advantage": 0.1, "colour": 1.0}, "colour must not be given"),
    ],
)
def test_bad_targets(given, words):
    with pytest.raises(ValueError, match=words):
        parse_target(given)


def test_a_secret_asks_for_records_exchanged():
    target = parse_target(EXAMPLES["secret_success"])
    assert target.checked_adjacency(None) == "replace"
    with pytest.raises(ValueError, match="adjacency must be 'replace' for the target"):
        target.checked_adjacency("add-remove")
    assert parse_target(EXAMPLES["tpr"]).checked_adjacency(None) is None
