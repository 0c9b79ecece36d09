import json
import math

import pytest

from dprime import DPSGD, Composition
from dprime.mechanisms import Gaussian, Mechanism
from dprime.metrics import risk_profile
from dprime.monitor.ledger import (
    Accumulated,
    EmptyBatches,
    Ledger,
    NoGuarantee,
    StepRecord,
)
from dprime.monitor.problems import Problem
from dprime.monitor.tails import NoiseTails


def shuffled(noise, passing, **more):
    return StepRecord(noise, 0.25, "shuffle", pass_index=passing, **more)


def test_nothing_was_spent():
    assert Ledger().mechanism() is None
    assert Ledger().mechanism(Gaussian(10.0)) == Gaussian(10.0)


def test_equal_steps_are_one_entry_and_one_mechanism():
    ledger = Ledger()
    for noise in (1.0, 1.0, 2.0, 1.0):
        ledger.add(StepRecord(noise, 0.1))
    assert [count for _, count in ledger.entries] == [2, 1, 1]
    assert ledger.mechanism() == Composition(DPSGD(1.0, 0.1, 3), DPSGD(2.0, 0.1, 1))
    assert ledger.mechanism(Gaussian(9.0)).mechanisms[0] == Gaussian(9.0)


def test_the_first_steps_again():
    ledger = Ledger([(StepRecord(1.0, 0.1), 5), (StepRecord(2.0, 0.1), 5)])
    assert ledger.first(7).entries == ((StepRecord(1.0, 0.1), 5), (StepRecord(2.0, 0.1), 2))
    assert ledger.first(0).mechanism() is None


def test_the_state_comes_back():
    ledger = Ledger(
        [(StepRecord(1.0, 0.1), 5), (shuffled(2.0, 3, problem="why", nominal_noise=1.5), 2)]
    )
    again = Ledger.from_state(ledger.state_dict())
    assert (again.entries, again.steps, again.batches) == (ledger.entries, 7, 7)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (StepRecord(0.0, 0.1), Problem.NO_NOISE),
        (StepRecord(1e-4, 0.1), Problem.LITTLE_NOISE),
        (StepRecord(1.0, 0.1, problem="why"), "why"),
    ],
)
def test_one_step_without_protection_leaves_none(bad, reason):
    found = Ledger([(StepRecord(1.0, 0.1), 5), (bad, 1)]).mechanism()
    assert found == NoGuarantee(6, reason)
    curve = Composition(DPSGD(1.0, 0.1, 10), found).curve()
    assert (curve.advantage(), curve.epsilon(1e-5)) == (1.0, math.inf)
    assert [answer.value for answer in risk_profile(curve)][:2] == [1.0, 0.0]


def test_batches_that_are_added_up_are_not_one_larger_batch():
    step = StepRecord(1.0, 0.02, batches=3)
    found = Ledger([(step, 50)]).mechanism()
    assert found == Accumulated(DPSGD(1.0, 0.02, 50), 3)
    group = DPSGD(1.0, 0.02, 50).curve(group_size=3)
    assert found.curve().epsilon(1e-5) == group.epsilon(1e-5)
    assert found.curve().epsilon(1e-5) > DPSGD(1.0, 0.06, 50).curve().epsilon(1e-5)


@pytest.mark.parametrize("noises", [(2.0, 1.0), (1.0, 2.0)])
def test_a_pass_costs_its_least_noise(noises):
    steps = [(shuffled(noise, 1), 2) for noise in noises]
    ledger = Ledger([*steps, (shuffled(2.0, 2), 4)])
    curve = ledger.mechanism().curve("replace")
    assert curve.d_prime() == pytest.approx(math.sqrt(4.0 / 1.0 + 4.0 / 4.0), rel=1e-9)


@pytest.mark.parametrize("rate", [0.25, 0.3, 64 / 1000])
def test_passes_of_several_noises_are_counted_once(rate):
    """The ledger saw where each pass ends, so no phase may begin inside one."""
    noises = [4.0, 2.0, 4.0, 3.0, 2.0]
    steps = [(StepRecord(z, rate, "shuffle", pass_index=i), 1 + i) for i, z in enumerate(noises)]
    curve = Ledger(steps).mechanism().curve("replace")
    assert curve.d_prime() ** 2 == pytest.approx(sum(4 / z**2 for z in noises), rel=1e-9)


def test_passes_that_were_left_early_count_in_full():
    ledger = Ledger([(shuffled(2.0, number), 1) for number in range(5)])
    assert ledger.steps == 5  # one epoch and a quarter, by the steps
    assert ledger.mechanism() == DPSGD(2.0, 0.25, 17, sampling="shuffle")
    assert ledger.mechanism().curve("replace").d_prime() == pytest.approx(math.sqrt(5.0))


