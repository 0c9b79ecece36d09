"""The report of a run: one HTML file that opens offline, the verdict first.

Every number in it is taken from the card by its place there, and says so (`data-fact`).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from dprime import text
from dprime.audit import blind_spots
from dprime.audit.identifiability import belief_bound
from dprime.audit.record import EXCEEDED, AuditRecord
from dprime.audit.separation import separation
from dprime.mechanisms import DPSGD
from dprime.metrics import BLIND, Reading
from dprime.show import charts, grounds, repeat, words
from dprime.show.card import SEEN, card, reached_by
from dprime.show.chart import Chart
from dprime.show.charts import Points, Rung
from dprime.show.compared import compared
from dprime.show.needs import check_report
from dprime.show.pdf import write_pdf
from dprime.show.svg import inline_svg

__all__ = ["figures_of", "report_html", "write_pdf"]

SECTIONS = (
    ("claim", "The claim"),
    ("attack", "The attack"),
    ("numbers", "The numbers"),
    ("charts", "The charts"),
    ("assumed", "What was assumed"),
    ("law", "How the number relates to the law"),
    ("not-tested", "What was not tested"),
    ("cannot-see", "What this audit cannot see"),
    ("repeat", "How to repeat it"),
)


def report_html(facts: AuditRecord, beside: Sequence[AuditRecord] = ()) -> str:
    """The report as one HTML page, without script and without any outside address.

    Args:
        facts: of the run, from `record_of`.
        beside: of other runs against the same claim, for the ladder of adversaries.
    """
    check_report()
    facts = compared(facts, beside)
    figures = figures_of(facts, beside)
    shown = {**card(facts), "beside": [card(other) for other in beside]}
    page = str(_template().render(_context(facts, shown, figures)))
    return page.replace(" %", "\N{NO-BREAK SPACE}%")  # a number keeps its sign on its line


# Charts -------------------------------------------------------------------------------------------


def figures_of(facts: AuditRecord, beside: Sequence[AuditRecord] = ()) -> list[Chart]:
    """The charts of a run.

    Args:
        facts: of the run, from `record_of`.
        beside: of other runs against the same claim; they add the ladder of adversaries.
    """
    facts = compared(facts, beside)
    claim = Points(facts.claim.fpr, facts.claim.tpr)
    lower = Points(*facts.lower[facts.drawn])
    marked = {} if facts.decided_at is None else {"fpr": facts.decided_at}
    figures: list[Chart] = [
        charts.trade_off(
            claim,
            lower,
            confidence=facts.config.confidence,
            log=log,
            refuted=facts.refuted,
            **marked,
        )
        for log in (False, True)
    ]
    if _has_scores(facts):
        figures.append(charts.scores(facts.played.in_scores, facts.played.out_scores))
    if beside:
        figures.append(_ladder([facts, *beside]))
    return [*figures, *_belief_figures(facts), *_claim_figures(facts)]


def _has_scores(facts: AuditRecord) -> bool:
    """Whether both worlds have a finite score; else all models of one diverged."""
    worlds = (facts.played.in_scores, facts.played.out_scores)
    return all(bool(np.isfinite(scores).any()) for scores in worlds)


def _ladder(runs: Sequence[AuditRecord]) -> Chart:
    """How far the adversary of each run came, in d′."""
    counts = Counter(run.adversary for run in runs)
    rungs = [
        Rung(
            run.adversary if counts[run.adversary] == 1 else f"{run.adversary} ({run.name})",
            *separation(run.played.in_scores, run.played.out_scores, runs[0].config.confidence),
        )
        for run in runs
        if _has_scores(run)
    ]
    allowed = runs[0].claim.metrics["d_prime"]["value"]
    rungs.sort(key=lambda rung: rung.value)
    limit = math.inf if allowed is None else float(allowed)
    return charts.ladder(rungs, limit, "d′", runs[0].config.confidence)


def _belief_figures(facts: AuditRecord) -> list[Chart]:
    """What the DI adversary came to believe, and how far the record moved each step."""
    played, found = facts.played, facts.identifiability
    if found is None or played.log_ratio is None or played.sensitivity is None:
        return []
    asked = {"prior": found["exceedance"]["prior"], "belief": found["exceedance"]["belief"]}
    return [
        charts.belief(
            played.log_ratio, played.in_world, **asked,
            bound=_bound(facts, asked["prior"]), exceeded=EXCEEDED,
        ),
        charts.belief_distribution(played.log_ratio, played.in_world, **asked),
        charts.sensitivity(
            played.sensitivity, clip_norm=facts.attacked["training"]["clip_norm"],
            adjacency=facts.adjacency,
        ),
    ]  # fmt: skip


def _claim_figures(facts: AuditRecord) -> list[Chart]:
    """What other noise or another length would allow, where the claim is that of a DP-SGD."""
    mechanism = facts.claim.mechanism
    if facts.label is not None or facts.refuted or not isinstance(mechanism, DPSGD):
        return []
    asked = facts.claim.metrics
    about = {"prior": asked["precision"]["prior"], "min_tpr": asked["precision"]["min_tpr"]}
    epsilon = asked["epsilon"]
    limit = math.inf if epsilon["value"] is None else epsilon["value"]
    return [
        charts.risk(mechanism, "noise_multiplier", adjacency=facts.adjacency),
        charts.risk(mechanism, "steps", adjacency=facts.adjacency),
        charts.bayes_security(mechanism, adjacency=facts.adjacency),
        charts.precision(delta=epsilon["delta"], epsilon=limit, **about),
    ]


def _bound(facts: AuditRecord, prior: float) -> list[float] | None:
    """The certified belief after each step, where there is one and it was trained so long."""
    mechanism = facts.claim.mechanism
    if facts.label is not None or facts.refuted or not isinstance(mechanism, DPSGD):
        return None
    bound = belief_bound(mechanism, facts.adjacency, prior, EXCEEDED)
    logs = facts.played.log_ratio
    return bound if logs is not None and len(bound) == logs.shape[1] else None


# The page -----------------------------------------------------------------------------------------


def _template() -> Any:
    import jinja2  # noqa: PLC0415  only a report needs it

    room = files("dprime.show").joinpath("templates")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: room.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("report.html.j2")


def _context(
    facts: AuditRecord, shown: Mapping[str, Any], figures: Sequence[Chart]
) -> dict[str, Any]:
    style = files("dprime.show").joinpath("templates/report.css").read_text(encoding="utf-8")
    return {
        "card": shown,
        "beside": shown["beside"],
        "refuted": facts.refuted,
        "undecided": facts.verdict.outcome == "inconclusive"
        or (facts.crosses and not facts.refuted),
        "reached_by": reached_by(facts),
        "not_dp": facts.label is not None,
        "css": style,
        "date": f"{facts.changed.day} {facts.changed:%B %Y}",
        "how_sure": words.how_sure(facts),
        "picture": _picture(facts),
        "sections": SECTIONS,
        "neighbours": grounds.neighbours(facts),
        "unreliable": " ".join(grounds.unreliable(facts)),
        "profile": facts.claim.profile(),
        "attack_words": words.ATTACKS.get(facts.adversary),
        "seen": f"{SEEN[facts.attacked['sees']].capitalize()}.",
        "some_counted": facts.trials["counted"] != [facts.trials["in"], facts.trials["out"]],
        "trained": trained(facts),
        "decided": words.decided(facts),
        "decider": "The number that decides" if facts.method.decides else "What was to decide",
        "times": f"{1 / EXCEEDED:,.0f}",
        "certainty": words.certainty(facts),
        "identified": _identified(facts),
        "charts": _charts(figures),
        "why_unseen": blind_spots.WHY,
        "cannot_see": blind_spots.cannot_see(engine=facts.attacked["training"] is not None),
        "how": repeat.how(facts),
        "settings": repeat.settings_text(facts),
        "fact": lambda place, way: fact(shown, place, way),
    }


WAYS: Mapping[str, Callable[[Any], str]] = {
    "floor": words.floor,
    "ceiling": words.ceiling,
    "percent": text.percent_up,
    "members": lambda value: words.floor(value, 3),
    "count": lambda value: f"{value:,}",
    "share": lambda value: f"{100 * value:.3g} %",
    "given": lambda value: f"{value:g}",
    "estimate": lambda value: "any number" if value is None else f"{value:.4g}",
}
"""How a number of each kind is printed: floors down, ceilings up."""


def fact(shown: Mapping[str, Any], place: str, way: str) -> tuple[str, str]:
    """A number by its place in the card: its exact value, and how it is printed."""
    value: Any = shown
    for step in place.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return json.dumps(value), WAYS[way](value)


def trained(facts: AuditRecord) -> str:
    """The recipe of the attacked training in a line."""
    recipe = facts.attacked["training"]
    if recipe is None:
        return "a training function of the user's own, of which the audit saw the models only"
    clip = (
        "no clipping" if recipe["clip_norm"] is None else f"clipping norm {recipe['clip_norm']:g}"
    )
    return (
        f"noise multiplier {recipe['noise_multiplier']:.6g}, sampling rate "
        f"{recipe['sample_rate']:.6g}, {recipe['steps']:,} steps, learning rate "
        f"{recipe['learning_rate']:g}, {clip}, noise for {recipe['sensitivity']} sensitivity, sums "
        f"divided by {_divisor(recipe)}"
    )


def _divisor(recipe: Mapping[str, Any]) -> str:
    given = recipe.get("expected_batch_size")
    return "sampling rate times number of records" if given is None else f"{given:g}"


def _identified(facts: AuditRecord) -> list[dict[str, str]]:
    """The rows of Bernau et al.'s numbers: what, where in the card, and how sure."""
    found = facts.identifiability
    if found is None:
        return []
    rows = [_mean_row("Advantage of the adversary's answers", "advantage", found)]
    if found["predicted"] is not None:
        rows.append(_mean_row("Advantage that the local sensitivities predict", "predicted", found))
    share = found["exceedance"]
    rows.append({
        "what": f"Trainings with the record whose belief exceeds {share['belief']:g}, from "
        f"{share['prior']:g} (δ′)",
        "path": "identifiability.exceedance.value",
        "sure": f"{share['low']:.4g} to {share['high']:.4g} at {100 * share['confidence']:g} % "
        f"confidence, {share['trials']:,} trainings",
    })  # fmt: skip
    return rows + [
        {
            "what": f"ε′ {estimate['source']}",
            "path": f"identifiability.epsilons.{name}.value",
            "sure": "a point estimate with no confidence",
        }
        for name, estimate in found["epsilons"].items()
        if estimate is not None
    ]


