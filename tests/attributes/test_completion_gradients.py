"""Products of clipped gradients agree with the gradients themselves, whatever the layers."""

from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dprime import InputError
from dprime.attributes import worst_pair
from dprime.attributes.completion_gradients import CLIP_MARGIN, Completions
from dprime.attributes.twin import Twin
from dprime.attributes.worst_pair import approximate, full, membership_term

CLASSES = 3
FEATURES = 8


class Residual(nn.Module):
    """Its input goes two ways, one layer is called twice, and a weight is its own."""

    def __init__(self):
        super().__init__()
        self.enter, self.again = nn.Linear(FEATURES, 5), nn.Linear(5, 5)
        self.scale = nn.Parameter(torch.tensor([0.7, 1.3, 0.2, 0.9, 1.1]))
        self.leave = nn.Linear(5 + FEATURES, CLASSES, bias=False)

    def forward(self, x):
        h = torch.tanh(self.enter(x))
        h = torch.tanh(self.again(h)) + self.again(h * self.scale)
        return self.leave(torch.cat([h, x], dim=1))


class Words(nn.Module):
    """The first feature is a word; the others are a sequence of positions."""

    def __init__(self):
        super().__init__()
        self.words, self.each = nn.Embedding(6, 4), nn.Linear(1, 4)
        self.leave = nn.Linear(4, CLASSES)

    def forward(self, x):
        h = self.each(x[:, 1:, None]).tanh().mean(dim=1)
        return self.leave(h + self.words(x[:, 0].long()))


def dense():
    return nn.Sequential(nn.Linear(FEATURES, 6), nn.ReLU(), nn.Linear(6, CLASSES))


NETWORKS = {
    "dense": dense,
    "one layer": lambda: nn.Linear(FEATURES, CLASSES),
    "no bias": lambda: nn.Sequential(nn.Linear(FEATURES, CLASSES, bias=False)),
    "in place": lambda: nn.Sequential(
        nn.Linear(FEATURES, 6), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(6, CLASSES)
    ),
    "same layer twice": lambda: nn.Sequential(
        *[nn.Linear(FEATURES, FEATURES)] * 2, nn.Linear(FEATURES, CLASSES)
    ),
    "normalised": lambda: nn.Sequential(
        nn.Linear(FEATURES, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, CLASSES)
    ),
    "convolutions": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 2, 4)), nn.Conv2d(1, 4, 2, padding=1), nn.GroupNorm(2, 4), nn.Tanh(),
        nn.Conv2d(4, 4, 2, groups=2), nn.Tanh(), nn.Flatten(), nn.Linear(32, CLASSES),
    ),
    "one dimension": lambda: nn.Sequential(
        nn.Unflatten(1, (1, FEATURES)), nn.Conv1d(1, 2, 3), nn.Flatten(), nn.Linear(12, CLASSES)
    ),
    "residual": Residual,
    "words": Words,
}  # fmt: skip


def losses(outputs, targets):
    return F.cross_entropy(outputs, targets, reduction="none")


def made(network, records=5, columns=(0,), values=((0.0,), (1.0,), (3.0,)), seed=0):
    """A network and completions of records that it could see."""
    torch.manual_seed(seed)
    module = NETWORKS[network]().double() if isinstance(network, str) else network
    x = torch.rand(records, FEATURES, dtype=torch.float64) * 2
    y = torch.randint(CLASSES, (records,))
    places = torch.tensor(columns)
    return module, Completions(x, y, places, torch.tensor(values, dtype=torch.float64))


def explicit(module, completions, clip_norm):
    """The clipped gradients themselves, in units of C [record, completion, weight]."""
    module = module.eval()
    weights = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}

    def lost(own, x, y):
        return losses(torch.func.functional_call(module, own, (x[None],)), y[None])[0]

    x = completions.written_out()
    y = completions.targets.repeat_interleave(len(completions.values))
    found = torch.func.vmap(torch.func.grad(lost), in_dims=(None, 0, 0))(weights, x, y)
    flat = torch.cat([g.flatten(1) for g in found.values()], dim=1)
    factor = (clip_norm / (flat.norm(dim=1, keepdim=True) + CLIP_MARGIN)).clamp(max=1.0)
    return (flat * factor / clip_norm).view(len(completions.records), len(completions.values), -1)


