"""Who is turned away, and what every answer tells the browser."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dprime.web.app import create_app
from dprime.web.guard import (
    AT_ONCE,
    COOKIE,
    HEADERS,
    LARGEST_BODY,
    Guard,
    checked_token,
    host_of,
)
from dprime.web.workers import BusyError, Workers

TOKEN = "a-token-of-enough-letters_42"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, caller):
    """An explorer that demands a token, asked under a name of its own."""
    folder = tmp_path_factory.mktemp("guarded")
    app = create_app(folder, token=TOKEN, hosts=("lab.example", "localhost"), workers=0)
    return type(caller)(app, host="lab.example:8765")


FOREIGN = [
    "evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost.evil.example:80",
    "192.168.1.7", "[::1]:8765", "0.0.0.0", "127.0.0.1@evil.example", "127.0.0.1 evil.example",
    "localhost:99999999", "localhost:", "", "127.0.0.1:8765:1", "localhost\t", "127.0.0.2",
]  # fmt: skip


@pytest.mark.parametrize("address", ["/", "/api/options", "/nowhere", "/static/page.js"])
def test_a_foreign_host_is_refused_everywhere(caller, address):
    assert caller.get(address, host="evil.example").status == 421


@pytest.mark.parametrize("host", FOREIGN)
def test_a_foreign_host_is_refused(caller, host):
    reply = caller.get("/api/options", host=host)
    assert reply.status == 421
    assert "127.0.0.1" in reply.detail


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8765", "LOCALHOST:1", "localhost"])
def test_the_machines_own_names_are_known(caller, host):
    assert caller.get("/api/options", host=host).status == 200


def test_a_request_without_a_host_or_with_two_is_refused(caller):
    assert caller.get("/api/options", host=None).status == 421
    twice = [("host", "127.0.0.1")]
    assert caller.get("/api/options", headers=twice).status == 421
    assert caller.get("/", headers=[("x-forwarded-host", "evil.example")]).status == 200


def test_numbers_are_names_only_where_a_token_guards(guarded, caller):
    shown = [("authorization", f"Bearer {TOKEN}")]
    assert guarded.get("/api/options", host="192.168.1.7:8765", headers=shown).status == 200
    assert guarded.get("/api/options", host="[fe80::1]:8765", headers=shown).status == 200
    assert guarded.get("/api/options", host="192.168.1.7", headers=()).status == 401
    assert guarded.get("/api/options", host="evil.example", headers=shown).status == 421
    assert caller.get("/api/options", host="192.168.1.7:8765").status == 421


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_the_page_of_another_site_cannot_ask(caller, site):
    for address in ("/api/options", "/api/risk?steps=10", "/static/page.js", "/"):
        reply = caller.get(address, headers=[("sec-fetch-site", site), ("sec-fetch-mode", "cors")])
        assert reply.status == 403
    link = [("sec-fetch-site", site), ("sec-fetch-mode", "navigate")]
    assert caller.get("/", headers=link).status == 200
    assert caller.get("/api/options", headers=link).status == 403
    assert caller.get("/api/options", headers=[("sec-fetch-site", "same-origin")]).status == 200


STATUSES = {
    200: ("GET", "/api/options"), 404: ("GET", "/nowhere"), 405: ("PUT", "/"),
    422: ("GET", "/api/risk"), 500: ("GET", "/static/page.js"), 503: ("GET", "/api/runs"),
}  # fmt: skip


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_has_the_strict_headers_and_says_nothing_of_the_machine(
    caller, status, monkeypatch, caplog
):
    def mistaken(*_):
        raise RuntimeError("in a secret folder")

    def busy(*_):
        raise BusyError("Come again.")

    monkeypatch.setattr("dprime.web.files.static", mistaken)
    monkeypatch.setattr("dprime.web.runs.Runs.listed", busy)
    method, address = STATUSES[status]
    reply = caller.ask(method, address)
    assert reply.status == status
    assert {name: reply.headers[name.lower()] for name in HEADERS} == HEADERS
    assert b"secret" not in reply.body
    assert reply.headers.get("retry-after") == ("1" if status == 503 else None)
    if status == 500:
        assert "mistake" in reply.detail
        (record,) = caplog.records
        assert record.getMessage() == "GET '/static/page.js'"
        assert "in a secret folder" in str(record.exc_info[1])


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


def test_who_sends_a_body_slowly_takes_nobodys_place():
    served = []

    async def play():
        async def app(scope, receive, send):
            served.append(scope["path"])

        async def never():
            await asyncio.sleep(60)

        async def at_once():
            return {"type": "http.request", "body": b""}

        guard = Guard(app, ["localhost"])
        scope = {"type": "http", "path": "/", "method": "POST", "query_string": b"",
                 "headers": [(b"host", b"localhost")]}  # fmt: skip
        slow = [asyncio.ensure_future(guard(scope, never, None)) for _ in range(AT_ONCE + 3)]
        await asyncio.sleep(0)
        await guard(scope, at_once, None)
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

        async def receive():
            return {"type": "http.request", "body": b""}

        async def send(message):
            if message["type"] == "http.response.start":
                statuses.append((message["status"], dict(message["headers"]).get(b"retry-after")))

        guard = Guard(slow, ["localhost"])
        scope = {"type": "http", "path": "/", "method": "GET", "query_string": b"",
                 "headers": [(b"host", b"localhost")]}  # fmt: skip
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE + 3):
                group.create_task(guard(scope, receive, send))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            go_on.set()
        await guard(scope, receive, send)  # there is room again

    asyncio.run(play())
    assert statuses[:3] == [(503, b"1")] * 3
    assert statuses[3:] == [(200, None)] * (AT_ONCE + 1)


WRONG = [
    (), [("authorization", f"Bearer {TOKEN}x")], [("authorization", f"Bearer {TOKEN[:-1]}")],
    [("authorization", f"Basic {TOKEN}")], [("authorization", TOKEN)],
    [("authorization", "Bearer")], [("authorization", "Bearer ")],
    [("authorization", "Bearer töken")],
    [("cookie", f"{COOKIE}=")], [("cookie", f"{COOKIE}={TOKEN}x")], [("cookie", f"other={TOKEN}")],
    [("cookie", ";;=;")], [("x-token", TOKEN)],
]  # fmt: skip


@pytest.mark.parametrize(
    "address", ["/", "/api/risk", "/static/page.js", "/openapi.json", "/nowhere", "/runs/a/report"]
)
def test_without_the_token_no_address_answers(guarded, address):
    assert guarded.get(address).status == 401


@pytest.mark.parametrize("headers", WRONG)
def test_without_the_token_nothing_is_told(guarded, headers):
    reply = guarded.get("/api/options", headers=headers)
    assert reply.status == 401
    assert "dprime explore printed" in reply.detail
    assert reply.headers["www-authenticate"] == "Bearer"
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize(
    "header",
    [("authorization", f"Bearer {TOKEN}"), ("authorization", f"bearer  {TOKEN}"),
     ("cookie", f"theme=dark; {COOKIE}={TOKEN}"), ("cookie", f"{COOKIE}=old; {COOKIE}={TOKEN}")],
)  # fmt: skip
def test_the_token_opens(guarded, header):
    assert guarded.get("/api/options", headers=[header]).status == 200


def test_the_pages_address_with_the_token_becomes_a_cookie(guarded):
    reply = guarded.get(f"/?steps=10&token={TOKEN}&b.steps=20&over=")
    assert reply.status == 303
    assert reply.headers["location"] == "/?steps=10&b.steps=20&over="
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}={TOKEN};")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert guarded.get(f"/?token={TOKEN}").headers["location"] == "/"


@pytest.mark.parametrize(
    "query",
    ["token=", "token=wrong", f"token={TOKEN}&token=wrong", f"token={TOKEN}x", "token=%ff",
     f"atoken={TOKEN}"],
)  # fmt: skip
def test_a_wrong_token_in_the_address_is_refused(guarded, query):
    reply = guarded.get(f"/?{query}")
    assert reply.status == 401
    assert "set-cookie" not in reply.headers


def test_only_the_page_takes_the_token_in_its_address(guarded):
    """Elsewhere it would end up in logs and histories."""
    assert guarded.get(f"/api/options?token={TOKEN}").status == 401


@pytest.mark.parametrize(
    "token",
    ["", "short", "x" * 15, "x" * 257, "a token with spaces in it", "semicolon;inside;of;it",
     "umlaut-ä-umlaut-ä-umlaut", "x" * 20 + "\n"],
)  # fmt: skip
def test_a_token_that_does_not_fit_is_refused(tmp_path, token):
    with pytest.raises(ValueError, match="token must be at least 16 letters"):
        checked_token(token)
    with pytest.raises(ValueError, match="token must be"):
        create_app(tmp_path, token=token, workers=0)


BODIES = [
    ([("content-length", str(LARGEST_BODY + 1))], [b""]),
    ([("content-length", "9" * 40)], [b""]),
    ([], [b"x" * (LARGEST_BODY + 1)]),
    ([("transfer-encoding", "chunked")], [b"x" * 1000] * 20),
    ([("content-length", "5")], [b"x" * 1000] * 20),
]


@pytest.mark.parametrize(("headers", "body"), BODIES)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_large_body_is_refused(caller, method, headers, body):
    reply = caller.ask(method, "/api/options", headers=headers, body=body)
    assert reply.status == 413
    assert "16,384 bytes" in reply.detail


def test_a_long_address_is_refused(caller):
    reply = caller.get("/api/risk?" + "steps=&" * 3000)
    assert reply.status == 414
    assert "16,384 bytes" in reply.detail


def test_a_small_body_does_not_matter(caller):
    assert caller.get("/api/options", body=[b"x" * 100, b"y" * 100]).status == 200


def test_reading_stops_at_the_limit(caller):
    """However much somebody sends, no more than the limit is taken in."""
    sent = []

    def endless():
        while True:
            sent.append(1)
            yield b"x" * 1000

    reply = caller.ask("POST", "/", body=endless())
    assert reply.status == 413
    assert len(sent) == LARGEST_BODY // 1000 + 1


ADDRESSES = ["/", "/api/options", "/nowhere", "/static/vega.js", "/static/none.js", "/openapi.json"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_answer_has_the_strict_headers(caller, address):
    headers = caller.get(address).headers
    policy = dict(
        part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert not [name for name in headers if name.startswith("access-control")]


def test_refusals_have_the_strict_headers_too(caller, guarded):
    for reply in (caller.get("/", host="evil"), guarded.get("/"), caller.ask("PUT", "/")):
        assert reply.status in (421, 401, 405)
        assert reply.headers["content-security-policy"].startswith("default-src 'none'")
        assert reply.headers["cache-control"] == "no-store"


def test_answers_are_not_kept_by_browsers_but_files_may_be(caller):
    assert caller.get("/api/options").headers["cache-control"] == "no-store"
    assert caller.get("/static/vega.js").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("header", "host"),
    [("a", "a"), ("A:1", "a"), ("[::1]", "::1"), ("[::1]:80", "::1"), ("a/b", None), ("a:b", None),
     ("[::1", None), ("::1", None), ("a\nb", None), ("ä", None)],
)  # fmt: skip
def test_the_name_in_a_host_header(header, host):
    assert host_of(header) == host


def test_another_name_that_ends_in_token_is_none(guarded):
    headers = [("authorization", f"Bearer {TOKEN}")]
    assert guarded.get("/?mytoken=1", headers=headers).status == 200
