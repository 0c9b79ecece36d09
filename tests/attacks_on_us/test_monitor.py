"""Trainings with Opacus that a monitor once certified, and that give a record away.

Each attack shows first that one record moves what is released by more than the clipping norm, or
that it is told from the result; then, that no certificate is left.
"""

import copy
import warnings

import pytest
import torch
from opacus import PrivacyEngine
from opacus.data_loader import DPDataLoader
from opacus.optimizers import DPOptimizer
from opacus.schedulers import LambdaNoise
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from dprime.monitor import Monitor, PrivacyWarning

pytestmark = [
    pytest.mark.filterwarnings("ignore:Full backward hook is firing"),
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore::dprime.monitor.PrivacyWarning"),
]

ALL_MODES = ("hooks", "functorch", "ew", "ghost")
FEATURES, CLASSES, RECORDS = 4, 3, 48


@pytest.fixture(autouse=True)
def seeded():
    """Networks that are made before a training has its seed are the same in every run."""
    torch.manual_seed(3)


class Training:
    """A small private training, and a monitor that watches it."""

    def __init__(self, mode="hooks", *, net=None, data=None, batch=8, attach=True, seed=0, **made):
        torch.manual_seed(seed)
        data = data or records()
        net = net or nn.Sequential(nn.Linear(FEATURES, 5), nn.Tanh(), nn.Linear(5, CLASSES))
        options = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "poisson_sampling": True} | made
        criterion = options.pop("criterion", None) or nn.CrossEntropyLoss()
        loader = options.pop("loader", None) or DataLoader(data, batch_size=batch)
        optimizer = options.pop("optimizer", lambda p: torch.optim.SGD(p, lr=0.1))
        self.engine = PrivacyEngine(accountant="rdp")
        found = self.engine.make_private(
            module=net, optimizer=optimizer([p for p in net.parameters() if p.requires_grad]),
            data_loader=loader, criterion=criterion, grad_sample_mode=mode, **options,
        )  # fmt: skip
        self.net, self.model, self.optimizer, self.loader = net, found[0], found[1], found[-1]
        self.criterion = found[2] if len(found) == 4 else criterion
        self.monitor = self.attach() if attach else None

    def attach(self, **options):
        return Monitor(
            self.engine, model=self.model, optimizer=self.optimizer, data_loader=self.loader,
            criterion=self.criterion, conditions={"delta": 1e-3}, show=None, **options,
        )  # fmt: skip

    def loss(self, x, y):
        return self.criterion(self.model(x), y)

    def step(self, x, y):
        self.optimizer.zero_grad()
        self.loss(x, y).backward()
        self.optimizer.step()

    def train(self, epochs=1):
        for _ in range(epochs):
            for x, y in self.loader:
                self.step(x, y)
        return self

    def clipped_sum(self, x, y):
        """Of one batch, as the optimizer has it before the noise."""
        self.optimizer.zero_grad()
        self.loss(x, y).backward()
        clips = "accumulate" if hasattr(self.optimizer, "accumulate") else "clip_and_accumulate"
        getattr(self.optimizer, clips)()
        parts = [p.summed_grad.flatten().clone() for p in self.optimizer.params]
        self.optimizer.zero_grad()
        return torch.cat(parts)


def records(count=RECORDS, seed=1):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, FEATURES, generator=generator)
    return TensorDataset(x, torch.randint(0, CLASSES, (count,), generator=generator))


def moved(training, x, y):
    """How far the first record moves the clipped sum, in clipping norms."""
    without = training.clipped_sum(x[1:], y[1:])
    return float((training.clipped_sum(x, y) - without).norm())


def certified(training):
    return training.monitor.curve().advantage() < 1.0


def not_covered(training, reason):
    """That nothing is certified, for this reason, with a warning that says what to do."""
    spent = training.monitor.mechanism()
    assert getattr(spent, "reason", None) == reason
    assert training.monitor.curve().advantage() == 1.0
    assert any(len(warning) > 80 for warning in training.monitor.warnings)
    return True


@pytest.mark.parametrize("mode", ALL_MODES)
def test_plain_training_is_certified(mode):
    training = Training(mode).train(2)
    assert certified(training)
    assert training.monitor.warnings == []


def steep():
    net = nn.Linear(FEATURES, CLASSES)
    net.weight.data.mul_(10.0)
    return net


