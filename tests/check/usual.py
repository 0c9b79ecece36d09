"""A usual training script in parts, and the table of its changes."""

import textwrap
from itertools import groupby
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"

HEAD = """
import torch
from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.MNIST("data", train=True)
"""

MODEL = "model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))"

MADE = f"""loader = DataLoader(data, batch_size=256)
{MODEL}
optimizer = optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
engine = PrivacyEngine(secure_mode=True)
"""

PRIVATE = """
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.1, max_grad_norm=1.0
)
"""

STEP = """        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
"""

LOOP = f"""
for _ in range(10):
    for x, y in loader:
{STEP}"""

START = HEAD + MADE
USUAL = START + PRIVATE + LOOP
GHOST = PRIVATE.replace("optimizer, loader =", "optimizer, clipping, loader =").replace(
    "max_grad", "grad_sample_mode='ghost', criterion=nn.CrossEntropyLoss(), max_grad"
)
BUDGET = PRIVATE.replace("make_private", "make_private_with_epsilon").replace(
    "noise_multiplier=1.1", "target_epsilon=3.0, target_delta=1e-6, epochs=10"
)
INSIDE = textwrap.indent(MADE + PRIVATE + LOOP, "    ")
WORDS = {
    "USUAL": USUAL, "HEAD": HEAD, "START": START, "MODEL": MODEL, "PRIVATE": PRIVATE,
    "GHOST": GHOST, "BUDGET": BUDGET, "LOOP": LOOP, "STEP": STEP, "INSIDE": INSIDE,
}  # fmt: skip


def changed(*pairs):
    """The usual script with the first of each pair replaced by the second."""
    text = USUAL
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    return text


def changes(path):
    """(codes, title, script) of each block of a table in `scripts/changes`.

    A block begins with `=`, the codes that its script shows or none, and a title. What follows `-`
    is replaced, what follows `+` stands there then; `{LOOP}` and the like are parts of the script.
    """
    for block in path.read_text(encoding="utf-8").removeprefix("= ").split("\n= "):
        head, *lines = block.rstrip().split("\n")
        texts = ["\n".join(e[2:] for e in group) for _, group in groupby(lines, lambda e: e[0])]
        for word, part in WORDS.items():
            texts = [each.replace(f"{{{word}}}", part) for each in texts]
        codes = [word for word in head.split() if word.startswith("DP") and word[2:].isdigit()]
        yield codes, f"{head}: {texts[-1][:30]}".replace("\n", " "), changed(*texts)
