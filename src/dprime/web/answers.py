"""Certified answers for the page: every curve and every chosen parameter computed once and kept.

question ──► sweeps begin in processes beside the server
         ──► curve (kept) ──► metrics, as every command reads them
         ──► figures, from the curve and the sweeps
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from dprime import text, validate
from dprime.curve import TradeOff
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
from dprime.shapes import Polygon
from dprime.web.cache import Cache
from dprime.web.options import FIGURES, GOALS, OVER, SLIDERS, SPECIFIED
from dprime.web.sweeps import Point, Ranges, Sweeps, beside, neighbours
from dprime.web.warm import Warmer, Work
from dprime.web.workers import Workers

if TYPE_CHECKING:
    from dprime.show.chart import Chart
    from dprime.show.theme import Theme

CURVES_BYTES = 80_000_000
"""What the kept curves may weigh together."""

ARRAYS = 8
"""How many arrays a half of a curve keeps: three of its own, the others made when it is read."""

THEMES = ("light", "dark")

FIGURES_KEPT = 200
"""How many figures are kept, of about 150 KB each."""

PATIENCE = 20.0
"""Seconds to wait for the processes to wake; then the server does without them until they do."""

CHOICES = 20_000
"""How many chosen mechanisms are kept."""


def weight(curve: TradeOff) -> int:
    """Bytes of a curve, about, once every metric has been read off it."""
    shape = curve.shape
    if not isinstance(shape, Polygon):
        return 1_000
    return 1_000 + ARRAYS * (shape.left.rise.nbytes + shape.right.rise.nbytes)


class Answers:
    """Answers to everything that the page asks, cached.

    >>> texts = {"noise_multiplier": "1.1", "sample_rate": "0.004", "steps": "14000"}
    >>> found = Answers().risk(texts)
    >>> found["answers"][0]["name"], found["answers"][0]["shown"]
    ('advantage', '0.2105')
    """

    def __init__(self, workers: int = 0) -> None:
        self.workers = Workers(workers)
        self.sweeps = Sweeps(self.workers)
        self._warmer = Warmer()
        self._curves = Cache[Point, TradeOff](CURVES_BYTES, weight)
        self._choices = Cache[RiskRequest, DPSGD](CHOICES)
        self._figures = Cache[tuple[object, ...], dict[str, Any]](FIGURES_KEPT)
        self._drawings = Cache[tuple[str, str], dict[str, Any]](100)

    def start(self) -> None:
        """Start the processes, and make ready what the first page will ask for."""
        self.workers.start()
        if self.workers.count:
            self._warmer.start()
            self._warmer.turn_to(self._first())

    def wait(self) -> None:
        """Until the processes are awake: before that, answers would hold each other up."""
        self.workers.wait(PATIENCE)

    def stop(self) -> None:
        """End the processes."""
        self._warmer.stop()
        self.workers.stop()

    def risk(
        self, texts: Texts, *, over: str = "noise_multiplier", figures: Sequence[str] = ()
    ) -> dict[str, Any]:
        """What `dprime risk` says, with the figures that are asked for."""
        question = risk_request(texts)
        with self._warmer.answering():
            found = self._answer(question, over, figures)
        self._warmer.turn_to(self._around(_point(question), over))
        given = {name: texts[name] for name in NAMES if name in texts}
        return {**found, "command": text.command("risk", given)}

    def choose(
        self,
        texts: Texts,
        target: str,
        value: str,
        free: str,
        *,
        over: str = "noise_multiplier",
        figures: Sequence[str] = (),
    ) -> dict[str, Any]:
        """What `dprime choose` says, with the figures that are asked for."""
        options = choose_options(texts, target, value, free)
        question = choose_request(options)
        with self._warmer.answering():
            chosen = self._chosen(question)
            found = self._answer(
                replace(question, mechanism=chosen, target=()), over, figures, free=free
            )
        self._warmer.turn_to(self._around_choice(texts, target, value, free, over))
        number = getattr(chosen, free)
        return {
            **found,
            "chosen": {"name": free, "value": number, "shown": text.safe_digits(free, number)},
            "command": text.command("choose", options),
        }

    def _chosen(self, question: RiskRequest) -> DPSGD:
        wanted = replace(question, readings=())  # the other conditions change no choice
        return self._choices.get(wanted, lambda: self.workers.call(RiskRequest.chosen, wanted))

    def _first(self) -> Work:
        """What the page begins with, its drawings, and its neighbours."""
        self.wait()
        for name in FIGURES:
            self._answer(_usual(), OVER[0], [name])
            yield
        for theme in THEMES:
            for name in SPECIFIED:
                self.specification(name, theme)
                yield
        yield from self._around(_point(_usual()), OVER[0])

    def _around(self, point: Point, over: str) -> Work:
        """What the figures of a setting and of its neighbours read."""
        for each in (point, *neighbours(point)):
            yield from self._prepared(each, over)

    def _prepared(self, point: Point, over: str) -> Work:
        """What the figures of a setting read."""
        ranges = self.sweeps.ranges(point, over)
        yield from self.sweeps.prepare([*ranges.course, *ranges.risk])

    def _around_choice(self, texts: Texts, target: str, value: str, free: str, over: str) -> Work:
        """The choices for the targets beside this one, and what their figures read."""
        for other in beside(GOALS[target].positions, validate.parse(target, value)):
            question = choose_request(choose_options(texts, target, str(other), free))
            point = _point(replace(question, mechanism=self._chosen(question)))
            yield
            yield from self._prepared(point, over)

    def curve(self, point: Point) -> TradeOff:
        """The certified curve of a setting."""
        return self._curves.get(point, point.curve)

    def _answer(
        self, question: RiskRequest, over: str, figures: Sequence[str], *, free: str | None = None
    ) -> dict[str, Any]:
        """The certified numbers, and the figures."""
        names = [validate.one_of("figures", name, FIGURES) for name in figures]
        validate.one_of("over", over, OVER)
        point = _point(question)
        ranges = self._ranges(point, over, names)
        answers = risk_profile(self.curve(point), question.readings)
        setting = (question.mechanism, question.adjacency, question.group_size)
        return {
            **answer_json(*setting, answers),
            "answers": [
                {
                    "name": answer.name,
                    "title": answer.title,
                    "shown": answer.shown(),
                    "value": answer.as_json()["value"],
                    "kind": answer.kind,
                    "sentence": answer.sentence,
                }
                for answer in answers
            ],
            "described": text.describe(
                point.mechanism.to_dict(), point.adjacency, point.group_size, chosen=free
            ),
            "certified": text.certified(point.adjacency, point.group_size),
            "certified_in_full": text.certified_in_full(
                point.mechanism.to_dict(), point.adjacency, point.group_size
            ),
            "figures": {name: self._shown(name, question, ranges) for name in names},
        }

    def _ranges(self, point: Point, over: str, names: Sequence[str]) -> Ranges:
        """What the figures look at; the processes begin with what is not known of it."""
        ranges = self.sweeps.ranges(point, over, crowded=self._warmer.crowded)
        if "risk" in names:
            self.sweeps.ask(ranges.risk)
        if "bayes-security" in names:
            self.sweeps.ask(ranges.course)
        return ranges

    def _shown(self, name: str, question: RiskRequest, ranges: Ranges) -> dict[str, Any]:
        """A figure's words and numbers; made again only when something moves that it shows."""
        at = conditions_of(question.readings)
        shows: dict[str, tuple[object, ...]] = {
            "trade-off": (ranges.point, at["fpr"]),
            "trade-off-log": (ranges.point, at["fpr"]),
            "risk": (ranges.point, ranges.over, *ranges.values),
            "precision": (ranges.point, at["prior"], at["delta"], at["min_tpr"]),
            "bayes-security": (ranges.point, *ranges.lengths),
        }
        made = self._figures.get
        return made((name, *shows[name]), lambda: _plain(self.figure(name, question, ranges)))

    def figure(self, name: str, question: RiskRequest, ranges: Ranges) -> Chart:
        """A figure of the setting; only what is not yet known is computed."""
        make: dict[str, Callable[[RiskRequest, Ranges], Chart]] = {
            "trade-off": self._trade_off,
            "trade-off-log": self._trade_off_log,
            "risk": self._risk,
            "precision": self._precision,
            "bayes-security": self._bayes_security,
        }
        return make[name](question, ranges)

    def specification(self, name: str, theme: str) -> dict[str, Any]:
        """The empty drawing of a figure, which holds for every setting."""
        return self._drawings.get((name, theme), lambda: self._drawn(name, theme))

    def _drawn(self, name: str, theme: str) -> dict[str, Any]:
        figure, _, over = name.partition("risk-")
        kind = "risk" if over else figure
        point = _point(_usual())
        ranges = self.sweeps.ranges(point, over.replace("-", "_") or OVER[0])
        made = self.figure(kind, _usual(), ranges)
        return made.spec(cast("Theme", validate.one_of("theme", theme, THEMES)), empty=True)

    def _trade_off(self, question: RiskRequest, _: Ranges, *, log: bool = False) -> Chart:
        from dprime.show.charts import trade_off  # noqa: PLC0415  only a page with charts needs it

        curve = self.curve(_point(question))
        return trade_off(curve, log=log, fpr=conditions_of(question.readings)["fpr"])

    def _trade_off_log(self, question: RiskRequest, ranges: Ranges) -> Chart:
        return self._trade_off(question, ranges, log=True)

    def _risk(self, question: RiskRequest, ranges: Ranges) -> Chart:
        from dprime.show.charts import risk  # noqa: PLC0415

        return risk(
            question.mechanism,
            cast("Literal['noise_multiplier', 'sample_rate', 'steps']", ranges.over),
            adjacency=question.adjacency,
            values=ranges.values,
            read=lambda each: self.sweeps.advantage(replace(ranges.point, mechanism=each)),
        )

    def _precision(self, question: RiskRequest, _: Ranges) -> Chart:
        from dprime.show.charts import precision  # noqa: PLC0415

        at = conditions_of(question.readings)
        return precision(
            delta=at["delta"],
            min_tpr=at["min_tpr"],
            prior=at["prior"],
            epsilon=self.curve(_point(question)).epsilon(at["delta"]),
        )

    def _bayes_security(self, question: RiskRequest, ranges: Ranges) -> Chart:
        from dprime.show.charts import bayes_security  # noqa: PLC0415

        mechanism = question.mechanism
        rate, size = mechanism.sample_rate, question.group_size
        assert rate is not None
        return bayes_security(
            mechanism,
            adjacency=question.adjacency,
            epochs=[count * rate for count in ranges.lengths],
            read=lambda each, relation: self.sweeps.advantage(Point(each, relation, size)),
        )


def _usual() -> RiskRequest:
    """The setting that the page begins with."""
    return risk_request({name: str(SLIDERS[name].default) for name in MECHANISM})


def _point(question: RiskRequest) -> Point:
    return Point(question.mechanism, question.adjacency, question.group_size)


def _plain(figure: Chart) -> dict[str, Any]:
    return {
        "name": figure.name,
        "title": figure.title,
        "text": figure.text,
        "rows": figure.rows(),
    }