def gradients(module, completions, clip_norm=1.0):
    trained = [p for p in module.parameters() if p.requires_grad]
    return Twin(module, trained, losses).gradients(completions, clip_norm)


def agree(found, wanted):
    """Products, norms and distances are those of the gradients themselves."""
    close = partial(torch.testing.assert_close, atol=1e-9, rtol=1e-9)
    close(found.products(), wanted @ wanted.mT)
    close(found.norms, wanted.norm(dim=2))
    distances = torch.cdist(wanted, wanted, compute_mode="donot_use_mm_for_euclid_dist") ** 2
    close(found.exactly()[1], distances)
    some, left = torch.tensor([2, 1]), torch.tensor([1, 0])
    close(found.exactly(some)[1], distances[some])
    close(found.products(left), (wanted @ wanted.mT)[:, left])


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(("clip_norm", "columns"), [(0.3, (0,)), (100.0, (0,)), (0.3, (1, 2, 7))])
def test_products_are_those_of_the_gradients(network, clip_norm, columns):
    values = torch.rand(3, len(columns)).tolist() if len(columns) > 1 else ((0.0,), (1.0,), (3.0,))
    module, completions = made(network, columns=columns, values=values)
    agree(gradients(module, completions, clip_norm), explicit(module, completions, clip_norm))


def test_frozen_weights_do_not_count():
    module, completions = made("dense")
    first, last = module[0], module[2]
    both = (first.weight, first.bias)
    for frozen in ((first.weight,), both, (first.bias, last.weight), (last.bias,)):
        for weight in module.parameters():
            weight.requires_grad_(all(weight is not one for one in frozen))
        agree(gradients(module, completions), explicit(module, completions, 1.0))


def test_the_twin_follows_the_weights_and_leaves_the_model_alone():
    module, completions = made("in place")
    called = []
    module[0].register_forward_hook(lambda *_: called.append(1))
    twin = Twin(module, module.parameters(), losses)
    with torch.no_grad():
        for weight in module.parameters():
            weight.mul_(1.5)
    module[3].weight.data = module[3].weight.data.clone()
    module.train()
    found = twin.gradients(completions, 1.0)
    assert module.training
    assert not called
    assert all(weight.requires_grad and weight.grad is None for weight in module.parameters())
    assert module[1].inplace
    agree(found, explicit(module, completions, 1.0))


def test_gradients_near_each_other_lose_nothing_to_float32():
    module, completions = made("dense")
    values = torch.tensor([[1.0], [1.0 + 2**-12]])
    records = completions.records.float()
    close = Completions(records, completions.targets, completions.columns, values)
    found = gradients(module.float(), close, 0.01)
    exact = replace(close, records=records.double(), values=values.double())
    wanted = explicit(module.double(), exact, 0.01)
    squares, distances = found.exactly()
    apart = (wanted[:, 0] - wanted[:, 1]).square().sum(dim=1)
    torch.testing.assert_close(distances[:, 0, 1], apart, rtol=5e-3, atol=0)
    torch.testing.assert_close(squares, wanted.square().sum(dim=2), rtol=1e-6, atol=0)


class Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.each = nn.Linear(1, 2)
        self.leave = nn.Linear(2 * FEATURES, CLASSES)

    def forward(self, x):
        return self.leave(self.each(x.reshape(-1, 1)).reshape(len(x), -1))


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.both = nn.Bilinear(FEATURES, FEATURES, CLASSES)

    def forward(self, x):
        return self.both(x, x)


def tied():
    module = nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.Linear(FEATURES, FEATURES))
    module[1].weight = module[0].weight
    return module


@pytest.mark.parametrize(
    ("network", "loss", "sentence"),
    [
        (lambda: nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4)), losses, "one with BatchNorm1d"),
        (Mixing, losses, "one whose Linear sees 120 rows for 15 records"),
        (tied, losses, "one in which two layers share a weight"),
        (Two, losses, "one with a Bilinear of several inputs or outputs"),
        (dense, F.cross_entropy, "loss must be one a record, but it is of shape"),
    ],
)
def test_what_is_refused(network, loss, sentence):
    module, completions = made(network().double())
    with pytest.raises(InputError, match=sentence):
        Twin(module, module.parameters(), loss).gradients(completions, 1.0)


