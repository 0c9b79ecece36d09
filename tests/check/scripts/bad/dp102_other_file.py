# Expected: DP102
"""The loader and the private training come from another file; the loop runs over the old loader."""

from parts import pieces
from torch import nn

batches = pieces.loader()
model, optimizer, _ = pieces.made_private(pieces.network(), batches)
for _ in range(10):
    for x, y in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
