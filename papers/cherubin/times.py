"""Figures 5 and 8: what the closed form, accountants and analyses cost, timed in turns."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.utils.data import DataLoader

from dprime import estimates
from dprime.attributes import AttributeInference
from dprime.data import Dataset
from dprime.data.devices import one_thread
from dprime.mechanisms import DPSGD
from dprime.monitor import Monitor
from dprime.parameters import steps_from_epochs
from dprime.show.chart import Chart
from papers.cherubin.trainings import ADULT, CLIP_NORM, Recipe, tensors
from papers.drawing import Line, lines_chart
from papers.entry import Measured, Scale, Table
from papers.reproduce import Claim, Estimate, mean, printed, stated

Work = Callable[[], Any]
Times = Mapping[str, Sequence[float]]
"""Seconds of every turn, by what is timed."""


def seconds(do: Work) -> float:
    """That something takes."""
    start = time.perf_counter()
    do()
    return time.perf_counter() - start


def in_turns(jobs: Mapping[str, Work], turns: Mapping[str, int] | int) -> dict[str, list[float]]:
    """Seconds of each, in turns, so that what else the machine does meets all of them.

    The first turn is not counted.
    """
    limits = dict.fromkeys(jobs, turns) if isinstance(turns, int) else turns
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(max(limits.values()) + 1):
        for name, job in jobs.items():
            if turn <= limits[name]:
                found = seconds(job)
                taken[name] += [found] if turn else []
    return taken


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
        jobs = answers(steps_from_epochs(epochs, RATE))
        limits = {name: of_peer if name == PEER else turns for name in jobs}
        taken[epochs] = in_turns(jobs, limits)
    names = list(taken[EPOCHS[0]])
    medians = {name: [float(np.median(each[name])) for each in taken.values()] for name in names}
    closed, slowest = float(np.median(medians[CLOSED])), max(medians[OURS])
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
               ratio(medians[name], medians[CLOSED]), least=ORDERS, why=why.get(name, ""))
        for name in (PEER, OURS) if name in medians
    ]  # fmt: skip
    numbers = {
        "median seconds": {name: dict(zip(map(str, taken), each, strict=True))
                           for name, each in medians.items()},
    }  # fmt: skip
    settings = {
        "rate": RATE, "noise": NOISE, "turns": turns, "turns of dp_accounting": of_peer,
        "adjacency": "replace",
    }  # fmt: skip
    return Measured(claims, settings, numbers, {"": figure})


def answers(steps: int) -> dict[str, Work]:
    """Who gives a Bayes security, one record replaced."""
    found: dict[str, Work] = {
        CLOSED: lambda: estimates.cherubin(NOISE, RATE, steps).bayes_security(),
        OURS: lambda: DPSGD(NOISE, RATE, steps).curve("replace").bayes_security(),
    }
    if find_spec(PEER) is not None:
        found[PEER] = lambda: peer_security(steps)
    return found


def peer_security(steps: int) -> float:
    """By dp_accounting: 1 less δ at ε = 0."""
    dp, pld = import_module(PEER), import_module(f"{PEER}.pld")
    accountant = pld.PLDAccountant(dp.NeighboringRelation.REPLACE_ONE)
    step = dp.PoissonSampledDpEvent(RATE, dp.GaussianDpEvent(NOISE))
    accountant.compose(dp.SelfComposedDpEvent(step, steps))
    return 1 - float(accountant.get_delta(0.0))


LEARNING_RATE, DELTA = ADULT.learning_rates[0], 1e-5
STEPS = 26
"""Of an epoch, as the paper says."""

Asked = Literal["", "accountant", "membership", "approximate", "full"]
ANALYSES: dict[str, Asked] = {
    "Opacus": "", "with its accountant": "accountant", "membership": "membership",
    "attribute, approximate": "approximate", "attribute, full": "full",
}  # fmt: skip

CRITERION = nn.CrossEntropyLoss()
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


@dataclass
class Loop:
    """A training, and what is asked after every epoch."""

    model: nn.Module
    optimizer: Any
    loader: Any
    ask: Work = lambda: None

    def epoch(self) -> None:
        """One, with what is asked after it."""
        for x, y in self.loader:
            self.optimizer.zero_grad()
            CRITERION(self.model(x), y).backward()
            self.optimizer.step()
        self.ask()

    def parts(self) -> dict[str, float]:
        """Seconds of an epoch by what they go to; what is asked after it is left out."""
        private = isinstance(self.optimizer, DPOptimizer)
        taken, last = dict.fromkeys(PARTS, 0.0), time.perf_counter()

        def end(part: str) -> None:
            """What has passed since the last end belongs to this part."""
            nonlocal last
            now = time.perf_counter()
            taken[part] += now - last
            last = now

        for x, y in self.loader:
            end("batch")
            self.optimizer.zero_grad()
            end("update")
            loss = CRITERION(self.model(x), y)
            end("forward")
            loss.backward()
            end("backward")
            if private:
                self.optimizer.clip_and_accumulate()
                end("clipping")
                self.optimizer.add_noise()
                self.optimizer.scale_grad()
                end("noise")
            (self.optimizer.original_optimizer if private else self.optimizer).step()
            end("update")
        return taken


def figure8(scale: Scale) -> Measured:
    """The time of an epoch with each analysis, and of a plain comparison of all pairs."""
    recipe = Recipe.of(ADULT, scale)
    data = scale.data(ADULT.data).train.draw(recipe.records, scale.seed)
    turns = scale.pick(2, 4, 10)
    large = replace(recipe, batch=-(-recipe.records // STEPS))
    public, private = partial(loop_of, data, scale.seed), partial(private_loop, data, scale.seed)
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Opacus' hooks, at every step
        loops = {
            "without privacy": public(recipe),
            **{name: private(recipe, asked) for name, asked in ANALYSES.items()},
            "without privacy, 26 steps": public(large),
            "Opacus, 26 steps": private(large),
        }
        taken = in_turns({name: loop.epoch for name, loop in loops.items()}, turns)
        plain = compared(data, scale.pick(3, 10, 30), scale.seed)
        parts = {
            f"{title} steps": of_step(public(how), private(how), how, turns)
            for title, how in ((recipe.steps, recipe), (STEPS, large))
        }
    rows = [
        (f"{name}, {title}", *(f"{1000 * each[part]:.2f}" for part in PARTS))
        for title, pair in parts.items()
        for name, each in pair.items()
    ]
    table = Table("Milliseconds of a step, median over epochs", ("", *PARTS), tuple(rows))
    settings = {
        "records": recipe.records, "batch": recipe.batch, "noise": recipe.noise, "turns": turns,
        "values": len(ADULT.values), "batch for 26 steps": large.batch,
    }  # fmt: skip
    numbers = {
        "median seconds": {name: float(np.median(each)) for name, each in taken.items()},
        "seconds": taken, "plain comparison": plain, "median seconds of a step": parts,
    }  # fmt: skip
    claims = claims_of(taken, plain, parts, recipe.steps)
    return Measured(claims, settings, numbers, {"": drawn(taken)}, tables=[table])


def loop_of(data: Dataset, seed: int, recipe: Recipe) -> Loop:
    """Without privacy."""
    torch.manual_seed(seed)
    module = ADULT.network(data)
    optimizer = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE)
    loader = DataLoader(tensors(data), batch_size=recipe.batch, shuffle=True)
    return Loop(module, optimizer, loader)


def private_loop(data: Dataset, seed: int, recipe: Recipe, asked: Asked = "") -> Loop:
    """With Opacus, and with what is asked after every epoch."""
    plain, engine = loop_of(data, seed, recipe), PrivacyEngine(accountant="rdp")
    made = engine.make_private(
        module=plain.model, optimizer=plain.optimizer, data_loader=plain.loader,
        noise_multiplier=recipe.noise, max_grad_norm=CLIP_NORM,
    )  # fmt: skip
    loop = Loop(*made)
    if asked == "accountant":
        loop.ask = partial(engine.get_epsilon, DELTA)
    elif asked:
        (secret,) = ADULT.secrets()
        watchers = [AttributeInference(secret, analysis=asked)] if asked != "membership" else []
        monitor = Monitor(
            engine, model=loop.model, optimizer=loop.optimizer, data_loader=loop.loader,
            criterion=CRITERION, watchers=list(watchers), show=None, metric="bayes_security",
        )  # fmt: skip
        loop.ask = watchers[0].risk if watchers else monitor.answer
    return loop


def of_step(plain: Loop, private: Loop, recipe: Recipe, turns: int) -> Parts:
    """Median seconds of a step's parts over epochs in turns; the first is not counted."""
    loops = {"without privacy": plain, "Opacus": private}
    rounds = [{name: loop.parts() for name, loop in loops.items()} for _ in range(turns + 1)]
    return {
        name: {
            part: float(np.median([one[name][part] for one in rounds[1:]])) / recipe.steps
            for part in PARTS
        }
        for name in loops
    }


