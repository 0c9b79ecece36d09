"""Private trainings of many kinds stay certified, without a warning."""

import random
import warnings

import pytest
import torch
from opacus.layers import DPGRU, DPLSTM, DPMultiheadAttention
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from attacked import Calls
from dprime import DPSGD, Composition
from dprime.monitor import EmptyBatches, Ledger, PrivacyWarning, checks
from private_training import Maker
from watching import RATE, trained, watch, watch_shuffled

TOKENS, FEATURES, RECORDS = 6, 4, 40

LOSSES = {
    "classes": nn.CrossEntropyLoss,
    "numbers": nn.MSELoss,
    "robust": nn.SmoothL1Loss,
    "binary": nn.BCEWithLogitsLoss,
}
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "decay": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "rms": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "groups": lambda p: torch.optim.SGD([{"params": [w], "lr": 0.1} for w in p], lr=0.1),
}


def recurrent(cell, width):
    """The last state of a recurrent layer."""
    return Calls(lambda net, x: net.cell(x)[0][:, -1], cell=cell(FEATURES, width, batch_first=True))


def attention():
    """Attention over tokens, with a residual."""
    layer = DPMultiheadAttention(FEATURES, 2, batch_first=True)
    return Calls(lambda net, x: (x + net.layer(x, x, x)[0]).mean(1), layer=layer)


def twice(width):
    """A layer that is used twice."""
    return Calls(lambda net, x: net.layer(torch.tanh(net.layer(x))), layer=nn.Linear(width, width))


class Own(nn.Module):
    """A weight of its own, used several times, which functorch differentiates."""

    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * self.scale + self.scale.square()


