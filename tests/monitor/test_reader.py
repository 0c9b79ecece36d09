"""What a step spent where the loop is not the plain one, and steps that nothing covers."""

import re
import warnings

import opacus
import pytest
import torch
from torch import nn
from torch.utils.data import RandomSampler, default_collate

from dprime import DPSGD, Composition
from dprime.mechanisms import Gaussian
from dprime.monitor import PrivacyWarning
from dprime.monitor.ledger import Accumulated, NoGuarantee
from dprime.monitor.problems import Problem
from private_training import Maker, Private
from watching import (
    ADAPTIVE,
    RATE,
    certified,
    reason,
    refused,
    trained,
    values,
    watch,
    watch_shuffled,
)

since_1_6 = pytest.mark.skipif(opacus.__version__ < "1.6", reason="is so since Opacus 1.6")


class TestNotPoisson:
    @pytest.mark.parametrize("left", [False, True])
    def test_a_pass_is_one_step_of_the_gaussian(self, private, left):
        """Also one that is left early."""
        monitor = watch_shuffled(made := private(poisson_sampling=False))
        for _ in range(2):
            made.step(*next(iter(made.loader))) if left else made.train()
        assert monitor.adjacency == "replace"
        expected = certified(Gaussian(1.0, steps=2)).curve("replace").advantage()
        assert monitor.curve().advantage() == pytest.approx(expected)
        if not left:
            assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 12, sampling="shuffle")
            assert values(monitor.risk())["epsilon"] > made.engine.get_epsilon(1e-3)

    def test_batches_that_are_added_up(self, private):
        monitor = watch_shuffled(made := private(poisson_sampling=False))
        added_up(made, 2)
        assert monitor.ledger.mechanism() == DPSGD(1.0, 2 * RATE, 3, sampling="shuffle")
        assert monitor.epochs == 1
        assert monitor.warnings[1:] == []

    def test_two_loops_at_once_are_not_covered(self, private):
        monitor = watch_shuffled(made := private(poisson_sampling=False))
        made.step(*next(iter(made.loader)))
        for batch in made.loader:
            _ = list(made.loader)  # looking at all records between two steps is no loop of steps
            made.step(*batch)
        assert not reason(monitor)
        both = (batch for pair in zip(made.loader, made.loader, strict=True) for batch in pair)
        refused(monitor, lambda: made.train(loader=both), Problem.AT_ONCE)

    def test_adding_a_record_is_refused(self, private):
        with pytest.raises(ValueError, match="adjacency must be 'replace' or 'zero-out' without"):
            watch(private(poisson_sampling=False), adjacency="add-remove")

    def test_sampling_with_repetition_is_not_private(self, private):
        sampler = RandomSampler(range(60), replacement=True)
        made = private(loader=private.loader(sampler=sampler), poisson_sampling=False)
        with pytest.warns(PrivacyWarning, match=Problem.UNSAMPLED):
            monitor = watch(made, epochs=2)
        assert values(monitor.forecast())["advantage"] == 1.0
        made.train()
        assert monitor.curve().advantage() == 1.0

    @since_1_6
    def test_adaptive_clipping_is_accounted_by_its_noise(self, private):
        monitor = watch_shuffled(made := private(**ADAPTIVE, poisson_sampling=False))
        norms = []
        for records, labels in made.loader:
            made.step(records, labels)
            norms.append(float(made.optimizer.max_grad_norm))
        assert len(set(norms)) == 6
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 6, sampling="shuffle")
        assert monitor.warnings[1:] == []


def added_up(made, batches):
    """A pass in which each step adds up several batches; those left over stay."""
    for number, (records, labels) in enumerate(made.loader, start=1):
        made.criterion(made.model(records), labels).backward()
        if number % batches == 0:
            made.optimizer.step()
            made.optimizer.zero_grad()


