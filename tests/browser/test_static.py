"""The page without a server: files under a sub-path, and numbers beside those that are served."""

import functools
import itertools
import random
import threading
from dataclasses import asdict
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlencode

import pytest

from dprime.metrics import Reading
from dprime.request import risk_request
from dprime.web import site
from dprime.web.ranges import Setting
from dprime.web.service import ExplorerService
from dprime.web.tables import KEPT, LEAST, at_positions

FEW = {
    **KEPT, "noise_multiplier": (0.5, 1.1, 4.0), "sample_rate": (1e-5, 0.004, 1.0),
    "steps": (1, 1000, 14_000), "group_size": (1, 2), "belief_level": (0.6, 0.9, 0.99),
}  # fmt: skip
USUAL = {name: str(slider.default) for name, slider in at_positions(FEW).items()}

NEAR = 0.02
"""How far a number may be from the served one."""

ASK = """async (addresses) => {
  const { request } = await import("./static/source.js");
  return Promise.all(addresses.map(async (one) => (await request(one)).json()));
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Where a plain web server has the page, which has fewer positions here; under a sub-path."""
    root = tmp_path_factory.mktemp("web")
    site.write(root / "some" / "path", 1, kept=FEW)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=root)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/some/path"
        server.shutdown()


def asked(page, route, settings):
    """What the page answers by itself."""
    return page.evaluate(ASK, [f"/api/{route}?{urlencode(each)}" for each in settings])


def drawn_settings(count, seed):
    """Settings at random positions, as addresses have them."""
    draw, sliders = random.Random(seed), at_positions(FEW)
    found = [
        {name: repr(draw.choice(slider.positions)) for name, slider in sliders.items()}
        | {"adjacency": draw.choice(["add-remove", "zero-out", "replace"])}
        for _ in range(count)
    ]
    return [
        {**each, "group_size": "1"} if each["adjacency"] == "replace" else each for each in found
    ]


def is_outward(read, served, rises=True):
    """Whether a number is on the safe side of the served one, and near it."""
    if read is None or served is None:
        return read == served
    if not rises:
        return served * (1 - NEAR) - 2.0**LEAST <= read <= served
    return served <= read <= max(served * (1 + NEAR), 2.0**LEAST)


def test_every_number_is_at_most_a_little_outside_the_served_one(visit):
    settings, service = drawn_settings(80, seed=1), ExplorerService()
    for setting, read in zip(settings, asked(visit.open(), "risk", settings), strict=True):
        served = asdict(service.risk(setting))
        assert [*read["metrics"]] == [*served["metrics"]]
        for name, metric in served["metrics"].items():
            told = read["metrics"][name]
            rises = name != "bayes_security"
            assert is_outward(told["value"], metric["value"], rises), (setting, name)
            assert {**told, **metric} == {**metric, **{k: metric.get(k) for k in told}}
            at = Reading(name, {each: told[each] for each in Reading(name, {}).conditions})
            same = at.valued(float("inf") if told["value"] is None else told["value"])
            assert (told["shown"], told["sentence"]) == (same.shown(), same.sentence), name
        for part in ("mechanism", "adjacency", "group_size", "certified", "certified_in_full"):
            assert read[part] == served[part], part
        assert read["described"].startswith(f"{served['described']}. ")
        assert read["command"] == served["command"].replace("'", "")


def test_charts_are_on_the_safe_side(visit):
    page, service = visit.open(), ExplorerService()
    names = ["trade-off", "trade-off-corner", "trade-off-log", "precision"]
    overs = itertools.cycle(["noise_multiplier", "sample_rate", "steps"])
    for setting in drawn_settings(12, seed=3):
        ranged = {**setting, "over": next(overs), "charts": "risk"}
        (found,) = asked(page, "risk", [{**setting, "charts": ",".join(names)}])
        (range_,) = asked(page, "charts", [ranged])
        read = {**found["charts"], **range_}
        served = service.risk(setting, names).charts
        served |= service.charts(setting, ["risk"], ranged["over"])
        curve = service._curve(Setting.of(risk_request(setting)))
        assert {name: each["name"] for name, each in read.items()} == {
            name: chart.name for name, chart in served.items()
        }
        for name, chart in served.items():
            drawn = {row["series"] for row in chart.rows} - {"beyond"}
            assert drawn <= {row["series"] for row in read[name]["rows"]}
        for name in names[:3]:
            line = [row for row in read[name]["rows"] if row["series"] == "certified limit"]
            assert all(row["tpr"] >= curve.tpr(row["fpr"]) for row in line)
            near = [row for row in line if row["fpr"] >= 1e-5]  # before, it may rise from 0 to 1
            assert all(row["tpr"] <= 1.2 * curve.tpr(row["fpr"]) for row in near)
        for name, across in (("risk", "value"), ("precision", "prior")):
            exact, found = (
                {(row["series"], f"{row[across]:.9g}"): row.get(name) for row in rows}
                for rows in (served[name].rows, read[name]["rows"])
            )
            both = {*exact} & {*found}
            assert len(both) > 3
            for key in both:
                if key[0] in ("certified", "this setting"):
                    assert is_outward(found[key], exact[key] * (1 - 1e-9)), (setting, name)
                elif exact[key] is not None:  # ε is rounded, and so e^ε by more
                    assert found[key] >= exact[key] * (1 - 1e-9), (setting, name)


