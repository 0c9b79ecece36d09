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
    assert report.reading.missing == (f"a training without these warnings ({code})",)


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
    assert len(report.reading.risks) == 1


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
def test_rows_that_nobody_can_count_have_no_number(examine, rows):
    report = examine(START + PRIVATE + LOOP.replace("model(x)", f"model({rows})"))
    assert report.findings == ()
    assert report.reading.missing == ("one row in the batch for each record",)
