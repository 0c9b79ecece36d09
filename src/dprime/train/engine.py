"""Many trainings as one: every tensor has the trial first.

    data + model + training ──► blocks ──► slices of trials ──► steps ──► Trained

A step takes the trials' batches, the clipped sum of the records' gradients, adds noise, shows it to
the observers, and moves the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dprime import validate
from dprime.data.dataset import Dataset
from dprime.data.devices import single_precision
from dprime.seeds import check_seed, fresh_seed
from dprime.train.batches import Batch, Sampler
from dprime.train.checks import network_of
from dprime.train.compute import HERE, Compute
from dprime.train.data import TrainingData
from dprime.train.gradients import Part, clip_factors, clipped_sum
from dprime.train.initial import fresh_weights
from dprime.train.layers import norms_of
from dprime.train.network import Network
from dprime.train.noise import add_normal
from dprime.train.observe import (
    CanaryGradient,
    Observer,
    Step,
    StepContext,
    differing_gradients,
)
from dprime.train.progress import bar
from dprime.train.settings import TrainingConfig
from dprime.train.slices import (
    Slices,
    kept_of_pool,
    rows_of_slices,
    slice_plan,
    trials_of_blocks,
)
from dprime.train.streams import Purpose, Streams
from dprime.train.trained import Trained
from dprime.train.workers import each, freed_memory_kept, plain_autograd

World = Literal["in", "out", "alternate", "random"]
WORLDS = ("in", "out", "alternate", "random")


@dataclass(frozen=True)
class EngineContext:
    """What the engine works on: everything that is the same for all trials.

    `trials` has the index of every trial of the run, `in_world` whether it trains on D.
    """

    network: Network
    data: TrainingData
    training: TrainingConfig
    seed: int = field(repr=False)
    trials: NDArray[np.int64]
    in_world: NDArray[np.bool_]
    sampler: Sampler
    initial: Tensor | None
    canary: CanaryGradient | None
    observers: tuple[Observer, ...]
    device: torch.device
    lock: Lock = field(default_factory=Lock)
    stopped: Event = field(default_factory=Event)

    @property
    def divisor(self) -> float:
        """What every noisy sum is divided by."""
        given = self.training.expected_batch_size
        return self.sampler.expected if given is None else given


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

    Args:
        model: draws no random numbers, has no `if` on the data and no backward hooks; it is not
            changed. Each record goes through it alone, and counts as zero where its gradient is
            not finite.
        data: a data set, two worlds that differ in one record, or a pool of which each trial has
            its own part.
        training: steps, clipping, noise, sampling, optimizer.
        trials: how many trainings; by default one, or one for each part of a pool.
        seed: gives every random number of the experiment; None draws one of 256 random bits.
            Whoever knows it knows the noise: for a model that you release, leave it out. The
            result keeps it in `seed` and prints it nowhere.
        world: which world each trial trains on: "in", "out", "alternate" (even trials in), or
            "random" (a coin from the trial's own stream).
        blocks: which blocks of `training.block` trials to run; None runs all.
        initial: "fresh" weights for every trial, the model's own ("given"), or a tensor
            [parameter] or [trial, parameter].
        canary: puts gradients of its own in the place of those of the records in which the worlds
            differ; they are sampled and clipped like any other.
        observers: see every step, in the order given.
        keep_weights: whether the final weights of all trials are kept.
        compute: the device, its memory and workers.
        progress: whether to show a bar; None shows it for long work on a terminal.

    Returns:
        The trained models and what may be said of them.

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
    records = TrainingData.of(data)
    count, place = _count(trials, records), compute.place
    sampler = Sampler(records, training.sample_rate, place)
    network = network_of(model, sampler.x, sampler.y, training.loss)
    _check_two_worlds(records, training, canary)
    chosen = trials_of_blocks(count, training.block, blocks)
    secret = fresh_seed() if seed is None else check_seed(seed)
    run = EngineContext(
        network=network, data=records, training=training, seed=secret, trials=chosen,
        in_world=_in_world(world, records, chosen, secret), sampler=sampler,
        initial=_initial(initial, network, count), canary=canary, observers=tuple(observers),
        device=place,
    )  # fmt: skip
    weights, diverged = _train_all(run, compute, min(training.block, count), keep_weights, progress)
    return Trained(
        network=network, data=records, training=training, seed=secret,
        trials=chosen, in_world=run.in_world, weights=weights, diverged=diverged,
    )  # fmt: skip


def _train_all(
    run: EngineContext, compute: Compute, together: int, keep: bool, progress: bool | None
) -> tuple[Tensor | None, NDArray[np.bool_]]:
    """All slices of trials, side by side: final weights, and which are not finite."""
    count, budget = len(run.trials), compute.bytes
    kept = kept_of_pool(run.network, run.sampler, budget, run.training.steps * count)
    if kept:
        run.sampler.keep_pool()
    slices = slice_plan(
        run.network, run.sampler, _copies(run), budget - kept, together, compute.workers
    )
    weights = _kept(run, keep, budget)
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


def _check_two_worlds(
    data: TrainingData, training: TrainingConfig, canary: CanaryGradient | None
) -> None:
    """Local sensitivity and canaries are of the records in which two worlds differ."""
    if data.adjacency is not None:
        return
    remedy = "give TrainingData.remove(…) or TrainingData.replace(…)"
    if canary is not None:
        raise validate.invalid_input(
            "data", "one world", "two worlds for a canary gradient", remedy
        )
    if training.sensitivity == "local":
        remedy += ", or sensitivity='global'"
        raise validate.invalid_input(
            "data", "one world", "two worlds for local sensitivity", remedy
        )


def _count(trials: int | None, data: TrainingData) -> int:
    parts = None if data.members is None else len(data.members)
    if trials is None:
        return parts or 1
    count = validate.whole("trials", trials)
    if parts is not None and count != parts:
        remedy = "leave it out"
        raise validate.invalid_value(
            "trials", trials, f"{parts}, one for each part of the pool", remedy
        )
    return count


def _in_world(
    world: str, data: TrainingData, trials: NDArray[np.int64], seed: int
) -> NDArray[np.bool_]:
    validate.one_of("world", world, WORLDS)
    if world == "random" and data.adjacency is not None:
        coins = Streams(seed, trials.tolist()).bernoulli(0.5, 1, Purpose.WORLD, 0)
        return np.asarray(coins[:, 0])
    inside = {"in": True, "out": False}.get(world, trials % 2 == 0)
    return np.broadcast_to(data.adjacency is None or inside, trials.shape).copy()


def _initial(initial: object, network: Network, count: int) -> Tensor | None:
    if isinstance(initial, Tensor):
        if initial.shape not in ((network.size,), (count, network.size)):
            wanted = f"of shape ({network.size},) or ({count}, {network.size})"
            remedy = "give one number per weight of the model"
            raise validate.invalid_input(
                "initial", f"of shape {tuple(initial.shape)}", wanted, remedy
            )
        return initial.to(torch.float32)  # with fewer digits norms would be lost
    validate.one_of("initial", initial, ("fresh", "given"))
    return network.given_weights() if initial == "given" else None


def _copies(run: EngineContext) -> int:
    """Tensors of the weights' size that a trial needs: weights, sum, and what is kept beside."""
    worlds_apart = bool(run.observers) or run.training.sensitivity == "local"
    crafted = 0 if run.canary is None else 4 * run.sampler.differing
    kept = sum(observer.copies for observer in run.observers)
    return 5 + run.training.optimizer.copies + (5 if worlds_apart else 0) + crafted + kept


