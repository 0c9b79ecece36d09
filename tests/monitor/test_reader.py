"""What a step spent where the loop is not the plain one, and steps that nothing covers."""

import re
import warnings

import opacus
import pytest
import torch
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, default_collate

from dprime import DPSGD, Composition
from dprime.mechanisms import Gaussian
from dprime.monitor import PrivacyWarning, checks
from dprime.monitor.ledger import Accumulated, EmptyBatches, Ledger, NoGuarantee
from watching import ADAPTIVE, RATE, certified, values, watch, watch_shuffled

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing")

since_1_6 = pytest.mark.skipif(opacus.__version__ < "1.6", reason="is so since Opacus 1.6")


class TestNotPoisson:
    def test_a_pass_is_one_step_of_the_gaussian(self, private):
        made = private(poisson_sampling=False)
        monitor = watch_shuffled(made)
        made.train(2)
        assert monitor.adjacency == "replace"
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 12, sampling="shuffle")
        expected = certified(Gaussian(1.0, steps=2)).curve("replace").advantage()
        assert monitor.curve().advantage() == pytest.approx(expected)
        assert values(monitor.risk())["epsilon"] > made.engine.get_epsilon(1e-3)

    def test_passes_that_are_left_early_count(self, private):
        made = private(poisson_sampling=False)
        monitor = watch_shuffled(made)
        for _ in range(3):
            made.step(*next(iter(made.loader)))
        expected = certified(Gaussian(1.0, steps=3)).curve("replace").advantage()
        assert monitor.curve().advantage() == pytest.approx(expected)

    def test_batches_that_are_added_up(self, private):
        made = private(poisson_sampling=False)
        monitor = watch_shuffled(made)
        added_up(made, 2)
        assert monitor.ledger.mechanism() == DPSGD(1.0, 2 * RATE, 3, sampling="shuffle")
        assert monitor.epochs == 1
        assert monitor.warnings[1:] == []

    def test_batches_of_two_passes_are_not_covered(self, private):
        made = private(poisson_sampling=False)
        monitor = watch_shuffled(made)
        added_up(made, 4)  # two batches are left over
        with pytest.warns(PrivacyWarning, match="batches of two passes"):
            added_up(made, 4)
        assert isinstance(monitor.mechanism(), NoGuarantee)

    def test_two_loops_at_once_are_not_covered(self, private):
        made = private(poisson_sampling=False)
        monitor = watch_shuffled(made)
        made.step(*next(iter(made.loader)))
        for batch in made.loader:
            _ = list(made.loader)  # looking at all records between two steps is no loop of steps
            made.step(*batch)
        assert monitor.curve().advantage() < 1.0
        both = (batch for pair in zip(made.loader, made.loader, strict=True) for batch in pair)
        with pytest.warns(PrivacyWarning, match="Two loops over the data loader"):
            made.train(loader=both)
        assert isinstance(monitor.mechanism(), NoGuarantee)

    def test_adding_a_record_is_refused(self, private):
        with pytest.raises(
            ValueError, match="adjacency must be 'replace' or 'zero-out' without Poisson"
        ):
            watch(private(poisson_sampling=False), adjacency="add-remove")

    def test_sampling_with_repetition_is_not_private(self, private):
        sampler = RandomSampler(range(60), replacement=True)
        made = private(loader=private.loader(sampler=sampler), poisson_sampling=False)
        with pytest.warns(PrivacyWarning, match="How the data loader makes its batches"):
            monitor = watch(made, epochs=2)
        assert values(monitor.forecast())["advantage"] == 1.0
        made.train()
        assert monitor.curve().advantage() == 1.0

    @since_1_6
    def test_adaptive_clipping_is_accounted_by_its_noise(self, private):
        made = private(**ADAPTIVE, poisson_sampling=False)
        monitor = watch_shuffled(made)
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
        monitor = watch(made, adjacency="replace")
        with pytest.warns(PrivacyWarning, match="not certified for replace"):
            added_up(made, 2)
        assert monitor.curve().advantage() == 1.0


