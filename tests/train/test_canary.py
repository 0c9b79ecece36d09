"""Crafted gradients in the place of the differing records', against a slow copy."""

import pytest
import torch

from dprime.data.dataset import Dataset
from dprime.train import CanaryGradient, LocalSensitivity, NoiseScale, TrainingData
from trials import SMALL, C, Keeper, Wrapped, check_slowly, clipped, dense, fast, flat, trained


def loud(weights, index):
    """Longer than C, and another one at every step."""
    return 3 * weights + 1 + index


def quiet(weights, index):
    """Shorter than C."""
    return 0.02 * weights.cos() * (1 + index)


class Made(CanaryGradient):
    """A loud gradient for x and a quiet one for x′; it remembers when it was asked."""

    def __init__(self):
        self.asked = []

    def gradients(self, context):
        self.asked.append((context.index, context.rows.start, context.rows.stop))
        context.memo[self] = context.index
        made = (loud(context.weights, context.index), quiet(context.weights, context.index))
        return made[: context.run.sampler.differing]


CASES = [
    ("remove", {}), ("remove", {"sample_rate": 0.3}), ("add", {"sample_rate": 0.7}),
    ("replace", {"sample_rate": 0.3}), ("replace", {"sample_rate": 0.7, "sensitivity": "local"}),
    ("remove", {"sample_rate": 0.3, "sensitivity": "local"}),
    ("remove", {"clip_norm": None, "noise_multiplier": 0.0}),
]  # fmt: skip


@pytest.mark.parametrize(("pair", "options"), CASES, ids=str)
@pytest.mark.parametrize("wrap", [fast, Wrapped])
def test_sampled_clipped_and_used_in_its_own_world(pair, options, wrap):
    model = dense(5, 4, 3)
    done = trained(pair, model=wrap(model), seed=11, initial="given", canary=Made(), **options)
    starts = flat(model).expand(4, -1)
    check_slowly(done, model, starts, made=(loud, quiet))


def test_the_records_own_gradient_counts_no_more():
    """Whatever record stands in the place, only the canary is seen of it."""
    record = SMALL.take([0])
    strange = Dataset.of(1e4 * record.records, record.labels, classes=3)
    first, second = (
        trained(TrainingData.add(SMALL, x), canary=Made(), sample_rate=0.7).weights
        for x in (record, strange)
    )
    assert torch.equal(first, second)


@pytest.mark.parametrize("pair", ["remove", "replace", "add"])
@pytest.mark.parametrize("options", [{"sensitivity": "local"}, {"sample_rate": 0.3}], ids=str)
def test_observers_see_it_and_sensitivity_and_noise_are_the_canarys(pair, options):
    canary, keeper, noise, sensitivity = Made(), Keeper(), NoiseScale(), LocalSensitivity()
    done = trained(pair, keeper, noise, sensitivity, canary=canary, **options)
    z = done.training.noise_multiplier
    assert {step["index"] for step in keeper.steps} == {0, 1, 2}
    two, local = pair == "replace", "sensitivity" in options
    for step in keeper.steps:
        assert step["memo"][canary] == step["index"]
        made = [g(step["weights"], step["index"]) for g in (loud, quiet)[: 1 + two]]
        made = [torch.stack([clipped(g, C) for g in each]) for each in made]
        own = step["common"]
        for seen, expected, drawn in zip(step["differing"], made, step["drawn"], strict=True):
            torch.testing.assert_close(seen, expected, rtol=1e-5, atol=1e-6)
            assert (seen.double().norm(dim=1) <= C).all()
            own = own + drawn[:, None] * seen
        torch.testing.assert_close(own, step["own"], rtol=1e-4, atol=1e-5)
        norms = (made[0] - (made[1] if two else 0)).norm(dim=1)
        at = (step["rows"], step["index"])
        torch.testing.assert_close(torch.tensor(sensitivity.norms[at]).float(), norms)
        # σ = z C LS/GS, GS = C or 2C; globally z C with a thousandth for rounding
        scale = z * norms / (1 + two) if local else torch.full_like(norms, 1.001 * z * C)
        torch.testing.assert_close(torch.tensor(noise.sigmas[at]).float(), scale)


def test_slices_change_nothing(monkeypatch):
    options = {"trials": 13, "sample_rate": 0.4, "block": 5}
    whole = trained("replace", canary=Made(), **options)
    monkeypatch.setattr("dprime.train.slices.CACHE", 1)
    canary = Made()
    single = trained("replace", canary=canary, **options)
    torch.testing.assert_close(single.weights, whole.weights, rtol=1e-4, atol=1e-6)
    assert sorted(canary.asked) == [(i, t, t + 1) for i in range(3) for t in range(13)]
    block = trained("replace", canary=Made(), blocks=[1], **options)
    torch.testing.assert_close(block.weights, whole.weights[5:10], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "canary", "wanted"),
    [({}, Made(), "a canary gradient"), ({"sensitivity": "local"}, None, "local sensitivity")],
)
def test_one_world_is_refused(options, canary, wanted):
    with pytest.raises(ValueError, match=f"data must be two worlds for {wanted}, but it is one"):
        trained(SMALL, canary=canary, **options)
