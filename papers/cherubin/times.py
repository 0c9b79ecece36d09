"""Figures 5 and 8: what the closed form, accountants and analyses cost, timed in turns."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import torch
from opacus.optimizers import DPOptimizer
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from benchmarks.networks import Loop, loop, tensors
from benchmarks.timing import in_turns, medians, seconds
from dprime import estimates
from dprime.attributes import AttributeInference
from dprime.data import Dataset
from dprime.data.devices import one_thread
from dprime.mechanisms import DPSGD
from dprime.monitor import Monitor
from dprime.parameters import steps_from_epochs
from papers.cherubin.trainings import ADULT, CLIP_NORM, Recipe
from papers.drawing import Line, lines_chart
from papers.entry import Measured, Scale, Table
from papers.reproduce import Claim, Estimate, mean, printed, stated

Works = dict[str, Callable[[], float]]
Times = Mapping[str, Sequence[float]]
"""Seconds of every turn, by what is timed."""


def ratio(these: Sequence[float], those: Sequence[float]) -> Estimate:
    """How many times as long, the geometric mean over turns with its interval.

    >>> round(ratio([2.0, 2.1], [1.0, 1.0]).value, 2)
    2.05
    """
    found = mean([math.log(one / other) for one, other in zip(these, those, strict=True)])
    return found.map(math.exp)


def quartiles(values: Sequence[float]) -> list[float]:
    """The median, then the ends of the middle half."""
    found: list[float] = np.quantile(values, (0.5, 0.25, 0.75)).tolist()
    return found


RATE, NOISE = 0.001, 1.0
EPOCHS = (1, 2, 5, 10, 20, 50, 100)
ORDERS = 100.0
"""Orders of magnitude: at least two of them."""

CLOSED, OURS, PEER = "closed form", "dprime's accountant", "dp_accounting"


def figure5(scale: Scale) -> Measured:
    """Seconds for one Bayes security, over epochs: the closed form and accountants."""
    turns, of_peer = scale.pick((2, 1), (20, 2), (100, 5))
    taken = {}
    for epochs in scale.pick(EPOCHS[:2], EPOCHS, EPOCHS):
        own, peer = answers(steps_from_epochs(epochs, RATE))
        taken[epochs] = {**in_turns(own, turns), **in_turns(peer, of_peer)}
    names = list(taken[EPOCHS[0]])
    middle = {name: [float(np.median(each[name])) for each in taken.values()] for name in names}
    closed, slowest = float(np.median(middle[CLOSED])), max(middle[OURS])
    figure = lines_chart(
        f"The closed form takes about {1e6 * closed:.2g} µs, the certified accountant at most "
        f"{1000 * slowest:.2g} ms.",
        "epochs (p = 0.001)", "seconds",
        [Line(f"{name}, σ = {NOISE:g}", [(e, *quartiles(taken[e][name])) for e in taken])
         for name in names], "xy",
    )  # fmt: skip
    why = {
        OURS: f"The certified value takes at most {1000 * slowest:.2g} ms here, which is also fast "
        "enough to choose parameters while one looks on.",
    }
    claims = [
        stated(f"times the closed form: {name}", f"orders of magnitude: at least {ORDERS:g}",
               ratio(middle[name], middle[CLOSED]), least=ORDERS, why=why.get(name, ""))
        for name in (PEER, OURS) if name in names
    ]  # fmt: skip
    settings = {
        "rate": RATE, "noise": NOISE, "turns": turns, "turns of dp_accounting": of_peer,
        "adjacency": "replace",
    }  # fmt: skip
    return Measured(claims, settings, {"": figure})


def answers(steps: int) -> tuple[Works, Works]:
    """Who gives a Bayes security, one record replaced: seconds of ours, and of a peer."""

    def peer_security() -> float:
        """By dp_accounting: 1 less δ at ε = 0."""
        dp, pld = import_module(PEER), import_module(f"{PEER}.pld")
        accountant = pld.PLDAccountant(dp.NeighboringRelation.REPLACE_ONE)
        step = dp.PoissonSampledDpEvent(RATE, dp.GaussianDpEvent(NOISE))
        accountant.compose(dp.SelfComposedDpEvent(step, steps))
        return 1 - float(accountant.get_delta(0.0))

    own: Works = {
        CLOSED: lambda: estimates.cherubin(NOISE, RATE, steps).bayes_security(),
        OURS: lambda: DPSGD(NOISE, RATE, steps).curve("replace").bayes_security(),
    }
    peer: Works = {PEER: peer_security} if find_spec(PEER) is not None else {}
    return timed(own), timed(peer)


def timed(works: Mapping[str, Callable[[], object]]) -> Works:
    """Seconds of each in the place of what it returns."""
    return {name: partial(seconds, work) for name, work in works.items()}


LEARNING_RATE, DELTA = ADULT.learning_rates[0], 1e-5
STEPS = 26
"""Of an epoch, as the paper says."""

ANALYSES = {
    "Opacus": "", "with its accountant": "accountant", "membership": "membership",
    "attribute, approximate": "approximate", "attribute, full": "full",
}  # fmt: skip
"""What is asked after every epoch of a private training."""

PARTS = {
    "batch": "goes to drawing the batch", "forward": "to the forward pass",
    "backward": "to the backward pass with a gradient for each record",
    "clipping": "to clipping", "noise": "to noise", "update": "to the update",
}  # fmt: skip
"""Of a step, and what privacy adds to it."""

LARGE = 2.0
"""Times the training that a large cost is at least: our reading."""

Parts = Mapping[str, Mapping[str, float]]
"""Median seconds of a step's parts, by training."""


