"""What is read of a training, and which trainings are refused."""

import opacus
import pytest
import torch
from opacus.utils.adaptive_clipping import PrivacyEngineAdaptiveClipping
from torch import nn

from dprime import DPSGD
from dprime.monitor import PrivacyWarning
from dprime.monitor.opacus_training import OpacusTraining, rounding_in
from watching import ADAPTIVE, RATE, watch

since_1_6 = pytest.mark.skipif(opacus.__version__ < "1.6", reason="is so since Opacus 1.6")


def attached(made, **changed):
    return OpacusTraining(made.engine, **{**made.named(), **changed})


def test_what_is_read(private):
    training = attached(private(noise=1.5, norm=0.5))
    assert (training.poisson, training.ghost, training.adaptive) == (True, False, False)
    assert (training.noise_multiplier, training.clip_norm, training.clipped_to) == (1.5, 0.5, 0.5)
    assert (training.sample_rate, training.records, training.size) == (1 / 6, 60, 44)
    assert training.module is training.model._module
    assert training.device() == torch.device("cpu")


@pytest.mark.parametrize(
    ("digits", "factor"),
    [(torch.float64, 1.0), (torch.float32, 1.0), (torch.bfloat16, 1.03125)],
    ids=str,
)
def test_few_digits_let_a_clipped_norm_exceed_its_bound(private, digits, factor):
    torch.manual_seed(0)
    made = private(net=nn.Linear(100, 20).to(digits), loader=private.loader(batch_size=1))
    training = attached(made)
    assert rounding_in(frozenset({digits})) == factor
    largest = 0.0
    for record in 20 * torch.randn(60, 1, 100).to(digits):
        made.optimizer.zero_grad()
        made.criterion(made.model(record), torch.tensor([3])).backward()
        made.optimizer.clip_and_accumulate()
        norm = sum(float(part.double().norm()) ** 2 for part in training.summed()) ** 0.5
        largest = max(largest, norm)
    assert largest < factor * (1 + 1e-6)
    assert (largest > 1.001) is (digits == torch.bfloat16)


def test_what_clips_and_to_which_norm(private):
    """In ghost mode the model clips; layers that are clipped one by one add up."""
    assert attached(private()).claim() is None  # without a monitor
    made = private("ghost")
    made.optimizer.max_grad_norm = 0.25
    training = attached(made)
    assert (training.ghost, training.clip_norm, training.clipped_to) == (True, 0.25, 1.0)
    training = attached(private(norm=[0.5, 1.0, 0.5, 2.0], clipping="per_layer"))
    assert training.clipped_to == training.clip_norm == pytest.approx(5.5**0.5)


class Turned(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 3, dtype=torch.complex64))

    def forward(self, x):
        return (x[:, :3] @ self.weight.T).abs()


REFUSED = [
    ({}, {"privacy_engine": object()}, "privacy_engine must be Opacus' own, but it is a object"),
    ({}, {"model": nn.Linear(4, 2)}, "model must be the one that is trained, but it is one"),
    ({}, {"data_loader": iter(())}, "data_loader must be one whose sampling rate is known"),
    (
        {}, {"optimizer": torch.optim.SGD([nn.Parameter(torch.ones(1))])},
        "optimizer must be Opacus' own, but it is a SGD",
    ),
    (
        {"mode": "ghost"}, {"model": nn.Sequential()},
        "model must be what make_private returned, but it is a Sequential",
    ),
    (
        {"mode": "functorch", "net": Turned()}, {},
        r"weights must be real numbers, .*view_as_real",
    ),
    (ADAPTIVE, {}, "a count divided by a secret size"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "changed", "sentence"), REFUSED)
def test_what_has_no_guarantee_is_refused(private, options, changed, sentence):
    made = private(**options)
    with pytest.raises(ValueError, match=sentence):
        _ = OpacusTraining(**{"privacy_engine": made.engine, **made.named(), **changed}).sampling


def test_the_plain_model_and_a_part_of_it_are_refused(private):
    made = private()
    for other in (made.model._module, made.model._module[0]):
        with pytest.raises(ValueError, match="give what make_private returned"):
            attached(made, model=other)


