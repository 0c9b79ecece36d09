"""Natural records and the scores of final models; which made record is taken, by written losses."""

import copy
import dataclasses

import numpy as np
import pytest
import scipy.stats
import torch
from torch.nn.functional import cross_entropy

from dprime.attack import (
    DI,
    AttackTarget,
    ChosenWeights,
    NoiseGrid,
    StaticPoisoning,
    Trainer,
)
from dprime.attack import record_attacks as attacks
from dprime.data.dataset import Dataset
from dprime.train import LikelihoodRatio, LocalSensitivity, NoiseScale
from dprime.validate import InputError
from games import IMAGES, area, engine_setting, played, quick
from trials import gradient_of, set_flat

both = pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
BEFORE = ChosenWeights(steps=150, learning_rate=0.05)


def losses_of(model, records, labels):
    with torch.no_grad():
        return cross_entropy(model(torch.tensor(records)), torch.tensor(labels), reduction="none")


@pytest.mark.parametrize("name", ["api-access", "static-poisoning", "chosen-weights"])
@both
def test_the_score_is_the_final_models_loss(name, adjacency):
    setting = engine_setting(adjacency=adjacency, model="dense-5")
    attack = quick(name).craft(setting)
    start = {"seed": setting.seed, "initial": attack.initial}
    done = setting.trainer.train(attack.worlds, trials=20, **start)
    probes, expected = attack.probes, []
    for trial in range(20):
        losses = losses_of(done.model(trial), probes.records.records, probes.records.labels)
        expected.append(probes.sign * (losses[0] - (losses[1] if len(losses) > 1 else 0.0)))
    np.testing.assert_allclose(played(setting, attack)["score"], expected, rtol=1e-4, atol=1e-5)


@both
@pytest.mark.parametrize("options", [{"sample_rate": 0.4}, {"sensitivity": "local"}])
def test_what_is_kept(adjacency, options):
    setting = engine_setting(adjacency=adjacency, **options)
    attack, trainer = DI().craft(setting), setting.trainer
    found = played(setting, attack, block=8)
    ratio, noise, sensitivity = LikelihoodRatio(every_step=True), NoiseScale(), LocalSensitivity()
    recipe = dataclasses.replace(trainer.training, block=8)
    for observer in (ratio, noise, sensitivity):
        trainer.watch(observer, attack.worlds, recipe, trials=20, seed=setting.seed)
    expected = {"log_ratio": ratio.logs, "score": ratio.logs[:, -1]}
    expected |= {"sigma": noise.sigmas, "sensitivity": sensitivity.norms}
    assert found["log_ratio"].shape == (20, 4)
    assert set(found) == {*expected, "in_world", "diverged"}
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-6)


def test_it_says_which_record():
    assert DI().craft(engine_setting()).about == "the record that differs most from the others"
    named = DI().craft(engine_setting(record=5))
    assert named.about == "the record named"
    assert np.array_equal(named.worlds.differing.records[0], engine_setting().dataset.records[5])


@pytest.mark.parametrize("kind", [DI, NoiseGrid])
def test_a_training_without_noise_is_refused(kind):
    with pytest.raises(InputError, match=f"noise_multiplier must be above 0 for {kind.name}"):
        kind().craft(engine_setting(noise_multiplier=0.0))


def norms(model, dataset):
    """The norm of every record's gradient."""
    loss = lambda outputs, labels: cross_entropy(outputs, labels, reduction="none")  # noqa: E731
    pairs = zip(torch.tensor(dataset.records), torch.tensor(dataset.labels), strict=True)
    return np.array([float(gradient_of(model, loss, x, y).norm()) for x, y in pairs])


@both
def test_the_others_gradients_almost_vanish_and_a_blank_record_has_the_largest_loss(adjacency):
    setting = engine_setting(adjacency=adjacency)
    attack = BEFORE.craft(setting)
    common, differing = attack.worlds.common, attack.worlds.differing
    model = copy.deepcopy(setting.trainer.model)
    set_flat(model, attack.initial.clone())
    assert norms(setting.trainer.model, common).min() > 1
    assert norms(model, common).max() < 0.2
    assert norms(model, differing).min() > 0.9
    assert (differing.records == 0).all()
    order = losses_of(model, np.zeros((10, 1, 8, 8), np.float32), np.arange(10))
    order = order.argsort(descending=True)
    assert differing.labels.tolist() == order[: len(differing)].tolist()
    assert np.array_equal(common.records, setting.dataset.records)


# Records made with shadow models ------------------------------------------------------------------

DATA = IMAGES.train.take(range(8))
POOL = IMAGES.test.take(range(3))
gap, candidates = attacks.gap, attacks.candidates
LOUD = attacks.LARGE * float(DATA.records.max())