def body(dice, mode):
    """Layers from [record, token, feature] to [record, width], and the width."""
    width = dice.choice([4, 6])
    kinds = ["flat", "tokens", "convolution", "image", "lstm", "gru", "attention", "words"]
    # ExpandedWeights know few layers; and ghost clipping knows none that is used twice.
    kind = dice.choice(["flat", "convolution", "words"] if mode == "ew" else kinds)
    if kind == "flat":
        layers = [nn.Flatten(), nn.Linear(TOKENS * FEATURES, width)]
    elif kind == "tokens":
        layers = [
            nn.Linear(FEATURES, width),
            nn.LayerNorm(width),
            nn.ReLU(),
            Calls(lambda _, x: x.mean(1)),
        ]
    elif kind == "convolution":
        layers = [nn.Conv1d(TOKENS, width, 2), nn.GroupNorm(2, width), nn.ReLU(), nn.Flatten()]
        width *= FEATURES - 1
    elif kind == "image":
        layers = [
            nn.Unflatten(1, (1, TOKENS)), nn.Conv2d(1, 2, 3, padding=1),
            nn.InstanceNorm2d(2, affine=dice.random() < 0.5), nn.MaxPool2d(2), nn.Flatten(),
        ]  # fmt: skip
        width = 2 * (TOKENS // 2) * (FEATURES // 2)
    elif kind in ("lstm", "gru"):
        layers = [recurrent(DPLSTM if kind == "lstm" else DPGRU, width)]
    elif kind == "attention":
        layers, width = [attention()], FEATURES
    else:
        layers = [nn.Embedding(20, width, padding_idx=dice.choice([None, 3])), nn.Flatten()]
        width *= TOKENS
    return layers, width


def network(dice, mode, outputs):
    """A network of supported layers."""
    layers, width = body(dice, mode)
    words = isinstance(layers[0], nn.Embedding)
    for _ in range(dice.randrange(3)):
        hidden = dice.choice([4, 6])
        layers += [nn.Linear(width, hidden, bias=dice.random() < 0.8)]
        layers += [dice.choice([nn.ReLU, nn.Tanh, nn.GELU, nn.Sigmoid])()]
        more = [nn.LayerNorm(hidden), nn.GroupNorm(2, hidden)]
        if mode != "ew":
            more += [nn.Dropout(0.2), Own(hidden)]
        if mode in ("hooks", "functorch"):
            more += [twice(hidden)]
        if dice.random() < 0.5:
            layers += [dice.choice(more)]
        width = hidden
    layers += [nn.Linear(width, outputs)]
    net = nn.Sequential(*layers)
    if dice.random() < 0.2 and len(layers) > 3:
        layers[0].requires_grad_(False)
    return net, words


class Made:
    """A random private training, and its monitor."""

    def __init__(self, seed):
        dice = random.Random(seed)
        torch.manual_seed(seed)
        self.dice = dice
        self.mode = dice.choice(["hooks", "functorch", "ew", "ghost"])
        self.loss = dice.choice(list(LOSSES))
        outputs = 3 if self.loss == "classes" else 1
        net, words = network(dice, self.mode, outputs)
        x = torch.randn(RECORDS, TOKENS, FEATURES) * dice.choice([0.1, 1.0, 30.0])
        if words:
            x = x.mean(2).mul(5).long().abs().clamp(max=19)
        y = torch.randint(0, 3, (RECORDS,))
        if self.loss != "classes":
            y = (y > 0).float()[:, None]
        squeezes = self.mode == "ghost" and self.loss != "classes"
        if squeezes:  # ghost mode wants one loss for each record
            net, y = nn.Sequential(*net, nn.Flatten(0)), y[:, 0]
        batch = dice.choice([2, 8, 20, RECORDS])
        loader = DataLoader(TensorDataset(x, y), batch_size=batch)
        self.poisson = dice.random() < 0.8
        norm, options = dice.choice([0.1, 1.0, 10.0]), {}
        trained = [p for p in net.parameters() if p.requires_grad]
        if self.mode == "hooks" and dice.random() < 0.2:
            norm, options = [0.5] * len(trained), {"clipping": "per_layer"}
        self.made = made = Maker()(
            self.mode, net=net, loader=loader, criterion=LOSSES[self.loss](), norm=norm,
            optimizer=OPTIMIZERS[dice.choice(list(OPTIMIZERS))](trained),
            noise=dice.choice([0.5, 1.0, 5.0]), poisson_sampling=self.poisson, **options,
        )  # fmt: skip
        torch.manual_seed(seed)
        # PyTorch itself refuses empty batches in these.
        refuse = (nn.InstanceNorm2d, nn.GroupNorm, DPLSTM, DPGRU, DPMultiheadAttention)
        self.takes_none = self.mode != "ew" and not any(
            isinstance(m, refuse) for m in net.modules()
        )
        self.passed_over = False
        self.net, self.optimizer, self.loader = net, made.optimizer, made.loader
        self.monitor = watch(made)

    def train(self):
        """Two epochs, with what loops do besides."""
        dice = self.dice
        rates = torch.optim.lr_scheduler.StepLR(self.optimizer.original_optimizer, 1, 0.5)
        evaluates, parts = dice.random() < 0.3, self.takes_none and dice.random() < 0.3
        leaves = dice.random() < 0.2
        to_none = dice.random() < 0.5
        for _ in range(2):
            if parts:
                with BatchMemoryManager(
                    data_loader=self.loader, max_physical_batch_size=5, optimizer=self.optimizer
                ) as loader:
                    self.loop(loader, to_none, leaves=False)
            else:
                self.loop(self.loader, to_none, leaves)
            rates.step()
            if evaluates:
                self.net.eval()
                with torch.no_grad():
                    for x, _ in self.loader:
                        if len(x):
                            self.net(x)
                self.net.train()

    def loop(self, loader, to_none, leaves):
        for number, (x, y) in enumerate(loader):
            if not len(x) and not self.takes_none:
                self.passed_over = True  # which is told, and counted
                continue
            self.optimizer.zero_grad(set_to_none=to_none)
            self.made.criterion(self.made.model(x), y).backward()
            self.optimizer.step()
            if leaves and number == 1:
                break

    def certified(self):
        """Whether nothing is wrong; batches of public size have one warning."""
        expected = 0 if self.poisson else 1
        said = [sentence for sentence in self.monitor.warnings if sentence != checks.LEFT_OUT]
        told = checks.LEFT_OUT in self.monitor.warnings
        return (
            self.monitor.curve().advantage() < 1.0
            and len(said) == expected
            and (self.passed_over or not told)
        )


@pytest.mark.parametrize("seed", range(30))
def test_random_networks_are_certified(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Made(seed)
        made.train()
    assert made.monitor.ledger.steps > 0
    assert made.certified(), (made.net, made.monitor.warnings)


@pytest.mark.parametrize("options", [
    {"num_workers": 2}, {"num_workers": 1, "persistent_workers": True},
], ids=["workers", "persistent"])  # fmt: skip
def test_worker_processes(private, options):
    _, monitor = trained(private(loader=private.loader(**options)), passes=2)
    assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 12)
    assert monitor.warnings == []


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_looking_at_the_training_data_between_steps(private, mode):
    monitor = watch(made := private(mode, loader=private.many(num_workers=1)))
    for number, (records, labels) in enumerate(made.loader):
        made.step(records, labels)
        if number % 5 == 0:
            made.model.eval()
            with torch.no_grad():
                for seen, _ in made.loader:
                    made.model(seen)
            made.model.train()
    assert monitor.ledger.mechanism() == DPSGD(1.0, made.loader.sample_rate, len(made.loader))
    assert monitor.warnings == []


def test_empty_batches_that_are_passed_over(private):
    monitor = watch(made := private(loader=private.loader(batch_size=1)))

    def train():
        for records, labels in made.loader:
            if len(records):
                made.step(records, labels)

    with pytest.warns(PrivacyWarning, match="make a step of empty batches too"):
        train()
    steps, rate = monitor.ledger.steps, made.loader.sample_rate
    assert 0 < steps < len(made.loader)
    drawn = steps + sum(step.left_out * count for step, count in monitor.ledger.entries)
    assert len(made.loader) - 3 <= drawn <= len(made.loader)  # the last may be empty too
    found = Composition(DPSGD(1.0, rate, drawn), EmptyBatches(60, ((rate, drawn),)))
    assert monitor.ledger.mechanism() == found
    assert monitor.warnings == [checks.LEFT_OUT]
    again = Ledger.from_state(monitor.ledger.state_dict())
    assert again.mechanism() == found


@pytest.mark.parametrize("poisson", [True, False])
def test_parts_of_a_batch_with_workers_and_empty_batches(private, poisson):
    loader = private.loader(batch_size=3, num_workers=1)
    made = private(loader=loader, poisson_sampling=poisson)
    monitor = watch(made) if poisson else watch_shuffled(made)
    with BatchMemoryManager(
        data_loader=made.loader, max_physical_batch_size=2, optimizer=made.optimizer
    ) as parts:
        made.train(2, loader=parts)
    assert monitor.ledger.steps == 40
    assert isinstance(monitor.ledger.mechanism(), DPSGD)


def test_batches_in_the_same_order_in_each_pass(private):
    made = private(loader=private.many(shuffle=False), poisson_sampling=False)
    monitor = watch_shuffled(made)
    made.train(2)
    assert monitor.ledger.mechanism().curve("replace").d_prime() == pytest.approx(8.0**0.5)


def test_the_whole_data_set_in_each_step(private):
    _, monitor = trained(private(loader=private.loader(batch_size=60)), passes=3)
    assert monitor.ledger.mechanism() == DPSGD(1.0, 1.0, 3)


def test_records_that_are_all_alike(private):
    data = TensorDataset(torch.ones(400, 4), torch.zeros(400, dtype=torch.long))
    _, monitor = trained(private(loader=DataLoader(data, batch_size=32)), passes=3)
    assert monitor.warnings == []


def test_opacus_rounding_of_the_rate_is_no_disagreement(private):
    made = private(loader=private.loader(batch_size=1, sampler=range(93)))
    assert made.loader.sample_rate == 1 / 93
    made.optimizer.expected_batch_size = 1  # not 60/93, rounded down, by which nothing divides
    monitor = watch(made)
    made.train()
    assert made.engine.accountant.history == [(1.0, 1 / 92, 92)]
    assert monitor.ledger.mechanism() == DPSGD(1.0, 1 / 93, 92)
    assert monitor.warnings == []
