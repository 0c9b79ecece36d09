"""Layers and losses through which one record moves the sum by more than C: none is certified."""

import warnings
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from opacus.grad_sample.conv import compute_conv_grad_sample
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from dprime.monitor import Monitor, PrivacyWarning, checks
from dprime.monitor.problems import Problem
from watching import ASK, MODES, watch

RECORDS = 48


class Calls(nn.Module):
    """A model that does what a function of its parts and its input says."""

    def __init__(self, does, **parts):
        super().__init__()
        self.does = does
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.does(self, x)


class Holds(nn.Module):
    """A criterion that holds another one."""

    def __init__(self, inner, before=None):
        super().__init__()
        self.inner = inner
        self.before = before or nn.Identity()

    def forward(self, outputs, targets):
        return self.inner(self.before(outputs), targets)


def numbers(*shape):
    return torch.randn(RECORDS, *shape, generator=torch.Generator().manual_seed(5))


def classes(count=3):
    return torch.randint(count, (RECORDS,), generator=torch.Generator().manual_seed(6))


def trained(private, net, x, y, mode="hooks", criterion=None, **options):
    """A monitor after one epoch."""
    loader = DataLoader(TensorDataset(x, y), batch_size=8)
    made = private(mode, net=net, loader=loader, **options)
    if criterion is not None:
        made.criterion = criterion
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        monitor = watch(made)
        made.train()
    return monitor


def reasons(monitor):
    return {step.problem for step, _ in monitor.ledger.entries} - {""}


def certified(monitor):
    return not monitor.warnings and not reasons(monitor)


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ew"])
@pytest.mark.parametrize("loss", [nn.MSELoss, nn.L1Loss, nn.SmoothL1Loss, nn.HuberLoss])
def test_outputs_that_meet_the_targets_of_other_records(private, mode, loss):
    found = trained(private, nn.Linear(4, 1), numbers(4), numbers(), mode, loss())
    assert reasons(found) == {Problem.SPREAD}
    assert certified(trained(private, nn.Linear(4, 1), numbers(4), numbers(1), mode, loss()))


def test_a_loss_that_is_held_by_the_criterion_spreads_too(private):
    found = trained(
        private, nn.Linear(4, 1), numbers(4), numbers(), criterion=Holds(nn.MSELoss()).eval()
    )
    assert reasons(found) == {Problem.SPREAD}


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_targets_that_every_record_has_to_itself_are_fine(private):
    wide = trained(private, nn.Linear(4, 1), numbers(4), numbers(5), criterion=nn.MSELoss())
    criterion = Calls(lambda self, outputs: self.loss(outputs, torch.ones(1)), loss=nn.L1Loss())
    made = private(net=nn.Linear(4, 1))
    monitor = Monitor(made.engine, **{**made.named(), "criterion": criterion}, conditions=ASK)
    for x, _ in made.loader:
        made.optimizer.zero_grad()
        criterion(made.model(x)).backward()
        made.optimizer.step()
    assert certified(wide)
    assert certified(monitor)


def over_time(width=4):
    """A convolution over time and features, of a batch that has time first in memory."""

    def does(self, x):
        by_time = x.permute(1, 0, 2).contiguous().permute(1, 2, 0)[:, None]
        return self.out(torch.tanh(self.conv(self.made(by_time))).mean((2, 3)))

    conv, out = nn.Conv2d(1, width, 3), nn.Linear(width, 3)
    return Calls(does, conv=conv, out=out, made=nn.Identity())


class Contiguous(nn.Module):
    def forward(self, x):
        return x.contiguous()


class ChannelsLast(nn.Module):
    def forward(self, x):
        return x.contiguous(memory_format=torch.channels_last)


def image(padding):
    """A convolution of images that have their channels last in memory."""
    return nn.Sequential(
        ChannelsLast(), nn.Conv2d(2, 4, 3, padding=padding), nn.Flatten(), nn.LazyLinear(3)
    )


class TestMemory:
    def test_a_convolution_that_reads_other_records(self, private):
        found = trained(private, over_time(), numbers(7, 6), classes())
        assert reasons(found) == {Problem.MISREAD}

    def test_what_is_made_contiguous_is_fine(self, private):
        net = over_time()
        net.made = Contiguous()
        assert certified(trained(private, net, numbers(7, 6), classes()))

    def test_a_convolution_whose_weight_is_frozen_is_fine(self, private):
        net = over_time()
        net.conv.weight.requires_grad_(False)
        assert certified(trained(private, net, numbers(7, 6), classes()))

    @pytest.mark.parametrize("padding", [0, 1, "valid", "same"])
    def test_channels_last_only_harms_in_ghost_mode(self, private, padding):
        """Opacus' gradients are wrong, but of the record alone."""
        x, found = numbers(2, 5, 6), {}
        for mode in ("hooks", "functorch", "ghost"):
            net = image(padding)
            net(x)
            found[mode] = reasons(trained(private, net, x, classes(), mode))
        assert found["hooks"] == found["functorch"] == set()
        assert Problem.MISREAD in found["ghost"] or Problem.TOO_LONG in found["ghost"]

    def test_what_opacus_reads_there(self):
        """The premise: with channels last it reads the own record's wrong places only."""
        torch.manual_seed(1)
        layer, x = nn.Conv2d(2, 2, 3), numbers(2, 5, 4)[:3]
        given = torch.randn(3, 2, 3, 2)
        plain = compute_conv_grad_sample(layer, [x], given)[layer.weight]
        last = x.contiguous(memory_format=torch.channels_last)
        wrong = compute_conv_grad_sample(layer, [last], given)[layer.weight]
        last[1:] += 10.0
        again = compute_conv_grad_sample(layer, [last], given)[layer.weight]
        assert not torch.allclose(plain, wrong)
        assert torch.equal(wrong[0], again[0])


