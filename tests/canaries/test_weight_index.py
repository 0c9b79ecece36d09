import numpy as np
import torch

from dprime.canaries.base import WeightIndex


def test_what_stands_at_flat_positions_is_read_also_in_rows():
    parameters = [torch.randn(3, 4), torch.randn(5), torch.randn(2), torch.randn(2, 2, 2)]
    places = np.array([0, 3, 11, 12, 16, 19, 26])  # none in the third
    flat, index = torch.cat([p.flatten() for p in parameters]), WeightIndex(places, parameters)
    rows = torch.stack([flat, 2 * flat])
    sizes = [p.numel() for p in parameters]
    assert torch.equal(index.read(rows.split(sizes, dim=1)), rows[:, places])
    assert torch.equal(index.read(p.flatten() for p in parameters), flat[places])
