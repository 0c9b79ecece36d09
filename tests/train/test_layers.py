"""Every layer's gradients against autograd record by record, the general path, and Opacus."""

import warnings

import pytest
import torch
from torch import nn

from dprime.train.batches import Records
from dprime.train.functional import Functional
from dprime.train.layers import AffineTrace
from dprime.train.losses import plain_cross_entropy
from dprime.train.network import Layered, layered
from networks import NETWORKS
from trials import Wrapped, gradients_of

TRIALS, RECORDS = 3, 5


def slow_gradients(model, vector, x, y):
    """[record, parameter] by autograd, the outputs, and the derivatives by the records."""
    gradients = gradients_of(model, vector, x, y)
    x = x.clone().requires_grad_(x.is_floating_point())
    outputs = model(x)
    by_records = x
    if x.requires_grad:
        by_records = torch.autograd.grad(plain_cross_entropy(outputs, y).sum(), x)[0]
    return gradients, outputs.detach(), by_records


def close(actual, expected):
    scale = float(expected.abs().max())
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=2e-6 * max(1.0, scale))


def check(network, weights, x, y, gradients, outputs):
    """Norms, weighted sums, parts, losses and outputs of x [trial or 1, record, ...]."""
    found = network.gradients(weights, Records(x), y, "cross-entropy")
    close(found.norms(), gradients.norm(dim=2))
    c, total, one, unmeasured = torch.rand(gradients.shape[:2]), *torch.zeros(3, *weights.shape)
    found.add_weighted(c, total)
    close(total, torch.einsum("rn,rnp->rp", c, gradients))
    found.only(slice(3, 4)).add_weighted(torch.ones(TRIALS, 1), one)
    close(one, gradients[:, 3])
    network.gradients(weights, Records(x), y, "cross-entropy").add_weighted(c, unmeasured)
    close(unmeasured, total)
    close(network.outputs(weights, x), outputs)
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
    y = torch.randint(0, 3, (RECORDS,))
    network = layered(model)
    assert isinstance(network, Layered)
    weights = network.given_weights() + 0.3 * torch.randn(TRIALS, network.size)
    *exact, by_records = [
        torch.stack(z) for z in zip(*(slow_gradients(model, w, x, y) for w in weights), strict=True)
    ]
    x, own = x.float(), x.float().expand(TRIALS, *x.shape).contiguous()
    check(network, weights, x[None], y[None], *exact)
    check(network, weights, own, y.expand(TRIALS, -1), *exact)
    general = Functional(Wrapped(model), words=words)
    check(general, weights, x[None], y[None], *exact)
    if not words:
        for made in (network, general):
            found = made.record_gradients(weights, own, y.expand(TRIALS, -1), "cross-entropy")
            close(found, by_records)


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


@pytest.mark.parametrize("path", ["fast", "general"])
@pytest.mark.parametrize(
    "name", ["three linear layers", "conv twice, max pool with ties", "group norms", "layer norm"]
)
def test_opacus_agrees_on_one_step(name, path):
    torch.manual_seed(1)
    model, shape = NETWORKS[name]()
    x, y = torch.randn(8, *shape), torch.randint(0, 3, (8,))
    network = layered(model) if path == "fast" else Functional(Wrapped(model))
    weights = network.given_weights()[None]
    found = network.gradients(weights, Records(x[None]), y[None], "cross-entropy")
    norms = found.norms()
    clip_norm = float(norms.median())
    total = torch.zeros(1, network.size)
    found.add_weighted((clip_norm / norms).clamp(max=1), total)
    close(total[0], opacus_step(model, x, y, clip_norm))


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
    exact = (gradients**2).sum((-2, -1)) + (e64.sum(2) ** 2).sum(-1)
    assert (seen.squared_norms().double() >= exact * (1 - 1e-6)).all()


def changed(change, *layers):
    """A network to which something was done."""
    model = nn.Sequential(*(layers or (nn.Linear(3, 3),)))
    change(model)
    return model


TIED = nn.Linear(3, 3)
HOOK = changed(lambda m: m[0].register_forward_hook(print), nn.Sequential(nn.Linear(3, 3)))
NOT_FAST = {
    "grouped convolution": nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.Flatten()),
    "reflecting convolution": nn.Conv2d(2, 4, 3, padding=1, padding_mode="reflect"),
    "learned activation": nn.Sequential(nn.Linear(3, 3), nn.PReLU()),
    "a module of one's own": Wrapped(nn.Linear(3, 3)),
    "half frozen": changed(lambda m: m[0].bias.requires_grad_(False)),
    "a subclass": nn.Sequential(nn.Linear(3, 3), type("Own", (nn.ReLU,), {})()),
    "hook": changed(lambda m: m[0].register_forward_hook(print)),
    "hook before": changed(lambda m: m[0].register_forward_pre_hook(print)),
    "hook of a container": HOOK,
    "a weight more": changed(lambda m: m[0].register_parameter("s", nn.Parameter(torch.ones(1)))),
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


def test_tied_weights_on_the_general_path():
    model, x, y = NOT_FAST["tied weights"], torch.randn(RECORDS, 3), torch.randint(0, 3, (RECORDS,))
    network = Functional(model)
    weights = network.given_weights().expand(TRIALS, -1).clone()
    exact = [z.expand(TRIALS, *z.shape) for z in slow_gradients(model, weights[0], x, y)[:2]]
    check(network, weights, x[None], y[None], *exact)
