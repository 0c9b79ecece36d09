"""The training engine: a thousand DP-SGD trainings as one.

data + model + Training ──► train ──► Trained: models, noisy gradients for observers, accuracy
"""

from importlib.util import find_spec

from dprime import text

if find_spec("torch") is None:  # before any of the imports below fails with less to go on
    raise ImportError(f"dprime.train needs PyTorch: {text.install('train')}")
if find_spec("cryptography") is None or find_spec("mpmath") is None:
    raise ImportError(f"dprime.train needs cryptography and mpmath: {text.install('train')}")

from dprime.train.clipping import ClipNorm, median_clip_norm
from dprime.train.engine import Run, train
from dprime.train.insert import Insert, Moment
from dprime.train.observe import Final, Observer, Step
from dprime.train.observers import (
    AccuracyEvery,
    FinalAccuracy,
    LikelihoodRatio,
    LocalSensitivity,
    NoiseScale,
)
from dprime.train.optimizers import SGD, Adam, Constant, Cosine, Decay
from dprime.train.settings import Training
from dprime.train.subsets import Subsets
from dprime.train.trained import Trained
from dprime.train.worlds import Worlds

__all__ = [
    "SGD",
    "AccuracyEvery",
    "Adam",
    "ClipNorm",
    "Constant",
    "Cosine",
    "Decay",
    "Final",
    "FinalAccuracy",
    "Insert",
    "LikelihoodRatio",
    "LocalSensitivity",
    "Moment",
    "NoiseScale",
    "Observer",
    "Run",
    "Step",
    "Subsets",
    "Trained",
    "Training",
    "Worlds",
    "median_clip_norm",
    "train",
]
