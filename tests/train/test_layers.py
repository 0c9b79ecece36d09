"""Every layer's gradients against autograd record by record, the general path, and Opacus."""

import warnings

import pytest
import torch
from torch import nn

from dprime.train.functional import Functional
from dprime.train.layers import AffineTrace
from dprime.train.losses import named_loss, plain_cross_entropy
from dprime.train.network import Layered, layered
from dprime.train.records import Records
from trials import Wrapped, gradient_of

TRIALS, RECORDS = 3, 5


def image_net(*middle, channels=4, side=9):
    """A convolution, some layers, and a linear layer on what they leave."""
    front = nn.Sequential(nn.Conv2d(2, channels, 3), *middle, nn.Flatten())
    width = front(torch.zeros(1, 2, side, side)).shape[1]
    return nn.Sequential(*front, nn.Linear(width, 3)), (2, side, side)


MODELS = {
    "linear": lambda: (nn.Linear(6, 3), (6,)),
    "linear without bias": lambda: (nn.Linear(6, 3, bias=False), (6,)),
    "three linear layers": lambda: (
        nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4), nn.GELU(), nn.Linear(4, 3)), (6,)
    ),
    "nested": lambda: (
        nn.Sequential(nn.Sequential(nn.Linear(6, 5), nn.SiLU()), nn.Sequential(nn.Linear(5, 3))),
        (6,),
    ),
    "linear at positions": lambda: (
        nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Flatten(), nn.Linear(35, 3)), (7, 4)
    ),
    "long positions, by Gram": lambda: (
        nn.Sequential(nn.Linear(30, 40), nn.ReLU(), nn.Flatten(), nn.Linear(80, 3)), (2, 30)
    ),
    "unflatten": lambda: (
        nn.Sequential(
            nn.Unflatten(1, (2, 5, 5)), nn.Conv2d(2, 3, 2), nn.ELU(), nn.Flatten(),
            nn.Linear(48, 3),
        ), (50,)
    ),
    "conv": lambda: image_net(nn.ReLU()),
    "conv of one channel, and a maximum of overlapping cells": lambda: (
        nn.Sequential(
            nn.Conv2d(1, 3, 4, stride=2, padding=1), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Flatten(),
            nn.Linear(27, 3),
        ), (1, 8, 8)
    ),
    "conv twice": lambda: image_net(nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 2), nn.Tanh()),
    "conv with stride, padding, dilation": lambda: image_net(
        nn.LeakyReLU(), nn.Conv2d(4, 3, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(2, 1))
    ),
    "conv, same padding": lambda: image_net(nn.ReLU(), nn.Conv2d(4, 3, 3, padding="same")),
    "conv without bias": lambda: image_net(nn.ReLU(), nn.Conv2d(4, 3, 3, bias=False)),
    "conv of few positions": lambda: image_net(
        nn.ReLU(), nn.MaxPool2d(3), nn.Conv2d(4, 40, 1), nn.ReLU(), nn.Conv2d(40, 40, 2), nn.ReLU()
    ),
    "pools": lambda: image_net(
        nn.AvgPool2d(2), nn.Conv2d(4, 4, 2), nn.AdaptiveAvgPool2d(2), nn.Softplus()
    ),
    "max pool with ties": lambda: image_net(nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 2)),
    "group norm": lambda: image_net(nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2)),
    "group norm, not affine": lambda: image_net(nn.GroupNorm(2, 4, affine=False), nn.ReLU()),
    "group norm between convs": lambda: image_net(
        nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 2), nn.GroupNorm(3, 6)
    ),
    "group norm on vectors": lambda: (
        nn.Sequential(nn.Linear(6, 8), nn.GroupNorm(2, 8), nn.ReLU(), nn.Linear(8, 3)), (6,)
    ),
    "layer norm": lambda: (
        nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3)), (6,)
    ),
    "layer norm first": lambda: (nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 3)), (6,)),
    "layer norm without bias": lambda: (
        nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8, bias=False), nn.Linear(8, 3)), (6,)
    ),
    "layer norm at positions": lambda: (
        nn.Sequential(nn.Linear(4, 5), nn.LayerNorm(5), nn.Flatten(), nn.Linear(35, 3)), (7, 4)
    ),
    "layer norm on images": lambda: image_net(nn.LayerNorm([4, 7, 7]), nn.ReLU()),
    "embedding": lambda: (
        nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(24, 3)), ("words", 6)
    ),
    "embedding with padding": lambda: (
        nn.Sequential(nn.Embedding(5, 4, padding_idx=0), nn.Tanh(), nn.Flatten(), nn.Linear(24, 3)),
        ("words", 6),
    ),
}  # fmt: skip


