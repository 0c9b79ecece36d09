"""Drawings inside a page."""

import re
from xml.etree import ElementTree

import pytest

from dprime.curve import TradeOff
from dprime.show.charts import scores, trade_off
from dprime.show.svg import inline_svg

CHARTS = [
    trade_off(TradeOff.gaussian(0.5)),
    trade_off(TradeOff.gaussian(0.5), log=True),
    scores([1.0, 2.0, 3.0], [0.0, 1.0, 2.5]),
]


class Clipped:
    """A chart whose drawing has names and references of its own."""

    title, text = "A finding.", "In words."

    def __init__(self, name):
        self.name = name

    def spec(self):
        stops = [{"offset": 0, "color": "white"}, {"offset": 1, "color": "blue"}]
        colour = {"gradient": "linear", "stops": stops}
        return {
            "title": "A finding.",
            "data": {"values": [{"x": 1, "y": 2}, {"x": 3, "y": 9}]},
            "mark": {"type": "area", "clip": True, "color": colour},
            "encoding": {"x": {"field": "x", "scale": {"domain": [0, 2]}}, "y": {"field": "y"}},
            "width": 100, "height": 100,
        }  # fmt: skip


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_an_image_with_a_name_and_a_description(chart):
    text = inline_svg(chart)
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    parts = {element.get("id"): element.text for element in root.iter() if element.get("id")}
    assert parts[root.get("aria-labelledby")] == chart.title
    assert parts[root.get("aria-describedby")] == chart.text
    assert "http" not in text
    assert not {"width", "height"} & set(root.attrib)
    assert re.fullmatch(r"0 0 \d+(\.\d+)? \d+(\.\d+)?", root.get("viewBox"))
    inner = [element for element in root.iter() if element is not root]
    assert not any(name == "role" or name.startswith("aria-") for e in inner for name in e.attrib)


def test_names_are_unique_and_references_meet_them():
    texts = [inline_svg(chart) for chart in (*CHARTS, Clipped("one"), Clipped("two"))]
    names = [re.findall(r'\bid="([^"]+)"', text) for text in texts]
    found = [name for own in names for name in own]
    assert len(found) == len(set(found))
    for text, own in zip(texts, names, strict=True):
        used = {*re.findall(r"url\(#([^)]+)\)", text), *re.findall(r'href="#([^"]+)"', text)}
        assert used <= {*own}
        assert bool(used) or "one" not in text
    assert all(len(own) > 3 for own in names[3:])  # the clip and the gradient, too
