"""A real server: where it listens, how it is reached, how it ends."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from dprime.cli.explore import explore
from dprime.show import needs
from dprime.web.serve import ServerAddress, listening, place_for

PROGRAM = (
    "import typer; from dprime.cli.explore import explore; "
    "app = typer.Typer(); app.command()(explore); app()"
)


@contextlib.contextmanager
def running(*words, cwd):
    """The command in a process of its own, and what it printed first."""
    more = ["--port", "0", "--no-browser", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, *words, *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
    )  # fmt: skip
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def fetched(address, **headers):
    """Status and body, once the server is up."""
    for _ in range(100):
        try:
            request = urllib.request.Request(address, headers=headers)
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read()
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    return pytest.fail("the server did not start")


def children(pid):
    """Processes that a process has started."""
    tasks = Path(f"/proc/{pid}/task")
    return {
        int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()
    }


def until(true, seconds=10.0):
    """Wait for something; whether it came."""
    end = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def listeners(port):
    """Addresses on which somebody listens at a port."""
    lines = [each.split() for each in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    lines += [each.split() for each in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    found = [local.split(":") for _, local, _, state, *_ in lines if state == "0A"]
    return {host for host, number in found if int(number, 16) == port}


@pytest.mark.slow
def test_the_command_serves_this_machine_alone_and_ends_quietly(tmp_path, caller):
    with running(str(tmp_path), cwd=tmp_path) as (process, said):
        assert (said["token"], said["folder"]) == (None, str(tmp_path))
        status, body = fetched(f"{said['address']}api/runs")
        assert (status, json.loads(body)) == (200, {"runs": [], "not_runs": {}, "left_out": 0})
        port = int(said["address"].rsplit(":", 1)[1].strip("/"))
        assert listeners(port) == {"0100007F"}  # 127.0.0.1
        query = "api/charts?noise_multiplier=0.9&sample_rate=0.02&steps=333&charts=risk,precision"
        assert until(lambda: len(children(process.pid)) >= 2)
        status, body = fetched(said["address"] + query)
        assert (status, json.loads(body)) == (200, caller.get(f"/{query}").json)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (out, process.returncode, err.strip()) == ("", 0, "Ended.")


def test_with_a_host_a_token_is_drawn_and_demanded(tmp_path):
    with running(str(tmp_path), "--host", "127.0.0.1", cwd=tmp_path) as (_, said):
        assert len(said["token"]) == 43
        assert said["address"].endswith(f"/?token={said['token']}")
        base = said["address"].partition("?")[0]
        assert fetched(f"{base}api/options")[0] == 401
        bearer = {"Authorization": f"Bearer {said['token']}"}
        assert fetched(f"{base}api/options", **bearer)[0] == 200
        assert fetched(f"{base}api/options", **bearer, Host="evil.example")[0] == 421


def test_no_process_outlives_a_server_that_was_killed(tmp_path):
    def alive(pid):
        state = Path(f"/proc/{pid}/stat")
        return state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] != "Z"

    with running(str(tmp_path), cwd=tmp_path) as (process, said):
        fetched(f"{said['address']}api/options")
        started = set()
        until(lambda: started.update(children(process.pid)), seconds=2.0)
        assert started
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert until(lambda: not any(map(alive, started)))


def test_raw_requests_are_refused_too(tmp_path):
    """As they come over a wire, unnormalised."""
    with running(str(tmp_path), cwd=tmp_path) as (_, said):
        fetched(f"{said['address']}api/options")
        port = int(said["address"].rsplit(":", 1)[1].strip("/"))
        host = f"Host: 127.0.0.1:{port}\r\n"
        for head, statuses in [
            (f"GET /static/../app.py HTTP/1.1\r\n{host}", {404}),
            (f"GET /runs/..%2f..%2fetc%2fpasswd/report HTTP/1.1\r\n{host}", {404}),
            (f"GET http://evil.example/ HTTP/1.1\r\n{host}", {400, 404, 421}),
            ("GET / HTTP/1.1\r\n", {400, 421}),
            ("GET / HTTP/1.1\r\nHost: evil.example\r\n", {421}),
            (f"POST / HTTP/1.1\r\n{host}Content-Length: 99999999\r\n", {413}),
            (f"GET /{'a' * 200_000} HTTP/1.1\r\n{host}", {400}),
        ]:
            with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
                line.sendall(f"{head}Connection: close\r\n\r\n".encode())
                assert int(line.recv(1000).split()[1]) in statuses, head[:60]


app = typer.Typer()
app.command()(explore)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["--port", "70000"], "port must be between 0 and 65535"),
     (["--port", "x"], "port must be a whole number"),
     (["--port", "inf"], "port must be a whole number"),
     (["--host", "203.0.113.1"], "host must be one to listen on"),
     (["--host", "no such host"], "host must be one to listen on"),
     (["--token", "short"], "token must be at least 16 letters"),
     (["nowhere"], "folder must be a folder")],
)  # fmt: skip
def test_what_cannot_be_served_is_refused(tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    more = [] if "--port" in words else ["--port", "0"]
    result = CliRunner().invoke(app, [*words, *more, "--no-browser"])
    assert isinstance(result.exception, ValueError)
    assert sentence in str(result.exception)


def test_a_port_in_use_is_one_sentence():
    with listening(place_for(None, 0, None)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"port must be free, but it is {port}, which is in"):
            listening(place_for(None, port, None))


def test_without_a_folder_it_is_the_one_that_the_command_is_given_in(tmp_path, monkeypatch):
    served = []
    monkeypatch.setattr("dprime.web.serve.run", lambda folder, *_, **__: served.append(folder))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["--port", "0", "--no-browser"])
    assert result.exit_code == 0
    assert "The explorer is at http://127.0.0.1:" in result.stdout
    assert (served, list(tmp_path.iterdir())) == ([Path()], [])


def test_without_the_extra_the_command_says_what_to_install(monkeypatch):
    monkeypatch.setattr(needs, "find_spec", lambda name: None)
    result = CliRunner().invoke(app, [])
    assert str(result.exception) == (
        "dprime[web] must be installed for the explorer, but it is without fastapi, uvicorn, "
        "vl_convert: pip install 'dprime[web]'."
    )


@pytest.mark.parametrize(
    ("place", "address"),
    [(ServerAddress("127.0.0.1", 8765, None), "http://127.0.0.1:8765/"),
     (ServerAddress("::1", 80, "x" * 20), f"http://[::1]:80/?token={'x' * 20}"),
     (ServerAddress("0.0.0.0", 1, "x" * 20), f"http://{socket.gethostname()}:1/?token={'x' * 20}")],
)  # fmt: skip
def test_addresses(place, address):
    assert place.address == address


def test_names_and_tokens():
    assert place_for(None, 1, None) == ServerAddress("127.0.0.1", 1, None)
    assert place_for(None, 1, None).hosts == ("127.0.0.1", "localhost")
    assert "lab" in place_for("lab", 1, None).hosts
    anywhere = place_for("0.0.0.0", 1, None)
    assert socket.gethostname() in anywhere.hosts
    assert "0.0.0.0" not in anywhere.hosts
    assert anywhere.token != place_for("0.0.0.0", 1, None).token
    assert place_for(None, 1, "y" * 16).token == "y" * 16


def test_the_socket_takes_a_free_port_and_sends_at_once():
    """Nagle's algorithm would hold a body back for 40 ms; asyncio turns it off where it can."""
    place = place_for(None, 0, None)
    with listening(place) as listener:
        assert place.on(listener).port > 0
        assert (listener.get_inheritable(), listener.proto) == (False, socket.IPPROTO_TCP)
