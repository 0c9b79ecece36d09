import itertools

import pytest

from dprime.show.look import COLOURS, THEMES, themed


def luminance(colour):
    """Relative luminance, WCAG 2.1."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_words_and_lines_stand_out_from_the_paper(theme):
    colours = COLOURS[theme]
    for colour in (colours.ink, colours.muted, colours.first, colours.second):
        assert contrast(colour, colours.paper) >= 4.5


def test_dark_words_stand_out_from_the_explorers_grounds():
    for ground in ("#14181e", "#1c222a"):
        for colour in ("ink", "muted", "first", "second"):
            assert contrast(getattr(COLOURS["dark"], colour), ground) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_a_map_can_be_read_in_grey(theme):
    ramp = [luminance(colour) for colour in COLOURS[theme].light]
    assert ramp in (sorted(ramp), sorted(ramp, reverse=True))
    for one, other in itertools.pairwise(COLOURS[theme].light):
        assert contrast(one, other) > 1.1


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("one", "other"),
    [("ceiling", "floor"), ("ceiling", "ceiling-2"), ("ceiling", "blind"), ("floor", "blind"),
     ("with", "without"), ("with-edge", "without-edge"), ("ceiling", "limit")],
)  # fmt: skip
def test_lines_that_meet_differ_by_dash_or_width(theme, one, other):
    styles = themed({}, theme)["config"]["style"]
    shapes = [(styles[s].get("strokeDash"), styles[s]["strokeWidth"]) for s in (one, other)]
    assert shapes[0] != shapes[1]


def test_the_figure_keeps_its_own_height():
    assert themed({"height": 100, "layer": []}, "light")["height"] == 100


def test_no_address_of_a_schema_and_no_change_of_what_was_given():
    given = {"$schema": "https://vega.github.io/schema/vega-lite/v6.json", "layer": []}
    assert "$schema" not in themed(given, "light")
    assert "$schema" in given


def test_dark_lets_the_page_through():
    assert themed({}, "dark")["background"] == "transparent"
    assert themed({}, "light")["background"] == "#ffffff"


def test_a_theme_that_is_none():
    with pytest.raises(ValueError, match="theme must be one of light, dark, but it is 'sepia'"):
        themed({}, "sepia")
