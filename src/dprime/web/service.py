"""What the page asks, answered: the numbers of a setting, its charts, and chosen parameters.

address ──► RiskRequest ──► curve (kept) ──► metrics, as every command reads them
                                 └─────────► charts, with advantages over ranges
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, cast

from dprime import text, validate
from dprime.mechanisms import DPSGD
from dprime.metrics import conditions_of, risk_profile
from dprime.option import Texts
from dprime.request import (
    MECHANISM,
    NAMES,
    RiskRequest,
    answer_json,
    choose_options,
    choose_request,
    risk_request,
)
from dprime.web.options import CHARTS, SLIDERS
from dprime.web.ranges import Answers, Setting, advantage, neighbours

if TYPE_CHECKING:
    from dprime.show.chart import Chart
    from dprime.show.theme import Theme

CURVES = 100
"""How many curves are kept, of at most about 1 MB each."""

THEMES = ("light", "dark")


@dataclass(frozen=True)
class Chosen:
    """The parameter that was found; `shown` may be typed in again."""

    name: str
    value: float
    shown: str


@dataclass(frozen=True)
class RiskAnswer:
    """What no attacker can beat; `shown` of each metric is rounded to the safe side."""

    mechanism: dict[str, Any]
    adjacency: str
    group_size: int
    metrics: dict[str, dict[str, Any]]
    described: str
    certified: str
    certified_in_full: str
    command: str
    chosen: Chosen | None


@dataclass(frozen=True)
class ChartRows:
    """The numbers of a chart, with the finding and the text alternative."""

    name: str
    title: str
    text: str
    rows: list[dict[str, Any]]


class ExplorerService:
    """Answers to everything that the page asks of the core.

    >>> texts = {"noise_multiplier": "1.1", "sample_rate": "0.004", "steps": "14000"}
    >>> ExplorerService().risk(texts).metrics["advantage"]["shown"]
    '0.2105'
    """

    def __init__(self, processes: int = 0) -> None:
        self._answers = Answers(processes)
        self._curve = lru_cache(CURVES)(Setting.curve)
        self.specification = lru_cache(self._specification)

    def stop(self) -> None:
        """End the processes."""
        self._answers.stop()

    def prepare(self) -> None:
        """Compute what the page begins with, in light colours."""
        self.charts({name: str(slider.default) for name, slider in SLIDERS.items()}, CHARTS)
        for name in FIRST:
            self.specification(name, THEMES[0])

    def risk(self, texts: Texts) -> RiskAnswer:
        """What `dprime risk` says."""
        given = {name: texts[name] for name in NAMES if name in texts}
        return self._answered(risk_request(texts), text.command("risk", given))

    def choose(self, texts: Texts, target: str, value: str, free: str) -> RiskAnswer:
        """What `dprime choose` says."""
        options = choose_options(texts, target, value, free)
        request = choose_request(options)
        wanted = replace(request, readings=())  # the other conditions change no choice
        chosen = self._answers.of(RiskRequest.chosen, wanted)
        found = getattr(chosen, free)
        return self._answered(
            replace(request, mechanism=chosen, target=()),
            text.command("choose", options),
            Chosen(free, found, text.safe_digits(free, found)),
        )

    def _answered(
        self, request: RiskRequest, command: str, chosen: Chosen | None = None
    ) -> RiskAnswer:
        setting = _setting(request)
        told = request.mechanism.to_dict(), request.adjacency, request.group_size
        answers = risk_profile(self._curve(setting), request.readings)
        found = answer_json(request.mechanism, *told[1:], answers)
        for answer in answers:
            words = {"title": answer.title, "shown": answer.shown(), "sentence": answer.sentence}
            found["metrics"][answer.name] |= words
        return RiskAnswer(
            **found,
            described=text.describe(*told, chosen=None if chosen is None else chosen.name),
            certified=text.certified(*told[1:]),
            certified_in_full=text.certified_in_full(*told),
            command=command,
            chosen=chosen,
        )

    def charts(
        self, texts: Texts, names: Sequence[str], over: str = MECHANISM[0]
    ) -> dict[str, ChartRows]:
        """The charts of a setting; `over` is the parameter that the chart `risk` is drawn over."""
        request = risk_request(texts)
        setting = _setting(request)
        for name in names:
            validate.one_of("charts", name, CHARTS)
        validate.one_of("over", over, MECHANISM)
        if "risk" in names:
            self._answers.begin(advantage, setting.over(over))
        if "bayes-security" in names:
            self._answers.begin(advantage, _both(setting))
        drawn = {name: self._chart(name, request, over) for name in names}
        shown = {name: ChartRows(c.name, c.title, c.text, c.rows()) for name, c in drawn.items()}
        around = neighbours(setting)
        self._answers.ahead(advantage, [s for n in around for s in (*n.over(over), *_both(n))])
        return shown

    def _specification(self, name: str, theme: str) -> dict[str, Any]:
        """The empty chart, which holds for every setting."""
        kind, over = EMPTY[name]
        usual = risk_request({each: str(SLIDERS[each].default) for each in MECHANISM})
        chart = self._chart(kind, usual, over)
        theme = validate.one_of("theme", theme, THEMES)
        spec = chart.spec(cast("Theme", theme), empty=True)
        spec.pop("description", None)  # it speaks of one setting
        return spec

    def _chart(self, name: str, request: RiskRequest, over: str) -> Chart:
        from dprime.show import charts  # noqa: PLC0415  needs an extra

        setting, at = _setting(request), conditions_of(request.readings)
        relation, training = setting.adjacency, request.mechanism
        assert isinstance(training, DPSGD)  # an address describes nothing else
        if name in ("trade-off", "trade-off-log"):
            log = name == "trade-off-log"
            return charts.trade_off(self._curve(setting), log=log, fpr=at["fpr"])
        if name == "precision":
            about = {each: at[each] for each in ("delta", "min_tpr", "prior")}
            epsilon = self._curve(setting).epsilon(at["delta"])
            return charts.precision(**about, epsilon=epsilon)
        if name == "risk":
            return charts.risk(
                training,
                cast("Literal['noise_multiplier', 'sample_rate', 'steps']", over),
                adjacency=relation,
                values=[getattr(each, over) for each in setting.over(over)],
                read=lambda each: self._advantage(each, relation, setting.group_size),
            )
        return charts.bayes_security(
            training,
            adjacency=relation,
            epochs=[each.steps * each.sample_rate for each in setting.course()],
            read=lambda each, other: self._advantage(each, other, setting.group_size),
        )

    def _advantage(self, *setting: Any) -> float:
        return self._answers.of(advantage, Setting.of(*setting))


EMPTY = {name: (name, MECHANISM[0]) for name in CHARTS if name != "risk"} | {
    f"risk-{over.replace('_', '-')}": ("risk", over) for over in MECHANISM
}
"""The charts whose empty drawing a page can ask for, with what the risk is drawn over."""

FIRST = ("trade-off", "risk-noise-multiplier", "precision", "bayes-security")
"""What the page draws first."""


def _setting(request: RiskRequest) -> Setting:
    assert isinstance(request.mechanism, DPSGD)
    return Setting.of(request.mechanism, request.adjacency, request.group_size)


def _both(setting: Setting) -> list[Setting]:
    """The training's course under its own adjacency and under replace."""
    relations = dict.fromkeys((setting.adjacency, "replace"))
    return [each._replace(adjacency=one) for each in setting.course() for one in relations]
