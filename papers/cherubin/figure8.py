"""Figure 8: the time of an epoch with each analysis.

An epoch on Adult without privacy, with Opacus, with its accountant asked for ε after it, with the
risk of membership inference, and with both analyses of attribute inference, on the machine's
processor. Trainings have one thread, the analyses one more where there is a core for it. They take
turns, so that what else the machine does meets all of them; the first epoch of each is not counted.
Ratios are geometric means over turns, times are medians. A table says what a step is made of.

The paper has batches of 256 and says that an epoch has 26 steps, which is not the same: the 26,300
records that its noise needs have 103 batches of 256. Trainings with and without privacy are
therefore timed for 26 steps as well. dprime's full analysis compares all pairs of values only for
records that could hold the largest, so a plain comparison of all pairs is timed beside it, on a few
records. How large a large cost is the paper does not say: we read it as at least twice.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.utils.data import DataLoader

from dprime.attributes import AttributeInference
from dprime.data import Dataset
from dprime.data.devices import one_thread
from dprime.monitor import Monitor
from dprime.show.chart import Chart
from papers.cherubin.cases import ADULT, network, secret, tensors
from papers.cherubin.timing import ratio, seconds
from papers.cherubin.trainings import CLIP_NORM, Recipe
from papers.drawing import Line, lines_chart
from papers.reproduce import Claim, Estimate, Measured, Scale, Table, printed, run, stated

LEARNING_RATE, DELTA = ADULT.learning_rates[0], 1e-5
STEPS = 26
"""Of an epoch, as the paper says."""

Asked = Literal["", "accountant", "membership", "approximate", "full"]
ANALYSES: dict[str, Asked] = {
    "Opacus": "", "with its accountant": "accountant", "membership": "membership",
    "attribute, approximate": "approximate", "attribute, full": "full",
}  # fmt: skip


class Laps:
    """Seconds by the part of a step that they went to."""

    def __init__(self) -> None:
        self.taken = dict.fromkeys(PARTS, 0.0)
        self._last = time.perf_counter()

    def end(self, part: str) -> None:
        """What has passed since the last end belongs to this part."""
        now = time.perf_counter()
        self.taken[part] += now - self._last
        self._last = now


@dataclass
class Loop:
    """A training, and what is asked after every epoch."""

    model: nn.Module
    optimizer: Any
    loader: Any
    ask: Callable[[], object] = lambda: None

    def parts(self) -> dict[str, float]:
        """Seconds of an epoch by what they go to; what is asked after it is left out."""
        private = isinstance(self.optimizer, DPOptimizer)
        laps = Laps()
        for x, y in self.loader:
            laps.end("batch")
            self.optimizer.zero_grad()
            laps.end("update")
            loss = CRITERION(self.model(x), y)
            laps.end("forward")
            loss.backward()
            laps.end("backward")
            if private:
                self.optimizer.clip_and_accumulate()
                laps.end("clipping")
                self.optimizer.add_noise()
                self.optimizer.scale_grad()
                laps.end("noise")
            (self.optimizer.original_optimizer if private else self.optimizer).step()
            laps.end("update")
        return laps.taken

    def epoch(self) -> None:
        """One, with what is asked after it."""
        for x, y in self.loader:
            self.optimizer.zero_grad()
            CRITERION(self.model(x), y).backward()
            self.optimizer.step()
        self.ask()


CRITERION = nn.CrossEntropyLoss()
PARTS = ("batch", "forward", "backward", "clipping", "noise", "update")
"""Of a step: drawing the batch, both passes, and what privacy adds; Opacus' backward pass makes a
gradient for every record."""

LARGE = 2.0
"""Times the training that a large cost is at least: our reading."""

Parts = Mapping[str, Mapping[str, float]]
"""Median seconds of a step's parts, by training."""


