"""What every chart keeps, whoever made it; drawings of three that differ most."""

import json
import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import altair
import numpy as np
import pytest
import vl_convert

from dprime.curve import TradeOff
from dprime.show import charts, theme, vega
from dprime.show.chart import Chart, beside, wrapped
from dprime.show.series import Axis, Series
from dprime.show.theme import THEMES
from dprime.show.vega import SIDES, TABLE
from show.examples import EXAMPLES, TRAINING, drawn
from told import refuses

LINE = Series("line", theme.CERTIFIED, (0.0, 1.0), (0.5, 1.0))

every_chart = pytest.mark.parametrize("chart", EXAMPLES.values(), ids=EXAMPLES)
specimens = pytest.mark.parametrize(
    "chart", [EXAMPLES[name] for name in ("trade-off", "ladder", "precision-over-prior")]
)
every_theme = pytest.mark.parametrize("name", THEMES)


def chart_of(*series, **options):
    return Chart("a", "A finding.", "A chart.", Axis("x", "x"), Axis("y", "y"), series, **options)


def test_every_function_has_an_example():
    names = {name.replace("-", "_") for name in EXAMPLES}
    for make in charts.CHARTS:
        assert any(name.startswith(make.__name__) for name in names), make


@every_chart
def test_title_and_text_are_sentences(chart):
    for said in (chart.title, chart.text):
        assert said.endswith(".")
        assert not re.search(r"nan|inf\b|None|\de-\d", said), said
    assert "\n" not in chart.title
    assert len(chart.title) < 160
    assert "Across" in chart.text


@every_chart
def test_rows_are_one_table_of_finite_numbers_and_words(chart):
    rows = chart.rows()
    assert rows
    for row in rows:
        assert list(row) == list(rows[0])
        assert row["series"]
        for value in row.values():
            assert value is None or isinstance(value, str | int | float)
            assert not isinstance(value, np.generic | bool)
            assert not isinstance(value, float) or math.isfinite(value)
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert chart.table()
    assert all({"words", "side"}.isdisjoint(row) for row in chart.table())


@every_chart
def test_a_specification_is_valid_leads_nowhere_and_draws_every_series(chart):
    spec = chart.spec()
    kind = altair.FacetChart if "facet" in spec else altair.LayerChart
    kind.from_dict(spec, validate=True)
    assert "://" not in json.dumps(spec)
    assert spec["datasets"] == {TABLE: chart.rows()}
    assert " ".join(spec["title"]["text"]).replace("\u00a0", " ") == chart.title
    assert spec["description"] == chart.text
    steps = [step for layer in layers_of(spec) for step in layer["transform"]]
    tests = " ".join(step.get("filter", "") for step in steps)
    named = set(re.findall(r'datum\.series === "([^"]+)"', tests))
    words = {each.name for each in chart.series if each.kind == "words"}
    assert named | words == {each.name for each in chart.series}


def layers_of(spec):
    return spec.get("spec", spec)["layer"]


def expressions(part):
    if isinstance(part, dict):
        for key, value in part.items():
            if key in ("filter", "expr", "labelExpr") and isinstance(value, str):
                yield value
            yield from expressions(value)
    elif isinstance(part, list):
        for value in part:
            yield from expressions(value)


@every_chart
def test_expressions_call_only_what_a_page_without_eval_can_run(chart):
    for expression in expressions(chart.spec()):
        plain = re.sub(r'"[^"]*"', "", expression)
        assert set(re.findall(r"([A-Za-z_]+)\(", plain)) <= {"isValid", "replace"}
        assert not re.search(r"[;`]|=>|function|(?<![=!<>])=(?!=)", plain)


@specimens
@every_theme
def test_drawn_without_a_browser(chart, name, tmp_path):
    drawing = ElementTree.fromstring(chart.svg(name))
    assert drawing.tag.endswith("svg")
    assert drawing.attrib["role"] == "img"
    assert [part.text for part in list(drawing)[:2]] == [chart.title, chart.text]
    written = "".join(drawing.itertext())
    keys = {each.name for each in chart.series if each.key}
    panels = {each.panel for each in chart.series}
    words = {word for each in chart.series for word in each.words or ()}
    assert all(said in written for said in keys | panels | words)
    assert chart.save(tmp_path / "chart.png", name).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@specimens
