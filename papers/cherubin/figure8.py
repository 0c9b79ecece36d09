"""Figure 8: the time of an epoch with each analysis.

An epoch on Adult without privacy, with Opacus, with its accountant asked for ε after it, with the
risk of membership inference, and with both analyses of attribute inference, on the machine's
processor. Trainings have one thread, the analyses one more where there is a core for it. They take
turns, so that what else the machine does meets all of them; the first epoch of each is not counted.

The paper has batches of 256 and says that an epoch has 26 steps, which is not the same: 26,300
records have 103 batches of 256. Trainings with and without privacy are therefore timed for 26 steps
as well. dprime's full analysis compares all pairs of values only for records that could hold the
largest, so a plain comparison of all pairs is timed beside it, on a few records.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from opacus import PrivacyEngine
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.utils.data import DataLoader

from dprime.data import Dataset
from dprime.monitor import AttributeInference, Monitor
from dprime.train.workers import one_thread
from papers.cherubin.cases import ADULT, network, secret, tensors
from papers.cherubin.timing import ratio, seconds
from papers.cherubin.trainings import CLIP_NORM, SEED, Recipe
from papers.drawing import Line, LinesFigure
from papers.reproduce import Claim, Estimate, Measured, Scale, mean, printed, run, stated

LEARNING_RATE, DELTA = ADULT.learning_rates[0], 1e-5
STEPS = 26
"""Of an epoch, as the paper says."""

Asked = Literal["", "accountant", "membership", "approximate", "full"]
ANALYSES: dict[str, Asked] = {
    "Opacus": "", "with its accountant": "accountant", "membership": "membership",
    "attribute, approximate": "approximate", "attribute, full": "full",
}  # fmt: skip


@dataclass
class Loop:
    """A training, and what is asked after every epoch."""

    model: nn.Module
    optimizer: Any
    loader: Any
    ask: Callable[[], object] = lambda: None

    def epoch(self) -> None:
        """One, with what is asked after it."""
        for x, y in self.loader:
            self.optimizer.zero_grad()
            CRITERION(self.model(x), y).backward()
            self.optimizer.step()
        self.ask()


CRITERION = nn.CrossEntropyLoss()


def measure(scale: Scale) -> Measured:
    """All loops in turns, and a plain comparison of all pairs."""
    recipe = Recipe.of(ADULT, scale)
    train = scale.data(ADULT.data).train.draw(recipe.records, SEED)
    turns = scale.pick(2, 4, 10)
    large = replace(recipe, batch=-(-recipe.records // STEPS))
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Opacus' hooks, at every step
        taken = timed(
            {
                "without privacy": public(train, recipe),
                **{name: private(train, recipe, asked) for name, asked in ANALYSES.items()},
                "without privacy, 26 steps": public(train, large),
                "Opacus, 26 steps": private(train, large, ""),
            },
            turns,
        )  # fmt: skip
        plain = compared(train, scale.pick(3, 10, 30))
    claims = _claims(taken, plain, recipe)
    shown = [name for name in taken if "26" not in name]
    means = {name: mean(taken[name]) for name in shown}
    figure = LinesFigure(
        "figure8",
        f"An epoch takes {means['Opacus'].value:.2g} s with Opacus and "
        f"{means['attribute, full'].value:.2g} s with the full analysis of attribute inference.",
        "1 without privacy, 2 Opacus, 3 accountant, 4 membership, 5 approximate, 6 full",
        "seconds of an epoch", tuple(
            Line(name, [(place + 1.0, one.value, one.low, one.high)], joined=False)
            for place, (name, one) in enumerate(means.items())
        ),
    )  # fmt: skip
    settings = {
        "records": recipe.records, "batch": recipe.batch, "noise": recipe.noise, "turns": turns,
        "values": len(ADULT.values),
        "batch for 26 steps": large.batch,
    }  # fmt: skip
    return Measured(claims, settings, {"seconds": taken, "plain comparison": plain}, figure)


def _claims(
    taken: dict[str, list[float]], plain: dict[str, list[float]], recipe: Recipe
) -> list[Claim]:
    def times(name: str, other: str) -> Estimate:
        return ratio(taken[name], taken[other])

    steps = -(-recipe.records // recipe.batch)
    pairs = ratio(plain["all pairs"], plain["mean"])

    def per_step(count: int, *names: str) -> str:
        plain, private = (1000 * mean(taken[name]).value / count for name in names)
        return f"A step takes {plain:.2g} ms without privacy and {private:.2g} ms with it."

    asked = [mean(taken[name]).value for name in ("with its accountant", "membership")]
    return [
        printed(
            f"Opacus over without privacy, {steps} steps an epoch", 2.0,
            times("Opacus", "without privacy"),
            per_step(steps, "without privacy", "Opacus"),
        ),
        printed(
            "Opacus over without privacy, 26 steps an epoch", 2.0,
            times("Opacus, 26 steps", "without privacy, 26 steps"),
            per_step(STEPS, "without privacy, 26 steps", "Opacus, 26 steps"),
        ),
        stated(
            "membership over the accountant", "a marginal improvement: at most 1",
            times("membership", "with its accountant"), most=1.0,
            why=f"An epoch takes {asked[1]:.3g} s with the risk of membership and {asked[0]:.3g} s "
            "with the accountant of Opacus: both are asked once, and cost little beside it.",
        ),
        stated(
            "attribute inference, approximate, over Opacus", "a large cost: above 1",
            times("attribute, approximate", "Opacus"), least=1.0,
        ),
        stated(
            "attribute inference, full, over Opacus", "a large cost: above 1",
            times("attribute, full", "Opacus"), least=1.0,
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
            why=f"A record takes {1000 * mean(plain['all pairs']).value:.3g} ms with all pairs and "
            f"{1000 * mean(plain['mean']).value:.3g} ms with the mean.",
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


def _parts(train: Dataset, recipe: Recipe) -> tuple[nn.Module, Any, DataLoader[Any]]:
    torch.manual_seed(SEED)
    module = network(train, ADULT.widths)
    optimizer = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE)
    return module, optimizer, DataLoader(tensors(train), batch_size=recipe.batch, shuffle=True)


def public(train: Dataset, recipe: Recipe) -> Loop:
    """Without privacy."""
    return Loop(*_parts(train, recipe))


def private(train: Dataset, recipe: Recipe, asked: Asked) -> Loop:
    """With Opacus, and with what is asked."""
    module, optimizer, loader = _parts(train, recipe)
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


def compared(train: Dataset, count: int) -> dict[str, list[float]]:
    """Seconds of a record: its gradients, compared in all pairs or with their mean."""
    torch.manual_seed(SEED)
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
