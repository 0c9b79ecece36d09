"""Ways of writing a training that are right must stay without a finding; near misses must not."""

import pytest

from check.parts import LOOP, PRIVATE, START

RIGHT = {
    "nothing special": (START, PRIVATE, LOOP),
    "progress bar and enumerate": (
        START, PRIVATE, "from tqdm import tqdm",
        LOOP.replace("for x, y in loader", "for i, (x, y) in enumerate(tqdm(loader, desc='e'))"),
    ),
    "results by index": (
        START,
        PRIVATE.replace("model, optimizer, loader =", "made ="),
        "model, optimizer, loader = made[0], made[1], made[2]", LOOP,
    ),
    "mended only where needed": (
        START.replace(
            "optimizer = ",
            "from opacus.validators import ModuleValidator\n"
            "model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten())\n"
            "if not ModuleValidator.is_valid(model):\n    model = ModuleValidator.fix(model)\n"
            "optimizer = ",
        ), PRIVATE, LOOP,
    ),
    "groups instead of batches in a ResNet": (
        START.replace(
            "optimizer = ",
            "from torchvision.models import resnet18\n"
            "model = resnet18(norm_layer=lambda c: nn.GroupNorm(8, c))\noptimizer = ",
        ), PRIVATE, LOOP,
    ),
    "one's own resnet": (
        START.replace(
            "optimizer = ", "from models import resnet20\nmodel = resnet20()\noptimizer = "
        ), PRIVATE, LOOP,
    ),
    "first on public data": (
        START,
        LOOP.replace("in loader", "in DataLoader(datasets.KMNIST('data'), batch_size=64)"),
        PRIVATE, LOOP,
    ),
    "afterwards on public data": (
        START.replace("optimizer = optim", "plain = optimizer = optim"), PRIVATE, LOOP,
        LOOP.replace("in loader", "in DataLoader(datasets.KMNIST('data'), batch_size=64)").replace(
            "optimizer", "plain"
        ),
    ),
    "every second epoch": (
        START, PRIVATE, "def train():" + LOOP.replace("\n", "\n    "),
        "for epoch in range(4):\n    if epoch % 2 == 0:\n        train()",
    ),
    "stops at a budget": (
        START, PRIVATE, LOOP, "    if engine.get_epsilon(1e-6) > 3:\n        break",
    ),
    "stops after so many records": (
        START, PRIVATE, "seen = 0", LOOP,
        "        seen += x.size(0) + x.shape[0] + len(x)\n        if seen > 9:\n            break",
    ),
    "an accountant to try numbers out": (
        START, PRIVATE, LOOP, "from opacus.accountants import RDPAccountant",
        "trial = RDPAccountant()\ntrial.history = [(1.0, 0.01, 100)]",
    ),
    "the accountant's own hook": (
        START, PRIVATE,
        "optimizer.attach_step_hook(engine.accountant.get_optimizer_hook_fn(sample_rate=0.01))",
        LOOP,
    ),
    "a scaler for the gradients": (
        START, PRIVATE, "scaler = torch.cuda.amp.GradScaler()",
        LOOP.replace("optimizer.step()", "scaler.step(optimizer)\n        scaler.update()"),
    ),
    "clients with parts of the data": (
        START.replace("model = ", "from mine import parts\nmodel = "),
        "for client, train in enumerate(parts(data, 5)):",
        "    net = nn.Linear(784, 10)",
        "    opt = optim.SGD(net.parameters(), lr=0.1)",
        "    fold = DataLoader(torch.utils.data.Subset(data, train), batch_size=64)",
        "    net, opt, fold = PrivacyEngine(secure_mode=True).make_private(module=net,",
        "        optimizer=opt, data_loader=fold, noise_multiplier=1.0, max_grad_norm=1.0)",
    ),
    "parts put together again": (
        START.replace(
            "loader = DataLoader(data",
            "a, b, rest = torch.utils.data.random_split(data, [20_000, 20_000, 20_000])\n"
            "loader = DataLoader(torch.utils.data.ConcatDataset([a, b])",
        ), PRIVATE, LOOP,
    ),
    "statistics of test data": (
        START, "mean = datasets.MNIST('data', train=False).data.float().mean()", PRIVATE, LOOP,
    ),
    "a parameter group for each part": (
        START.replace(
            "model.parameters()", "[{'params': model[1].parameters()}, {'params': []}]"
        ), PRIVATE, LOOP,
    ),
    "the wrapped model's parameters": (
        START, PRIVATE, LOOP, "        norm = sum(p.grad.norm() for p in model.parameters())",
    ),
    "two engines in two branches": (
        START, "if torch.cuda.is_available():", PRIVATE.replace("\n", "\n    "), "else:",
        "    engine = PrivacyEngine(accountant='rdp', secure_mode=True)",
        PRIVATE.replace("\n", "\n    "), LOOP,
    ),
    "seeds of the data alone": (
        START.replace(
            "batch_size=256", "batch_size=256, generator=torch.Generator().manual_seed(1)"
        ).replace("import torch\n", "import torch\nimport numpy as np\nnp.random.seed(0)\n", 1),
        PRIVATE, LOOP,
    ),
}  # fmt: skip


@pytest.mark.parametrize("parts", RIGHT.values(), ids=RIGHT)
def test_what_is_right_has_no_finding(codes, parts):
    assert codes(*parts) == []


