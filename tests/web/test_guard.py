"""Who is turned away, and what every answer tells the browser."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dprime.web.app import create_app
from dprime.web.guard import AT_ONCE, COOKIE, HEADERS, LARGEST_BODY, Guard, checked_token, host_of
from dprime.web.workers import BusyError, Workers

TOKEN = "a-token-of-enough-letters_42"
BEARER = ("authorization", f"Bearer {TOKEN}")
OPTIONS = "/api/options"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, caller):
    """An explorer that demands a token, asked under a name of its own."""
    folder = tmp_path_factory.mktemp("guarded")
    app = create_app(folder, token=TOKEN, hosts=("lab.example", "localhost"), workers=0)
    return type(caller)(app, host="lab.example:8765")


FOREIGN = [
    "evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost.evil.example:80",
    "192.168.1.7", "[::1]:8765", "0.0.0.0", "127.0.0.1@evil.example", "127.0.0.1 evil.example",
    "localhost:99999999", "localhost:", "", "127.0.0.1:8765:1", "localhost\t", "127.0.0.2", None,
]  # fmt: skip


@pytest.mark.parametrize("host", FOREIGN)
def test_a_foreign_host_is_refused(caller, host):
    reply = caller.get(OPTIONS, host=host)
    assert (reply.status, "127.0.0.1" in reply.detail) == (421, True)


@pytest.mark.parametrize("address", ["/", "/nowhere", "/static/page.js"])
def test_it_is_refused_everywhere_and_so_are_two_names(caller, address):
    assert caller.get(address, host="evil.example").status == 421
    assert caller.get(address, headers=[("host", "127.0.0.1")]).status == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8765", "LOCALHOST:1", "localhost"])
def test_the_machines_own_names_are_known(caller, host):
    forwarded = [("x-forwarded-host", "evil.example")]
    assert caller.get(OPTIONS, host=host, headers=forwarded).status == 200


@pytest.mark.parametrize(
    ("host", "headers", "status"),
    [("192.168.1.7:8765", [BEARER], 200), ("[fe80::1]:8765", [BEARER], 200),
     ("192.168.1.7", [], 401), ("evil.example", [BEARER], 421)],
)  # fmt: skip
def test_numbers_are_names_where_a_token_guards(guarded, host, headers, status):
    assert guarded.get(OPTIONS, host=host, headers=headers).status == status


@pytest.mark.parametrize(
    ("header", "host"),
    [("a", "a"), ("A:1", "a"), ("[::1]", "::1"), ("[::1]:80", "::1"), ("a/b", None), ("a:b", None),
     ("[::1", None), ("::1", None), ("a\nb", None), ("a b", None), ("ä", None)],
)  # fmt: skip
def test_the_name_in_a_host_header(header, host):
    assert host_of(header) == host


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_the_page_of_another_site_cannot_ask(caller, site):
    for address in (OPTIONS, "/api/risk?steps=10", "/static/page.js", "/"):
        reply = caller.get(address, headers=[("sec-fetch-site", site), ("sec-fetch-mode", "cors")])
        assert reply.status == 403
    link = [("sec-fetch-site", site), ("sec-fetch-mode", "navigate")]
    assert caller.get("/", headers=link).status == 200
    assert caller.get(OPTIONS, headers=link).status == 403
    assert caller.get(OPTIONS, headers=[("sec-fetch-site", "same-origin")]).status == 200


STATUSES = {
    200: ("GET", OPTIONS), 401: ("GET", "/"), 403: ("GET", OPTIONS), 404: ("GET", "/nowhere"),
    405: ("PUT", "/"), 413: ("GET", OPTIONS), 414: ("GET", "/?" + "steps=&" * 3000),
    421: ("GET", "/"), 422: ("GET", "/api/risk"), 500: ("GET", "/static/page.js"),
    503: ("GET", "/api/runs"),
}  # fmt: skip
MORE = {
    403: {"headers": [("sec-fetch-site", "cross-site")]}, 413: {"body": [b"x" * 20_000]},
    421: {"host": "evil.example"},
}  # fmt: skip


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_has_the_strict_headers_and_says_nothing_of_the_machine(
    caller, guarded, status, monkeypatch, caplog
):
    def mistaken(*_):
        raise RuntimeError("in a secret folder")

    def busy(*_):
        raise BusyError("Come again.")

    monkeypatch.setattr("dprime.web.files.static", mistaken)
    monkeypatch.setattr("dprime.web.runs.Runs.listed", busy)
    method, address = STATUSES[status]
    asked = guarded if status == 401 else caller
    reply = asked.ask(method, address, **MORE.get(status, {}))
    assert reply.status == status
    assert {name: reply.headers[name.lower()] for name in HEADERS} == HEADERS
    assert not [name for name in reply.headers if name.startswith("access-control")]
    assert b"secret" not in reply.body
    assert reply.headers.get("retry-after") == ("1" if status == 503 else None)
    if status == 500:
        assert "mistake" in reply.detail
        (record,) = caplog.records
        assert record.getMessage() == "GET '/static/page.js'"
        assert "in a secret folder" in str(record.exc_info[1])


def test_the_headers_are_strict_and_files_alone_are_kept_by_browsers(caller):
    policy = dict(part.split(" ", 1) for part in HEADERS["Content-Security-Policy"].split("; "))
    none = dict.fromkeys(("default-src", "frame-ancestors", "base-uri", "form-action"), "'none'")
    own = dict.fromkeys(("script-src", "style-src", "connect-src"), "'self'")
    assert policy == {**none, **own, "img-src": "'self' data:"}
    named = ("X-Content-Type-Options", "Referrer-Policy", "Cache-Control")
    assert [HEADERS[name] for name in named] == ["nosniff", "no-referrer", "no-store"]
    assert {HEADERS[f"Cross-Origin-{name}-Policy"] for name in ("Opener", "Resource")} == {
        "same-origin"
    }
    assert caller.get("/static/vega.js").headers["cache-control"] == "no-cache"


def test_an_answer_has_a_deadline(caller, monkeypatch):
    """Whoever waits for what is not computed by then is asked to come again."""
    held, waiting = threading.Event(), ThreadPoolExecutor(1)
    monkeypatch.setattr("dprime.web.guard.ANSWER", 0.1)
    monkeypatch.setattr(Workers, "submit", lambda *_: waiting.submit(held.wait, 5))
    began = time.monotonic()
    reply = caller.get("/api/risk?noise_multiplier=1.23456&sample_rate=0.5&steps=3")
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    assert time.monotonic() - began < 4
    held.set()
    waiting.shutdown()


SCOPE = {
    "type": "http", "path": "/", "method": "POST", "query_string": b"",
    "headers": [(b"host", b"localhost")],
}  # fmt: skip


async def no_body():
    return {"type": "http.request", "body": b""}


def test_who_sends_a_body_slowly_takes_nobodys_place():
    served = []

    async def play():
        async def app(scope, receive, send):
            served.append(scope["path"])

        async def never():
            await asyncio.sleep(60)

        guard = Guard(app, ["localhost"])
        slow = [asyncio.ensure_future(guard(SCOPE, never, None)) for _ in range(AT_ONCE + 3)]
        await asyncio.sleep(0)
        await guard(SCOPE, no_body, None)
        for each in slow:
            each.cancel()

    asyncio.run(play())
    assert served == ["/"]


def test_too_many_at_once_are_asked_to_come_again():
    statuses = []

    async def play():
        go_on = asyncio.Event()

        async def slow(scope, receive, send):
            await go_on.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        async def send(message):
            if message["type"] == "http.response.start":
                statuses.append((message["status"], dict(message["headers"]).get(b"retry-after")))

        guard = Guard(slow, ["localhost"])
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE + 3):
                group.create_task(guard(SCOPE, no_body, send))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            go_on.set()
        await guard(SCOPE, no_body, send)  # there is room again

    asyncio.run(play())
    assert statuses == [(503, b"1")] * 3 + [(200, None)] * (AT_ONCE + 1)


WRONG = [
    (), [("authorization", f"Bearer {TOKEN}x")], [("authorization", f"Bearer {TOKEN[:-1]}")],
    [("authorization", f"Basic {TOKEN}")], [("authorization", TOKEN)],
    [("authorization", "Bearer")], [("authorization", "Bearer ")],
    [("authorization", "Bearer töken")],
    [("cookie", f"{COOKIE}=")], [("cookie", f"{COOKIE}={TOKEN}x")], [("cookie", f"other={TOKEN}")],
    [("cookie", ";;=;")], [("x-token", TOKEN)],
]  # fmt: skip
ELSEWHERE = ["/api/risk", "/static/page.js", "/openapi.json", "/nowhere", "/runs/a/report"]
QUERIES = [
    "token=", "token=wrong", f"token={TOKEN}&token=wrong", f"token={TOKEN}x", "token=%ff",
    f"atoken={TOKEN}",
]  # fmt: skip
CLOSED = [(OPTIONS, headers) for headers in WRONG] + [(address, ()) for address in ELSEWHERE]
CLOSED += [(f"/?{query}", ()) for query in QUERIES]
CLOSED += [(f"{OPTIONS}?token={TOKEN}", ()), ("/?token=wrong", [BEARER])]
"""A token in any address but the page's would end up in logs and histories."""


