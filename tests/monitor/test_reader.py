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
from private_training import Maker, Private
from watching import ADAPTIVE, RATE, certified, values, watch, watch_shuffled

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

    def test_two_loops_at_once_are_not_covered(self, private):
        made = private(poisson_sampling=False)
        monitor = watch_shuffled(made)
        made.step(*next(iter(made.loader)))
        for batch in made.loader:
            _ = list(made.loader)  # looking at all records between two steps is no loop of steps
            made.step(*batch)
        assert monitor.curve().advantage() < 1.0
        both = (batch for pair in zip(made.loader, made.loader, strict=True) for batch in pair)
        with pytest.warns(PrivacyWarning, match="two passes over the loader"):
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
        with pytest.warns(PrivacyWarning, match="the sampling of the batches"):
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
        with pytest.warns(PrivacyWarning, match="no noise was added"):
            made.train()
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
        monitor = watch(made)
        with pytest.warns(PrivacyWarning, match="own clipping or noise was replaced"):
            made.train()
        assert isinstance(monitor.mechanism(), NoGuarantee)

    def test_the_warning_is_at_the_users_line(self, private):
        made = private(noise=0.0)
        watch(made)
        with pytest.warns(PrivacyWarning) as caught:
            made.train()
        assert caught[0].filename.endswith("private_training.py")

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
        with pytest.warns(PrivacyWarning, match="records of a batch are mixed"):
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
        with pytest.warns(PrivacyWarning, match="trained outside the optimizer"):
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
        with pytest.warns(PrivacyWarning, match="weights were changed between two steps"):
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
SEVERAL = "other records were clipped than were drawn"
NOT_COVERED = {
    "noise that was replaced": ("clipping or noise was replaced", without_noise, {}),
    "random records in empty batches": (
        "leave rand_on_empty out", Private.train, {"rand_on_empty": True},
    ),
    "another loader": (
        "loop over the loader that make_private returned",
        lambda made: made.train(loader=Maker.loader()), {},
    ),
    "gradients changed in place": (
        "gradients were changed after", changed_gradients(lambda p: p.grad.mul_(10.0)), GHOST,
    ),
    "gradients made anew": (
        "gradients were changed after",
        changed_gradients(lambda p: setattr(p, "grad", 10.0 * p.grad)), GHOST,
    ),
    "a sum that grows between its parts": ("a part of a gradient was not clipped", longer_sum, {}),
    "other noise than said": (
        "the noise is not what the optimizer says",
        lambda made: vars(made.optimizer).update(_adjusted_noise_multiplier=0.01) or made.train(),
        GHOST,
    ),
    "batches of two passes": ("batches of two passes", two_passes, SHUFFLED),
    "a skipped sum over two passes": (
        "batches of two passes", lambda made: skipped(made, 4, passes=2), SHUFFLED,
    ),
    "two steps on one batch": ("one step for each batch", on_one_batch(1, 1), {}),
    "records repeated in a batch": (SEVERAL, on_one_batch(4), {}),
    "repeated records, others at hand": (SEVERAL, on_one_batch(4, before=True), SHUFFLED),
    "one batch for several": (
        "a batch was used again", on_one_batch(1, 1, skipped=True, before=True),
        {**SHUFFLED, "many": True},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_COVERED)
def test_no_guarantee_covers_it_and_the_warning_says_why(private, case):
    if "rand_on_empty" in (options := dict(NOT_COVERED[case][2])) and opacus.__version__ < "1.6":
        pytest.skip("came with Opacus 1.6")
    loader = private.many() if options.pop("many", False) else private.loader()
    made = private(loader=loader, **options)
    monitor = watch(made) if options.get("poisson_sampling", True) else watch_shuffled(made)
    with pytest.warns(PrivacyWarning) as told:
        NOT_COVERED[case][1](made)
    assert any(NOT_COVERED[case][0] in str(each.message) for each in told)
    assert isinstance(monitor.mechanism(), NoGuarantee)


class TestWhichBatches:
    """The records that were clipped are held against those that were drawn."""

    @pytest.mark.parametrize("mode", ["hooks", "ghost"])
    def test_batches_that_are_skipped_by_hand_are_added_up(self, private, mode):
        made = private(mode)
        monitor = watch(made)
        with pytest.warns(PrivacyWarning, match="as if they were made of one"):
            skipped(made, 3)
        assert monitor.ledger.mechanism() == Accumulated(DPSGD(1.0, RATE, 2), 3)

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
        with pytest.warns(PrivacyWarning, match="drawn and passed over"):
            made.optimizer.step()
        assert isinstance(monitor.mechanism(), NoGuarantee)
        again = private("ghost")
        again.criterion(again.model(records), labels).backward()
        alone = [p.grad for p in again.model.parameters()]
        assert all(map(torch.allclose, both, alone))

    @pytest.mark.parametrize("workers", [0, 2])
    def test_two_steps_on_a_batch_where_others_are_at_hand(self, private, workers):
        made = private(loader=private.many(num_workers=workers))
        monitor = watch(made)
        if not workers:
            made.model.eval()
            for records, _ in made.loader:
                made.model(records)
            made.model.train()
        records, labels = next(batches := iter(made.loader))
        made.step(records, labels)
        assert monitor.warnings == []
        with pytest.warns(PrivacyWarning, match="a batch was used again"):
            made.step(records.clone(), labels)
        assert isinstance(monitor.mechanism(), NoGuarantee)
        del batches

    def test_a_list_of_batches_is_good_for_one_epoch(self, private):
        made = private(loader=private.many())
        monitor = watch(made)
        batches = list(made.loader)
        made.train(loader=batches)
        assert monitor.ledger.mechanism() == DPSGD(1.0, made.loader.sample_rate, len(made.loader))
        _ = list(made.loader)
        with pytest.warns(PrivacyWarning, match="a batch was used again"):
            made.train(loader=batches[:1])

    def test_records_that_the_collate_function_leaves_out(self, private):
        def sound(items):
            return default_collate([item for item in items if item[0][0] > -1.0] or items[:1])

        made = private(loader=private.loader(collate_fn=sound))
        monitor = watch(made)
        with pytest.warns(PrivacyWarning, match="fewer records than the data loader drew"):
            made.train(3)
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 18)
        assert len(monitor.warnings) == 1
