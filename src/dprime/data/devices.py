"""Where PyTorch computes."""

from __future__ import annotations

import torch

from dprime import validate


def device_named(device: str | torch.device) -> torch.device:
    """A device that is there and computes."""
    try:
        found = torch.device(device)
        torch.zeros(1, device=found).item()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError):
        raise validate.refusal(
            "device", str(device), "available", "give cpu, or cuda with a GPU"
        ) from None
    return found
