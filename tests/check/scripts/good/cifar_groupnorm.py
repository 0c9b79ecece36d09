# Expected: DP703
"""CIFAR-10 with a ResNet whose normalisation is by groups, a learning-rate schedule, best kept."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from opacus import PrivacyEngine
from opacus.validators import ModuleValidator
from torch.utils.data import DataLoader
from torchvision import models, transforms
from torchvision.datasets import CIFAR10

EPOCHS = 20
BATCH_SIZE = 1000
DELTA = 1e-5

augmentations = [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip()]
normalize = [transforms.ToTensor(), transforms.Normalize((0.4914, 0.4822, 0.4465), (0.2, 0.2, 0.2))]
train_dataset = CIFAR10(
    root="data", train=True, download=True, transform=transforms.Compose(augmentations + normalize)
)
train_loader = DataLoader(train_dataset, batch_size=BATCH_SIZE)
test_dataset = CIFAR10(root="data", train=False, transform=transforms.Compose(normalize))
test_loader = DataLoader(test_dataset, batch_size=1000, shuffle=False)

model = models.resnet18(num_classes=10)
model = ModuleValidator.fix(model)
errors = ModuleValidator.validate(model, strict=False)
optimizer = optim.RMSprop(model.parameters(), lr=1e-3)
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
criterion = nn.CrossEntropyLoss()

privacy_engine = PrivacyEngine(accountant="rdp")
model, optimizer, train_loader = privacy_engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=train_loader,
    noise_multiplier=1.5,
    max_grad_norm=1.2,
)


def accuracy(preds, labels):
    return (preds == labels).mean()


def test():
    model.eval()
    scores = []
    with torch.no_grad():
        for images, target in test_loader:
            preds = np.argmax(model(images).numpy(), axis=1)
            scores.append(accuracy(preds, target.numpy()))
    return np.mean(scores)


best_acc = 0.0
for epoch in range(EPOCHS):
    model.train()
    losses, top1_acc = [], []
    for i, (images, target) in enumerate(train_loader):
        output = model(images)
        loss = criterion(output, target)
        preds = np.argmax(output.detach().numpy(), axis=1)
        losses.append(loss.item())
        top1_acc.append(accuracy(preds, target.numpy()))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if (i + 1) % 10 == 0:
            epsilon = privacy_engine.get_epsilon(DELTA)
            print(f"loss {np.mean(losses):.4f} acc {np.mean(top1_acc):.4f} ε {epsilon:.2f}")
    scheduler.step()
    acc = test()
    if acc > best_acc:
        best_acc = acc
        torch.save(model.state_dict(), "best.pt")