def _kept(run: EngineContext, keep: bool, budget: int) -> Tensor | None:
    if not keep:
        return None
    size = 4 * len(run.trials) * run.network.size
    if size > budget:
        remedy = "give keep_weights=False and keep what you need with an observer, or more memory"
        wanted = f"fit the memory of {budget / (1 << 30):.1f} GB"
        raise validate.InputError.of(
            f"The final weights of {len(run.trials)} trials", wanted,
            f"they need {size / (1 << 30):.1f} GB", remedy,
        )  # fmt: skip
    return torch.empty(len(run.trials), run.network.size)


def _train_slice(
    run: EngineContext, rows: slice, slices: Slices, advance: Callable[[float], None]
) -> Tensor:
    """All steps of some trials; returns their final weights."""
    training = run.training
    trials = run.trials[rows]
    streams = Streams(run.seed, trials.tolist(), run.device)
    in_world = torch.as_tensor(run.in_world[rows], device=run.device)
    weights = _start(run, trials, streams)
    state = training.optimizer.start(weights)
    clips = training.clip_norm is not None
    exact_sum = torch.empty_like(weights, dtype=torch.float64 if clips else weights.dtype)
    memo: dict[Any, Any] = {}
    members = run.data.members
    own = None if members is None else torch.from_numpy(members[trials]).to(run.device)
    batches = run.sampler.batches(streams, in_world, training.steps, own)
    for index, batch in enumerate(batches):
        if run.stopped.is_set():
            break
        context = run, index, rows, weights, memo
        crafted = _crafted(run, StepContext(*context))
        parts = _clipped_sum(run, batch, slices.records, weights, exact_sum, crafted)
        sigma = _sigma(run, parts, batch, weights, crafted)
        own_sum = exact_sum.to(weights.dtype) if run.observers else weights
        if training.noise_multiplier:
            add_normal(streams, exact_sum, sigma, Purpose.NOISE, index)
        noisy_sum = exact_sum.to(weights.dtype)
        if run.observers:
            step = Step(
                *context, in_world, noisy_sum, own_sum, sigma, batch, parts, slices.records, crafted
            )
            with run.lock:
                for observer in run.observers:
                    observer.see(step)
        del parts
        rate = training.rate_at(index)
        training.optimizer.move(weights, noisy_sum.mul_(1 / run.divisor), rate, index, state)
        advance(len(trials) / training.steps)
    with run.lock:
        for observer in run.observers:
            observer.end(StepContext(run, training.steps, rows, weights, memo))
    return weights