# The largest of them


def naive(vectors, z):
    """Over all pairs, from the clipped gradients themselves."""
    squares = vectors.square().sum(dim=2)
    products = vectors @ vectors.mT
    distances = (squares[:, :, None] + squares[:, None, :] - 2 * products).clamp(min=0)
    terms = (
        (squares / z**2).exp()[:, :, None]
        + (squares / z**2).exp()[:, None, :]
        - 2 * (products / z**2).exp()
    )
    return float(distances.max().sqrt()), float(terms.max())


@given(
    seed=st.integers(0, 10_000),
    count=st.sampled_from([2, 5, 13, 40]),
    z=st.sampled_from([0.15, 0.5, 1.0, 3.5]),
    clip_norm=st.sampled_from([0.1, 1.0, 4.0]),
    network=st.sampled_from(["dense", "normalised"]),
)
def test_full_is_the_largest_and_approximate_is_never_below(seed, count, z, clip_norm, network):
    values = torch.linspace(-2, 2, count)[:, None].tolist()
    module, completions = made(network, 12, values=values, seed=seed)
    found = gradients(module, completions, clip_norm)
    vectors = explicit(module, completions, clip_norm)
    difference, term = naive(vectors, z)
    exact, bound = full(found, z), approximate(found, z)
    assert exact.difference == pytest.approx(difference, rel=1e-7, abs=1e-9)
    assert exact.term == pytest.approx(term, rel=1e-6, abs=1e-9)
    assert bound.difference >= exact.difference * (1 - 1e-12)
    assert bound.term >= exact.term * (1 - 1e-12)
    assert exact.difference <= 2
    assert bound.difference <= 2
    assert exact.term <= membership_term(z)
    assert bound.term <= membership_term(z)
    first, second = exact.pair
    pair = vectors[exact.place, [first, second]][None]
    assert naive(pair, z)[1] == pytest.approx(exact.term, rel=1e-6, abs=1e-9)


def test_most_records_are_not_looked_at(monkeypatch):
    """The bounds leave few records for the products of all pairs, and the same result."""
    values = torch.linspace(0, 1, 60)[:, None].tolist()
    module, completions = made("dense", 200, values=values, seed=3)
    found = gradients(module, completions)
    looked = []
    exact = worst_pair._of_pairs
    monkeypatch.setattr(
        worst_pair, "_of_pairs", lambda g, rows, z: looked.append(rows) or exact(g, rows, z)
    )
    pruned = full(found, 2.0)
    assert 0 < sum(map(len, looked)) < 60
    assert pruned == exact(found, torch.arange(200), 2.0)


@given(
    seed=st.integers(0, 10_000),
    z=st.sampled_from([0.3, 1.0, 3.5]),
    clip_norm=st.sampled_from([0.1, 4.0]),
    single=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_no_record_exceeds_its_bounds(seed, z, clip_norm, single, dtype):
    """In any order of the values, and where most lie together; one value may be far off."""
    torch.manual_seed(seed)
    values = torch.cat([torch.rand(39) * 0.1, torch.randn(1 if single else 12) * 3])
    order = torch.randperm(len(values))
    module, completions = made("dense", 6, values=values[order][:, None].tolist(), seed=seed)
    x, v = completions.records.to(dtype), completions.values.to(dtype)
    found = gradients(module.to(dtype), replace(completions, records=x, values=v), clip_norm)
    for reach, look in (
        (worst_pair._from_any_value, worst_pair._of_pairs),
        (worst_pair._from_the_mean, worst_pair._of_means),
    ):
        difference, term = worst_pair._upper_bounds(found, z, reach)
        for row in range(6):
            exact = look(found, torch.tensor([row]), z)
            assert exact.difference <= difference[row]
            assert exact.term <= term[row]


def test_opposite_gradients_are_membership():
    """The largest that clipping allows is reached by opposite gradients of norm C."""
    for z in (0.5, 1.0, 3.5):
        vectors = torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]], dtype=torch.float64)
        assert naive(vectors, z) == pytest.approx((2.0, membership_term(z)))


def test_very_little_noise_is_no_security():
    module, completions = made("dense")
    assert full(gradients(module, completions, 0.01), 0.03).term > 1e250
