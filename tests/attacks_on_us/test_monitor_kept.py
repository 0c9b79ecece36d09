"""What a training keeps, draws or adds beside its private steps, which a monitor once certified."""

import pytest
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import (
    DataLoader,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from dprime.monitor import Monitor

pytestmark = [
    pytest.mark.filterwarnings("ignore:Full backward hook is firing"),
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore::dprime.monitor.PrivacyWarning"),
]

FEATURES, CLASSES, RECORDS = 6, 3, 60


def records():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(RECORDS, FEATURES, generator=generator)
    return TensorDataset(x, torch.randint(0, CLASSES, (RECORDS,), generator=generator))


class Training:
    """A small private training, and a monitor that watches it."""

    def __init__(self, net=None, *, mode="hooks", batch=10, optimizer=None, loader=None, **made):
        torch.manual_seed(0)
        net = net or nn.Sequential(nn.Linear(FEATURES, 5), nn.Tanh(), nn.Linear(5, CLASSES))
        options = {"noise_multiplier": 1.0, "max_grad_norm": 1.0} | made
        self.criterion, self.engine = nn.CrossEntropyLoss(), PrivacyEngine()
        make = optimizer or (lambda weights: torch.optim.SGD(weights, lr=0.1))
        found = self.engine.make_private(
            module=net, optimizer=make(net.parameters()), criterion=self.criterion,
            data_loader=loader or DataLoader(records(), batch_size=batch),
            grad_sample_mode=mode, **options,
        )  # fmt: skip
        self.net, self.model, self.optimizer, self.loader = net, found[0], found[1], found[-1]
        self.criterion = found[2] if len(found) == 4 else self.criterion
        self.monitor = self.attach()

    def attach(self):
        return Monitor(
            self.engine, model=self.model, optimizer=self.optimizer, data_loader=self.loader,
            criterion=self.criterion, conditions={"delta": 1e-3}, show=None,
        )  # fmt: skip

    def backward(self, x, y):
        self.optimizer.zero_grad()
        self.criterion(self.model(x), y).backward()

    def train(self, epochs=1):
        for _ in range(epochs):
            for x, y in self.loader:
                self.backward(x, y)
                self.optimizer.step()
        return self


def certified(training, warnings=()):
    assert [w[:40] for w in training.monitor.warnings] == [w[:40] for w in warnings]
    return training.monitor.curve().advantage() < 1.0


def not_covered(training, sentence):
    """That nothing is certified, with a warning that says so."""
    assert training.monitor.curve().advantage() == 1.0
    assert "Not private" in str(training.monitor)
    return any(sentence in warning for warning in training.monitor.warnings)


class Counting(nn.Module):
    """Counts, in a buffer of one number, what `counts` says of the records of a call."""

    def __init__(self, counts, dtype=torch.long):
        super().__init__()
        self.layer, self.counts = nn.Linear(FEATURES, CLASSES), counts
        self.register_buffer("count", torch.zeros((), dtype=dtype))

    def forward(self, x):
        if self.training:
            self.count += self.counts(x)
        return self.layer(x)


class TestCounters:
    def test_a_count_of_batches_with_an_outlier_is_not_one_of_steps(self):
        training = Training(Counting(lambda x: int((x.abs() > 2.4).any()))).train(3)
        assert 0 < int(training.net.count) < 18
        assert not_covered(training, "A buffer of the model or the criterion was changed")

    @pytest.mark.parametrize("dtype", [torch.long, torch.float32])
    def test_one_of_steps_is_covered(self, dtype):
        training = Training(Counting(lambda _: 1, dtype)).train(3)
        assert int(training.net.count) == 18
        assert certified(training)


class TestSamplers:
    def test_indices_that_repeat_a_record_in_a_pass(self):
        sampler = SubsetRandomSampler(list(range(RECORDS)))
        loader = DataLoader(records(), batch_size=10, sampler=sampler)
        training = Training(loader=loader, poisson_sampling=False).train()
        assert training.monitor.curve().advantage() < 1.0
        training.loader.sampler.indices[:] = [0] * 30 + list(range(30))
        assert not_covered(training.train(), "The sampler or the indices of a Subset")

    def test_indices_that_are_tensors_are_compared_as_numbers(self):
        loader = DataLoader(
            records(), batch_size=10, sampler=SubsetRandomSampler(torch.zeros(60, dtype=torch.int))
        )
        training = Training(loader=loader, poisson_sampling=False).train()
        assert not_covered(training, "How the data loader makes its batches is not known")

    @pytest.mark.parametrize("weighted", [False, True])
    def test_a_sampler_that_draws_with_replacement_later(self, weighted):
        loader = DataLoader(records(), batch_size=10, shuffle=True)
        training = Training(loader=loader, poisson_sampling=False).train()
        if weighted:
            weights = [1e6] + [1.0] * (RECORDS - 1)
            training.loader.batch_sampler.sampler = WeightedRandomSampler(weights, RECORDS)
        else:
            training.loader.batch_sampler.sampler.replacement = True
        assert not_covered(training.train(), "The sampler or the indices of a Subset")


class Bank(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.register_buffer("rows", rows.clone())


class Keeping(nn.Module):
    """Puts records of every batch into a new module."""

    def __init__(self):
        super().__init__()
        self.layer, self.bank = nn.Linear(FEATURES, CLASSES), None

    def forward(self, x):
        if self.training:
            self.bank = Bank(x[:3])
        return self.layer(x)


class Masked(nn.Module):
    """Makes a mask that is not saved when it is first called."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(FEATURES, CLASSES)
        self.register_buffer("mask", None, persistent=False)

    def forward(self, x):
        if self.mask is None:
            self.mask = torch.ones(x.shape[1])
        return self.layer(x * self.mask)


class TestBuffers:
    def test_records_in_a_module_that_comes_later(self):
        training = Training(Keeping()).train()
        assert training.model.state_dict()["_module.bank.rows"].shape == (3, FEATURES)
        assert not_covered(training, "A buffer of the model or the criterion was changed")

    def test_a_mask_that_is_not_saved_may_be_made_in_the_first_call(self):
        assert certified(Training(Masked()).train(2))

    def test_a_mask_that_is_made_later_is_not_covered(self):
        training = Training(Masked()).train()
        training.net.mask = None
        assert not_covered(training.train(), "A buffer of the model or the criterion was changed")


class TestFrozen:
    @pytest.mark.parametrize("mode", ["hooks", "ghost"])
    def test_a_weight_that_is_frozen_after_backward_has_a_raw_gradient(self, mode):
        training = Training(mode=mode).train()
        weight = training.net[0].weight
        for x, y in training.loader:
            training.backward(x, y)
            before, raw = weight.detach().clone(), weight.grad.clone()
            weight.requires_grad_(False)
            training.optimizer.step()
            torch.testing.assert_close((before - weight) / 0.1, raw, rtol=1e-3, atol=1e-4)
            break
        assert not_covered(training, "The optimizer trained weights that were not attached")

    @pytest.mark.parametrize(
        "optimizer",
        [
            lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9),
            lambda weights: torch.optim.AdamW(weights, lr=1e-3),
        ],
    )
    def test_momentum_and_weight_decay_may_move_a_frozen_weight(self, optimizer):
        training = Training(optimizer=optimizer).train()
        training.net[0].requires_grad_(False)
        assert certified(training.train(2))


class TestAutocast:
    """Norms and products of single records have then eight binary digits."""

    @pytest.mark.parametrize("mode", ["hooks", "ghost"])
    @pytest.mark.parametrize("batch", [1, 10])
    def test_what_rounding_adds_to_clipped_norms_is_counted(self, mode, batch):
        training = Training(mode=mode, batch=batch, max_grad_norm=0.1)
        for _ in range(2):
            for x, y in training.loader:
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    training.optimizer.zero_grad()
                    loss = training.criterion(training.model(x), y)
                loss.backward()
                training.optimizer.step()
        assert certified(training)
        noises = {step.noise_multiplier for step, _ in training.monitor.ledger.entries}
        assert noises == {1.0 / (1.0 + 4.0 * torch.finfo(torch.bfloat16).eps)}


class TestAttachedAgain:
    def test_what_the_monitor_before_saw_is_not_forgotten(self):
        training = Training().train()
        with torch.no_grad():
            training.net[0].weight[0] = records().tensors[0][0]
        training.train()
        assert not_covered(training, "Weights were changed between two steps")
        training.engine.dprime_monitor.detach()
        training.monitor = training.attach()
        assert not_covered(training, "Weights were changed between two steps")

    def test_a_covered_training_stays_covered(self):
        training = Training().train()
        training.engine.dprime_monitor.detach()
        training.monitor = training.attach()
        assert certified(training.train(), ["The privacy engine had recorded 6 steps before"])


class TestWeightsMovedInAStep:
    def test_a_second_pass_at_weights_that_a_raw_gradient_moved(self):
        training = Training().train()
        for x, y in training.loader:
            training.backward(x, y)
            before = [p.detach().clone() for p in training.net.parameters()]
            for p in training.net.parameters():
                p.data.add_(3.0 * p.grad / p.grad.norm())
            training.backward(x, y)
            for p, value in zip(training.net.parameters(), before, strict=True):
                p.data.copy_(value)
            training.optimizer.step()
        assert not_covered(training, "Weights were changed between two steps")


class TestAfterTheNoise:
    """The step applies something else than the noisy sum."""

    @pytest.mark.parametrize("mode", ["hooks", "ghost"])
    @pytest.mark.parametrize("how", ["divided", "bare", "restored", "pre_step"])
    def test_a_gradient_without_its_noise(self, mode, how):
        training = Training(mode=mode)
        optimizer, size = training.optimizer, [1]

        def divided(*_):
            for p in optimizer.params:
                p.grad.mul_(optimizer.expected_batch_size / size[0])

        def bare(counted, hook=optimizer.step_hook):
            hook(counted)
            for p in counted.params:
                p.grad = p.summed_grad / 10

        if how == "divided":
            optimizer.original_optimizer.register_step_pre_hook(divided)
        if how == "bare":
            optimizer.attach_step_hook(bare)
        for x, y in training.loader:
            size[0] = max(1, len(x))
            training.backward(x, y)
            raw = [p.grad.clone() for p in optimizer.params]
            if how == "pre_step":
                assert optimizer.pre_step()
                for p, gradient in zip(optimizer.params, raw, strict=True):
                    p.grad = gradient
                optimizer.original_optimizer.step()
            elif how == "restored":
                assert optimizer.pre_step()
                optimizer.params[0].grad.copy_(raw[0])
                optimizer.original_optimizer.step()
            else:
                optimizer.step()
        assert not_covered(training, "gradients that were changed after the noise")


def test_writes_to_trained_weights_are_found_beside_many_frozen_values():
    net = nn.Sequential(
        nn.Linear(FEATURES, 1100), nn.Linear(1100, 1000), nn.Linear(1000, CLASSES)
    ).requires_grad_(False)
    net[2].requires_grad_(True)
    training, steps = Training(net), 0
    for _ in range(2):
        for x, y in training.loader:
            training.backward(x, y)
            raw, steps = net[2].weight.grad.clone(), steps + 1
            training.optimizer.step()
            if steps in (2, 4, 5, 8, 9, 10):  # so that steps 1, 2, 4, 8 see nothing
                net[2].weight.data -= 5.0 * raw
    assert not_covered(training, "Weights were changed between two steps")


class TestAfterTheLastStep:
    def test_the_report_says_that_weights_hold_a_record_now(self):
        training = Training().train()
        kept = training.net[0].weight.detach().clone()
        sentence = "other ones than the last private step left"
        assert sentence not in str(training.monitor)
        training.net[0].weight.data[0] = records().tensors[0][0]
        assert sentence in str(training.monitor)
        training.net[0].weight.data.copy_(kept)  # as after an evaluation with averaged weights
        assert sentence not in str(training.monitor)

    def test_of_a_model_in_use_it_says_nothing(self):
        training = Training(Counting(lambda _: 1))
        for x, y in training.loader:
            training.backward(x, y)
            assert "other ones" not in str(training.monitor)
            training.optimizer.step()
            assert "other ones" not in str(training.monitor)
        training.net.double()
        assert certified(training)
        assert "other ones" not in str(training.monitor)


class Extra(nn.Module):
    """Saves records, or what it was made with, besides its weights."""

    def __init__(self, keeps):
        super().__init__()
        self.layer, self.keeps, self.kept = nn.Linear(FEATURES, CLASSES), keeps, torch.ones(2)

    def forward(self, x):
        if self.training and self.keeps:
            self.kept = x[:3].clone()
        return self.layer(x)

    def get_extra_state(self):
        return {"kept": self.kept}

    def set_extra_state(self, state):
        self.kept = state["kept"]


class TestExtraState:
    def test_records_in_it(self):
        training = Training(Extra(keeps=True)).train()
        assert training.model.state_dict()["_module._extra_state"]["kept"].shape[1] == FEATURES
        assert not_covered(training, "A buffer of the model or the criterion was changed")

    def test_what_stays_is_covered(self):
        assert certified(Training(Extra(keeps=False)).train())


def test_noise_that_a_patched_function_draws(monkeypatch):
    training = Training()
    monkeypatch.setattr(
        "opacus.optimizers.optimizer._generate_noise",
        lambda std, reference, **_: torch.zeros_like(reference),
    )
    training.train()
    for p in training.optimizer.params:
        torch.testing.assert_close(p.grad * 10, p.summed_grad)
    assert not_covered(training, "A step did not pass through Opacus' own clipping and noise")


def test_a_rate_that_is_raised_for_single_batches():
    training = Training()
    sampler = training.loader.batch_sampler
    usual = sampler.sample_rate
    for number, (x, y) in enumerate(training.loader):
        sampler.sample_rate = usual
        training.backward(x, y)
        training.optimizer.step()
        sampler.sample_rate = 0.9 if number == 2 else usual
    assert not_covered(training, "the sampling rate or the expected batch size was changed")


def test_indices_of_a_subset_that_repeat_a_record_later():
    subset = Subset(records(), list(range(RECORDS)))
    training = Training(loader=DataLoader(subset, batch_size=10)).train()
    assert certified(training)
    subset.indices = [0] * 30 + list(range(30))
    assert not_covered(training.train(), "The sampler or the indices of a Subset")


@pytest.mark.parametrize("differs", [False, True])
def test_passes_that_are_left_before_a_step_at_different_places(differs):
    training = Training()
    for last in (3, 2, 4, 3) if differs else (3, 3, 3, 3):
        for number, (x, y) in enumerate(training.loader):
            if number == last:
                break
            training.backward(x, y)
            training.optimizer.step()
    sentence = "Loops over the data loader were left at different places"
    assert certified(training, [sentence] if differs else [])


class Pointing(nn.Module):
    """Says in a buffer, whose norm stays 1, which batch was the last one."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(FEATURES, CLASSES)
        self.register_buffer("place", torch.eye(50)[0].clone())

    def forward(self, x):
        if self.training and len(x):
            self.place.copy_(torch.eye(50)[int(x[0, 0].abs() * 20) % 50])
        return self.layer(x)


def test_a_buffer_that_changes_but_for_its_norm():
    training = Training(Pointing()).train()
    assert not_covered(training, "A buffer of the model or the criterion was changed")
