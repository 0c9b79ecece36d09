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
    from dprime.comparison import compare as compare
    from dprime.curve import Estimate as Estimate
    from dprime.curve import LowerCurve as LowerCurve
    from dprime.curve import TradeOff as TradeOff
    from dprime.curve import best as best
    from dprime.guarantees import GDP as GDP
    from dprime.guarantees import PLD as PLD
    from dprime.guarantees import RDP as RDP
    from dprime.guarantees import ZCDP as ZCDP
    from dprime.guarantees import EpsilonDelta as EpsilonDelta
    from dprime.guarantees import EpsilonDeltaProfile as EpsilonDeltaProfile
    from dprime.guarantees import Laplace as Laplace
    from dprime.guarantees import RandomizedResponse as RandomizedResponse
    from dprime.interop import from_dp_event as from_dp_event
    from dprime.interop import from_opacus as from_opacus
    from dprime.mechanisms import DPSGD as DPSGD
    from dprime.mechanisms import Composition as Composition
    from dprime.mechanisms import Gaussian as Gaussian
    from dprime.mechanisms import Mechanism as Mechanism
    from dprime.mechanisms import PoolSampled as PoolSampled
    from dprime.metrics import MetricValue as MetricValue
    from dprime.metrics import Reading as Reading
    from dprime.metrics import profile as profile
    from dprime.metrics import risk_profile as risk_profile
    from dprime.privacy_loss import NotCertifiableError as NotCertifiableError
    from dprime.solve import choose as choose
    from dprime.table import Table as Table
    from dprime.validate import InputError as InputError

__version__ = "0.19.0"

MODULE_NAMES = {
    "comparison": "compare",
    "curve": "Estimate LowerCurve TradeOff best",
    "guarantees": "GDP PLD RDP ZCDP EpsilonDelta EpsilonDeltaProfile Laplace RandomizedResponse",
    "interop": "from_dp_event from_opacus",
    "mechanisms": "DPSGD Composition Gaussian Mechanism PoolSampled",
    "metrics": "MetricValue Reading profile risk_profile",
    "privacy_loss": "NotCertifiableError",
    "solve": "choose",
    "table": "Table",
    "validate": "InputError",
}
PLACES = {name: module for module, names in MODULE_NAMES.items() for name in names.split()}
"""The modules where the names are: loaded, and SciPy with them, when one is first asked for."""

MODULES = (*MODULE_NAMES, "accountant", "composition", "estimates", "parameters", "shapes", "text")
"""Modules that need no import of their own: `dprime.estimates` is there after `import dprime`."""

__all__ = list(sorted(PLACES, key=lambda name: (not name.isupper(), name)))  # noqa: C413

if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__, __dir__ = _lazy.lazy(__name__, PLACES, modules=MODULES)
