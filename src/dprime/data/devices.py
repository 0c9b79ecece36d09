"""Where PyTorch computes."""

from __future__ import annotations

import os
import platform

import torch

from dprime import validate


def device_named(device: str | torch.device) -> torch.device:
    """A device that is there and computes."""
    try:
        found = torch.device(device)
        torch.zeros(1, device=found).item()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError):
        remedy = "give cpu, or cuda with a GPU"
        raise validate.refusal("device", str(device), "available", remedy) from None
    return found


def device_title(device: str | torch.device) -> str:
    """What a device is called: that of a GPU as its maker names it, else the processor's kind."""
    found = torch.device(device)
    if found.type == "cuda":
        return torch.cuda.get_device_name(found)
    return f"{platform.machine()} processor, {os.cpu_count()} cores"