@pytest.fixture(params=MODELS)
def case(request):
    """A model with random weights for each trial, records and labels."""
    torch.manual_seed(0)
    model, shape = MODELS[request.param]()
    if shape[0] == "words":
        x = torch.randint(0, 5, (RECORDS, shape[1])).float()
    else:
        x = torch.randn(RECORDS, *shape)
        x[:, ..., :3] = 0  # a blank margin, so that pools have ties
    y = torch.randint(0, 3, (RECORDS,))
    network = layered(model)
    assert isinstance(network, Layered)
    weights = network.given_weights() + 0.3 * torch.randn(TRIALS, network.size)
    return network, weights, x, y


def call(model, x):
    """Embeddings want whole numbers."""
    first = next(iter(model.modules())) if not isinstance(model, nn.Sequential) else model[0]
    return model(x.long() if isinstance(first, nn.Embedding) else x)


def slow_gradients(network, weights, x, y):
    """[trial, record, parameter] by autograd."""
    rows = []
    for vector in weights:
        torch.nn.utils.vector_to_parameters(vector, network.model.parameters())
        model = lambda records: call(network.model, records)  # noqa: E731
        model.zero_grad = network.model.zero_grad
        model.parameters = network.model.parameters
        rows.append(
            torch.stack(
                [gradient_of(model, plain_cross_entropy, *xy) for xy in zip(x, y, strict=True)]
            )
        )
    return torch.stack(rows)


def close(actual, expected):
    scale = float(expected.abs().max())
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=2e-6 * max(1.0, scale))


@pytest.mark.parametrize("shared", [True, False], ids=["shared records", "own records"])
def test_norms_sums_and_losses(case, shared):
    network, weights, x, y = case
    expected = slow_gradients(network, weights, x, y)
    xs, ys = (x[None], y[None]) if shared else (x.expand(TRIALS, *x.shape), y.expand(TRIALS, -1))
    found = network.gradients(weights, Records(xs.contiguous()), ys, "cross-entropy")
    close(found.norms(), expected.norm(dim=2))
    c = torch.rand(TRIALS, RECORDS)
    total = torch.zeros_like(weights)
    found.add_weighted(c, total)
    close(total, torch.einsum("rn,rnp->rp", c, expected))
    one = torch.zeros_like(weights)
    found.only(slice(3, 4)).add_weighted(torch.ones(TRIALS, 1), one)
    close(one, expected[:, 3])
    without_norms = torch.zeros_like(weights)
    network.gradients(weights, Records(xs), ys, "cross-entropy").add_weighted(c, without_norms)
    close(without_norms, total)


def test_outputs_and_losses(case):
    network, weights, x, y = case
    outputs = network.outputs(weights, x[None])
    losses = network.gradients(weights, Records(x[None]), y[None], "cross-entropy").losses
    for trial, vector in enumerate(weights):
        torch.nn.utils.vector_to_parameters(vector, network.model.parameters())
        with torch.no_grad():
            expected = call(network.model, x)
        close(outputs[trial], expected)
        close(losses[trial], plain_cross_entropy(expected, y))


