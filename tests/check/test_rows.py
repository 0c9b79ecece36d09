"""One row for each record, and no number across them; what merely looks like that is left alone."""

import pytest

from check.parts import LOOP, PRIVATE, START

CALL = "cross_entropy(model(x), y)"

WRONG = {
    "rows repeated": ("DP803", "cross_entropy(model(x.to(0).repeat(2, 1)), y.repeat(2))"),
    "rows repeated, by a list": ("DP803", "cross_entropy(model(x.repeat([2, 1])), y)"),
    "each row twice": ("DP803", "cross_entropy(model(torch.repeat_interleave(x, 2, 0)), y)"),
    "rows below rows": ("DP803", "cross_entropy(model(torch.cat((x, -x), dim=0)), y)"),
    "a squared mean": ("DP203", f"{CALL} + torch.mean(model(x), dim=0).pow(2).sum()"),
    "a mean times a mean": ("DP203", f"{CALL} + (model(x).mean(0) * model(x).mean(0)).sum()"),
    "a mean against a target": ("DP203", f"{CALL} + nn.functional.mse_loss(model(x).mean(0), 0.1)"),
    "over the spread": ("DP203", f"{CALL} / model(x).mean(axis=0).norm()"),
    "the input's mean": ("DP203", "cross_entropy(model(x - x.mean()), y)"),
}


@pytest.mark.parametrize(("code", "loss"), WRONG.values(), ids=WRONG)
def test_rows_that_are_not_one_record_each_are_found(examine, code, loss):
    report = examine(START + PRIVATE + LOOP.replace(CALL, loss))
    assert [finding.code for finding in report.findings] == [code]


RIGHT = {
    "colours": "cross_entropy(model(x.repeat(1, 3, 1, 1)), y)",
    "colours without copying": "cross_entropy(model(x.expand(-1, 3, -1, -1)), y)",
    "features side by side": "cross_entropy(model(torch.cat([x, -x], dim=1)), y)",
    "pixels in turn": "cross_entropy(model(x.repeat_interleave(2, dim=2)), y)",
    "noise of the same shape": "cross_entropy(model(torch.cat([x, torch.randn_like(x)])), y)",
    "the mean of losses": "cross_entropy(model(x), y, reduction='none').mean(0)",
    "a critic's mean": "dropout(-model(x).mean(0) + 3 * model(x).sum(dim=0))",
    "the mean over classes": f"{CALL} + (model(x).mean(1) ** 2).sum()",
    "a mean over time": "mse_loss(model(x).mean(0), y)",
    "weights": f"{CALL} + sum((p.mean(0) ** 2).sum() for p in model.parameters())",
}


@pytest.mark.parametrize("loss", RIGHT.values(), ids=RIGHT)
def test_what_keeps_records_apart_has_no_finding(examine, loss):
    report = examine(START + PRIVATE + LOOP.replace(CALL, loss))
    assert report.findings == ()
    assert report.unclear == ()


NETWORK = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(784, 10)

    def forward(self, x):
        return self.layer({})


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Net()

    def forward(self, x):
        return self.inner(x)


model = {}
"""

MIXING = (
    "x / x.std()", "x - torch.mean(x, dim=0)", "x.softmax(dim=0)", "F.normalize(x, 2, 0)",
    "x - x.amax(dim=(0, 1))", "nn.functional.softmax(x, 0)",
)  # fmt: skip
APART = (
    "x / x.std(1, keepdim=True)", "x - torch.mean(x, dim=-1)", "x.softmax(dim=1)", "max(x, 0)",
    "x - self.mean.mean(0)", "F.normalize(x, dim=1)", "x.amax(dim=(2, 3))", "x * torch.max(x, y)",
)  # fmt: skip


def _with_network(made, inside):
    network = NETWORK.replace("{}", inside, 1).replace("{}", made)
    return START.replace("optimizer = ", f"{network}optimizer = ", 1) + PRIVATE + LOOP


@pytest.mark.parametrize("made", ["Net()", "Outer()", "nn.Sequential(nn.Flatten(), Net())"])
@pytest.mark.parametrize("inside", MIXING)
def test_a_number_across_the_batch_in_forward_is_found(codes, made, inside):
    assert codes(_with_network(made, inside)) == ["DP204"]


@pytest.mark.parametrize("inside", APART)
def test_a_number_for_each_record_in_forward_has_no_finding(codes, inside):
    assert codes(_with_network("Outer()", inside)) == []


def test_forward_of_another_network_has_no_finding(codes):
    assert codes(_with_network("nn.Linear(784, 10)\nother = Net()", MIXING[0])) == []


def test_what_is_only_looked_at_has_no_finding(codes):
    shown = "        print((model(x).mean(0) ** 2).sum(), model(x.repeat(9, 1)))\n"
    assert codes(START, PRIVATE, LOOP + shown) == []


def test_where_the_first_dimension_is_time_nothing_is_said(codes):
    private = PRIVATE.replace("max_grad", "batch_first=False, max_grad")
    loop = LOOP.replace("model(x), y", "model(x).mean(0).tanh(), y")
    assert codes(START, private, loop) == []


@pytest.mark.parametrize(
    "rows",
    [
        "x.repeat(k, 1)",
        "x.repeat(1, 4, 1, 1).view(-1, 784)",
        "x.tile(2, 1)",
        "torch.stack([x, -x]).flatten(0, 1)",
        "torch.cat([x + i for i in range(3)])",
        "torch.cat([x, x], k)",
    ],
)
def test_rows_that_reading_cannot_count_are_said(examine, rows):
    report = examine(START + PRIVATE + LOOP.replace("model(x)", f"model({rows})"))
    assert report.findings == ()
    (unclear,) = report.unclear
    assert "that the batch has one row for each record" in unclear
