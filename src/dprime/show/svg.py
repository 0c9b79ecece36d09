"""A drawing for an HTML page: no name in it is taken twice, and no address leads out.

The same drawing becomes a file of its own, with its title above it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from dprime.show import vega
from dprime.show.chart import Chart
from dprime.show.theme import COLOURS, FONT, PADDING, SMALL

LINK = "{http://www.w3.org/1999/xlink}href"
REFERENCE = re.compile(r"url\(['\"]?#([^)'\"]+)['\"]?\)")


def inline_svg(chart: Chart) -> str:
    """A chart's drawing without its title (the page has it), ready to be put into HTML.

    The drawing is one image with a text alternative: its parts have no roles of their own.
    """
    spec = chart.spec()
    spec.pop("title", None)
    spec.pop("$schema", None)
    name = chart.name
    root = ElementTree.fromstring(vega.in_both_themes(vega.svg(spec)))
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    names = {given: f"{name}-part{place}" for place, given in enumerate(ids)}
    for element in root.iter():
        _clean(element, names)
    size = [root.attrib.pop(side, "") for side in ("width", "height")]
    root.attrib.setdefault("viewBox", f"0 0 {' '.join(size)}")
    told = {"title": f"{name}-title", "desc": f"{name}-text"}
    root.attrib |= {
        "role": "img", "aria-labelledby": told["title"], "aria-describedby": told["desc"],
    }  # fmt: skip
    for place, (tag, text) in enumerate((("title", chart.title), ("desc", chart.text))):
        part = ElementTree.Element(tag, {"id": told[tag]})
        part.text = text
        root.insert(place, part)
    return ElementTree.tostring(root, encoding="unicode")


LINE = 20
"""The height of a line of a title in pixels."""


def standalone_svg(chart: Chart, inline: str) -> str:
    """A drawing that `inline_svg` made, as a file with the finding and what it is of above it."""
    root = ElementTree.fromstring(inline)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    (lines, small), colours = chart.heading(width), COLOURS["light"]
    top = LINE * (len(lines) + len(small) + 1)
    size = {"width": f"{width:g}", "height": f"{height + top:g}"}
    root.attrib |= {"xmlns": "http://www.w3.org/2000/svg", **size}
    root.attrib["viewBox"] = f"0 {-top} {width:g} {height + top:g}"
    paper = ElementTree.Element("rect", {"y": f"{-top}", **size, "fill": colours["background"]})
    look = {"font-family": FONT, "font-size": "15", "font-weight": "600", "fill": colours["ink"]}
    title = ElementTree.Element("text", look)
    for number, line in enumerate(lines):
        place = {"x": f"{PADDING}", "y": f"{LINE * (number + 1) - top}"}
        ElementTree.SubElement(title, "tspan", place).text = line
    for number, line in enumerate(small, len(lines)):
        place = {"x": f"{PADDING}", "y": f"{LINE * (number + 1) - top}"}
        place |= {"font-size": f"{SMALL}", "font-weight": "400", "fill": colours["muted"]}
        ElementTree.SubElement(title, "tspan", place).text = line
    root.insert(2, paper)  # after the text alternative
    root.insert(3, title)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element, names: Mapping[str, str]) -> None:
    """HTML's own names, without namespaces, roles or ids that another drawing may have.

    Ids are counted anew: the ones that are given depend on what was drawn before.
    """
    element.tag = _local(element.tag)
    kept = {}
    for name, value in element.attrib.items():
        if name == "role" or name.startswith("aria-"):
            continue
        if name == "id":
            kept["id"] = names[value]
        elif name in ("href", LINK):
            kept["href"] = f"#{names.get(value.removeprefix('#'), '')}"
        else:
            kept[_local(name)] = REFERENCE.sub(lambda found: f"url(#{names[found[1]]})", value)
    element.attrib.clear()
    element.attrib.update(kept)


def _local(name: str) -> str:
    return name.rpartition("}")[2]
