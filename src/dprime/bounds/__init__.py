"""Bounds and conversions that need no training: from (ε, δ), RDP, μ or β* to what people ask.

Names are a grid: `<what you get>_from_<what you have>`. A prefix says where a formula comes from
(`classical_`, `rdp_`, `yeom_`, ...) or that it is an estimate (`empirical_`). Each docstring says
whether the number is a certified bound, exact, or an estimate. Searched and inverted values are
rounded to the safe side and checked again; closed forms are exact to a few units in the last place.

| have | get |
|---|---|
| ε, δ | advantage, precision, belief, deletion capacity; all else by `EpsilonDelta(ε, δ).curve()` |
| a target advantage, belief, precision | the largest ε, the largest prior |
| noise and steps (all records in every step) | μ, advantage, ε, δ, RDP; and back, to the noise |
| an RDP curve | ε, and the belief that is exceeded with a stated probability |
| β* | TPR at FPR, success with many values, the least ε |
| attacks that were run | ε', without confidence |
"""

from __future__ import annotations

from dprime.bounds.bayes_security import (
    epsilon_from_bayes_security,
    success_from_bayes_security,
    tpr_from_bayes_security,
)
from dprime.bounds.classical import (
    classical_advantage_from_epsilon,
    classical_epsilon_from_advantage,
    classical_epsilon_from_noise_multiplier,
    classical_noise_multiplier_from_epsilon,
)
from dprime.bounds.empirical import (
    empirical_epsilon_from_advantage,
    empirical_epsilon_from_belief,
    empirical_epsilon_from_sensitivities,
    epsilon_from_error_rates,
    local_sensitivity_add_remove,
    local_sensitivity_replace,
)
from dprime.bounds.gaussian_noise import (
    advantage_from_mu,
    advantage_from_noise_multiplier,
    delta_from_mu,
    epsilon_from_mu,
    epsilon_from_noise_multiplier,
    mu_from_advantage,
    mu_from_epsilon,
    mu_from_noise_multiplier,
    noise_multiplier_from_epsilon,
    noise_multiplier_from_mu,
)
from dprime.bounds.identifiability import (
    belief_exceeds_from_epsilon,
    belief_from_epsilon,
    epsilon_from_belief,
)
from dprime.bounds.literature import (
    erlingsson_advantage_from_epsilon,
    mahloujifar_precision_from_epsilon,
    mosaicrown_advantage_from_epsilon,
    sablayrolles_precision_from_epsilon,
    yeom_advantage_from_epsilon,
)
from dprime.bounds.membership import (
    DeletionCapacity,
    advantage_from_epsilon,
    deletion_capacity,
    epsilon_from_advantage,
    epsilon_from_precision,
    generalisation_gap_from_advantage,
    negative_accuracy_from_epsilon,
    precision_from_epsilon,
    prior_from_precision,
)
from dprime.bounds.rdp import (
    RdpEpsilon,
    belief_from_rdp,
    epsilon_from_rdp,
    rdp_composition,
    rdp_epsilon_from_noise_multiplier,
    rdp_from_noise_multiplier,
    rdp_noise_multiplier_from_epsilon,
)

__all__ = [
    "DeletionCapacity",
    "RdpEpsilon",
    "advantage_from_epsilon",
    "advantage_from_mu",
    "advantage_from_noise_multiplier",
    "belief_exceeds_from_epsilon",
    "belief_from_epsilon",
    "belief_from_rdp",
    "classical_advantage_from_epsilon",
    "classical_epsilon_from_advantage",
    "classical_epsilon_from_noise_multiplier",
    "classical_noise_multiplier_from_epsilon",
    "deletion_capacity",
    "delta_from_mu",
    "empirical_epsilon_from_advantage",
    "empirical_epsilon_from_belief",
    "empirical_epsilon_from_sensitivities",
    "epsilon_from_advantage",
    "epsilon_from_bayes_security",
    "epsilon_from_belief",
    "epsilon_from_error_rates",
    "epsilon_from_mu",
    "epsilon_from_noise_multiplier",
    "epsilon_from_precision",
    "epsilon_from_rdp",
    "erlingsson_advantage_from_epsilon",
    "generalisation_gap_from_advantage",
    "local_sensitivity_add_remove",
    "local_sensitivity_replace",
    "mahloujifar_precision_from_epsilon",
    "mosaicrown_advantage_from_epsilon",
    "mu_from_advantage",
    "mu_from_epsilon",
    "mu_from_noise_multiplier",
    "negative_accuracy_from_epsilon",
    "noise_multiplier_from_epsilon",
    "noise_multiplier_from_mu",
    "precision_from_epsilon",
    "prior_from_precision",
    "rdp_composition",
    "rdp_epsilon_from_noise_multiplier",
    "rdp_from_noise_multiplier",
    "rdp_noise_multiplier_from_epsilon",
    "sablayrolles_precision_from_epsilon",
    "success_from_bayes_security",
    "tpr_from_bayes_security",
    "yeom_advantage_from_epsilon",
]
