"""Many trainings as one: every tensor has the trial first.

data + model + training ──► blocks ──► slices of trials ──► steps ──► Trained
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dprime import validate
from dprime.data.dataset import Dataset
from dprime.data.devices import single_precision
from dprime.seeds import check_seed, fresh_seed
from dprime.train.batches import Sampler
from dprime.train.checks import network_of
from dprime.train.compute import HERE, Compute, each, freed_memory_kept, plain_autograd
from dprime.train.data import TrainingData
from dprime.train.evaluate import Trained
from dprime.train.initial import fresh_weights
from dprime.train.layers import norms_of
from dprime.train.network import Network
from dprime.train.noise import add_normal
from dprime.train.progress import bar
from dprime.train.settings import TrainingConfig
from dprime.train.slices import Slices, kept_of_pool, rows_of_slices, slice_plan, trials_of_blocks
from dprime.train.steps import (
    CanaryGradient,
    EngineContext,
    Observer,
    Step,
    StepContext,
    clip_factors,
    distance,
)
from dprime.train.streams import Purpose, Streams

World = Literal["in", "out", "alternate", "random"]


def train(
    model: nn.Module,
    data: TrainingData | Dataset,
    training: TrainingConfig,
    *,
    trials: int | None = None,
    seed: int | None = None,
    world: World = "alternate",
    blocks: Sequence[int] | None = None,
    initial: Literal["fresh", "given"] | Tensor = "fresh",
    canary: CanaryGradient | None = None,
    observers: Sequence[Observer] = (),
    keep_weights: bool = True,
    compute: Compute = HERE,
    progress: bool | None = None,
) -> Trained:
    """Train a model many times at once.

    The model draws no random numbers, has no `if` on the data and no backward hooks; it is not
    changed. Each record goes through it alone, and counts as zero where its gradient is not finite.
    The data are a data set, two worlds that differ in one record, or a pool of which each trial has
    its own part. By default there is one trial, or one for each part.

    The seed gives every random number of the experiment; None draws one of 256 random bits. The
    seed tells the noise: for a model that you release, leave it out. The result keeps it in
    `seed` and prints it nowhere.

    Trials train in `world` "in", "out", "alternate" (even trials in), or "random" (a coin from the
    trial's own stream). `blocks` of `training.block` trials are run alone and give the same. They
    start from "fresh" weights, the model's own ("given"), or a tensor [parameter] or [trial,
    parameter]. A `canary` puts gradients of its own in the place of those of the records in which
    the worlds differ. `keep_weights=False` keeps no final weights; `progress` None shows a bar for
    long work on a terminal.

    >>> from dprime.data import load
    >>> digits = load("digits")
    >>> recipe = TrainingConfig(steps=60, learning_rate=2.0, clip_norm=1.0, noise_multiplier=2.0)
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    >>> done = train(net, digits.train, recipe, trials=20, seed=1)
    >>> done.label
    'differentially private'
    >>> bool(done.accuracy(digits.test).min() > 0.8)
    True
    """
    records = TrainingData.alone(data) if isinstance(data, Dataset) else data
    count = _count(trials, records)
    sampler = Sampler(records, training.sample_rate, compute.place)
    network = network_of(model, sampler.x, sampler.y, training.loss)
    if canary is not None:
        records.check_two_worlds("a canary gradient")
    if training.sensitivity == "local":
        records.check_two_worlds("local sensitivity")
    chosen = trials_of_blocks(count, training.block, blocks)
    secret = fresh_seed() if seed is None else check_seed(seed)
    in_world = _in_world(world, records, chosen, secret)
    start = _initial(initial, network, count)
    run = EngineContext(
        network, records, training, secret, chosen, in_world, sampler, start, canary, observers
    )
    together = min(training.block, count)
    weights, diverged = _train_all(run, compute, together, keep_weights, progress)
    return Trained(network, records, training, secret, chosen, in_world, weights, diverged)


def _count(trials: int | None, data: TrainingData) -> int:
    parts = 1 if data.members is None else len(data.members)
    count = parts if trials is None else validate.whole("trials", trials)
    if data.members is not None and count != parts:
        wanted = f"{parts}, one for each part of the pool"
        raise validate.invalid_value("trials", trials, wanted, "leave it out")
    return count


def _in_world(
    world: str, data: TrainingData, trials: NDArray[np.int64], seed: int
) -> NDArray[np.bool_]:
    validate.one_of("world", world, get_args(World))
    if world == "random" and data.adjacency is not None:
        coins = Streams(seed, trials.tolist()).bernoulli(0.5, 1, Purpose.WORLD, 0)
        return np.asarray(coins[:, 0])
    inside = {"in": True, "out": False}.get(world, trials % 2 == 0)
    return np.broadcast_to(data.adjacency is None or inside, trials.shape).copy()


def _initial(initial: object, network: Network, count: int) -> Tensor | None:
    if not isinstance(initial, Tensor):
        validate.one_of("initial", initial, ("fresh", "given"))
        return network.given_weights().expand(count, -1) if initial == "given" else None
    if initial.shape not in ((network.size,), (count, network.size)):
        found = f"of shape {tuple(initial.shape)}"
        wanted = f"of shape ({network.size},) or ({count}, {network.size})"
        raise validate.invalid_input("initial", found, wanted, "give one number per weight")
    return initial.to(torch.float32).expand(count, -1)  # with fewer digits norms would be lost


def _train_all(
    run: EngineContext, compute: Compute, together: int, keep: bool, progress: bool | None
) -> tuple[Tensor | None, NDArray[np.bool_]]:
    count, budget = len(run.trials), compute.bytes
    kept = kept_of_pool(run.network, run.sampler, budget, run.training.steps * count)
    if kept:
        run.sampler.keep_pool()
    room, copies = budget - kept, _copies(run)
    slices = slice_plan(run.network, run.sampler, copies, room, together, compute.workers)
    weights = _room_for_weights(run, budget) if keep else None
    diverged = np.zeros(count, dtype=bool)
    for observer in run.observers:
        observer.begin(run)
    showing = bar("training", count, progress)
    with showing as advance, freed_memory_kept(), single_precision(), plain_autograd():

        def train_slice(rows: slice) -> None:
            with torch.autocast(run.device.type, enabled=False):  # it belongs to a thread
                final = _train_slice(run, rows, slices, advance)
            diverged[rows] = (~final.isfinite().all(1)).cpu().numpy()
            if weights is not None:
                weights[rows] = final.cpu()

        parts = rows_of_slices(run.trials, run.training.block, slices.trials)
        each(parts, train_slice, slices.workers, run.stopped)
    run.network.model.cpu()
    return weights, diverged


def _copies(run: EngineContext) -> int:
    """How many tensors of the weights' size a trial needs."""
    worlds_apart = bool(run.observers) or run.training.sensitivity == "local"
    crafted = 0 if run.canary is None else 4 * run.sampler.differing
    kept = sum(observer.copies for observer in run.observers)
    return 5 + run.training.optimizer.copies + (5 if worlds_apart else 0) + crafted + kept


