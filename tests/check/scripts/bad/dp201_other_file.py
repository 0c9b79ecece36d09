# Expected: DP201
"""A network of another file has batch normalisation."""

from parts.pieces import Normalised, loader, made_private, train

model, optimizer, batches = made_private(Normalised(), loader())
train(model, optimizer, batches)
