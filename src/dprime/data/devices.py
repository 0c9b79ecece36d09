"""Where PyTorch computes, with how many threads and with how many digits."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from dprime import validate


def device_named(device: str | torch.device) -> torch.device:
    """A device that exists and computes."""
    try:
        found = torch.device(device)
        torch.zeros(1, device=found).item()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError):
        remedy = "give cpu, or cuda with a GPU"
        raise validate.invalid_value("device", str(device), "available", remedy) from None
    return found


def device_title(device: str | torch.device) -> str:
    """The name of a device: its maker's for a GPU, else the kind of processor."""
    found = torch.device(device)
    if found.type == "cuda":
        return torch.cuda.get_device_name(found)
    return f"{platform.machine()} processor, {os.cpu_count()} cores"


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch use one thread for each operation, so that other work has the other cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def single_precision() -> Iterator[None]:
    """Make float32 products with all their digits, whatever the user's program allows elsewhere."""
    allowed = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(allowed[0])
        torch.backends.cudnn.allow_tf32 = allowed[1]
