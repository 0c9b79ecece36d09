"""Lower bounds with confidence, one method a file."""

from collections.abc import Mapping

from dprime.audit.estimators.band import Band
from dprime.audit.estimators.base import Estimator, LowerBound
from dprime.audit.estimators.bayesian import Bayesian
from dprime.audit.estimators.clopper_pearson import ClopperPearson
from dprime.audit.estimators.gaussian import GaussianScores
from dprime.audit.estimators.one_run import Mahloujifar, Steinke, rejects

ESTIMATORS: Mapping[str, type[Estimator]] = {
    made.name: made
    for made in (ClopperPearson, Band, GaussianScores, Bayesian, Steinke, Mahloujifar)
}
"""What a method's name stands for, with default options."""

FOR_TRIALS = tuple(name for name, made in ESTIMATORS.items() if not made.one_run)
"""Methods for trials of two worlds."""

__all__ = ["ESTIMATORS", "FOR_TRIALS", "Band", "Bayesian", "ClopperPearson", "Estimator"]
__all__ += ["GaussianScores", "LowerBound", "Mahloujifar", "Steinke", "rejects"]
