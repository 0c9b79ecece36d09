"""Everyone can use it: by keyboard alone, with a screen reader, on a phone, in light and dark."""

import pytest


def tree(visit):
    """What a screen reader is told, by Chromium."""
    nodes = visit.context.new_cdp_session(visit.page).send("Accessibility.getFullAXTree")["nodes"]
    return [node for node in nodes if not node.get("ignored")]


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


def test_drawings_have_words(visit):
    page = visit.open()
    pictures = {
        node["name"]["value"]: node["description"]["value"]
        for node in tree(visit)
        if node["role"]["value"] in ("image", "img")
    }
    assert len(pictures) == 4
    for chart in page.locator(".chart:visible").all():
        words = chart.locator("details p").text_content()
        assert chart.locator("> p").text_content() == words
        assert pictures[chart.locator("h3").inner_text()] == " ".join(words.split())
        assert len(words) > 60


HEARD = """() => {
  window.heard = [];
  const region = document.getElementById("announcer");
  new MutationObserver(() => window.heard.push(region.textContent))
    .observe(region, {childList: true});
}"""


def test_new_answers_are_announced_once_things_have_settled(visit):
    page = visit.open()
    page.wait_for_timeout(1000)
    page.evaluate(HEARD)
    for position in range(16, 21):
        visit.slide_only("a-noise_multiplier", position)
    visit.slide("a-noise_multiplier", 21)
    page.wait_for_timeout(1500)
    assert page.evaluate("() => window.heard") == [page.inner_text("#finding")]
    told = [each for node in tree(visit) for each in node.get("properties", [])]
    live = [each["value"]["value"] for each in told if each["name"] == "live"]
    assert len([each for each in live if each != "off"]) == 1, "one place speaks, and nothing else"


def test_everything_by_keyboard_alone(visit):
    page = visit.open()

    def settled(key):
        visit.settled(lambda: page.keyboard.press(key))

    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the answer"
    page.keyboard.press("Enter")
    assert focused(page) == "answer"
    press_to(page, "compare")
    press_to(page, "a-noise_multiplier")
    for key, value in (("ArrowRight", "1.2"), ("End", "30"), ("Home", "0.3")):
        settled(key)
        assert page.input_value("#a-noise_multiplier-exact") == value
    press_to(page, "a-noise_multiplier-exact")
    page.keyboard.press("Control+a")
    page.keyboard.type("1.25")
    settled("Enter")
    assert "noise 1.25," in page.inner_text("#described")
    press_to(page, "adjacency-aadd-remove")
    settled("ArrowDown")
    assert "one record replaced by another: no attacker" in page.inner_text("#certified")
    page.locator("#preset").focus()
    settled("ArrowDown")
    assert "noise 4, rate 0.01, 10,000 steps" in page.inner_text("#described")
    page.locator("input[name=from-a]:checked").focus()
    settled("ArrowDown")
    press_to(page, "a-epsilon")
    settled("ArrowRight")
    assert page.input_value("#a-epsilon-exact") == "5"
    sign = page.get_by_label("About: δ").first
    sign.focus()
    page.keyboard.press("Enter")
    about = page.get_by_text("The δ at which ε is read").first
    assert about.is_visible()
    visit.shot("help")
    page.keyboard.press("Escape")
    assert about.is_hidden()
    assert page.evaluate("() => document.activeElement.ariaLabel") == "About: δ"


def test_choosing_comparing_and_the_other_views_by_keyboard_alone(visit):
    page = visit.open()

    def at(name, key, by="Tab"):
        press_to(page, name, by)
        visit.settled(lambda: page.keyboard.press(key))

    at("moderisk", "ArrowDown")
    at("target", "ArrowDown")
    assert "--bayes-security" in visit.command()
    at("value-of-target", "ArrowRight")
    at("freenoise_multiplier", "ArrowDown")
    assert "--sample-rate" not in visit.command()
    at("compare", "Enter", "Shift+Tab")
    at("b-steps", "ArrowLeft")
    assert visit.numbers("a") != visit.numbers("b")
    press_to(page, "over")
    press_to(page, "In words")
    page.keyboard.press("Enter")
    visit.shot("keyboard")
    page.keyboard.press("Escape")
    assert page.locator(".chart details[open]").count() == 0
    page.reload()
    visit.waited()
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


SMALL = """() => [...document.querySelectorAll("button, select, summary, input, nav a")]
  .filter((e) => e.checkVisibility() && e.type !== "radio" && e.type !== "checkbox")
  .map((e) => [e.getBoundingClientRect(), e.outerHTML])
  .filter(([place]) => place.width < 24 || place.height < 24).map(([_, e]) => e)"""


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
    assert page.evaluate(SMALL) == [], "targets of at least 24 by 24 pixels (WCAG 2.2, 2.5.8)"
    page.evaluate("() => document.querySelector('#setting-b').scrollIntoView()")
    phone.shot("phone-compare")


def test_colours_follow_the_system_and_the_button(visit):
    page = visit.open()

    def turned(theme):
        page.wait_for_function(f"() => document.documentElement.dataset.theme === '{theme}'")

    before = visit.rows_of_charts()["chart-trade-off"]
    page.emulate_media(color_scheme="dark")
    turned("dark")
    visit.redrawn("chart-trade-off", before)
    page.get_by_role("button", name="Light colours").click()
    turned("light")
    page.reload()
    visit.waited()
    turned("light")  # kept, against the system
    page.get_by_role("button", name="Dark colours").click()
    page.emulate_media(color_scheme="light")
    turned("light")
