"""Bounds of earlier papers, to compare with: each holds, none is tighter than ours.

The first four bound the advantage (plot (1 + Adv)/2 as accuracy at the prior ½), the last two the
precision. `advantage_from_epsilon` and `precision_from_epsilon` are never above any of them.
"""

from __future__ import annotations

import math

from dprime import validate
from dprime.bounds._safe import logistic


def yeom_advantage_from_epsilon(epsilon: float) -> float:
    """Yeom et al. 2018, Theorem 1: the advantage is at most e^ε - 1.

    Certified upper bound for pure ε-DP, capped at 1; it says nothing from ε = ln 2 on.

    >>> round(yeom_advantage_from_epsilon(0.5), 5)
    0.64872
    """
    epsilon = validate.at_least_zero("epsilon", epsilon)
    return math.expm1(min(epsilon, math.log(2.0)))


def mosaicrown_advantage_from_epsilon(epsilon: float) -> float:
    """MOSAICrOWN D5.3, below eq. 4.5: the advantage is at most (e^ε - 1)/2.

    Certified upper bound for pure ε-DP, capped at 1. Its authors argue for attackers who are right
    at least half of the time; it holds for all, since (e^ε - 1)/(e^ε + 1) is smaller.

    >>> round(mosaicrown_advantage_from_epsilon(0.5), 5)
    0.32436
    """
    epsilon = validate.at_least_zero("epsilon", epsilon)
    return math.expm1(min(epsilon, math.log(3.0))) / 2


def erlingsson_advantage_from_epsilon(epsilon: float, *, delta: float = 0.0) -> float:
    """Erlingsson et al. 2019: the advantage is at most 1 - e^(-ε)(1 - δ).

    Certified upper bound for (ε, δ)-DP.

    >>> round(erlingsson_advantage_from_epsilon(0.5), 5)
    0.39347
    """
    epsilon = validate.at_least_zero("epsilon", epsilon)
    delta = validate.probability("delta", delta, example=1e-5)
    return -math.expm1(-epsilon) + delta * math.exp(-epsilon)


def sablayrolles_precision_from_epsilon(epsilon: float, *, prior: float) -> float:
    """Sablayrolles et al. 2019: the precision is at most π + ε/4.

    Certified upper bound for pure ε-DP, capped at 1.

    >>> sablayrolles_precision_from_epsilon(0.5, prior=0.5)
    0.625
    """
    epsilon = validate.at_least_zero("epsilon", epsilon)
    prior = validate.inner_probability("prior", prior)
    return min(1.0, prior + epsilon / 4)


def mahloujifar_precision_from_epsilon(epsilon: float) -> float:
    """Mahloujifar et al. 2022: the precision at the prior ½ is at most 1/(1 + e^(-ε)).

    Certified upper bound for pure ε-DP.

    >>> round(mahloujifar_precision_from_epsilon(0.5), 5)
    0.62246
    """
    return logistic(validate.at_least_zero("epsilon", epsilon))
