"""Trainings with Opacus whose gradients do not have one clipped row for each record.

Each attack shows first that one record moves the clipped sum by more than the clipping norm, then
that no certificate is left.
"""

import pytest
import torch
from opacus import PrivacyEngine
from opacus.layers import DPLSTM, DPMultiheadAttention
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader, TensorDataset

from dprime import DPSGD
from dprime.monitor import Monitor

pytestmark = [
    pytest.mark.filterwarnings("ignore:Full backward hook is firing"),
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore::dprime.monitor.PrivacyWarning"),
]


class Training:
    """A small private training."""

    def __init__(self, net, data, mode="hooks", *, batch=16, criterion=None, norm=1.0, **made):
        criterion = criterion or nn.CrossEntropyLoss()
        loader = made.pop("loader", None) or DataLoader(data, batch_size=batch)
        self.engine = PrivacyEngine(accountant="rdp")
        found = self.engine.make_private(
            module=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.01), data_loader=loader,
            noise_multiplier=4.0, max_grad_norm=norm, grad_sample_mode=mode, criterion=criterion,
            **made,
        )  # fmt: skip
        self.model, self.optimizer, self.loader = found[0], found[1], found[-1]
        self.criterion = found[2] if len(found) == 4 else criterion
        self.norm = norm

    def backward(self, x, y):
        self.optimizer.zero_grad()
        self.criterion(self.model(x), y).backward()

    def watched(self, epochs=1):
        """The monitor after a training."""
        monitor = Monitor(
            self.engine, model=self.model, optimizer=self.optimizer, data_loader=self.loader,
            criterion=self.criterion, conditions={"delta": 1e-3}, show=None,
        )  # fmt: skip
        for _ in range(epochs):
            for x, y in self.loader:
                self.backward(x, y)
                self.optimizer.step()
        return monitor

    def clipped_sum(self, x, y):
        """Of one batch, before the noise."""
        self.backward(x, y)
        clips = "accumulate" if hasattr(self.optimizer, "accumulate") else "clip_and_accumulate"
        getattr(self.optimizer, clips)()
        parts = [p.summed_grad.flatten().clone() for p in self.optimizer.params]
        self.optimizer.zero_grad()
        return torch.cat(parts)

    def moved(self, x, y, without=slice(1, None)):
        """How far the first record moves the clipped sum, in clipping norms."""
        with_it = self.clipped_sum(x, y)
        return float((with_it - self.clipped_sum(x[without], y[without])).norm()) / self.norm


def not_covered(monitor, reason):
    """That nothing is certified, for this reason, with a warning that says what to do."""
    assert getattr(monitor.mechanism(), "reason", None) == reason
    assert monitor.curve().advantage() == 1.0
    assert any(len(warning) > 80 for warning in monitor.warnings)
    return True


def covered(monitor):
    return monitor.curve().advantage() < 1.0


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def vectors(count=160, features=6, classes=2):
    """The first record is long and has the label that the network below does not expect."""
    x, y = torch.randn(count, features), torch.randint(0, classes, (count,))
    x *= 0.1
    x[0] = 3.0
    return x, y


def disagreeing(net, x, y):
    """The first record gets the label that is least expected of it."""
    with torch.no_grad():
        y[0] = net(x[:1])[0].argmin()
    return net


class TestLossesOfAnotherShape:
    """Losses of shape [records, 1] are multiplied with factors of shape [records]: a table."""

    @pytest.mark.parametrize("criterion", [nn.BCEWithLogitsLoss, nn.MSELoss])
    def test_no_record_is_clipped_for_itself(self, criterion):
        x, _ = vectors()
        x *= 0.2
        x[0] = 0.25
        y = torch.ones(len(x), 1)
        net = nn.Linear(6, 1, bias=False)
        net.weight.data.fill_(-1.0)
        training = Training(net, TensorDataset(x, y), "ghost", criterion=criterion())
        assert training.moved(x[:16], y[:16]) > 4.0
        assert not_covered(training.watched(), "the loss was not one number for each record")

    def test_one_loss_for_each_record_is_covered(self):
        x, y = vectors()
        net = nn.Sequential(nn.Linear(6, 1), nn.Flatten(0))
        made = Training(net, TensorDataset(x, y.float()), "ghost", criterion=nn.MSELoss())
        assert covered(made.watched(2))