@since_1_6
def test_adaptive_clipping_with_public_batch_sizes_is_read(private, monkeypatch):
    """Older releases do not keep the noise."""
    made = private(**ADAPTIVE, poisson_sampling=False)
    assert (attached(made).adaptive, attached(made).noise_multiplier) == (True, 1.0)
    monkeypatch.setattr("opacus.__version__", "1.5.4")
    with pytest.raises(ValueError, match=r"opacus must be 1.6 or later .* but it is '1.5.4'"):
        attached(made)


def test_another_engine_than_the_one_that_made_the_optimizer_is_refused(private):
    made, other = private(), private()
    sentence = "privacy_engine must be the one that made the optimizer, but it is another one"
    with pytest.raises(ValueError, match=sentence):
        OpacusTraining(other.engine, **made.named())
    made.optimizer.attach_step_hook(lambda _: None)  # whom it tells cannot be seen
    OpacusTraining(other.engine, **made.named())


@pytest.mark.parametrize("seen", ["criterion", "engine", "optimizer"])
def test_adaptive_clipping_in_ghost_mode_is_refused(private, seen):
    plain, made = private("ghost"), private("ghost", engine=PrivacyEngineAdaptiveClipping)
    engine = made.engine if seen == "engine" else plain.engine
    if seen == "optimizer":
        made.optimizer._adjusted_noise_multiplier = 1.0
    changed = {} if seen == "criterion" else {"criterion": None}
    with pytest.raises(ValueError, match="clipping must be flat in ghost mode, but it is adaptive"):
        OpacusTraining(engine, **{**made.named(), **changed})


def moved(made, norm, records):
    """How far the clipped sum moves when the first record is replaced by zeros."""
    sums = []
    for first in (records[0], torch.zeros_like(records[0])):
        batch = torch.cat([first[None], records[1:]])
        made.model.max_grad_norm = made.optimizer.max_grad_norm = norm
        made.optimizer.zero_grad()
        made.criterion(made.model(batch), torch.zeros(len(batch), dtype=torch.long)).backward()
        sums.append(torch.cat([p.grad.flatten() for p in made.model.parameters()]))
    return float((sums[0] - sums[1]).norm())


@since_1_6
def test_why_adaptive_clipping_in_ghost_mode_is_refused(private):
    """Replacing a record may move a clipped sum by 2C; there it moves by much more."""
    torch.manual_seed(0)
    records = torch.cat([torch.full((1, 4), -50.0), torch.randn(29, 4)])
    options = {"min_clipbound": 0.0999, "max_clipbound": 0.1}
    broken = private("ghost", engine=PrivacyEngineAdaptiveClipping, net=linear(), **options)
    assert moved(broken, 0.1, records) > 10 * 0.2
    assert moved(private("ghost", net=linear()), 0.1, records) <= 0.2


def linear():
    net = nn.Linear(4, 2, bias=False)
    nn.init.constant_(net.weight, 0.0)
    net.weight.data[0] = 0.1
    return net


@pytest.mark.parametrize("batch", [30, 200])
def test_a_step_of_adaptive_clipping_costs_what_its_noise_says(batch):
    """The sum that the docstring of `OpacusTraining` has, for both of Opacus' ways."""
    for noise, count_noise in ((1.0, 2.0), (1.3, batch / 20)):
        raised = (noise**-2 - (2 * count_noise) ** -2) ** -0.5
        assert (2 / raised) ** 2 + 1 / count_noise**2 == pytest.approx((2 / noise) ** 2)


@since_1_6
def test_weights_with_few_digits_reach_further(private):
    net = private.network().to(torch.bfloat16)
    made = private(net=net)
    with pytest.warns(PrivacyWarning, match="fewer digits than float32"):
        monitor = watch(made)
    for records, labels in made.loader:
        made.step(records.bfloat16(), labels)
    assert monitor.ledger.mechanism() == DPSGD(1.0 / 1.03125, RATE, 6)
    assert len(monitor.warnings) == 1
