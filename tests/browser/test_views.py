"""Every view at every width, in light and dark: readable, in order, with the picture first."""

import pytest

SIZES = {"390": (390, 844), "768": (768, 1024), "1280": (1280, 800), "1920": (1920, 1080)}
VIEWS = {
    "one": "",
    "two": "?compare=1&b.noise_multiplier=0.8&scale=log",
    "guarantee": "?from=guarantee&epsilon=4",
    "choose-compare": "?mode=choose&compare=1&target=epsilon&value=3&b.steps=1000",
    "error": "?noise_multiplier=-1",
    "runs": "?view=runs",
}
SCHEMES = [(size, scheme) for size in SIZES for scheme in ("light", "dark")]
SCHEMES = [each for each in SCHEMES if each[1] == "light" or each[0] in ("390", "1280")]

OVERLAPS = """() => [...document.querySelectorAll(".canvas svg")].flatMap((svg) => {
  const words = [...svg.querySelectorAll("text")]
    .filter((each) => each.textContent.trim() && getComputedStyle(each).opacity !== "0")
    .map((each) => [each.textContent, each.getBoundingClientRect()])
    .filter(([, box]) => box.width > 0);
  const canvas = svg.getBoundingClientRect();
  const found = words
    .filter(([, box]) => box.left < canvas.left - 1 || box.right > canvas.right + 1)
    .map(([text]) => `${text} is cut off`);
  words.forEach(([one, a], place) => words.slice(place + 1).forEach(([two, b]) => {
    if (one === two) return; // a rim lies below the word itself
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && high > 3) found.push(`${one} lies on ${two}`);
  }));
  return found;
})"""

FAINT = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const rgba = parse(getComputedStyle(at).backgroundColor);
      if (rgba.length === 3 || rgba[3] === 1) return rgba;
    }
    return [255, 255, 255];
  };
  const best = new Map(); // a drawn text has a halo below it: the same text in the ground's colour
  for (const element of document.querySelectorAll(".canvas svg text")) {
    const text = element.closest(".chart").id + element.textContent.trim();
    const inks = [parse(getComputedStyle(element).fill), ground(element)];
    const [high, low] = inks.map(light).sort((x, y) => y - x);
    best.set(text, Math.max(best.get(text) ?? 0, (high + 0.05) / (low + 0.05)));
  }
  return [...best].filter(([, contrast]) => contrast < 4.5);
}"""
"""Texts of drawings, which axe passes over, with too little contrast (WCAG 2.2, 1.4.3)."""


def opened(visit, view):
    if view == "error":
        visit.expected = ["status of 422"]
    if view != "runs":
        return visit.open(VIEWS[view])
    visit.page.goto(f"{visit.address}/{VIEWS[view]}")
    visit.page.locator("tr[data-run='finished.run']").wait_for()
    return visit.page


@pytest.mark.parametrize(("size", "scheme"), SCHEMES)
@pytest.mark.parametrize("view", VIEWS)
def test_everybody_can_use_it(visit_as, axe, size, view, scheme):
    width, height = SIZES[size]
    visit = visit_as(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = opened(visit, view)
    visit.shot(f"{view}-{size}-{scheme}")
    assert page.locator("html").get_attribute("data-theme") == scheme
    assert page.evaluate("() => document.documentElement.scrollWidth") == width
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate(FAINT) == []
    unsaid = "input[type=range]:not([aria-valuetext]), fieldset:not(:has(legend))"
    assert page.locator(unsaid).count() == 0
    page.evaluate(axe)
    found = page.evaluate("() => axe.run().then(({violations}) => violations)")
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
    if view in ("one", "two", "guarantee"):
        picture = page.locator("#chart-trade-off .canvas").bounding_box()
        folds = 2 if size == "390" else 1  # within how many screens the whole picture stands
        assert picture["y"] + picture["height"] <= folds * height
        finding = page.locator("#finding").bounding_box()
        assert finding["y"] + finding["height"] < min(picture["y"], height)


@pytest.mark.parametrize("view", [*VIEWS, "report"])
def test_a_phone_never_scrolls_sideways(phone, view):
    page = phone.page
    if view == "report":
        page.goto(f"{phone.address}/runs/finished.run/report")
    else:
        opened(phone, view)
    wide, window = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    assert (wide, window) == (320, 320)
    phone.shot(f"phone-{view}")


def test_text_of_twice_the_size_fits(visit_as):
    visit = visit_as(viewport={"width": 640, "height": 800})
    page = visit.open()
    page.evaluate("() => { document.documentElement.style.fontSize = '200%'; }")
    page.wait_for_timeout(300)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 640


def test_nothing_moves_for_those_who_asked_for_that(visit_as):
    page = visit_as(reduced_motion="reduce").open()
    moving = page.evaluate(
        """() => [...document.querySelectorAll("*")].map((e) => getComputedStyle(e))
          .filter((s) => s.transitionDuration !== "0s" || s.animationName !== "none").length"""
    )
    assert moving == 0