WEIGHTS = torch.tensor([1.0, 50.0])


class TestClassWeights:
    @pytest.mark.parametrize(
        "criterion",
        [
            nn.CrossEntropyLoss(WEIGHTS),
            Holds(nn.CrossEntropyLoss(WEIGHTS)),
            Holds(Holds(nn.NLLLoss(WEIGHTS)), nn.LogSoftmax(1)),
            partial(F.cross_entropy, weight=WEIGHTS),
        ],
    )
    def test_the_mean_divides_by_them(self, private, criterion):
        found = trained(private, nn.Linear(4, 2), numbers(4), classes(2), criterion=criterion)
        assert reasons(found) == {Problem.DIVIDED}

    def test_a_loss_inside_the_model(self, private):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer, self.loss = nn.Linear(4, 2), nn.CrossEntropyLoss(WEIGHTS)

            def forward(self, x, y):
                return self.loss(self.layer(x), y)

        loader = DataLoader(TensorDataset(numbers(4), classes(2)), batch_size=8)
        made = private(net=Model(), loader=loader)
        monitor = watch(made)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for x, y in made.loader:
                made.optimizer.zero_grad()
                made.model(x, y).backward()
                made.optimizer.step()
        assert reasons(monitor) == {Problem.DIVIDED}

    def test_labels_that_a_held_loss_leaves_out(self, private):
        criterion = Holds(nn.CrossEntropyLoss(ignore_index=1))
        found = trained(private, nn.Linear(4, 3), numbers(4), classes(), criterion=criterion)
        assert reasons(found) == {Problem.DIVIDED}

    @pytest.mark.parametrize(
        "criterion",
        [
            partial(F.cross_entropy, label_smoothing=0.1),
            Holds(nn.CrossEntropyLoss()),
            Holds(nn.MultiMarginLoss(weight=WEIGHTS)),
        ],
    )
    def test_other_losses_are_fine(self, private, criterion):
        found = trained(private, nn.Linear(4, 2), numbers(4), classes(2), criterion=criterion)
        assert certified(found)


def tied():
    """A weight that is used outside of its layer too, in a part that is computed again."""

    def part(self, x):
        hidden = self.layer(x)
        return hidden + F.linear(10.0 * hidden.detach(), self.layer.weight)

    def does(self, x):
        return checkpoint(partial(part, self), x.clone().requires_grad_(), use_reentrant=True)

    return Calls(does, layer=nn.Linear(4, 4, bias=False))


class TestCheckpoints:
    def test_what_autograd_hides_is_not_covered(self, private):
        found = trained(private, tied(), numbers(4), classes(4), "ghost")
        # What is hidden may also make the sum too long for its records, by the numbers drawn.
        assert reasons(found)
        assert reasons(found) <= {Problem.UNSEEN, Problem.TOO_LONG}

    @pytest.mark.parametrize(("mode", "reentrant"), [("ghost", False), ("hooks", True)])
    def test_checkpoints_are_fine(self, private, mode, reentrant):
        def does(self, x):
            return checkpoint(self.layer, x.clone().requires_grad_(), use_reentrant=reentrant)

        net = Calls(does, layer=nn.Linear(4, 3))
        assert certified(trained(private, net, numbers(4), classes(), mode))


def around(**options):
    layers = nn.Conv2d(1, 3, 3, padding=1, **options), nn.Tanh(), nn.Flatten(), nn.Linear(75, 3)
    return nn.Sequential(*layers)


class TestGhostLayers:
    def test_a_convolution_that_pads_with_its_own(self, private):
        x = numbers(1, 5, 5)
        for mode in ("circular", "reflect", "replicate"):
            found = trained(private, around(padding_mode=mode), x, classes(), "ghost")
            assert reasons(found) == {Problem.UNFIT}

    def test_it_is_fine_in_other_modes_or_with_a_layer_that_pads(self, private):
        x, layers = numbers(1, 5, 5), around(padding_mode="circular")
        assert certified(trained(private, layers, x, classes()))
        layers = nn.Sequential(nn.CircularPad2d(1), *around())
        layers[1].padding = (0, 0)
        assert certified(trained(private, layers, x, classes(), "ghost"))

    def test_bags_of_words(self, private):
        def does(self, ids):
            starts = torch.arange(0, ids.numel(), ids.shape[1])
            return self.out(self.bag(ids.flatten(), starts))

        ids = torch.randint(20, (RECORDS, 5))
        for mode, expected in (("ghost", {Problem.UNFIT}), ("hooks", set())):
            net = Calls(does, bag=nn.EmbeddingBag(20, 4, mode="sum"), out=nn.Linear(4, 3))
            assert reasons(trained(private, net, ids, classes(), mode)) == expected


