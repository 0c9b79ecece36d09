"""Everyone can use it: by keyboard alone, with a screen reader, on a phone, in light and dark."""

import itertools

import pytest

NAMED = {
    "slider", "textbox", "radio", "combobox", "button", "link", "checkbox", "image", "img",
    "progressbar", "ProgressIndicator", "radiogroup", "table", "form", "navigation",
}  # fmt: skip
VIEWS = {
    "risk": "",
    "choose-compare": "?mode=choose&compare=1&target=epsilon&value=3&b.steps=1000",
    "error": "?noise_multiplier=-1",
    "runs": "?view=runs",
}

CONTRASTS = """() => {
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
  const found = [];
  const best = new Map(); // a drawn text has a halo below it: the same text in the ground's colour
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const field = element.matches("input[type=text], select");
    if (!(own || field) || !element.checkVisibility({visibilityProperty: true})) continue;
    if (element.closest("noscript, .unseen, .skip, option")) continue;
    const drawn = element.ownerSVGElement;
    const ink = parse(getComputedStyle(element)[drawn ? "fill" : "color"]);
    const [high, low] = [light(ink), light(ground(element))].sort((x, y) => y - x);
    const text = element.textContent.trim().slice(0, 40);
    const each = [(high + 0.05) / (low + 0.05), element.tagName, text];
    const key = drawn ? element.closest(".chart").id + text : null;
    if (!drawn) found.push(each);
    else if (!(best.get(key)?.[0] > each[0])) best.set(key, each);
  }
  return [...found, ...best.values()];
}"""
"""The contrast of every text with what is behind it (WCAG 2.2, 1.4.3)."""


def opened(visit, view):
    if view == "error":
        visit.expected = ["status of 422"]
    if view != "runs":
        return visit.open(VIEWS[view])
    visit.page.goto(f"{visit.address}/{VIEWS[view]}")
    visit.page.locator("tr[data-run='finished.run']").wait_for()
    return visit.page


def tree(visit):
    """What a screen reader is told, by Chromium."""
    nodes = visit.context.new_cdp_session(visit.page).send("Accessibility.getFullAXTree")["nodes"]
    return [node for node in nodes if not node.get("ignored")]


def role(node):
    return node["role"]["value"]


def name(node):
    return node.get("name", {}).get("value", "")


def property_of(node, wanted):
    return next(
        (p["value"]["value"] for p in node.get("properties", []) if p["name"] == wanted), None
    )


def focused(page):
    """The element that the keyboard is on."""
    return page.evaluate(
        """() => {
          const e = document.activeElement;
          if (e === document.body) return "";
          return e.id || (e.name && e.name + e.value) || e.textContent.trim();
        }"""
    )


def press_to(page, wanted, key="Tab", most=80):
    """Press a key until the wanted element has the focus."""
    for _ in range(most):
        page.keyboard.press(key)
        if focused(page) == wanted:
            return
    pytest.fail(f"{wanted} cannot be reached with {key}")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(visit_as, view, scheme):
    visit = visit_as(color_scheme=scheme)
    page = opened(visit, view)
    assert page.locator("html").get_attribute("data-theme") == scheme
    found = page.evaluate(CONTRASTS)
    assert len(found) > 20
    assert [each for each in found if each[0] < 4.5] == []
    visit.shot(f"{view}-{scheme}")


@pytest.mark.parametrize("view", VIEWS)
def test_a_screen_reader_is_told_everything(visit, view):
    page = opened(visit, view)
    nodes = tree(visit)
    nameless = [n for n in nodes if role(n) in NAMED and not name(n).strip()]
    assert nameless == []
    legends = page.eval_on_selector_all(
        "fieldset", "all => all.map((one) => one.querySelector('legend').textContent)"
    )
    assert all(legends)
    assert sum(role(node) == "main" for node in nodes) == 1
    assert sum(role(node) == "banner" for node in nodes) == 1
    for node in nodes:
        if role(node) == "slider":
            assert property_of(node, "valuetext"), name(node)
    levels = [int(property_of(node, "level")) for node in nodes if role(node) == "heading"]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    ids = page.eval_on_selector_all("[id]", "all => all.map((one) => one.id)")
    own = [each for each in ids if not each.startswith(("clip", "gradient"))]
    assert len(own) == len(set(own))
    assert page.locator("html").get_attribute("lang") == "en"


