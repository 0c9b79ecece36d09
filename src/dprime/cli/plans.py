"""`dprime plan`: how many trials an audit needs, before the first one."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from dprime import validate
from dprime.audit.config import criterion_from
from dprime.audit.lower import USUAL_METHOD
from dprime.audit.planner import AuditPlan, epsilon_limit, largest_epsilon
from dprime.audit.planner import plan as make_plan
from dprime.audit.power import METHODS
from dprime.audit.words import WORDS
from dprime.bounds import mu_from_epsilon
from dprime.cli import options
from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD
from dprime.metrics import Reading
from dprime.text import command, round_down

TRAINING = {
    "noise_multiplier": "The claim: noise of a DP-SGD.",
    "sample_rate": "Its sampling rate [1].",
    "steps": "Its steps.",
}
CONDITIONS = ("fpr", "prior", "min_tpr")
PLANNING = {
    "strength": "The attacker's d′ over the most that keeps the claim [2; 1 for a metric].",
    "power": "Share of audits that shall reach it [0.8].",
    "reach": "For a metric: the share of the claim to be shown [0.85].",
    "trials": "Also say what so many trials can show at all.",
}
"""What `dprime audit` has no option for, or another meaning."""

PLANNED = ("strength", "confidence", "power", "reach")

OPTIONS = {
    "epsilon": options.number_option("The claim: ε at --delta, of Gaussian noise in full batches."),
    **options.number_options(TRAINING),
    "adjacency": options.text_option("add-remove, zero-out or replace."),
    "delta": options.number_option("δ of the ε [1e-5]."),
    "metric": options.text_option(WORDS["metric"].help),
    **options.number_options({name: WORDS[name].help for name in CONDITIONS}),
    "method": options.text_option(
        f"Of the lower bound: {', '.join(METHODS)}; {USUAL_METHOD} if not given."
    ),
    **options.number_options({"confidence": "Of the bound [0.95].", **PLANNING}),
}


@options.with_options(OPTIONS, before="as_json")
def plan(as_json: options.AsJson = False, **words: str | None) -> None:
    """Compute how many trials an audit needs to refute a claim."""
    given = options.typed(words)
    delta = validate.parse("delta", given.get("delta", "1e-5"))
    claim = _claim(given, delta)
    at = options.numbers_given(words, ("delta", *CONDITIONS))
    if "epsilon" in given and given.get("metric") != "epsilon":
        at.pop("delta", None)  # it belongs to the claim
    asked = criterion_from(given.get("metric", "curve"), at)
    asked_for: dict[str, Any] = options.numbers_given(words, PLANNED)
    made = make_plan(claim, metric=asked, method=given.get("method", USUAL_METHOD), **asked_for)
    limits = _limits(given.get("trials"), delta, made.confidence)
    audit = _command(made, given)
    if as_json:
        named = {"name": asked.name, **asked.conditions} if isinstance(asked, Reading) else None
        shown = {**vars(made), "metric": named or {"name": "curve"}, "command": audit}
        print(json.dumps({**shown, **limits, "sentence": made.sentence()}, indent=2))
        return
    console = Console(highlight=False)
    console.print(made.sentence())
    if audit is not None:
        console.print(f"The audit: {audit}", soft_wrap=True)
    if limits:
        console.print(
            f"{int(limits['of_trials']):,} trials a world can show an ε of at most "
            f"{round_down(limits['largest_epsilon'])} by Clopper-Pearson, and "
            f"{round_down(limits['epsilon_limit'])} by any method that assumes nothing."
        )


def _command(made: AuditPlan, given: Mapping[str, str]) -> str | None:
    """The audit that was planned, with the options as they were typed."""
    trials = made.refuting if made.strength > 1 else made.trials
    if trials is None:
        return None
    typed_here = {name: text for name, text in given.items() if name not in PLANNING}
    assumed = {"assume": "gaussian"} if made.method == "gaussian" else {}
    return command("audit", {**typed_here, **assumed, "trials": str(trials)})


def _claim(given: Mapping[str, str], delta: float) -> TradeOff:
    """The claimed curve: of an ε, or of a DP-SGD."""
    claims = {name: given.get(name) for name in ("epsilon", "noise_multiplier")}
    remedy = "give --epsilon, or --noise-multiplier and --steps"
    if validate.exactly_one(", ".join(claims), claims, remedy) == "noise_multiplier":
        numbers = options.numbers_given(given, [name for name in TRAINING if name in given])
        return DPSGD(**{"sample_rate": 1.0, **numbers}).curve(given.get("adjacency"))  # type: ignore[arg-type]
    for name in ("sample_rate", "steps", "adjacency"):
        if name in given:
            remedy = "leave it out, or give --noise-multiplier"
            raise validate.invalid_value(name, given[name], "left out where ε is claimed", remedy)
    epsilon = validate.parse("epsilon", given["epsilon"])
    return TradeOff.gaussian(mu_from_epsilon(epsilon, delta=delta))


def _limits(trials: str | None, delta: float, confidence: float) -> dict[str, float]:
    """What a number of trials can show at all, where that is finite."""
    if trials is None:
        return {}
    count = options.whole("trials", trials)
    limits = {
        "largest_epsilon": largest_epsilon(count, delta=delta, confidence=confidence),
        "epsilon_limit": epsilon_limit(count, delta=delta, confidence=confidence),
    }
    return {"of_trials": count, **{k: v for k, v in limits.items() if math.isfinite(v)}}
