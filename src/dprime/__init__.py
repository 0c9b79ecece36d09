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

from dprime.choose import choose
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
from dprime.privacy_loss import NotCertifiableError

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
    "Laplace",
    "LowerCurve",
    "Mechanism",
    "NotCertifiableError",
    "PoolSampled",
    "RandomizedResponse",
    "TradeOff",
    "best",
    "choose",
    "from_dp_event",
    "from_opacus_history",
]

__version__ = "0.6.0"
