"""What the page asks, answered: the numbers of a setting, its charts, and chosen parameters.

address ──► RiskRequest ──► curve (kept) ──► metrics, as every command reads them, and its charts
                                 └─────────► the chart of the risk, with advantages over a range
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal, cast

from dprime import text, validate
from dprime.mechanisms import DPSGD, Mechanism
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
from dprime.web.ranges import (
    AHEAD,
    CHOICE,
    CURVE,
    POINT,
    Answers,
    Setting,
    advantage,
    neighbours,
)
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
        self._of_curve = lru_cache(DRAWN)(self._drawn)
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
        chosen = self._answers.of(CHOICE, RiskRequest.chosen, wanted)
        found = getattr(chosen, free)
        return self._answered(
            replace(request, mechanism=chosen, target=()),
            text.command("choose", options),
            charts,
            Chosen(free, found, text.safe_digits(free, found)),
        )

    def _answered(
        self,
        request: RiskRequest,
        command: str,
        charts: Sequence[str],
        chosen: Chosen | None = None,
    ) -> RiskAnswer:
        told = request.mechanism.to_dict(), request.adjacency, request.group_size
        answers = risk_profile(self._curve(_asked(request)), request.readings)
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
            ahead = [each for near in neighbours(_setting(request)) for each in near.over(over)]
            self._answers.ahead(AHEAD, advantage, ahead)
        return drawn

    def read(self, contents: bytes) -> Texts:
        """The setting that a file holds."""
        return self._answers.of(POINT, read_file, contents)

    def _curve(self, asked: tuple[Mechanism, str, int]) -> TradeOff:
        return self._curves.of(CURVE, _curve, asked)[0]

    def _specification(self, name: str, theme: str, compared: bool = False) -> dict[str, Any]:
        """The empty chart of one setting or of two that are compared; it holds for every one."""
        from dprime.show.chart import beside  # noqa: PLC0415  needs an extra

        kind, over = EMPTY[name]
        usual = risk_request({each: str(SLIDERS[each].default) for each in MECHANISM})
        chart = (
            self._risk(usual, over)
            if kind == "risk"
            else _draw(kind, self._curve(_asked(usual)), _shown(kind, usual))
        )
        theme = validate.one_of("theme", theme, THEMES)
        drawn = beside(chart, chart) if compared else chart
        spec = drawn.spec(cast("Theme", theme), empty=True)
        spec.pop("description", None)  # it speaks of one setting
        return spec

    def _rows(
        self, name: str, request: RiskRequest, over: str = "", *, fine: bool = False
    ) -> ChartRows:
        if validate.one_of("charts", name, CHARTS) == "risk":
            return _told(self._risk(request, over, fine=fine))
        return self._of_curve((name, _asked(request), _shown(name, request)))

    def _drawn(self, key: tuple[str, tuple[Mechanism, str, int], tuple[float, ...]]) -> ChartRows:
        name, asked, at = key
        return _told(_draw(name, self._curve(asked), at))

    def _risk(self, request: RiskRequest, over: str, *, fine: bool = False) -> Chart:
        """The advantage over a range of one parameter; a fine one has points close together."""
        from dprime.show.charts import plans  # noqa: PLC0415  needs an extra

        setting = _setting(request)
        curve, seconds = self._curves.of(CURVE, _curve, _asked(request))
        own, begun = curve.advantage(), list[Future[float]]()
        work = POINT._replace(turn=POINT.turn + min(int(seconds / DEAR), 5))

        def read(each: Setting) -> float:
            try:
                return own if each == setting else self._answers.of(work, advantage, each)
            except BusyError:  # nobody waits for the others
                for future in begun:
                    future.cancel()
                raise

        def begin(settings: list[Setting]) -> list[Setting]:
            others = [each for each in settings if each != setting]
            begun.extend(self._answers.begin(work, advantage, others))
            return settings

        drawn = begin(setting.over(over))
        if fine:
            x, y = [float(getattr(each, over)) for each in drawn], [read(each) for each in drawn]
            drawn += begin([
                setting.moved(over, round(value) if over == "steps" else value)
                for value in plans.between(x, y, whole=over == "steps")
            ])  # fmt: skip
        drawn_over = plans.risk(
            cast("DPSGD", request.mechanism),
            cast("Literal['noise_multiplier', 'sample_rate', 'steps']", over),
            adjacency=setting.adjacency,
            values=[getattr(each, over) for each in drawn],
            read=lambda each: read(Setting.of(each, setting.adjacency, setting.group_size)),
        )
        return replace(drawn_over, of=self._curve(_asked(request)).of)  # with the group size


EMPTY = {name: (name, MECHANISM[0]) for name in CHARTS if name != "risk"} | {
    f"risk-{over.replace('_', '-')}": ("risk", over) for over in MECHANISM
}
"""The charts whose empty drawing a page can ask for, with what the risk is drawn over."""

FIRST = ("trade-off", "trade-off-corner", "precision", "risk-noise-multiplier")
"""What the page draws first."""


CONDITIONS_OF = {"precision": ("prior", "min_tpr", "delta")}


def _asked(request: RiskRequest) -> tuple[Mechanism, str, int]:
    return request.mechanism, request.adjacency, request.group_size


def _curve(asked: tuple[Mechanism, str, int]) -> tuple[TradeOff, float]:
    """A curve, and how many seconds of a processor it took."""
    mechanism, adjacency, group_size = asked
    began = time.process_time()
    curve = mechanism.curve(adjacency, group_size=group_size)
    return curve, time.process_time() - began


def _shown(name: str, request: RiskRequest) -> tuple[float, ...]:
    """The conditions that a chart of a curve is read at."""
    at = conditions_of(request.readings)
    return tuple(at[each] for each in CONDITIONS_OF.get(name, ("fpr",)))


def _draw(name: str, curve: TradeOff, at: tuple[float, ...]) -> Chart:
    """A chart of a curve."""
    from dprime.show import charts  # noqa: PLC0415  needs an extra

    if name == "precision":
        return charts.precision(curve, **dict(zip(CONDITIONS_OF[name], at, strict=True)))
    log, corner = name == "trade-off-log", name == "trade-off-corner"
    return charts.trade_off(curve, log=log, corner=corner, fpr=at[0])


def _told(chart: Chart) -> ChartRows:
    """A chart as the page takes it; what a row has not, or needs not, is left out of it."""
    rows = [
        {n: x for n, x in row.items() if x is not None and (n != "side" or row["words"])}
        for row in chart.rows()
    ]
    return ChartRows(chart.name, chart.title, chart.text, chart.of, rows)


def _setting(request: RiskRequest) -> Setting:
    """The setting of a training, over whose parameters a risk can be drawn."""
    if not isinstance(request.mechanism, DPSGD):
        remedy = "leave risk out of charts, or give noise_multiplier, sample_rate and steps"
        raise validate.InputError.of("The chart risk", "be of a training", "it is not", remedy)
    return Setting.of(request.mechanism, request.adjacency, request.group_size)
