"""What every attack owes, whatever it computes."""

from dataclasses import replace

import numpy as np
import pytest

from dprime import InputError
from dprime.membership.attacks import ATTACKS, AttackR, Evidence, attack_named
from membership.plain_attacks import halves, signals

RECORDS, MODELS, OTHERS = 30, 12, 25

every_attack = pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)


def evidence(gain=3.0):
    """Models that are surer of the records they had; and the truth about the target."""
    rng = np.random.default_rng(0)
    hard = rng.normal(size=RECORDS)
    members = halves(rng, MODELS, MODELS // 2, RECORDS)
    truth = rng.random(RECORDS) < 0.5
    seen = Evidence(
        target=signals(hard + gain * truth + rng.normal(size=RECORDS)),
        shadows=signals(hard + gain * members + rng.normal(size=(MODELS, RECORDS))),
        members=members,
        population=signals(rng.normal(size=OTHERS)),
        shadow_population=signals(rng.normal(size=(MODELS, OTHERS))),
    )
    return seen, truth


SEEN, TRUTH = evidence()


def some(records):
    """The same evidence on some of the records."""
    target, shadows = SEEN.target.take(records), SEEN.shadows.take(records)
    return replace(SEEN, target=target, shadows=shadows, members=SEEN.members[:, records])


def test_the_registry_has_every_attack_by_its_name():
    assert list(ATTACKS) == [
        "lira", "lira-offline", "lira-fixed", "lira-offline-fixed", "rmia", "rmia-offline",
        "attack-p", "attack-r", "yeom", "baseline",
    ]  # fmt: skip
    assert ATTACKS["lira-offline-fixed"].title == "LiRA (offline, fixed variance)"
    members = AttackR(thresholds_from="in")
    assert (members.name, members.title) == ("attack-r-in", "Attack R (thresholds from members)")


@every_attack
def test_members_get_higher_scores_and_always_the_same(attack):
    seen, truth = evidence(gain=6.0)
    scores = attack.scores(seen)
    assert np.isfinite(scores).all()
    assert np.array_equal(scores, attack.scores(seen))
    if attack.name != "baseline":
        assert scores[truth].mean() > scores[~truth].mean()


@every_attack
def test_order_does_not_matter_and_a_record_is_scored_by_itself(attack):
    records, models = np.random.default_rng(1).permutation(RECORDS), np.arange(MODELS)[::-1]
    moved = some(records)
    moved = replace(
        moved,
        shadows=moved.shadows.of_model(models),
        members=moved.members[models],
        shadow_population=SEEN.shadow_population.of_model(models),
    )
    scores = attack.scores(SEEN)
    assert attack.scores(moved) == pytest.approx(scores[records], abs=1e-9)
    alone = attack.scores(some(np.arange(0, RECORDS, 3)))  # only the fixed variance looks at others
    assert np.allclose(alone, scores[::3], atol=1e-12) != attack.name.endswith("fixed")


@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in ("lira", "lira-fixed")])
def test_surer_means_member(name):
    """A surer target never scores lower; only a ratio of two Gaussians need not rise."""
    low = attack_named(name).scores(SEEN)
    high = attack_named(name).scores(replace(SEEN, target=signals(SEEN.target.logit + 0.5)))
    assert (high >= low).all()
    assert (high > low).any() == (name != "baseline")


@every_attack
def test_a_target_without_answer_gets_nan_and_extreme_answers_finite_scores(attack):
    logits = SEEN.target.logit.copy()
    logits[:2] = np.nan
    scores = attack.scores(replace(SEEN, target=signals(logits)))
    assert np.isnan(scores[:2]).all() == (attack.name != "baseline")
    assert scores[2:] == pytest.approx(attack.scores(SEEN)[2:], abs=1e-12)
    parts = ("target", "shadows", "population", "shadow_population")
    far = replace(SEEN, **{part: signals(getattr(SEEN, part).logit * 900) for part in parts})
    assert np.isfinite(attack.scores(far)).all()  # probabilities that are 0 or 1 as floats


@every_attack
def test_what_is_needed_is_asked_for_and_nothing_else(attack):
    needed = {part: getattr(SEEN, part) for part in ("target", *attack.needs)}
    assert np.array_equal(attack.scores(Evidence(**needed)), attack.scores(SEEN))
    for part in needed.keys() - {"target"}:
        with pytest.raises(InputError) as refused:
            attack.scores(replace(SEEN, **{part: None}))
        assert refused.value.parameter == f"evidence.{part}"


@pytest.mark.parametrize(
    ("name", "least", "unscored"),
    [
        ("lira", "2 with and 2 without", {0, 1, 2}),
        ("lira-offline", "0 with and 2 without", {1}),
        ("lira-fixed", "1 with and 1 without", {0, 1}),
        ("rmia", "1 with and 1 without", {0, 1}),
        ("rmia-offline", "0 with and 1 without", {1}),
        ("attack-r", "0 with and 1 without", {1}),
    ],
)
def test_records_that_lack_models(name, least, unscored):
    """Record 0 is in no model, record 1 in all, record 2 in one."""
    members, attack = SEEN.members.copy(), attack_named(name)
    members[:, :3] = np.stack([np.arange(MODELS) < count for count in (0, MODELS, 1)], axis=1)
    short = replace(SEEN, members=members)
    with pytest.raises(InputError) as refused:
        attack.scores(short)
    assert refused.value.parameter == "shadow models"
    assert least in refused.value.requirement
    patient = replace(attack, missing="nan")
    assert set(np.flatnonzero(np.isnan(patient.scores(short)))) == unscored
    assert set(np.flatnonzero(~patient.scorable(members))) == unscored
