import numpy as np
import torch

from dprime.canaries.weight_index import WeightIndex


def test_places_read_what_stands_at_flat_positions():
    parameters = [torch.randn(3, 4), torch.randn(5), torch.randn(2, 2, 2)]
    flat = np.array([0, 3, 11, 12, 16, 17, 24])
    expected = torch.cat([p.flatten() for p in parameters])[flat]
    assert torch.equal(
        WeightIndex(flat, parameters).read(p.flatten() for p in parameters), expected
    )


def test_places_read_rows_too_and_skip_parameters_without_any():
    parameters = [torch.randn(4), torch.randn(3)]
    rows = [torch.randn(6, 4), torch.randn(6, 3)]
    found = WeightIndex(np.array([1, 2]), parameters).read(rows)
    assert torch.equal(found, rows[0][:, [1, 2]])
