import json

import pytest

from dprime.show.figures import marks


def test_every_side_says_where_its_words_stand():
    import altair as alt

    for side, at in marks.SIDES.items():
        assert ("left" in side) == (at.align == "right")
        assert ("right" in side) == (at.align == "left")
        assert marks.label(side).split() == ["label", "ink", side]
    x, y = marks.axis("a", "a"), marks.axis("b", "b")
    drawn = marks.stacked(alt.NamedData(name="rows"), marks.words(x, y, "ink"))
    lookups = json.dumps(drawn.to_dict())
    assert all(side in lookups for side in marks.SIDES)


@pytest.mark.parametrize("log", [False, True])
def test_an_axis_with_fixed_ends(log):
    shown = marks.axis("a", "share", share=True, log=log, domain=(0.1, 1.0))
    assert shown["scale"]["domain"] == [0.1, 1.0]
    assert "%" in shown["axis"]["labelExpr"]


def test_a_live_axis_begins_at_nothing_or_with_its_rows():
    assert marks.axis("a", "a", live=True)["scale"]["domain"][0] == 0.0
    least, most = marks.axis("a", "a", log=True, live=True)["scale"]["domain"]
    assert "[0]" in least["expr"]
    assert "[1]" in most["expr"]
