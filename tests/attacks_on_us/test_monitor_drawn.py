"""Batches and settings of trainings that a monitor once certified: drawn, passed over, chosen."""

import pytest
import torch
from opacus.data_loader import DPDataLoader
from opacus.optimizers import DPOptimizer
from opacus.schedulers import LambdaNoise
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Subset, SubsetRandomSampler, WeightedRandomSampler

from attacked import (
    ALL_MODES,
    CLASSES,
    FEATURES,
    QUIET,
    RECORDS,
    Training,
    certified,
    not_covered,
    records,
    sgd,
)
from dprime.monitor import PrivacyWarning, PublicConstants
from dprime.monitor.problems import Problem

pytestmark = QUIET


class Always(UniformWithReplacementSampler):
    """Opacus' sampler, but with record 0 in every batch."""

    def __iter__(self):
        for batch in super().__iter__():
            yield sorted({0, *batch})


def shuffled(sampler=None):
    loader = DataLoader(records(), batch_size=10, sampler=sampler, shuffle=sampler is None)
    return Training(loader=loader, poisson_sampling=False).train()


class TestSamplers:
    """M7: only Opacus' own draw as they say."""

    def test_a_derived_sampler(self):
        data = records()
        loader = DPDataLoader(data, sample_rate=1 / 6)
        loader.batch_sampler.__class__ = Always
        assert all((x == data.tensors[0][0]).all(1).any() for x, _ in loader)
        training = Training(attach=False)
        training.loader = loader
        training.attach()
        assert not_covered(training.train(), Problem.UNSAMPLED)

    def test_a_sampler_whose_method_was_replaced(self, monkeypatch):
        own = UniformWithReplacementSampler.__iter__
        monkeypatch.setattr(
            UniformWithReplacementSampler, "__iter__",
            lambda self: (sorted({0, *batch}) for batch in own(self)),
        )  # fmt: skip
        assert not_covered(Training().train(), Problem.UNSAMPLED)

    def test_a_rate_that_is_set_only_while_batches_are_drawn(self):
        training = Training()
        sampler = training.loader.batch_sampler
        for _ in range(6):
            sampler.sample_rate = 1.0
            x, y = next(iter(training.loader))
            sampler.sample_rate = 1 / 6
            training.step(x, y)
        assert training.monitor.ledger.last.sample_rate == 1.0

    def test_a_rate_that_is_raised_for_single_batches(self):
        training = Training()
        sampler = training.loader.batch_sampler
        usual = sampler.sample_rate
        for number, (x, y) in enumerate(training.loader):
            sampler.sample_rate = usual
            training.step(x, y)
            sampler.sample_rate = 0.9 if number == 2 else usual
        assert not_covered(training, Problem.RESET)

    def test_indices_that_repeat_a_record_in_a_pass(self):
        training = shuffled(SubsetRandomSampler(list(range(RECORDS))))
        assert certified(training)
        training.loader.sampler.indices[:] = [0] * 30 + list(range(30))
        assert not_covered(training.train(), Problem.ALTERED)

    def test_indices_that_are_tensors_are_compared_as_numbers(self):
        same = SubsetRandomSampler(torch.zeros(RECORDS, dtype=torch.int))
        assert not_covered(shuffled(same), Problem.UNSAMPLED)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_a_sampler_that_draws_with_replacement_later(self, weighted):
        training = shuffled()
        if weighted:
            weights = [1e6] + [1.0] * (RECORDS - 1)
            training.loader.batch_sampler.sampler = WeightedRandomSampler(weights, RECORDS)
        else:
            training.loader.batch_sampler.sampler.replacement = True
        assert not_covered(training.train(), Problem.ALTERED)

    def test_indices_of_a_subset_that_repeat_a_record_later(self):
        subset = Subset(records(), list(range(RECORDS)))
        training = Training(data=subset).train()
        assert certified(training, warnings=[])
        subset.indices = [0] * 30 + list(range(30))
        assert not_covered(training.train(), Problem.ALTERED)


class TestSettings:
    """M8, M9: what is chosen by the data during the training."""

    def test_a_divisor_that_is_the_size_of_the_batch(self):
        training = Training()

        def divide(x, _):
            training.optimizer.expected_batch_size = max(1, len(x))

        assert not_covered(training.train(between=divide), Problem.RESET)

    @pytest.mark.parametrize("name", ["noise_multiplier", "max_grad_norm"])
    @pytest.mark.parametrize("mode", ["hooks", "ghost"])
    def test_a_setting_chosen_by_the_raw_loss(self, name, mode):
        training = Training(mode=mode)

        def choose(x, y):
            with torch.no_grad():
                raw = functional.cross_entropy(training.net(x), y)
            setattr(training.optimizer, name, 1.0 + float(raw))

        assert not_covered(training.train(between=choose), Problem.RESET)

    def test_a_schedule_of_opacus_is_covered_with_a_condition(self):
        training = Training()
        schedule = LambdaNoise(training.optimizer, noise_lambda=lambda epoch: 1.0 + epoch)
        training.train()
        schedule.step()
        with pytest.warns(PrivacyWarning, match="fixed without looking at the data"):
            training.train()
        assert certified(training)

    def test_what_is_changed_by_hand_before_a_schedule_steps(self):
        training = Training().train()
        schedule = LambdaNoise(training.optimizer, noise_lambda=lambda _: 1.0)
        training.optimizer.expected_batch_size = 7
        schedule.step()
        assert not_covered(training.train(), Problem.RESET)