class TestPoissonAddedUp:
    def test_a_record_may_be_there_twice(self, private):
        made = private()
        made.model.allow_grad_accumulation()
        monitor = watch(made)
        added_up(made, 2)
        assert monitor.ledger.mechanism() == Accumulated(DPSGD(1.0, RATE, 3), 2)
        assert values(monitor.risk())["epsilon"] > DPSGD(1.0, 2 * RATE, 3).curve().epsilon(1e-3)
        assert "2 batches added up in each step" in str(monitor)
        assert monitor.warnings == []

    def test_replacing_a_record_is_not_covered_then(self, private):
        made = private()
        made.model.allow_grad_accumulation()
        refused(watch(made, adjacency="replace"), lambda: added_up(made, 2), Problem.ADDED_UP)


class TestMistakes:
    def test_no_noise(self, private):
        monitor = watch(made := private(noise=0.0))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always", PrivacyWarning)
            made.train(2)
        (own,) = (each for each in seen if each.category is PrivacyWarning)  # each warns once
        assert str(own.message) == Problem.NO_NOISE.warning
        assert own.filename.endswith("private_training.py")  # the user's line
        assert monitor.curve().advantage() == 1.0
        assert "not private, no noise was added" in monitor.line()
        assert "Not private: no noise was added." in str(monitor)

    def test_noise_that_was_replaced_before(self, private):
        made = private()
        made.optimizer.add_noise = made.optimizer.add_noise.__func__.__get__(made.optimizer)
        watch(made).detach()  # still Opacus' own

        def own():
            type(made.optimizer).add_noise(made.optimizer)

        made.optimizer.add_noise = own
        refused(watch(made), made.train, Problem.REPLACED)

    def test_a_rate_that_changes_is_read_again(self, private):
        made, monitor = trained(private())
        made.loader.batch_sampler.sample_rate = 0.5
        with pytest.warns(PrivacyWarning, match="changed by hand and accepted"):
            monitor.accept_changes()
        with pytest.warns(PrivacyWarning, match="has recorded other noise multipliers or rates"):
            made.train()
        assert monitor.ledger.mechanism() == Composition(DPSGD(1.0, RATE, 6), DPSGD(1.0, 0.5, 6))

    def test_a_layer_that_mixes_records_comes_in_later(self, private):
        made = private(net=nn.Sequential(nn.Linear(4, 3), nn.Identity(), nn.Linear(3, 2)))
        monitor = watch(made)
        made.train()
        assert monitor.warnings == []
        made.model._module[1] = nn.BatchNorm1d(3, affine=False).eval()
        with pytest.warns(PrivacyWarning, match="changed by hand and accepted"):
            monitor.accept_changes()  # a new layer brings buffers
        made.train()  # its statistics are fixed
        assert len(monitor.warnings) == 1
        made.model._module[1].train()
        many = (batch for batch in list(made.loader) if len(batch[0]) > 1)
        refused(monitor, lambda: made.train(loader=many), Problem.MIXED)

    def test_weights_that_another_optimizer_trains(self, private):
        made = private(trained=lambda net: net[0].parameters())
        other = torch.optim.SGD(made.model._module[2].parameters(), lr=0.1)
        with pytest.warns(PrivacyWarning, match=r"2 parameters .* \(2.weight, 2.bias\)"):
            monitor = watch(made)

        def train():
            for records, labels in made.loader:
                made.model.zero_grad()
                made.step(records, labels)

        train()
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 6)
        refused(monitor, other.step, Problem.OUTSIDE)
        assert monitor.ledger.mechanism() == NoGuarantee(7, Problem.OUTSIDE)
        train()
        assert len(monitor.warnings) == 2

    def test_the_optimizer_under_the_private_one_steps_by_itself(self, private):
        made, monitor = trained(private())
        records, labels = next(iter(made.loader))
        made.optimizer.zero_grad()
        made.criterion(made.model(records), labels).backward()
        refused(monitor, made.optimizer.original_optimizer.step, Problem.OUTSIDE)
        made.optimizer.step()
        assert len(monitor.warnings) == 1

    def test_layers_that_thaw_and_are_trained_elsewhere(self, private):
        net = private.network()
        net[0].requires_grad_(False)
        monitor = watch(made := private(net=net, trained=lambda net: net[2].parameters()))
        with torch.no_grad():
            net[0].weight.add_(0.1)  # new weights while they are frozen, as from a checkpoint
        made.train()
        assert monitor.warnings == []
        net[0].weight.requires_grad_(True)
        with torch.no_grad():
            net[0].weight.add_(0.1)
        refused(monitor, lambda: made.step(*next(iter(made.loader))), Problem.MOVED)

    def test_other_models_may_be_trained_beside(self, private):
        made, other = private(), nn.Linear(4, 2)
        monitor = watch(made)
        descent = torch.optim.SGD(other.parameters(), lr=0.1)
        for records, labels in made.loader:
            made.step(records, labels)
            nn.functional.cross_entropy(other(records), labels).backward()
            descent.step()
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 6)
        assert monitor.warnings == []

    @pytest.mark.parametrize(
        ("hook", "sentence"),
        [
            (lambda _: None, "has recorded 0 steps"),
            (
                lambda accountant: accountant.get_optimizer_hook_fn(0.01),
                "has recorded the sample rate 0.01, which the data loader did not have",
            ),
            (
                lambda told: lambda _: told.step(noise_multiplier=9.0, sample_rate=RATE),
                "has recorded other noise multipliers",
            ),
        ],
        ids=["frozen", "rate", "noise"],
    )
    def test_an_accountant_that_is_wrong(self, private, hook, sentence):
        made = private()
        made.optimizer.attach_step_hook(hook(made.engine.accountant))
        monitor = watch(made)
        with pytest.warns(PrivacyWarning, match=re.escape(sentence)):
            made.train()
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 6)

    def test_a_delta_that_gives_records_away(self, private):
        with pytest.warns(PrivacyWarning, match="δ = 0.05 is above 1/60"):
            watch(private(), conditions={"delta": 0.05})