WRONG = {
    "folds of the data": (
        "DP601", (
        START.replace("model = ", "from sklearn.model_selection import KFold\nmodel = "),
        "for part, (train, _) in enumerate(KFold(5).split(range(60_000))):",
        "    net = nn.Linear(784, 10)",
        "    opt = optim.SGD(net.parameters(), lr=0.1)",
        "    fold = DataLoader(torch.utils.data.Subset(data, train), batch_size=64)",
        "    net, opt, fold = PrivacyEngine(secure_mode=True).make_private(module=net,",
        "        optimizer=opt, data_loader=fold, noise_multiplier=1.0, max_grad_norm=1.0)",
        )),
    "a module by another name": (
        "DP101", (
            START.replace("from opacus import PrivacyEngine", "import opacus as op").replace(
                "PrivacyEngine(", "op.PrivacyEngine("
            ),
            PRIVATE.replace("max_grad", "poisson_sampling=not True, max_grad"), LOOP,
        ),
    ),
    "through a function's result": (
        "DP102", (
            START, "def private(m, o, d):",
            PRIVATE.replace("\n", "\n    ").replace("=loader", "=d").replace("=model", "=m"),
            "    return model, optimizer, loader",
            "net, opt, batches = private(model, optimizer, loader)",
            LOOP.replace("optimizer", "opt"),
        ),
    ),
    "through an object": (
        "DP303", (
            START, "class T:\n    def __init__(self, opt):\n        self.opt = opt",
            "    def go(self):\n        self.opt.step()", "t = T(optimizer)", PRIVATE,
            "for x, y in loader:\n    t.go()",
        ),
    ),
    "parameters in a list": (
        "DP302", (
            START, PRIVATE, "other = optim.Adam([p for p in model.parameters()], lr=1.0)", LOOP,
            "        other.step()",
        ),
    ),
    "a module's list": (
        "DP201", (
            START.replace(
                "optimizer = ",
                "blocks = [nn.Sequential(nn.Linear(4, 4), nn.SyncBatchNorm(4)) for _ in range(3)]\n"
                "model = nn.Sequential(*blocks)\noptimizer = ",
            ), PRIVATE, LOOP,
        ),
    ),
    "an inherited network": (
        "DP201", (
            START.replace(
                "optimizer = ",
                "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                "        self.n = nn.BatchNorm1d(4)\nclass B(A):\n    def __init__(self):\n"
                "        super().__init__()\nmodel = B().to('cpu')\noptimizer = ",
            ), PRIVATE, LOOP,
        ),
    ),
    "every second batch": (
        "DP106", (
            START, PRIVATE,
            LOOP.replace("for x, y in loader", "for i, (x, y) in enumerate(loader)").replace(
                "optimizer.step()", "if i % 2:\n            optimizer.step()"
            ),
        ),
    ),
    "the norm from a constant": (
        "DP307", (START, "CLIP = 10 ** 4", PRIVATE.replace("norm=1.0", "norm=CLIP"), LOOP),
    ),
    "the epoch's own seed again": (
        "DP701", (START, PRIVATE, LOOP.replace("    for x", "    torch.manual_seed(3)\n    for x")),
    ),
    "a grid search": (
        "DP601", (
            START, PRIVATE, LOOP, "from sklearn.model_selection import GridSearchCV",
            "GridSearchCV(object(), {})",
        ),
    ),
    "the trial's own function": (
        "DP601", (
            START.replace("model = ", "import optuna\nmodel = "),
            "def run(trial):", "    model = nn.Flatten()",
            "    optimizer = optim.SGD(nn.Linear(2, 2).parameters(), lr=1.0)",
            "    engine.make_private(module=build(), optimizer=None, data_loader=loader,",
            "        noise_multiplier=1.0, max_grad_norm=1.0)",
            "optuna.create_study().optimize(lambda trial: run(trial), n_trials=3)",
        ),
    ),
    "an average of an array": (
        "DP801", (
            START.replace(
                "loader = ",
                "import numpy as np\nx = np.load('x.npy')\nx = (x - np.mean(x, axis=0)) / x.std()\n"
                "data = torch.utils.data.TensorDataset(torch.tensor(x))\nloader = ",
            ), PRIVATE, LOOP,
        ),
    ),
    "a vocabulary": (
        "DP801", (
            START.replace(
                "loader = ",
                "from torchtext.vocab import build_vocab_from_iterator\n"
                "vocabulary = build_vocab_from_iterator(data)\nloader = ",
            ), PRIVATE, LOOP,
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "parts"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_found_however_it_is_written(codes, code, parts):
    assert set(codes(*parts)) == {code}


def test_delta_is_held_against_the_number_of_records(codes):
    ask = "engine.get_epsilon(delta=1e-5)"
    assert codes(START, PRIVATE, LOOP, ask) == []
    assert codes(START, PRIVATE, LOOP, ask, records=200_000) == ["DP501"]
    assert codes(START, PRIVATE, LOOP, "engine.get_epsilon(delta=1 / len(data))") == []
    assert codes(START, PRIVATE, LOOP, "engine.get_epsilon(delta=2 / len(data))") == ["DP501"]
    assert codes(START, PRIVATE, LOOP, "engine.get_epsilon(1e-3)", records=50) == ["DP502"]
