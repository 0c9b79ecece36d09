"""The loss of each record, from criteria that average or add up."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dprime import InputError
from dprime.attributes.losses import loss_of

pytestmark = pytest.mark.filterwarnings("ignore:Using a target size")

torch.manual_seed(0)
LOGITS, LABELS = torch.randn(5, 3), torch.randint(3, (5,))
SEQUENCES, TAGS = torch.randn(5, 3, 4), torch.randint(3, (5, 4))
COLUMN, NUMBERS, SHARES, NONE = (
    torch.randn(5, 1),
    torch.randn(5),
    torch.rand(5, 3),
    torch.zeros(5, 3),
)
EACH = partial(F.cross_entropy, reduction="none")
WEIGHTS = torch.tensor([1.0, 2.0, 3.0])
CASES = {
    "mean": (nn.CrossEntropyLoss(), LOGITS, LABELS, EACH(LOGITS, LABELS)),
    "sum": (nn.CrossEntropyLoss(reduction="sum"), LOGITS, LABELS, EACH(LOGITS, LABELS)),
    "function": (F.cross_entropy, LOGITS, LABELS, EACH(LOGITS, LABELS)),
    "weighed sum": (
        nn.CrossEntropyLoss(weight=WEIGHTS, reduction="sum"), LOGITS, LABELS,
        EACH(LOGITS, LABELS) * WEIGHTS[LABELS],
    ),
    "smoothed": (
        nn.CrossEntropyLoss(label_smoothing=0.1), LOGITS, LABELS,
        EACH(LOGITS, LABELS, label_smoothing=0.1),
    ),
    "shares": (nn.CrossEntropyLoss(), LOGITS, SHARES, EACH(LOGITS, SHARES)),
    "mean of places": (nn.CrossEntropyLoss(), SEQUENCES, TAGS, EACH(SEQUENCES, TAGS).mean(dim=1)),
    "sum of places": (
        nn.CrossEntropyLoss(reduction="sum"), SEQUENCES, TAGS, EACH(SEQUENCES, TAGS).sum(dim=1)
    ),
    "mean of outputs": (nn.MSELoss(), LOGITS, NONE, LOGITS.square().mean(dim=1)),
    "sum of outputs": (nn.MSELoss(reduction="sum"), LOGITS, NONE, LOGITS.square().sum(dim=1)),
    "partial": (partial(F.mse_loss, reduction="sum"), LOGITS, NONE, LOGITS.square().sum(dim=1)),
    "one column": (nn.MSELoss(), COLUMN, NUMBERS, (COLUMN[:, 0] - NUMBERS).square()),
    "batch mean": (
        nn.KLDivLoss(reduction="batchmean"), LOGITS, SHARES,
        F.kl_div(LOGITS, SHARES, reduction="none").sum(dim=1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_one_loss_for_each_record(case):
    criterion, outputs, targets, wanted = CASES[case]
    torch.testing.assert_close(loss_of(criterion)(outputs, targets), wanted)


@pytest.mark.parametrize(
    ("criterion", "outputs", "targets", "sentence"),
    [
        (None, LOGITS, LABELS, "one whose reduction can be turned off, but it is missing"),
        (lambda a, b: a.sum(), LOGITS, LABELS, "but it is a function: give loss="),
        (nn.CrossEntropyLoss(weight=WEIGHTS), LOGITS, LABELS, "divides by the batch's weights"),
        (partial(F.cross_entropy, weight=WEIGHTS), LOGITS, LABELS, "divides by the batch's weigh"),
        (nn.MSELoss(reduction="none"), LOGITS, NONE, "leaves a record's outputs apart"),
        (nn.MSELoss(), LOGITS, torch.zeros(5, 5), "that belong together"),
        (nn.L1Loss(), torch.zeros(5, 1, 1), NUMBERS, "that belong together"),
    ],
)
def test_criteria_that_are_refused(criterion, outputs, targets, sentence):
    with pytest.raises(InputError, match=sentence):
        loss_of(criterion)(outputs, targets)