@pytest.mark.parametrize(("begun", "more", "passes"), [(4, 4, 2), (2, 2, 1), (2, 3, 2), (2, 11, 4)])
def test_a_forecast_goes_on_where_the_pass_is(begun, more, passes):
    now = shuffled(2.0, 1)
    future = Ledger([(now, begun)]).extended(now, more, batches_in_epoch=4)
    assert future.steps == begun + more
    curve = future.mechanism().curve("replace")
    assert curve.d_prime() == pytest.approx(math.sqrt(passes))


def test_a_forecast_after_a_pass_that_was_left():
    now = shuffled(2.0, 1)
    future = Ledger([(now, 2)]).extended(now, 4, batches_in_epoch=2, left=True)
    assert future.steps == 6
    assert future.mechanism().curve("replace").d_prime() == pytest.approx(math.sqrt(3.0))


def test_how_long_passes_were():
    steps = [(shuffled(2.0, 1), 2), (shuffled(1.0, 1), 2), (shuffled(2.0, 2, batches=2), 1)]
    ledger = Ledger([*steps, (shuffled(2.0, 3), 1)])
    assert ledger.usual_pass(but=3) == 3
    assert ledger.usual_pass() == 2
    assert Ledger().usual_pass() is None


GOOD = [1.0, 0.0625, "poisson", 1, 0, "", None, 2, 60, 500]


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (0, -1.0, "noise_multiplier"),
        (0, math.nan, "noise_multiplier"),
        (0, "1", "noise_multiplier"),
        (1, 0.0, "sample_rate"),
        (1, 1.5, "sample_rate"),
        (2, "Poisson", "sampling must be one that a monitor writes, but it is 'Poisson'"),
        (2, "unknown", "sampling"),
        (3, 0, "batches"),
        (3, 1.5, "batches"),
        (4, -1, "pass_index"),
        (5, None, "problem"),
        (6, -2.0, "nominal_noise"),
        (7, -1, "left_out"),
        (8, -1, "records"),
        (9, -3, "number of steps must be 1 or more, but it is -3"),
        (9, True, "number of steps"),
    ],
)
def test_a_damaged_state_is_refused(place, value, sentence):
    row = [*GOOD[:place], value, *GOOD[place + 1 :]]
    with pytest.raises(ValueError, match=f"the ledger's {sentence}"):
        Ledger.from_state([GOOD, row])


def test_a_row_of_another_length_is_refused():
    for row in (GOOD[:-1], [*GOOD[:-3], 500]):
        with pytest.raises(ValueError, match="row must be one of 10 values"):
            Ledger.from_state([row])


def test_unknown_sampling_never_vanishes():
    found = Ledger([(StepRecord(1.0, 0.1), 5), (StepRecord(1.0, 0.1, "Poisson"), 500)]).mechanism()
    assert found == NoGuarantee(505, "the sampling of the batches is not known")
    known = Ledger([(StepRecord(1.0, 0.1, "unknown", problem="why"), 5)])
    assert Ledger.from_state(known.state_dict()).entries == known.entries


def test_a_forecast_of_poisson_batches_only_adds_steps():
    now = StepRecord(1.0, 0.1)
    assert Ledger([(now, 3)]).extended(now, 4, 10).mechanism() == DPSGD(1.0, 0.1, 7)


def test_many_noises_are_rounded_to_the_safe_side():
    noises = [1.0 + 0.001 * i for i in range(200)]
    ledger = Ledger([(StepRecord(noise, 0.01), 5) for noise in noises])
    found = ledger.mechanism()
    assert len(found.mechanisms) < 50
    exact = Composition(*(DPSGD(noise, 0.01, 5) for noise in noises)).curve().advantage()
    assert exact <= found.curve().advantage() <= 1.006 * exact
    assert all(part.noise_multiplier < noises[-1] for part in found.mechanisms)


@pytest.mark.parametrize(
    "part",
    [
        NoGuarantee(3, "no noise was added"),
        Accumulated(DPSGD(1.0, 0.01, 100), batches=3),
        EmptyBatches(200, ((0.01, 100), (0.02, 5))),
        NoiseTails(5.768, 1000, ((1.0, 0.01, 50, 1),)),
    ],
    ids=lambda part: type(part).__name__,
)
def test_what_only_a_monitor_sees_is_written_down_and_read_back(part):
    whole = Composition(DPSGD(1.0, 0.01, 50), part)
    assert Mechanism.from_dict(json.loads(json.dumps(whole.to_dict()))) == whole