def test_the_general_path_agrees(case):
    network, weights, x, y = case
    words = any(isinstance(module, nn.Embedding) for module in network.model.modules())
    general = Functional(Wrapped(network.model), words=words)
    fast = network.gradients(weights, Records(x[None]), y[None], "cross-entropy")
    slow = general.gradients(weights, Records(x[None]), y[None], "cross-entropy")
    close(fast.norms(), slow.norms())
    close(fast.losses, slow.losses)
    c = torch.rand(TRIALS, RECORDS)
    totals = torch.zeros(2, *weights.shape)
    fast.add_weighted(c, totals[0])
    slow.add_weighted(c, totals[1])
    close(totals[0], totals[1])
    close(network.outputs(weights, x[None]), general.outputs(weights, x[None]))


def opacus_step(model, x, y, clip_norm):
    """The clipped sum as Opacus makes it, without noise."""
    opacus = pytest.importorskip("opacus")
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=len(x))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus warns of its own random numbers and hooks
        private, optimizer, _ = opacus.PrivacyEngine().make_private(
            module=model.train(), optimizer=optimizer, data_loader=loader, noise_multiplier=0.0,
            max_grad_norm=clip_norm, poisson_sampling=False,
        )  # fmt: skip
        nn.CrossEntropyLoss()(private(x), y).backward()
        optimizer.pre_step()
    return torch.cat([weight.grad.flatten() for weight in private.parameters()]) * len(x)


@pytest.mark.parametrize("path", ["fast", "general"])
@pytest.mark.parametrize(
    "name", ["three linear layers", "conv twice", "group norm between convs", "layer norm"]
)
def test_opacus_agrees_on_one_step(name, path):
    torch.manual_seed(1)
    model, shape = MODELS[name]()
    x, y = torch.randn(8, *shape), torch.randint(0, 3, (8,))
    network = layered(model) if path == "fast" else Functional(Wrapped(model))
    found = network.gradients(
        network.given_weights()[None], Records(x[None]), y[None], "cross-entropy"
    )
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


NOT_FAST = {
    "grouped convolution": nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.Flatten()),
    "reflecting convolution": nn.Conv2d(2, 4, 3, padding=1, padding_mode="reflect"),
    "learned activation": nn.Sequential(nn.Linear(3, 3), nn.PReLU()),
    "a module of one's own": Wrapped(nn.Linear(3, 3)),
    "half frozen": nn.Linear(3, 3),
}
NOT_FAST["half frozen"].bias.requires_grad_(False)
NOT_FAST["a subclass"] = nn.Sequential(nn.Linear(3, 3), type("Own", (nn.ReLU,), {})())
for _name, _hook in (("forward", "register_forward_hook"), ("before", "register_forward_pre_hook")):
    NOT_FAST[f"hook {_name}"] = nn.Sequential(nn.Linear(3, 3))
    getattr(NOT_FAST[f"hook {_name}"][0], _hook)(lambda *_: None)
    NOT_FAST[f"hook {_name} a container"] = nn.Sequential(nn.Sequential(nn.Linear(3, 3)), nn.ReLU())
    getattr(NOT_FAST[f"hook {_name} a container"][0], _hook)(lambda *_: None)
NOT_FAST["a weight more"] = nn.Sequential(nn.Linear(3, 3))
NOT_FAST["a weight more"][0].register_parameter("scale", nn.Parameter(torch.ones(1)))
_tied = nn.Linear(3, 3)
NOT_FAST["tied weights"] = nn.Sequential(_tied, nn.ReLU(), _tied)


@pytest.mark.parametrize("name", NOT_FAST)
def test_what_has_no_rule_takes_the_general_path(name):
    assert layered(NOT_FAST[name]) is None


def test_a_hook_for_all_modules_takes_the_general_path():
    model = nn.Linear(3, 3)
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert layered(model) is None
    finally:
        handle.remove()
    assert layered(model) is not None


def test_tied_weights_on_the_general_path():
    model = NOT_FAST["tied weights"]
    torch.manual_seed(0)
    x, y = torch.randn(4, 3), torch.randint(0, 3, (4,))
    network = Functional(model)
    found = network.gradients(
        network.given_weights()[None], Records(x[None]), y[None], "cross-entropy"
    )
    loss = named_loss("cross-entropy")
    expected = torch.stack([gradient_of(model, loss, *xy) for xy in zip(x, y, strict=True)])
    close(found.norms()[0], expected.norm(dim=1))
