"""A monitor on small trainings, and how its answers are compared."""

import pytest

from dprime import DPSGD
from dprime.monitor import Monitor, PrivacyWarning
from dprime.profile import Questions

RATE = 1 / 6
MODES = ("hooks", "functorch", "ew", "ghost")
ASK = Questions(delta=1e-3)
ADAPTIVE = {
    "clipping": "adaptive", "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2,
    "max_clipbound": 10.0, "min_clipbound": 0.1, "unclipped_num_std": 2.0,
}  # fmt: skip


def poisson(noise_multiplier, sample_rate, steps):
    """What a monitor says of Poisson steps, where Opacus counts the records."""
    return DPSGD(noise_multiplier, sample_rate, steps, public_size=True)


def watch(made, **options):
    return Monitor(made.engine, **made.named(), **{"questions": ASK, "show": None, **options})


def watch_shuffled(made, **options):
    with pytest.warns(PrivacyWarning, match="not drawn by Poisson sampling"):
        return watch(made, **options)


def values(answers):
    return {answer.name: answer.value for answer in answers}