class Written(Trainer):
    """Losses by a rule (dataset, records) → [record], with a little noise of the seed's own."""

    play = models = describe = None

    def __init__(self, rule, noise=0.1):
        self.rule, self.noise, self.calls = rule, noise, []

    def losses(self, data, records, models, seed, world="in"):
        dataset = data.dataset(world)
        self.calls.append((seed, len(dataset), models))
        noise = np.random.default_rng(seed).normal(size=(models, len(records)))
        return self.rule(dataset, records) + self.noise * noise


def flat_rule(dataset, records):
    return np.zeros(len(records))


def setting(rule=flat_rule, adjacency="add-remove", data=DATA, pool=POOL, seed=5):
    return AttackTarget(Written(rule), data, adjacency, pool, seed=seed)


def test_candidates():
    found = candidates(setting(), shadows=2, outliers=3)
    assert len(found) == 3 + 3 + 2
    for natural, mislabelled in zip(found[:3], found[3:6], strict=True):
        assert np.array_equal(natural.differing.records, mislabelled.differing.records)
        assert (natural.size, mislabelled.size) == (8, 9)  # one of D's own, and one more
    for worlds, value in zip(found[6:], (0.0, LOUD), strict=True):
        assert (worlds.differing.records == value).all()
    everyone = {record.tobytes() for record in DATA.records}
    assert {worlds.differing.records[0].tobytes() for worlds in found[:3]} <= everyone
    assert len(candidates(setting(), shadows=2, outliers=100)) == 8 + 8 + 2  # all that there are


def test_candidates_of_replace_have_another_label_in_their_place():
    found = candidates(setting(adjacency="replace"), shadows=2, outliers=1)
    assert [len(worlds.differing) for worlds in found] == [2] * 4
    for worlds in found[1:]:
        assert np.array_equal(*worlds.differing.records)
    without_pool = setting(adjacency="replace", pool=None)
    assert len(candidates(without_pool, shadows=2, outliers=1)) == 3  # no natural pair


@pytest.mark.parametrize(
    ("loss", "labels"),
    [
        (lambda labels: (labels - 6.0) ** 2, [0, 6]),
        (lambda labels: np.where(labels == 4, np.nan, labels - 9.0), [4, 0]),  # diverged
    ],
)
def test_labels_of_the_largest_and_the_smallest_loss(loss, labels):
    at = setting(lambda dataset, records: loss(records.labels), "replace")
    for worlds in candidates(at, shadows=3, outliers=2)[2:]:
        assert worlds.differing.labels.tolist() == labels


def test_a_binary_table():
    binary = Dataset.of(np.eye(4)[[0, 1, 2, 3, 0, 1]], [0, 1, 0, 1, 0, 1])
    found = candidates(setting(data=binary, pool=None), 3, 1)
    assert {each.union.kind for each in found} == {"binary", "table"}


def are(dataset, value):
    """Which records have numbers that are all this value, or these values."""
    return (dataset.records.reshape(len(dataset), -1) == value).all(1)


def own_loss(value, change):
    """Only the loss of this record changes, where it was trained on with its label."""

    def rule(dataset, records):
        made = are(dataset, value)
        trained = are(records, value) & np.isin(records.labels, dataset.labels[made]) & made.any()
        return np.where(trained, change, 0.0) + 0.5 * (records.labels == 2)

    return rule


def loss_of_the_last(dataset, records):
    """The loud record changes the loss on the last natural record, and nothing else."""
    last = are(records, DATA.records[-1].ravel())
    return np.where(last & are(dataset, LOUD).any(), 1.0, 0.0)


def diverging(loud):
    """The loud record makes models diverge, or only it keeps them from it."""

    def rule(dataset, records):
        return np.full(len(records), np.nan if are(dataset, LOUD).any() == loud else 0.0)

    return rule


@pytest.mark.parametrize(
    ("adjacency", "rule", "value", "judged"),
    [
        ("add-remove", own_loss(0.0, -1.0), 0.0, ("sign", -1.0)),
        ("replace", own_loss(0.0, -1.0), 0.0, ("sign", -1.0)),
        ("add-remove", own_loss(LOUD, 1.0), LOUD, ("sign", 1.0)),
        ("replace", own_loss(LOUD, 1.0), LOUD, ("sign", 1.0)),
        ("add-remove", loss_of_the_last, LOUD, ("sign", 1.0)),
        ("add-remove", diverging(loud=True), LOUD, ("diverged_score", np.inf)),
        ("add-remove", diverging(loud=False), LOUD, ("diverged_score", -np.inf)),
    ],
)
def test_the_candidate_that_tells_most_and_how_it_is_judged(adjacency, rule, value, judged):
    found = StaticPoisoning(20, 1).best(setting(rule, adjacency))
    record = found.worlds.differing
    assert (record.records == value).all()
    assert getattr(found.probes, judged[0]) == judged[1]
    told = DATA.records[-1:] if rule is loss_of_the_last else record.records
    assert np.array_equal(found.probes.records.records, told)
    assert found.gap > 2


