"""The OpenAPI description is true: generated requests meet nothing that it does not say."""

import json
from urllib.parse import urlencode

import jsonschema
import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from dprime.runs.run import Run
from dprime.web.app import create_app
from dprime.web.options import CHARTS, TARGET_SLIDERS

PATHS = [
    "/", "/static/{file}", "/api/options", "/api/risk", "/api/choose", "/api/charts",
    "/api/charts/{name}", "/api/read", "/api/runs", "/api/runs/{name}/card", "/runs/{name}/report",
]  # fmt: skip

HERE = {"Host": "127.0.0.1"}


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("described")
    with Run.create(folder / "a.run", "audit", {"adversary": "di", "seed": 1}, blocks=2) as store:
        store.finish(0, {"score": np.arange(3.0)}, seconds=0.1)
    (folder / "notes.txt").write_text("no run")
    return create_app(folder, workers=0)


@pytest.fixture(scope="module")
def asked(app, caller):
    return type(caller)(app)


@pytest.fixture(scope="module")
def description(asked):
    return asked.get("/openapi.json").json


@pytest.fixture(scope="module")
def schema(app, description):
    found = schemathesis.openapi.from_dict(description)
    found.app = app
    return found


def test_every_route_is_described(description):
    assert sorted(description["paths"]) == sorted(PATHS)
    for path in PATHS:
        assert list(description["paths"][path]) == [method(path)]


def method(path):
    return "post" if path == "/api/read" else "get"


MODES = [(path, GenerationMode.POSITIVE) for path in PATHS]
MODES += [(path, GenerationMode.NEGATIVE) for path in ("/api/choose", "/api/charts")]
MODES += [("/api/charts/{name}", GenerationMode.NEGATIVE)]
"""The other routes take any text, so nothing can be against their description."""


@pytest.mark.parametrize(("path", "mode"), MODES)
def test_generated_requests_meet_only_what_is_described(schema, path, mode):
    operation = schema[path][method(path)]
    seen = set()

    @settings(
        max_examples=40, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case):
        response = case.call(headers=HERE)
        seen.add(response.status_code)
        assert response.status_code < 500
        # A description cannot say of every text whether it is a number in its range.
        case.validate_response(response, excluded_checks=[positive_data_acceptance])

    check()
    assert seen <= {200, 303, 304, 404, 422}
    if mode is GenerationMode.NEGATIVE:
        assert seen <= {404, 422}


NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers(-3, 10**8).map(str),
    st.sampled_from(
        ["1/0", "1/3", "256/60000", "1e400", "-0", "½", "NaN", "0x1", "1_0", " 1 ", ""]
    ),
)
SETTING = {"noise_multiplier": "1.1", "sample_rate": "0.004", "steps": "100"}
OTHERS = (
    "prior",
    "belief_prior",
    "belief_level",
    "fpr",
    "delta",
    "min_tpr",
    "exceeded",
    "group_size",
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(
    texts=st.dictionaries(st.sampled_from([*SETTING, *OTHERS]), NUMBERS, max_size=2),
    choice=st.none()
    | st.tuples(st.sampled_from(list(TARGET_SLIDERS)), NUMBERS, st.sampled_from([*SETTING])),
    over=st.none() | st.sampled_from([*SETTING]),
)
def test_numbers_of_every_kind(asked, description, texts, choice, over):
    """An answer as it is described, or one sentence: nothing that is typed ends in an error."""
    query, path = {**SETTING, **texts}, "/api/risk"
    if over is not None:
        path, query = "/api/charts", {**query, "over": over}
    elif choice is not None:
        path, query = (
            "/api/choose",
            query | dict(zip(("target", "value", "free"), choice, strict=True)),
        )
    reply = asked.get(f"{path}?{urlencode(query)}")
    assert reply.status in (200, 422)
    if reply.status == 422:
        assert reply.detail
    validate_reply(description, path, reply)


def validate_reply(description, path, reply):
    """Against the description of the status it has."""
    described = description["paths"][path][method(path)]["responses"][str(reply.status)]
    kind = reply.headers["content-type"].partition(";")[0]
    schema = {
        **described["content"][kind].get("schema", {}),
        "components": description["components"],
    }
    jsonschema.validate(reply.json, schema)


@pytest.mark.parametrize(
    "address",
    ["/api/options", "/api/runs", f"/api/risk?{urlencode(SETTING)}",
     f"/api/charts?{urlencode(SETTING)}&charts={','.join(CHARTS)}",
     f"/api/choose?{urlencode(SETTING)}&target=advantage&value=0.1&free=steps"],
)  # fmt: skip
def test_good_answers_are_as_described(asked, description, address):
    reply = asked.get(address)
    assert reply.status == 200
    validate_reply(description, address.partition("?")[0], reply)


def test_refusals_are_as_described(asked, description, app, caller):
    for status in ("401", "405", "413", "421", "422"):
        for path in PATHS:
            content = description["paths"][path][method(path)]["responses"][status]["content"]
            assert content["application/json"]["schema"]["$ref"].endswith("/Refused")
    refused = [
        asked.get("/api/runs", host="evil"), asked.get("/api/runs", body=[b"x" * 20_000]),
        asked.ask("PUT", "/api/runs"),
    ]  # fmt: skip
    assert [reply.status for reply in refused] == [421, 413, 405]
    for reply in refused:
        validate_reply(description, "/api/runs", reply)


def test_the_description_asks_nobody_outside(description):
    assert "http" not in json.dumps(description)