class TestMistakes:
    def test_no_noise(self, private):
        made = private(noise=0.0)
        monitor = watch(made)
        with pytest.warns(PrivacyWarning, match="No noise was added"):
            made.train()
        assert monitor.curve().advantage() == 1.0
        assert "not private, no noise was added" in monitor.line()
        assert "Not private: no noise was added." in str(monitor)

    def test_noise_that_was_replaced(self, private):
        made = private()
        monitor = watch(made)
        made.train()
        made.optimizer.add_noise = lambda: [
            setattr(p, "grad", p.summed_grad.view_as(p)) for p in made.optimizer.params
        ]
        with pytest.warns(PrivacyWarning, match="counts as one without noise"):
            made.train()
        assert isinstance(monitor.mechanism(), NoGuarantee)

    def test_noise_that_was_replaced_before(self, private):
        made = private()
        made.optimizer.add_noise = made.optimizer.add_noise.__func__.__get__(made.optimizer)
        watch(made).detach()  # still Opacus' own

        def own():
            type(made.optimizer).add_noise(made.optimizer)

        made.optimizer.add_noise = own
        monitor = watch(made)
        with pytest.warns(PrivacyWarning, match="Opacus' own clipping and noise"):
            made.train()
        assert isinstance(monitor.mechanism(), NoGuarantee)

    @since_1_6
    def test_random_records_in_empty_batches(self, private):
        made = private(rand_on_empty=True)
        monitor = watch(made)
        with pytest.warns(PrivacyWarning, match="leave rand_on_empty out"):
            made.train()
        assert isinstance(monitor.mechanism(), NoGuarantee)

    def test_the_warning_is_at_the_users_line(self, private):
        made = private(noise=0.0)
        watch(made)
        with pytest.warns(PrivacyWarning) as caught:
            made.train()
        assert caught[0].filename.endswith("private_training.py")

    def test_a_loop_over_the_loader_that_is_not_private(self, private):
        made = private()
        monitor = watch(made)
        with pytest.warns(PrivacyWarning, match="loop over the loader that make_private returned"):
            made.train(loader=private.loader())
        assert monitor.curve().advantage() == 1.0

    def test_a_rate_that_changes_is_read_again(self, private):
        made = private()
        monitor = watch(made)
        made.train()
        made.loader.batch_sampler.sample_rate = 0.5
        with pytest.warns(PrivacyWarning, match="changed by hand and accepted"):
            monitor.accept_changes()
        with pytest.warns(PrivacyWarning, match="has recorded other noise multipliers or rates"):
            made.train()
        assert monitor.ledger.mechanism() == Composition(DPSGD(1.0, RATE, 6), DPSGD(1.0, 0.5, 6))

    def test_two_steps_on_one_batch(self, private):
        made = private()
        monitor = watch(made)
        records, labels = next(iter(made.loader))
        made.step(records, labels)
        with pytest.warns(PrivacyWarning, match="one step for each batch"):
            made.step(records, labels)
        assert isinstance(monitor.mechanism(), NoGuarantee)

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
        with pytest.warns(PrivacyWarning, match="mixes the records of a batch"):
            made.train(loader=[batch for batch in made.loader if len(batch[0]) > 1])
        assert isinstance(monitor.mechanism(), NoGuarantee)

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
        with pytest.warns(PrivacyWarning, match="without clipping or noise"):
            other.step()
        assert monitor.ledger.mechanism() == NoGuarantee(
            7, "weights were trained outside the optimizer"
        )
        train()
        assert len(monitor.warnings) == 2

    def test_the_optimizer_under_the_private_one_steps_by_itself(self, private):
        made = private()
        monitor = watch(made)
        made.train()
        records, labels = next(iter(made.loader))
        made.optimizer.zero_grad()
        made.criterion(made.model(records), labels).backward()
        with pytest.warns(PrivacyWarning, match="call only the step of the optimizer"):
            made.optimizer.original_optimizer.step()
        assert isinstance(monitor.mechanism(), NoGuarantee)
        made.optimizer.step()
        assert len(monitor.warnings) == 1

    def test_layers_that_thaw_and_are_trained_elsewhere(self, private):
        net = private.network()
        for p in net[0].parameters():
            p.requires_grad_(False)
        made = private(net=net, trained=lambda net: net[2].parameters())
        monitor = watch(made)
        with torch.no_grad():
            net[0].weight.add_(0.1)  # new weights while they are frozen, as from a checkpoint
        made.train()
        assert monitor.warnings == []
        net[0].weight.requires_grad_(True)
        with torch.no_grad():
            net[0].weight.add_(0.1)
        with pytest.warns(PrivacyWarning, match="without clipping or noise"):
            made.step(*next(iter(made.loader)))
        assert isinstance(monitor.mechanism(), NoGuarantee)

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

    @pytest.mark.parametrize("change", [
        lambda p: p.grad.mul_(10.0), lambda p: setattr(p, "grad", 10.0 * p.grad),
    ], ids=["in place", "anew"])  # fmt: skip
    def test_gradients_that_were_changed_after_ghost_clipping(self, private, change):
        made = private("ghost")
        monitor = watch(made)
        made.train()
        records, labels = next(iter(made.loader))
        made.criterion(made.model(records), labels).backward()
        change(next(made.model.parameters()))
        with pytest.warns(PrivacyWarning, match="Gradients were changed between"):
            made.optimizer.step()
        assert isinstance(monitor.mechanism(), NoGuarantee)

    def test_noise_that_is_not_what_the_optimizer_says(self, private):
        made = private("ghost")
        monitor = watch(made)
        made.optimizer._adjusted_noise_multiplier = 0.01
        with pytest.warns(PrivacyWarning, match="other noise than its noise multiplier says"):
            made.train()
        assert isinstance(monitor.mechanism(), NoGuarantee)

    @pytest.mark.parametrize(
        ("tampered", "sentence"),
        [
            (lambda made: made.optimizer.attach_step_hook(None), "has recorded 0 steps"),
            (
                lambda made: made.optimizer.attach_step_hook(
                    made.engine.accountant.get_optimizer_hook_fn(0.01)
                ),
                "has recorded the sample rate 0.01, which the data loader did not have",
            ),
            (
                lambda made: made.optimizer.attach_step_hook(
                    lambda _: made.engine.accountant.step(noise_multiplier=9.0, sample_rate=RATE)
                ),
                "has recorded other noise multipliers",
            ),
        ],
        ids=["frozen", "rate", "noise"],
    )
    def test_an_accountant_that_is_wrong(self, private, tampered, sentence):
        made = private()
        tampered(made)
        monitor = watch(made)
        with pytest.warns(PrivacyWarning, match=re.escape(sentence)):
            made.train()
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 6)

    def test_opacus_rounding_of_the_rate_is_no_disagreement(self, private):
        made = private(loader=private.loader(batch_size=1, sampler=range(93)))
        assert made.loader.sample_rate == 1 / 93
        made.optimizer.expected_batch_size = 1  # not 60/93, rounded down, by which nothing divides
        monitor = watch(made)
        made.train()
        assert made.engine.accountant.history == [(1.0, 1 / 92, 92)]
        assert monitor.ledger.mechanism() == DPSGD(1.0, 1 / 93, 92)
        assert monitor.warnings == []

    def test_a_delta_that_gives_records_away(self, private):
        with pytest.warns(PrivacyWarning, match="δ = 0.05 is above 1/60"):
            watch(private(), conditions={"delta": 0.05})

    def test_each_warning_comes_once(self, private):
        made = private(noise=0.0)
        monitor = watch(made)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always", PrivacyWarning)
            made.train(2)
        assert sum(w.category is PrivacyWarning for w in seen) == len(monitor.warnings) == 1


