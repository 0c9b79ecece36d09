"""What a training keeps beside its private steps, or does to their result; once certified."""

import pytest
import torch
from torch import nn

from attacked import ALL_MODES, CLASSES, FEATURES, QUIET, Training, certified, not_covered, records
from dprime.monitor.problems import Problem

pytestmark = QUIET
BOTH = pytest.mark.parametrize("mode", ["hooks", "ghost"])


class Layered(nn.Module):
    """A linear layer, and what is kept of the records that pass."""

    def __init__(self, keep, **buffers):
        super().__init__()
        self.layer, self.keep = nn.Linear(FEATURES, CLASSES), keep
        for name, start in buffers.items():
            self.register_buffer(name, start)

    def forward(self, x):
        if self.training and len(x):
            self.keep(self, x.detach())
        return self.layer(x)


def counting(counts, dtype=torch.long):
    """Counts, in a buffer of one number, what `counts` says of the records of a call."""
    return Layered(lambda layer, x: layer.count.add_(counts(x)), count=torch.zeros((), dtype=dtype))


def in_place(layer, x):
    layer.kept.data.copy_(x[0])


def anew(layer, x):
    layer.kept = x[0].clone()


def once(layer, x):
    if not layer.kept.any():
        layer.kept.copy_(x[0])


def late(layer, x):
    if not hasattr(layer, "kept"):
        layer.register_buffer("kept", x[0].clone())


def in_a_module(layer, x):
    layer.bank = nn.Module()
    layer.bank.register_buffer("rows", x[:3].clone())


def pointing(layer, x):
    """Says in a buffer, whose norm stays 1, which batch was the last one."""
    layer.place.copy_(torch.eye(50)[int(x[0, 0].abs() * 20) % 50])


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


class Extra(Layered):
    """Saves records, or what it was made with, besides its weights."""

    kept = torch.ones(2)

    def get_extra_state(self):
        return {"kept": self.kept}

    def set_extra_state(self, state):
        self.kept = state["kept"]


class TestBuffers:
    """M11: what goes with the model, and is no weight."""

    @pytest.mark.parametrize("mode", ALL_MODES)
    @pytest.mark.parametrize("keep", [in_place, anew, late, once])
    def test_a_buffer_that_keeps_records(self, mode, keep):
        buffers = {} if keep is late else {"kept": torch.zeros(FEATURES)}
        training = Training(Layered(keep, **buffers), mode=mode).train()
        assert (records().tensors[0] == training.net.state_dict()["kept"]).all(1).any()
        assert not_covered(training, Problem.BUFFERS)

    def test_a_count_of_batches_with_an_outlier_is_not_one_of_steps(self):
        training = Training(counting(lambda x: int((x.abs() > 2.4).any()))).train(3)
        assert 0 < int(training.net.count) < 18
        assert not_covered(training, Problem.BUFFERS)

    @pytest.mark.parametrize("dtype", [torch.long, torch.float32])
    def test_a_count_of_steps_is_covered(self, dtype):
        training = Training(counting(lambda _: 1, dtype)).train(3)
        assert int(training.net.count) == 18
        assert certified(training, warnings=[])

    def test_records_in_a_module_that_comes_later(self):
        training = Training(Layered(in_a_module)).train()
        assert training.model.state_dict()["_module.bank.rows"].shape == (3, FEATURES)
        assert not_covered(training, Problem.BUFFERS)

    def test_a_mask_that_is_not_saved_may_be_made_in_the_first_call_and_no_later(self):
        training = Training(Masked()).train(2)
        assert certified(training, warnings=[])
        training.net.mask = None
        assert not_covered(training.train(), Problem.BUFFERS)

    def test_a_buffer_that_changes_but_for_its_norm(self):
        net = Layered(pointing, place=torch.eye(50)[0].clone())
        assert not_covered(Training(net).train(), Problem.BUFFERS)

    def test_records_in_an_extra_state_and_what_stays_there(self):
        training = Training(Extra(anew)).train()
        kept = training.model.state_dict()["_module._extra_state"]["kept"]
        assert (records().tensors[0] == kept).all(1).any()
        assert not_covered(training, Problem.BUFFERS)
        assert certified(Training(Extra(lambda *_: None)).train(), warnings=[])

    def test_a_criterion_that_is_trained(self):
        class Centres(nn.Module):
            def __init__(self):
                super().__init__()
                self.centres = nn.Parameter(torch.zeros(CLASSES, CLASSES))

            def forward(self, out, y):
                return ((out - self.centres[y]) ** 2).sum(1).mean()

        criterion = Centres()
        other = torch.optim.SGD(criterion.parameters(), lr=1.0)
        training = Training(criterion=criterion).train(after=lambda *_: other.step())
        assert criterion.centres.abs().max() > 0.01
        assert not_covered(training, Problem.OUTSIDE)


def test_of_a_model_in_use_the_report_does_not_say_that_its_weights_are_others():
    training = Training(counting(lambda _: 1))

    def look(*_):
        assert "other ones" not in str(training.monitor)

    training.train(between=look, after=look).net.double()
    assert certified(training, warnings=[])
    look()


@BOTH
@pytest.mark.parametrize("batch", [1, 10])
def test_what_rounding_adds_to_clipped_norms_is_counted(mode, batch):
    """Under autocast, norms and products of single records have eight binary digits."""
    training = Training(mode=mode, batch=batch, norm=0.1)
    for _ in range(2):
        for x, y in training.loader:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                training.optimizer.zero_grad()
                loss = training.loss(x, y)
            loss.backward()
            training.optimizer.step()
    assert certified(training, warnings=[])
    noises = {step.noise_multiplier for step, _ in training.monitor.ledger.entries}
    assert noises == {1.0 / (1.0 + 4.0 * torch.finfo(torch.bfloat16).eps)}


class TestAfterTheNoise:
    """The step applies something else than the noisy sum."""

    @BOTH
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
            if how in ("divided", "bare"):
                optimizer.step()
                continue
            assert optimizer.pre_step()
            for p, gradient in zip(optimizer.params, raw, strict=True):
                if how == "pre_step":
                    p.grad = gradient
                elif p is optimizer.params[0]:
                    p.grad.copy_(gradient)
            optimizer.original_optimizer.step()
        assert not_covered(training, Problem.OUTSIDE)

    def test_noise_that_a_patched_function_draws(self, monkeypatch):
        training = Training()
        monkeypatch.setattr(
            "opacus.optimizers.optimizer._generate_noise",
            lambda std, reference, **_: torch.zeros_like(reference),
        )
        training.train()
        for p in training.optimizer.params:
            torch.testing.assert_close(p.grad * 10, p.summed_grad)
        assert not_covered(training, Problem.REPLACED)

    def test_a_scale_of_ones_own(self):
        training = Training()
        training.optimizer.scale_grad = lambda: None
        assert not_covered(training.train(), Problem.REPLACED)

    def test_the_report_says_that_weights_hold_a_record_now(self):
        training = Training().train()
        kept = training.net[0].weight.detach().clone()
        sentence = "other ones than the last private step left"
        assert sentence not in str(training.monitor)
        training.net[0].weight.data[0] = records().tensors[0][0]
        assert sentence in str(training.monitor)
        training.net[0].weight.data.copy_(kept)  # as after an evaluation with averaged weights
        assert sentence not in str(training.monitor)
