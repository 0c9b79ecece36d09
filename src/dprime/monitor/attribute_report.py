"""The risk of attribute inference in plain lines, with what must be said beside it."""

from __future__ import annotations

from collections.abc import Sequence

from dprime.monitor.risks import AttributeRisk
from dprime.profile import given, percent_up, round_down

LEAK = (
    "These numbers depend on the data and may reveal who was in it: never publish them where "
    "membership is a concern."
)

ESTIMATES = "They are estimates, not bounds; only the certified line is one."


def lines(title: str, risks: Sequence[AttributeRisk], fpr: float, notes: Sequence[str]) -> str:
    """The whole report."""
    head = ("", "values", "Bayes security", "attacker right", f"TPR at FPR {given(fpr)}")
    rows = [head, *(_row(risk, fpr) for risk in risks), _membership(risks[0], fpr)]
    shown = [title, *_table(rows), _certified(risks[0])]
    shown += [sentence for risk in risks for sentence in _sentences(risk)]
    warning = risks[0].curve.warning
    return "\n".join([*shown, *([warning] if warning else []), *notes, ESTIMATES, LEAK])


def _row(risk: AttributeRisk, fpr: float) -> tuple[str, ...]:
    return (
        risk.attribute.name,
        str(len(risk.attribute.values)),
        round_down(risk.bayes_security()),
        percent_up(risk.success()),
        percent_up(risk.tpr(fpr)),
    )


def _membership(risk: AttributeRisk, fpr: float) -> tuple[str, ...]:
    """The same columns for which of two records was used."""
    curve = risk.membership
    right = percent_up(curve.success(0.5))
    return ("membership", "", round_down(curve.bayes_security()), right, percent_up(curve.tpr(fpr)))


def _certified(risk: AttributeRisk) -> str:
    if risk.certified is None:
        return "Membership, certified: no bound is proved for these batches."
    if risk.certified.bayes_security() <= 0:
        return "Membership, certified: nothing; the monitor's warnings say why."
    least = round_down(risk.certified.bayes_security())
    return f"Membership, certified (one record replaced): Bayes security at least {least}."


def _sentences(risk: AttributeRisk) -> list[str]:
    """What follows for a prior and a damaging value."""
    attribute = risk.attribute
    if attribute.prior is None:
        return []
    found = [
        f"{attribute.name}: an attacker names the value in about {percent_up(risk.success())} of "
        f"cases; the best blind guess, {attribute.labels[_likeliest(attribute.prior)]!r}, in "
        f"{given(100 * risk.blind())} %."
    ]
    if attribute.damaging is not None:
        place = attribute.damaging
        found.append(
            f"{attribute.name}: of answers {attribute.labels[place]!r}, about "
            f"{percent_up(risk.precision())} are right where {given(100 * attribute.prior[place])} "
            "% of records have it (of attackers who find at least 1 % of them)."
        )
    return found


def _likeliest(prior: Sequence[float]) -> int:
    return max(range(len(prior)), key=prior.__getitem__)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
