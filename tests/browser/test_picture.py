"""The picture comes first, at every width, in light and dark; values can be read and kept."""

import csv
import json

import pytest

import dprime

SIZES = {"390": (390, 844), "768": (768, 1024), "1280": (1280, 800), "1920": (1920, 1080)}
FOLDS = {"390": 2, "768": 1, "1280": 1, "1920": 1}
"""Within how many screens from the top the whole picture stands."""

VIEWS = {
    "one": "",
    "two": "?compare=1&b.noise_multiplier=0.8&scale=log",
    "guarantee": "?from=guarantee&epsilon=4",
}

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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("size", SIZES)
def test_the_picture_comes_first_and_everybody_can_use_it(visit_as, axe, size, view, scheme):
    width, height = SIZES[size]
    visit = visit_as(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = visit.open(VIEWS[view])
    picture = page.locator("#chart-trade-off .canvas").bounding_box()
    assert picture["y"] + picture["height"] <= FOLDS[size] * height
    finding = page.locator("#finding").bounding_box()
    assert finding["y"] + finding["height"] < min(picture["y"], height)
    assert page.evaluate("() => document.documentElement.scrollWidth") == width
    assert page.evaluate(OVERLAPS) == []
    visit.shot(f"picture-{view}-{size}-{scheme}")
    page.evaluate(axe)
    found = page.evaluate("() => axe.run().then(({violations}) => violations)")
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []


def rows(page, action):
    with page.expect_download() as kept:
        action()
    return kept.value.suggested_filename, kept.value.path()


def test_values_stand_under_the_pointer(visit, printed):
    page = visit.open("?fpr=0.2")
    canvas = page.locator("#chart-trade-off .canvas")
    box = canvas.bounding_box()
    reading = page.locator("#chart-trade-off .reading")
    texts = set()
    for share in (0.3, 0.35, 0.4, 0.8):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        reading.wait_for()
        texts.add(reading.inner_text())
    assert len(texts) == 4
    name, place = rows(page, lambda: page.get_by_label("CSV of trade off", exact=True).click())
    assert name == "dprime-trade-off.csv"
    with place.open(encoding="utf-8", newline="") as file:
        points = [row for row in csv.DictReader(file) if row["series"] == "certified limit"]
    for text in texts:
        across, height = (
            float(part.split(" %")[0].split()[-1]) for part in text.split(": at most")
        )
        exact = min(float(p["tpr"]) for p in points if abs(100 * float(p["fpr"]) - across) < 0.01)
        assert 100 * exact <= height <= 100 * exact * 1.001
    page.mouse.move(1, 1)
    assert reading.is_hidden()


DRAWN = """() => {
  window.words = [];
  const draw = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
    window.words.push(text);
    return draw.call(this, text, ...at);
  };
}"""


@pytest.mark.parametrize("width", [390, 1280])
def test_what_is_kept_says_what_it_is_of(visit_as, width):
    visit = visit_as(viewport={"width": width, "height": 844})
    page = visit.open("?compare=1&b.noise_multiplier=2&delta=1e-6")
    page.evaluate(DRAWN)
    rows(page, lambda: page.get_by_label("PNG of precision").click())
    words = " ".join(page.evaluate("() => window.words"))
    settings = page.inner_text("#described").splitlines()
    told = [page.inner_text("#chart-precision h3"), *settings, "δ = 0.000001"]
    for each in (*told, f"dprime {dprime.__version__}"):
        assert each in words
    visit.shot(f"kept-{width}")
    numbers = page.get_by_role("button", name="Save the numbers as CSV")
    for button in (page.get_by_label("CSV of precision"), numbers):
        _, place = rows(page, button.click)
        with place.open(encoding="utf-8", newline="") as file:
            kept = [
                (row["setting"], row["dprime"], bool(row["title"])) for row in csv.DictReader(file)
            ]
        assert {(version, titled) for _, version, titled in kept} == {(dprime.__version__, True)}
        for setting in settings:
            assert any(each.startswith(setting) for each, *_ in kept)


def test_pictures_and_numbers_can_be_kept(visit, printed):
    page = visit.open()
    name, place = rows(page, lambda: page.get_by_label("PNG of precision").click())
    assert (name, place.read_bytes()[:8]) == ("dprime-precision.png", b"\x89PNG\r\n\x1a\n")
    name, place = rows(page, lambda: page.get_by_role("button", name="Save the numbers").click())
    with place.open(encoding="utf-8", newline="") as file:
        kept = {row["metric"]: row for row in csv.DictReader(file)}
    told = printed(visit.command())["metrics"]
    assert {metric: float(row["value"]) for metric, row in kept.items()} == {
        metric: answer["value"] for metric, answer in told.items()
    }


def test_from_a_published_setting(visit, printed):
    page = visit.open()
    visit.settled(lambda: page.select_option("#preset", label="De et al. 2022, ImageNet, ε = 8"))
    assert "It states: ε = 8 at δ = 8e-7" in page.inner_text("#source")
    assert "--batch-size 16384 --dataset-size 1281167" in visit.command()
    assert page.is_checked("#setting-a [value=zero-out]")
    assert page.input_value("#preset") != ""
    assert printed(visit.command())["metrics"]["epsilon"]["value"] <= 8
    visit.shot("preset")
    visit.slide("a-steps", 5)
    assert page.locator("#source").is_hidden()
    assert page.input_value("#preset") == ""


def test_from_a_batch_size_and_epochs(visit, printed):
    page = visit.open()
    page.get_by_text("From a batch size and epochs").first.click()
    for name, text in (("records", "50000"), ("batch", "500")):
        page.fill(f"#a-{name}", text)
    visit.settled(lambda: page.press("#a-batch", "Enter"))
    page.fill("#a-epochs", "2.5")
    visit.settled(lambda: page.press("#a-epochs", "Enter"))
    assert "--steps 250 --batch-size 500 --dataset-size 50000" in visit.command()
    assert "--adjacency" not in visit.command()
    command = (
        "dprime risk --noise-multiplier 1.1 --batch-size 500 --dataset-size 50000 --epochs 2.5"
    )
    told = printed(command)
    assert told["mechanism"]["steps"] == 250
    assert told["adjacency"] == printed(visit.command())["adjacency"] == "zero-out"
    assert page.is_checked("#setting-a [value=zero-out]")
    assert "one record zeroed out" in page.inner_text("#described")
    assert page.input_value("#a-sample_rate-exact") == "500/50000"
    page.fill("#a-batch", "60000")
    page.press("#a-batch", "Enter")
    assert "no larger than the data" in page.inner_text("#a-batches-error")
    page.wait_for_url(lambda url: "batch_size=500&dataset_size=50000" in url)
    page.reload()
    page.wait_for_function("() => Number(document.documentElement.dataset.drawn) > 0")
    assert page.is_checked("#setting-a [value=zero-out]")
    visit.slide("a-sample_rate", 12)  # a rate that is typed is a constant, as on the command line
    assert page.is_checked("#setting-a [value=add-remove]")
    assert "with or without one record" in page.inner_text("#described")


@pytest.mark.parametrize("dropped", [False, True])
def test_from_a_file(visit, dropped):
    page = visit.open()
    file = {"name": "history.json", "mimeType": "application/json", "buffer": b"[[1.5, 0.01, 500]]"}

    def give():
        if not dropped:
            page.set_input_files("#file", files=[file])
            return
        page.evaluate(
            """(text) => {
              const given = new DataTransfer();
              given.items.add(new File([text], "history.json"));
              dispatchEvent(new DragEvent("drop", {dataTransfer: given, cancelable: true}));
            }""",
            file["buffer"].decode(),
        )

    visit.settled(give)
    assert "noise 1.5, rate 0.01, 500 steps" in page.inner_text("#described")
    assert page.inner_text("#source") == "history.json."


def test_a_file_that_holds_no_setting_is_refused_in_a_sentence(visit):
    visit.expected = ["status of 422"]
    page = visit.open()
    before = visit.numbers()
    file = {"name": "a.json", "mimeType": "application/json", "buffer": json.dumps({}).encode()}
    page.set_input_files("#file", files=[file])
    page.get_by_text("file must be a setting").first.wait_for()
    assert visit.numbers() == before


def test_a_guarantee_alone(visit, printed):
    page = visit.open()
    visit.settled(lambda: page.get_by_role("radio", name="ε and δ alone").check())
    assert page.locator("#a-noise_multiplier").is_hidden()
    assert page.locator("#chart-risk").is_hidden()
    visit.slide("a-epsilon", 3)
    visit.slide("ask-delta", 2)
    told = printed(visit.command())
    assert (told["mechanism"]["epsilon"], told["mechanism"]["delta"]) == (0.5, 1e-8)
    assert float(visit.numbers()["advantage"]) >= told["metrics"]["advantage"]["value"]
    visit.settled(lambda: page.get_by_role("radio", name="Noise, rate and steps").check())
    assert page.locator("#chart-risk").is_visible()


def test_the_risk_is_drawn_through_more_points_once_it_is_in_sight(visit):
    page = visit.open()
    visit.quiet()
    assert not any("fine=true" in url for url in visit.requests)
    coarse = visit.rows_of_charts()["chart-risk"]
    with page.expect_response(lambda response: "fine=true" in response.url):
        page.locator("#chart-risk").scroll_into_view_if_needed()
    page.wait_for_function(
        "before => document.querySelector('#chart-risk .canvas').innerHTML !== before", arg=coarse
    )


def test_the_start_can_be_chosen_by_keyboard_alone(visit):
    page = visit.open()
    page.locator("#preset").focus()
    visit.settled(lambda: page.keyboard.press("ArrowDown"))
    assert "noise 4, rate 0.01, 10,000 steps" in page.inner_text("#described")
    page.locator("input[name=from-a]:checked").focus()
    visit.settled(lambda: page.keyboard.press("ArrowDown"))
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.id") == "a-epsilon"
    visit.settled(lambda: page.keyboard.press("ArrowRight"))
    assert page.input_value("#a-epsilon-exact") == "5"
