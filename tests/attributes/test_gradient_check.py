"""What a loop does beside the model and the criterion is seen, and never analysed wrongly."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from dprime import InputError
from dprime.attributes.attribute import Attribute
from dprime.attributes.inference import CHECKED_EVERY, AttributeInference
from dprime.attributes.worst_pair import membership
from dprime.canaries.gradients import GradientCanaries
from dprime.canaries.inputs import InputCanaries
from dprime.monitor.checks import PrivacyWarning
from dprime.monitor.monitor import Monitor

pytestmark = [
    pytest.mark.filterwarnings("ignore:Not private. records came from elsewhere"),
    pytest.mark.filterwarnings("ignore:Using a target size"),
]

FEW = Attribute.column(0, [-1.0, 0.0, 2.0], name="few")
MODES = ("hooks", "functorch", "ew", "ghost")


def plain(made, x, y, _):
    return made.criterion(made.model(x), y)


def drawn(loader, steps):
    """So many batches, over as many passes as they take."""
    batches = itertools.chain.from_iterable(loader for _ in itertools.count())
    return itertools.islice(batches, steps)


def looped(made, backward, *watchers, steps=2):
    """Train with a loop of its own, and give the first watcher back."""
    with Monitor(made.engine, **made.named(), watchers=watchers, show=None):
        for step, (x, y) in enumerate(drawn(made.loader, steps)):
            made.optimizer.zero_grad()
            backward(made, x, y, step).backward()
            made.optimizer.step()
    return watchers[0]


def penalised(made, x, y, _):
    outputs = made.model(x)
    return made.criterion(outputs, y) + outputs.square().mean()


def with_metric(made, x, y, _):
    """A metric with other labels comes before the loss."""
    outputs = made.model(x)
    made.criterion(outputs, 1 - y)
    return made.criterion(outputs, y)


def tempered(made, x, y, _):
    return made.criterion(made.model(x) / 0.1, y)


def weighed(made, x, y, _):
    return 5 * made.criterion(made.model(x), y)


@pytest.mark.parametrize("loop", [tempered, weighed, penalised, with_metric])
def test_a_loss_that_is_not_the_criterions_is_refused(private, loop):
    with pytest.raises(InputError, match="must be those that Opacus clipped"):
        looped(private(norm=10.0), loop, AttributeInference(FEW))


@pytest.mark.parametrize("mode", MODES)
def test_the_loops_loss_may_be_given(private, mode):
    def tenth(outputs, targets):
        return F.cross_entropy(outputs / 0.1, targets, reduction="none")

    assert len(looped(private(mode), tempered, AttributeInference(FEW, loss=tenth)).steps) == 2
    with pytest.raises(InputError, match="must be those that Opacus clipped"):
        looped(private(mode, norm=10.0), tempered, AttributeInference(FEW))


def test_other_watchers_may_add_to_the_sum(private):
    made = private(net=private.network(20))
    watchers = [GradientCanaries(50, seed=1), AttributeInference(FEW)]
    looped(made, plain, *watchers)
    assert len(watchers[1].steps) == 2


def test_a_loss_that_changes_later_counts_as_membership(private):
    change = CHECKED_EVERY + 3

    def backward(made, x, y, step):
        return (plain if step < change else weighed)(made, x, y, step)

    watcher = AttributeInference(FEW)
    with pytest.warns(PrivacyWarning, match="From step 12 on the gradients of the batch differed"):
        looped(private(norm=10.0), backward, watcher, steps=2 * CHECKED_EVERY + 3)
    most = membership(1.0)
    reached = [d == most.difference for d in watcher.steps.differences["few"]]
    assert reached == [False] * (CHECKED_EVERY + 1) + [True] * (CHECKED_EVERY + 2)
    assert watcher.steps.terms["few"][-1] == most.term
    assert "count as they would against membership" in watcher.report()
    again = AttributeInference(FEW)
    again.load_state_dict(watcher.state_dict())
    assert again.notes == watcher.notes


@pytest.mark.filterwarnings("ignore::dprime.monitor.PrivacyWarning")
@pytest.mark.parametrize("kind", ["step", "start"])
def test_gradients_that_are_no_numbers_count_as_membership(private, kind):
    made = private()
    watcher = AttributeInference(FEW)
    x, y = private.data().tensors
    far = 1e25 if kind == "start" else 1.0
    with Monitor(made.engine, **made.named(), watchers=[watcher], show=None):
        made.step(x * far, y)
        for weight in made.model.parameters():
            weight.data.fill_(math.nan)
        made.step(x, y)
    assert watcher.steps.differences["few"][-1] == 2.0
    assert (watcher.steps.differences["few"][0] == 2.0) == (kind == "start")
    assert "too large or no numbers" in watcher.report()


@pytest.mark.filterwarnings("ignore::dprime.monitor.PrivacyWarning")
def test_notes(private):
    net = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5), nn.Linear(3, 2))
    made = private(net=net, poisson_sampling=False)
    found = looped(made, plain, AttributeInference(FEW)).report()
    other = looped(private(), plain, AttributeInference(FEW)).report()
    for words in (
        "could not be compared with those that Opacus", "without dropout",
        "assume batches in which every record is drawn for itself",
    ):  # fmt: skip
        assert words in found
        assert words not in other


class Hidden(nn.Module):
    """Calls its layers by a list, or by a function that hides them."""

    def __init__(self, listed):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 2)
        self.by_name = {"first": self.first}
        self.layers = [self.first, nn.ReLU(), self.second]
        self.function = None if listed else lambda x: self.second(torch.relu(self.first(x)))

    def forward(self, x):
        if self.function is not None:
            return self.function(x)
        return self.layers[2](self.layers[1](self.by_name["first"](x)))


@pytest.mark.parametrize("mode", MODES)
def test_layers_in_lists_are_the_twins(private, mode):
    listed = looped(private(mode, net=Hidden(True)), plain, AttributeInference(FEW))
    direct = looped(private(mode), plain, AttributeInference(FEW))
    assert list(listed.steps.terms["few"]) == pytest.approx(list(direct.steps.terms["few"]))


def test_layers_in_functions_are_refused_before_they_do_harm(private):
    made = private(net=Hidden(False))
    with pytest.raises(InputError, match="reaches a Linear past its own attributes"):
        looped(made, plain, AttributeInference(FEW))
    made.step(*(part[:5] for part in made.loader.dataset.tensors))  # Opacus can go on


def test_the_data_must_be_what_the_model_is_given(private):
    x, y = private.data().tensors

    def scaled(made, x, y, _):
        return made.criterion(made.model(x / 2), y)

    with pytest.raises(InputError, match="without the records that the model is given"):
        looped(private(), scaled, AttributeInference(FEW, scope="data"))
    seen = AttributeInference(FEW, scope="data", data=(x / 2, y))
    assert len(looped(private(), scaled, seen).steps) == 2
    shaped = AttributeInference(FEW, scope="data", data=(x, y[:, None]))
    with pytest.raises(InputError, match=r"with targets of shape \(60, 1\)"):
        looped(private(), plain, shaped)


def test_canaries_in_the_data_are_not_records(private):
    canaries = InputCanaries.crafted(private.data(), 50, classes=2, scale=1.0, seed=1)
    made = private(loader=DataLoader(canaries.with_canaries(private.data()), batch_size=10))
    watcher = AttributeInference(FEW, scope="data")
    with Monitor(made.engine, **made.named(), watchers=[watcher, canaries], show=None):
        made.train()
    assert len(watcher._data[0]) == 60


def test_all_records_leave_the_random_numbers_alone(private):
    def weights(*watchers):
        made = private()
        with Monitor(made.engine, **made.named(), watchers=watchers, show=None):
            made.train()
        return torch.cat([p.detach().flatten() for p in made.model.parameters()])

    assert torch.equal(weights(), weights(AttributeInference(FEW, scope="data")))


def test_the_criterion_may_have_named_arguments_and_evaluations_between(private):
    def named(made, x, y, _):
        with torch.no_grad():
            made.model(x[5:])
        return made.criterion(made.model(x), target=y)

    first, second = (looped(private(), one, AttributeInference(FEW)) for one in (plain, named))
    assert first.steps.terms == second.steps.terms


def test_a_part_of_the_batch_is_refused(private):
    made = private()
    x, y = private.data().tensors
    watcher = AttributeInference(FEW)
    named = {**made.named(), "criterion": F.cross_entropy}
    with Monitor(made.engine, **named, watchers=[watcher], show=None) as monitor:
        monitor.batch(x[:3], y[:3])
        with pytest.raises(InputError, match="hand over the whole batch"):
            made.step(x, y)


def test_one_watcher_is_for_one_training(private):
    watcher = AttributeInference(FEW)
    looped(private(), plain, watcher)
    with pytest.raises(InputError, match="AttributeInference must be new for each training"):
        looped(private(), plain, watcher)
