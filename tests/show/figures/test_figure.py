"""The contract of all figures, run against an example of each."""

import json
import math
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields
from xml.etree import ElementTree

import numpy as np
import pytest

import dprime
from dprime.curve import LowerCurve
from dprime.shapes import GaussianShape
from dprime.show.figures import (
    FIGURES,
    AccuracyFigure,
    AccuracyPoint,
    BayesSecurityFigure,
    BeliefDistributionFigure,
    BeliefFigure,
    Figure,
    FrontierFigure,
    FrontierPoint,
    FrontierSeries,
    ImprovementFigure,
    ImprovementPoint,
    LadderFigure,
    MembershipRocFigure,
    Points,
    PrecisionFigure,
    PrecisionLine,
    PrecisionOverPriorFigure,
    PrecisionPoint,
    RiskFigure,
    RocCurve,
    Rung,
    ScoresFigure,
    SecurityFigure,
    SecurityLine,
    SensitivityFigure,
    TradeOffFigure,
    belief_bound,
)
from dprime.show.figures.figure import LABEL, OUTLINE, TABLE, wrapped
from dprime.show.look import THEMES

TRAINING = dprime.DPSGD(noise_multiplier=1.1, sample_rate=0.01, steps=500)
FULL_BATCH = dprime.DPSGD(noise_multiplier=8.0, sample_rate=1.0, steps=12)


def walks(trials=60, steps=12, mu=0.125, seed=1):
    """Log ratios [trial, step] of Gaussian steps, and the worlds."""
    rng = np.random.default_rng(seed)
    in_world = np.arange(trials) % 2 == 0
    drift = np.where(in_world, mu**2 / 2, -(mu**2) / 2)[:, None]
    return (drift + mu * rng.normal(size=(trials, steps))).cumsum(axis=1), in_world


def membership(claim):
    """Figures of membership inference."""
    rates = (0.001, 0.01, 0.1, 1.0)
    curve = RocCurve(
        "LiRA", rates, (0.0, 0.02, 0.15, 1.0), (0.0, 0.01, 0.12, 1.0), (0.1,) * 2 + (1.0,) * 2
    )
    point = PrecisionPoint(0.5, 0.6, 0.55, 0.65, certified=0.73, shuffled=0.55)
    return [
        MembershipRocFigure((curve,), Points.of(claim), "Digits, ε = 3"),
        PrecisionOverPriorFigure((PrecisionLine("ε = 3", (point,)),) * 5, "LiRA", "digits"),
        ImprovementFigure(
            (ImprovementPoint(0.5, 0.05, 0.03, 0.07, 0.04, 0.03, 0.05),), "LiRA", "digits"
        ),
        FrontierFigure(
            (
                FrontierSeries(
                    0.9,
                    (
                        FrontierPoint(0.1, 0.9, 0.88, 0.92, 3.0, 0.8),
                        FrontierPoint(0.9, 0.6, None, None, math.inf),
                    ),
                ),
            ),
            "digits",
        ),
    ]


def examples():
    logs, in_world = walks()
    lower = LowerCurve(GaussianShape(0.1), confidence=0.95, method="band")
    claim = TRAINING.curve()
    bound = belief_bound(FULL_BATCH, "add-remove", 0.5)
    figures = [
        TradeOffFigure.of(claim, lower),
        TradeOffFigure.of(claim, lower, log=True),
        *(RiskFigure.of(TRAINING, over) for over in ("noise_multiplier", "sample_rate", "steps")),
        PrecisionFigure.of(epsilon=claim.epsilon(1e-5)),
        BayesSecurityFigure.of(TRAINING, attribute=[(2.0, 0.97)]),
        BeliefFigure.of(logs, in_world, bound=bound),
        BeliefDistributionFigure.of(logs, in_world),
        SensitivityFigure.of(np.full((5, 12), 0.5), clip_norm=1.0, adjacency="replace"),
        ScoresFigure.of(logs[in_world, -1], logs[~in_world, -1]),
        LadderFigure((Rung("api-access", 0.0, 0.1, 0.2),), 0.7, "d′", 0.95),
        AccuracyFigure((AccuracyPoint("noise 1", 0.2, 0.9, 0.88, 0.92),), "membership advantage"),
        *membership(claim),
        SecurityFigure(
            (
                SecurityLine("membership", "certified", ((1.0, 0.95), (2.0, 0.9))),
                SecurityLine("age", "estimate", ((1.0, 0.99), (2.0, 0.98))),
            ),
            "Adult",
        ),
    ]
    return {figure.name: figure for figure in figures}


