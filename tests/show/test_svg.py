"""Drawings inside a page."""

import re
from xml.etree import ElementTree

import pytest

from dprime.curve import TradeOff
from dprime.show.charts import scores, trade_off
from dprime.show.svg import inline_svg, standalone_svg

CHARTS = [
    trade_off(TradeOff.gaussian(0.5)),
    trade_off(TradeOff.gaussian(0.5), log=True),
    scores([1.0, 2.0, 3.0], [0.0, 1.0, 2.5]),
]


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


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_a_drawing_becomes_a_file_with_its_title(chart):
    inline = inline_svg(chart)
    text = standalone_svg(chart, inline)
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    told = [span.text for span in root.iter("{http://www.w3.org/2000/svg}tspan")]
    title, caption = chart.heading(float(root.get("width")))
    assert told == [*title, *caption]
    assert " ".join(title).replace("\u00a0", " ") == chart.title
    before = float(re.search(r'viewBox="0 0 \S+ (\S+)"', inline).group(1))
    height = float(root.get("height"))
    assert height == before + 20 * (len(told) + 1)
    lowest = float(root.get("viewBox").split()[1])
    for span in root.iter("{http://www.w3.org/2000/svg}tspan"):
        assert lowest < float(span.get("y")) < 0  # above the drawing, inside the picture
    assert chart.text in text.replace("&lt;", "<").replace("&amp;", "&")


def test_names_are_unique_and_references_meet_them():
    texts = [inline_svg(chart) for chart in CHARTS]
    found = [name for text in texts for name in re.findall(r'\bid="([^"]+)"', text)]
    assert len(found) == len(set(found))
    for text in texts:
        own = set(re.findall(r'\bid="([^"]+)"', text))
        used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
        assert used <= own


class Clipped:
    """A chart whose drawing has names and references of its own."""

    title, text = "A finding.", "In words."

    def __init__(self, name):
        self.name = name

    def spec(self, width=None):
        return {
            "title": "A finding.",
            "data": {"values": [{"x": 1, "y": 2}, {"x": 3, "y": 9}]},
            "mark": {"type": "area", "clip": True, "color": GRADIENT},
            "encoding": {"x": {"field": "x", "scale": {"domain": [0, 2]}}, "y": {"field": "y"}},
            "width": 100, "height": 100,
        }  # fmt: skip


GRADIENT = {
    "gradient": "linear",
    "stops": [{"offset": 0, "color": "white"}, {"offset": 1, "color": "blue"}],
}


def test_names_inside_a_drawing_are_its_own():
    texts = [inline_svg(Clipped(name)) for name in ("one", "two")]
    both = [re.findall(r'\bid="([^"]+)"', text) for text in texts]
    assert all(len(names) > 2 for names in both)  # the clip and the gradient
    assert not set(both[0]) & set(both[1])
    for text, names in zip(texts, both, strict=True):
        used = re.findall(r"url\(#([^)]+)\)", text)
        assert used
        assert set(used) <= set(names)
        assert "http" not in text
