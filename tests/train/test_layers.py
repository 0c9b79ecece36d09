"""Every layer's gradients against autograd in double precision, the general path, and Opacus."""

import copy
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, jacrev

from dprime.train.batches import Records
from dprime.train.convolution import NormalisedConv2d
from dprime.train.functional import Functional
from dprime.train.layers import AffineTrace
from dprime.train.losses import plain_cross_entropy
from dprime.train.network import layered, tanh
from networks import NETWORKS
from trials import Wrapped

TRIALS, RECORDS = 3, 5


def exact(network, vector, x, y):
    """Gradients by the weights [record, parameter] and by the record, and outputs."""
    model = copy.deepcopy(network.model).double()

    def losses(vector, x):
        weights = {p.name: p.view(vector[None])[0] for p in network.parameters}
        outputs = functional_call(model, weights, x)
        return plain_cross_entropy(outputs, y), outputs.detach()

    vector, x = vector.double(), x.double() if x.is_floating_point() else x
    gradients, outputs = jacrev(losses, has_aux=True)(vector, x)
    if not x.is_floating_point():
        return gradients, outputs, outputs
    x.requires_grad_()
    return gradients, outputs, torch.autograd.grad(losses(vector, x)[0].sum(), x)[0]


def close(actual, expected):
    scale = float(expected.abs().max())
    torch.testing.assert_close(actual.double(), expected, rtol=1e-4, atol=2e-6 * max(1.0, scale))


def check(network, weights, records, y, gradients, outputs):
    """Norms, weighted sums, parts, losses and outputs of records [trial or 1, record, ...]."""
    for _ in range(2):  # the second time from what was kept of constant records
        found = network.gradients(weights, records, y, "cross-entropy")
        close(found.norms(), gradients.norm(dim=2))
    c, total, one, unmeasured = torch.rand(gradients.shape[:2]), *torch.zeros(3, *weights.shape)
    found.add_weighted(c, total)
    close(total, torch.einsum("rn,rnp->rp", c.double(), gradients))
    found.only(slice(3, 4)).add_weighted(torch.ones(TRIALS, 1), one)
    close(one, gradients[:, 3])
    network.gradients(weights, records, y, "cross-entropy").add_weighted(c, unmeasured)
    close(unmeasured, total.double())
    close(network.outputs(weights, records.x), outputs)
    losses = plain_cross_entropy(outputs.flatten(0, 1), y.expand(TRIALS, -1).flatten())
    close(found.losses.flatten(), losses)


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_are_those_of_autograd(name):
    """On the fast path and the general one, for records that trials share and for their own."""
    torch.manual_seed(0)
    model, shape = NETWORKS[name]()
    words = shape[0] == "words"
    x = torch.randint(0, 5, (RECORDS, shape[1])) if words else torch.randn(RECORDS, *shape)
    x[:, ..., :3] = 0  # a blank margin, so that pools have ties
    x += 30 if name == "joined" else 0  # far from 0, whose squares would drown the rest
    y = torch.randint(0, 3, (RECORDS,))
    fast, general = layered(model), Functional(Wrapped(model), words=words)
    is_joined = isinstance(fast.stages[0].apply, NormalisedConv2d)
    assert is_joined == (name.startswith("joined") or name == "group norms")
    weights = fast.given_weights() + 0.3 * torch.randn(TRIALS, fast.size)
    found = [exact(fast, vector, x, y) for vector in weights]
    *expected, by_records = (torch.stack(each) for each in zip(*found, strict=True))
    x, own = x.float(), x.float().expand(TRIALS, *x.shape).contiguous()
    for network in (fast, general):
        check(network, weights, Records(x[None], constant=True), y[None], *expected)
        if not words:
            slopes = network.record_gradients(weights, own, y[None], "cross-entropy")
            assert not slopes.requires_grad
            close(slopes, by_records)
    check(fast, weights, Records(own), y.expand(TRIALS, -1), *expected)


def opacus_step(model, x, y, clip_norm):
    """The clipped sum as Opacus makes it, without noise."""
    opacus = pytest.importorskip("opacus")
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=len(x))
    given = {"noise_multiplier": 0.0, "max_grad_norm": clip_norm, "poisson_sampling": False}
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus warns of its own random numbers and hooks
        private, optimizer, _ = opacus.PrivacyEngine().make_private(
            module=model.train(), optimizer=optimizer, data_loader=loader, **given
        )
        nn.CrossEntropyLoss()(private(x), y).backward()
        optimizer.pre_step()
    return torch.cat([weight.grad.flatten() for weight in private.parameters()]) * len(x)


