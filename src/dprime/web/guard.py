"""Who may ask, and what every answer says to the browser.

    request ──► Host known? ──► from this page? ──► body small? ──► token right? ──► a place free?
            ──► app, until the deadline ──► answer with strict headers

A foreign Host is refused because another site's name may point to this machine (DNS rebinding), and
what the page of another site asks for because it would cost time and memory here.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import re
import secrets
from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dprime import validate
from dprime.web.workers import within

LARGEST_BODY = 16 * 1024
"""Bytes; the one body that is taken is a file with a setting."""

AT_ONCE = 100
"""Requests that are answered at the same time; others are asked to come again."""

ANSWER = 10.0
"""Seconds in which a request gets what has to be computed, or is asked to come again."""

COOKIE = "dprime_token"

LEAST_TOKEN = 16
"""Letters; a drawn token has 43."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
"""What the page may load: its own files, nothing from outside, nothing inline."""

REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
"""A report is one file with its style inside, and runs no script."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
"""The headers of every answer that does not set its own."""


def checked_token(token: str) -> str:
    """A token that fits into addresses, headers and cookies."""
    if re.fullmatch(rf"[A-Za-z0-9_-]{{{LEAST_TOKEN},256}}", token):
        return token
    raise validate.invalid_input(
        "token", f"of {len(token)} characters", f"at least {LEAST_TOKEN} letters, digits, - or _",
        "leave it out, and one is drawn",
    )  # fmt: skip


class Guard:
    """Wraps an application so that only those who may can ask it.

    Args:
        app: what is guarded.
        hosts: the names under which it may be asked for, without a port.
        token: what everybody must show, or None. With one, any numeric address is a name too: a
            foreign site can lend its name to this machine, but not the machine's own number.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str], token: str | None = None) -> None:
        self.app = app
        self.hosts = frozenset(name.lower().strip("[]") for name in hosts)
        self.token = None if token is None else checked_token(token)
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        asked, body = HTTPConnection(scope), b""
        answer: ASGIApp | None = self._stranger(asked)
        if answer is None:
            read = await _body(asked.headers, receive)
            body = read or b""
            answer = refusal(413, TOO_LARGE) if read is None else self._without_token(asked)
        if answer is None and self._under_way >= AT_ONCE:
            answer = come_again("Too many requests at once: come again.")
        await (answer or self._answer)(scope, _again(body), _with_headers(send))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the application answer before the deadline; a mistake of it is logged here."""
        self._under_way += 1
        try:
            with within(ANSWER):
                await self.app(scope, receive, send)
        except Exception:
            LOG.exception("%s %r", scope["method"], scope["path"])
            await refusal(500, MISTAKE)(scope, receive, send)
        finally:
            self._under_way -= 1

    def _stranger(self, asked: HTTPConnection) -> Response | None:
        """Why a request under a foreign name, or of a foreign page, is turned away, or None."""
        headers, path = asked.headers, asked.scope["path"]
        if len(asked.scope["query_string"]) > LARGEST_BODY:
            return refusal(414, f"The address must have at most {LARGEST_BODY:,} bytes: give less.")
        if not self._is_known(headers.getlist("host")):
            names = ", ".join(sorted(self.hosts))
            return refusal(421, f"Host must be a name of this explorer: ask for {names}.")
        foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        linked = path == "/" and headers.get("sec-fetch-mode") == "navigate"  # it may be followed
        return refusal(403, FOREIGN) if foreign and not linked else None

    def _is_known(self, named: list[str]) -> bool:
        """Whether the one Host header names this explorer."""
        host = host_of(named[0]) if len(named) == 1 else None
        if host is None:
            return False
        return host in self.hosts or (self.token is not None and _is_number(host))

    def _without_token(self, asked: HTTPConnection) -> Response | None:
        """Why a request without the token is turned away, or None."""
        if self.token is None:
            return None
        given = asked.query_params.getlist("token")
        if asked.scope["path"] == "/" and given:
            if len(given) == 1 and _same(given[0], self.token):
                return self._let_in(asked)
        elif self._shown(asked):
            return None
        return refusal(401, MISSING, {"WWW-Authenticate": "Bearer"})

    def _let_in(self, asked: HTTPConnection) -> Response:
        """The page's address with the token: keep it as a cookie and go on without it."""
        assert self.token is not None
        rest = urlencode([pair for pair in asked.query_params.multi_items() if pair[0] != "token"])
        response = RedirectResponse(f"/?{rest}" if rest else "/", status_code=303)
        response.set_cookie(COOKIE, self.token, httponly=True, samesite="strict", path="/")
        return response

    def _shown(self, asked: HTTPConnection) -> bool:
        """Whether the request carries the token, as a header or as one of the cookies of that name.

        Another program of the same host may have set one too, which comes before or after ours.
        """
        assert self.token is not None
        scheme, _, bearer = asked.headers.get("authorization", "").partition(" ")
        given = [
            part.strip() for each in asked.headers.getlist("cookie") for part in each.split(";")
        ]
        own = [part.removeprefix(f"{COOKIE}=") for part in given if part.startswith(f"{COOKIE}=")]
        if scheme.lower() == "bearer":
            own.append(bearer.strip())
        return any(_same(value, self.token) for value in own)


LOG = logging.getLogger(__name__)
MISTAKE = "This is a mistake of dprime's: the terminal of the explorer says more."
FOREIGN = "The page of another site cannot ask: open the explorer's own page."
TOO_LARGE = f"The body must be at most {LARGEST_BODY:,} bytes: send less, or none."
MISSING = "The token is missing or wrong: open the address that dprime explore printed."


def host_of(header: str) -> str | None:
    """The name in a Host header, without its port; None where it is none."""
    found = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?", header.lower())
    return None if found is None else found.group(1) or found.group(2)


def refusal(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """One sentence as JSON."""
    body = json.dumps({"detail": sentence}, ensure_ascii=False)
    return Response(body, status, headers, "application/json")


def come_again(sentence: str, seconds: int = 1) -> Response:
    """There is no answer now."""
    return refusal(503, sentence, {"Retry-After": str(seconds)})


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _same(given: str, token: str) -> bool:
    """Compared in a time that tells nothing about the token."""
    return secrets.compare_digest(given.encode(errors="replace"), token.encode())


async def _body(headers: Headers, receive: Receive) -> bytes | None:
    """The body, or None above the limit; it is read up to there, whatever its header says."""
    stated = headers.get("content-length", "0")
    if stated.isdecimal() and int(stated[:20]) > LARGEST_BODY:
        return None
    body, more = b"", True
    while more and len(body) <= LARGEST_BODY:
        message = await receive()
        body += message.get("body", b"")
        more = message["type"] == "http.request" and message.get("more_body", False)
    return body if len(body) <= LARGEST_BODY else None


def _again(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            message["headers"] = headers.raw
        await send(message)

    return sending
