"""The risk of attribute inference in plain lines, with its notes."""

from __future__ import annotations

from collections.abc import Sequence

from dprime import estimates
from dprime.attributes.risks import TWO_VALUES, AttributeRisk
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
    rows = [head, *(_row(risk, fpr) for risk in risks), _membership(risks[0], fpr)]
    shown = [title, *aligned(rows), _among(risks), _certified(risks[0]), *_capped(risks, fpr)]
    shown += [sentence for risk in risks for sentence in _sentences(risk)]
    shown += [risk.doubt for risk in risks if risk.doubt is not None]
    warning = risks[0].curve.warning
    notes = [*([warning] if warning else []), *notes, *_taken(risks)]
    return "\n".join([*shown, *notes, ESTIMATES, LEAK])


def _row(risk: AttributeRisk, fpr: float) -> tuple[str, ...]:
    return (
        risk.attribute.name,
        str(len(risk.attribute.values)),
        round_down(risk.bayes_security()),
        percent_up(risk.success()),
        _percent(risk.baseline_success()),
        percent_up(risk.tpr(fpr)),
    )


def _membership(risk: AttributeRisk, fpr: float) -> tuple[str, ...]:
    curve = risk.membership
    right = (percent_up(curve.success(TWO_VALUES)), _percent(TWO_VALUES))
    security = round_down(curve.bayes_security())
    return ("membership", "", security, *right, percent_up(curve.tpr(fpr)))


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


def _certified(risk: AttributeRisk) -> str:
    if risk.certified is None:
        return "Membership, certified: no bound is proved for these batches."
    if risk.certified.bayes_security() <= 0:
        return "Membership, certified: nothing; the monitor's warnings say why."
    least = round_down(risk.certified.bayes_security())
    return f"Membership, certified (one record replaced): Bayes security at least {least}."


def _capped(risks: Sequence[AttributeRisk], fpr: float) -> list[str]:
    """Names the rows whose estimate exceeded the certified curve, which is shown instead."""
    rows = {risk.attribute.name: risk.curve for risk in risks} | {"membership": risks[0].membership}
    names = [name for name, curve in rows.items() if estimates.is_capped(curve, fpr)]
    return [f"Capped by the certified curve: {', '.join(names)}."] if names else []


def _taken(risks: Sequence[AttributeRisk]) -> list[str]:
    """The note on numbers that depend on the values that somebody has."""
    names = [risk.attribute.name for risk in risks if risk.attribute.from_data]
    if not names:
        return []
    return [
        f"The values of {', '.join(names)} were taken from the data, so these numbers may also "
        "reveal which values occur there."
    ]


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
