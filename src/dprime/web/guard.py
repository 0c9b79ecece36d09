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
from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
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
    """A token that fits into addresses, headers and cookies.

    >>> checked_token("short")
    Traceback (most recent call last):
    dprime.validate.InputError: \
token must be at least 16 letters, digits, - or _, but it is of 5 \
characters: leave it out, and one is drawn.
    """
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
        body: bytes | None = b""
        headers = Headers(scope=scope)
        refused = self._stranger(headers, scope["path"], scope["query_string"])
        if refused is None:
            body = await _body(headers, receive)
            refused = refusal(413, TOO_LARGE) if body is None else self._refusal(scope)
        if refused is None and self._under_way >= AT_ONCE:
            refused = come_again("Too many requests at once: come again.")
        answer = self._answer if refused is None else refused
        await answer(scope, _again(body or b""), _with_headers(send))

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

    def _stranger(self, headers: Headers, path: str, query: bytes) -> Response | None:
        """Why a request under a foreign name, or of a foreign page, is turned away, or None."""
        if len(query) > LARGEST_BODY:
            return refusal(414, f"The address must have at most {LARGEST_BODY:,} bytes: give less.")
        if self._is_known(headers.getlist("host")):
            return refusal(403, FOREIGN) if _is_foreign(headers, path) else None
        names = ", ".join(sorted(self.hosts))
        return refusal(421, f"Host must be a name of this explorer: ask for {names}.")

    def _refusal(self, scope: Scope) -> Response | None:
        """Why a request without the token is turned away, or None."""
        headers = Headers(scope=scope)
        if self.token is not None and scope["path"] == "/" and _tokens(scope["query_string"]):
            return self._let_in(scope["query_string"])
        if self.token is None or self._shown(headers):
            return None
        return refusal(401, MISSING, {"WWW-Authenticate": "Bearer"})

    def _is_known(self, named: list[str]) -> bool:
        """Whether the one Host header names this explorer."""
        if len(named) != 1:
            return False
        host = host_of(named[0])
        if host is None:
            return False
        return host in self.hosts or (self.token is not None and _is_number(host))

    def _let_in(self, query: bytes) -> Response:
        """The page's address with a token: keep it as a cookie and go on without it."""
        assert self.token is not None
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
        given = _tokens(query)
        if len(given) != 1 or not _same(given[0], self.token):
            return refusal(401, MISSING, {"WWW-Authenticate": "Bearer"})
        rest = urlencode([pair for pair in pairs if pair[0] != "token"])
        response = RedirectResponse(f"/?{rest}" if rest else "/", status_code=303)
        response.set_cookie(COOKIE, self.token, httponly=True, samesite="strict", path="/")
        return response

    def _shown(self, headers: Headers) -> bool:
        """Whether the request carries the token, as a header or as the cookie."""
        assert self.token is not None
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(bearer.strip(), self.token):
            return True
        return any(_same(value, self.token) for value in _cookies(headers.getlist("cookie")))


LOG = logging.getLogger(__name__)
MISTAKE = "This is a mistake of dprime's: the terminal of the explorer says more."
FOREIGN = "The page of another site cannot ask: open the explorer's own page."
TOO_LARGE = f"The body must be at most {LARGEST_BODY:,} bytes: send less, or none."
MISSING = "The token is missing or wrong: open the address that dprime explore printed."


def host_of(header: str) -> str | None:
    """The name in a Host header, without its port; None where it is none.

    >>> host_of("localhost:8765"), host_of("[::1]:8765"), host_of("a b")
    ('localhost', '::1', None)
    """
    found = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?", header.lower())
    return None if found is None else found.group(1) or found.group(2)


def refusal(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """One sentence as JSON."""
    body = json.dumps({"detail": sentence}, ensure_ascii=False)
    return Response(body, status, headers, "application/json")


def come_again(sentence: str, seconds: int = 1) -> Response:
    """There is no answer now."""
    return refusal(503, sentence, {"Retry-After": str(seconds)})


def _is_foreign(headers: Headers, path: str) -> bool:
    """Whether a browser asks for the page of another site; a link to the page may be followed."""
    linked = path == "/" and headers.get("sec-fetch-mode") == "navigate"
    return headers.get("sec-fetch-site") in ("cross-site", "same-site") and not linked


def _tokens(query: bytes) -> list[str]:
    """The tokens that an address carries."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    return [value for name, value in pairs if name == "token"]


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _same(given: str, token: str) -> bool:
    """Compared in a time that tells nothing about the token."""
    return secrets.compare_digest(given.encode(errors="replace"), token.encode())


def _cookies(headers: Iterable[str]) -> list[str]:
    """The values that the token's cookie has."""
    found = []
    for header in headers:
        for part in header.split(";"):
            name, _, value = part.strip().partition("=")
            if name == COOKIE:
                found.append(value)
    return found


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
    """The body, which was read already, for the application."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _with_headers(send: Send) -> Send:
    """Add the headers that every answer has."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            message["headers"] = headers.raw
        await send(message)

    return sending