class TestPassedOver:
    """M10: a step that is left out tells why."""

    @pytest.mark.parametrize("mode", ALL_MODES)
    @pytest.mark.parametrize("batch", [10, RECORDS])
    def test_steps_are_left_out_where_a_record_overflows(self, mode, batch):
        """As a gradient scaler does."""
        outlier, counts = records(), []
        outlier.tensors[0][0] = 1e5
        for data in (outlier, records()):
            torch.manual_seed(4)
            training = Training(nn.Linear(FEATURES, CLASSES), data, mode, batch=batch)
            for epoch in range(8):
                for x, y in training.loader:
                    training.backward(x, y)
                    if epoch == 0 or bool((x.abs() < 100.0).all()):
                        training.optimizer.step()
            counts.append(training.monitor.ledger.steps)
            if data is outlier and batch == 10:
                assert not_covered(training, Problem.SKIPPED)
        assert counts[0] < counts[1]
        assert certified(training)

    def test_all_data_in_each_batch_and_one_step_left_out(self):
        training = Training(batch=RECORDS)
        for epoch in range(4):
            for x, y in training.loader:
                training.backward(x, y)
                if epoch != 2:
                    training.optimizer.step()
        assert not_covered(training, Problem.SKIPPED)

    def test_the_last_step_of_a_pass_is_left_out(self):
        training = Training()
        for _ in range(2):
            for number, (x, y) in enumerate(training.loader):
                if number < 5:
                    training.step(x, y)
        assert not_covered(training, Problem.SKIPPED)

    @pytest.mark.parametrize("left", ["after a step", "before a step", "at different places"])
    def test_a_pass_that_is_left_early_is_none(self, left):
        training = Training()
        for last in (3, 2, 4, 3) if left == "at different places" else (3, 3, 3, 3):
            for number, (x, y) in enumerate(training.loader):
                if number == last and left != "after a step":
                    break
                training.step(x, y)
                if number == last:
                    break
        sentence = "Loops over the data loader were left at different places"
        assert certified(training, [sentence] if left == "at different places" else [])


class TestNumberOfRecords:
    """What Opacus takes from the number of records tells it."""

    def test_one_record_more_makes_other_steps(self):
        steps, claims = [], []
        for count in (1024, 1025):
            training = Training(data=records(count), batch=64).train(3)
            steps.append(training.monitor.ledger.steps)
            claims.append(training.monitor.adjacency)
        assert steps == [48, 51]
        assert claims == ["zero-out", "zero-out"]
        assert "number of records is public" in str(training.monitor)
        with pytest.raises(ValueError, match="adjacency must be 'zero-out' or 'replace'"):
            training.monitor.mechanism().curve("add-remove")

    def test_adding_a_record_needs_public_constants(self):
        training = Training(attach=False)
        with pytest.raises(ValueError, match="PublicConstants"):
            training.attach(adjacency="add-remove")
        assert training.attach(adjacency="replace").adjacency == "replace"

    def test_public_constants_are_checked_at_every_step(self):
        def made(**stated):
            data, net = records(50), nn.Linear(FEATURES, CLASSES)
            training = Training(net, data, attach=False)
            training.loader = DPDataLoader(data, sample_rate=1 / 6)
            training.optimizer = DPOptimizer(
                sgd(net.parameters()), noise_multiplier=1.0, max_grad_norm=1.0,
                expected_batch_size=8,
            )  # fmt: skip
            hook = training.engine.accountant.get_optimizer_hook_fn(1 / 6)
            training.optimizer.attach_step_hook(hook)
            constants = {"sample_rate": 1 / 6, "expected_batch_size": 8, "steps": 12} | stated
            training.attach(public=PublicConstants(**constants))
            return training

        training = made().train(2)
        assert training.monitor.adjacency == "add-remove"
        assert certified(training)
        assert not_covered(training.train(), Problem.NOT_PUBLIC)
        for wrong in ({"sample_rate": 0.2}, {"expected_batch_size": 9}):
            with pytest.raises(ValueError, match="public must be as in the training"):
                made(**wrong)
