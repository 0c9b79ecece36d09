"""What every attack owes, whatever it computes."""

import numpy as np
import pytest

from dprime.membership.attacks import ATTACKS, AttackR, Evidence, LiRA, attack_named, options_of
from dprime.membership.signals import Signals

RECORDS, MODELS, OTHERS = 30, 12, 25

every_attack = pytest.mark.parametrize("name", ATTACKS)


def signals(logits):
    logits = np.asarray(logits)
    return Signals.from_binary_logits(logits, np.ones(logits.shape[-1]))


def evidence(seed=0, gain=3.0):
    """Models that are surer of the records they had."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(size=RECORDS)
    members = rng.permuted(np.arange(MODELS)[:, None] % 2 == np.zeros((1, RECORDS)), axis=0)
    truth = rng.random(RECORDS) < 0.5
    seen = Evidence(
        target=signals(hard + gain * truth + rng.normal(size=RECORDS)),
        shadows=signals(hard + gain * members + rng.normal(size=(MODELS, RECORDS))),
        members=members,
        population=signals(rng.normal(size=OTHERS)),
        shadow_population=signals(rng.normal(size=(MODELS, OTHERS))),
    )
    return seen, truth


def parts(seen, places):
    """The same evidence on some of the records."""
    return Evidence(
        seen.target.take(places),
        seen.shadows.take(places),
        seen.members[:, places],
        seen.population,
        seen.shadow_population,
    )


def test_names():
    assert list(ATTACKS) == [
        "lira", "lira-offline", "lira-fixed", "lira-offline-fixed", "rmia", "rmia-offline",
        "attack-p", "attack-r", "yeom", "baseline",
    ]  # fmt: skip
    assert len({attack.title for attack in ATTACKS.values()}) == len(ATTACKS)
    with pytest.raises(ValueError, match=r"attack must be one of lira, .* but it is 'rima'"):
        attack_named("rima")


def test_options_can_be_written():
    assert options_of(LiRA(online=False)) == {
        "online": False,
        "variance": "per-record",
        "missing": "error",
    }


@every_attack
def test_a_score_for_each_record_and_always_the_same(name):
    seen, _ = evidence()
    first, again = attack_named(name).scores(seen), attack_named(name).scores(seen)
    assert first.shape == (RECORDS,)
    assert first.dtype == np.float64
    assert np.isfinite(first).all()
    assert np.array_equal(first, again)


@every_attack
def test_order_of_records_and_of_models_does_not_matter(name):
    seen, _ = evidence()
    records, models = np.random.default_rng(1).permutation(RECORDS), np.arange(MODELS)[::-1]
    moved = parts(seen, records)
    moved = Evidence(
        moved.target,
        Signals(moved.shadows.right[models], moved.shadows.wrong[models]),
        moved.members[models],
        moved.population,
        Signals(moved.shadow_population.right[models], moved.shadow_population.wrong[models]),
    )
    expected = attack_named(name).scores(seen)[records]
    assert attack_named(name).scores(moved) == pytest.approx(expected, abs=1e-9)


@every_attack
def test_a_record_is_scored_by_itself(name):
    """Only the fixed variance looks at other records."""
    seen, _ = evidence()
    places = np.arange(0, RECORDS, 3)
    alone = attack_named(name).scores(parts(seen, places))
    together = attack_named(name).scores(seen)[places]
    if name.endswith("fixed"):
        assert not np.allclose(alone, together, atol=1e-9)
    else:
        assert alone == pytest.approx(together, abs=1e-12)


@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in ("lira", "lira-fixed")])
def test_surer_means_member(name):
    """A surer target never scores lower; only a ratio of two Gaussians need not rise."""
    seen, _ = evidence()
    low = attack_named(name).scores(seen)
    surer = Evidence(
        signals(seen.target.logit + 0.5), seen.shadows, seen.members, seen.population,
        seen.shadow_population,
    )  # fmt: skip
    high = attack_named(name).scores(surer)
    assert (high >= low).all()
    assert (high > low).any() == (name != "baseline")


@every_attack
def test_members_score_higher(name):
    seen, truth = evidence(gain=6.0)
    scores = attack_named(name).scores(seen)
    if name == "baseline":
        assert np.ptp(scores) == 0
    else:
        assert scores[truth].mean() > scores[~truth].mean()


@every_attack
def test_a_target_without_answer_gets_nan(name):
    seen, _ = evidence()
    logits = seen.target.logit.copy()
    logits[:2] = np.nan
    lost = Evidence(
        signals(logits), seen.shadows, seen.members, seen.population, seen.shadow_population
    )
    scores, whole = attack_named(name).scores(lost), attack_named(name).scores(seen)
    if name == "baseline":
        assert np.array_equal(scores, whole)
    else:
        assert np.isnan(scores[:2]).all()
        assert scores[2:] == pytest.approx(whole[2:], abs=1e-12)


@every_attack
def test_what_is_needed_is_asked_for(name):
    seen, _ = evidence()
    attack = attack_named(name)
    for part in attack.needs:
        if part == "target":
            continue
        kept = {p: getattr(seen, p) for p in ("shadows", "members", "population")}
        kept["shadow_population"] = seen.shadow_population
        kept[part] = None
        with pytest.raises(ValueError, match=rf"evidence\.{part} must be given for {name}, but"):
            attack.scores(Evidence(seen.target, **kept))
    only = {part: getattr(seen, part) for part in attack.needs if part != "target"}
    assert np.array_equal(attack.scores(Evidence(seen.target, **only)), attack.scores(seen))


@every_attack
def test_extreme_answers_give_finite_scores(name):
    """Probabilities that are 0 or 1 as floats."""
    seen, _ = evidence()
    far = Evidence(
        signals(seen.target.logit * 900),
        signals(seen.shadows.logit * 900),
        seen.members,
        signals(seen.population.logit * 900),
        signals(seen.shadow_population.logit * 900),
    )
    assert np.isfinite(attack_named(name).scores(far)).all()


@pytest.mark.parametrize(
    ("name", "lacking"),
    [
        ("lira", "2 of 30 records lack models with them and 1 of 30 records lack models without"),
        ("lira-offline", "at least 2 without every record, .* 1 of 30 records lack models without"),
        ("lira-fixed", "at least 1 with and 1 without every record, .* 1 of 30 records lack"),
        ("rmia", "1 of 30 records lack models with them and 1 of 30 records lack models without"),
        ("rmia-offline", "at least 1 without every record, .* 1 of 30 records lack models without"),
        ("attack-r", "at least 1 without every record, .* 1 of 30 records lack models without"),
    ],
)
def test_records_that_lack_models(name, lacking):
    seen, _ = evidence()
    members = seen.members.copy()
    members[:, 0] = False
    members[:, 1] = True
    members[:, 2] = np.arange(MODELS) == 0
    short = Evidence(seen.target, seen.shadows, members, seen.population, seen.shadow_population)
    with pytest.raises(ValueError, match=lacking) as refused:
        attack_named(name).scores(short)
    assert "train more shadow models" in str(refused.value)
    assert ("offline variant" in str(refused.value)) == (name in ("lira", "lira-fixed", "rmia"))
    kind = type(attack_named(name))
    patient = kind(**(options_of(attack_named(name)) | {"missing": "nan"}))
    scores = patient.scores(short)
    expected = {0} if name in ("lira", "lira-fixed", "rmia") else set()
    expected |= {1} | ({2} if name == "lira" else set())
    assert set(np.flatnonzero(np.isnan(scores))) == expected


def test_shapes_belong_together():
    seen, _ = evidence()
    with pytest.raises(ValueError, match=r"shadows must be \[model, 30 records\], but it is of"):
        Evidence(seen.target, signals(np.zeros((3, 5))))
    with pytest.raises(ValueError, match=r"members must be \[12 models, 30 records\], but it is"):
        Evidence(seen.target, seen.shadows, seen.members[:5])
    with pytest.raises(ValueError, match=r"target must be \[record\], but it is of shape"):
        Evidence(seen.shadows)
    with pytest.raises(ValueError, match=r"shadow_population must be \[12 models, 25 records\]"):
        Evidence(
            seen.target, seen.shadows, seen.members, seen.population, signals(np.zeros((12, 4)))
        )


def test_shadow_models_must_have_answers():
    seen, _ = evidence()
    logits = seen.shadows.logit.copy()
    logits[0, 0] = np.nan
    with pytest.raises(ValueError, match="shadows must be finite everywhere, but it is without an"):
        Evidence(seen.target, signals(logits), seen.members)


def test_options_are_checked():
    with pytest.raises(ValueError, match="variance must be one of per-record, fixed"):
        LiRA(variance="none")
    with pytest.raises(ValueError, match="missing must be one of error, nan"):
        AttackR(missing="skip")
    with pytest.raises(ValueError, match="thresholds_from must be one of out, in"):
        AttackR(thresholds_from="both")
