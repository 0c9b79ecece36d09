"""The risk of attribute inference in plain lines, with its notes."""

from __future__ import annotations

from collections.abc import Sequence

from dprime import estimates
from dprime.attributes.risks import TWO_VALUES, AttributeRisk
from dprime.curve import Estimate, TradeOff
from dprime.text import aligned, given, percent_up, round_down

LEAK = (
    "These numbers depend on the data and may reveal who was in it: never publish them where "
    "membership is a concern."
)

ESTIMATES = "They are estimates, not bounds; only the certified line is one."


def lines(title: str, risks: Sequence[AttributeRisk], fpr: float, notes: Sequence[str]) -> str:
    """The whole report."""
    right = ("attacker right", "without training")
    head = ("", "values", "Bayes security", *right, f"TPR at FPR {given(fpr)}")
    rows: list[tuple[str, ...]] = [head]
    for risk in risks:
        reached, blind = risk.success(), risk.baseline_success()
        count = str(len(risk.attribute.values))
        rows.append(_row(risk.attribute.name, count, risk.curve, reached, blind, fpr))
    membership, certified = risks[0].membership, risks[0].certified
    reached = membership.success(TWO_VALUES)
    rows.append(_row("membership", "", membership, reached, TWO_VALUES, fpr))
    curves = {risk.attribute.name: risk.curve for risk in risks} | {"membership": membership}
    capped = [name for name, curve in curves.items() if estimates.is_capped(curve, fpr)]
    taken = [risk.attribute.name for risk in risks if risk.attribute.from_data]
    shown = [title, *aligned(rows), _among(risks), _certified(certified)]
    shown += [f"Capped by the certified curve: {', '.join(capped)}."] * bool(capped)
    shown += [sentence for risk in risks for sentence in _sentences(risk)]
    shown += [risk.doubt for risk in risks if risk.doubt is not None]
    shown += [risks[0].curve.warning] if risks[0].curve.warning else []
    shown += notes
    if taken:
        shown.append(
            f"The values of {', '.join(taken)} were taken from the data, so these numbers may also "
            "reveal which values occur there."
        )
    return "\n".join([*shown, ESTIMATES, LEAK])


def _row(
    name: str, values: str, curve: Estimate, right: float, blind: float, fpr: float
) -> tuple[str, ...]:
    security = round_down(curve.bayes_security())
    return name, values, security, percent_up(right), _percent(blind), percent_up(curve.tpr(fpr))


def _among(risks: Sequence[AttributeRisk]) -> str:
    """The meaning of "attacker right", row by row."""
    drawn = ", ".join(risk.attribute.name for risk in risks if risk.attribute.prior is not None)
    even = ", ".join(risk.attribute.name for risk in risks if risk.attribute.prior is None)
    values = f"of two equally likely values for {even}; " if even else ""
    shares = f"of all values, with the prior that was given, for {drawn}; " if drawn else ""
    apart = " Compare a row with its own share without training, not with other rows."
    return (
        f"Attacker right: {values}{shares}of two equally likely records for membership."
        f"{apart if drawn else ''}"
    )


def _certified(curve: TradeOff | None) -> str:
    if curve is None:
        return "Membership, certified: no bound is proved for these batches."
    if curve.bayes_security() <= 0:
        return "Membership, certified: nothing; the monitor's warnings say why."
    least = round_down(curve.bayes_security())
    return f"Membership, certified (one record replaced): Bayes security at least {least}."


def _sentences(risk: AttributeRisk) -> list[str]:
    attribute = risk.attribute
    if attribute.prior is None:
        return []
    likeliest = attribute.labels[attribute.prior.index(max(attribute.prior))]
    found = [
        f"{attribute.name}: an attacker names the value in about {percent_up(risk.success())} of "
        f"cases; the best blind guess, {likeliest!r}, in "
        f"{_percent(risk.baseline_success())}."
    ]
    if attribute.sensitive_value is not None:
        place = attribute.sensitive_value
        found.append(
            f"{attribute.name}: of answers {attribute.labels[place]!r}, about "
            f"{percent_up(risk.precision())} are right where {_percent(attribute.prior[place])} "
            "of records have it (of attackers who find at least 1 % of them)."
        )
    return found


def _percent(share: float) -> str:
    return f"{given(100 * share)} %"