def _room_for_weights(run: EngineContext, budget: int) -> Tensor:
    count, gigabyte = len(run.trials), 1 << 30
    size = 4 * count * run.network.size
    if size > budget:
        name, wanted = f"The final weights of {count} trials", f"fit {budget / gigabyte:.1f} GB"
        remedy = "give keep_weights=False and keep what you need with an observer, or more memory"
        raise validate.InputError.of(name, wanted, f"they need {size / gigabyte:.1f}", remedy)
    return torch.empty(count, run.network.size)


def _train_slice(
    run: EngineContext, rows: slice, slices: Slices, advance: Callable[[float], None]
) -> Tensor:
    training, trials = run.training, run.trials[rows]
    streams = Streams(run.seed, trials.tolist(), run.device)
    in_world = torch.as_tensor(run.in_world[rows], device=run.device)
    if run.initial is None:
        weights = fresh_weights(run.network, streams)
    else:
        weights = run.initial[torch.as_tensor(trials)].to(run.device)
    state = training.optimizer.start(weights)
    precision = weights.dtype if training.clip_norm is None else torch.float64
    exact_sum = torch.empty_like(weights, dtype=precision)
    memo: dict[Any, Any] = {}
    members = run.data.members
    own = None if members is None else torch.from_numpy(members[trials]).to(run.device)
    for index in range(training.steps):
        if run.stopped.is_set():
            break
        if index == 0 or training.sample_rate < 1:
            batch = run.sampler.batch(streams, index, in_world, own)
        step = Step(run, index, rows, weights, memo, batch, in_world, slices.records)
        step.crafted = _crafted(step)
        _clipped_sum(step, exact_sum)
        step.sigma = _sigma(step)
        step.own_sum = exact_sum.to(weights.dtype) if run.observers else weights
        if training.noise_multiplier:
            add_normal(streams, exact_sum, step.sigma, Purpose.NOISE, index)
        step.noisy_sum = noisy_sum = exact_sum.to(weights.dtype)
        if run.observers:
            with run.lock:
                for observer in run.observers:
                    observer.see(step)
        del step
        rate = training.rate_at(index)
        training.optimizer.move(weights, noisy_sum.mul_(1 / run.divisor), rate, index, state)
        advance(len(trials) / training.steps)
    with run.lock:
        for observer in run.observers:
            observer.end(StepContext(run, training.steps, rows, weights, memo))
    return weights


def _crafted(step: Step) -> tuple[Tensor, ...] | None:
    """The gradients that replace those of the differing records, clipped."""
    run = step.run
    if run.canary is None:
        return None
    with run.lock:
        found = run.canary.gradients(step)
    C = run.training.clip_norm
    if C is None:
        return found
    norms = [norms_of(gradients)[:, None] for gradients in found]
    return tuple(
        (gradients * clip_factors(norm, C)).masked_fill(~norm.isfinite(), 0)
        for gradients, norm in zip(found, norms, strict=True)
    )


def _clipped_sum(step: Step, into: Tensor) -> None:
    """Put the clipped sum over each trial's own records in `into`, crafted ones among them.

    In runs of single precision only where all other records of a batch stay where they are when one
    is missing. In batches of the records that were drawn, one moves those behind it.
    """
    run, batch, crafted = step.run, step.batch, step.crafted
    certified = run.training.adjacency == "zero-out" and run.training.sensitivity == "global"
    keeps_places = certified and run.sampler.shares_records
    mask = batch.mask if crafted is None else batch.mask_of_others
    step.parts = step.add_clipped(mask, into, clip_factors, single=keeps_places)
    for gradient, drawn in zip(crafted or (), batch.drawn(), strict=crafted is not None):
        into.add_(gradient.masked_fill(drawn[:, None] == 0, 0))


def _sigma(step: Step) -> Tensor:
    """The noise's standard deviation on the sum, in double precision [trial]: σ, or σ LS/GS."""
    training, like = step.run.training, step.weights
    if training.clip_norm is None or training.sensitivity == "global":
        return like.new_full((len(like),), training.sigma, dtype=torch.float64)
    # GS = C for add-remove and zero-out, 2C for replace
    scale = training.sigma / (len(step.differing) * training.clip_norm)
    return distance(step.differing) * scale