@pytest.mark.parametrize(("address", "headers"), CLOSED)
def test_without_the_token_nothing_is_told(guarded, address, headers):
    reply = guarded.get(address, headers=headers)
    assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
    assert "dprime explore printed" in reply.detail
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize(
    "header",
    [BEARER, ("authorization", f"bearer  {TOKEN}"),
     ("cookie", f"theme=dark; {COOKIE}={TOKEN}"), ("cookie", f"{COOKIE}=old; {COOKIE}={TOKEN}"),
     ("cookie", f"{COOKIE}={TOKEN}; {COOKIE}=another")],
)  # fmt: skip
def test_the_token_opens(guarded, header):
    assert guarded.get("/?mytoken=1", headers=[header]).status == 200


def test_the_pages_address_with_the_token_becomes_a_cookie(guarded):
    reply = guarded.get(f"/?steps=10&token={TOKEN}&b.steps=20&over=")
    assert (reply.status, reply.headers["location"]) == (303, "/?steps=10&b.steps=20&over=")
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}={TOKEN};")
    assert {"HttpOnly", "SameSite=strict"} <= {*cookie.split("; ")}
    assert guarded.get(f"/?token={TOKEN}").headers["location"] == "/"


@pytest.mark.parametrize(
    "token",
    ["", "x" * 15, "x" * 257, "a token with spaces in it", "semicolon;inside;of;it",
     "umlaut-ä-umlaut-ä-umlaut", "x" * 20 + "\n"],
)  # fmt: skip
def test_a_token_that_does_not_fit_is_refused(tmp_path, token):
    for made in (checked_token, lambda token: create_app(tmp_path, token=token, workers=0)):
        with pytest.raises(ValueError, match="token must be at least 16 letters"):
            made(token)


BODIES = [
    ([("content-length", str(LARGEST_BODY + 1))], [b""]),
    ([("content-length", "9" * 40)], [b""]),
    ([], [b"x" * (LARGEST_BODY + 1)]),
    ([("transfer-encoding", "chunked")], [b"x" * 1000] * 99),
    ([("content-length", "5")], [b"x" * 1000] * 99),
]


@pytest.mark.parametrize(("headers", "body"), BODIES)
def test_a_large_body_is_refused_and_read_up_to_the_limit(caller, headers, body):
    taken = []
    sent = (taken.append(len(each)) or each for each in body)
    reply = caller.ask("POST", OPTIONS, headers=headers, body=sent)
    assert (reply.status, "16,384 bytes" in reply.detail) == (413, True)
    assert sum(taken) <= LARGEST_BODY + 1000
    assert caller.get(OPTIONS, body=[b"x" * 100, b"y" * 100]).status == 200