def figure8(scale: Scale) -> Measured:
    """The time of an epoch with each analysis, and of a plain comparison of all pairs."""
    recipe, seed = Recipe.of(ADULT, scale), scale.seed
    data = scale.data(ADULT.data).train.draw(recipe.records, seed)
    turns = scale.pick(2, 4, 10)
    large = replace(recipe, batch=-(-recipe.records // STEPS))
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Opacus' hooks, at every step
        works = epochs_of(data, seed, recipe) | {
            "without privacy, 26 steps": epoch(training(data, seed, large, private=False)),
            "Opacus, 26 steps": epoch(training(data, seed, large)),
        }
        taken = in_turns(works, turns)
        plain = compared(data, scale.pick(3, 10, 30), seed)
        parts = {
            f"{title} steps": of_step(data, seed, how, turns)
            for title, how in ((recipe.steps, recipe), (STEPS, large))
        }
    rows = [
        (f"{name}, {title}", *(f"{1000 * each[part]:.2f}" for part in PARTS))
        for title, pair in parts.items()
        for name, each in pair.items()
    ]
    settings = {
        "records": recipe.records, "batch": recipe.batch, "noise": recipe.noise, "turns": turns,
        "values": len(ADULT.values), "batch for 26 steps": large.batch,
    }  # fmt: skip
    shown = ("without privacy", *ANALYSES)
    points = [(place, *quartiles(taken[name])) for place, name in enumerate(shown, 1)]
    opacus, full = (float(np.median(taken[name])) for name in ("Opacus", "attribute, full"))
    figure = lines_chart(
        f"An epoch takes {opacus:.2g} s with Opacus and {full:.2g} s with the full analysis of "
        "attribute inference.",
        "what is asked", "seconds of an epoch",
        [Line("ours, median and middle half", points, "points")], places=shown,
    )  # fmt: skip
    return Measured(
        claims_of(taken, plain, parts, recipe.steps), settings, {"": figure},
        tables=[Table("Milliseconds of a step, median over epochs", ("", *PARTS), tuple(rows))],
    )  # fmt: skip


def training(data: Dataset, seed: int, recipe: Recipe, *, private: bool = True) -> Loop:
    """On Adult, with Opacus or without."""
    torch.manual_seed(seed)
    options = {"noise_multiplier": recipe.noise, "max_grad_norm": CLIP_NORM} if private else {}
    return loop(
        ADULT.network(data), tensors(data), recipe.batch, rate=LEARNING_RATE, accountant="rdp",
        **options,
    )  # fmt: skip


def epoch(made: Loop, ask: Callable[[], object] = lambda: None) -> Callable[[], float]:
    """Seconds that an epoch takes, with what is asked after it."""

    def once() -> None:
        for x, y in made.loader:
            made.step(x, y)
        ask()

    return partial(seconds, once)


def epochs_of(data: Dataset, seed: int, recipe: Recipe) -> Works:
    """Seconds of an epoch without privacy, with Opacus, and with each analysis."""
    works = {"without privacy": epoch(training(data, seed, recipe, private=False))}
    (secret,) = ADULT.secrets()
    for name, asked in ANALYSES.items():
        made = training(data, seed, recipe)
        ask: Callable[[], object] = made.model.parameters  # nothing
        if asked == "accountant":
            ask = partial(made.engine.get_epsilon, DELTA)
        elif asked:
            watchers = [AttributeInference(secret, analysis=asked)] if asked != "membership" else []  # type: ignore[arg-type]
            monitor = Monitor(
                **made.parts(), watchers=[*watchers], show=None, metric="bayes_security"
            )
            ask = watchers[0].risk if watchers else monitor.answer
        works[name] = epoch(made, ask)
    return works


def of_step(data: Dataset, seed: int, recipe: Recipe, turns: int) -> Parts:
    """Median seconds of a step's parts over epochs in turns; the first is not counted."""
    loops = {
        "without privacy": training(data, seed, recipe, private=False),
        "Opacus": training(data, seed, recipe),
    }
    rounds = [{name: _parts(made) for name, made in loops.items()} for _ in range(turns + 1)]
    return {
        name: {
            part: float(np.median([one[name][part] for one in rounds[1:]])) / recipe.steps
            for part in PARTS
        }
        for name in loops
    }


def _parts(made: Loop) -> dict[str, float]:
    """Seconds of an epoch by what they go to."""
    optimizer, private = made.optimizer, isinstance(made.optimizer, DPOptimizer)
    taken, last = dict.fromkeys(PARTS, 0.0), time.perf_counter()

    def end(part: str) -> None:
        """What has passed since the last end belongs to this part."""
        nonlocal last
        now = time.perf_counter()
        taken[part] += now - last
        last = now

    for x, y in made.loader:
        end("batch")
        optimizer.zero_grad()
        end("update")
        loss = made.criterion(made.model(x), y)
        end("forward")
        loss.backward()
        end("backward")
        if private:
            optimizer.clip_and_accumulate()
            end("clipping")
            optimizer.add_noise()
            optimizer.scale_grad()
            end("noise")
        (optimizer.original_optimizer if private else optimizer).step()
        end("update")
    return taken


def compared(data: Dataset, count: int, seed: int) -> dict[str, list[float]]:
    """Seconds of a record: its gradients, compared in all pairs or with their mean."""
    torch.manual_seed(seed)
    module = ADULT.network(data)
    weights = {name: value.detach() for name, value in module.named_parameters()}

    def loss(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        outputs = functional_call(module, parameters, (x[None],))
        return nn.functional.cross_entropy(outputs, y[None])

    of_each = vmap(grad(loss), in_dims=(None, 0, 0))
    x, y = tensors(data).tensors
    (secret,) = ADULT.secrets()
    places = {way: iter(range(count + 1)) for way in ("all pairs", "mean")}

    def gradients(way: str) -> Tensor:
        """Of the next record with every value."""
        place = next(places[way])
        completed = secret.completions(x[place : place + 1])[0]
        found = of_each(weights, completed, y[place].expand(len(completed)))
        flat: Tensor = torch.cat([part.flatten(1) for part in found.values()], dim=1)
        clipped: Tensor = flat / (flat.norm(dim=1, keepdim=True) / CLIP_NORM).clamp(min=1)
        return clipped

    def all_pairs() -> float:
        """The largest distance of two, one after the other."""
        points = gradients("all pairs")
        return max(float((points - point).norm(dim=1).max()) for point in points)

    def around_mean() -> float:
        """Twice the largest distance to the mean, which is no less."""
        points = gradients("mean")
        return 2 * float((points - points.mean(dim=0)).norm(dim=1).max())

    return in_turns(timed({"all pairs": all_pairs, "mean": around_mean}), count)


def claims_of(taken: Times, plain: Times, parts: Mapping[str, Parts], steps: int) -> list[Claim]:
    def times(name: str, other: str) -> Estimate:
        return ratio(taken[name], taken[other])

    small, large = parts.values()
    pairs = ratio(plain["all pairs"], plain["mean"])
    cost = f"a large cost: at least {LARGE:g} (our reading)"
    order = "an order of magnitude: 10 or more"
    epochs = {name: f"{each:.3g}" for name, each in medians(taken).items()}
    records = {name: f"{1000 * each:.3g}" for name, each in medians(plain).items()}
    return [
        printed(f"Opacus over without privacy, {steps} steps an epoch", 2.0,
                times("Opacus", "without privacy"), step_told(small)),
        printed("Opacus over without privacy, 26 steps an epoch", 2.0,
                times("Opacus, 26 steps", "without privacy, 26 steps"), step_told(large)),
        stated("membership over the accountant", "a marginal improvement: at most 1",
               times("membership", "with its accountant"), most=1.0,
               why=f"An epoch takes {epochs['membership']} s with the risk of membership and "
               f"{epochs['with its accountant']} s with the accountant of Opacus: both are "
               "asked once, and cost little beside it."),
        stated("attribute inference, approximate, over Opacus", cost,
               times("attribute, approximate", "Opacus"), least=LARGE),
        stated("attribute inference, full, over Opacus", cost, times("attribute, full", "Opacus"),
               least=LARGE),
        stated("full over approximate analysis", order,
               times("attribute, full", "attribute, approximate"), least=10.0,
               why="dprime's full analysis compares all pairs only for the records that could hold "
               f"the largest. A plain comparison of all pairs takes {pairs.value:.2g} times "
               f"({pairs.low:.2g} to {pairs.high:.2g}) as long as one with the mean, with the "
               "gradients themselves in both."),
        stated("plain comparison of all pairs over one with the mean", order, pairs, least=10.0,
               why=f"A record takes {records['all pairs']} ms with all pairs and "
               f"{records['mean']} ms with the mean."),
    ]  # fmt: skip


def step_told(pair: Parts) -> str:
    """Where the time of a private step goes that a plain one does not take."""
    plain, private = pair["without privacy"], pair["Opacus"]
    more = sum(private.values()) - sum(plain.values())
    told = ", ".join(
        f"{round((private[part] - plain[part]) / more, 2) + 0.0:.0%} {name}"
        for part, name in PARTS.items()
    )
    return (
        f"A step takes {1000 * sum(plain.values()):.2g} ms without privacy and "
        f"{1000 * sum(private.values()):.2g} ms with it. Of what is added {told}."
    )
