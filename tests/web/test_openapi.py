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

from dprime.metrics import CONDITIONS
from dprime.request import NAMES
from dprime.runs.run import Run
from dprime.web.app import create_app
from dprime.web.options import CHARTS, TARGET_SLIDERS

METHODS = {
    "/": "get", "/static/{file}": "get", "/api/options": "get", "/api/risk": "get",
    "/api/choose": "get", "/api/charts": "get", "/api/charts/{name}": "get", "/api/read": "post",
    "/api/runs": "get", "/api/runs/{name}/card": "get", "/runs/{name}/report": "get",
}  # fmt: skip


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


def test_every_route_is_described_and_nobody_outside_is_asked(description):
    assert {path: [*methods] for path, methods in description["paths"].items()} == {
        path: [method] for path, method in METHODS.items()
    }
    assert "http" not in json.dumps(description)


MODES = [(path, GenerationMode.POSITIVE) for path in METHODS]
MODES += [(path, GenerationMode.NEGATIVE) for path in ("/api/choose", "/api/charts")]
MODES += [("/api/charts/{name}", GenerationMode.NEGATIVE)]
"""The other routes take any text, so nothing can be against their description."""


@pytest.mark.parametrize(("path", "mode"), MODES)
def test_generated_requests_meet_only_what_is_described(schema, path, mode):
    operation = schema[path][METHODS[path]]
    seen = set()

    @settings(
        max_examples=40, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case):
        response = case.call(headers={"Host": "127.0.0.1"})
        seen.add(response.status_code)
        # A description cannot say of every text whether it is a number in its range.
        case.validate_response(response, excluded_checks=[positive_data_acceptance])

    check()
    assert seen <= ({404, 422} if mode is GenerationMode.NEGATIVE else {200, 303, 304, 404, 422})


def validate_reply(description, path, reply):
    """Against the description of the status it has."""
    described = description["paths"][path][METHODS[path]]["responses"][str(reply.status)]
    kind = reply.headers["content-type"].partition(";")[0]
    schema = described["content"][kind].get("schema", {})
    jsonschema.validate(reply.json, {**schema, "components": description["components"]})


ODD = ["1/0", "1/3", "256/60000", "1e400", "-0", "½", "NaN", "0x1", "1_0", " 1 ", ""]
NUMBERS = st.one_of(
    st.floats().map(repr), st.integers(-3, 10**8).map(str), st.sampled_from(ODD)
)  # fmt: skip
SETTING = {"noise_multiplier": "1.1", "sample_rate": "0.004", "steps": "100"}
NAMED = st.sampled_from(
    [*SETTING, *(each.name for each in CONDITIONS if each.name in NAMES), "group_size"]
)
TEXTS = st.dictionaries(NAMED, NUMBERS, max_size=2)
FREE = st.sampled_from([*SETTING])
CHOICES = st.fixed_dictionaries(
    {"target": st.sampled_from([*TARGET_SLIDERS]), "value": NUMBERS, "free": FREE}
)
QUESTIONS = st.one_of(
    st.tuples(st.just("/api/risk"), st.just({})),
    st.tuples(st.just("/api/choose"), CHOICES),
    st.tuples(st.just("/api/charts"), st.fixed_dictionaries({"over": FREE})),
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(texts=TEXTS, question=QUESTIONS)
def test_numbers_of_every_kind(asked, description, texts, question):
    """An answer as it is described, or one sentence: nothing that is typed ends in an error."""
    path, more = question
    reply = asked.get(f"{path}?{urlencode({**SETTING, **texts, **more})}")
    assert reply.status == 200 or (reply.status == 422 and reply.detail)
    validate_reply(description, path, reply)


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


def test_refusals_are_as_described(asked, description):
    for status in ("401", "405", "413", "421", "422"):
        for path, method in METHODS.items():
            content = description["paths"][path][method]["responses"][status]["content"]
            assert content["application/json"]["schema"]["$ref"].endswith("/Refused")
    for status, reply in [
        (421, asked.get("/api/runs", host="evil")),
        (413, asked.get("/api/runs", body=[b"x" * 20_000])),
        (405, asked.ask("PUT", "/api/runs")),
    ]:
        assert reply.status == status
        validate_reply(description, "/api/runs", reply)
