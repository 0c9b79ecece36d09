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

from attacked import Calls
from dprime.monitor import PrivacyWarning, checks
from dprime.monitor.problems import Problem
from watching import MODES, reasons, watch

RECORDS = 48
WEIGHTS = torch.tensor([1.0, 50.0])
SAMPLES = ("hooks", "functorch", "ew")


class Holds(nn.Module):
    """A criterion that holds another one."""

    def __init__(self, inner, before=None):
        super().__init__()
        self.inner = inner
        self.before = before or nn.Identity()

    def forward(self, outputs, targets):
        return self.inner(self.before(outputs), targets)


class Broadcasts(nn.Module):
    """Compares every output with one target."""

    def __init__(self):
        super().__init__()
        self.loss = nn.L1Loss()

    def forward(self, outputs, _):
        return self.loss(outputs, torch.ones(1))


class WithLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.loss = nn.Linear(4, 2), nn.CrossEntropyLoss(WEIGHTS)

    def forward(self, x, y):
        return self.loss(self.layer(x), y)


class Layout(nn.Module):
    def __init__(self, memory=torch.contiguous_format):
        super().__init__()
        self.memory = memory

    def forward(self, x):
        return x.contiguous(memory_format=self.memory)


def numbers(*shape):
    return torch.randn(RECORDS, *shape, generator=torch.Generator().manual_seed(5))


def classes(count=3):
    return torch.randint(count, (RECORDS,), generator=torch.Generator().manual_seed(6))


def linear(outputs=3, inputs=4):
    return partial(nn.Linear, inputs, outputs)


def trained(private, net, x, y, mode="hooks", criterion=None, steps=None, **options):
    """A monitor after one epoch."""
    loader = DataLoader(TensorDataset(x, y), batch_size=8)
    made = private(mode, net=net(), loader=loader, **options)
    if criterion is not None:
        made.criterion = criterion
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        monitor = watch(made)
        (steps or type(made).train)(made)
    return monitor


def over_time(made=None, *, frozen=False):
    """A convolution over time and features, of a batch that has time first in memory."""

    def does(self, x):
        by_time = x.permute(1, 0, 2).contiguous().permute(1, 2, 0)[:, None]
        return self.out(torch.tanh(self.conv(self.made(by_time))).mean((2, 3)))

    conv = nn.Conv2d(1, 4, 3)
    conv.weight.requires_grad_(not frozen)
    return Calls(does, conv=conv, out=nn.Linear(4, 3), made=made or nn.Identity())


def image(padding):
    """A convolution of images that have their channels last in memory."""
    conv, last = nn.Conv2d(2, 4, 3, padding=padding), Layout(torch.channels_last)
    net = nn.Sequential(last, conv, nn.Flatten(), nn.LazyLinear(3))
    net(numbers(2, 5, 6))
    return net


def around(padding=1, before=(), **options):
    conv = nn.Conv2d(1, 3, 3, padding=padding, **options)
    return nn.Sequential(*before, conv, nn.Tanh(), nn.Flatten(), nn.Linear(75, 3))


def tied():
    """A weight that is used outside of its layer too, in a part that is computed again."""

    def part(self, x):
        hidden = self.layer(x)
        return hidden + F.linear(10.0 * hidden.detach(), self.layer.weight)

    def does(self, x):
        return checkpoint(partial(part, self), x.clone().requires_grad_(), use_reentrant=True)

    return Calls(does, layer=nn.Linear(4, 4, bias=False))


def again(reentrant):
    """A layer whose activations are computed again."""

    def does(self, x):
        return checkpoint(self.layer, x.clone().requires_grad_(), use_reentrant=reentrant)

    return lambda: Calls(does, layer=nn.Linear(4, 3))


def bags():
    def does(self, ids):
        starts = torch.arange(0, ids.numel(), ids.shape[1])
        return self.out(self.bag(ids.flatten(), starts))

    return Calls(does, bag=nn.EmbeddingBag(20, 4, mode="sum"), out=nn.Linear(4, 3))


