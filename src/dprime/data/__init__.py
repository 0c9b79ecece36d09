"""Data sets: records with labels, loaded by name or made from your own arrays."""

from dprime.data.dataset import Dataset, Kind, Split
from dprime.data.loaders import load, names

__all__ = ["Dataset", "Kind", "Split", "load", "names"]