def skipped(made, batches, passes=1):
    """Steps that each add up several batches, by telling the optimizer to skip by hand."""
    number = 0
    for _ in range(passes):
        for records, labels in made.loader:
            number += 1
            made.optimizer.signal_skip_step(do_skip=number % batches != 0)
            made.step(records, labels)


def without_noise(made):
    made.train()
    made.optimizer.add_noise = lambda: [
        setattr(p, "grad", p.summed_grad.view_as(p)) for p in made.optimizer.params
    ]
    made.train()


def changed_gradients(change):
    def act(made):
        made.train()
        records, labels = next(iter(made.loader))
        made.criterion(made.model(records), labels).backward()
        change(next(made.model.parameters()))
        made.optimizer.step()

    return act


def longer_sum(made):
    batches = iter(made.loader)
    made.optimizer.signal_skip_step(do_skip=True)
    made.optimizer.signal_skip_step(do_skip=False)
    made.step(*next(batches))
    for p in made.optimizer.params:
        p.summed_grad.mul_(1000.0)
    made.step(*next(batches))


def two_passes(made):
    added_up(made, 4)  # two batches are left over
    added_up(made, 4)


def on_one_batch(*copies, skipped=False, before=False):
    """Steps on copies of one batch, perhaps when a whole pass is at hand."""

    def act(made):
        _ = list(made.loader) if before else None
        records, labels = next(iter(made.loader))
        for number, times in enumerate(copies):
            if skipped and not number:
                made.optimizer.signal_skip_step(do_skip=True)
                made.optimizer.signal_skip_step(do_skip=False)
            made.step(records.repeat(times, 1), labels.repeat(times))

    return act


