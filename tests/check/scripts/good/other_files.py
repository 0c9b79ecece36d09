"""Everything comes from another file, and is put together rightly."""

from parts.pieces import loader, made_private, network, train

model, optimizer, batches = made_private(network(), loader())
train(model, optimizer, batches)