class TestFactorsThatDoNotClip:
    def test_another_norm_during_backward(self):
        """The model clips to 50, and says 1 to whoever asks later."""

        class Loud(Training):
            def backward(self, x, y):
                self.model.max_grad_norm = 50.0
                super().backward(x, y)
                self.model.max_grad_norm = 1.0

        x, y = vectors()
        net = disagreeing(nn.Linear(6, 2), x, y)
        training = Loud(net, TensorDataset(x, y), "ghost")
        assert training.moved(x[:16], y[:16]) > 3.0
        spent = training.watched().curve().advantage()
        assert spent > 0.99 * DPSGD(4.0 / 50.0, 0.1, 10).curve("zero-out").advantage()

    def test_one_factor_for_the_whole_batch(self):
        x, y = vectors()
        net = disagreeing(nn.Linear(6, 2), x, y)
        training = Training(net, TensorDataset(x, y), "ghost")
        model = training.model

        def mean():
            factors = (1.0 / (model.get_norm_sample() + 1e-6)).clamp(max=1.0)
            return torch.full_like(factors, float(factors.mean()))

        model.get_clipping_coef = mean
        assert training.moved(x[:16], y[:16]) > 3.0
        assert not_covered(training.watched(), "the optimizer's own clipping or noise was replaced")

    def test_a_hook_that_multiplies_gradients(self):
        def triple(p):
            p.grad.mul_(3.0)

        x, y = vectors()
        net = disagreeing(nn.Linear(6, 2), x, y)
        training = Training(net, TensorDataset(x, y), "ghost")
        for p in net.parameters():
            p.register_post_accumulate_grad_hook(triple)
        assert training.moved(x[:16], y[:16]) > 2.5
        assert not_covered(training.watched(), "gradients were changed after the clipping")

    def test_a_hook_that_undoes_the_factors(self):
        class Normalised(nn.Module):
            def forward(self, x):
                if x.requires_grad:
                    x.register_hook(lambda g: 0.5 * g / (g.norm(dim=1, keepdim=True) + 1e-9))
                return x

        x, y = vectors()
        x[:40] = 3.0 * torch.randn(40, 6).sign()
        net = nn.Sequential(nn.Linear(6, 8), Normalised(), nn.Linear(8, 2))
        training = Training(net, TensorDataset(x, y), "ghost")
        assert training.moved(x[:16], y[:16]) > 3.0
        assert not_covered(training.watched(), "a part of a gradient was not clipped")

    def test_a_second_pass_without_the_factors(self):
        class ByHand(Training):
            def backward(self, x, y):
                self.optimizer.zero_grad()
                losses = functional.cross_entropy(self.model(x), y, reduction="none")
                losses.mean().backward(retain_graph=True)
                self.optimizer.zero_grad()
                factors = self.model.get_clipping_coef()
                self.model.disable_hooks()
                (losses * factors.mean()).sum().backward()
                self.model.enable_hooks()

        x, y = vectors()
        net = disagreeing(nn.Linear(6, 2), x, y)
        training = ByHand(net, TensorDataset(x, y), "ghost")
        assert training.moved(x[:16], y[:16]) > 3.0
        assert not_covered(training.watched(), "the optimizer's own clipping or noise was replaced")


STEPS, CLASSES = 5, 2