def _start(run: EngineContext, trials: NDArray[np.int64], streams: Streams) -> Tensor:
    if run.initial is None:
        return fresh_weights(run.network, streams)
    if run.initial.dim() == 1:
        return run.initial.to(run.device).repeat(len(trials), 1)
    return run.initial[torch.as_tensor(trials)].to(run.device, copy=True)


def _crafted(run: EngineContext, context: StepContext) -> tuple[Tensor, ...] | None:
    """What the adversary puts in the place of the differing records' gradients, clipped."""
    if run.canary is None:
        return None
    with run.lock:
        found = run.canary.gradients(context)
    C = run.training.clip_norm
    if C is None:
        return found
    norms = [norms_of(gradients)[:, None] for gradients in found]
    return tuple(
        (gradients * clip_factors(norm, C)).masked_fill(~norm.isfinite(), 0)
        for gradients, norm in zip(found, norms, strict=True)
    )


def _clipped_sum(
    run: EngineContext, batch: Batch, length: int, weights: Tensor, into: Tensor,
    crafted: tuple[Tensor, ...] | None,
) -> list[Part]:  # fmt: skip
    """Put the clipped sum over each trial's own records in `into`, crafted ones among them."""
    training = run.training
    mask = batch.mask if crafted is None else batch.mask_of_others
    parts = clipped_sum(
        run.network, batch, weights, training.loss, training.clip_norm, length, mask, into,
        clip_factors, torch.float32 if _keeps_places(run) else torch.float64,
    )  # fmt: skip
    if crafted is not None:
        for gradient, drawn in zip(crafted, batch.drawn(), strict=True):
            into.add_(gradient.masked_fill(drawn[:, None] == 0, 0))
    return parts


def _keeps_places(run: EngineContext) -> bool:
    """Whether all other records of a batch stay where they are when one is missing.

    Batches of few records are put together of those that were drawn: then a record that is drawn
    moves the ones behind it, also where it counts for nothing.
    """
    training = run.training
    certified = training.adjacency == "zero-out" and training.sensitivity == "global"
    return certified and run.sampler.shares_records


def _sigma(
    run: EngineContext, parts: Sequence[Part], batch: Batch, like: Tensor,
    crafted: tuple[Tensor, ...] | None,
) -> Tensor:  # fmt: skip
    """The noise's standard deviation on the sum, in double precision [trial]: σ, or σ LS/GS."""
    training = run.training
    sigma = training.sigma
    if training.clip_norm is None:
        return like.new_zeros(len(like), dtype=torch.float64)
    if training.sensitivity == "global":
        return like.new_full((len(like),), sigma, dtype=torch.float64)
    gradients = crafted
    if gradients is None:
        gradients = differing_gradients(parts, batch, training.clip_norm, like)
    # add-remove, zero-out: LS = ‖g(x)‖, GS = C; replace: LS = ‖g(x) − g(x′)‖, GS = 2C
    change = gradients[0] if len(gradients) == 1 else gradients[0] - gradients[1]
    sensitivity: Tensor = change.double().norm(dim=1)
    return sensitivity * (sigma / (len(gradients) * training.clip_norm))