EXAMPLES = examples()

every_figure = pytest.mark.parametrize("figure", EXAMPLES.values(), ids=EXAMPLES.keys())
every_theme = pytest.mark.parametrize("theme", THEMES)


def test_every_name_has_its_figure():
    assert set(EXAMPLES) == set(FIGURES)
    for name, figure in EXAMPLES.items():
        assert type(figure) is FIGURES[name]


@every_figure
def test_a_figure_is_a_final_frozen_dataclass(figure):
    assert type(figure).__mro__[1] is Figure
    with pytest.raises(FrozenInstanceError):
        setattr(figure, fields(figure)[0].name, None)


@every_figure
def test_title_and_text_are_sentences(figure):
    for said in (figure.title, figure.text):
        assert said.endswith(".")
        assert not re.search(r"nan|inf\b|None|\de-\d", said), said
    assert "\n" not in figure.title
    assert len(figure.title) < 160
    assert "Across" in figure.text


@every_figure
def test_rows_are_one_table_of_finite_numbers_and_words(figure):
    rows = figure.rows()
    assert rows
    for row in rows:
        assert list(row) == list(rows[0])
        assert row["layer"]
        for value in row.values():
            assert value is None or isinstance(value, str | int | float)
            assert not isinstance(value, np.generic | bool)
            assert not isinstance(value, float) or math.isfinite(value)
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


@every_figure
def test_a_label_stands_in_label_rows_only(figure):
    for row in figure.rows():
        assert (row["label"] is not None) == str(row["layer"]).startswith(LABEL)


@every_figure
def test_a_table_has_the_numbers_without_the_words(figure):
    kept = figure.table()
    assert kept
    layers = {row["layer"] for row in figure.rows()}
    assert {row["layer"] for row in kept} == {
        layer for layer in layers if not layer.startswith((LABEL, OUTLINE))
    }
    assert all(LABEL not in row for row in kept)


