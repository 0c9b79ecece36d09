"""A drawing for an HTML page: no name in it is taken twice, and no address leads out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from dprime.show import vega
from dprime.show.chart import Chart

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
