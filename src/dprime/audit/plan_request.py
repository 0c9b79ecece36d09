"""What `dprime plan` is asked: a claim in texts, how it is judged, and the audit to give then."""

from __future__ import annotations

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
    options.METHOD.here("band", choices=METHODS),
    options.STRENGTH.here(note="Default: 2, or 1 where a metric is given."),
    options.CONFIDENCE.here(0.95),
    options.POWER.here(0.8),
    options.FRACTION_OF_CLAIM.here(0.85),
)
"""Options that are arguments of `plan`."""
ASKED = (
    options.EPSILON.here(note="The claim is the curve of Gaussian noise with it."),
    *options.MECHANISM,
    options.ADJACENCY,
    options.DELTA.here(1e-5),
    WORDS["metric"].option.here("curve"),
    *CONDITIONS,
    *PLANNED,
    options.TRIALS,
)
OF_PLANS = ("strength", "power", "fraction_of_claim", "trials")
"""What `dprime audit` has no option for, or is planned."""

OF_EPSILON = (
    "The claim is the curve of the noise that ε takes. With --noise-multiplier beside --epsilon, "
    "an audit claims (ε, δ) alone, which allows more and takes more trials."
)


def planned(texts: Texts) -> tuple[dict[str, Any], list[str]]:
    """The plan that `dprime plan` makes with these options: as JSON values, and in sentences.

    The values have the `command` of the audit that was planned.
    """
    values = read(ASKED, texts)
    delta = values.get("delta", 1e-5)
    names = [option.name for option in (options.DELTA, *CONDITIONS)]
    at = {name: values[name] for name in names if name in values}
    if "epsilon" in values and values.get("metric") != "epsilon":
        at.pop("delta", None)  # it belongs to the claim
    how = {option.name: values[option.name] for option in PLANNED if option.name in values}
    criterion = criterion_from(values.get("metric", "curve"), at)
    made = plan(_claim(values, delta), criterion=criterion, **how)
    shown = {**vars(made), "criterion": {"name": "curve"}, "command": _command(made, texts)}
    if isinstance(criterion, Reading):
        shown["criterion"] = {"name": criterion.name, **criterion.conditions}
    lines = [made.sentence(), *([OF_EPSILON] if "epsilon" in values else [])]
    if (trials := values.get("trials")) is not None:
        given = {"delta": delta, "confidence": made.confidence}
        largest, limit = (most(trials, **given) for most in (largest_epsilon, epsilon_limit))
        shown |= {"of_trials": trials, "largest_epsilon": largest, "epsilon_limit": limit}
        lines.append(
            f"{trials:,} trials a world can show an ε of at most {round_down(largest)} by "
            f"Clopper-Pearson, and {round_down(limit)} by any method that assumes nothing."
        )
    return shown | {"sentence": made.sentence()}, lines


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
