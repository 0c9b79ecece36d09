import re
from xml.etree import ElementTree

import pytest

from dprime.curve import TradeOff
from dprime.show.figures import PrecisionLine, PrecisionOverPriorFigure, PrecisionPoint

PRIORS = (0.1, 0.3, 0.5, 0.7, 0.9)


def allowed(epsilon, prior):
    return TradeOff.from_lines([(epsilon, 0.0)]).precision(prior)


def line(label="ε = 3", gain=0.0, half=0.02, certified=None, shuffled=None):
    """Precision `gain` above the baseline at five π."""
    return PrecisionLine(
        label,
        tuple(
            PrecisionPoint(
                prior, prior + gain, prior + gain - half, prior + gain + half,
                None if certified is None else allowed(certified, prior),
                None if shuffled is None else prior + shuffled,
            )
            for prior in PRIORS
        ),
    )  # fmt: skip


def figure(*lines, **options):
    return PrecisionOverPriorFigure(lines, attack="LiRA", data="digits", **options)


def test_the_title_counts_where_the_lower_end_is_above_the_baseline():
    title = figure(line(gain=0.03), line(gain=0.01), line(gain=-0.05)).title
    assert title == "LiRA's precision on digits is above the baseline at 5 of 15 settings."


def test_no_interval_above_the_baseline_is_said():
    title = figure(line(gain=0.02, half=0.02)).title
    assert title == "LiRA's precision on digits is above the baseline at none of 5 settings."


def test_what_luck_gives_is_no_finding():
    lucky = PrecisionLine("ε = 1", (PrecisionPoint(0.5, 0.55, 0.51, 0.59),))
    title = figure(line(), lucky, line()).title
    assert title.endswith("at 1 of 11 settings, as luck alone may give.")


def test_shuffled_scores_show_what_the_choice_of_a_threshold_gives():
    title = figure(line(gain=0.05, shuffled=0.04), line(gain=0.05, shuffled=0.01)).title
    assert title.endswith("at 10 of 10 settings, above that of shuffled scores at 5.")
    title = figure(line(gain=0.05, shuffled=0.04), line(gain=0.05)).title
    assert title.endswith("at 10 of 10 settings, above that of shuffled scores at none of 5.")


def test_a_precision_above_the_certified_one_comes_first():
    beyond = figure(line(gain=0.09, certified=0.3), line(gain=0.05))
    assert beyond.title.endswith("is above the certified one at 4 of 5 settings.")
    assert "At 4 of 5 it lies wholly above the certified precision, which bounds" in beyond.text


def test_the_table_holds_the_numbers_of_every_panel():
    shown = figure(line("ε = 1", 0.02, certified=1.0, shuffled=0.01), line("no DP", 0.08))
    table = shown.table()
    found = [
        (row["panel"], row["line"], row["prior"], row["precision"], row["low"], row["high"])
        for row in table
        if row["layer"] == "attack"
    ]
    assert found == [
        (panel, one.label, p.prior, p.precision, p.low, p.high)
        for panel, one in enumerate(shown.lines)
        for p in one.points
    ]
    limits = [(row["line"], row["precision"]) for row in table if row["layer"] == "certified"]
    assert limits == [("ε = 1", allowed(1.0, prior)) for prior in PRIORS]
    assert {row["line"] for row in table if row["layer"] == "shuffled"} == {"ε = 1"}
    assert {row["layer"] for row in figure(line(), baseline=False).table()} == {"attack"}


def test_an_interval_beyond_100_percent_ends_there():
    top = PrecisionLine("no DP", (PrecisionPoint(0.9, 0.99, 0.95, 1.03),))
    (row,) = [row for row in figure(top).table() if row["layer"] == "attack"]
    assert row["high"] == 1.0
    assert "(95 % to 100 %)" in figure(top).text


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (3, 3), (4, 2), (5, 3), (8, 3)])
def test_every_panel_has_its_place_and_its_ticks(count, columns):
    """Panels do not overlap, and each has ticks at 0, 50 and 100 % on both axes."""
    shown = figure(*(line(f"ε = {place + 1}") for place in range(count)))
    rows = -(-count // columns)
    labels = re.findall(r">([^<>]+)</text>", shown.svg())
    assert labels.count("50") == columns + rows
    assert labels.count("100") == columns + rows
    assert all(f"ε = {place + 1}" in labels for place in range(count))


def test_dots_stand_at_their_precision_in_their_panel():
    """Of two panels side by side, the same π and precision stand at the same height."""
    same = PrecisionLine("a", (PrecisionPoint(0.5, 0.6, 0.6, 0.6),))
    drawing = ElementTree.fromstring(figure(same, same, baseline=False).svg())
    dots = [
        tuple(float(x) for x in re.findall(r"[\d.]+", part.get("transform"))[:2])
        for group in drawing.iter()
        if "mark-symbol" in (group.get("class") or "")
        for part in group
    ]  # fmt: skip
    (left, right, _) = sorted(dots, key=lambda dot: -dot[1])
    assert left[1] == right[1]
    assert left[0] != right[0]


def test_refused():
    with pytest.raises(ValueError, match="lines must be one line or more"):
        figure()
    with pytest.raises(ValueError, match="points must be one point or more"):
        PrecisionLine("ε = 1", ())
    with pytest.raises(ValueError, match="low, precision, high must be ascending"):
        PrecisionPoint(0.5, 0.6, 0.7, 0.8)
    with pytest.raises(ValueError, match="certified must be between 0 and 1"):
        PrecisionPoint(0.5, 0.6, 0.5, 0.8, certified=1.2)
    with pytest.raises(ValueError, match="prior must be strictly between"):
        PrecisionPoint(1.0, 0.6, 0.5, 0.8)