@pytest.mark.parametrize("width", [640, 340])
def test_a_drawing_is_no_wider_than_a_report_or_a_telephone(chart, width):
    spec = chart.spec(width=width)
    spec.pop("title")
    drawing = ElementTree.fromstring(vl_convert.vegalite_to_svg(spec))
    assert 0.85 * width <= float(drawing.attrib["width"]) <= 1.06 * width


OTHER = replace(TRAINING, steps=50)
PAIRS = [
    *(
        (
            charts.trade_off(TRAINING.curve(), **view),
            charts.trade_off(OTHER.curve(), fpr=1e-6, **view),
        )
        for view in ({}, {"log": True}, {"corner": True})
    ),
    *((charts.risk(TRAINING, over), charts.risk(OTHER, over)) for over in charts.plans.OVER),
    (charts.precision(TRAINING.curve()), charts.precision(OTHER.curve(), prior=0.7)),
    (charts.bayes_security(TRAINING), charts.bayes_security(OTHER, adjacency="replace")),
]


@pytest.mark.parametrize(("one", "another"), PAIRS)
def test_an_empty_specification_is_for_every_setting(one, another):
    """A page takes it once, and puts in the rows of other settings."""
    for name in THEMES:
        spec = one.spec(name, empty=True)
        assert spec == another.spec(name, empty=True)
        assert (spec["datasets"], spec["width"]) == ({TABLE: []}, "container")
        assert not {"title", "description"} & {*spec}
    assert {*one.rows()[0]} == {*another.rows()[0]}


def test_a_key_names_several_series_in_their_order_and_one_needs_none():
    other = replace(LINE, name="other", pencil=theme.OBSERVED)
    assert not key_of(chart_of(LINE, replace(other, key=False)))
    (key,) = key_of(chart_of(other, LINE))
    assert key["stroke"]["scale"]["domain"] == ["other", "line"]
    assert key["strokeDash"]["scale"]["range"] == [[7, 4], [1, 0]]


def key_of(chart):
    return [layer["encoding"] for layer in layers_of(chart.spec()) if "shape" in layer["encoding"]]


def test_the_first_series_stands_in_front_whatever_its_name():
    quoted = replace(LINE, name='a "b" \\ c')
    chart = chart_of(LINE, quoted, replace(LINE, name="nothing", x=(), y=()))
    filters = [layer["transform"][0]["filter"] for layer in layers_of(chart.spec())]
    assert filters[1:3] == ['datum.series === "a \\"b\\" \\\\ c"', 'datum.series === "line"']
    drawing = chart.svg()
    assert 'a "b" \\ c' in "".join(ElementTree.fromstring(drawing).itertext())
    assert drawing.count("<path") > 4
    assert "NaN" not in drawing


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (3, 3), (4, 2), (5, 3), (8, 3)])
def test_panels_stand_side_by_side_as_far_as_there_is_room(count, columns):
    chart = chart_of(*(replace(LINE, panel=f"ε = {place}") for place in range(count)))
    assert chart.spec()["columns"] == columns
    assert chart.spec(width=340)["columns"] == min(columns, 2)


def test_intervals_are_areas_along_lines_and_bars_at_points():
    line = replace(LINE, low=(0.4, 0.9), high=(0.6, 1.0))
    kinds = [layer["mark"]["type"] for layer in layers_of(chart_of(line).spec())]
    assert kinds == ["area", "line"]
    points = replace(line, kind="points")
    kinds = [layer["mark"]["type"] for layer in layers_of(chart_of(points).spec())]
    assert kinds == ["rule", "point"]


def test_the_text_reads_numbers_rounded_to_the_side_they_say():
    line = replace(LINE, y=(0.12341, 0.5), low=(-0.12341, 0.4), high=(0.2, 0.55559))
    told = {side: chart_of(replace(line, says=side)).text for side in ("at most", "at least")}
    assert told["at most"].startswith(
        "A chart. Line: 0: at most 0.1235 (-0.1235 to 0.2); 1: at most 0.5 (0.4 to 0.5556)."
    )
    assert "0: at least 0.1234 (-0.1235" in told["at least"]
    shares = replace(chart_of(replace(line, says="about")), y=Axis("y", "y", percent=True))
    assert "0: about 12.34 % (-12.35 % to 20 %)" in shares.text


