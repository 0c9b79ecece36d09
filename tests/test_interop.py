import math

import dp_accounting as dp
import pytest
import torch
from opacus import PrivacyEngine

from dprime import DPSGD, Composition, Gaussian, from_dp_event, from_opacus
from dprime.guarantees import ZCDP, Laplace
from told import refuses

SAMPLED = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0))
ANSWERED = dp.RandomizedResponseDpEvent(0.4, 3)


def test_opacus_history_merges_equal_phases():
    history = [(1.0, 0.01, 300), (1.5, 0.01, 100), (1.0, 0.01, 700)]
    merged = Composition(DPSGD(1.0, 0.01, 1000), DPSGD(1.5, 0.01, 100))
    assert from_opacus(history, public_constants=True) == merged
    sized = from_opacus([(1.0, 0.01, 300)])
    assert sized == DPSGD(1.0, 0.01, 300, public_size=True)
    assert sized.default_adjacency == "zero-out"  # Opacus takes the rate from the number of records


def drawn(count):
    return dp.SampledWithoutReplacementDpEvent(1000, count, dp.GaussianDpEvent(1.0))


@pytest.mark.filterwarnings("ignore:Secure RNG turned off", "ignore:GDP accounting")
@pytest.mark.parametrize("kind", ["rdp", "gdp", "prv"])
def test_all_that_opacus_keeps_is_read(kind, tmp_path):
    engine = PrivacyEngine(accountant=kind)
    for _ in range(500):
        engine.accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    engine.save_checkpoint(path=tmp_path / "checkpoint.pt", module=torch.nn.Linear(1, 1))
    saved = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    accountant = engine.accountant
    for source in (engine, accountant, accountant.state_dict(), saved, accountant.history):
        assert from_opacus(source) == DPSGD(1.0, 0.01, 500, public_size=True)
    if kind != "gdp":  # which is no upper bound
        proved = from_opacus(engine, public_constants=True).curve().epsilon(1e-5)
        assert 0.5 * engine.get_epsilon(1e-5) < proved <= engine.get_epsilon(1e-5)


@pytest.mark.parametrize(
    ("event", "mechanism"),
    [
        (dp.SelfComposedDpEvent(SAMPLED, 200), DPSGD(1.0, 0.01, 200)),
        (dp.SelfComposedDpEvent(dp.ZCDpEvent(0.125, 0.25), 2), ZCDP(0.25, 0.5)),
        (dp.SelfComposedDpEvent(drawn(10), 50), DPSGD(1.0, 0.01, 50, sampling="fixed-size")),
        (
            dp.ComposedDpEvent([
                dp.GaussianDpEvent(5.0), dp.NoOpDpEvent(),
                dp.SelfComposedDpEvent(dp.LaplaceDpEvent(20.0), 3),
            ]),
            Composition(Gaussian(5.0, 1), Laplace(20.0, 3)),
        ),
        # an answer that depends on nobody costs nothing
        (dp.ComposedDpEvent([dp.RandomizedResponseDpEvent(1, 3), dp.GaussianDpEvent(5.0)]),
         Gaussian(5.0, 1)),
        (dp.ComposedDpEvent([dp.RandomizedResponseDpEvent(0, 1), dp.GaussianDpEvent(5.0)]),
         Gaussian(5.0, 1)),
    ],
)  # fmt: skip
def test_events(event, mechanism):
    assert from_dp_event(event) == mechanism


def test_an_event_has_the_risk_that_its_own_library_sees():
    event = dp.SelfComposedDpEvent(SAMPLED, 500)
    theirs = dp.pld.PLDAccountant().compose(event).get_epsilon(1e-5)
    assert from_dp_event(event).curve().epsilon(1e-5) == pytest.approx(theirs, rel=2e-3)
    theirs = dp.pld.PLDAccountant(dp.NeighboringRelation.REPLACE_ONE).compose(ANSWERED)
    ours = from_dp_event(ANSWERED, adjacency="replace")
    assert theirs.get_epsilon(1e-9) == pytest.approx(ours.epsilon, rel=1e-3)
    exact = math.log((0.6 + 0.4 / 3) / (0.4 / 3))
    assert ours.curve().epsilon(1e-12) == pytest.approx(exact, rel=1e-9)


def test_stated_events_take_their_adjacency():
    event = dp.ComposedDpEvent([dp.ZCDpEvent(0.1, 0.01), dp.LaplaceDpEvent(2.0)])
    assert from_dp_event(event, adjacency="replace").default_adjacency == "replace"
    assert from_dp_event(event).curve().advantage() > 0


@pytest.mark.parametrize("kind", [dp.LaplaceDpEvent, dp.GaussianDpEvent])
def test_replacing_a_record_moves_every_sum_twice_as_far(kind):
    """An event's noise is relative to the norm of one record, whatever the noise's law."""
    replaced = from_dp_event(kind(4.0), adjacency="replace").curve("replace")
    assert replaced.advantage() == from_dp_event(kind(2.0)).curve().advantage()


def events(*given):
    return lambda: from_dp_event(*given)


def history(*phases):
    return lambda: from_opacus(list(phases))


NOTHING_HIDES = dp.RandomizedResponseDpEvent(0, 3)
test_what_is_not_covered_is_refused = refuses(
    {
        "history be of at least one": history(),
        "history hold triples": history((1.0, 0.01)),
        "history hold triples (": history(1.0),
        "history be a list": lambda: from_opacus({"mechanism": "prv"}),
        "noise_multiplier be above 0": history((0.0, 0.01, 3)),
        "noise_parameter be above 0": events(NOTHING_HIDES, "replace"),
        "adjacency be 'replace' for ran": events(NOTHING_HIDES),
        "event release something": events(dp.NoOpDpEvent()),
        "event be of a covered kind": events(dp.UnsupportedDpEvent()),
        "event be of a covered": events("an event"),
        "event be a Gaussian inside": events(dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(1.0))),
        "adjacency be 'zero-out' or": lambda: history((1.0, 0.1, 9))().curve("add-remove"),
    }
)
