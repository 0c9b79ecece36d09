"""dprime: what differential privacy really buys.

Describe what was run, and read every risk off its certified trade-off curve:

>>> import dprime
>>> m = dprime.DPSGD(noise_multiplier=1.1, sample_rate=256 / 60_000, steps=14_062)
>>> round(m.curve().advantage(), 2)
0.22

Or say what is acceptable, and get the parameter that keeps it:

>>> m = dprime.choose(dprime.DPSGD(sample_rate=0.01, steps=2000), advantage=0.1)
>>> round(m.noise_multiplier, 1)
1.9
"""

from typing import TYPE_CHECKING

from dprime import _lazy

if TYPE_CHECKING:
    from dprime.curve import Estimate, LowerCurve, TradeOff, best
    from dprime.guarantees import (
        GDP,
        PLD,
        RDP,
        ZCDP,
        EpsilonDelta,
        EpsilonDeltaProfile,
        Laplace,
        RandomizedResponse,
    )
    from dprime.interop import from_dp_event, from_opacus_history
    from dprime.mechanisms import DPSGD, Composition, Gaussian, Mechanism, PoolSampled
    from dprime.metrics import MetricValue, Reading, profile, risk_profile
    from dprime.privacy_loss import NotCertifiableError
    from dprime.solve import choose
    from dprime.validate import InputError

__all__ = [
    "DPSGD",
    "GDP",
    "PLD",
    "RDP",
    "ZCDP",
    "Composition",
    "EpsilonDelta",
    "EpsilonDeltaProfile",
    "Estimate",
    "Gaussian",
    "InputError",
    "Laplace",
    "LowerCurve",
    "Mechanism",
    "MetricValue",
    "NotCertifiableError",
    "PoolSampled",
    "RandomizedResponse",
    "Reading",
    "TradeOff",
    "best",
    "choose",
    "from_dp_event",
    "from_opacus_history",
    "profile",
    "risk_profile",
]

__version__ = "0.15.0"

MODULE_NAMES = {
    "curve": ("Estimate", "LowerCurve", "TradeOff", "best"),
    "guarantees": (
        "GDP", "PLD", "RDP", "ZCDP", "EpsilonDelta", "EpsilonDeltaProfile", "Laplace",
        "RandomizedResponse",
    ),
    "interop": ("from_dp_event", "from_opacus_history"),
    "mechanisms": ("DPSGD", "Composition", "Gaussian", "Mechanism", "PoolSampled"),
    "metrics": ("MetricValue", "Reading", "profile", "risk_profile"),
    "privacy_loss": ("NotCertifiableError",),
    "solve": ("choose",),
    "validate": ("InputError",),
}  # fmt: skip
PLACES = {name: module for module, names in MODULE_NAMES.items() for name in names}
"""The modules where the names are: loaded, and SciPy with them, when one is first asked for."""

MODULES = (
    "accountant", "composition", "curve", "estimates", "guarantees", "interop", "mechanisms",
    "metrics", "parameters", "privacy_loss", "shapes", "solve", "text", "validate",
)  # fmt: skip
"""Modules that need no import of their own: `dprime.estimates` is there after `import dprime`."""

if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = _lazy.lazy(__name__, PLACES, modules=MODULES)


def __dir__() -> list[str]:
    return sorted(("__doc__", "__version__", *PLACES, *MODULES))
