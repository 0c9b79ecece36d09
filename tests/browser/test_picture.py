"""What a drawing tells and keeps, and where a visit can start from."""

import csv
import json

import pytest

import dprime


def kept(page, action):
    """What a download is called, and where it lies."""
    with page.expect_download() as found:
        action()
    return found.value.suggested_filename, found.value.path()


def table(page, action):
    name, place = kept(page, action)
    with place.open(encoding="utf-8", newline="") as file:
        return name, [*csv.DictReader(file)]


def test_values_stand_under_the_pointer(visit):
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
    name, rows = table(page, lambda: page.get_by_label("CSV of trade off", exact=True).click())
    assert name == "dprime-trade-off.csv"
    points = [row for row in rows if row["series"] == "certified limit"]
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
    name, place = kept(page, lambda: page.get_by_label("PNG of precision").click())
    assert (name, place.read_bytes()[:8]) == ("dprime-precision.png", b"\x89PNG\r\n\x1a\n")
    words = " ".join(page.evaluate("() => window.words"))
    settings = page.inner_text("#described").splitlines()
    told = [page.inner_text("#chart-precision h3"), *settings, "δ = 0.000001"]
    for each in (*told, f"dprime {dprime.__version__}"):
        assert each in words
    visit.shot(f"kept-{width}")
    numbers = page.get_by_role("button", name="Save the numbers as CSV")
    for button in (page.get_by_label("CSV of precision"), numbers):
        _, rows = table(page, button.click)
        assert {(row["dprime"], bool(row["title"])) for row in rows} == {(dprime.__version__, True)}
        for setting in settings:
            assert any(row["setting"].startswith(setting) for row in rows)


def test_the_numbers_can_be_kept(visit, printed):
    page = visit.open()
    _, rows = table(page, lambda: page.get_by_role("button", name="Save the numbers").click())
    told = printed(visit.command())["metrics"]
    assert {row["metric"]: float(row["value"]) for row in rows} == {
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
    page.fill("#a-records", "50000")
    for name, text in (("batch", "500"), ("epochs", "2.5")):
        page.fill(f"#a-{name}", text)
        visit.settled(lambda name=name: page.press(f"#a-{name}", "Enter"))
    assert "--steps 250 --batch-size 500 --dataset-size 50000" in visit.command()
    assert "--adjacency" not in visit.command()
    sizes = "--batch-size 500 --dataset-size 50000 --epochs 2.5"
    told = printed(f"dprime risk --noise-multiplier 1.1 {sizes}")
    assert told["mechanism"]["steps"] == 250
    assert told["adjacency"] == printed(visit.command())["adjacency"] == "zero-out"
    assert "one record zeroed out" in page.inner_text("#described")
    assert page.input_value("#a-sample_rate-exact") == "500/50000"
    page.fill("#a-batch", "60000")
    page.press("#a-batch", "Enter")
    assert "no larger than the data" in page.inner_text("#a-batches-error")
    visit.shared("batch_size=500&dataset_size=50000")
    page.reload()
    visit.waited()
    assert page.is_checked("#setting-a [value=zero-out]")
    visit.slide("a-sample_rate", 12)  # a rate that is typed is a constant, as on the command line
    assert page.is_checked("#setting-a [value=add-remove]")
    assert "with or without one record" in page.inner_text("#described")


def file_of(contents):
    return {"name": "history.json", "mimeType": "application/json", "buffer": contents}


DROP = """(text) => {
  const given = new DataTransfer();
  given.items.add(new File([text], "history.json"));
  dispatchEvent(new DragEvent("drop", {dataTransfer: given, cancelable: true}));
}"""


def test_from_a_file(visit):
    page = visit.open()
    given = page.locator("#file")
    visit.settled(lambda: given.set_input_files(files=[file_of(b"[[1.5, 0.01, 500]]")]))
    assert "noise 1.5, rate 0.01, 500 steps" in page.inner_text("#described")
    visit.settled(lambda: page.evaluate(DROP, json.dumps([[1.25, 0.02, 300]])))
    assert "noise 1.25, rate 0.02, 300 steps" in page.inner_text("#described")
    assert page.inner_text("#source") == "history.json."
    visit.expected, before = ["status of 422"], visit.numbers()
    given.set_input_files(files=[file_of(b"{}")])
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
