"""Two settings side by side."""

from dprime.text import COMPARABLE


def difference(page, metric):
    return page.inner_text(f"tr[data-metric={metric}] [data-part=difference]")


def test_two_settings_side_by_side_and_back_to_one(visit, printed):
    page = visit.open()
    alone = visit.numbers()
    visit.settled(lambda: page.get_by_role("button", name="Compare two settings").click())
    assert visit.numbers("a") == visit.numbers("b") == alone
    assert difference(page, "advantage") == "= the same"
    visit.slide("b-noise_multiplier", 22)
    assert visit.numbers("a") == alone, "B moves alone"
    assert float(visit.numbers("b")["advantage"]) < float(alone["advantage"])
    assert difference(page, "advantage") == "▼ B lower: better protected"
    assert difference(page, "bayes_security") == "▲ B higher: better protected"
    visit.slide("b-noise_multiplier", 3)
    assert difference(page, "advantage") == "▲ B higher: less protected"
    assert difference(page, "bayes_security") == "▼ B lower: less protected"
    told = [printed(visit.command(index))["metrics"] for index in (0, 1)]
    assert told[1]["advantage"]["value"] > told[0]["advantage"]["value"]
    assert page.locator(".chart:visible").count() == 4
    key = page.locator("#chart-trade-off svg").inner_html()
    assert all(f"{each}: certified limit" in key for each in "AB")
    assert "B: With noise 0.45" in page.inner_text("#chart-risk h3")
    visit.shot("compare")
    before = [visit.numbers(each) for each in "ab"]
    visit.slide("ask-fpr", 2)
    for old, each in zip(before, "ab", strict=True):
        assert old["tpr"] != visit.numbers(each)["tpr"], "the question holds for both"
    visit.settled(lambda: page.get_by_role("button", name="Show one setting only").click())
    assert page.locator("#setting-b").is_hidden()
    assert page.locator(".chart:visible").count() == 4
    page.wait_for_url(lambda url: "compare" not in url)


def test_numbers_of_two_adjacencies_are_not_compared(visit):
    page = visit.open("?compare=1&b.noise_multiplier=2&b.adjacency=zero-out")
    assert COMPARABLE in page.inner_text("#notice")
    words = page.eval_on_selector_all(
        "[data-part=difference]", "all => all.map((d) => d.innerText)"
    )
    assert set(words) == {"not comparable"}
    visit.shot("compare-adjacencies")
    visit.settled(lambda: page.locator("#setting-b").get_by_text("With or without").click())
    assert page.locator("#notice").is_hidden()
    assert difference(page, "advantage") == "▼ B lower: better protected"


def test_a_training_beside_a_guarantee_alone(visit, printed):
    page = visit.open("?compare=1&b.from=guarantee&b.epsilon=2")
    assert "--epsilon 2" in visit.command(1)
    assert "undefined" not in visit.command(1)
    told = printed(visit.command(1))["metrics"]
    assert float(visit.numbers("b")["advantage"]) >= told["advantage"]["value"]
    assert page.locator("#b-steps").is_hidden()
    assert page.locator("#b-epsilon").is_visible()
    assert page.inner_text("#chart-risk h3").startswith("A: "), "B has no noise to be drawn over"
    visit.shot("compare-guarantee")


def test_choosing_for_both_and_a_mistake_beside_the_setting_that_has_it(visit):
    page = visit.open("?compare=1&mode=choose&target=epsilon&value=3&b.sample_rate=0.02")
    a, b = (float(page.input_value(f"#{name}-noise_multiplier-exact")) for name in "ab")
    assert b > a, "a larger rate needs more noise"
    assert all(float(visit.numbers(each)["epsilon"]) <= 3 for each in "ab")
    visit.shot("compare-choose")
    visit.expected = ["status of 422"]
    visit.open("?compare=1")
    visit.type_value("b-steps", "-3")
    assert "steps must be" in page.inner_text("[data-name=b-steps] .error")
    assert page.locator("[data-name=a-steps] .error").is_hidden()
    assert page.inner_text("#notice").startswith("B: steps must be")