def _mean_row(what: str, name: str, found: Mapping[str, Any]) -> dict[str, str]:
    sure = f"± {found[name]['standard_error']:.2g} (standard error)"
    return {"what": what, "path": f"identifiability.{name}.value", "sure": sure}


# The small picture --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """One bar of the small picture: its kind, what it is, its length in percent, its number."""

    kind: str
    label: str
    width: float
    shown: str


def _picture(facts: AuditRecord) -> dict[str, Any]:
    """What was reached beside what is allowed, for the eye."""
    found = facts.deciding
    ends = [value for value in (found.reached, found.allowed) if value is not None]
    most = max([*ends, 1e-12])
    room = 1.0 if found.share and most > 0.5 else 1.15 * most
    down, up = (text.percent_down, text.percent_up) if found.share else (words.floor, words.ceiling)

    def bar(kind: str, label: str, value: float | None, shown: str) -> Bar:
        width = 100.0 if value is None else min(100.0, 100 * value / room)
        return Bar(kind, label, round(width, 2), shown)

    who = "This attacker, at least" if facts.method.decides else "A bound that does not count"
    reached = "any number" if found.reached is None else down(found.reached)
    allowed = words.NO_LIMIT if found.allowed is None else up(found.allowed)
    bars = [
        bar("reached", who, found.reached, reached),
        bar("allowed", "Allowed, at most", found.allowed, allowed),
    ]
    if found.name != "curve":
        blind = Reading(found.name, found.conditions).value(BLIND)
        bars.insert(0, bar("blind", "Guessing blindly", blind, up(blind)))
    return {"title": words.picture_title(found), "bars": bars}


# A chart ------------------------------------------------------------------------------------------


AGAIN = "The same on logarithmic axes, for attackers who seldom accuse the wrong one."
"""The heading of a second drawing with the same finding."""


NARROW = 340
"""The width of a drawing for telephones, in pixels."""


def _charts(figures: Sequence[Chart]) -> list[dict[str, Any]]:
    """The figures as the page shows them; no finding is told twice."""
    shown = [_chart(figure) for figure in figures]
    told: set[str] = set()
    for chart in shown:
        chart["heading"] = AGAIN if chart["title"] in told else chart["title"]
        told.add(chart["title"])
    return shown


def _chart(figure: Chart) -> dict[str, Any]:
    """A figure: drawing, text, and its table."""
    rows = figure.table()
    columns = [name for name in rows[0] if any(row.get(name) is not None for row in rows)]
    return {
        "name": figure.name,
        "title": figure.title,
        "text": figure.text,
        "wide": inline_svg(figure),
        "narrow": inline_svg(figure, NARROW),
        "columns": columns,
        "rows": [[_cell(row.get(name)) for name in columns] for row in rows],
    }


def _cell(value: float | str | None) -> str:
    """To the last digit, so that nothing is rounded to the wrong side."""
    return "" if value is None else str(value)