def attention(softmax):
    """Tokens [records, tokens, features], weighed by a softmax."""

    def does(self, x):
        return self.out((self.softmax(self.layer(x)) * x[:, :, :1]).sum(1))

    return lambda: Calls(does, layer=nn.Linear(4, 5), softmax=softmax, out=nn.Linear(5, 3))


def single_numbers():
    def does(self, x):
        return self.out(x) * self.softmax(x[:, 0])[:, None]

    return Calls(does, softmax=nn.Softmax(), out=nn.Linear(4, 3))


def mixture():
    """Of a weight, and over time first; the first batch has as many records by chance."""

    def does(self, x):
        shares = self.softmax(self.shares.weight[0] * 2.0)
        return self.out((self.softmax(x.transpose(0, 1)) * shares).sum(0))

    shares = nn.Linear(4, 1).requires_grad_(False)
    return Calls(does, softmax=nn.Softmax(0), shares=shares, out=nn.Linear(4, 3))


def given_labels(made):
    for x, y in made.loader:
        made.optimizer.zero_grad()
        made.model(x, y).backward()
        made.optimizer.step()


NORM = nn.BatchNorm1d(3, affine=False, track_running_stats=False)
PLAIN, IMAGES, TOKENS = (linear(), numbers(4)), numbers(1, 5, 5), numbers(6, 4)
TWO = (linear(2), numbers(4), classes(2))
ONE = (linear(1), numbers(4))
WORDS = torch.randint(20, (RECORDS, 5), generator=torch.Generator().manual_seed(1))
ATTACKS = [
    *(
        (Problem.SPREAD, *ONE, numbers(), mode, loss())
        for mode in SAMPLES
        for loss in (nn.MSELoss, nn.L1Loss, nn.SmoothL1Loss, nn.HuberLoss)
    ),
    (Problem.SPREAD, *ONE, numbers(), "hooks", Holds(nn.MSELoss()).eval()),
    (Problem.MISREAD, over_time, numbers(7, 6), classes()),
    *(
        (Problem.DIVIDED, *TWO, "hooks", criterion)
        for criterion in (
            nn.CrossEntropyLoss(WEIGHTS),
            Holds(nn.CrossEntropyLoss(WEIGHTS)),
            Holds(Holds(nn.NLLLoss(WEIGHTS)), nn.LogSoftmax(1)),
            partial(F.cross_entropy, weight=WEIGHTS),
            Holds(nn.CrossEntropyLoss(ignore_index=1)),
        )
    ),
    (Problem.DIVIDED, WithLoss, numbers(4), classes(2), "hooks", None, given_labels),
    *(
        (Problem.UNFIT, partial(around, padding_mode=mode), IMAGES, classes(), "ghost")
        for mode in ("circular", "reflect", "replicate")
    ),
    (Problem.UNFIT, bags, WORDS, classes(), "ghost"),
    (Problem.MIXED, single_numbers, numbers(4), classes()),
    *(
        (Problem.MIXED, *PLAIN, classes(), mode, Holds(nn.NLLLoss(), nn.LogSoftmax(0)))
        for mode in SAMPLES
    ),
    (Problem.MIXED, *PLAIN, classes(), "hooks", Holds(nn.CrossEntropyLoss(), NORM)),
]
FINE = [
    *((*ONE, numbers(1), mode, nn.MSELoss()) for mode in SAMPLES),
    (*ONE, numbers(5), "hooks", nn.MSELoss()),
    (*ONE, numbers(), "hooks", Broadcasts()),
    (partial(over_time, Layout()), numbers(7, 6), classes()),
    (partial(over_time, frozen=True), numbers(7, 6), classes()),
    *((partial(image, 1), numbers(2, 5, 6), classes(), mode) for mode in ("hooks", "functorch")),
    (*TWO, "hooks", partial(F.cross_entropy, label_smoothing=0.1)),
    (*TWO, "hooks", Holds(nn.CrossEntropyLoss())),
    (*TWO, "hooks", Holds(nn.MultiMarginLoss(weight=WEIGHTS))),
    (again(reentrant=False), numbers(4), classes(), "ghost"),
    (again(reentrant=True), numbers(4), classes(), "hooks"),
    (partial(around, padding_mode="circular"), IMAGES, classes()),
    (partial(around, 0, (nn.CircularPad2d(1),)), IMAGES, classes(), "ghost"),
    (bags, WORDS, classes()),
    *(
        (attention(softmax), TOKENS, classes())
        for softmax in (nn.Softmax(1), nn.LogSoftmax(-1), nn.Softmin(2))
    ),
    (mixture, numbers(29, 4), classes()),
]