def measure(scale: Scale) -> Measured:
    """All loops in turns, and a plain comparison of all pairs."""
    recipe = Recipe.of(ADULT, scale)
    train = scale.data(ADULT.data).train.draw(recipe.records, scale.seed)
    turns = scale.pick(2, 4, 10)
    large = replace(recipe, batch=-(-recipe.records // STEPS))
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Opacus' hooks, at every step
        taken = timed(
            {
                "without privacy": public(train, recipe, scale.seed),
                **{
                    name: private(train, recipe, scale.seed, asked)
                    for name, asked in ANALYSES.items()
                },
                "without privacy, 26 steps": public(train, large, scale.seed),
                "Opacus, 26 steps": private(train, large, scale.seed),
            },
            turns,
        )  # fmt: skip
        plain = compared(train, scale.pick(3, 10, 30), scale.seed)
        parts = {
            title: of_step(
                public(train, how, scale.seed), private(train, how, scale.seed), how, turns
            )
            for title, how in ((f"{_steps(recipe)} steps", recipe), (f"{STEPS} steps", large))
        }
    claims = _claims(taken, plain, parts, recipe)
    settings = {
        "records": recipe.records, "batch": recipe.batch, "noise": recipe.noise, "turns": turns,
        "values": len(ADULT.values),
        "batch for 26 steps": large.batch,
    }  # fmt: skip
    numbers = {
        "median seconds": {name: float(np.median(each)) for name, each in taken.items()},
        "seconds": taken, "plain comparison": plain, "median seconds of a step": parts,
    }  # fmt: skip
    return Measured(claims, settings, numbers, drawn(taken), tables=[_table(parts)])


def drawn(taken: Mapping[str, Sequence[float]]) -> Chart:
    """The time of an epoch with each analysis."""
    shown = ("without privacy", *ANALYSES)
    middle = {name: float(np.median(taken[name])) for name in shown}
    points = [
        (place, middle[name], *(float(q) for q in np.quantile(taken[name], (0.25, 0.75))))
        for place, name in enumerate(shown, 1)
    ]
    return lines_chart(
        "figure8",
        f"An epoch takes {middle['Opacus']:.2g} s with Opacus and "
        f"{middle['attribute, full']:.2g} s with the full analysis of attribute inference.",
        "what is asked", "seconds of an epoch",
        (Line("ours, median and middle half", points, joined=False),), places=shown,
    )  # fmt: skip


def _steps(recipe: Recipe) -> int:
    """Of an epoch."""
    return -(-recipe.records // recipe.batch)


def of_step(plain: Loop, private: Loop, recipe: Recipe, turns: int) -> Parts:
    """Median seconds of a step's parts over epochs in turns; the first is not counted."""
    loops = {"without privacy": plain, "Opacus": private}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in loops}
    for turn in range(turns + 1):
        for name, loop in loops.items():
            one = loop.parts()
            if turn:
                found[name].append(one)
    return {
        name: {
            part: float(np.median([one[part] for one in each])) / _steps(recipe) for part in PARTS
        }
        for name, each in found.items()
    }


def _table(parts: Mapping[str, Parts]) -> Table:
    rows = [
        (f"{name}, {title}", *(f"{1000 * each[part]:.2f}" for part in PARTS))
        for title, pair in parts.items()
        for name, each in pair.items()
    ]
    return Table("Milliseconds of a step, median over epochs", ("", *PARTS), tuple(rows))


def _why(pair: Parts) -> str:
    """Where the time of a private step goes that a plain one does not take."""
    plain, private = pair["without privacy"], pair["Opacus"]
    more = sum(private.values()) - sum(plain.values())
    told = ", ".join(
        f"{round((private[part] - plain[part]) / more, 2) + 0.0:.0%} {name}"
        for part, name in ADDED.items()
    )
    return (
        f"A step takes {1000 * sum(plain.values()):.2g} ms without privacy and "
        f"{1000 * sum(private.values()):.2g} ms with it. Of what is added {told}."
    )


ADDED = {
    "batch": "goes to drawing the batch", "forward": "to the forward pass",
    "backward": "to the backward pass with a gradient for each record",
    "clipping": "to clipping", "noise": "to noise", "update": "to the update",
}  # fmt: skip


def _claims(
    taken: Mapping[str, Sequence[float]],
    plain: Mapping[str, Sequence[float]],
    parts: Mapping[str, Parts],
    recipe: Recipe,
) -> list[Claim]:
    def times(name: str, other: str) -> Estimate:
        return ratio(taken[name], taken[other])

    def median(values: Sequence[float]) -> float:
        return float(np.median(values))

    steps = _steps(recipe)
    small, large = parts.values()
    pairs = ratio(plain["all pairs"], plain["mean"])
    cost = f"a large cost: at least {LARGE:g} (our reading)"
    asked = [median(taken[name]) for name in ("with its accountant", "membership")]
    return [
        printed(
            f"Opacus over without privacy, {steps} steps an epoch", 2.0,
            times("Opacus", "without privacy"), _why(small),
        ),
        printed(
            "Opacus over without privacy, 26 steps an epoch", 2.0,
            times("Opacus, 26 steps", "without privacy, 26 steps"), _why(large),
        ),
        stated(
            "membership over the accountant", "a marginal improvement: at most 1",
            times("membership", "with its accountant"), most=1.0,
            why=f"An epoch takes {asked[1]:.3g} s with the risk of membership and {asked[0]:.3g} s "
            "with the accountant of Opacus: both are asked once, and cost little beside it.",
        ),
        stated(
            "attribute inference, approximate, over Opacus", cost,
            times("attribute, approximate", "Opacus"), least=LARGE,
        ),
        stated(
            "attribute inference, full, over Opacus", cost, times("attribute, full", "Opacus"),
            least=LARGE,
        ),
        stated(
            "full over approximate analysis", "an order of magnitude: 10 or more",
            times("attribute, full", "attribute, approximate"), least=10.0,
            why="dprime's full analysis compares all pairs only for the records that could hold "
            f"the largest. A plain comparison of all pairs takes {pairs.value:.2g} times "
            f"({pairs.low:.2g} to {pairs.high:.2g}) as long as one with the mean, with the "
            "gradients themselves in both.",
        ),
        stated(
            "plain comparison of all pairs over one with the mean",
            "an order of magnitude: 10 or more", pairs, least=10.0,
            why=f"A record takes {1000 * median(plain['all pairs']):.3g} ms with all pairs and "
            f"{1000 * median(plain['mean']):.3g} ms with the mean.",
        ),
    ]  # fmt: skip


def timed(loops: dict[str, Loop], turns: int) -> dict[str, list[float]]:
    """Seconds of every epoch but the first."""
    taken: dict[str, list[float]] = {name: [] for name in loops}
    for turn in range(turns + 1):
        for name, loop in loops.items():
            found = seconds(loop.epoch)
            if turn:
                taken[name].append(found)
    return taken


def _parts(train: Dataset, recipe: Recipe, seed: int) -> tuple[nn.Module, Any, DataLoader[Any]]:
    torch.manual_seed(seed)
    module = network(train, ADULT.widths)
    optimizer = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE)
    return module, optimizer, DataLoader(tensors(train), batch_size=recipe.batch, shuffle=True)


def public(train: Dataset, recipe: Recipe, seed: int) -> Loop:
    """Without privacy."""
    return Loop(*_parts(train, recipe, seed))


def private(train: Dataset, recipe: Recipe, seed: int, asked: Asked = "") -> Loop:
    """With Opacus, and with what is asked."""
    module, optimizer, loader = _parts(train, recipe, seed)
    engine = PrivacyEngine(accountant="rdp")
    made = engine.make_private(
        module=module, optimizer=optimizer, data_loader=loader, noise_multiplier=recipe.noise,
        max_grad_norm=CLIP_NORM,
    )  # fmt: skip
    loop = Loop(*made)
    if asked == "accountant":
        loop.ask = partial(engine.get_epsilon, DELTA)
    elif asked:
        _watch(engine, loop, asked)
    return loop


def _watch(engine: PrivacyEngine, loop: Loop, asked: Asked) -> None:
    """With the monitor; the risk is asked after every epoch."""
    analysis: Literal["full", "approximate"] = "full" if asked == "full" else "approximate"
    watchers = (
        [] if asked == "membership" else [AttributeInference(secret(ADULT), analysis=analysis)]
    )
    monitor = Monitor(
        engine, model=loop.model, optimizer=loop.optimizer, data_loader=loop.loader,
        criterion=CRITERION, watchers=list(watchers), show=None, metric="bayes_security",
    )  # fmt: skip
    loop.ask = watchers[0].risk if watchers else monitor.answer


def compared(train: Dataset, count: int, seed: int) -> dict[str, list[float]]:
    """Seconds of a record: its gradients, compared in all pairs or with their mean."""
    torch.manual_seed(seed)
    module = network(train, ADULT.widths)
    weights = {name: value.detach() for name, value in module.named_parameters()}

    def loss(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        outputs = functional_call(module, parameters, (x[None],))
        found: Tensor = nn.functional.cross_entropy(outputs, y[None])
        return found

    of_each = vmap(grad(loss), in_dims=(None, 0, 0))
    x, y = tensors(train).tensors
    attribute = secret(ADULT)

    def gradients(place: int) -> Tensor:
        completed = attribute.completions(x[place : place + 1])[0]
        found = of_each(weights, completed, y[place].expand(len(completed)))
        flat: Tensor = torch.cat([part.flatten(1) for part in found.values()], dim=1)
        clipped: Tensor = flat / (flat.norm(dim=1, keepdim=True) / CLIP_NORM).clamp(min=1)
        return clipped

    ways: dict[str, Callable[[int], object]] = {
        "all pairs": lambda place: farthest(gradients(place)),
        "mean": lambda place: around_mean(gradients(place)),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for place in range(count + 1):
        for name, way in ways.items():
            found = seconds(partial(way, place))
            if place:
                taken[name].append(found)
    return taken


def farthest(points: Tensor) -> float:
    """The largest distance of two, one after the other."""
    return max(float((points - point).norm(dim=1).max()) for point in points)


def around_mean(points: Tensor) -> float:
    """Twice the largest distance to the mean, which is no less."""
    return 2 * float((points - points.mean(dim=0)).norm(dim=1).max())


if __name__ == "__main__":
    run(measure, __file__, __doc__)
