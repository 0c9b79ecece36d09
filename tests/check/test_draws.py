"""Each step has a batch of its own, or it is said that it has not, or that reading cannot tell."""

import pytest

from check.parts import LOOP, PRIVATE, SCRIPTS, START
from dprime.check import check

STEP = LOOP.split("in loader:\n")[1]
KEPT = LOOP.replace("in loader", "in kept")

AGAIN = {
    "an inner loop": LOOP.replace("in loader:\n", "in loader:\n      for _ in range(10):\n"),
    "until something is reached": LOOP.replace("in loader:\n", "in loader:\n      while more():\n"),
    "one batch for all": "x, y = next(iter(loader))\nfor _ in range(500):\n    for _ in range(1):\n"
    + STEP,
    "one batch an epoch": "for _ in range(9):\n    x, y = next(iter(loader))\n"
    "    for _ in range(50):\n" + STEP,
    "a list of batches": f"kept = list(loader)\n{KEPT}",
    "a tuple of batches, counted": "kept = tuple(loader)"
    + KEPT.replace("x, y in kept", "i, (x, y) in enumerate(kept)"),
    "batches and something else": "kept = list(loader)"
    + KEPT.replace("x, y in kept", "(x, y), z in zip(kept, more)"),
    "a cycle": "import itertools" + LOOP.replace("in loader", "in itertools.cycle(loader)"),
    "a second step": f"{LOOP}        optimizer.step()\n",
    "a second step at times": f"{LOOP}        if more():\n            optimizer.step()\n",
}


@pytest.mark.parametrize("loop", AGAIN.values(), ids=AGAIN)
def test_a_batch_that_is_used_again_is_an_error(examine, loop):
    report = examine(START + PRIVATE + loop)
    assert [finding.code for finding in report.findings] == ["DP107"]


FRESH = {
    "a list made in every epoch": LOOP.replace("in loader", "in list(loader)"),
    "a list that is gone through once": "kept = list(loader)\nfor _ in range(1):"
    + KEPT.split("range(10):")[1],
    "an inner loop of one round": LOOP.replace(
        "in loader:\n", "in loader:\n      for _ in range(1):\n"
    ),
    "next in every round": "it = iter(loader)\nfor _ in range(9):\n    for _ in range(5):\n"
    "        x, y = next(it)\n" + STEP,
    "one of two branches": LOOP.replace(
        "        optimizer.step()",
        "        if more():\n            optimizer.step()\n        else:\n"
        "            optimizer.step()",
    ),
    "a new batch for the second step": f"it = iter(loader){LOOP}        x, y = next(it)\n{STEP}",
}


@pytest.mark.parametrize("loop", FRESH.values(), ids=FRESH)
def test_a_batch_of_its_own_is_no_finding(examine, loop):
    report = examine(START + PRIVATE + loop)
    assert report.findings == ()
    assert report.unclear == ()


DOUBTFUL = {
    "batches kept by hand": ("comes from", f"kept = [batch for batch in loader]\n{KEPT}"),
    "batches by number": (
        "comes from",
        "kept = list(loader)\nfor i in range(500):\n    for j in range(2):\n"
        "        x, y = kept[i]\n" + STEP,
    ),
    "next at times": (
        "comes from",
        "it = iter(loader)\nfor i in range(9):\n    for j in range(5):\n        if j == 0:\n"
        "            x, y = next(it)\n" + STEP,
    ),
    "a step after all batches": (
        "comes from",
        LOOP.replace("        optimizer.step()", "    optimizer.step()"),
    ),
    "parts of a batch": (
        "makes of a batch",
        LOOP.replace(
            "for x, y in loader:\n",
            "for a, b in loader:\n      for x, y in zip(a.split(9), b.split(9)):\n",
        ),
    ),
    "either of two steps": (
        "whether both steps",
        LOOP.replace(
            "        optimizer.step()",
            "        if one():\n            optimizer.step()\n        if two():\n"
            "            optimizer.step()",
        ),
    ),
    "several optimizers": (
        "which optimizer",
        LOOP.replace("    optimizer.step()", "    for o in [optimizer, 0]:\n            o.step()"),
    ),
}


@pytest.mark.parametrize(("words", "loop"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_what_reading_cannot_tell_is_said(examine, words, loop):
    report = examine(START + PRIVATE + loop)
    assert report.findings == ()
    assert words in " ".join(report.unclear)


def test_parts_of_a_batch_may_leave_out_the_noise():
    """That is what BatchMemoryManager does; across batches it is an error."""
    report = check(SCRIPTS / "good" / "parts_of_batches.py")
    assert report.findings == ()
    assert "that no noise is left out (signal_skip_step)" in " ".join(report.unclear)
    (finding,) = check(SCRIPTS / "bad" / "dp106_skipped.py").findings
    assert "signal_skip_step" in finding.sentence
    assert "refuse" not in finding.rule.why


def test_a_doubt_is_named_once(examine):
    train = "def train():" + LOOP.replace("        optimizer.step", "    optimizer.step").replace(
        "\n", "\n    "
    )
    (unclear,) = examine(START + PRIVATE + train + "\ntrain()\ntrain()\n").unclear
    assert "comes from" in unclear