def compared(data: Dataset, count: int, seed: int) -> dict[str, list[float]]:
    """Seconds of a record: its gradients, compared in all pairs or with their mean."""
    torch.manual_seed(seed)
    module = ADULT.network(data)
    weights = {name: value.detach() for name, value in module.named_parameters()}

    def loss(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        outputs = functional_call(module, parameters, (x[None],))
        found: Tensor = nn.functional.cross_entropy(outputs, y[None])
        return found

    of_each = vmap(grad(loss), in_dims=(None, 0, 0))
    x, y = tensors(data).tensors
    (secret,) = ADULT.secrets()
    places = {"all pairs": iter(range(count + 1)), "mean": iter(range(count + 1))}

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

    return in_turns({"all pairs": all_pairs, "mean": around_mean}, count)


def claims_of(taken: Times, plain: Times, parts: Mapping[str, Parts], steps: int) -> list[Claim]:
    def times(name: str, other: str) -> Estimate:
        return ratio(taken[name], taken[other])

    def told(values: Sequence[float], unit: float = 1.0) -> str:
        return f"{unit * float(np.median(values)):.3g}"

    small, large = parts.values()
    pairs = ratio(plain["all pairs"], plain["mean"])
    cost = f"a large cost: at least {LARGE:g} (our reading)"
    order = "an order of magnitude: 10 or more"
    return [
        printed(f"Opacus over without privacy, {steps} steps an epoch", 2.0,
                times("Opacus", "without privacy"), step_told(small)),
        printed("Opacus over without privacy, 26 steps an epoch", 2.0,
                times("Opacus, 26 steps", "without privacy, 26 steps"), step_told(large)),
        stated("membership over the accountant", "a marginal improvement: at most 1",
               times("membership", "with its accountant"), most=1.0,
               why=f"An epoch takes {told(taken['membership'])} s with the risk of membership and "
               f"{told(taken['with its accountant'])} s with the accountant of Opacus: both are "
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
               why=f"A record takes {told(plain['all pairs'], 1000)} ms with all pairs and "
               f"{told(plain['mean'], 1000)} ms with the mean."),
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


def drawn(taken: Times) -> Chart:
    """The time of an epoch with each analysis."""
    shown = ("without privacy", *ANALYSES)
    points = [(place, *quartiles(taken[name])) for place, name in enumerate(shown, 1)]
    opacus, full = (float(np.median(taken[name])) for name in ("Opacus", "attribute, full"))
    return lines_chart(
        f"An epoch takes {opacus:.2g} s with Opacus and {full:.2g} s with the full analysis of "
        "attribute inference.",
        "what is asked", "seconds of an epoch",
        [Line("ours, median and middle half", points, "points")], places=shown,
    )  # fmt: skip
