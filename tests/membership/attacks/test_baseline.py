"""The baseline says "member" of everyone, even where the target has no answer."""

import numpy as np

from dprime.membership.attacks import Baseline, Evidence
from dprime.membership.results import precision_over_quantiles
from dprime.membership.signals import Signals


def test_its_precision_is_the_share_of_members():
    lost = Signals.from_binary_logits([np.nan, 1.0, 2.0, np.nan], np.ones(4))
    scores = Baseline().scores(Evidence(lost))
    best = precision_over_quantiles(scores, [True, False, False, False])
    assert (best.value, best.said) == (0.25, 4)
