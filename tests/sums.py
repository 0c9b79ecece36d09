"""How far two data sets' clipped sums lie apart."""

from dprime.train import TrainingConfig, train
from trials import Sums


def moved(model, one, other, trials=1, seed=1, initial="given", **options):
    """The distance of the clipped sums, in clipping norms."""
    sums = []
    for data in (one, other):
        seen = Sums()
        recipe = {"steps": 1, "learning_rate": 1.0, "clip_norm": 1.0, "noise_multiplier": 20.0}
        train(
            model, data, TrainingConfig(**{**recipe, **options}), initial=initial, trials=trials,
            seed=seed, observers=[seen],
        )  # fmt: skip
        sums.append(seen.sums.double())
    return float((sums[0] - sums[1]).norm(dim=1).max()) / options.get("clip_norm", 1.0)
