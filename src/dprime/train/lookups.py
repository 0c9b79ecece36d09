"""Lookups in tables that stay within a record under `torch.func`."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

BELOW = ("weight", "indices", "padding_idx")
LOOKUPS: dict[Any, tuple[str, ...]] = {
    F.embedding: ("input", "weight", "padding_idx"),
    torch.embedding: BELOW,
    torch.ops.aten.embedding: BELOW,
    torch.ops.aten.embedding.default: BELOW,
}
"""Functions that look rows up, and the names of their first arguments."""


class OwnRows(TorchFunctionMode):
    """Look rows up one by one, with NaN for those that a table does not have.

    Under `vmap` PyTorch's own lookup joins the tables of all trials, or of all records where they
    are computed, and an index beyond the end reads and writes another record's.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        names = LOOKUPS.get(func, ())
        given = dict(zip(names, args, strict=False)) | (kwargs or {})
        if not names or given.get("max_norm") is not None:
            return func(*args, **(kwargs or {}))
        words = given["input"] if "input" in given else given["indices"]
        table, padding = given["weight"], given.get("padding_idx")
        if func is not F.embedding and (padding is None or padding < 0):
            padding = None  # below the function a negative one is none
        padding = len(table) if padding is None else padding % len(table)
        known = (words >= 0) & (words < table.shape[0])
        rows = table[torch.where(known, words, 0)]
        rows = torch.where((words == padding)[..., None], rows.detach(), rows)
        return torch.where(known[..., None], rows, torch.nan)
