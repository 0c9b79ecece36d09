import torch

from dprime.monitor.watcher import Watcher


class Bare(Watcher):
    name = "bare"


def test_every_moment_is_optional():
    bare = Bare()
    bare.start(None)
    bare.batch(torch.zeros(1), torch.zeros(1))
    bare.before_noise(None)
    bare.after_noise(None)
    bare.load_state_dict({})
    assert (bare.needs_batches, bare.report(), bare.state_dict()) == (False, "", {})