def test_saved_by_the_ending_of_the_name_and_shown_in_a_notebook(tmp_path):
    chart = chart_of(LINE)
    assert chart.save(tmp_path / "a.svg").read_text().startswith("<svg")
    assert json.loads(chart.save(str(tmp_path / "a.json")).read_text()) == chart.spec()
    bundle = chart._repr_mimebundle_()  # in a notebook
    assert bundle["image/svg+xml"].startswith("<svg")
    assert "A finding." in bundle["text/plain"]


@specimens
def test_a_drawing_for_both_themes_has_each_colour_of_the_light_one_in_dark(chart):
    drawing = vega.in_both_themes(chart.svg())
    ElementTree.fromstring(drawing)
    rules = dict(re.findall(r'\[((?:fill|stroke)="#\w+)"\]\{\w+:(#\w+)\}', drawing))
    light, dark = theme.COLOURS["light"], theme.COLOURS["dark"]
    for part, name in (("stroke", "grid"), ("fill", "ink"), ("fill", "muted"), ("fill", "paper")):
        assert rules[f'{part}="{light[name]}'] == dark[name]
    assert "@media screen and (prefers-color-scheme:dark)" in drawing


def test_a_curve_goes_through_the_outer_corners_of_its_steps():
    """Drawn by Vega, and read off the drawing: nowhere on the wrong side of a point."""
    heights = {"before": (0.1, 0.4, 1.0), "after": (1.0, 0.4, 0.1)}
    for step, y in heights.items():
        line = Series("line", theme.CERTIFIED, (0.0, 0.5, 1.0), y, "curve", step=step)
        axes = (Axis(name, name, domain=(0.0, 1.0)) for name in "xy")
        found = ElementTree.fromstring(Chart("a", "A.", "A.", *axes, (line,)).svg())
        paths = [each.attrib.get("d", "") for each in found.iter() if each.tag.endswith("path")]
        (path,) = [path for path in paths if len(re.findall("[ML]", path)) == 3]
        points = [tuple(map(float, p.split(","))) for p in re.split("[ML]", path)[1:]]
        highest, lowest = min(y for _, y in points), max(y for _, y in points)
        across = [1.0 - (place - highest) / (lowest - highest) for _, place in points]
        expected = (0.4, 1.0, 1.0) if step == "before" else (1.0, 1.0, 0.4)
        assert across == pytest.approx([(e - 0.4) / 0.6 for e in expected], abs=1e-6)


def test_two_charts_are_drawn_on_the_same_axes():
    first, second = (charts.trade_off(TradeOff.gaussian(mu)) for mu in (0.5, 1.0))
    both = beside(first, second)
    assert (both.x, both.y) == (first.x, first.y)
    own = [f"{label}: {name}" for label in "AB" for name in ("this rate", "certified limit")]
    assert [*drawn(both)] == [*own, "guessing"]
    lines = drawn(both)
    assert lines["B: certified limit"].y == second.series[-2].y
    assert len({lines[f"{label}: certified limit"].pencil.dash for label in "AB"}) == 2
    assert both.title == f"A: {first.title} B: {second.title}"


def test_a_number_keeps_its_unit_when_a_title_is_wrapped():
    for line in wrapped("Nobody finds more than 4 % of all members. " * 5):
        assert not line.startswith("%")
        assert len(line) <= 66


def test_every_side_of_a_point_says_where_words_stand():
    for side, (align, *_) in SIDES.items():
        assert ("left" in side) == (align == "right")
        assert ("right" in side or side == "corner") == (align == "left")
    every = (each.side for chart in EXAMPLES.values() for each in chart.series)
    assert {side for side in every if isinstance(side, str)} <= {*SIDES}


test_refused = refuses({
    "series line be columns of one length": lambda: replace(LINE, low=(0.1,)),
    "series line be ascending": lambda: replace(LINE, low=(0.6, 0.6), high=(1.0, 1.0)),
    "series line be asc": lambda: replace(LINE, y=(0.5, math.nan)),
    "theme be one of light, dark": lambda: chart_of(LINE).spec("blue"),
    "path be the name of a picture": lambda: chart_of(LINE).save("a.gif"),
})  # fmt: skip


def test_without_the_drawing_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("dprime.show.needs.find_spec", lambda name: None)
    message = r"dprime\[show\] must be installed for a drawing, but it is without vl_convert"
    for draw in (chart_of(LINE).svg, chart_of(LINE).png):
        with pytest.raises(ValueError, match=message):
            draw()
