"""Trainings with Opacus whose gradients do not have one clipped row for each record.

Each attack shows first that one record moves the clipped sum by more than the clipping norm, then
that no certificate is left.
"""

import pytest
import torch
from opacus.layers import DPLSTM, DPMultiheadAttention
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader, TensorDataset

from attacked import (
    QUIET,
    STEPS,
    TWO,
    Calls,
    Clipping,
    certified,
    disagreeing,
    linear,
    not_covered,
    sequences,
    vectors,
)
from dprime.monitor.problems import Problem

pytestmark = QUIET


class TimeFirst(nn.Module):
    """Takes [time, records, features], as `pad_sequence` gives it."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, TWO)

    def forward(self, x):
        return self.b(torch.relu(self.a(x))).mean(0)


class TransposedInside(TimeFirst):
    def forward(self, x):
        return super().forward(x.transpose(0, 1))


class Loss(TimeFirst):
    def forward(self, x):
        return super().forward(x).logsumexp(1).mean()


class Own(Clipping):
    def loss(self, x, y):
        return self.model(x)


def transposed(rows):
    return torch.stack([x for x, _ in rows], 1), torch.stack([y for _, y in rows])


class TestRowsThatAreTimeSteps:
    """Opacus takes the first dimension for the records: it clips time steps, and they are fewer."""

    def test_time_first_in_the_loader(self):
        net, x, y = disagreeing(TransposedInside(), *sequences())
        net.__class__ = TimeFirst
        loader = DataLoader(TensorDataset(x, y), batch_size=32, collate_fn=transposed)
        training = Clipping(net, loader=loader)
        first = training.clipped_sum(x[:32].transpose(0, 1), y[:32])
        without = training.clipped_sum(x[1:32].transpose(0, 1), y[1:32])
        assert float((first - without).norm()) > 1.5
        assert not_covered(training.watched(), Problem.MULTIPLIED)

    def test_time_first_inside_of_the_model(self):
        training = Clipping(*disagreeing(TransposedInside(), *sequences()), batch=32)
        assert training.gives_away(1.5, Problem.MULTIPLIED)

    def test_time_first_with_a_loss_as_output(self):
        """No output has the records: an unchanging number of rows tells."""
        data = TensorDataset(*sequences(320))
        loader = DataLoader(data, batch_size=32, collate_fn=transposed)
        assert not_covered(Own(Loss(), loader=loader).watched(2), Problem.MULTIPLIED)

    def test_records_that_are_left_out_stay_covered(self):
        """By something of the record itself."""

        def collate(rows):
            kept = [(x, y) for x, y in rows if x[0] < 1.0]
            if not kept:
                return torch.zeros(0, 6), torch.zeros(0, dtype=torch.long)
            return torch.stack([x for x, _ in kept]), torch.stack([y for _, y in kept])

        data = TensorDataset(torch.randn(160, 6), torch.randint(0, 2, (160,)))
        loader = DataLoader(data, batch_size=16, collate_fn=collate)
        assert certified(Clipping(linear(), loader=loader).watched(4))


class Packed(nn.Module):
    """A recurrent layer on sequences whose lengths are in the last feature."""

    ordered = False

    def __init__(self):
        super().__init__()
        self.r, self.h = DPLSTM(6, 8, batch_first=True), nn.Linear(8, TWO)

    def forward(self, x):
        if not len(x):
            return self.h(x.new_zeros(0, 8))
        lengths = x[:, :, -1].sum(1).long()
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=self.ordered)
        return self.h(self.r(packed)[1][0][-1])


def lengths(count=160):
    """Sequences of different lengths."""
    x, y = torch.randn(count, STEPS, 6), torch.randint(0, TWO, (count,))
    long = torch.randint(1, STEPS + 1, (count,))
    x[:, :, -1] = (torch.arange(STEPS)[None] < long[:, None]).float()
    return x, y


class InOrder(Clipping):
    def backward(self, x, y):
        order = x[:, :, -1].sum(1).argsort(descending=True)
        super().backward(x[order], y[order])


class TestPackedSequences:
    """The rows of the recurrent layer are in order of length, those of others in batch order."""

    def test_rows_of_different_records_are_clipped_together(self):
        (x, y), net = lengths(), Packed()
        net.h.weight.data.mul_(40.0)
        training = Clipping(net, x, y, norm=0.05)
        together = training.clipped_sum(x[:16], y[:16])
        one_by_one = sum(training.clipped_sum(x[[k]], y[[k]]) for k in range(16))
        assert float((together - one_by_one).norm()) > 0.2 * training.norm
        assert not_covered(training.watched(), Problem.REORDERED)

    def test_sequences_in_order_stay_covered(self):
        net = Packed()
        net.ordered = True
        assert certified(InOrder(net, *lengths()).watched(2))


def anchored(anchors):
    """The similarity of records to public anchors, with one encoder for both."""
    return Calls(lambda net, x: net.enc(x) @ net.enc(anchors).T, enc=nn.Linear(6, 8))


def pairs():
    def does(net, x):
        return net.head(net.enc(x[:, :3]) * net.enc(x[:, 3:]))

    return Calls(does, enc=nn.Linear(3, 8), head=nn.Linear(8, TWO))


class Twice(Clipping):
    """Two calls of the model before one backward."""

    def loss(self, x, y):
        half = (len(x) + 1) // 2
        return super().loss(x[:half], y[:half]) + super().loss(x[half:], y[half:])


class Permuted(Clipping):
    def loss(self, x, y):
        return super().loss(x, y) + super().loss(x.roll(1, 0), y.roll(1))


@pytest.mark.parametrize("mode", ["hooks", "functorch"])
class TestTwoCalls:
    """Opacus adds the rows of two calls, whatever they are of."""

    def test_anchors_with_gradients_of_all_records(self, mode):
        """Their rows are added to those of the first records."""
        x, _ = vectors(320)
        y = torch.randint(0, 2, (320, 6)).float()
        x[0] = 300.0
        net = anchored(1.0 + 0.3 * torch.randn(6, 6))
        with torch.no_grad():
            y[0] = (net(x[:1])[0] < 0).float()
        training = Clipping(net, x, y, mode=mode, batch=32, criterion=nn.BCEWithLogitsLoss())
        assert training.gives_away(2.0, Problem.UNEVEN)

    def test_two_calls_for_each_record_stay_covered(self, mode):
        assert certified(Clipping(pairs(), *vectors(), mode=mode).watched(2))

    @pytest.mark.parametrize("kind", [Twice, Permuted])
    def test_rows_of_different_records_are_added(self, kind, mode):
        net, x, y = disagreeing(linear(), *vectors(640))
        training = kind(net, x, y, mode=mode, batch=64, norm=0.1)
        last = [*range(1, 65), 0]
        assert training.moved(x[last], y[last], without=slice(64)) > 1.3
        reason = training.watched().monitor.mechanism().reason
        assert reason in (Problem.MULTIPLIED, Problem.UNEVEN)
        assert not_covered(training, Problem(reason))


def attention(**options):
    def does(net, x):
        e = net.e(x)
        return net.h(net.attend(e, e, e, need_weights=False)[0].mean(1))

    attend = DPMultiheadAttention(8, 2, **options)
    return Calls(does, e=nn.Linear(6, 8), h=nn.Linear(8, TWO), attend=attend)


def test_records_attend_to_each_other_unless_the_batch_comes_first():
    data = sequences()
    assert Clipping(attention(), *data, norm=0.1).gives_away(2.0, Problem.MIXED)
    assert certified(Clipping(attention(batch_first=True), *data).watched())


def positions():
    """Adds an embedding of the positions, which are as many as the records of a batch."""

    def does(net, x):
        return net.h(torch.tanh(net.f(x) + net.pos(torch.arange(x.shape[1])))).mean(1)

    return Calls(does, pos=nn.Embedding(16, 8), f=nn.Linear(6, 8), h=nn.Linear(8, 1))


def test_as_many_positions_as_records():
    """The rows of an embedding of positions are positions: a record is in all of them."""
    x, y = torch.randn(320, 16, 6), torch.randn(320, 1)
    y[0] = 5e3
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    made = {"loader": loader, "poisson_sampling": False, "criterion": nn.MSELoss()}
    training = Clipping(positions(), **made)
    other = torch.cat([-y[:1], y[1:16]])
    one, two = training.clipped_sum(x[:16], y[:16]), training.clipped_sum(x[:16], other)
    assert float((one - two).norm()) > 3.0  # a replaced record may move it by 2
    assert not_covered(training.watched(), Problem.UNEVEN)


def test_the_same_batch_in_every_step_stays_covered():
    assert certified(Clipping(linear(), *vectors(16), poisson_sampling=False).watched(12))


def tokens():
    """The first token matters most."""

    def does(net, x):
        weights = torch.tensor([10.0] + [1e-5] * (x.shape[1] - 1))
        return (net.h(net.e(x)) * weights[:, None]).sum(1)

    words = nn.Embedding(200, 4, scale_grad_by_freq=True)
    return Calls(does, e=words, h=nn.Linear(4, TWO).requires_grad_(False))


def test_a_record_changes_the_counts_that_scale_the_tokens_of_all_others():
    """Autograd divides a token's gradient by its count in the batch; the clipping norm does not."""
    x, y = torch.full((160, 40), 199), torch.randint(0, TWO, (160,))
    x[:, 0] = torch.arange(160) % 40
    x[0] = torch.arange(40)
    assert Clipping(tokens(), x, y, mode="ghost", batch=40).gives_away(2.0, Problem.MIXED)
    training = Clipping(tokens(), x, y, batch=40)
    assert training.moved(x[:40], y[:40]) < 1.001  # other modes
    assert certified(training.watched())