@pytest.mark.parametrize("path", [layered, lambda model: Functional(Wrapped(model))])
@pytest.mark.parametrize(
    "name", ["three linear layers", "conv twice, max pool with ties", "group norms", "layer norm"]
)
def test_opacus_agrees_on_one_step(name, path):
    torch.manual_seed(1)
    model, shape = NETWORKS[name]()
    x, y = torch.randn(8, *shape), torch.randint(0, 3, (8,))
    network = path(model)
    weights = network.given_weights()[None]
    found = network.gradients(weights, Records(x[None]), y[None], "cross-entropy")
    norms = found.norms()
    clip_norm = float(norms.median())
    total = torch.zeros(1, network.size)
    found.add_weighted((clip_norm / norms).clamp(max=1), total)
    close(total[0], opacus_step(model, x, y, clip_norm).double())


def test_norms_from_grams_are_never_too_small():
    """Errors that cancel between positions would lose digits, and with them the clipping."""
    torch.manual_seed(0)
    x = torch.randn(1, 1, 2, 300).repeat(1, 50, 1, 1)
    x[..., 1, :] = x[..., 0, :]
    error = torch.randn(1, 50, 2, 400)
    error[..., 1, :] = -error[..., 0, :] * (1 + 1e-4 * torch.rand(1, 50, 1))
    seen = AffineTrace(lambda: x, error, True, lambda sums: sums)
    seen.error = error
    assert seen._has_short_grams()
    x64, e64 = x.double(), error.double()
    gradients = e64.mT @ x64
    squares = (gradients**2).sum((-2, -1)) + (e64.sum(2) ** 2).sum(-1)
    assert (seen.squared_norms().double() >= squares * (1 - 1e-6)).all()


def test_tanh_is_exact_to_two_units_in_the_last_place():
    sizes = np.concatenate([[0.0], np.geomspace(1e-38, 30, 200_001)]).astype(np.float32)
    x = torch.from_numpy(np.concatenate([-sizes, sizes])).view(2, -1).mT.requires_grad_()
    found, true = tanh(x), x.double().tanh()
    assert ((found.double() - true).abs() <= 2 * 2**-23 * true.abs() + 1e-44).all()
    assert found.stride() == x.stride()
    assert not tanh(x.detach()).requires_grad


# Who is on the fast path --------------------------------------------------------------------------


def changed(change, model=None):
    """A network to which something was done."""
    model = model or nn.Sequential(nn.Linear(3, 3))
    change(model[0])
    return model


TIED = nn.Linear(3, 3)
NOT_FAST = {
    "grouped convolution": nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.Flatten()),
    "reflecting convolution": nn.Conv2d(2, 4, 3, padding=1, padding_mode="reflect"),
    "learned activation": nn.Sequential(nn.Linear(3, 3), nn.PReLU()),
    "a module of one's own": Wrapped(nn.Linear(3, 3)),
    "half frozen": changed(lambda layer: layer.bias.requires_grad_(False)),
    "a subclass": nn.Sequential(nn.Linear(3, 3), type("Own", (nn.ReLU,), {})()),
    "hook": changed(lambda layer: layer.register_forward_hook(print)),
    "hook before": changed(lambda layer: layer.register_forward_pre_hook(print)),
    "hook of a container": changed(
        lambda layer: layer.register_forward_hook(print),
        nn.Sequential(nn.Sequential(nn.Linear(3, 3))),
    ),
    "a weight more": changed(lambda x: x.register_parameter("s", nn.Parameter(torch.ones(1)))),
    "tied weights": nn.Sequential(TIED, nn.ReLU(), TIED),
}


@pytest.mark.parametrize("name", NOT_FAST)
def test_what_has_no_rule_takes_the_general_path(name):
    assert layered(NOT_FAST[name]) is None


def test_a_hook_for_all_modules_takes_the_general_path():
    model = nn.Linear(3, 3)
    handle = nn.modules.module.register_module_forward_hook(print)
    assert layered(model) is None
    handle.remove()
    assert layered(model) is not None


def test_only_a_first_convolution_is_joined():
    def kinds(*layers):
        stages = layered(nn.Sequential(*layers)).stages
        return " ".join(type(stage.apply).__name__ for stage in stages)

    conv, norm = nn.Conv2d(2, 6, 3), nn.GroupNorm(3, 6)
    assert kinds(nn.ELU(), conv, norm) == "ELU NormalisedConv2d"
    assert kinds(nn.Conv2d(1, 2, 3), conv, norm) == "Conv2d Conv2d GroupNorm"
    assert kinds(conv, nn.ReLU(), norm) == "Conv2d ReLU GroupNorm"