def parts_of(spec):
    """Every mapping in a specification."""
    if isinstance(spec, dict):
        yield spec
        for value in spec.values():
            yield from parts_of(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from parts_of(value)


@every_figure
def test_every_layer_of_the_table_is_drawn_and_every_drawn_one_is_meant(figure):
    spec = figure.spec()
    tests = [step["filter"] for layer in spec["layer"] for step in layer["transform"]]
    exact = set(re.findall(r"datum\.layer === '([^']+)'", " ".join(tests)))
    begun = re.findall(r"indexof\(datum\.layer, '([^']+)'\) === 0", " ".join(tests))
    begun = [start for start in begun if start != LABEL]
    for row in figure.rows():
        layer = row["layer"]
        drawn_as_outline = layer in ("certified", "without") and OUTLINE in exact
        assert layer in exact or layer.startswith(tuple(begun)) or drawn_as_outline, layer


@every_figure
@every_theme
def test_a_specification_is_valid_and_leads_nowhere(figure, theme):
    import altair as alt

    spec = figure.spec(theme)
    alt.LayerChart.from_dict(spec, validate=True)
    assert "://" not in json.dumps(spec)
    assert spec["datasets"] == {TABLE: figure.rows()}
    assert spec["data"] == {"name": TABLE}
    assert all(part.get("url") is None for part in parts_of(spec))
    assert " ".join(spec["title"]).replace("\u00a0", " ") == figure.title
    assert spec["description"] == figure.text


@every_figure
@every_theme
def test_an_empty_specification_speaks_of_no_setting(figure, theme):
    spec = figure.spec(theme, empty=True)
    assert spec["datasets"] == {TABLE: []}
    assert "title" not in spec
    assert "description" not in spec
    assert spec["width"] == "container"


@every_figure
def test_colours_come_from_the_theme_alone(figure):
    specs = [figure.spec(theme) for theme in THEMES]
    for spec in specs:
        for key in ("config", "background"):
            spec.pop(key)
    assert specs[0] == specs[1]
    assert not re.search(r'"#[0-9a-f]{3,8}"', json.dumps(specs[0]))


@every_figure
def test_every_style_that_a_mark_names_is_in_the_theme(figure):
    spec = figure.spec()
    named = {layer["mark"]["style"] for layer in spec["layer"]}
    assert named - {"map"} <= set(spec["config"]["style"])


def expressions(spec):
    for part in parts_of(spec):
        for key in ("filter", "expr", "labelExpr"):
            if isinstance(part.get(key), str):
                yield part[key]


@every_figure
def test_expressions_call_only_what_a_page_without_eval_can_run(figure):
    plain = {
        "indexof", "split", "format", "round", "pow", "floor", "log", "length", "data", "extent",
        "pluck",
    }  # fmt: skip
    for expression in expressions(figure.spec()):
        assert set(re.findall(r"([A-Za-z_]+)\(", expression)) <= plain, expression
        assert not re.search(r"[;`]|=>|function|(?<![=!<>])=(?!=)", expression)


@every_figure
@every_theme
def test_drawn_without_a_browser(figure, theme, tmp_path):
    drawing = ElementTree.fromstring(figure.svg(theme))
    assert drawing.tag.endswith("svg")
    assert drawing.attrib["role"] == "img"
    assert [part.text for part in list(drawing)[:2]] == [figure.title, figure.text]
    written = "".join(drawing.itertext())
    for row in figure.rows():
        assert row["label"] is None or row["label"] in written
    assert figure.save(tmp_path / "figure.png", theme).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@every_figure
def test_a_drawing_is_as_wide_as_a_report_and_stays_so_on_a_phone(figure):
    import vl_convert

    for width in (640, 320):
        spec = figure.spec() | {"width": width}
        spec.pop("title")
        drawing = ElementTree.fromstring(vl_convert.vegalite_to_svg(spec))
        assert float(drawing.attrib["width"]) == width


def test_saved_by_the_ending_of_the_name(tmp_path):
    figure = EXAMPLES["ladder"]
    assert figure.save(tmp_path / "a.svg").read_text().startswith("<svg")
    assert json.loads(figure.save(str(tmp_path / "a.json")).read_text()) == figure.spec()
    with pytest.raises(ValueError, match=r"path must be the name of a picture, but it is 'a\.gif'"):
        figure.save("a.gif")


def test_a_theme_that_is_none():
    with pytest.raises(ValueError, match="theme must be one of light, dark"):
        EXAMPLES["ladder"].spec("blue")


def test_in_a_notebook_it_shows_itself():
    bundle = EXAMPLES["ladder"]._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg")
    assert EXAMPLES["ladder"].title in bundle["text/plain"]


def test_a_number_keeps_its_unit_when_a_title_is_wrapped():
    for line in wrapped("Nobody finds more than 4 % of all members. " * 5):
        assert not line.startswith("%")
        assert len(line) <= 66


def test_numbers_need_neither_altair_nor_torch():
    """Rows, titles and texts, in a process that then has none of the heavy libraries loaded."""
    check = (
        "import sys, dprime\n"
        "from dprime.show.figures import TradeOffFigure, PrecisionFigure, RiskFigure\n"
        "training = dprime.DPSGD(1.1, 0.01, 100)\n"
        "figures = [TradeOffFigure.of(training.curve()), RiskFigure.of(training, 'steps'),"
        " PrecisionFigure.of()]\n"
        "assert all(figure.rows() and figure.title and figure.text for figure in figures)\n"
        "print({'altair', 'vl_convert', 'torch', 'pandas'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_without_the_drawing_libraries_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("dprime.show.needs.find_spec", lambda name: None)
    message = r"dprime\[show\] must be installed for a drawing, but it is without altair"
    with pytest.raises(ValueError, match=message):
        EXAMPLES["ladder"].svg()