def test_drawings_have_words(visit):
    page = visit.open()
    pictures = [node for node in tree(visit) if role(node) in ("image", "img")]
    assert len(pictures) == 4
    for chart in page.locator(".chart:visible").all():
        title, words = chart.locator("h3").inner_text(), chart.locator("details p").text_content()
        assert chart.locator("> p").text_content() == words
        picture = next(p for p in pictures if name(p) == title)
        assert picture["description"]["value"] == " ".join(words.split())
        assert len(words) > 60


def test_new_answers_are_announced_once_things_have_settled(visit):
    page = visit.open()
    page.evaluate(
        """() => {
          window.heard = [];
          const region = document.getElementById("announcer");
          const listen = new MutationObserver(() => window.heard.push(region.textContent));
          listen.observe(region, {childList: true});
        }"""
    )
    page.wait_for_timeout(1000)
    page.evaluate("() => { window.heard = []; }")
    for position in range(16, 21):
        visit.slide_only("a-noise_multiplier", position)
    visit.slide("a-noise_multiplier", 21)
    page.wait_for_timeout(1500)
    heard = page.evaluate("() => window.heard")
    assert heard == [page.inner_text("#finding")]
    speaking = [node for node in tree(visit) if property_of(node, "live") not in (None, "off")]
    assert len(speaking) == 1, "one place speaks, and nothing else"


def test_everything_by_keyboard_alone(visit):
    page = visit.open()
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the answer"
    page.keyboard.press("Enter")
    assert focused(page) == "answer"
    press_to(page, "compare")
    press_to(page, "a-noise_multiplier")
    before = visit.numbers()
    visit.settled(lambda: page.keyboard.press("ArrowRight"))
    assert visit.numbers() != before
    visit.settled(lambda: page.keyboard.press("End"))
    assert page.input_value("#a-noise_multiplier-exact") == "30"
    visit.settled(lambda: page.keyboard.press("Home"))
    assert page.input_value("#a-noise_multiplier-exact") == "0.3"
    press_to(page, "a-noise_multiplier-exact")
    page.keyboard.press("Control+a")
    page.keyboard.type("1.25")
    visit.settled(lambda: page.keyboard.press("Enter"))
    assert "noise 1.25," in page.inner_text("#described")
    press_to(page, "adjacency-aadd-remove")
    visit.settled(lambda: page.keyboard.press("ArrowDown"))
    assert "replaced" in page.inner_text("#described")
    assert "one record replaced by another: no attacker" in page.inner_text("#certified")


def test_choosing_and_comparing_by_keyboard_alone(visit):
    page = visit.open()
    press_to(page, "moderisk")
    visit.settled(lambda: page.keyboard.press("ArrowDown"))
    press_to(page, "target")
    visit.settled(lambda: page.keyboard.press("ArrowDown"))
    assert "--bayes-security" in visit.command()
    press_to(page, "value-of-target")
    visit.settled(lambda: page.keyboard.press("ArrowRight"))
    press_to(page, "freenoise_multiplier")
    visit.settled(lambda: page.keyboard.press("ArrowDown"))
    assert "--sample-rate" not in visit.command()
    press_to(page, "compare", "Shift+Tab")
    visit.settled(lambda: page.keyboard.press("Enter"))
    press_to(page, "b-steps")
    visit.settled(lambda: page.keyboard.press("ArrowLeft"))
    assert visit.numbers("a") != visit.numbers("b")
    press_to(page, "over")
    press_to(page, "In words")
    page.keyboard.press("Enter")
    visit.shot("keyboard")
    page.keyboard.press("Escape")
    assert page.locator(".chart details[open]").count() == 0


def test_colours_and_runs_by_keyboard_alone(visit):
    page = visit.open()
    press_to(page, "theme")
    page.keyboard.press("Enter")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    press_to(page, "Runs", "Shift+Tab")
    page.keyboard.press("Enter")
    page.locator("tr[data-run='finished.run']").wait_for()
    press_to(page, "Report")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url.endswith("/report"))