def attention(softmax):
    """Tokens [records, tokens, features], weighed by a softmax."""

    def does(self, x):
        return self.out((self.softmax(self.layer(x)) * x[:, :, :1]).sum(1))

    return Calls(does, layer=nn.Linear(4, 5), softmax=softmax, out=nn.Linear(5, 3))


class TestSoftmax:
    @pytest.mark.parametrize(
        "softmax",
        [
            nn.Softmax(), nn.Softmax(0), nn.LogSoftmax(), nn.Softmin(), nn.Softmax(-3),
            nn.Softmax2d(),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.filterwarnings("ignore:Implicit dimension")
    def test_over_the_records(self, private, softmax, mode):
        found = trained(private, attention(softmax), numbers(6, 4), classes(), mode)
        assert Problem.MIXED in reasons(found)

    @pytest.mark.parametrize("softmax", [nn.Softmax(1), nn.LogSoftmax(-1), nn.Softmin(2)])
    def test_over_tokens_or_features_is_fine(self, private, softmax):
        assert certified(trained(private, attention(softmax), numbers(6, 4), classes()))

    def test_of_single_numbers(self, private):
        def does(self, x):
            return self.out(x) * self.softmax(x[:, 0])[:, None]

        net = Calls(does, softmax=nn.Softmax(), out=nn.Linear(4, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert reasons(trained(private, net, numbers(4), classes())) == {Problem.MIXED}

    def test_of_a_weight_or_over_time_first_is_fine(self, private):
        """The first batch has four records by chance, as many as the mixture has weights."""

        def does(self, x):
            mixture = self.softmax(self.shares.weight[0] * 2.0)
            return self.out((self.softmax(x.transpose(0, 1)) * mixture).sum(0))

        parts = {"softmax": nn.Softmax(0), "shares": nn.Linear(4, 1), "out": nn.Linear(4, 3)}
        net = Calls(does, **parts)
        net.shares.requires_grad_(False)
        assert certified(trained(private, net, numbers(29, 4), classes()))

    @pytest.mark.parametrize("mode", ["hooks", "functorch", "ew"])
    def test_in_the_criterion(self, private, mode):
        criterion = Holds(nn.NLLLoss(), nn.LogSoftmax(0))
        found = trained(private, nn.Linear(4, 3), numbers(4), classes(), mode, criterion)
        assert reasons(found) == {Problem.MIXED}

    def test_a_norm_over_the_batch_in_the_criterion(self, private):
        norm = nn.BatchNorm1d(3, affine=False, track_running_stats=False)
        criterion = Holds(nn.CrossEntropyLoss(), norm)
        found = trained(private, nn.Linear(4, 3), numbers(4), classes(), criterion=criterion)
        assert reasons(found) == {Problem.MIXED}


class TestEncoders:
    def train(self, private, given):
        made = private(net=nn.Linear(6, 2))
        monitor, encoder = watch(made), nn.Linear(4, 6)
        for x, y in made.loader:
            made.step(given(encoder, x), y)
        return monitor

    def test_one_outside_of_the_model_is_named(self, private):
        with pytest.warns(PrivacyWarning, match="without clipping or noise") as said:
            monitor = self.train(private, lambda encoder, x: torch.tanh(encoder(x)))
        assert monitor.warnings == [checks.ENCODED]
        assert len(said) == 1

    def test_features_that_are_not_trained_are_fine(self, private):
        assert certified(self.train(private, lambda encoder, x: encoder(x).detach()))


class TestReductions:
    @pytest.mark.parametrize(
        "criterion",
        [nn.CrossEntropyLoss(), F.cross_entropy, partial(F.cross_entropy, label_smoothing=0.1)],
    )
    def test_a_mean_that_is_not_undone(self, private, criterion):
        options = {"criterion": criterion, "loss_reduction": "sum"}
        found = trained(private, nn.Linear(4, 3), numbers(4), classes(), **options)
        assert reasons(found) == {Problem.UNSCALED}

    def test_a_sum_that_is_multiplied(self, private):
        criterion = nn.CrossEntropyLoss(reduction="sum")
        found = trained(private, nn.Linear(4, 3), numbers(4), classes(), criterion=criterion)
        assert found.warnings == [checks.SUMMED]
        assert not reasons(found)

    def test_sums_and_means_that_fit_are_fine(self, private):
        for how in ("sum", "mean"):
            criterion = nn.CrossEntropyLoss(reduction=how)
            options = {"criterion": criterion, "loss_reduction": how}
            assert certified(trained(private, nn.Linear(4, 3), numbers(4), classes(), **options))
