"""One state for the monitor and the accountant."""

import io

import numpy as np
import torch

from dprime.monitor.checkpoint import restore, whole_state
from watching import RATE, trained, watch


def test_both_go_on(private):
    monitor = watch(made := private())
    made.optimizer.noise_multiplier = np.float64(1.0)  # which no safe loading reads
    made.train()
    file = io.BytesIO()
    torch.save(whole_state(monitor), file)
    file.seek(0)
    again = private()
    resumed = watch(again)
    restore(resumed, torch.load(file, weights_only=True))
    assert again.engine.get_epsilon(1e-3) == made.engine.get_epsilon(1e-3)
    again.train()
    assert again.engine.accountant.history == [(1.0, RATE, 12)]
    assert str(resumed).startswith("Privacy of this training (epoch 2, step 12)")
    assert resumed.warnings == []


def test_a_state_without_the_accountant_leaves_it(private):
    made, monitor = trained(private())
    restore(monitor, monitor.state_dict())
    assert made.engine.accountant.history == [(1.0, RATE, 6)]
