"""The Yeom attack and its own threshold."""

import numpy as np
import pytest

from dprime.membership.attacks import Evidence, YeomLoss, yeom_threshold
from dprime.membership.signals import Signals


def test_member_where_the_loss_is_at_most_the_mean_training_loss():
    seen = Signals.from_binary_logits([3.0, 1.0, -1.0], [1, 1, 1])
    said = YeomLoss().scores(Evidence(seen)) >= yeom_threshold(float(np.mean(seen.loss[:2])))
    assert said.tolist() == [True, False, False]
    exactly = YeomLoss().scores(Evidence(seen)) >= yeom_threshold(float(seen.loss[1]))
    assert exactly.tolist() == [True, True, False]


def test_a_loss_is_not_negative():
    with pytest.raises(ValueError, match="mean_training_loss must be 0 or more"):
        yeom_threshold(-0.1)