def skipped(made, batches, passes=1):
    """Steps that each add up several batches, by telling the optimizer to skip by hand."""
    number = 0
    for _ in range(passes):
        for records, labels in made.loader:
            number += 1
            made.optimizer.signal_skip_step(do_skip=number % batches != 0)
            made.step(records, labels)


def many(private, **options):
    """A loader whose batches tell enough to be known again: 32 of 400 records."""
    generator = torch.Generator().manual_seed(5)
    data = TensorDataset(
        torch.randn(400, 4, generator=generator),
        torch.randint(0, 2, (400,), generator=generator),
    )
    return DataLoader(data, batch_size=32, **options)


class TestWhichBatches:
    """The records that were clipped are held against those that were drawn."""

    @pytest.mark.parametrize("mode", ["hooks", "ghost"])
    def test_batches_that_are_skipped_by_hand_are_added_up(self, private, mode):
        made = private(mode)
        monitor = watch(made)
        with pytest.warns(PrivacyWarning, match="as if they were made of one"):
            skipped(made, 3)
        assert monitor.ledger.mechanism() == Accumulated(DPSGD(1.0, RATE, 2), 3)

    def test_a_skipped_sum_over_two_passes_is_not_covered(self, private):
        made = private(poisson_sampling=False)
        monitor = watch_shuffled(made)
        with (
            pytest.warns(PrivacyWarning, match="as if they were made of one"),
            pytest.warns(PrivacyWarning, match="batches of two passes"),
        ):
            skipped(made, 4, passes=2)
        assert isinstance(monitor.mechanism(), NoGuarantee)

    def test_a_skipped_sum_of_one_pass_is_a_larger_batch(self, private):
        made = private(poisson_sampling=False)
        monitor = watch_shuffled(made)
        with pytest.warns(PrivacyWarning, match="as if they were made of one"):
            skipped(made, 3, passes=2)
        assert monitor.ledger.mechanism() == DPSGD(1.0, 3 * RATE, 4, sampling="shuffle")

    def test_backward_of_ghost_mode_forgets_the_batch_before(self, private):
        made = private("ghost")
        monitor = watch(made)
        batches = iter(made.loader)
        for _ in range(3):
            records, labels = next(batches)
            made.criterion(made.model(records), labels).backward()
        both = [p.grad.clone() for p in made.model.parameters()]
        with pytest.warns(PrivacyWarning, match="drawn and no step was made of them"):
            made.optimizer.step()
        assert isinstance(monitor.mechanism(), NoGuarantee)
        again = private("ghost")
        again.criterion(again.model(records), labels).backward()
        alone = [p.grad for p in again.model.parameters()]
        assert all(map(torch.allclose, both, alone))

    @pytest.mark.parametrize("workers", [0, 2])
    def test_two_steps_on_a_batch_where_others_are_at_hand(self, private, workers):
        made = private(loader=many(private, num_workers=workers))
        monitor = watch(made)
        if not workers:
            made.model.eval()
            for records, _ in made.loader:
                made.model(records)
            made.model.train()
        records, labels = next(batches := iter(made.loader))
        made.step(records, labels)
        assert monitor.warnings == []
        with pytest.warns(PrivacyWarning, match="A batch was used again"):
            made.step(records.clone(), labels)
        assert isinstance(monitor.mechanism(), NoGuarantee)
        del batches

    def test_a_list_of_batches_is_good_for_one_epoch(self, private):
        made = private(loader=many(private))
        monitor = watch(made)
        batches = list(made.loader)
        made.train(loader=batches)
        assert monitor.ledger.mechanism() == DPSGD(1.0, made.loader.sample_rate, len(made.loader))
        _ = list(made.loader)
        with pytest.warns(PrivacyWarning, match="A batch was used again"):
            made.train(loader=batches[:1])

    def test_records_that_are_repeated_within_a_batch(self, private):
        made = private()
        monitor = watch(made)
        records, labels = next(iter(made.loader))
        with pytest.warns(PrivacyWarning, match="one record may count several times"):
            made.step(records.repeat(4, 1), labels.repeat(4))
        assert isinstance(monitor.mechanism(), NoGuarantee)

    def test_repeated_records_do_not_pass_for_batches_that_are_at_hand(self, private):
        made = private(poisson_sampling=False)
        monitor = watch_shuffled(made)
        _ = list(made.loader)
        records, labels = next(iter(made.loader))
        with pytest.warns(PrivacyWarning, match="one record may count several times"):
            made.step(records.repeat(4, 1), labels.repeat(4))
        assert isinstance(monitor.mechanism(), NoGuarantee)

    def test_one_batch_several_times_is_not_several_batches(self, private):
        made = private(loader=many(private), poisson_sampling=False)
        monitor = watch_shuffled(made)
        _ = list(made.loader)
        records, labels = next(iter(made.loader))
        made.optimizer.signal_skip_step(do_skip=True)
        made.optimizer.signal_skip_step(do_skip=False)
        made.step(records, labels)
        with pytest.warns(PrivacyWarning, match="A batch was used again"):
            made.step(records, labels)
        assert isinstance(monitor.mechanism(), NoGuarantee)

    def test_records_that_the_collate_function_leaves_out(self, private):
        def sound(items):
            return default_collate([item for item in items if item[0][0] > -1.0] or items[:1])

        made = private(loader=private.loader(collate_fn=sound))
        monitor = watch(made)
        with pytest.warns(PrivacyWarning, match="fewer records than the data loader drew"):
            made.train(3)
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 18)
        assert len(monitor.warnings) == 1


