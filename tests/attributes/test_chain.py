"""The fast way through a chain of linear layers, held against the general one."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dprime.attributes.chain import Chain
from dprime.attributes.completion_gradients import Completions
from dprime.attributes.twin import Twin


def loss(outputs, targets):
    return F.cross_entropy(outputs, targets, reduction="none")


def two(**options):
    return nn.Sequential(nn.Linear(5, 7, **options), nn.ReLU(), nn.Linear(7, 3, **options))


def frozen(net, *places):
    for place in places:
        net[place].requires_grad_(False)
    return net


NETWORKS = {
    "one layer": lambda: nn.Sequential(nn.Linear(5, 3)),
    "two": two,
    "three": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(5, 7), nn.ReLU(),
        nn.Sequential(nn.Linear(7, 4), nn.Identity(), nn.ReLU()), nn.Linear(4, 3)),
    "no ReLU between": lambda: nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3)),
    "no bias": lambda: two(bias=False),
    "first frozen": lambda: frozen(two(), 0),
    "last frozen": lambda: frozen(two(), 2),
    "in double precision": lambda: two().double(),
}  # fmt: skip


def completions(count, dtype, generator):
    records = torch.randn(count, 5, generator=generator, dtype=dtype)
    targets = torch.randint(3, (count,), generator=generator)
    values = torch.randn(6, 2, generator=generator, dtype=dtype)
    return Completions(records, targets, torch.tensor([1, 3]), values)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_chain_is_the_general_way(name):
    torch.manual_seed(0)
    net = NETWORKS[name]()
    trained = [p for p in net.parameters() if p.requires_grad]
    fast, slow = Twin(net, trained, loss), Twin(net, trained, loss)
    assert fast._chain is not None
    slow._chain = None
    generator = torch.Generator().manual_seed(1)
    for count in (8, 20, 3):  # the memory of one call is that of the next
        given = completions(count, next(net.parameters()).dtype, generator)
        wanted = slow.gradients(given, 0.5).products()
        found = fast.gradients(given, 0.5).products()
        torch.testing.assert_close(found.to(given.records), wanted.to(given.records))
        with torch.no_grad():
            for weight in trained:  # as a step moves them
                weight.mul_(1.5)


class Own(nn.Sequential):
    """Another forward than a sequence's."""

    def forward(self, x):
        return super().forward(x).flip(1)


def shared():
    layer = nn.Linear(5, 5)
    return nn.Sequential(layer, nn.ReLU(), layer)


NO_CHAINS = {
    "another activation": lambda: nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)),
    "a ReLU last": lambda: nn.Sequential(nn.Linear(5, 7), nn.ReLU()),
    "a ReLU first": lambda: nn.Sequential(nn.ReLU(), nn.Linear(5, 3)),
    "two ReLUs": lambda: nn.Sequential(nn.Linear(5, 3), nn.ReLU(), nn.ReLU(), nn.Linear(3, 2)),
    "a forward of its own": lambda: Own(nn.Linear(5, 3)),
    "a layer twice": shared,
    "nothing": nn.Sequential,
}


@pytest.mark.parametrize("name", NO_CHAINS)
def test_what_is_no_chain(name):
    assert not Chain.fits(NO_CHAINS[name]())