class TestNotFinite:
    """M1: a record without finite gradient makes the model NaN."""

    @pytest.mark.parametrize("mode", ALL_MODES)
    @pytest.mark.parametrize("value", [float("nan"), 3e38])
    def test_the_model_tells_that_the_record_was_there(self, mode, value):
        plain = records()
        bad = TensorDataset(plain.tensors[0].clone(), plain.tensors[1])
        bad.tensors[0][0] = value
        broken = []
        for data in (bad, plain):
            training = Training(mode, net=steep(), data=data).train(4)
            weights = torch.cat([p.flatten() for p in training.net.parameters()])
            broken.append(not bool(weights.isfinite().all()))
        assert broken == [True, False]
        assert certified(training)
        with_it = Training(mode, net=steep(), data=bad).train(4)
        assert not_covered(with_it, "a clipped sum was not finite")


class Tokens(nn.Module):
    """The head sees the tokens of all records as if each were a record."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Linear(FEATURES, 6), nn.Linear(6, CLASSES)

    def forward(self, x):
        tokens = self.embed(x.unsqueeze(1).repeat(1, 8, 1))
        return self.head(tokens.reshape(-1, 6)).reshape(len(x), 8, CLASSES).mean(1)


class TestRows:
    """M2: every weight's gradients must have a row for each record."""

    def test_a_record_counts_for_each_of_its_tokens(self):
        made = {"clipping": "per_layer", "max_grad_norm": [0.5] * 4}
        net = Tokens()
        x, y = (t[:6] for t in records().tensors)
        assert moved(Training(net=net, attach=False, **made), 3.0 * x, y) > 2.0
        assert not_covered(
            Training(net=Tokens(), **made).train(),
            "a gradient did not have one row for each record",
        )


class Tied(nn.Module):
    """A weight that is also used outside of its layer."""

    def __init__(self, scale=1.0):
        super().__init__()
        self.first, self.scale, self.on = nn.Linear(FEATURES, FEATURES, bias=False), scale, True

    def forward(self, x):
        hidden = self.first(x)
        if not self.on:
            return hidden
        return hidden + functional.linear(self.scale * hidden.detach(), self.first.weight)