@pytest.mark.parametrize("case", range(len(ATTACKS)))
def test_a_record_that_moves_the_sum_by_more(private, case):
    problem, *made = ATTACKS[case]
    assert reasons(trained(private, *made)) == {problem}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("case", range(len(FINE)))
def test_what_is_like_it_and_fine(private, case):
    monitor = trained(private, *FINE[case])
    assert (monitor.warnings, reasons(monitor)) == ([], set())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("softmax", [
    nn.Softmax(), nn.Softmax(0), nn.LogSoftmax(), nn.Softmin(), nn.Softmax(-3), nn.Softmax2d(),
])  # fmt: skip
def test_a_softmax_over_the_records(private, softmax, mode):
    assert Problem.MIXED in reasons(trained(private, attention(softmax), TOKENS, classes(), mode))


@pytest.mark.parametrize("padding", [0, 1, "valid", "same"])
def test_channels_last_only_harms_in_ghost_mode(private, padding):
    """Opacus' gradients are wrong, but of the record alone."""
    found = trained(private, partial(image, padding), numbers(2, 5, 6), classes(), "ghost")
    assert reasons(found) & {Problem.MISREAD, Problem.TOO_LONG}


def test_what_opacus_reads_there():
    """The premise: with channels last it reads the own record's wrong places only."""
    torch.manual_seed(1)
    layer, x = nn.Conv2d(2, 2, 3), numbers(2, 5, 4)[:3]
    given = torch.randn(3, 2, 3, 2)
    plain = compute_conv_grad_sample(layer, [x], given)[layer.weight]
    last = x.contiguous(memory_format=torch.channels_last)
    wrong = compute_conv_grad_sample(layer, [last], given)[layer.weight]
    last[1:] += 10.0
    other = compute_conv_grad_sample(layer, [last], given)[layer.weight]
    assert not torch.allclose(plain, wrong)
    assert torch.equal(wrong[0], other[0])


def test_what_autograd_hides_is_not_covered(private):
    """What is hidden may also make the sum too long for its records, by the numbers drawn."""
    found = reasons(trained(private, tied, numbers(4), classes(4), "ghost"))
    assert found
    assert found <= {Problem.UNSEEN, Problem.TOO_LONG}


@pytest.mark.parametrize("detached", [False, True])
def test_an_encoder_outside_of_the_model_is_named(private, detached):
    """Features that are not trained are fine."""
    made = private(net=nn.Linear(6, 2))
    monitor, encoder = watch(made), nn.Linear(4, 6)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PrivacyWarning)
        for x, y in made.loader:
            made.step(encoder(x).detach() if detached else torch.tanh(encoder(x)), y)
    expected = [] if detached else [checks.ENCODED]
    assert monitor.warnings == [str(w.message) for w in said] == expected


SUM, MEAN = nn.CrossEntropyLoss(reduction="sum"), nn.CrossEntropyLoss()
SMOOTHED = partial(F.cross_entropy, label_smoothing=0.1)


@pytest.mark.parametrize(
    ("criterion", "reduction", "problems", "warned"),
    [
        *((each, "sum", {Problem.UNSCALED}, None) for each in (MEAN, F.cross_entropy, SMOOTHED)),
        (SUM, "mean", set(), [checks.SUMMED]),
        (SUM, "sum", set(), []),
        (MEAN, "mean", set(), []),
    ],
)
def test_sums_and_means_that_do_not_fit(private, criterion, reduction, problems, warned):
    options = {"criterion": criterion, "loss_reduction": reduction}
    found = trained(private, *PLAIN, classes(), **options)
    assert reasons(found) == problems
    assert warned is None or found.warnings == warned
