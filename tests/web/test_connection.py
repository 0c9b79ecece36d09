"""Connections that are slow, many, or no HTTP: a real server, whose limits can be waited for."""

import contextlib
import http.client
import socket
import threading
import time

import pytest

from dprime.web import connection
from dprime.web.serve import listening, place_for, server_for

GET = b"GET /api/options HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /api/read HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    place = place_for(None, 0, None)
    with pytest.MonkeyPatch.context() as patch, listening(place) as listener:
        patch.setattr(connection, "MOST", 8)
        patch.setattr(connection, "REQUEST", 0.5)
        patch.setattr(connection, "TAKEN", 1.0)
        server = server_for(tmp_path_factory.mktemp("served"), place)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield place.on(listener).port
        server.should_exit = True
        thread.join()


@pytest.fixture
def line(port):
    with contextlib.ExitStack() as stack:

        def opened(*, small=False):
            made = stack.enter_context(socket.socket())
            if small:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            made.settimeout(10)
            made.connect(("127.0.0.1", port))
            return made

        yield opened


def heard(made):
    """Everything until the other end closes."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while part := made.recv(1 << 16):
            found += part
    return found


def answered(made):
    """Whether a request has an answer, which is read to its end: it may come in parts."""
    made.sendall(GET + b"\r\n")
    with http.client.HTTPResponse(made) as reply:
        reply.begin()
        return bool(reply.read()) and reply.status == 200


NO_HTTP = [
    b"\x16\x03\x01\x00\r\n\r\n", b"GET /\r\n\r\n", GET + GET.partition(b"\n")[2] + b"\r\n",
    b"GET / HTTP/1.1\r\n\r\n", GET + b"X: " + b"a" * 1_000_000,
    POST + b"Content-Length: -1\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\n\r\nZ\r\n", b"\xff" * 100 + b"\r\n\r\n",
]  # fmt: skip


@pytest.mark.parametrize("sent", NO_HTTP)
def test_what_is_no_http_is_refused_with_the_strict_headers(line, sent):
    made = line()
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        made.sendall(sent)
    head, _, body = heard(made).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"content-security-policy: default-src 'none'" in head.lower()
    assert b"x-content-type-options: nosniff" in head.lower()
    assert b"HTTP allows no such request" in body


SLOW = [b"G", GET, *(POST + b"Content-Length: %d\r\n\r\n1" % size for size in (9, 99999999))]


@pytest.mark.parametrize("sent", SLOW)
def test_a_request_must_come_in_at_once_however_it_trickles(line, sent):
    """A body that was refused is not read for ever, either."""
    made, began = line(), time.monotonic()
    made.sendall(sent)
    with contextlib.suppress(OSError):
        while time.monotonic() < began + 5:
            time.sleep(0.1)
            made.sendall(b"1")
    assert time.monotonic() - began < 4
    if not sent.startswith(POST):
        assert heard(made).startswith(b"HTTP/1.1 408 Request Timeout\r\n")


def test_whoever_takes_no_answer_loses_the_connection(line):
    made = line(small=True)
    made.sendall((GET + b"\r\n") * 4000)
    time.sleep(2.5)
    assert heard(made).count(b"HTTP/1.1 200 OK") < 4000


def test_idle_connections_and_pipelined_requests_stay(line):
    made = line()
    time.sleep(0.8)
    assert answered(made)
    time.sleep(1.5)
    made.sendall((GET + b"\r\n") * 3 + GET + b"Connection: close\r\n\r\n")
    assert heard(made).count(b"HTTP/1.1 200 OK") == 4


def test_a_new_connection_takes_the_place_of_the_one_that_has_waited_longest(line):
    first, *others = [line() for _ in range(connection.MOST)]
    time.sleep(0.1)
    assert all(answered(each) for each in others)
    assert answered(line())
    assert heard(first) == b""
    assert answered(others[0])


def test_the_server_is_none_the_worse(line):
    assert answered(line())
