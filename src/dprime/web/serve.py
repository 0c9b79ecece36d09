"""Start the explorer: the address it can be opened at, and the server itself."""

from __future__ import annotations

import errno
import secrets
import socket
import threading
import webbrowser
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode

import uvicorn

from dprime import options, validate
from dprime.web.app import HOSTS, create_app
from dprime.web.connection import KEEP_ALIVE, SteadyConnection
from dprime.web.guard import checked_token

WAITING = 128
"""Connections that may wait to be accepted."""

ANYWHERE = ("0.0.0.0", "::")
"""Addresses that stand for all of a machine's own."""


@dataclass(frozen=True)
class ServerAddress:
    """Where the explorer listens, and what must be shown to it."""

    host: str
    port: int
    token: str | None

    @property
    def address(self) -> str:
        """What to open in a browser; it holds the token."""
        host = socket.gethostname() if self.host in ANYWHERE else self.host
        name = f"[{host}]" if ":" in host else host
        shown = f"?{urlencode({'token': self.token})}" if self.token else ""
        return f"http://{name}:{self.port}/{shown}"

    def on(self, listener: socket.socket) -> ServerAddress:
        """The same place with the port that it really has."""
        return replace(self, port=int(listener.getsockname()[1]))

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names under which the explorer may be asked for."""
        if self.host in ANYWHERE:
            return (*HOSTS, socket.gethostname(), socket.getfqdn())
        return (*HOSTS, self.host) if self.token else HOSTS


def place_for(host: str | None, port: int, token: str | None) -> ServerAddress:
    """Where to listen: on this machine alone, or with a token on a host that was named."""
    if not 0 <= port <= 65535:
        raise validate.invalid_value(
            "port", port, "between 0 and 65535", f"give for example {options.PORT.default}"
        )
    if token is not None:
        checked_token(token)
    elif host is not None:
        token = secrets.token_urlsafe(32)
    here = HOSTS[0]  # only this machine can ask there
    return ServerAddress(here if host is None else host, port, token)


def listening(place: ServerAddress) -> socket.socket:
    """A socket at the place; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    # asyncio sends at once (TCP_NODELAY) only where the protocol is named.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((place.host, place.port))
        listener.listen(WAITING)  # who asks before the server is ready waits
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            remedy = "end what uses it, or give another with --port"
            raise validate.invalid_input(
                "port", f"{place.port}, which is in use", "free", remedy
            ) from None
        remedy = "give an address of this machine, or leave it out"
        shown = f"{place.host!r} ({error.strerror or error})"
        raise validate.invalid_input("host", shown, "one to listen on", remedy) from None
    return listener


def server_for(folder: Path, place: ServerAddress) -> uvicorn.Server:
    """The server of a folder, with its limits."""
    app = create_app(folder, token=place.token, hosts=place.hosts)
    config = uvicorn.Config(
        app, log_level="error", access_log=False, server_header=False, proxy_headers=False,
        timeout_graceful_shutdown=2, timeout_keep_alive=int(KEEP_ALIVE), http=SteadyConnection,
        ws="none",
    )  # fmt: skip
    return uvicorn.Server(config)


def run(folder: Path, place: ServerAddress, listener: socket.socket, *, open_browser: bool) -> None:
    """Serve on a socket that is open already."""
    server = server_for(folder, place)
    if open_browser:
        threading.Timer(1.0, webbrowser.open, [place.address]).start()
    with listener:
        server.run(sockets=[listener])
