"""A loss must be of the private loader's batches, of each record for itself, and be clipped."""

import pytest

from check.parts import LOOP, PRIVATE, START

GHOST = PRIVATE.replace("optimizer, loader =", "optimizer, clipping, loader =").replace(
    "max_grad", "grad_sample_mode='ghost', criterion=nn.CrossEntropyLoss(), max_grad"
)
LOSS = "nn.functional.cross_entropy(model(x), y)"
START_WITH_LOSS = START + "criterion = nn.CrossEntropyLoss()\n"


def only(report, code):
    assert [finding.code for finding in report.findings] == [code]


@pytest.mark.parametrize("loss", [LOSS, "criterion(model(x), y)"])
def test_with_ghost_clipping_only_the_returned_criterion_clips(examine, loss):
    only(examine(START_WITH_LOSS + GHOST + LOOP.replace(LOSS, loss)), "DP311")
    right = examine(START_WITH_LOSS + GHOST + LOOP.replace(LOSS, "clipping(model(x), y)"))
    assert right.findings == ()
    assert right.unclear == ()


def test_a_loss_from_elsewhere_may_not_clip(examine):
    elsewhere = (
        START + "from mine import loss_of" + GHOST + LOOP.replace(LOSS, "loss_of(model(x), y)")
    )
    loop = LOOP.replace(LOSS, "criterion(model(x), y)").replace("\n", "\n    ")
    uncalled = START + GHOST + f"def train(criterion):{loop}"
    for text in (elsewhere, uncalled):
        report = examine(text)
        assert report.findings == ()
        assert "the criterion that make_private returned" in " ".join(report.unclear)


def test_a_mode_that_is_not_known_leaves_the_criterion_open(examine):
    unknown = PRIVATE.replace("max_grad", "grad_sample_mode=mode(), max_grad")
    report = examine(START + unknown + LOOP)
    assert report.findings == ()
    assert "the criterion that make_private returned" in " ".join(report.unclear)


def test_records_beside_the_private_loader_are_found(examine):
    beside = "for _, (x, y) in zip(loader, DataLoader(data, batch_size=256))"
    only(examine(START + PRIVATE + LOOP.replace("for x, y in loader", beside)), "DP102")
    unused = "for (x, y), _ in zip(loader, DataLoader(data, batch_size=256))"
    assert examine(START + PRIVATE + LOOP.replace("for x, y in loader", unused)).findings == ()


@pytest.mark.parametrize(
    ("loop", "words"),
    [
        ("for _, (x, y) in zip(loader, DataLoader(more, batch_size=256))", "batches alone"),
        ("for (x, _), (_, y) in zip(loader, loader)", "draws several"),
    ],
)
def test_batches_of_several_loaders_are_said(examine, loop, words):
    report = examine(START + PRIVATE + LOOP.replace("for x, y in loader", loop))
    assert report.findings == ()
    assert words in " ".join(report.unclear)


@pytest.mark.parametrize(
    "loss",
    [
        "criterion(z @ z.T, y)",
        "criterion(torch.mm(z, z.t()), y)",
        "criterion(z.matmul(z.T), y)",
        "torch.softmax(z, dim=0).log().sum()",
    ],
)
def test_records_that_are_held_against_each_other_are_found(examine, loss):
    only(examine(START_WITH_LOSS + PRIVATE + _with_output(loss)), "DP203")


@pytest.mark.parametrize("loss", ["criterion(z @ other(z), y)", "torch.cdist(z, z).sum()"])
def test_a_product_that_may_mix_records_is_said(examine, loss):
    report = examine(START_WITH_LOSS + PRIVATE + _with_output(loss))
    assert report.findings == ()
    assert "compares no record with another" in " ".join(report.unclear)


@pytest.mark.parametrize("loss", ["criterion(z @ weights.T, y)", "torch.softmax(z, dim=1).sum()"])
def test_a_product_with_something_else_is_no_finding(examine, loss):
    report = examine(START_WITH_LOSS + PRIVATE + _with_output(loss))
    assert report.findings == ()
    assert report.unclear == ()


def _with_output(loss):
    return LOOP.replace(f"loss = {LOSS}", f"z = model(x)\n        loss = {loss}")


def test_two_steps_on_one_line_are_two(examine):
    twice = LOOP.replace("optimizer.step()", "optimizer.step(); optimizer.step()")
    only(examine(START + PRIVATE + twice), "DP107")
    function = "def go():\n    optimizer.step()\n"
    loop = LOOP.replace("optimizer.step()", "go(); go()")
    only(examine(START + PRIVATE + function + loop), "DP107")


LATER = {
    "appended": "layers = [nn.Linear(4, 4)]\nlayers.append(nn.BatchNorm1d(4))\n"
    "layers += [nn.Linear(4, 2)]\nmodel = nn.Sequential(*layers)\n",
    "in a loop": "layers = []\nfor n in sizes:\n    layers.append(nn.Linear(n, n))\n"
    "    layers.append(nn.BatchNorm1d(n))\nmodel = nn.Sequential(*layers)\n",
    "added to the network": "model = nn.Sequential(nn.Linear(4, 4))\n"
    "model.append(nn.BatchNorm1d(4))\n",
    "by name": "model = nn.Sequential()\nmodel.add_module('norm', nn.BatchNorm1d(4))\n",
    "as an attribute": "model = nn.Sequential()\nmodel.norm = nn.BatchNorm1d(4)\n",
}


@pytest.mark.parametrize("made", LATER.values(), ids=LATER)
def test_layers_that_come_later_are_layers(examine, made):
    only(examine(START.replace("optimizer = ", f"{made}optimizer = ") + PRIVATE + LOOP), "DP201")


def test_layers_from_elsewhere_are_named(examine):
    made = "from mine import blocks\nmodel = nn.Sequential(*blocks())\n"
    report = examine(START.replace("optimizer = ", f"{made}optimizer = ") + PRIVATE + LOOP)
    assert "come from elsewhere" in " ".join(report.unclear)


@pytest.mark.parametrize(
    "line",
    [
        "schedulers.LambdaNoise(optimizer, noise_lambda=lambda epoch: 0.0)",
        "schedulers.LambdaNoise(optimizer, lambda epoch: -1)",
        "schedulers.ExponentialNoise(optimizer, gamma=0)",
    ],
)
def test_a_schedule_to_no_noise_is_found(examine, line):
    line = f"from opacus import schedulers\n{line}\n"
    only(examine(START + PRIVATE + line + LOOP), "DP408")
    kept = line.replace("0.0", "0.9").replace("-1", "0.9").replace("gamma=0", "gamma=0.9")
    assert examine(START + PRIVATE + kept + LOOP).findings == ()


def test_negative_noise_is_none(examine):
    only(examine(START + PRIVATE.replace("=1.1", "=-1.0") + LOOP), "DP408")


def test_a_seeded_generator_of_the_noise_is_noted(codes):
    seeded = PRIVATE.replace(
        "max_grad", "noise_generator=torch.Generator().manual_seed(0), max_grad"
    )
    assert codes(START, seeded, LOOP) == ["DP702"]
