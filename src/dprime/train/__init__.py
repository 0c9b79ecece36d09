"""The training engine: a thousand DP-SGD trainings as one.

TrainingData + model + TrainingConfig ──► train ──► Trained: models and their accuracy
"""

from importlib.util import find_spec

from dprime import text

if find_spec("torch") is None:  # before any of the imports below fails with less to go on
    raise ImportError(f"dprime.train needs PyTorch: {text.install('train')}")
if find_spec("cryptography") is None or find_spec("mpmath") is None:
    raise ImportError(f"dprime.train needs cryptography and mpmath: {text.install('train')}")

from dprime.train.clipping import ClipNorm, median_clip_norm
from dprime.train.compute import Compute
from dprime.train.data import TrainingData
from dprime.train.engine import train
from dprime.train.evaluate import Trained
from dprime.train.observers import (
    AccuracyEvery,
    FinalAccuracy,
    LikelihoodRatio,
    LocalSensitivity,
    NoiseScale,
)
from dprime.train.optimizers import SGD, Adam, Constant, Cosine, Decay
from dprime.train.settings import TrainingConfig
from dprime.train.steps import CanaryGradient, EngineContext, Observer, Step, StepContext

__all__ = [
    "SGD", "AccuracyEvery", "Adam", "CanaryGradient", "ClipNorm", "Compute", "Constant", "Cosine",
    "Decay", "EngineContext", "FinalAccuracy", "LikelihoodRatio", "LocalSensitivity", "NoiseScale",
    "Observer", "Step", "StepContext", "Trained", "TrainingConfig", "TrainingData",
    "median_clip_norm", "train",
]  # fmt: skip
