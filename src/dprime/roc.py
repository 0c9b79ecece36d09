"""The area under the ROC curve: how often one sample's score is the higher one."""

from __future__ import annotations

import numpy as np

from dprime.privacy_loss import Array


def auc(inside: Array, outside: Array) -> float:
    """The share of pairs, one score of each sample, in which the first is higher; a tie is half.

    >>> auc(np.array([1.0, 2.0]), np.array([0.0, 2.0]))
    0.625
    """
    return float((wins(inside, outside) / len(outside)).mean())  # Mann and Whitney 1947


def wins(scores: Array, others: Array) -> Array:
    """For each score, how many of the others it beats; a tie counts half."""
    ordered = np.sort(others)
    beaten = np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")
    return np.asarray(beaten / 2)
