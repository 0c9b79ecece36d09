# Expected: DP303
"""The loop is in another file, and gets the plain optimizer."""

from opacus import PrivacyEngine
from parts.pieces import loader, network, train
from torch import optim

model, batches = network(), loader()
optimizer = optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(secure_mode=True)
private, _, private_batches = engine.make_private(
    module=model, optimizer=optimizer, data_loader=batches, noise_multiplier=1.1, max_grad_norm=1.0
)
train(private, optimizer, private_batches)
print(engine.get_epsilon(1e-6))