class TimeFirst(nn.Module):
    """Takes [time, records, features], as `pad_sequence` gives it."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, CLASSES)

    def forward(self, x):
        return self.b(torch.relu(self.a(x))).mean(0)


class TransposedInside(TimeFirst):
    def forward(self, x):
        return super().forward(x.transpose(0, 1))


def sequences(count=160, features=6):
    x, y = torch.randn(count, STEPS, features) * 0.1, torch.randint(0, CLASSES, (count,))
    x[0] = 30.0
    return x, y


class TestRowsThatAreTimeSteps:
    """Opacus takes the first dimension for the records: it clips time steps, and they are fewer."""

    def test_time_first_in_the_loader(self):
        def collate(rows):
            return torch.stack([x for x, _ in rows], 1), torch.stack([y for _, y in rows])

        x, y = sequences()
        net = disagreeing(TransposedInside(), x, y)
        net.__class__ = TimeFirst
        loader = DataLoader(TensorDataset(x, y), batch_size=32, collate_fn=collate)
        training = Training(net, None, loader=loader)
        first = training.clipped_sum(x[:32].transpose(0, 1), y[:32])
        without = training.clipped_sum(x[1:32].transpose(0, 1), y[1:32])
        assert float((first - without).norm()) > 1.5
        reason = "other records were clipped than were drawn"
        assert not_covered(training.watched(), reason)

    def test_time_first_inside_of_the_model(self):
        x, y = sequences()
        net = disagreeing(TransposedInside(), x, y)
        training = Training(net, TensorDataset(x, y), batch=32)
        assert training.moved(x[:32], y[:32]) > 1.5
        reason = "other records were clipped than were drawn"
        assert not_covered(training.watched(), reason)

    def test_time_first_with_a_loss_as_output(self):
        """No output has the records: an unchanging number of rows tells."""

        class Loss(TimeFirst):
            def forward(self, x):
                return super().forward(x).logsumexp(1).mean()

        class Own(Training):
            def backward(self, x, y):
                self.optimizer.zero_grad()
                self.model(x).backward()

        def collate(rows):
            return torch.stack([x for x, _ in rows], 1), torch.stack([y for _, y in rows])

        x, y = sequences(320)
        loader = DataLoader(TensorDataset(x, y), batch_size=32, collate_fn=collate)
        training = Own(Loss(), None, loader=loader)
        reason = "other records were clipped than were drawn"
        assert not_covered(training.watched(2), reason)

    def test_records_that_are_left_out_stay_covered(self):
        """By something of the record itself."""

        def collate(rows):
            kept = [(x, y) for x, y in rows if x[0] < 1.0]
            if not kept:
                return torch.zeros(0, 6), torch.zeros(0, dtype=torch.long)
            return torch.stack([x for x, _ in kept]), torch.stack([y for _, y in kept])

        data = TensorDataset(torch.randn(160, 6), torch.randint(0, 2, (160,)))
        loader = DataLoader(data, batch_size=16, collate_fn=collate)
        assert covered(Training(nn.Linear(6, 2), None, loader=loader).watched(4))


class Packed(nn.Module):
    """A recurrent layer on sequences whose lengths are in the last feature."""

    def __init__(self):
        super().__init__()
        self.r, self.h = DPLSTM(6, 8, batch_first=True), nn.Linear(8, CLASSES)

    def forward(self, x):
        if not len(x):
            return self.h(x.new_zeros(0, 8))
        lengths = x[:, :, -1].sum(1).long()
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=self.ordered)
        return self.h(self.r(packed)[1][0][-1])

    ordered = False


def lengths(count, ordered=False):
    """Sequences of different lengths; the first record is the longest, or all come in order."""
    x, y = torch.randn(count, STEPS, 6), torch.randint(0, CLASSES, (count,))
    long = torch.randint(1, STEPS + 1, (count,))
    long = long.sort(descending=True).values if ordered else long
    x[:, :, -1] = (torch.arange(STEPS)[None] < long[:, None]).float()
    return x, y


class TestPackedSequences:
    """The rows of the recurrent layer are in order of length, those of others in batch order."""

    def test_rows_of_different_records_are_clipped_together(self):
        x, y = lengths(160)
        net = Packed()
        net.h.weight.data.mul_(40.0)
        training = Training(net, TensorDataset(x, y), norm=0.05)
        together = training.clipped_sum(x[:16], y[:16])
        one_by_one = sum(training.clipped_sum(x[[k]], y[[k]]) for k in range(16))
        assert float((together - one_by_one).norm()) > 0.2 * training.norm
        reason = "a recurrent layer had the records in another order"
        assert not_covered(training.watched(), reason)

    def test_sequences_in_order_stay_covered(self):
        class InOrder(Training):
            def backward(self, x, y):
                order = x[:, :, -1].sum(1).argsort(descending=True)
                super().backward(x[order], y[order])

        x, y = lengths(160)
        net = Packed()
        net.ordered = True
        assert covered(InOrder(net, TensorDataset(x, y)).watched(2))


class Anchors(nn.Module):
    """The similarity of records to public anchors, with one encoder for both."""

    def __init__(self, anchors):
        super().__init__()
        self.enc, self.anchors = nn.Linear(6, 8), anchors

    def forward(self, x):
        return self.enc(x) @ self.enc(self.anchors).T


class TestAnchors:
    """Opacus adds the anchors' rows, with gradients of all records, to those of the first ones."""

    @pytest.mark.parametrize("mode", ["hooks", "functorch"])
    def test_the_rows_of_another_call_are_added(self, mode):
        x, _ = vectors(320)
        y = torch.randint(0, 2, (320, 6)).float()
        x[0] = 300.0
        net = Anchors(1.0 + 0.3 * torch.randn(6, 6))
        with torch.no_grad():
            y[0] = (net(x[:1])[0] < 0).float()
        loss = nn.BCEWithLogitsLoss()
        training = Training(net, TensorDataset(x, y), mode, batch=32, criterion=loss)
        assert training.moved(x[:32], y[:32]) > 2.0
        reason = "a gradient did not have one row for each record"
        assert not_covered(training.watched(), reason)

    @pytest.mark.parametrize("mode", ["hooks", "functorch"])
    def test_two_calls_for_each_record_stay_covered(self, mode):
        class Pairs(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc, self.head = nn.Linear(3, 8), nn.Linear(8, CLASSES)

            def forward(self, x):
                return self.head(self.enc(x[:, :3]) * self.enc(x[:, 3:]))

        x, y = vectors()
        assert covered(Training(Pairs(), TensorDataset(x, y), mode).watched(2))


class Twice(Training):
    """Two calls of the model before one backward."""

    def losses(self, x, y):
        half = (len(x) + 1) // 2
        for part in (slice(half), slice(half, None)):
            yield self.criterion(self.model(x[part]), y[part])

    def backward(self, x, y):
        self.optimizer.zero_grad()
        sum(self.losses(x, y)).backward()


class Permuted(Twice):
    def losses(self, x, y):
        for order in (torch.arange(len(x)), torch.arange(len(x)).roll(1)):
            yield self.criterion(self.model(x[order]), y[order])


class TestTwoCalls:
    """Opacus adds the rows of two calls, whatever records they are of."""

    @pytest.mark.parametrize("mode", ["hooks", "functorch"])
    @pytest.mark.parametrize("kind", [Twice, Permuted])
    def test_rows_of_different_records_are_added(self, kind, mode):
        x, y = vectors(640)
        net = disagreeing(nn.Linear(6, 2), x, y)
        training = kind(net, TensorDataset(x, y), mode, batch=64, norm=0.1)
        last = [*range(1, 65), 0]
        assert training.moved(x[last], y[last], without=slice(64)) > 1.3
        reason = "other records were clipped than were drawn"
        uneven = "a gradient did not have one row for each record"
        spent = training.watched()
        assert spent.mechanism().reason in (reason, uneven)
        assert not_covered(spent, spent.mechanism().reason)


class Attention(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.e, self.h = nn.Linear(6, 8), nn.Linear(8, CLASSES)
        self.attend = DPMultiheadAttention(8, 2, **options)

    def forward(self, x):
        e = self.e(x)
        return self.h(self.attend(e, e, e, need_weights=False)[0].mean(1))


class TestAttention:
    """Attention takes the first dimension for time, unless it is told otherwise."""

    def test_records_attend_to_each_other(self):
        x, y = sequences()
        training = Training(Attention(), TensorDataset(x, y), norm=0.1)
        assert training.moved(x[:16], y[:16]) > 2.0
        assert not_covered(training.watched(), "records of a batch are mixed")

    def test_records_first_stays_covered(self):
        x, y = sequences()
        training = Training(Attention(batch_first=True), TensorDataset(x, y))
        assert covered(training.watched())


class Positions(nn.Module):
    """Adds an embedding of the positions, which are as many as the records of a batch."""

    def __init__(self):
        super().__init__()
        self.pos, self.f, self.h = nn.Embedding(16, 8), nn.Linear(6, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.h(torch.tanh(self.f(x) + self.pos(torch.arange(x.shape[1])))).mean(1)


class TestPositions:
    """The rows of an embedding of positions are positions: a record is in all of them."""

    def trained(self, positions):
        x, y = torch.randn(320, positions, 6), torch.randn(320, 1)
        y[0] = 5e3
        loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
        made = {"loader": loader, "poisson_sampling": False, "criterion": nn.MSELoss()}
        return Training(Positions(), None, **made), x[:16], y[:16]

    def test_as_many_as_records(self):
        training, x, y = self.trained(16)
        other = torch.cat([-y[:1], y[1:]])
        one, two = training.clipped_sum(x, y), training.clipped_sum(x, other)
        assert float((one - two).norm()) > 3.0  # a replaced record may move it by 2
        reason = "a gradient did not have one row for each record"
        assert not_covered(training.watched(), reason)

    def test_the_same_batch_in_every_step_stays_covered(self):
        x, y = vectors(16)
        made = {"poisson_sampling": False, "batch": 16}
        training = Training(nn.Linear(6, 2), TensorDataset(x, y), **made)
        assert covered(training.watched(12))


class Tokens(nn.Module):
    """The first token matters most."""

    def __init__(self, **options):
        super().__init__()
        self.e, self.h = nn.Embedding(200, 4, **options), nn.Linear(4, CLASSES)
        self.h.requires_grad_(False)

    def forward(self, x):
        weights = torch.tensor([10.0] + [1e-5] * (x.shape[1] - 1))
        return (self.h(self.e(x)) * weights[:, None]).sum(1)


class TestScaledByFrequency:
    """Autograd divides a token's gradient by its count in the batch; the clipping norm does not."""

    def tokens(self):
        x, y = torch.full((160, 40), 199), torch.randint(0, CLASSES, (160,))
        x[:, 0] = torch.arange(160) % 40
        x[0] = torch.arange(40)
        return x, y

    def test_a_record_changes_the_counts_of_all_others(self):
        x, y = self.tokens()
        net = Tokens(scale_grad_by_freq=True)
        training = Training(net, TensorDataset(x, y), "ghost", batch=40)
        assert training.moved(x[:40], y[:40]) > 2.0
        assert not_covered(training.watched(), "records of a batch are mixed")

    def test_other_modes_stay_covered(self):
        x, y = self.tokens()
        net = Tokens(scale_grad_by_freq=True)
        training = Training(net, TensorDataset(x, y), batch=40)
        assert training.moved(x[:40], y[:40]) < 1.001
        assert covered(training.watched())


class TestNormsOfAnEarlierBatch:
    """Opacus keeps the norms of a weight that had no gradient, and clips later records by them."""

    def test_a_layer_frozen_on_the_way(self):
        class Freezing(Training):
            steps = 0

            def backward(self, x, y):
                self.steps += 1
                if self.steps == 2:
                    self.model._module[0].requires_grad_(False)
                super().backward(x, y)

        x, y = vectors()
        sums = []
        for first in (0.1, 1000.0):
            x[0] = first
            torch.manual_seed(1)
            net = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 2))
            training = Freezing(net, TensorDataset(x, y), "ghost", poisson_sampling=False)
            training.backward(x[:16], y[:16])
            training.backward(x[16:32], y[16:32])
            sums.append(torch.cat([p.grad.flatten() for p in net[1].parameters()]))
        assert float((sums[0] - sums[1]).norm()) > 0.1  # the record is not in that batch
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 2))
        training = Freezing(net, TensorDataset(x, y), "ghost", poisson_sampling=False)
        assert not_covered(training.watched(), "records were clipped by norms of an earlier batch")

    def test_a_call_without_backward(self):
        class Called(Training):
            steps = 0

            def backward(self, x, y):
                self.steps += 1
                super().backward(x, y)
                if self.steps == 8:  # the next look at single records is at the call 16
                    self.model(x)

        x, y = torch.rand(160, 1, 6, 6), torch.randint(0, CLASSES, (160,))
        net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Conv2d(4, CLASSES, 4), nn.Flatten())
        data = TensorDataset(x, y)
        training = Called(net, data, "ghost", norm=0.05, poisson_sampling=False)
        monitor = training.watched()
        x[0] = 40.0
        assert training.moved(x[:16], y[:16], without=[5, *range(1, 16)]) > 2.5
        assert not_covered(monitor, "records were clipped by norms of an earlier batch")
