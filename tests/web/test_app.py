"""The routes: what they answer, and how they refuse."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from itertools import product
from urllib.parse import urlencode

import pytest

from dprime.mechanisms import DPSGD
from dprime.web.options import CHARTS, SLIDERS
from dprime.web.service import EMPTY, RiskAnswer
from dprime.web.workers import GRID, MIXED

SETTING = "noise_multiplier=1.1&sample_rate=256/60000&steps=14062"
RISK, DRAWN = f"/api/risk?{SETTING}", f"/api/charts?{SETTING}"
CHOOSE = "/api/choose?sample_rate=0.01&steps=2000&target=advantage&value=0.1&free=noise_multiplier"


def test_a_risk_has_everything_the_page_needs(caller):
    found = caller.get(f"{RISK}&prior=0.2").json
    assert set(found) == {field.name for field in fields(RiskAnswer)}
    for name, answer in found["metrics"].items():
        assert {"title", "shown", "value", "kind", "sentence"} <= set(answer)
        floor = answer["shown"].startswith("≥ ")
        shown = float(answer["shown"].removeprefix("≥ "))
        assert shown <= answer["value"] if floor else shown >= answer["value"]
        assert floor == (name == "bayes_security")
    again = caller.get(f"{RISK}&prior=0.2".replace("256/60000", repr(256 / 60000))).json
    assert found["metrics"] == again["metrics"]
    unlimited = caller.get("/api/risk?noise_multiplier=0.3&sample_rate=0.5&steps=1000000").json
    index = unlimited["metrics"]["d_prime"]
    assert (index["value"], index["shown"]) == (None, "no limit")


def test_a_choice_has_the_chosen_parameter_to_its_last_digit(caller):
    found = caller.get(f"{CHOOSE}&charts=precision").json
    chosen = found["chosen"]
    assert list(found["charts"]) == ["precision"]
    assert chosen["name"] == "noise_multiplier"
    assert float(chosen["shown"]) >= chosen["value"] == found["mechanism"]["noise_multiplier"]
    assert f"noise {chosen['shown']}" in found["described"]
    assert found["command"] == "dprime choose --advantage 0.1 --sample-rate 0.01 --steps 2000"
    address = "/api/charts?sample_rate=0.01&steps=2000&charts=risk&noise_multiplier="
    rows = caller.get(f"{address}{chosen['value']!r}").json["risk"]["rows"]
    own = [row["risk"] for row in rows if row["series"] == "this setting"]
    assert own == [found["metrics"]["advantage"]["value"]]


@pytest.mark.parametrize("over", ["noise_multiplier", "sample_rate", "steps"])
@pytest.mark.parametrize("more", ["", "&group_size=3"])
def test_charts_show_the_numbers_of_the_answer(caller, more, over):
    named = "trade-off,trade-off-corner,precision"
    numbers = caller.get(f"{RISK}{more}&charts={named}").json
    found = caller.get(f"{DRAWN}{more}&over={over}").json
    assert numbers["charts"] == {name: found[name] for name in named.split(",")}
    names = {name: chart["name"] for name, chart in found.items()}
    assert names == {name: name for name in CHARTS} | {"risk": f"risk-{over.replace('_', '-')}"}
    for chart in found.values():
        assert chart["rows"]
        assert chart["title"].endswith(".")
        assert len(chart["text"]) > 50

    def own(chart, part):
        return [row[part] for row in found[chart]["rows"] if row["series"] == "this setting"]

    assert own("risk", "risk") == [numbers["metrics"]["advantage"]["value"]]
    assert own("risk", "value") == [numbers["mechanism"][over]]
    assert own("precision", "precision") == [numbers["metrics"]["precision"]["value"]]


def test_a_guarantee_alone_has_a_curve(caller):
    found = caller.get("/api/risk?epsilon=4&delta=1e-6&charts=trade-off").json
    assert found["metrics"]["epsilon"]["value"] == pytest.approx(4)
    assert found["metrics"]["advantage"]["value"] == pytest.approx(math.tanh(2), abs=1e-6)
    assert found["command"] == "dprime risk --delta 1e-6 --epsilon 4"


def test_a_fine_range_has_points_between_those_of_the_coarse_one(caller):
    def points(more):
        rows = caller.get(f"{DRAWN}&charts=risk&over=steps&fine={more}").json["risk"]["rows"]
        return [(row["value"], row["risk"]) for row in rows if row["series"] == "certified"]

    coarse, fine = points("false"), points("true")
    assert set(coarse) < set(fine)
    assert len(fine) > 60
    assert fine == sorted(fine)


def test_a_file_is_a_setting_to_start_from(caller):
    reply = caller.ask("POST", "/api/read", body=[b"[[1.1, 0.004", b", 14000]]"])
    told = {"noise_multiplier": "1.1", "sample_rate": "0.004", "steps": "14000"}
    assert reply.json == {**told, "adjacency": "zero-out"}
    assert caller.get("/api/risk?" + urlencode(reply.json)).status == 200
    assert "file must be JSON or TOML" in caller.ask("POST", "/api/read", body=[b"?"]).detail


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", EMPTY)
def test_empty_drawings(caller, name, theme):
    spec = caller.get(f"/api/charts/{name}?theme={theme}").json
    assert spec["datasets"] == {"rows": []}
    assert not {"description", "title", "$schema"} & set(spec)
    compared = caller.get(f"/api/charts/{name}?theme={theme}&compared=true").json["usermeta"]
    for series, says in spec["usermeta"]["says"].items():
        assert {compared["says"][f"{label}: {series}"] for label in "AB"} == {says}
    assert {row for row in spec["usermeta"]["drawn"] if row == "guessing"} <= set(compared["drawn"])


DEAR = "/api/risk?noise_multiplier=1.1&sample_rate=0.999999&steps=1&group_size=10000"
REFUSED = [
    ("/api/risk", "noise_multiplier must be given, but it is missing"),
    (f"{DRAWN}&charts=trade-off,,pie", "charts must be one of trade-off"),
    (f"{DRAWN}&over=epochs", "over must be one of noise_multiplier"),
    ("/api/charts?epsilon=4&charts=risk", "The chart risk must be of a training"),
    (f"{RISK}&stps=3", "parameter must be known, but it is 'stps': did you mean steps"),
    (f"{RISK}&target=advantage", "parameter must be known, but it is 'target'"),
    (f"{RISK}&over=steps", "parameter must be known, but it is 'over'"),
    (f"{RISK}&fpr=many", "fpr must be a number, but it is 'many'"),
    (f"{RISK}&delta=nan", "delta must be a finite number"),
    (f"{RISK}&prior=%00", "prior must be a number"),
    (f"{RISK}&prior={'9' * 101}", "prior must be at most 100 characters, but it is 101"),
    (f"{RISK}&adjacency=replace&group_size=2", "group_size must be 1 for the replace adjacency"),
    (f"{RISK}&group_size=1e308", "group_size must be at most 1,000,000"),
    ("/api/choose", "target must be given, but it is missing"),
    (CHOOSE.replace("advantage", "luck"), "target must be one of advantage"),
    (CHOOSE.replace("0.1", "0"), "advantage must be strictly between 0 and 1"),
    (CHOOSE.replace("free=noise_multiplier", "free=delta"), "free must be one of"),
    (CHOOSE.replace("free=noise_multiplier", "free=steps"), "noise_multiplier must be given"),
    (f"{CHOOSE}&noise_multiplier=x&free=steps", "noise_multiplier must be a number"),
    (f"{CHOOSE}&adjacency=near", "adjacency must be one of"),
    (CHOOSE.replace("=0.1&free=noise_multiplier", "=1e-9&free=steps&noise_multiplier=0.3"),
     "the nearest possible value is"),
    ("/api/charts/trade-off?theme=pink", "theme must be 'light' or 'dark', but it is 'pink'"),
    (DEAR, "use a smaller group or more noise, or ask the command line"),
    ("/api/choose?noise_multiplier=0.00313&sample_rate=1&steps=3&group_size=511&target=precision"
     "&value=0.7&free=sample_rate", "at every sample_rate that the explorer can certify"),
]  # fmt: skip


@pytest.mark.parametrize(("address", "words"), REFUSED)
def test_bad_input_is_refused_in_one_sentence(caller, monkeypatch, address, words):
    monkeypatch.setattr("dprime.privacy_loss.LARGEST_MIXTURE", MIXED)
    reply = caller.get(address)
    assert (reply.status, words in reply.detail) == (422, True), reply.detail


def test_the_sliders_stay_within_the_limits_of_work(monkeypatch):
    """No setting that the page can be put to is refused."""
    monkeypatch.setattr("dprime.privacy_loss.LARGEST_MIXTURE", MIXED / 2)
    monkeypatch.setattr("dprime.accountant.LARGEST_GRID", GRID // 2)
    ends = [SLIDERS[name].positions for name in ("noise_multiplier", "sample_rate", "steps")]
    for noise, rate, steps in product(*((each[0], each[-2], each[-1]) for each in ends)):
        for adjacency, size in (("add-remove", 1), ("add-remove", 10), ("replace", 1)):
            DPSGD(noise, rate, steps).curve(adjacency, group_size=size)


NOWHERE = [
    "/nowhere", "/api", "/api/", "/api/risk/", "/docs", "/redoc", "/api/charts/risk",
    "/api/charts/..", "/static/", "/page/index.html", "//", "/api/runs/none.run/card",
]  # fmt: skip
METHODS = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "HEAD"]
NO_ROUTE = [("GET", address, 404) for address in NOWHERE] + [("GET", "/api/read", 405)]
NO_ROUTE += [(method, address, 405) for method in METHODS for address in ("/", "/api/risk")]


@pytest.mark.parametrize(("method", "address", "status"), NO_ROUTE)
def test_what_is_not_there_and_what_is_not_answered(caller, method, address, status):
    reply = caller.ask(method, address)
    assert (reply.status, bool(reply.detail)) == (status, True)


def test_many_at_once_get_the_same_answer(caller):
    address = "/api/charts?noise_multiplier=2.34&sample_rate=0.0123&steps=777&charts=risk"
    with ThreadPoolExecutor(8) as pool:
        replies = [*pool.map(lambda _: caller.get(address).json, range(8))]
    assert replies == [caller.get(address).json] * 8
