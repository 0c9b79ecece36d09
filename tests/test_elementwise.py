import numpy as np
import pytest

import dprime
from dprime import TradeOff
from dprime.shapes import GaussianShape
from refusals import refuses

CURVES = {
    "Gaussian": TradeOff.gaussian(0.7),
    "sampled": dprime.DPSGD(1.0, 0.01, 100).curve(),
    "a leak": dprime.EpsilonDelta(1.0, 0.1, steps=2).curve(),
    "capped": dprime.estimates.capped(
        dprime.estimates.central_limit(1.0, 0.01, 100), dprime.DPSGD(1.0, 0.01, 100).curve()
    ),
    "lower": dprime.LowerCurve(GaussianShape(0.3), confidence=0.95, method="band"),
}
READINGS = (
    "tpr", "fpr", "precision", "negative_accuracy", "success", "secret_success", "delta", "epsilon",
    "reconstruction_success", "belief_exceeds", "belief_exceeds_in_worst_pair", "belief",
)  # fmt: skip
RATES = np.array([[1e-300, 1e-9, 1e-5], [0.01, 0.5, 1 - 1e-16]])


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("reading", READINGS)
def test_each_entry_is_what_a_number_gives_bit_for_bit(name, reading):
    read = getattr(CURVES[name], reading)
    try:
        each = [[read(float(rate)) for rate in row] for row in RATES]
    except dprime.InputError:  # no lower bound has it
        with pytest.raises(dprime.InputError):
            read(RATES)
        return
    assert all(type(value) is float for row in each for value in row)
    assert np.array(each).tobytes() == read(RATES).tobytes()


def test_arrays_are_broadcast_and_keep_their_shape():
    curve = CURVES["sampled"]
    both = curve.precision(prior=RATES[1][:, None], min_tpr=[0.01, 0.1])
    assert both.shape == (3, 2)
    assert both[0, 1] == curve.precision(0.01, 0.1)
    assert curve.belief(RATES[1], exceeded=0.01).shape == (3,)
    assert curve.tpr(np.zeros((0, 2))).shape == (0, 2)
    assert type(curve.epsilon(np.float64(1e-5))) is float


test_entries_are_checked_alone = refuses(
    {
        "fpr be between 0 and 1": lambda: CURVES["Gaussian"].tpr([0.1, 1.5]),
        "prior be a number": lambda: CURVES["Gaussian"].success(np.array([True, False])),
    }
)
