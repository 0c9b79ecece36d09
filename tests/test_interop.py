import math

import dp_accounting as dp
import pytest

from dprime import DPSGD, Composition, Gaussian, Laplace, from_dp_event, from_opacus_history


def test_opacus_history_merges_equal_phases():
    history = [(1.0, 0.01, 300), (1.5, 0.01, 100), (1.0, 0.01, 700)]
    assert from_opacus_history(history, public_constants=True) == Composition(
        DPSGD(1.0, 0.01, 1000), DPSGD(1.5, 0.01, 100)
    )
    sized = from_opacus_history([(1.0, 0.01, 300)])
    assert sized == DPSGD(1.0, 0.01, 300, public_size=True)
    assert sized.default_adjacency == "zero-out"  # Opacus takes the rate from the number of records
    with pytest.raises(ValueError, match="tells n records from n - 1"):
        sized.curve("add-remove")


@pytest.mark.parametrize(
    "history", [[], [(1.0, 0.01)], [1.0], [(0.0, 0.01, 3)], [("a", 0.01, 3)], [(1.0, 0.01, 0.5)]]
)
def test_bad_history(history):
    with pytest.raises(ValueError, match="must"):
        from_opacus_history(history)


def sampled(noise=1.0, rate=0.01):
    return dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(noise))


def test_events():
    event = dp.ComposedDpEvent(
        [
            dp.SelfComposedDpEvent(sampled(), 200),
            dp.GaussianDpEvent(5.0),
            dp.NoOpDpEvent(),
            dp.SelfComposedDpEvent(dp.LaplaceDpEvent(20.0), 3),
        ]
    )
    assert from_dp_event(event) == Composition(
        DPSGD(1.0, 0.01, 200), Gaussian(5.0, 1), Laplace(20.0, 3)
    )


def test_an_event_has_the_risk_that_its_own_library_sees():
    event = dp.SelfComposedDpEvent(sampled(1.0, 0.01), 500)
    theirs = dp.pld.PLDAccountant().compose(event).get_epsilon(1e-5)
    ours = from_dp_event(event).curve().epsilon(1e-5)
    assert ours == pytest.approx(theirs, rel=2e-3)


def test_sampling_without_replacement_is_not_taken_for_poisson():
    event = dp.SampledWithoutReplacementDpEvent(1000, 10, dp.GaussianDpEvent(1.0))
    mechanism = from_dp_event(dp.SelfComposedDpEvent(event, 50))
    assert mechanism == DPSGD(1.0, 0.01, 50, sampling="fixed-size")
    with pytest.raises(ValueError, match="Poisson analysis does not cover"):
        mechanism.curve()


def test_stated_events_take_their_adjacency():
    event = dp.ComposedDpEvent([dp.ZCDpEvent(0.1, 0.01), dp.LaplaceDpEvent(2.0)])
    assert from_dp_event(event, adjacency="replace").default_adjacency == "replace"
    assert from_dp_event(event).curve().advantage() > 0


def test_randomized_response_has_the_epsilon_of_its_event():
    event = dp.RandomizedResponseDpEvent(0.4, 3)
    theirs = dp.pld.PLDAccountant(dp.NeighboringRelation.REPLACE_ONE)
    ours = from_dp_event(event, adjacency="replace")
    truth = 0.6 + 0.4 / 3
    assert ours.curve().epsilon(1e-12) == pytest.approx(math.log(truth / (0.4 / 3)), rel=1e-9)
    assert theirs.compose(event).get_epsilon(1e-9) == pytest.approx(ours.epsilon, rel=1e-3)


@pytest.mark.parametrize(
    "event", [dp.RandomizedResponseDpEvent(1, 3), dp.RandomizedResponseDpEvent(0, 1)]
)
def test_an_answer_that_depends_on_nobody_costs_nothing(event):
    whole = dp.ComposedDpEvent([event, dp.GaussianDpEvent(5.0)])
    assert from_dp_event(whole) == Gaussian(5.0, 1)


def test_replacing_a_record_moves_every_sum_twice_as_far():
    """An event's noise is relative to the norm of one record, whatever the noise's law."""
    for event, scale in ((dp.LaplaceDpEvent(4.0), 2.0), (dp.GaussianDpEvent(4.0), 2.0)):
        replaced = from_dp_event(event, adjacency="replace").curve("replace")
        with_half = type(event)(event.noise_multiplier / scale)
        assert replaced.advantage() == from_dp_event(with_half).curve().advantage()


NOTHING_HIDES = dp.RandomizedResponseDpEvent(0, 3)


@pytest.mark.parametrize(
    ("event", "adjacency", "words"),
    [
        (NOTHING_HIDES, "replace", "noise_parameter must be above 0"),
        (NOTHING_HIDES, "add-remove", "adjacency must be 'replace' for ran"),
        (dp.NoOpDpEvent(), "replace", "event must release something"),
        (dp.UnsupportedDpEvent(), "replace", "event must be of a covered kind"),
        ("an event", "replace", "event must be of a covered kind, but it is 'str'"),
        (dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(1.0)), "replace", "a Gaussian inside"),
    ],
)
def test_events_that_are_not_covered(event, adjacency, words):
    with pytest.raises(ValueError, match=words):
        from_dp_event(event, adjacency=adjacency)
