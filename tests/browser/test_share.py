"""The address holds the state, and whoever opens it sees the same."""

import pytest

STATE = (
    "?noise_multiplier=0.9&sample_rate=256/60000&steps=3000&adjacency=replace&group_size=1"
    "&prior=0.3&belief_prior=0.2&belief_level=0.8&fpr=0.001&delta=1e-6&over=steps&scale=log&compare=1"
    "&b.noise_multiplier=2.5&b.adjacency=add-remove"
)
CHOICE = "?mode=choose&target=precision&value=0.25&free=steps&prior=0.05"

EVERYTHING = """() => {
  const ticked = (one) => one.type === "radio" || one.type === "checkbox";
  return [...document.querySelectorAll("input, select")].filter((one) => one.checkVisibility())
    .map((one) => [one.id || one.name + one.value, ticked(one) ? one.checked : one.value]);
}"""


def look(visit):
    page = visit.page
    return {
        "controls": page.evaluate(EVERYTHING),
        "numbers": page.eval_on_selector_all("td .value", "all => all.map((v) => v.textContent)"),
        "finding": page.inner_text("#finding"),
        "drawings": page.eval_on_selector_all(".chart h3", "all => all.map((h) => h.textContent)"),
    }


@pytest.mark.parametrize("state", [STATE, CHOICE])
def test_an_address_restores_everything(visit_as, state):
    first, second = visit_as(), visit_as()
    page = first.open(state)
    if state == STATE:
        assert page.input_value("#b-sample_rate-exact") == "256/60000", "B begins as A"
        first.slide("b-steps", 4)
        first.slide("ask-fpr", 5)
        address = first.shared("b.steps=20&", "fpr=0.0005")
    else:
        address = first.shared("target=precision")
    second.open(address)
    assert look(second) == look(first)
    assert "--precision 0.25" in second.command() if state == CHOICE else "b.steps" in address
    second.page.reload()
    second.waited()
    assert look(second) == look(first)
    second.shot("shared-address")


def test_the_button_copies_the_address_and_says_so(visit_as):
    visit = visit_as(permissions=["clipboard-read", "clipboard-write"])
    page = visit.open()
    visit.slide("a-steps", 10)
    page.get_by_role("button", name="Copy the address").click()
    page.wait_for_function(
        "() => document.getElementById('announcer').textContent.includes('copied')"
    )
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied == page.url
    assert "steps=200&" in copied
    assert "copied" in page.inner_text("#shared")
    visit.shot("share-copied")


def test_without_a_clipboard_the_address_stands_in_a_field(visit):
    visit.page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page = visit.open()
    page.get_by_role("button", name="Copy the address").click()
    field = page.get_by_label("The address of this view")
    assert field.input_value() == page.url
    page.keyboard.press("Escape")
    assert field.is_hidden()
    assert page.evaluate("() => document.activeElement.id") == "share"


def test_what_an_address_says_in_vain_is_named(visit):
    page = visit.open("?mode=guess&target=luck&over=moon")
    notice = page.inner_text("#notice")
    assert "mode must be one of risk, choose, but it is 'guess'" in notice
    assert "over must be one of" in notice
    visit.slide("a-steps", 3)
    assert page.locator("#notice").is_hidden()
    visit.open("?noise=2&steps=500&b.records=3")
    assert "not understood where it says noise, b.records." in page.inner_text("#notice")
    assert page.input_value("#a-steps-exact") == "500"
    visit.open("?sample_rate=0.01&batch_size=256&dataset_size=60000")
    assert "sample_rate is left out" in page.inner_text("#notice")
    assert page.input_value("#a-sample_rate-exact") == "256/60000"


def test_back_and_forward_between_the_views(visit):
    page = visit.open()
    visit.slide("a-steps", 3)
    visit.shared("steps=10&")
    page.get_by_role("link", name="Runs", exact=True).click()
    assert page.locator("#runs").is_visible()
    page.go_back()
    page.locator("#explore").wait_for()
    assert page.input_value("#a-steps-exact") == "10"
    page.go_forward()
    page.locator("#runs").wait_for()
