"""What `dprime plan` is asked: a claim in texts, how it is judged, and the audit to give then."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dprime import options, validate
from dprime.audit.config import criterion_from
from dprime.audit.planner import AuditPlan, epsilon_limit, largest_epsilon, plan
from dprime.audit.power import METHODS
from dprime.audit.words import WORDS
from dprime.bounds import mu_from_epsilon
from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD
from dprime.metrics import Reading
from dprime.option import Texts, read
from dprime.text import command, round_down

CONDITIONS = tuple(each.option for each in WORDS.values() if each.option.table == "conditions")
PLANNED = (
    options.STRENGTH.here(note="Default: 2, or 1 where a metric is given."),
    options.CONFIDENCE.here(0.95),
    options.POWER.here(0.8),
    options.FRACTION_OF_CLAIM.here(0.85),
)
ASKED = (
    options.EPSILON.here(note="The claim is the curve of Gaussian noise with it."),
    *options.MECHANISM,
    options.ADJACENCY,
    options.DELTA.here(1e-5),
    WORDS["metric"].option.here("curve"),
    *CONDITIONS,
    options.METHOD.here("band", choices=METHODS),
    *PLANNED,
    options.TRIALS,
)
OF_PLANS = ("strength", "power", "fraction_of_claim", "trials")
"""What `dprime audit` has no option for, or is planned."""


OF_EPSILON = (
    "Claimed is the curve of the noise that ε takes. An audit with noise of its own beside "
    "--epsilon claims (ε, δ) alone, which allows more and takes more trials."
)


@dataclass(frozen=True)
class Planned:
    """A plan, the audit that was planned, and what a number of trials can show at all."""

    plan: AuditPlan
    command: str | None
    limits: dict[str, float]
    of_epsilon: bool

    def to_dict(self) -> dict[str, Any]:
        criterion = self.plan.criterion
        named: dict[str, Any] = {"name": "curve"}
        if isinstance(criterion, Reading):
            named = {"name": criterion.name, **criterion.conditions}
        shown = {**vars(self.plan), "criterion": named, "command": self.command}
        return {**shown, **self.limits, "sentence": self.plan.sentence()}

    def lines(self) -> list[str]:
        """The plan in sentences, but for the command."""
        lines = [self.plan.sentence(), *([OF_EPSILON] if self.of_epsilon else [])]
        if self.limits:
            lines.append(
                f"{int(self.limits['of_trials']):,} trials a world can show an ε of at most "
                f"{round_down(self.limits['largest_epsilon'])} by Clopper-Pearson, and "
                f"{round_down(self.limits['epsilon_limit'])} by any method that assumes nothing."
            )
        return lines


def planned(texts: Texts) -> Planned:
    """The plan that `dprime plan` makes with these options."""
    values = read(ASKED, texts)
    delta = values.get("delta", 1e-5)
    names = [option.name for option in (options.DELTA, *CONDITIONS)]
    at = {name: values[name] for name in names if name in values}
    if "epsilon" in values and values.get("metric") != "epsilon":
        at.pop("delta", None)  # it belongs to the claim
    how: dict[str, Any] = {o.name: values[o.name] for o in PLANNED if o.name in values}
    if "method" in values:
        how["method"] = values["method"]
    made = plan(
        _claim(values, delta), criterion=criterion_from(values.get("metric", "curve"), at), **how
    )
    limits = _limits(values.get("trials"), delta, made.confidence)
    return Planned(made, _command(made, texts), limits, "epsilon" in values)


def _command(made: AuditPlan, texts: Texts) -> str | None:
    """The audit that was planned, with the options as they were typed."""
    trials = made.refuting if made.strength > 1 else made.trials
    if trials is None:
        return None
    known = [option.name for option in ASKED if option.name not in OF_PLANS]
    typed = {name: texts[name] for name in texts if name in known}
    assumed = {"assume": "gaussian"} if made.method == "gaussian" else {}
    return command("audit", {**typed, **assumed, "trials": str(trials)})


def _claim(values: dict[str, Any], delta: float) -> TradeOff:
    """The claimed curve: of an ε, or of a DP-SGD."""
    claims = {name: values.get(name) for name in ("epsilon", "noise_multiplier")}
    remedy = "give --epsilon, or --noise-multiplier and --steps"
    if validate.exactly_one(", ".join(claims), claims, remedy) == "noise_multiplier":
        numbers = {o.name: values[o.name] for o in options.MECHANISM if o.name in values}
        return DPSGD(**{"sample_rate": 1.0, **numbers}).curve(values.get("adjacency"))
    for name in ("sample_rate", "steps", "adjacency"):
        if name in values:
            remedy = "leave it out, or give --noise-multiplier"
            raise validate.invalid_value(name, values[name], "left out where ε is claimed", remedy)
    return TradeOff.gaussian(mu_from_epsilon(values["epsilon"], delta=delta))


def _limits(trials: int | None, delta: float, confidence: float) -> dict[str, float]:
    """What a number of trials can show at all, where that is finite."""
    if trials is None:
        return {}
    limits = {
        "largest_epsilon": largest_epsilon(trials, delta=delta, confidence=confidence),
        "epsilon_limit": epsilon_limit(trials, delta=delta, confidence=confidence),
    }
    return {"of_trials": trials, **{k: v for k, v in limits.items() if math.isfinite(v)}}
