"""Static poisoning end to end: the crafted record, its probes, and the score of a final model."""

import numpy as np
import torch

from dprime.attack import StaticPoisoning
from dprime.train import train
from games import engine_setting, played, quick


def test_the_score_is_the_final_models_loss():
    setting = engine_setting()
    attack = quick("static-poisoning").craft(setting)
    probes = attack.probes
    done = train(
        setting.trainer.model, attack.worlds, setting.trainer.training, trials=20, seed=setting.seed
    )
    x, y = torch.tensor(probes.records.records), torch.tensor(probes.records.labels)
    expected = []
    for trial in range(20):
        with torch.no_grad():
            losses = torch.nn.functional.cross_entropy(done.model(trial)(x), y, reduction="none")
        expected.append(probes.sign * float(losses[0]))
    np.testing.assert_allclose(played(setting, attack)["score"], expected, rtol=1e-4, atol=1e-5)


def test_it_says_how_far_apart_the_shadows_were():
    attack = StaticPoisoning(shadows=6, outliers=1).craft(engine_setting(noise_multiplier=0.01))
    assert "shadow models, whose scores lie" in attack.about
    assert "luck" not in attack.about
    assert attack.canary is None
    assert attack.initial == "fresh"


def test_it_says_where_luck_may_have_chosen():
    attack = StaticPoisoning(shadows=2, outliers=1).craft(engine_setting(noise_multiplier=1000.0))
    assert attack.about.endswith("more shadows may choose better")


def test_a_made_record_tells_no_less_than_a_natural_one():
    """The adversary that may choose its record is no weaker, at many shadows, to two errors."""
    setting = engine_setting(noise_multiplier=1.0, learning_rate=0.5, steps=10)
    scores = [
        played(setting, adversary.craft(setting), trials=100)
        for adversary in (StaticPoisoning(shadows=60), quick("api-access"))
    ]
    made, natural = (
        float(np.mean(s["score"][s["in_world"]][:, None] > s["score"][~s["in_world"]]))
        for s in scores
    )  # areas under the curve
    assert made > natural - 2 * 0.011
