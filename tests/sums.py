"""How far two data sets' clipped sums lie apart."""

import torch

from dprime.train import Observer, TrainingConfig, train


class Sum(Observer):
    def begin(self, run):
        self.sum = torch.full((len(run.trials), run.network.size), torch.nan, dtype=torch.float64)

    def see(self, step):
        self.sum[step.rows] = step.own_sum


def moved(model, one, other, trials=1, seed=1, initial="given", **options):
    """The distance of the clipped sums, in clipping norms."""
    sums = []
    for data in (one, other):
        seen = Sum()
        recipe = {"steps": 1, "learning_rate": 1.0, "clip_norm": 1.0, "noise_multiplier": 20.0}
        train(
            model, data, TrainingConfig(**{**recipe, **options}), initial=initial, trials=trials,
            seed=seed, observers=[seen],
        )  # fmt: skip
        sums.append(seen.sum)
    return float((sums[0] - sums[1]).norm(dim=1).max()) / options.get("clip_norm", 1.0)
