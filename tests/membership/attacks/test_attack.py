"""What every attack owes, whatever it computes."""

from dataclasses import replace

import numpy as np
import pytest

from dprime import InputError
from dprime.membership.attacks import (
    ATTACKS,
    AttackR,
    Evidence,
    attack_named,
)
from dprime.membership.signals import Signals
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
    assert all(attack.name == name for name, attack in ATTACKS.items())
    titles = [attack.title for attack in ATTACKS.values()]
    assert titles[:4] == [
        "LiRA", "LiRA (offline)", "LiRA (fixed variance)", "LiRA (offline, fixed variance)",
    ]  # fmt: skip
    assert len(set(titles)) == len(ATTACKS)
    members = AttackR(thresholds_from="in")
    assert (members.name, members.title) == ("attack-r-in", "Attack R (thresholds from members)")


@every_attack
def test_members_get_higher_scores_and_always_the_same(attack):
    seen, truth = evidence(gain=6.0)
    scores = attack.scores(seen)
    assert scores.shape == (RECORDS,)
    assert np.isfinite(scores).all()
    assert np.array_equal(scores, attack.scores(seen))
    if attack.name != "baseline":
        assert scores[truth].mean() > scores[~truth].mean()


@every_attack
def test_order_of_records_and_of_models_does_not_matter(attack):
    records, models = np.random.default_rng(1).permutation(RECORDS), np.arange(MODELS)[::-1]
    moved, others = some(records), SEEN.shadow_population
    moved = replace(
        moved,
        shadows=Signals(moved.shadows.log_p[models], moved.shadows.log1m_p[models]),
        members=moved.members[models],
        shadow_population=Signals(others.log_p[models], others.log1m_p[models]),
    )
    assert attack.scores(moved) == pytest.approx(attack.scores(SEEN)[records], abs=1e-9)


@every_attack
def test_a_record_is_scored_by_itself(attack):
    """Only the fixed variance looks at other records."""
    places = np.arange(0, RECORDS, 3)
    alone, together = attack.scores(some(places)), attack.scores(SEEN)[places]
    assert np.allclose(alone, together, atol=1e-12) != attack.name.endswith("fixed")


@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in ("lira", "lira-fixed")])
def test_surer_means_member(name):
    """A surer target never scores lower; only a ratio of two Gaussians need not rise."""
    low = attack_named(name).scores(SEEN)
    high = attack_named(name).scores(replace(SEEN, target=signals(SEEN.target.logit + 0.5)))
    assert (high >= low).all()
    assert (high > low).any() == (name != "baseline")


@every_attack
def test_a_target_without_answer_gets_nan(attack):
    logits = SEEN.target.logit.copy()
    logits[:2] = np.nan
    scores = attack.scores(replace(SEEN, target=signals(logits)))
    assert np.isnan(scores[:2]).all() == (attack.name != "baseline")
    assert scores[2:] == pytest.approx(attack.scores(SEEN)[2:], abs=1e-12)


@every_attack
def test_what_is_needed_is_asked_for_and_nothing_else(attack):
    needed = {part: getattr(SEEN, part) for part in ("target", *attack.needs)}
    assert np.array_equal(attack.scores(Evidence(**needed)), attack.scores(SEEN))
    for part in needed.keys() - {"target"}:
        with pytest.raises(InputError) as refused:
            attack.scores(replace(SEEN, **{part: None}))
        assert refused.value.parameter == f"evidence.{part}"


@every_attack
def test_extreme_answers_give_finite_scores(attack):
    """Probabilities that are 0 or 1 as floats."""
    parts = ("target", "shadows", "population", "shadow_population")
    far = replace(SEEN, **{part: signals(getattr(SEEN, part).logit * 900) for part in parts})
    assert np.isfinite(attack.scores(far)).all()


@pytest.mark.parametrize(
    ("name", "wanted", "lacking", "unscored"),
    [
        ("lira", "2 with and 2 without", "2 of 30 records lack models with", {0, 1, 2}),
        ("lira-offline", "2 without", "1 of 30 records lack models without", {1}),
        ("lira-fixed", "1 with and 1 without", "1 of 30 records lack models with", {0, 1}),
        ("rmia", "1 with and 1 without", "1 of 30 records lack models with", {0, 1}),
        ("rmia-offline", "1 without", "1 of 30 records lack models without", {1}),
        ("attack-r", "1 without", "1 of 30 records lack models without", {1}),
    ],
)
def test_records_that_lack_models(name, wanted, lacking, unscored):
    """Record 0 is in no model, record 1 in all, record 2 in one."""
    members, attack = SEEN.members.copy(), attack_named(name)
    members[:, :3] = np.stack([np.arange(MODELS) < count for count in (0, MODELS, 1)], axis=1)
    short = replace(SEEN, members=members)
    with pytest.raises(InputError, match=lacking) as refused:
        attack.scores(short)
    assert refused.value.requirement == f"be at least {wanted} every record"
    assert "train more shadow models" in refused.value.remedy
    assert ("offline variant" in refused.value.remedy) == (name in ("lira", "lira-fixed", "rmia"))
    patient = replace(attack, missing="nan")
    assert set(np.flatnonzero(np.isnan(patient.scores(short)))) == unscored
    assert set(np.flatnonzero(~patient.scorable(members))) == unscored