def test_the_keyboard_is_never_caught_and_can_be_seen(visit):
    page = visit.open("?compare=1")
    order, hidden = [], []
    for _ in range(200):
        page.keyboard.press("Tab")
        at = focused(page)
        if at in ("", order[0] if order else None):
            break
        order.append(at)
        ring = page.evaluate(
            "() => { const s = getComputedStyle(document.activeElement);"
            " return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2; }"
        )
        hidden += [] if ring else [at]
    assert hidden == []
    places = [order.index(each) for each in ("compare", "a-steps", "b-steps", "ask-fpr", "over")]
    assert places == sorted(places), "the order of the page"
    everything = page.evaluate(
        """() => [...document.querySelectorAll("a[href], button, input, select, summary")]
          .filter((e) => e.checkVisibility() && !e.disabled)
          .filter((e) => e.type !== "radio" || e.checked).length"""
    )
    assert len(order) == everything


def test_help_opens_and_escape_closes_it(visit):
    page = visit.open()
    sign = page.get_by_label("About: Sampling rate").first
    sign.focus()
    page.keyboard.press("Enter")
    assert page.get_by_text("Share of the records in a batch").first.is_visible()
    visit.shot("help")
    page.keyboard.press("Escape")
    assert page.get_by_text("Share of the records in a batch").first.is_hidden()
    assert page.evaluate("() => document.activeElement.ariaLabel") == "About: Sampling rate"


@pytest.mark.parametrize("view", [*VIEWS, "report"])
def test_a_phone_never_scrolls_sideways(phone, view):
    if view == "report":
        page = phone.page
        page.goto(f"{phone.address}/runs/finished.run/report")
    else:
        page = opened(phone, view)
    wide, window = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    assert (wide, window) == (320, 320)
    phone.shot(f"phone-{view}")


def test_a_phone_can_do_everything(phone):
    page = phone.open()
    before = phone.numbers()
    phone.slide("a-noise_multiplier", 20)
    assert phone.numbers() != before
    page.locator("#a-noise_multiplier").scroll_into_view_if_needed()
    assert page.locator("#brief").is_visible()
    assert phone.numbers()["advantage"] in page.inner_text("#brief")
    phone.settled(lambda: page.get_by_label("The setting for a risk").tap())
    phone.settled(lambda: page.get_by_role("button", name="Compare two settings").tap())
    assert page.locator("#setting-b").is_visible()
    small = page.evaluate(
        """() => [...document.querySelectorAll("button, select, summary, input, nav a")]
          .filter((e) => e.checkVisibility() && e.type !== "radio" && e.type !== "checkbox")
          .map((e) => [e.getBoundingClientRect(), e.outerHTML])
          .filter(([place]) => place.width < 24 || place.height < 24).map(([_, e]) => e)"""
    )
    assert small == [], "targets of at least 24 by 24 pixels (WCAG 2.2, 2.5.8)"
    page.evaluate("() => document.querySelector('#setting-b').scrollIntoView()")
    phone.shot("phone-compare")


def test_colours_follow_the_system_and_the_button(visit):
    page = visit.open()
    theme = page.locator("html")
    before = visit.rows_of_charts()["chart-trade-off"]
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    page.wait_for_function(
        "before => document.querySelector('#chart-trade-off .canvas').innerHTML !== before",
        arg=before,
    )
    page.get_by_role("button", name="Light colours").click()
    assert theme.get_attribute("data-theme") == "light"
    page.reload()
    page.wait_for_function("() => Number(document.documentElement.dataset.drawn) > 0")
    assert theme.get_attribute("data-theme") == "light", "kept, against the system"
    page.get_by_role("button", name="Dark colours").click()
    page.emulate_media(color_scheme="light")
    page.wait_for_function("() => document.documentElement.dataset.theme === 'light'")


def test_nothing_moves_for_those_who_asked_for_that(visit_as):
    page = visit_as(reduced_motion="reduce").open()
    moving = page.evaluate(
        """() => [...document.querySelectorAll("*")].map((e) => getComputedStyle(e))
          .filter((s) => s.transitionDuration !== "0s" || s.animationName !== "none").length"""
    )
    assert moving == 0


def test_text_of_twice_the_size_fits(visit_as):
    visit = visit_as(viewport={"width": 640, "height": 800})
    page = visit.open()
    page.evaluate("() => { document.documentElement.style.fontSize = '200%'; }")
    page.wait_for_timeout(300)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 640
