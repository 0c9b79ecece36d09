"""What the page asks, answered: the numbers of a setting, its charts, and chosen parameters.

address ──► RiskRequest ──► curve (kept) ──► metrics, as every command reads them, and its charts
                                 └─────────► the chart of the risk, with advantages over a range
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal, cast

from dprime import text, validate
from dprime.mechanisms import DPSGD
from dprime.metrics import conditions_of, risk_profile
from dprime.option import Texts
from dprime.request import (
    MECHANISM,
    RISK_ADDRESS,
    RiskRequest,
    answer_json,
    choose_options,
    choose_request,
    risk_request,
)
from dprime.web.options import CHARTS, SLIDERS
from dprime.web.ranges import AHEAD, CHOICE, CURVE, POINT, Answers, Setting
from dprime.web.start import read_file
from dprime.web.workers import BusyError, Workers

if TYPE_CHECKING:
    from dprime.curve import TradeOff
    from dprime.show.chart import Chart
    from dprime.show.theme import Theme

CURVES, DRAWN, READ = 40, 100, 30_000
"""How many curves are kept, of at most 3 MB each, charts of curves, of at most 500 KB, and
advantages and choices, of 1 KB.
"""

DEAR = 0.05
"""Seconds of a curve; the points of a range of such curves come after those of others."""

THEMES = ("light", "dark")

EMPTY = {name: (name, MECHANISM[0]) for name in CHARTS if name != "risk"} | {
    f"risk-{over.replace('_', '-')}": ("risk", over) for over in MECHANISM
}
"""The charts whose empty drawing a page can ask for, with what the risk is drawn over."""

FIRST = ("trade-off", "trade-off-corner", "precision", "risk-noise-multiplier")
"""What the page draws first."""

CONDITIONS_OF = {"precision": ("prior", "min_tpr", "delta")}
"""The conditions that charts of a curve are read at, if not at a false-positive rate alone."""


@dataclass(frozen=True)
class Chosen:
    """The parameter that was found; `shown` may be typed in again."""

    name: str
    value: float
    shown: str


@dataclass(frozen=True)
class ChartRows:
    """The numbers of a chart, with the finding and the text alternative."""

    name: str
    title: str
    text: str
    of: str
    rows: list[dict[str, Any]]


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
    charts: dict[str, ChartRows]


class ExplorerService:
    """Answers to everything that the page asks of the core.

    >>> texts = {"noise_multiplier": "1.1", "sample_rate": "0.004", "steps": "14000"}
    >>> ExplorerService().risk(texts).metrics["advantage"]["shown"]
    '0.2105'
    """

    def __init__(self, pool: Workers | None = None) -> None:
        pool = pool or Workers(0)
        self._answers, self._curves = Answers(pool, READ), Answers(pool, CURVES)
        self._of_curve = lru_cache(DRAWN)(self._rows_of_curve)
        self.specification = cache(self._specification)

    def prepare(self) -> None:
        """Compute what the page begins with, in light colours."""
        usual = {name: str(slider.default) for name, slider in SLIDERS.items()}
        with suppress(BusyError):  # the server ends before it has begun
            self.risk(usual, FIRST[:-1])
            self.charts(usual, ["risk"])
            for name in FIRST:
                self.specification(name, THEMES[0])

    def risk(self, texts: Texts, charts: Sequence[str] = ()) -> RiskAnswer:
        """What `dprime risk` says, and charts of the same curve."""
        given = {each.name: texts[each.name] for each in RISK_ADDRESS if each.name in texts}
        return self._answered(risk_request(texts), text.command("risk", given), charts)

    def choose(
        self, texts: Texts, target: str, value: str, free: str, charts: Sequence[str] = ()
    ) -> RiskAnswer:
        """What `dprime choose` says, and charts of what was chosen."""
        options = choose_options(texts, target, value, free)
        request = choose_request(options)
        wanted = replace(request, readings=())  # the other conditions change no choice
        mechanism = self._answers.of(CHOICE, RiskRequest.chosen, wanted)
        found = getattr(mechanism, free)
        chosen = Chosen(free, found, text.safe_digits(free, found))
        request = replace(request, mechanism=mechanism, target=())
        return self._answered(request, text.command("choose", options), charts, chosen)

    def _answered(
        self,
        request: RiskRequest,
        command: str,
        charts: Sequence[str],
        chosen: Chosen | None = None,
    ) -> RiskAnswer:
        told = request.mechanism.to_dict(), request.adjacency, request.group_size
        answers = risk_profile(self._curve(Setting.of(request)), request.readings)
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
            charts={name: self._rows(name, request) for name in charts},
        )

    def charts(
        self, texts: Texts, names: Sequence[str], over: str = MECHANISM[0], *, fine: bool = False
    ) -> dict[str, ChartRows]:
        """The charts of a setting; `over` is the parameter that the chart `risk` is drawn over."""
        request = risk_request(texts)
        validate.one_of("over", over, MECHANISM)
        drawn = {name: self._rows(name, request, over, fine=fine) for name in names}
        if "risk" in names and not fine:
            next_ones = [o for near in Setting.of(request).neighbours() for o in near.over(over)]
            self._answers.ahead(AHEAD, Setting.advantage, next_ones)
        return drawn

    def read(self, contents: bytes) -> Texts:
        """The setting that a file holds."""
        return self._answers.of(POINT, read_file, contents)

    def _curve(self, setting: Setting) -> TradeOff:
        return self._curves.of(CURVE, Setting.timed_curve, setting)[0]

    def _specification(self, name: str, theme: str, compared: bool = False) -> dict[str, Any]:
        """The empty chart of one setting or of two that are compared; it holds for every one."""
        from dprime.show.chart import beside  # noqa: PLC0415  needs an extra

        kind, over = EMPTY[name]
        usual = risk_request({each: str(SLIDERS[each].default) for each in MECHANISM})
        setting = Setting.of(usual)
        is_risk = kind == "risk"
        chart = (
            self._risk(setting, over) if is_risk else self._draw(kind, setting, _at(kind, usual))
        )
        theme = validate.one_of("theme", theme, THEMES)
        drawn = beside(chart, chart) if compared else chart
        spec = drawn.spec(cast("Theme", theme), empty=True)
        spec.pop("description", None)  # it speaks of one setting
        return spec

    def _rows(
        self, name: str, request: RiskRequest, over: str = "", *, fine: bool = False
    ) -> ChartRows:
        setting = Setting.of(request)
        if validate.one_of("charts", name, CHARTS) == "risk":
            return _told(self._risk(setting, over, fine=fine))
        return self._of_curve(name, setting, _at(name, request))

    def _rows_of_curve(self, name: str, setting: Setting, at: tuple[float, ...]) -> ChartRows:
        return _told(self._draw(name, setting, at))

    def _draw(self, name: str, setting: Setting, at: tuple[float, ...]) -> Chart:
        from dprime.show import charts  # noqa: PLC0415  needs an extra

        curve = self._curve(setting)
        if name == "precision":
            return charts.precision(curve, **dict(zip(CONDITIONS_OF[name], at, strict=True)))
        log, corner = name == "trade-off-log", name == "trade-off-corner"
        return charts.trade_off(curve, log=log, corner=corner, fpr=at[0])

    def _risk(self, setting: Setting, over: str, *, fine: bool = False) -> Chart:
        """The advantage over a range of one parameter; a fine one has points close together."""
        from dprime.show.charts import plans  # noqa: PLC0415  needs an extra

        if not isinstance(setting.mechanism, DPSGD):
            remedy = "leave risk out of charts, or give noise_multiplier, sample_rate and steps"
            raise validate.InputError.of("The chart risk", "be of a training", "it is not", remedy)
        curve, seconds = self._curves.of(CURVE, Setting.timed_curve, setting)
        own, begun = curve.advantage(), list[Future[float]]()
        work = POINT._replace(turn=POINT.turn + min(int(seconds / DEAR), 5))

        def read(each: Setting) -> float:
            try:
                return own if each == setting else self._answers.of(work, Setting.advantage, each)
            except BusyError:  # nobody waits for the others
                for future in begun:
                    future.cancel()
                raise

        def begin(settings: list[Setting]) -> list[float]:
            others = [each for each in settings if each != setting]
            begun.extend(self._answers.begin(work, Setting.advantage, others))
            return [getattr(each.mechanism, over) for each in settings]

        drawn = setting.over(over)
        x = begin(drawn)
        if fine:
            y, whole = [read(each) for each in drawn], over == "steps"
            between = plans.between([*map(float, x)], y, whole=whole)
            x += begin([setting.moved(over, round(o) if whole else o) for o in between])
        drawn_over = plans.risk(
            setting.mechanism,
            cast("Literal['noise_multiplier', 'sample_rate', 'steps']", over),
            adjacency=setting.adjacency,
            values=x,
            read=lambda mechanism: read(setting._replace(mechanism=mechanism)),
        )
        return replace(drawn_over, of=curve.of)  # with the group size


def _at(name: str, request: RiskRequest) -> tuple[float, ...]:
    """The conditions that a chart of a curve is read at."""
    at = conditions_of(request.readings)
    return tuple(at[each] for each in CONDITIONS_OF.get(name, ("fpr",)))


def _told(chart: Chart) -> ChartRows:
    """A chart as the page takes it; what a row has not, or needs not, is left out of it."""
    rows = [
        {n: x for n, x in row.items() if x is not None and (n != "side" or row["words"])}
        for row in chart.rows()
    ]
    return ChartRows(chart.name, chart.title, chart.text, chart.of, rows)