class TestGhost:
    """M3: what ghost mode does not see is not clipped."""

    def test_a_tied_head(self):
        x, y = (t[:6] for t in records().tensors)
        assert moved(Training("ghost", net=Tied(10.0), attach=False), x, y) > 2.0
        assert not_covered(
            Training("ghost", net=Tied(10.0)).train(), "a part of a gradient was not clipped"
        )

    def test_a_head_that_is_only_tied_later(self):
        training = Training("ghost", net=Tied(10.0))
        training.net.on = False
        training.train()
        assert certified(training)
        training.net.on = True
        training.step(*next(iter(training.loader)))
        assert not_covered(training, "a part of a gradient was not clipped")

    def test_a_penalty_in_the_loss(self):
        training = Training("ghost")
        x, y = next(iter(training.loader))
        penalty = sum((p**2).sum() for p in training.net.parameters())
        training.optimizer.zero_grad()
        (training.loss(x, y) + 10.0 * penalty).backward()
        training.optimizer.step()
        assert not_covered(training, "a part of a gradient was not clipped")

    def test_a_loss_that_mixes_records(self):
        class DatasetWithCanaries(nn.Module):
            reduction = "mean"

            def forward(self, out, y):
                return nn.functional.cross_entropy(10.0 * out.mean(0) + out, y, reduction="none")

        training = Training("ghost", criterion=DatasetWithCanaries()).train()
        assert not_covered(training, "a part of a gradient was not clipped")

    @pytest.mark.parametrize("net", ["lstm", "embedding", "convolution"])
    def test_other_layers_stay_certified(self, net):
        from opacus.layers import DPLSTM

        class Words(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed, self.out = nn.Embedding(9, 5), nn.Linear(5, CLASSES)
                self.cell = DPLSTM(5, 5, batch_first=True) if net == "lstm" else None

            def forward(self, x):
                found = self.embed((x.abs() * 3).long().clamp(max=8))
                found = self.cell(found)[0] if self.cell else found
                return self.out(found.mean(1))

        layers = nn.Sequential(
            nn.Unflatten(1, (1, FEATURES)), nn.Conv1d(1, 4, 2), nn.GroupNorm(2, 4), nn.Flatten(),
            nn.Linear(12, CLASSES),
        )  # fmt: skip
        training = Training("ghost", net=layers if net == "convolution" else Words()).train(2)
        assert certified(training)
        assert training.monitor.warnings == []


class TestOtherWeights:
    """M4: weights that were not attached."""

    def test_a_layer_that_is_unfrozen_for_one_step_in_ghost_mode(self):
        def made(attach):
            net = nn.Sequential(nn.Linear(FEATURES, 5), nn.ReLU(), nn.Linear(5, CLASSES))
            net[0].requires_grad_(False)
            return Training(
                "ghost", net=net, attach=attach,
                optimizer=lambda _: torch.optim.SGD(net.parameters(), lr=0.1),
            )  # fmt: skip

        x, y = (t[:6] for t in records().tensors)
        attacked = made(attach=False)
        attacked.net[0].requires_grad_(True)
        attacked.net[2].weight.data.mul_(100.0)
        assert moved(attacked, 100.0 * x, y) > 10.0
        training = made(attach=True).train()
        assert certified(training)
        training.net[0].requires_grad_(True)
        training.step(*next(iter(training.loader)))
        training.net[0].requires_grad_(False)
        training.train()
        assert not_covered(training, "weights were trained that were not attached")

    def test_weights_that_join_the_optimizer_later(self):
        training = Training().train()
        extra = nn.Parameter(torch.zeros(2))
        extra.grad_sample = None

        class Shift(nn.Module):
            def forward(self, x):
                return x

        training.net.add_module("extra", Shift())
        training.net.extra.shift = extra
        training.optimizer.add_param_group({"params": [extra]})
        x, y = next(iter(training.loader))
        training.optimizer.zero_grad()
        training.loss(x, y).backward()
        extra.grad_sample = torch.zeros(len(x), 2)
        training.optimizer.step()
        assert not_covered(training, "weights were trained that were not attached")


class TestOtherChanges:
    """M5, M6, M11: weights and buffers that something else changes."""

    def test_an_optimizer_with_a_closure(self):
        training = Training().train()
        x, y = records().tensors
        other = torch.optim.LBFGS(training.net.parameters(), max_iter=20)

        def closure():
            other.zero_grad()
            hidden = torch.tanh(functional.linear(x, *weights[:2]))
            loss = functional.cross_entropy(functional.linear(hidden, *weights[2:]), y)
            loss.backward()
            return loss

        weights = list(training.net.parameters())
        for p in weights:
            p.grad = None
        before = [p.detach().clone() for p in weights]
        other.step(closure)
        assert not all(map(torch.equal, before, weights))
        assert not_covered(training, "weights were trained outside the optimizer")

    @pytest.mark.parametrize("way", ["in place", "data", "set data", "averaged"])
    def test_weights_that_are_changed_by_hand(self, way):
        training = Training().train()
        assert certified(training)
        p = training.net[0].weight
        value = 1e-3 * records().tensors[0][0, 0]
        with torch.no_grad():
            if way == "in place":
                p[0, 0] += value
            elif way == "data":
                p.data[0, 0] = value
            elif way == "set data":
                p.data = p.data + value
        if way == "averaged":
            before = copy.deepcopy(training.net.state_dict())
            training.train()
            training.net.load_state_dict(before)
        training.train()
        assert not_covered(training, "weights were changed between two steps")

    def test_a_layer_that_is_replaced(self):
        training = Training().train()
        bias = nn.Parameter(records().tensors[0][:, 0][:5].clone())
        bias._forward_counter, bias.grad_sample, bias.summed_grad = 0, None, None
        training.net[0].bias = training.optimizer.param_groups[0]["params"][1] = bias
        training.train()
        assert not_covered(training, "weights were trained that were not attached")

    def test_weights_that_are_moved_while_gradients_are_computed(self):
        """Sharpness-aware minimisation with raw gradients, which takes its shift back."""
        training = Training().train()
        x, y = next(iter(training.loader))
        shift = [0.1 * torch.ones_like(p) for p in training.net.parameters()]
        with torch.no_grad():
            for p, by in zip(training.net.parameters(), shift, strict=True):
                p.add_(by)
        training.optimizer.zero_grad()
        training.loss(x, y).backward()
        with torch.no_grad():
            for p, by in zip(training.net.parameters(), shift, strict=True):
                p.sub_(by)
        training.optimizer.step()
        assert not_covered(training, "weights were changed between two steps")

    def test_weights_that_are_put_back_are_as_before(self):
        """An evaluation with averaged weights between two steps."""
        training = Training().train()
        own = copy.deepcopy(training.net.state_dict())
        with torch.no_grad():
            for p in training.net.parameters():
                p.mul_(0.9)
        training.net.load_state_dict(own)
        training.train()
        assert certified(training)
        assert training.monitor.warnings == []

    def test_changes_that_follow_a_public_rule_can_be_accepted(self):
        training = Training()
        for x, y in training.loader:
            training.step(x, y)
            with torch.no_grad():
                for p in training.net.parameters():
                    p.clamp_(-0.2, 0.2)
            training.monitor.accept_changes()
        assert certified(training)
        assert [w for w in training.monitor.warnings if "accepted" in w]

    @pytest.mark.parametrize("mode", ALL_MODES)
    @pytest.mark.parametrize("way", ["in place", "anew", "late", "once"])
    def test_a_buffer_that_keeps_records(self, mode, way):
        class Bank(nn.Module):
            def __init__(self):
                super().__init__()
                if way != "late":
                    self.register_buffer("kept", torch.zeros(FEATURES))

            def forward(self, x):
                if self.training and len(x):
                    if way == "late" and not hasattr(self, "kept"):
                        self.register_buffer("kept", x[0].detach().clone())
                    elif way == "in place":
                        self.kept.data.copy_(x[0].detach())
                    elif way == "anew":
                        self.kept = x[0].detach().clone()
                    elif way == "once" and not self.kept.any():
                        self.kept.copy_(x[0].detach())
                return x

        training = Training(mode, net=nn.Sequential(Bank(), nn.Linear(FEATURES, CLASSES))).train()
        kept = training.net.state_dict()["0.kept"]
        assert (records().tensors[0] == kept).all(1).any()
        assert not_covered(training, "a buffer was changed")

    def test_a_buffer_that_counts_steps_is_harmless(self):
        class Count(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("steps", torch.tensor(0))

            def forward(self, x):
                self.steps += int(self.training)
                return x

        training = Training(net=nn.Sequential(Count(), nn.Linear(FEATURES, CLASSES))).train(2)
        assert int(training.net[0].steps) == 12
        assert certified(training)

    def test_a_criterion_that_is_trained(self):
        class Centres(nn.Module):
            def __init__(self):
                super().__init__()
                self.centres = nn.Parameter(torch.zeros(CLASSES, CLASSES))

            def forward(self, out, y):
                return ((out - self.centres[y]) ** 2).sum(1).mean()

        criterion = Centres()
        training = Training(criterion=criterion)
        other = torch.optim.SGD(criterion.parameters(), lr=1.0)
        for x, y in training.loader:
            training.step(x, y)
            other.step()
        assert criterion.centres.abs().max() > 0.01
        assert not_covered(training, "weights were trained outside the optimizer")


class Always(UniformWithReplacementSampler):
    """Opacus' sampler, but with record 0 in every batch."""

    def __iter__(self):
        for batch in super().__iter__():
            yield sorted({0, *batch})


class TestSamplers:
    """M7: only Opacus' own draw as they say."""

    def test_a_derived_sampler(self):
        data = records()
        loader = DPDataLoader(data, sample_rate=1 / 6)
        loader.batch_sampler.__class__ = Always
        assert all((x == data.tensors[0][0]).all(1).any() for x, _ in loader)
        training = Training(attach=False)
        training.loader = loader
        training.monitor = training.attach()
        training.train()
        assert not_covered(training, "the sampling of the batches is not known")

    def test_a_sampler_whose_method_was_replaced(self, monkeypatch):
        own = UniformWithReplacementSampler.__iter__
        monkeypatch.setattr(
            UniformWithReplacementSampler, "__iter__",
            lambda self: (sorted({0, *batch}) for batch in own(self)),
        )  # fmt: skip
        training = Training().train()
        assert not_covered(training, "the sampling of the batches is not known")

    def test_a_rate_that_is_set_only_while_batches_are_drawn(self):
        training = Training()
        sampler = training.loader.batch_sampler
        for _ in range(6):
            sampler.sample_rate = 1.0
            x, y = next(iter(training.loader))
            sampler.sample_rate = 1 / 6
            training.step(x, y)
        assert training.monitor.ledger.last.sample_rate == 1.0


class TestSettings:
    """M8, M9: what is chosen by the data during the training."""

    def test_a_divisor_that_is_the_size_of_the_batch(self):
        training = Training()
        for x, y in training.loader:
            training.optimizer.expected_batch_size = max(1, len(x))
            training.step(x, y)
        assert not_covered(
            training, "noise, clipping, rate or expected batch size was changed by hand"
        )

    @pytest.mark.parametrize("name", ["noise_multiplier", "max_grad_norm"])
    @pytest.mark.parametrize("mode", ["hooks", "ghost"])
    def test_a_setting_chosen_by_the_raw_loss(self, name, mode):
        training = Training(mode)
        for x, y in training.loader:
            with torch.no_grad():
                raw = functional.cross_entropy(training.net(x), y)
            setattr(training.optimizer, name, 1.0 + float(raw))
            training.step(x, y)
        assert not_covered(
            training, "noise, clipping, rate or expected batch size was changed by hand"
        )

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
        training.train()
        assert not_covered(
            training, "noise, clipping, rate or expected batch size was changed by hand"
        )

    def test_a_scale_of_ones_own(self):
        training = Training()
        training.optimizer.scale_grad = lambda: None
        training.train()
        assert not_covered(training, "the optimizer's own clipping or noise was replaced")


class TestPassedOver:
    """M10: a step that is left out tells why."""

    @pytest.mark.parametrize("mode", ALL_MODES)
    @pytest.mark.parametrize("batch", [8, RECORDS])
    def test_steps_are_left_out_where_a_record_overflows(self, mode, batch):
        """As a gradient scaler does."""
        plain = records()
        outlier = TensorDataset(plain.tensors[0].clone(), plain.tensors[1])
        outlier.tensors[0][0] = 1e5
        counts = []
        for data in (outlier, plain):
            training = Training(
                mode, net=nn.Linear(FEATURES, CLASSES), data=data, batch=batch, seed=4
            )
            for epoch in range(8):
                for x, y in training.loader:
                    training.optimizer.zero_grad()
                    training.loss(x, y).backward()
                    if epoch == 0 or bool((x.abs() < 100.0).all()):
                        training.optimizer.step()
            counts.append(training.monitor.ledger.steps)
            if data is outlier and batch == 8:
                assert not_covered(training, "batches were drawn and passed over")
        assert counts[0] < counts[1]
        assert certified(training)

    def test_all_data_in_each_batch_and_one_step_left_out(self):
        training = Training(batch=RECORDS)
        for epoch in range(4):
            for x, y in training.loader:
                training.optimizer.zero_grad()
                training.loss(x, y).backward()
                if epoch != 2:
                    training.optimizer.step()
        assert not_covered(training, "batches were drawn and passed over")

    def test_the_last_step_of_a_pass_is_left_out(self):
        training = Training()
        for _ in range(2):
            for number, (x, y) in enumerate(training.loader):
                if number < 5:
                    training.step(x, y)
        assert not_covered(training, "batches were drawn and passed over")

    def test_a_pass_that_is_left_early_is_none(self):
        training = Training()
        for _ in range(3):
            for number, (x, y) in enumerate(training.loader):
                training.step(x, y)
                if number == 3:
                    break
        assert certified(training)
        assert training.monitor.warnings == []


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
        from dprime.monitor import PublicConstants

        def made(**stated):
            data = records(50)
            net = nn.Linear(FEATURES, CLASSES)
            training = Training(net=net, data=data, attach=False)
            training.loader = DPDataLoader(data, sample_rate=1 / 6)
            training.optimizer = DPOptimizer(
                torch.optim.SGD(net.parameters(), lr=0.1), noise_multiplier=1.0,
                max_grad_norm=1.0, expected_batch_size=8,
            )  # fmt: skip
            training.optimizer.attach_step_hook(
                training.engine.accountant.get_optimizer_hook_fn(1 / 6)
            )
            constants = {"sample_rate": 1 / 6, "expected_batch_size": 8, "steps": 12} | stated
            training.monitor = training.attach(public=PublicConstants(**constants))
            return training

        training = made().train(2)
        assert training.monitor.adjacency == "add-remove"
        assert certified(training)
        training.train()
        assert not_covered(training, "the public constants are not those of the training")
        for wrong in ({"sample_rate": 0.2}, {"expected_batch_size": 9}):
            with pytest.raises(ValueError, match="public must be as in the training"):
                made(**wrong)


def test_warnings_are_sentences():
    """Each has its cause, and what to do, after a colon."""
    from dprime.monitor.problems import Problem

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for sentence in (problem.warning for problem in Problem):
            assert ":" in sentence
            assert sentence.endswith(".")