def test_a_typed_value_is_read_on_the_riskier_side(visit):
    page, service = visit.open(), ExplorerService()
    for name, typed in [
        ("noise_multiplier", "2"), ("sample_rate", "1/900"), ("steps", "1001"),
        ("belief_level", "0.7"), ("belief_prior", "0.3"), ("prior", "0.12"), ("fpr", "0.003"),
        ("delta", "3e-6"),
    ]:  # fmt: skip
        (read,) = asked(page, "risk", [{**USUAL, name: typed}])
        served = service.risk({**USUAL, name: typed})
        for each, metric in served.metrics.items():
            told = read["metrics"][each]
            if metric["value"] is not None and each not in ("bayes_security", "success"):
                assert told["value"] is None or told["value"] >= metric["value"], (name, each)


def test_sizes_and_percentages_are_read_as_the_server_reads_them(visit):
    page, service = visit.open(), ExplorerService()
    sized = {"noise_multiplier": "1.1", "batch_size": "4", "dataset_size": "1000", "steps": "1000"}
    for given in (sized, {**sized, "adjacency": "add-remove"}, {**USUAL, "fpr": "2 %"}):
        (read,) = asked(page, "risk", [{**given, "charts": "trade-off,precision"}])
        served = asdict(service.risk(given, ["trade-off", "precision"]))
        for part in ("adjacency", "certified", "command"):
            assert read[part] == served[part]
        for name, chart in served["charts"].items():
            for told in (chart, read["charts"][name]):
                assert told["of"].startswith(served["described"])
    (read,) = asked(page, "risk", [{**USUAL, "noise_multiplier": "110 %"}])
    assert read["detail"].startswith("noise_multiplier must be ")


def test_what_is_beyond_the_tables_is_refused_beside_its_slider(visit):
    page = visit.open()
    for name, typed in [("noise_multiplier", "0.1"), ("steps", "x"), ("sample_rate", "-1")]:
        (read,) = asked(page, "risk", [{name: typed}])
        assert read["detail"].startswith(f"{name} must be from ")
    (read,) = asked(page, "risk", [{"adjacency": "replace", "group_size": "2"}])
    assert read["detail"].startswith("group_size must be 1 ")
    visit.type_value("a-noise_multiplier", "0.1")
    page.locator("#a-noise_multiplier-error:not(:empty)").wait_for()


def test_a_choice_keeps_its_limit(visit):
    page, service = visit.open(), ExplorerService()
    goals = [("advantage", "0.3"), ("tpr", "0.1"), ("epsilon", "8"), ("bayes_security", "0.7")]
    for (target, value), free in itertools.product(
        goals, ("noise_multiplier", "sample_rate", "steps")
    ):
        goal = {"target": target, "value": value, "free": free}
        (read,) = asked(page, "choose", [{**USUAL, **goal}])
        chosen = read["chosen"]
        assert chosen["name"] == free
        typed = {**USUAL, free: chosen["shown"].replace(",", "")}
        kept = service.risk(typed).metrics[target]["value"]
        assert kept >= 0.7 if target == "bayes_security" else kept <= float(value)
        positions = at_positions(FEW)[free].positions
        assert chosen["value"] == positions[positions.index(float(typed[free]))]
    (read,) = asked(
        page, "choose", [{**USUAL, "target": "epsilon", "value": "1e-7", "free": "steps"}]
    )
    assert "cannot be met" in read["detail"]


def test_a_visit_by_hand(visit):
    page = visit.open()
    first, drawings = visit.numbers(), visit.rows_of_charts()
    visit.slide("a-noise_multiplier", 2)
    assert visit.numbers()["advantage"] != first["advantage"]
    after = visit.rows_of_charts()
    assert {name for name in drawings if drawings[name] != after[name]} == {*drawings}
    visit.settled(lambda: page.click("#compare"))
    visit.settled(lambda: page.locator("#setting-b").get_by_text("The record replaced").click())
    assert visit.numbers("b") != visit.numbers("a")
    visit.settled(lambda: page.get_by_text("The setting for a risk").click())
    assert page.locator("[data-view=runs]").count() == 0
    address = visit.shared("mode=choose")
    assert address.startswith("?")
    visit.shot("static")
    shared = visit.numbers()
    visit.open(address)
    assert visit.numbers() == shared