class TestCorrectTrainings:
    """None of these is a mistake."""

    @pytest.mark.parametrize("options", [
        {"num_workers": 2}, {"num_workers": 1, "persistent_workers": True},
    ], ids=["workers", "persistent"])  # fmt: skip
    def test_worker_processes(self, private, options):
        made = private(loader=private.loader(**options))
        monitor = watch(made)
        made.train(2)
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 12)
        assert monitor.warnings == []

    @pytest.mark.parametrize("mode", ["hooks", "ghost"])
    def test_looking_at_the_training_data_between_steps(self, private, mode):
        made = private(mode, loader=many(private, num_workers=1))
        monitor = watch(made)
        for number, (records, labels) in enumerate(made.loader):
            made.step(records, labels)
            if number % 5 == 0:
                made.model.eval()
                with torch.no_grad():
                    for seen, _ in made.loader:
                        made.model(seen)
                made.model.train()
        assert monitor.ledger.mechanism() == DPSGD(1.0, made.loader.sample_rate, len(made.loader))
        assert monitor.warnings == []

    def test_empty_batches_that_are_passed_over(self, private):
        made = private(loader=private.loader(batch_size=1))
        monitor = watch(made)

        def train():
            for records, labels in made.loader:
                if len(records):
                    made.step(records, labels)

        with pytest.warns(PrivacyWarning, match="make a step of empty batches too"):
            train()
        steps, rate = monitor.ledger.steps, made.loader.sample_rate
        assert 0 < steps < len(made.loader)
        drawn = steps + sum(step.left_out * count for step, count in monitor.ledger.entries)
        assert len(made.loader) - 3 <= drawn <= len(made.loader)  # the last may be empty too
        found = Composition(DPSGD(1.0, rate, drawn), EmptyBatches(60, ((rate, drawn),)))
        assert monitor.ledger.mechanism() == found
        assert monitor.warnings == [checks.LEFT_OUT]
        again = Ledger.from_state(monitor.ledger.state_dict())
        assert again.mechanism() == found

    @pytest.mark.parametrize("poisson", [True, False])
    def test_parts_of_a_batch_with_workers_and_empty_batches(self, private, poisson):
        loader = private.loader(batch_size=3, num_workers=1)
        made = private(loader=loader, poisson_sampling=poisson)
        monitor = watch(made) if poisson else watch_shuffled(made)
        with BatchMemoryManager(
            data_loader=made.loader, max_physical_batch_size=2, optimizer=made.optimizer
        ) as parts:
            made.train(2, loader=parts)
        assert monitor.ledger.steps == 40
        assert isinstance(monitor.ledger.mechanism(), DPSGD)

    def test_batches_in_the_same_order_in_each_pass(self, private):
        made = private(loader=many(private, shuffle=False), poisson_sampling=False)
        monitor = watch_shuffled(made)
        made.train(2)
        assert monitor.ledger.mechanism().curve("replace").d_prime() == pytest.approx(8.0**0.5)

    def test_the_whole_data_set_in_each_step(self, private):
        made = private(loader=private.loader(batch_size=60))
        monitor = watch(made)
        made.train(3)
        assert monitor.ledger.mechanism() == DPSGD(1.0, 1.0, 3)

    def test_records_that_are_all_alike(self, private):
        data = TensorDataset(torch.ones(400, 4), torch.zeros(400, dtype=torch.long))
        made = private(loader=DataLoader(data, batch_size=32))
        monitor = watch(made)
        made.train(3)
        assert monitor.warnings == []


@since_1_6
def test_weights_with_few_digits_reach_further(private):
    net = private.network().to(torch.bfloat16)
    made = private(net=net)
    with pytest.warns(PrivacyWarning, match="fewer digits than float32"):
        monitor = watch(made)
    for records, labels in made.loader:
        made.step(records.bfloat16(), labels)
    assert monitor.ledger.mechanism() == DPSGD(1.0 / 1.03125, RATE, 6)
    assert len(monitor.warnings) == 1