def test_shadow_trainings_share_no_seed_with_the_trials_or_between_the_worlds():
    at = setting()
    StaticPoisoning(shadows=4, outliers=2).craft(at)
    seeds, sizes, models = zip(*at.trainer.calls, strict=True)
    # labels, then both worlds of every candidate, then both of the finalists
    assert models == (4,) + (4,) * 2 * 6 + (4 * attacks.AGAIN,) * 2 * attacks.FINALISTS
    assert sizes[1:13] == (8, 7) * 2 + (9, 8) * 4  # natural ones, made ones
    assert at.seed not in seeds
    assert len(set(seeds)) == len(seeds)


def test_gap_is_d_prime_of_the_ranks():
    rng = np.random.default_rng(0)
    first, second = rng.normal(1.2, 1.0, 20_000), rng.normal(0.0, 1.0, 20_000)
    assert gap(first, second) == pytest.approx(1.2, abs=0.04)
    assert gap(second, first) == pytest.approx(-1.2, abs=0.04)
    share = scipy.stats.mannwhitneyu(first[:50], second[:50]).statistic / 2500
    assert gap(first[:50], second[:50]) == pytest.approx(2**0.5 * scipy.stats.norm.ppf(share))
    nothing, some = np.full(10, np.nan), np.arange(10.0)
    assert gap(nothing, some) == pytest.approx(-gap(some, nothing))
    assert gap(nothing, some) < -3
    assert gap(nothing, nothing) == 0
    assert gap(nothing, some, diverged_score=np.inf) > 3
    assert np.isfinite(gap(some + 100, some))


def assert_one_of_forty(gaps, limit):
    beyond = scipy.stats.binomtest(sum(each > limit for each in gaps), len(gaps))
    assert beyond.proportion_ci(0.999).low <= 0.025 <= beyond.proportion_ci(0.999).high


@pytest.mark.slow
def test_equal_worlds_exceed_the_gap_of_luck_in_one_of_forty():
    rng = np.random.default_rng(6)
    gaps = [abs(gap(*rng.normal(size=(2, 60)))) for _ in range(4000)]
    assert_one_of_forty(gaps, attacks.gap_of_luck(60, 1))
    apart = range(0, 200_000, 1000)  # seeds that are near each other share shadow models
    found = [StaticPoisoning(10, 1).best(setting(seed=seed)).gap for seed in apart]
    assert_one_of_forty(
        found, attacks.gap_of_luck(attacks.AGAIN * 10, attacks.LOSSES_TRIED * attacks.FINALISTS)
    )
    one = attacks.gap_of_luck(attacks.AGAIN * 10, 1)
    assert sum(each > one for each in found) > 0.05 * len(found)  # what many choices would break


@pytest.mark.parametrize(("shadows", "noise", "luck"), [(6, 0.01, False), (2, 1000.0, True)])
def test_it_says_how_far_apart_the_shadows_were(shadows, noise, luck):
    attack = StaticPoisoning(shadows, 1).craft(engine_setting(noise_multiplier=noise))
    assert "shadow models, whose scores lie" in attack.about
    assert attack.about.endswith("more shadows may choose better") == luck
    assert attack.canary is None


def test_a_made_record_tells_no_less_than_a_natural_one():
    target = engine_setting(noise_multiplier=1.0, learning_rate=0.5, steps=10)
    adversaries = StaticPoisoning(shadows=60), quick("api-access")
    made, natural = (area(played(target, each.craft(target), trials=100)) for each in adversaries)
    assert made > natural - 2 * 0.011


@pytest.mark.parametrize(("adjacency", "factor"), [("add-remove", 1), ("replace", 2)])
def test_near_the_best_that_any_adversary_can_do_and_not_above(adjacency, factor):
    """The area under the curve of μ = √k/z, or 2√k/z, is Φ(μ/√2)."""
    target = engine_setting(adjacency=adjacency, noise_multiplier=2.0, steps=8)
    found = area(played(target, quick("intermediate-models").craft(target), trials=200))
    best = scipy.stats.norm.cdf(factor * 2**0.5 / 2**0.5)  # √8/2 = √2
    error = (best * (1 - best) / 200) ** 0.5  # at most that of one world's share
    assert best - 0.1 < found < best + 3 * error
