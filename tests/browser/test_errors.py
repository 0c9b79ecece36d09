"""What goes wrong is said in a sentence beside the slider, and the last answer stays."""

import subprocess
import sys

from commands import TYPED
from dprime.option import as_typed

WRONG = [
    ("a-noise_multiplier", "-1"), ("a-sample_rate", "2"), ("a-steps", "1.5"), ("a-steps", "many"),
    ("ask-prior", "1"), ("ask-fpr", "0.01/0"), ("ask-delta", "nan"),
]  # fmt: skip


def test_the_sentence_of_the_command_line_stands_beside_the_slider(visit):
    visit.expected = ["status of 422"]
    page = visit.open()
    for slider, text in WRONG:
        before, name = visit.numbers(), slider.split("-", 1)[1]
        described, position = page.inner_text("#described"), page.input_value(f"#{slider}")
        visit.type_value(slider, text)
        sentence = page.inner_text(f"[data-name={slider}] .error")
        words = {"noise_multiplier": "1.1", "sample_rate": "0.004", "steps": "14000", name: text}
        options = [f"--{key.replace('_', '-')}={value}" for key, value in words.items()]
        command = [sys.executable, "-m", "dprime", "risk", *options]
        told = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert told.returncode == 2
        assert f"Error: {as_typed(sentence, TYPED)}" == " ".join(told.stderr.split())
        assert page.locator(f"#{slider}-exact").get_attribute("aria-invalid") == "true"
        assert page.input_value(f"#{slider}-exact") == text, "what was typed can be mended"
        assert visit.numbers() == before
        assert f"answer of before: {described.partition('. ')[0]}" in page.inner_text("#notice")
        visit.slide(slider, int(position))
        assert page.locator(f"[data-name={slider}] .error").is_hidden()
        assert page.locator("#notice").is_hidden()
        assert page.locator("[aria-invalid]").count() == 0


def test_a_silent_server_is_said_and_the_answer_stays(visit):
    visit.expected = ["net::ERR_FAILED"]
    page = visit.open()
    before = visit.numbers()
    page.route("**/api/risk*", lambda route: route.abort())
    visit.slide("a-steps", 3)
    assert "does not answer" in page.inner_text("#notice")
    assert visit.numbers() == before
    page.unroute("**/api/risk*")
    visit.slide("a-steps", 4)
    assert page.locator("#notice").is_hidden()
    assert visit.numbers() != before


def test_numbers_do_not_wait_for_the_drawing_program(visit):
    page, held = visit.page, visit.hold("**/static/vega.js")
    page.goto(visit.address, wait_until="commit")
    page.locator("tr[data-metric=advantage]").wait_for()
    assert visit.numbers()["advantage"] == "0.2105"
    held[0].continue_()
    page.locator("#chart-trade-off svg").wait_for()


def test_without_the_drawing_program_the_words_remain(visit):
    visit.expected = ["net::ERR_FAILED"]
    page = visit.page
    page.route("**/static/vega.js", lambda route: route.abort())
    page.goto(visit.address)
    page.get_by_text("The drawing program could not be loaded").first.wait_for()
    page.get_by_text("In words").first.click()
    assert "%" in page.inner_text("#chart-trade-off-text")
