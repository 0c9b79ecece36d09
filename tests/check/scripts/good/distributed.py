# Expected: DP703
"""Several processes, each with its part of every batch."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from opacus import PrivacyEngine as PE
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as DPDDP
from torch import nn, optim
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms


def setup(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def demo(rank, world_size, epochs=5):
    setup(rank, world_size)
    data = datasets.MNIST("data", train=True, transform=transforms.ToTensor())
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank, shuffle=True)
    loader = DataLoader(data, batch_size=512 // world_size, sampler=sampler)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10)).to(rank)
    model = DPDDP(model)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    engine = PE()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.1,
        max_grad_norm=1.0,
    )
    for _ in range(epochs):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.to(rank)), y.to(rank))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        if rank == 0:
            print(engine.get_epsilon(1e-5))
    dist.destroy_process_group()


if __name__ == "__main__":
    count = torch.cuda.device_count() or 2
    mp.spawn(demo, args=(count,), nprocs=count, join=True)
