"""What a training's weights and buffers are compared with."""

import torch
from torch import nn

from dprime.monitor.contents import EVERY, OFTEN, Contents
from dprime.monitor.ghost import OneRecord, uses


def watched():
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    net[1].requires_grad_(False)
    net.register_buffer("kept", torch.zeros(2))
    contents = Contents([net], lambda: [p for p in net.parameters() if p.requires_grad])
    contents.begin()
    return net, contents


def test_what_is_frozen_may_not_change():
    net, contents = watched()
    net[1].weight.data[0, 0] += 1.0
    assert contents.changed()[0] == "weights"
    net.kept[0] = 1.0
    assert contents.changed()[0] == "buffers"
    assert contents.changed()[0] == ""


def test_weights_that_thaw_are_known_already():
    net, contents = watched()
    net[1].requires_grad_(True)
    assert contents.changed()[0] == ""
    net[1].requires_grad_(False)
    assert contents.changed()[0] == ""


def test_writes_that_pytorch_does_not_count_are_found_in_time():
    net, contents = watched()
    for _ in range(OFTEN + 1):
        assert contents.changed()[0] == ""
        contents.settle()
    found = []
    for _ in range(2 * EVERY):
        net[0].weight.data.mul_(1.1)
        found.append(contents.changed()[0])
        contents.settle()
    assert found.count("weights") == 2


def test_weights_that_are_written_and_put_back_are_as_the_latest_step_left_them():
    net, contents = watched()
    with torch.no_grad():
        for _ in range(OFTEN + 1):  # the norms of the next step are not due
            net[0].weight.add_(1.0)
            contents.settle()
        left = net[0].weight.clone()
        net[0].weight.zero_()
        net[0].weight.copy_(left)
    assert not contents.due
    assert contents.changed()[0] == ""


def test_a_buffer_that_goes_to_another_module():
    net = nn.Sequential(nn.Identity(), nn.Identity())
    net[1].register_buffer("kept", torch.ones(2))
    contents = Contents([net], list)
    contents.begin()
    net[0].register_buffer("kept", net[1].kept)
    del net[1].kept
    assert contents.changed()[0] == "buffers"


def test_modules_that_come_and_go():
    net, contents = watched()
    net.append(nn.ReLU())
    assert contents.changed()[0] == ""
    net.append(nn.BatchNorm1d(2, affine=False))
    assert contents.changed()[0] == "buffers"
    assert contents.changed()[0] == ""
    net[3].running_mean = torch.ones(2)
    assert contents.changed()[0] == "buffers"
    net.append(nn.Linear(2, 2))
    assert contents.changed()[0] == "weights"


def test_the_graph_is_told_by_the_uses_of_weights():
    layer = nn.Linear(2, 2)
    x = torch.ones(3, 2)
    once, again = uses(layer(x).sum()), uses(layer(2.0 * x).sum())
    assert once == again
    assert uses((layer(x) + x @ layer.weight).sum()) != once


def test_weights_of_a_tensor_subclass_are_uses_too():
    class Sub(torch.Tensor):
        pass

    weight = nn.Parameter(torch.ones(2).as_subclass(Sub))
    assert [n for _, n in uses((weight * weight).sum())] == [2]


def test_a_record_whose_gradient_is_longer_than_recorded():
    layer, model = nn.Linear(2, 1, bias=False), nn.Module()
    model.hooks_enabled, model.max_grad_norm = True, 1.0
    records = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
    losses = layer(records)[:, 0]
    for recorded, exceeds in (([1.0, 5.0], False), ([1.0, 4.0], True), ([9.0, 9.0], False)):
        model.per_sample_gradient_norms = torch.tensor(recorded)
        factors = (1.0 / model.per_sample_gradient_norms).clamp(max=1.0)
        assert OneRecord(model).exceeds(losses, factors, lambda: [layer.weight]) is exceeds
    assert model.hooks_enabled


def test_the_shortest_record_is_looked_at_because_its_norm_may_have_cancelled():
    layer, model = nn.Linear(2, 1, bias=False), nn.Module()
    model.hooks_enabled, model.max_grad_norm = True, 1.0
    records = torch.tensor([[1.0, 0.0], [3.0, 4.0], [30.0, 40.0]])
    model.per_sample_gradient_norms = torch.tensor([1.0, 5.0, 0.1])
    factors = (1.0 / model.per_sample_gradient_norms).clamp(max=1.0)
    assert OneRecord(model).exceeds(layer(records)[:, 0], factors, lambda: [layer.weight])
