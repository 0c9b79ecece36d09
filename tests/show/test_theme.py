import pytest

from dprime.show import theme
from dprime.show.theme import COLOURS, THEMES, config
from told import refuses

INKS = ("ink", "muted", "first", "second", "third", "fourth")


def luminance(colour):
    """Relative luminance, WCAG 2.1."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("name", "ground"),
    [("light", "#ffffff"), ("dark", "#181d23"), ("dark", "#14181e"), ("dark", "#1c222a")],
)
def test_words_and_lines_stand_out_from_the_grounds_of_report_and_explorer(name, ground):
    for ink in INKS:
        assert contrast(COLOURS[name][ink], ground) >= 4.5


@pytest.mark.parametrize(
    "meeting",
    [
        (theme.CERTIFIED, theme.OBSERVED, theme.BASELINE, theme.LIMIT),
        (theme.CERTIFIED, theme.ALSO_CERTIFIED),
        (theme.WITH, theme.WITHOUT, theme.LIMIT),
        (theme.CHOSEN, theme.ESTIMATE, theme.BASELINE),
        (theme.CERTIFIED, theme.BASELINE, *theme.COMPARED[:4]),
        (theme.CERTIFIED, theme.BASELINE, theme.second_pencil(theme.CERTIFIED)),
    ],
)
def test_lines_that_meet_differ_in_grey(meeting):
    assert len({(pencil.dash, pencil.width) for pencil in meeting}) == len(meeting)


def test_no_two_lines_that_are_compared_look_alike_and_none_like_a_certified_limit():
    looks = {(pencil.ink, pencil.dash) for pencil in theme.COMPARED}
    assert len(looks) == len(theme.COMPARED)
    assert theme.SOLID not in {pencil.dash for pencil in theme.COMPARED}


test_refused = refuses({
    "curves be few enough to tell apart": lambda: theme.pencils("curves", 0),
    "curves be few enough": lambda: theme.pencils("curves", len(theme.COMPARED) + 1),
    "theme be one of light, dark": lambda: config("sepia"),
})  # fmt: skip


def test_dark_lets_the_page_through():
    assert [COLOURS[name]["background"] for name in THEMES] == ["#ffffff", "transparent"]
