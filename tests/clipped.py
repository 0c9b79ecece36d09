"""Trainings whose first record shows whether each record is clipped for itself."""

from functools import partial

import torch
from torch import nn
from torch.utils.data import TensorDataset

import attacked
from attacked import not_covered

STEPS, CLASSES = 5, 2


class Training(attacked.Training):
    """Noise 4 and batches of 16; a monitor comes when it is asked for."""

    noise, batch, attached = 4.0, 16, False
    optimizer_of = staticmethod(partial(attacked.sgd, rate=0.01))

    def __init__(self, net, *tensors, mode="hooks", **made):
        super().__init__(net, TensorDataset(*tensors) if tensors else None, mode, **made)
        self.first = [tensor[: made.get("batch", self.batch)] for tensor in tensors]

    def watched(self, epochs=1):
        self.attach()
        return self.train(epochs)

    def gives_away(self, least, problem):
        """The first record moves the sum of the first batch, and no certificate is left."""
        assert self.moved(*self.first) > least
        return not_covered(self.watched(), problem)


def vectors(count=160, features=6, classes=CLASSES):
    """The first record is long."""
    x, y = torch.randn(count, features), torch.randint(0, classes, (count,))
    x *= 0.1
    x[0] = 3.0
    return x, y


def sequences(count=160, features=6):
    x, y = torch.randn(count, STEPS, features) * 0.1, torch.randint(0, CLASSES, (count,))
    x[0] = 30.0
    return x, y


def disagreeing(net, x, y):
    """The network and its data, where the first record has the label that is least expected."""
    with torch.no_grad():
        y[0] = net(x[:1])[0].argmin()
    return net, x, y


def linear():
    return nn.Linear(6, CLASSES)
