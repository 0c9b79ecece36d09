"""A caller that speaks to an application without a network, with requests as raw as they come."""

import asyncio
import json
from dataclasses import dataclass, field
from urllib.parse import unquote

import pytest

from dprime.web.app import create_app


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body, parse_constant=pytest.fail)

    @property
    def detail(self):
        """The sentence of a refusal; it is all there is in it."""
        (sentence,) = self.json.values()
        assert sentence.endswith(".")
        assert "\n" not in sentence
        return sentence


@dataclass
class Caller:
    """Asks an application; `host` None sends no Host header at all."""

    app: object
    host: str | None = "127.0.0.1:8765"
    headers: list[tuple[str, str]] = field(default_factory=list)

    def get(self, address, **more):
        return self.ask("GET", address, **more)

    def ask(self, method, address, *, headers=(), body=(b"",), host=...):
        path, _, query = address.partition("?")
        named = self.host if host is ... else host
        sent = [*([("host", named)] if named is not None else []), *self.headers, *headers]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "scheme": "http", "path": unquote(path), "raw_path": path.encode(),
            "query_string": query.encode(), "root_path": "", "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8765),
            "headers": [(name.lower().encode(), value.encode()) for name, value in sent],
        }  # fmt: skip
        return asyncio.run(self._talk(scope, iter(body)))

    async def _talk(self, scope, chunks):
        messages = []

        async def receive():
            chunk = next(chunks, b"")
            return {"type": "http.request", "body": chunk, "more_body": bool(chunk)}

        async def send(message):
            messages.append(message)

        await self.app(scope, receive, send)
        body = b"".join(message.get("body", b"") for message in messages[1:])
        headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
        return Reply(messages[0]["status"], headers, body)


@pytest.fixture(scope="session")
def caller(tmp_path_factory):
    """Of an explorer of an empty folder; the numbers need no run."""
    return Caller(create_app(tmp_path_factory.mktemp("runs"), workers=0))