GHOST, SHUFFLED = {"mode": "ghost"}, {"poisson_sampling": False}
NOT_COVERED = [
    (Problem.REPLACED, without_noise, {}),
    pytest.param(Problem.FILLED, Private.train, {"rand_on_empty": True}, marks=since_1_6),
    (Problem.ELSEWHERE, lambda made: made.train(loader=Maker.loader()), {}),
    (Problem.CHANGED, changed_gradients(lambda p: p.grad.mul_(10.0)), GHOST),
    (Problem.CHANGED, changed_gradients(lambda p: setattr(p, "grad", 10.0 * p.grad)), GHOST),
    (Problem.TOO_LONG, longer_sum, {}),
    (
        Problem.HIDDEN,
        lambda made: vars(made.optimizer).update(_adjusted_noise_multiplier=0.01) or made.train(),
        GHOST,
    ),
    (Problem.TWO_PASSES, two_passes, SHUFFLED),
    (Problem.TWO_PASSES, lambda made: skipped(made, 4, passes=2), SHUFFLED),
    (Problem.ELSEWHERE, on_one_batch(1, 1), {}),
    (Problem.MULTIPLIED, on_one_batch(4), {}),
    (Problem.MULTIPLIED, on_one_batch(4, before=True), SHUFFLED),
    (
        Problem.REPEATED, on_one_batch(1, 1, skipped=True, before=True),
        {**SHUFFLED, "loader": Maker.many()},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "act", "options"), NOT_COVERED)
def test_no_guarantee_covers_it(private, problem, act, options):
    made = private(**options)
    monitor = watch(made) if options.get("poisson_sampling", True) else watch_shuffled(made)
    refused(monitor, lambda: act(made), problem)


class TestWhichBatches:
    """The records that were clipped are compared with those that were drawn."""

    @pytest.mark.parametrize(
        ("options", "passes", "expected"),
        [
            ({}, 1, Accumulated(DPSGD(1.0, RATE, 2), 3)),
            (GHOST, 1, Accumulated(DPSGD(1.0, RATE, 2), 3)),
            (SHUFFLED, 2, DPSGD(1.0, 3 * RATE, 4, sampling="shuffle")),
        ],
    )
    def test_batches_that_are_skipped_by_hand_are_added_up(
        self, private, options, passes, expected
    ):
        made = private(**options)
        monitor = watch_shuffled(made) if options is SHUFFLED else watch(made)
        with pytest.warns(PrivacyWarning, match="as if they were made of one"):
            skipped(made, 3, passes)
        assert monitor.ledger.mechanism() == expected

    def test_backward_of_ghost_mode_forgets_the_batch_before(self, private):
        monitor = watch(made := private("ghost"))
        batches = iter(made.loader)
        for _ in range(3):
            records, labels = next(batches)
            made.criterion(made.model(records), labels).backward()
        both = [p.grad.clone() for p in made.model.parameters()]
        refused(monitor, made.optimizer.step, Problem.SKIPPED)
        again = private("ghost")
        again.criterion(again.model(records), labels).backward()
        alone = [p.grad for p in again.model.parameters()]
        assert all(map(torch.allclose, both, alone))

    @pytest.mark.parametrize("workers", [0, 2])
    def test_two_steps_on_a_batch_where_others_are_at_hand(self, private, workers):
        monitor = watch(made := private(loader=private.many(num_workers=workers)))
        if not workers:
            made.model.eval()
            for records, _ in made.loader:
                made.model(records)
            made.model.train()
        records, labels = next(batches := iter(made.loader))
        made.step(records, labels)
        assert monitor.warnings == []
        refused(monitor, lambda: made.step(records.clone(), labels), Problem.REPEATED)
        del batches

    def test_a_list_of_batches_is_good_for_one_epoch(self, private):
        monitor = watch(made := private(loader=private.many()))
        batches = list(made.loader)
        made.train(loader=batches)
        assert monitor.ledger.mechanism() == DPSGD(1.0, made.loader.sample_rate, len(made.loader))
        _ = list(made.loader)
        refused(monitor, lambda: made.train(loader=batches[:1]), Problem.REPEATED)

    def test_records_that_the_collate_function_leaves_out(self, private):
        def sound(items):
            return default_collate([item for item in items if item[0][0] > -1.0] or items[:1])

        monitor = watch(made := private(loader=private.loader(collate_fn=sound)))
        with pytest.warns(PrivacyWarning, match="fewer records than the data loader drew"):
            made.train(3)
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 18)
        assert len(monitor.warnings) == 1
