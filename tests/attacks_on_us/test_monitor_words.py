"""What the monitor and `dprime check` said of a training, and what is true of it."""

import math
import warnings
from types import SimpleNamespace

import pytest
import torch
from opacus import PrivacyEngine
from opacus.validators import ModuleValidator
from torch import nn
from torch.utils.data import TensorDataset

from attacked import Training
from dprime.attributes import Attribute, AttributeInference
from dprime.check.files import check_script
from dprime.check.source import Source
from dprime.monitor import PrivacyWarning
from dprime.monitor.layers import problems_of
from dprime.monitor.ledger import NoGuarantee
from dprime.monitor.problems import Problem

pytestmark = [
    pytest.mark.filterwarnings("ignore:GDP accounting is experimental"),
    pytest.mark.filterwarnings("ignore:Using a non-full backward hook"),
]

SCRIPT = """
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
data = TensorDataset(torch.randn(60, 2, 5), torch.randint(0, 2, (60,)))
model = nn.Sequential(nn.Conv1d(2, 3, 2), {layer}, nn.Flatten(), nn.Linear(12, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine({engine})
model, optimizer, {returned}loader = engine.make_private(
    module=model, optimizer=optimizer, data_loader=DataLoader(data, batch_size=10),
    criterion=nn.CrossEntropyLoss(), noise_multiplier=1.0, max_grad_norm=1.0,
    grad_sample_mode="{mode}",
)
{criterion}
from dprime.monitor import Monitor

monitor = Monitor(
    engine, model=model, optimizer=optimizer, data_loader=loader, criterion=criterion, show=None
)
for _ in range(3):
    for records, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(records), labels)
        loss.backward()
        {change}
        optimizer.step()
"""

CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 0.5{})"
SCALED = "[p.grad.mul_(3.0) for p in model.parameters()]"


def script(mode="hooks", change="pass", layer="nn.ReLU()", engine=""):
    ghost = mode == "ghost"
    return SCRIPT.format(
        mode=mode, change=change, layer=layer, engine=engine,
        returned="criterion, " if ghost else "",
        criterion="" if ghost else "criterion = nn.CrossEntropyLoss()",
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "private"),
    [
        (script(), True),
        (script(change=CLIP.format("")), True),  # Opacus sets its result aside
        (script(change=SCALED), True),
        (script("ghost"), True),
        (script("ghost", CLIP.format("")), True),  # a projection
        (script("ghost", "nn.utils.clip_grad_value_(model.parameters(), 0.01)"), True),
        (script("ghost", CLIP.format(", norm_type=1")), False),
        (script("ghost", SCALED), False),
        (script(layer="nn.InstanceNorm1d(3)"), True),
        (script(layer="nn.GroupNorm(1, 3)"), True),
        (script(layer="nn.InstanceNorm1d(3, track_running_stats=True)"), False),
        (script(layer="nn.BatchNorm1d(3, affine=False)"), False),
    ],
)
def test_check_and_monitor_say_the_same_of_a_script(text, private):
    report = check_script(Source("train.py", text))
    assert report.failed == (not private), [f.as_json() for f in report.findings]
    made = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(text, made)
    assert isinstance(made["monitor"].mechanism(), NoGuarantee) == (not private)


def test_a_shortened_sum_is_private_only_with_one_length():
    for change in (
        CLIP.format("").replace("0.5", "loss.item()"),  # tells of the raw loss
        "len(records) > 10 and " + CLIP.format(""),  # so does whether it is done
    ):
        made = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(script("ghost", change), made)
        assert isinstance(made["monitor"].mechanism(), NoGuarantee), change


def test_the_fix_of_opacus_leaves_statistics():
    """Of `ModuleValidator.fix`: the flag is cleared, but PyTorch goes on with the buffers."""
    tracked = nn.InstanceNorm1d(2, affine=True, track_running_stats=True)
    (fixed,) = ModuleValidator.fix(nn.Sequential(tracked))
    assert not fixed.track_running_stats
    for layer in (fixed.train(), fixed.eval()):
        before = layer.running_mean.clone()
        layer(torch.ones(3, 2, 4))
        assert not torch.equal(layer.running_mean, before)
        assert problems_of(layer, SimpleNamespace(ghost=False)) == {Problem.MIXED}


def test_running_statistics_give_a_record_away():
    """Opacus lets the layer pass, because it has no weights."""
    tracked = nn.InstanceNorm1d(2, track_running_stats=True)
    net = ModuleValidator.fix(nn.Sequential(tracked, nn.Flatten(), nn.Linear(8, 2)))
    records = torch.zeros(40, 2, 4)
    records[0] = 1e6
    data = TensorDataset(records, torch.zeros(40, dtype=torch.long))
    with pytest.warns(PrivacyWarning, match="keeps running statistics"):
        training = Training(net, data, noise=50.0)
    training.train(5)
    assert float(net[0].running_mean.max()) > 1e3  # 0 without the record
    assert isinstance(training.monitor.mechanism(), NoGuarantee)


def attached(accountant="rdp", **watched):
    torch.manual_seed(4)
    data = TensorDataset(torch.randn(120, 4), torch.randint(0, 2, (120,)))
    engine = PrivacyEngine(accountant=accountant)
    given = {"conditions": None, **watched}
    return Training(nn.Linear(4, 2), data, engine=engine, batch=30, watched=given).train(3)


def test_an_accountant_that_says_too_little_stands_beside_what_is_proved():
    with pytest.warns(PrivacyWarning, match='The accountant "gdp" says') as said:
        training = attached("gdp")
    monitor = training.monitor
    own = training.engine.get_epsilon(1e-5)
    proved = monitor.ledger.mechanism().curve().epsilon(1e-5)
    assert own < proved - 0.3
    sentence = next(w for w in map(str, (each.message for each in said)) if '"gdp"' in w)
    sentence = next(w for w in monitor.warnings if w[:20] == sentence[:20])  # the latest numbers
    assert f"ε = {own:.4g} at δ = 1e-05" in sentence
    assert f"ε = {math.ceil(1000 * proved) / 1000:.4g} is proved" in sentence
    assert sentence in monitor.report()
    assert check_script(Source("t.py", script(engine='accountant="gdp"'))).failed


def test_one_attribute_warns_in_every_training():
    age = Attribute.column(0, [17.0, 90.0], name="age")  # the model is given about -2 to 2
    for _ in range(2):
        with pytest.warns(PrivacyWarning, match="The values of age, 17 to 90, are far"):
            attached(watchers=[AttributeInference(age)])


def test_the_report_names_what_nobody_sees():
    monitor = attached().monitor
    for named in (
        "padding", "73 C", "0.92", "0.222", "losses over tokens", "augmentation that mixes records",
        "raw loss", "weights of a checkpoint", "momentum", "training metric",
    ):  # fmt: skip
        assert named in monitor.report()
        assert named in str(monitor)
    assert "padding" not in monitor.line()
